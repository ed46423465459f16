"""A plugin of pytest: what takes functions from `scipy.sparse.csgraph` afterwards has those of `algos.csgraph`."""

import scipy.sparse.csgraph

import algos.csgraph

for name in algos.csgraph.__all__:
    setattr(scipy.sparse.csgraph, name, getattr(algos.csgraph, name))
