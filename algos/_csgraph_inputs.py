"""Graphs as SciPy's csgraph takes them -> matrices; its indices -> vertices. CuPy's arrays are known by their module,
which is not imported for them."""

import os
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.sparse import csgraph as scipys

from gbgpu import Matrix, binary, select, settings

OWN = os.environ.get("GBGPU_CSGRAPH", "auto") == "own"  # nothing is left to SciPy that statements compute
MANY, WIDE = 8, 200_000  # sources; vertices
LARGE, LONG = 4_000_000, 4_000_000  # entries; vertices times entries
REACH = 2  # times the mean weight and the root of n: shorter paths reach at most a fifth of a road map of n vertices


def left(worth: bool) -> bool:
    """Whether a call is left to SciPy: on CPU devices, unless statements are `worth` it there, as measured
    (docs/csgraph.md). SciPy goes once through what a search reaches, where it lies; a Matrix takes a copy of all."""
    return not (OWN or worth) and settings.session().home.kind == "cpu"


def short_rows(csr: Any) -> bool:
    """Whether all rows are short, as in road maps: there `gb.fixpoint` takes half of the time of a heap."""
    return bool(csr.nnz <= 8 * csr.shape[0] and np.diff(csr.indptr).max(initial=0) < 128)


def reaches_far(csr: Any, limit: float) -> bool:
    """Whether paths up to a limit reach so much of a road map that SciPy, which visits only that, takes long."""
    return bool(limit >= REACH * csr.data.mean() * csr.shape[0] ** 0.5) if csr.nnz else False


def on_host(graph: Any) -> Any:
    """What SciPy would be given: a Matrix, an array of gbgpu.sparse, one of CuPy are brought to the host."""
    if hasattr(graph, "to_scipy_sparse") or isinstance(graph, Matrix):
        return _narrow(graph.to_scipy_sparse("csr"))
    if hasattr(graph, "to_scipy"):
        return _narrow(graph.to_scipy())
    if on_gpu(graph):
        return graph.get()
    if getattr(graph, "ndim", 0) == 2 and hasattr(graph, "new"):
        return on_host(graph.new())
    return graph


def _narrow(graph: Any) -> Any:
    """With ids of 32 bits where they fit, as SciPy's own graphs have them: some of its functions take no others."""
    if max(*graph.shape, graph.nnz) < 2**31:
        for name in ("coords",) if graph.format == "coo" else ("indices", "indptr"):
            held = getattr(graph, name)
            ids = [part.astype(np.int32, copy=False) for part in (held if name == "coords" else (held,))]
            setattr(graph, name, tuple(ids) if name == "coords" else ids[0])
    return graph


def on_gpu(x: Any) -> bool:
    """Whether it is an array or a sparse one of CuPy's."""
    return type(x).__module__.startswith("cupy")


def brought_back(found: Any) -> Any:
    """Results as CuPy has them: arrays, sparse ones, and tuples of these."""
    import cupy
    import cupyx.scipy.sparse as gpu_sparse

    if isinstance(found, tuple):
        return tuple(map(brought_back, found))
    if sp.issparse(found):
        return getattr(gpu_sparse, f"{found.format}_matrix", gpu_sparse.csr_matrix)(found)
    plain = isinstance(found, np.ndarray) and not np.ma.isMaskedArray(found)
    return cupy.asarray(found) if plain else found


def validated(graph: Any, directed: bool = True) -> Any:
    """A square CSR array or matrix of float64, with SciPy's meaning: stored zeros of sparse graphs are edges, those of
    blocks and of dense ones, NaN and infinities are none. Entries stay in their order, and as often as they are there.

    Raises ValueError as SciPy does for what is not two-dimensional or not square."""
    graph = on_host(graph)
    if sp.issparse(graph):
        if not directed and graph.format == "csc":
            graph = graph.T
        blocks = graph.format == "bsr"
        graph = graph.tocsr().astype(np.float64, copy=False)
        if blocks:  # zeros fill them up; so does SciPy from 1.18 on
            graph.eliminate_zeros()
    elif np.ma.isMaskedArray(graph):
        graph = scipys.csgraph_from_masked(graph)
    else:
        graph = scipys.csgraph_from_dense(graph)
    if graph.ndim != 2:
        raise ValueError("compressed-sparse graph must be 2-D")
    if graph.shape[0] != graph.shape[1]:
        raise ValueError("compressed-sparse graph must be shape (N, N)")
    return graph


def rows_of(csr: Any) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))


def matrix(csr: Any, values: Any = None) -> Matrix:
    """The Matrix of a CSR array with its values, or others; of entries at one place the least."""
    values, n = csr.data if values is None else values, csr.shape[0]
    if csr.has_canonical_format:
        return Matrix.from_csr(csr.indptr, csr.indices, values, ncols=n, name="A")
    return Matrix.from_coo(rows_of(csr), csr.indices, values, nrows=n, ncols=n, dup_op=binary.min, name="A")


def pattern(csr: Any, directed: bool) -> Matrix:
    """Its edges, which all weigh 1; both ways unless directed."""
    A = matrix(csr, 1.0)
    return A if directed else binary.max(A | A.T).new(name="A")


def weighted(csr: Any, directed: bool) -> Matrix:
    """Its edges that are of use to paths: not NaN, not inf. Unless directed both ways, with the lesser weight."""
    A = matrix(csr)
    if not np.isfinite(csr.data).all():
        A = select.valuelt(A, np.inf).new(name="A")
    return A if directed else binary.min(A | A.T).new(name="A")


def vertices(indices: Any, n: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """The vertices that are asked for, one after the other, and the shape of the question. Negative ones count from the
    end; ValueError for one that there is not."""
    asked = np.arange(n) if indices is None else np.array(indices, dtype=np.int32)
    flat = np.atleast_1d(asked).reshape(-1).astype(np.int64)
    flat[flat < 0] += n
    if ((flat < 0) | (flat >= n)).any():
        raise ValueError("indices out of range 0...N")
    return flat, asked.shape
