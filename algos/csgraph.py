"""`scipy.sparse.csgraph` on gbgpu: `import algos.csgraph as csgraph` is all that changes in a script.

Names, signatures, defaults, dtypes, sentinels and errors are SciPy's. Graphs are SciPy's sparse arrays and matrices,
CuPy's, those of gbgpu.sparse, a gbgpu.Matrix, or dense and masked arrays of NumPy; results are NumPy's and SciPy's,
of CuPy's graphs CuPy's.
They are checked and prepared on the host and computed where the session's devices are.

Statements compute shortest paths (`algos/_csgraph_paths.py`), breadth-first orders, components (`algos/components.py`,
`algos/strong.py`) and spanning forests (`algos/forest.py`); on CPU devices where they take less time than SciPy's own
functions, which serve otherwise (`left`). The other functions, which are sequential or one pass over what lies on the
host, are SciPy's own behind the same inputs; their docstrings say so.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.sparse import csgraph as scipys
from scipy.sparse.csgraph import NegativeCycleError

from algos._csgraph_inputs import (
    LARGE,
    LONG,
    MANY,
    WIDE,
    brought_back,
    left,
    matrix,
    on_gpu,
    on_host,
    pattern,
    reaches_far,
    rows_of,
    short_rows,
    validated,
    vertices,
    weighted,
)
from algos._csgraph_paths import NOBODY, among, check_cycles, check_diagonal, each, origins, squared
from algos._in_order import search_in_order
from algos._inputs import vertex
from algos.components import connected_components as weak_components
from algos.forest import chosen_edges
from algos.strong import heights, strongly_connected_components

__all__ = list(scipys.__all__)  # of the version that is installed

_NEGATIVE = (
    "Graph has negative weights: dijkstra will give inaccurate results if the graph contains negative cycles. "
    "Consider johnson or bellman_ford."
)


# -- shortest paths


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> Any:
    """Lengths of shortest paths between all vertices, or from `indices`.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        The graph, n x n.
    method : str
        "D" (`dijkstra`), "BF" (`bellman_ford`), "J" (`johnson`), "FW" (`floyd_warshall`), or "auto": the one that SciPy
        takes.
    directed : bool
        Whether arcs lead one way only.
    return_predecessors : bool
        Whether to return predecessors as well.
    unweighted : bool
        Whether every arc has length 1.
    overwrite : bool
        Passed to `floyd_warshall`.
    indices : int or array of int, optional
        The vertices at which paths begin. By default all.

    Returns
    -------
    numpy.ndarray or tuple of numpy.ndarray
        Distances (float64, shape of `indices` + (n,)); inf where there is no path. With `return_predecessors` also the
        vertex before the last on each path (int32, the same shape); -9999 where there is none.

    Raises
    ------
    ValueError
        If `csgraph` is not square, `method` is another, "FW" is given with `indices`, or an index is out of range.
    NegativeCycleError
        If the function of `method` finds a negative cycle.
    """
    graph = on_host(csgraph)
    validated(graph, directed)
    if method == "auto":
        method = _method(graph, indices)
    if method == "FW":
        if indices is not None:
            raise ValueError("Cannot specify indices with method == 'FW'.")
        return floyd_warshall(graph, directed, return_predecessors, unweighted, overwrite)
    by = {"D": dijkstra, "BF": bellman_ford, "J": johnson}
    if method not in by:
        raise ValueError(f"unrecognized method '{method}'")
    return by[method](graph, directed, indices, return_predecessors, unweighted)


def _method(graph: Any, indices: Any) -> str:
    """SciPy's choice, which shows where weights are negative."""
    if sp.issparse(graph):
        edges = graph.tocoo().data
    elif np.ma.isMaskedArray(graph):
        edges = graph.compressed()
    else:
        edges = np.asarray(graph)[np.isfinite(graph)]
        edges = edges[edges != 0]
    if indices is None and edges.size >= np.shape(graph)[0] ** 2 / 4:
        return "FW"
    return "J" if np.any(edges < 0) else "D"


