"""Files, other libraries' objects, and generated graphs.

- By name: `read`, `write`, `form_of`.
- Matrix Market: `mmread`, `mmwrite`.
- Edge lists: `read_edgelist`, `write_edgelist`, `read_dimacs`, `write_dimacs`.
- Graphalytics: `read_graphalytics`, `read_vertices`.
- gbgpu's own form: `load`, `save`.
- SciPy's: `read_npz`, `write_npz`.
- Objects: `from_networkx`, `to_networkx`, `from_scipy_sparse`, `to_scipy_sparse`.
- Made from a seed: `rmat`, `uniform`, `grid_road`.
"""

from typing import NoReturn

from gbgpu.errors import no_attribute
from gbgpu.io.binary import load, save
from gbgpu.io.convert import from_networkx, from_scipy_sparse, to_networkx, to_scipy_sparse
from gbgpu.io.edgelist import read_dimacs, read_edgelist, write_dimacs, write_edgelist
from gbgpu.io.files import atomic_file
from gbgpu.io.formats import SUFFIXES, form_of, read, write
from gbgpu.io.generate import grid_road, rmat, uniform
from gbgpu.io.graphalytics import read_graphalytics, read_vertices
from gbgpu.io.matrixmarket import mmread, mmwrite
from gbgpu.io.npz import read_npz, write_npz

__all__ = [
    "SUFFIXES",
    "atomic_file",
    "form_of",
    "from_networkx",
    "from_scipy_sparse",
    "grid_road",
    "load",
    "mmread",
    "mmwrite",
    "read",
    "read_dimacs",
    "read_edgelist",
    "read_graphalytics",
    "read_npz",
    "read_vertices",
    "rmat",
    "save",
    "to_networkx",
    "to_scipy_sparse",
    "uniform",
    "write",
    "write_dimacs",
    "write_edgelist",
    "write_npz",
]

# what else python-graphblas has -> what there is
_INSTEAD = {
    **dict.fromkeys(("from_awkward", "from_pydata_sparse"), "gb.Matrix.from_coo, which takes their arrays"),
    **dict.fromkeys(("to_awkward", "to_pydata_sparse"), "A.to_coo() gives the arrays that these are made of"),
    "from_numpy": "gb.Matrix.from_dense, gb.Vector.from_dense",
    "to_numpy": "A.to_dense(0)",
}


def __getattr__(name: str) -> NoReturn:
    raise no_attribute(f"module {__name__!r}", name, _INSTEAD.get(name))
