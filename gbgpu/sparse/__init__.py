"""SciPy's sparse arrays with their entries on the session's devices: `csr_array`, `csc_array`, `coo_array`.

Results, dtypes, formats and stored zeros are SciPy's; integers, bools and floats of all sizes that gbgpu has work on
CPU and GPU. `.matrix` is the gbgpu.Matrix behind an array, `.to_scipy()` the SciPy array. SciPy is imported only
there and for .npz files.

`csr_matrix`, `csc_matrix` and `coo_matrix` are their older kind, as SciPy's: `*` is the product, `**` the matrix power,
and everything has two dimensions.
"""

from typing import NoReturn

from gbgpu.sparse._base import SparseArray
from gbgpu.sparse._classes import (
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    isspmatrix,
    isspmatrix_coo,
    isspmatrix_csc,
    isspmatrix_csr,
    sparray,
    spmatrix,
)
from gbgpu.sparse._common import issparse
from gbgpu.sparse._construct import (
    block_array,
    block_diag,
    bmat,
    diags,
    diags_array,
    eye,
    eye_array,
    find,
    hstack,
    identity,
    kron,
    load_npz,
    random,
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
    "bmat",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csr_array",
    "csr_matrix",
    "diags",
    "diags_array",
    "eye",
    "eye_array",
    "find",
    "hstack",
    "identity",
    "issparse",
    "isspmatrix",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "kron",
    "load_npz",
    "random",
    "random_array",
    "save_npz",
    "sparray",
    "spmatrix",
    "tril",
    "triu",
    "vstack",
]

# what else scipy.sparse has -> what there is
_INSTEAD = {
    **{f"{kind}_{form}": "csr_array; A.to_scipy() converts to others"
       for kind in ("dia", "bsr", "lil", "dok") for form in ("array", "matrix")},
    "linalg": "scipy.sparse.linalg.cg(A, b) and its like take A; spsolve, splu, inv, expm and norm take A.to_scipy()",
    "csgraph": "gbgpu's own algorithms, or scipy.sparse.csgraph with A.to_scipy()",
    "rand": "random_array((m, n), density=0.01)",
    "spdiags": "diags_array",
    "kronsum": "kron",
}  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    instead = "isinstance(A, csr_array)" if name.startswith("isspmatrix_") else None
    instead = instead or _INSTEAD.get(name, "A.to_scipy() for SciPy's functions; docs/scipy.md lists what is here")
    raise AttributeError(f"module 'gbgpu.sparse' has no attribute {name!r}. Hint: {instead}")