def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = np.inf,
    min_only: bool = False,
) -> Any:
    """Lengths of shortest paths from `indices`, up to `limit`.

    Distances are right also for negative weights, which SciPy's warning is given for.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        The graph, n x n.
    directed : bool
        Whether arcs lead one way only.
    indices : int or array of int, optional
        The vertices at which paths begin. By default all.
    return_predecessors : bool
        Whether to return predecessors as well.
    unweighted : bool
        Whether every arc has length 1.
    limit : float
        The largest length of a path, 0 or more.
    min_only : bool
        Whether to return, for each vertex, only the path from the nearest of `indices`.

    Returns
    -------
    numpy.ndarray or tuple of numpy.ndarray
        As `shortest_path`. With `min_only` the shapes are (n,), and a third array has the source of each path (int32).

    Raises
    ------
    ValueError
        If `csgraph` is not square, an index is out of range, or `limit` is negative.
    NegativeCycleError
        If a negative cycle is within reach.
    """
    csr = validated(csgraph, directed)
    negative = bool(np.any(csr.data < 0))
    if negative:
        warnings.warn(_NEGATIVE, stacklevel=2)
    n = csr.shape[0]
    sources, shape = vertices(indices, n)
    limit = float(limit)
    if limit < 0:
        raise ValueError("limit must be >= 0")
    many, large = len(sources) >= MANY, csr.nnz >= LARGE
    roads = many and len(sources) * csr.nnz >= LARGE and short_rows(csr) and reaches_far(csr, limit)
    far = not min_only and (limit == np.inf and many and large and n >= WIDE or roads)
    worth = not return_predecessors and ((many or large) if unweighted else far)
    if left(negative or worth):
        return scipys.dijkstra(csr, directed, indices, return_predecessors, unweighted, limit, min_only)
    A = pattern(csr, directed) if unweighted else weighted(csr, directed)
    how: dict[str, Any] = {"unweighted": unweighted, "limit": None if limit == np.inf else limit}
    if not min_only:
        return _shaped(each(A, sources, return_predecessors, **how), shape, n)
    found = among(A, sources, return_predecessors, n=max(n, 1), **how)
    if not return_predecessors:
        return found.distances
    return *found, origins(found.predecessors, found.distances)


def _shaped(found: Any, shape: tuple[int, ...], n: int) -> Any:
    """Distances, or distances and predecessors, in the shape of the indices."""
    results = [part.reshape(*shape, n) for part in found if part is not None]
    return results[0] if len(results) == 1 else tuple(results)


