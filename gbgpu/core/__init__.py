"""Names that packages written for python-graphblas import from its `core`. Nothing of gbgpu's own uses them."""

from gbgpu.core import matrix, operator, scalar, utils, vector

__all__ = ["matrix", "operator", "scalar", "utils", "vector"]
