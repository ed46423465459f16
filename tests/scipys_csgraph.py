"""A plugin of pytest: what takes functions from `scipy.sparse.csgraph` afterwards has those of `algos.csgraph`."""

import scipy.sparse.csgraph

import algos.csgraph
from algos import _csgraph_inputs

_csgraph_inputs.OWN = True  # what CPU devices leave to SciPy would come back here
for name in algos.csgraph.__all__:
    setattr(scipy.sparse.csgraph, name, getattr(algos.csgraph, name))
