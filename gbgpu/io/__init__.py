"""Files and generated graphs: Matrix Market in and out, and RMAT, uniform and grid-road graphs made from a seed."""

from gbgpu.io.files import atomic_file
from gbgpu.io.generate import grid_road, rmat, uniform
from gbgpu.io.matrixmarket import mmread, mmwrite

__all__ = ["atomic_file", "grid_road", "mmread", "mmwrite", "rmat", "uniform"]
