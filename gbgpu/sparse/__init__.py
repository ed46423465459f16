"""SciPy's sparse arrays with their entries on the session's devices: `csr_array`, `csc_array`, `coo_array`.

Results, dtypes, formats and stored zeros are SciPy's; integers, bools and floats of all sizes that gbgpu has work on
CPU and GPU. `.matrix` is the gbgpu.Matrix behind an array, `.to_scipy()` the SciPy array. SciPy is imported only
there and for .npz files."""

from gbgpu.sparse._base import SparseArray, coo_array, csc_array, csr_array
from gbgpu.sparse._common import issparse
from gbgpu.sparse._construct import (
    block_array,
    block_diag,
    diags_array,
    eye_array,
    find,
    hstack,
    identity,
    kron,
    load_npz,
    random_array,
    save_npz,
    tril,
    triu,
    vstack,
)

__all__ = [
    "SparseArray",
    "block_array",
    "block_diag",
    "coo_array",
    "csc_array",
    "csr_array",
    "diags_array",
    "eye_array",
    "find",
    "hstack",
    "identity",
    "issparse",
    "kron",
    "load_npz",
    "random_array",
    "save_npz",
    "tril",
    "triu",
    "vstack",
]