def bellman_ford(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Lengths of shortest paths from `indices`, also of negative weights.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        The graph, n x n.
    directed : bool
        Whether arcs lead one way only.
    indices : int or array of int, optional
        The vertices at which paths begin. By default all.
    return_predecessors : bool
        Whether to return predecessors as well.
    unweighted : bool
        Whether every arc has length 1.

    Returns
    -------
    numpy.ndarray or tuple of numpy.ndarray
        As `shortest_path`.

    Raises
    ------
    ValueError
        If `csgraph` is not square, or an index is out of range.
    NegativeCycleError
        If a negative cycle is within reach of `indices`.
    """
    csr = validated(csgraph, directed)
    sources, shape = vertices(indices, csr.shape[0])
    if left(csr.shape[0] * csr.nnz > LONG):  # SciPy's looks at all arcs once for each vertex
        return scipys.bellman_ford(csr, directed, indices, return_predecessors, unweighted)
    A = pattern(csr, directed) if unweighted else weighted(csr, directed)
    return _shaped(each(A, sources, return_predecessors, unweighted=unweighted), shape, csr.shape[0])


def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Lengths of shortest paths as of `bellman_ford`, with a check for negative cycles anywhere.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        The graph, n x n.
    directed : bool
        Whether arcs lead one way only.
    indices : int or array of int, optional
        The vertices at which paths begin. By default all.
    return_predecessors : bool
        Whether to return predecessors as well.
    unweighted : bool
        Whether every arc has length 1.

    Returns
    -------
    numpy.ndarray or tuple of numpy.ndarray
        As `shortest_path`.

    Raises
    ------
    ValueError
        If `csgraph` is not square, or an index is out of range.
    NegativeCycleError
        If the graph has a negative cycle.
    """
    if unweighted:
        return dijkstra(csgraph, directed, indices, return_predecessors, unweighted)
    csr = validated(csgraph, directed)
    sources, shape = vertices(indices, csr.shape[0])
    if left(indices is not None and csr.shape[0] * csr.nnz > LONG):
        return scipys.johnson(csr, directed, indices, return_predecessors, unweighted)
    A = weighted(csr, directed)
    if np.any(csr.data < 0):
        check_cycles(A)
    return _shaped(each(A, sources, return_predecessors), shape, csr.shape[0])


def floyd_warshall(
    csgraph: Any,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
) -> Any:
    """Lengths of shortest paths between all vertices of a small graph; loops are ignored.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        The graph, n x n; of SciPy's sparse formats csr, csc and lil.
    directed : bool
        Whether arcs lead one way only.
    return_predecessors : bool
        Whether to return predecessors as well.
    unweighted : bool
        Whether every arc has length 1.
    overwrite : bool
        Whether to write the distances into `csgraph`, if it is a dense float64 array in C order.

    Returns
    -------
    numpy.ndarray or tuple of numpy.ndarray
        Distances (float64, n x n), and with `return_predecessors` the vertex before the last (int32, n x n).

    Raises
    ------
    ValueError
        If `csgraph` is not square, or has another sparse format.
    NegativeCycleError
        If the graph has a negative cycle.
    """
    graph = on_host(csgraph)
    if left(False):
        return scipys.floyd_warshall(graph, directed, return_predecessors, unweighted, overwrite)
    if sp.issparse(graph) and graph.format not in ("csr", "csc", "lil"):
        raise ValueError("csgraph must be lil, csr, or csc format")
    if sp.issparse(graph) and graph.ndim == 2:  # a cast by SciPy would add up what is there twice
        csr = graph.tocsr()
        csr = validated(type(csr)((csr.data.astype(np.float64), csr.indices, csr.indptr), csr.shape))
    else:
        csr = validated(graph)
        csr.eliminate_zeros()  # of masked arrays too
    rows, used = rows_of(csr), ~np.isnan(csr.data) & (csr.data != np.inf)
    used &= rows != csr.indices
    data = np.where(np.isfinite(csr.data), 1.0, csr.data) if unweighted else csr.data
    csr = _picked(csr, rows, used, data)
    A, n = weighted(csr, directed), csr.shape[0]
    if return_predecessors:
        try:
            found = each(A, np.arange(n), True)
        except NegativeCycleError:
            squared(A)  # which tells all its vertices
            raise
        check_diagonal(found.distances.diagonal())
    else:
        found = squared(A), None
    if overwrite and isinstance(graph, np.ndarray) and graph.dtype == np.float64 and graph.flags.c_contiguous:
        graph[...] = found[0]
        found = graph, found[1]
    return tuple(found) if return_predecessors else found[0]


def _picked(csr: Any, rows: np.ndarray, used: np.ndarray, data: np.ndarray) -> Any:
    """Some of the entries of a CSR array, in their order, with other values."""
    offsets = np.zeros(csr.shape[0] + 1, csr.indptr.dtype)
    np.cumsum(np.bincount(rows[used], minlength=csr.shape[0]), out=offsets[1:])
    return type(csr)((data[used], csr.indices[used], offsets), csr.shape)


# -- searches


def breadth_first_order(csgraph: Any, i_start: int, directed: bool = True, return_predecessors: bool = True) -> Any:
    """The vertices that `i_start` reaches, in the breadth-first order of SciPy's queue.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        The graph, n x n.
    i_start : int
        The vertex at which the search begins.
    directed : bool
        Whether arcs lead one way only.
    return_predecessors : bool
        Whether to return predecessors as well.

    Returns
    -------
    numpy.ndarray or tuple of numpy.ndarray
        Vertices (int32) in their order, and predecessors (int32, size n); -9999 where there is none.

    Raises
    ------
    ValueError
        If `csgraph` is not square.
    IndexOutOfBound
        If `i_start` is not a vertex.
    """
    csr = validated(csgraph, directed)
    n = csr.shape[0]
    start = vertex(int(i_start), n)
    if left(False):
        return scipys.breadth_first_order(csr, start, directed, return_predecessors)
    found, tails, _ = search_in_order(pattern(csr, directed), *_arcs(csr, directed), np.array([start]))
    nodes, predecessors = found.astype(np.int32), np.full(n, NOBODY, np.int32)
    predecessors[nodes[1:]] = tails
    return (nodes, predecessors) if return_predecessors else nodes


def _arcs(csr: Any, directed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Tails and heads by tails, of each tail the arcs in their own direction first."""
    tails, heads = rows_of(csr), csr.indices
    if directed:
        return tails, heads
    back = np.argsort(heads, kind="stable")
    tails, heads = np.append(tails, heads[back]), np.append(heads, tails[back])
    order = np.argsort(tails, kind="stable")
    return tails[order], heads[order]


def breadth_first_tree(csgraph: Any, i_start: int, directed: bool = True) -> Any:
    """The tree of `breadth_first_order`.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        The graph, n x n.
    i_start : int
        The root.
    directed : bool
        Whether arcs lead one way only.

    Returns
    -------
    scipy.sparse array or matrix
        The arcs from predecessors with their weights, n x n.

    Raises
    ------
    ValueError, IndexOutOfBound
        As `breadth_first_order`.
    """
    graph = on_host(csgraph)
    return scipys.reconstruct_path(graph, breadth_first_order(graph, i_start, directed)[1], directed)


# -- components and trees


def connected_components(
    csgraph: Any, directed: bool = True, connection: str = "weak", return_labels: bool = True
) -> Any:
    """The weakly or strongly connected components.

    Weak components are numbered in the order of their first vertices. Strong ones are numbered so that arcs lead to
    lower numbers, as SciPy's are; among such orders it may be another than SciPy's.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        The graph, n x n.
    directed : bool
        Whether arcs lead one way only.
    connection : str
        "weak" or "strong"; ignored unless `directed`.
    return_labels : bool
        Whether to return labels as well.

    Returns
    -------
    int or tuple of (int, numpy.ndarray)
        The number of components, and the component of each vertex (int32, size n).

    Raises
    ------
    ValueError
        If `csgraph` is not square, or `connection` is another.
    """
    if connection.lower() not in ("weak", "strong"):
        raise ValueError("connection must be 'weak' or 'strong'")
    strong = directed and connection.lower() == "strong"
    csr = validated(csgraph, strong)
    if left(not strong and csr.nnz >= LARGE):
        if strong and not csr.has_canonical_format:  # of an arc that is there twice SciPy's may not end
            csr = csr.copy()
            csr.sum_duplicates()
        return scipys.connected_components(csr, directed, connection, return_labels)
    A = matrix(csr, 1.0)
    firsts = (strongly_connected_components if strong else weak_components)(A).to_coo()[1]
    number = np.cumsum(firsts == np.arange(len(firsts))) - 1  # a component is called by its first vertex
    count = int(number[-1]) + 1 if len(number) else 0
    if not return_labels:
        return count
    labels = number[firsts]
    if strong:
        number = np.empty(count, int)
        number[np.argsort(heights(A, labels), kind="stable")] = np.arange(count)
        labels = number[labels]
    return count, labels.astype(np.int32)


def minimum_spanning_tree(csgraph: Any, overwrite: bool = False) -> Any:
    """The entries of a minimum spanning forest, both directions of the graph taken together.

    Among equal weights the entry that is stored first is taken. Edges of weight 0 are left out of the result, as SciPy
    has it.

    Parameters
    ----------
    csgraph : sparse or dense array, or Matrix
        Weights of edges, n x n.
    overwrite : bool
        Ignored: the graph is never written to.

    Returns
    -------
    scipy.sparse array or matrix
        The entries of the forest (float64, n x n).

    Raises
    ------
    ValueError
        If `csgraph` is not square.
    """
    csr = validated(csgraph)
    if left(False):
        return scipys.minimum_spanning_tree(csr)
    rows, order = rows_of(csr), np.argsort(csr.data, kind="stable")
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows))
    taken = np.zeros(len(rows), bool)
    taken[order[chosen_edges(matrix(csr, place), rows[order], csr.indices[order])]] = True
    return _picked(csr, rows, taken & (csr.data != 0), csr.data)


# -- SciPy's own: what is sequential, and what reads the graph once where it lies


def _scipys(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of SciPy's that takes all that is a graph here."""

    @wraps(function)
    def passed_on(*arguments: Any, **keywords: Any) -> Any:
        keywords = {name: on_host(given) if name in _GRAPHS else given for name, given in keywords.items()}
        return function(*map(on_host, arguments[:1]), *arguments[1:], **keywords)

    passed_on.__module__ = __name__
    passed_on.__doc__ = f"SciPy's own function, on the host, of all graphs that others here take.\n\n{function.__doc__}"
    return passed_on


def _as_given(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose results lie where its graph does: those of CuPy's graphs are CuPy's."""

    @wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        there = any(map(on_gpu, arguments[:1])) or any(on_gpu(keywords.get(name)) for name in _GRAPHS)
        given = {name: on_host(x) if on_gpu(x) else x for name, x in keywords.items()}
        found = function(*(on_host(x) if on_gpu(x) else x for x in arguments), **given)
        return brought_back(found) if there else found

    return called


_GRAPHS = "csgraph", "graph", "biadjacency"  # what functions call it
for _name in __all__:
    _found = globals()[_name] if _name in globals() else _scipys(getattr(scipys, _name))
    globals()[_name] = _as_given(_found) if isfunction(_found) else _found
