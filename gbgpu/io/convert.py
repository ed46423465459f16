"""Matrices to and from the objects of other libraries: NetworkX graphs and SciPy sparse arrays."""

from typing import Any

import numpy as np

from gbgpu import Matrix, Vector, dtypes
from gbgpu.errors import InvalidValue, checked_text, message
from gbgpu.interrupts import imported

_NUMBERS = (int, float, np.number, np.bool_)
_FORMATS = ("bsr", "csr", "csc", "coo", "lil", "dia", "dok")


def _networkx() -> Any:
    try:
        return imported("networkx")
    except ImportError as error:
        raise ImportError("graphs of NetworkX need it: pip install networkx") from error


def from_networkx(
    G: Any, nodelist: Any = None, dtype: Any = None, weight: Any = "weight", name: str | None = None
) -> Matrix:
    """The adjacency matrix of a NetworkX graph.

    Parameters
    ----------
    G : networkx.Graph
        Directed or not; parallel edges of a multigraph are summed.
    nodelist : list, optional
        The nodes of the rows and columns, in this order. By default all, in the graph's order.
    dtype : dtype, optional
        The type of the values.
    weight : str or None
        The edges' attribute that gives the values; 1 where it is missing, or if `weight` is None.
    name : str, optional
        The matrix's name.

    Returns
    -------
    Matrix
        n x n; symmetric if the graph is undirected.

    Raises
    ------
    TypeError
        If `G` is no graph, or a weight no number.
    networkx.NetworkXError
        If `nodelist` has nodes that the graph has not, or one twice.
    ImportError
        If NetworkX is not installed.
    """
    networkx = _networkx()
    if not isinstance(G, networkx.Graph):
        raise TypeError(message("a NetworkX graph", type(G).__name__))
    np_type = None if dtype is None else dtypes.lookup_dtype(dtype).np_type
    if not len(G):
        return Matrix(float if dtype is None else dtype, 0, 0, name=name)
    try:
        found = networkx.to_scipy_sparse_array(G, nodelist=nodelist, dtype=np_type, weight=weight)
    except (TypeError, ValueError) as error:
        wrong = next(((u, v, w) for u, v, w in G.edges(data=weight, default=1) if not isinstance(w, _NUMBERS)), None)
        if wrong is None:
            raise
        came = f"{wrong[2]!r} at the edge ({wrong[0]!r}, {wrong[1]!r})"
        raise TypeError(message(f"numbers as the attribute {weight!r}", came, "weight=None takes 1")) from error
    found.sum_duplicates()
    values = found.data
    iso = values.size > 0 and bool((values == values[0]).all())
    matrix = Matrix.from_csr(
        found.indptr, found.indices, values[0] if iso else values, dtype, ncols=found.shape[1], name=name
    )
    if not G.is_directed():
        matrix._session.declare_symmetric(matrix)
    return matrix


def to_networkx(m: Matrix, edge_attribute: str | None = "weight") -> Any:
    """A NetworkX graph of a square matrix.

    Parameters
    ----------
    m : Matrix
        An edge for each entry.
    edge_attribute : str or None
        The edges' attribute that takes the values; None: no values.

    Returns
    -------
    networkx.DiGraph
        With a node for each row, 0 .. n - 1.

    Raises
    ------
    TypeError
        If `m` is no matrix.
    InvalidValue
        If the matrix is not square.
    ImportError
        If NetworkX is not installed.
    """
    graph = _networkx().DiGraph()
    if getattr(m, "ndim", 0) != 2 or not hasattr(m, "to_coo"):
        raise TypeError(message("a Matrix", type(m).__name__))
    m = m._computed()
    if m.nrows != m.ncols:
        raise InvalidValue(message("a square matrix, of edges", f"shape {m.shape}"))
    m._session.room(m.nrows, 512, m)  # about what a node takes
    rows, cols, values = (found.tolist() for found in m.to_coo())
    graph.add_nodes_from(range(m.nrows))
    if edge_attribute is None:
        graph.add_edges_from(zip(rows, cols, strict=True))
    else:
        graph.add_weighted_edges_from(zip(rows, cols, values, strict=True), weight=edge_attribute)
    return graph


def from_scipy_sparse(A: Any, *, dup_op: Any = None, name: str | None = None) -> Matrix:
    """A Matrix of a SciPy sparse array or matrix; see `Matrix.from_scipy_sparse`."""
    return Matrix.from_scipy_sparse(A, dup_op=dup_op, name=name)


def to_scipy_sparse(A: Any, format: str = "csr") -> Any:
    """A SciPy sparse array of a Matrix, a transposed one or a Vector.

    Parameters
    ----------
    A : Matrix or Vector
        A vector becomes one row, or one column if `format` is "csc".
    format : str
        "bsr", "csr", "csc", "coo", "lil", "dia" or "dok".

    Returns
    -------
    scipy.sparse array
        Of the dtype of `A`.

    Raises
    ------
    ValueError
        If the format is unknown.
    TypeError
        If `A` is something else.
    """
    format = checked_text(format, "a format").lower()
    if format not in _FORMATS:
        raise ValueError(message(f"a format: {', '.join(_FORMATS)}", repr(format)))
    if isinstance(A, Matrix):
        return A.to_scipy_sparse(format)
    if not isinstance(A, Vector):
        if getattr(A, "ndim", 0) != 2 or not hasattr(A, "new"):
            raise TypeError(message("a Matrix or a Vector", type(A).__name__))
        return A.new().to_scipy_sparse(format)
    sp = imported("scipy.sparse")
    ids, values = A.to_coo()
    make, shape = (sp.csc_array, (A.size, 1)) if format == "csc" else (sp.csr_array, (1, A.size))
    return make((values, ids, np.array([0, len(ids)])), shape=shape).asformat(format)
