"""Generators, operators and conversions for NetworkX: their graphs are the backend's.

Regular and random graphs are made as arrays, edge by edge in NetworkX's order. Those of a few nodes, and those with
attributes, are made by NetworkX's own functions and held as graphs of the backend.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from inspect import signature
from numbers import Integral
from typing import Any

import networkx as nx
import numpy as np
from networkx.utils.backends import _registered_algorithms

from algos._nx_graph import Arrays, DiGraph, Graph, convertible, from_networkx
from algos._nx_offers import offer, seeded
from gbgpu import Matrix, select

DIRECTED = {None: False, nx.Graph: False, Graph: False, nx.DiGraph: True, DiGraph: True}

Edges = tuple[Any, np.ndarray, np.ndarray]  # how many nodes, or their labels; tails; heads


def _class(given: dict[str, Any]) -> str | None:
    kind = given.get("create_using")
    known = kind is None or isinstance(kind, type) and kind in DIRECTED
    return None if known else "graphs of other classes, and given ones, are filled by NetworkX"


def _by_networkx(name: str, arguments: tuple, keywords: dict[str, Any]) -> Any:
    found = _registered_algorithms[name].orig_func(*arguments, **keywords)
    if not convertible(found):
        return found
    graph = from_networkx(found)
    graph._lent = False  # nobody else has it
    return graph


def _made(least: int | tuple[int, ...] = 0, *, directed: bool = False) -> Callable[[Callable[..., Edges]], Any]:
    """Offer the generator of a function of whole numbers. For smaller ones than `least`, for lists of nodes, and for
    directed graphs unless `directed`, NetworkX's function knows what to do."""

    def offered(function: Callable[..., Edges]) -> Any:
        @wraps(function)
        def run(*arguments: Any, **keywords: Any) -> Any:
            bound = signature(function).bind(*arguments, **keywords)
            bound.apply_defaults()
            bound.arguments.pop("default", None)
            kind = DIRECTED[bound.arguments.pop("create_using")]
            sizes = list(bound.arguments.values())
            lowest = least if isinstance(least, tuple) else (least,) * len(sizes)
            whole = all(isinstance(size, Integral) and size >= low for size, low in zip(sizes, lowest, strict=True))
            if not whole or kind and not directed:
                return _by_networkx(function.__name__, arguments, keywords)
            nodes, tails, heads = function(*map(int, sizes), create_using=kind)
            return _graph(range(nodes) if isinstance(nodes, int) else nodes, tails, heads, kind)

        return offer(only=("default",), refuses=_class)(run)

    return offered


def _graph(nodes: Any, tails: np.ndarray, heads: np.ndarray, directed: bool) -> Any:
    return (DiGraph if directed else Graph).of_arrays(Arrays.of_edges(nodes, tails, heads, directed))


def _joined(*parts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Tails and heads of all edges, from arrays of two columns, or pairs of arrays that are as long as each other or
    of one number."""
    pairs = [np.broadcast_arrays(*map(np.atleast_1d, part)) for part in parts]
    return tuple(np.concatenate(side) for side in zip(*pairs, strict=True))  # type: ignore[return-value]


def _chain(first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """first -> first + 1 -> ... -> end - 1."""
    return np.arange(first, end - 1), np.arange(first + 1, max(end, first + 1))


def _pairs(n: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Every two of n nodes."""
    tails, heads = np.triu_indices(n, 1)
    return tails + first, heads + first


NOTHING = np.arange(0)


@_made(directed=True)
def empty_graph(n: Any = 0, create_using: Any = None, default: Any = nx.Graph) -> Edges:
    return n, NOTHING, NOTHING


@_made(directed=True)
def null_graph(create_using: Any = None) -> Edges:
    return 0, NOTHING, NOTHING


@_made(directed=True)
def trivial_graph(create_using: Any = None) -> Edges:
    return 1, NOTHING, NOTHING


@_made(directed=True)
def path_graph(n: Any, create_using: Any = None) -> Edges:
    return n, *_chain(0, n)


@_made(directed=True)
def cycle_graph(n: Any, create_using: Any = None) -> Edges:
    return n, np.arange(n), np.roll(np.arange(n), -1)


@_made(directed=True)
def complete_graph(n: Any, create_using: Any = None) -> Edges:
    if not create_using:
        return n, *_pairs(n)
    tails, heads = np.divmod(np.arange(n * n), max(n, 1))
    return n, tails[tails != heads], heads[tails != heads]


@_made(directed=True)
def star_graph(n: Any, create_using: Any = None) -> Edges:
    return n + 1, np.zeros(n, int), np.arange(1, n + 1)


@_made(1)
def wheel_graph(n: Any, create_using: Any = None) -> Edges:
    rim = np.arange(1, n)
    around = rim if n > 2 else NOTHING
    return n, *_joined((np.zeros(n - 1, int), rim), (around, np.roll(around, -1)))


@_made()
def ladder_graph(n: Any, create_using: Any = None) -> Edges:
    return 2 * n, *_joined(_chain(0, n), _chain(n, 2 * n), (np.arange(n), np.arange(n, 2 * n)))


@_made(1)
def circular_ladder_graph(n: Any, create_using: Any = None) -> Edges:
    rungs = np.arange(n), np.arange(n, 2 * n)
    return 2 * n, *_joined(_chain(0, n), _chain(n, 2 * n), rungs, (0, n - 1), (n, 2 * n - 1))


@_made((2, 2))
def barbell_graph(m1: Any, m2: Any, create_using: Any = None) -> Edges:
    ends = _chain(m1 - 1, m1 + 1), _chain(m1 + m2 - 1, m1 + m2 + 1)
    return 2 * m1 + m2, *_joined(_pairs(m1), _chain(m1, m1 + m2), _pairs(m1, m1 + m2), *ends)


@_made((2, 0))
def lollipop_graph(m: Any, n: Any, create_using: Any = None) -> Edges:
    return m + n, *_joined(_pairs(m), _chain(m, m + n), _chain(m - 1, m + min(n, 1)))


@_made((2, 0))
def tadpole_graph(m: Any, n: Any, create_using: Any = None) -> Edges:
    return m + n, *_joined((np.arange(m), np.roll(np.arange(m), -1)), _chain(m - 1, m + n))


@_made((1, 0), directed=True)
def full_rary_tree(r: Any, n: Any, create_using: Any = None) -> Edges:
    return n, (np.arange(1, max(n, 1)) - 1) // r, np.arange(1, max(n, 1))


@_made((1, 0), directed=True)
def balanced_tree(r: Any, h: Any, create_using: Any = None) -> Edges:
    n = h + 1 if r == 1 else (r ** (h + 1) - 1) // (r - 1)
    return n, (np.arange(1, n) - 1) // r, np.arange(1, n)


@offer(refuses=_class)
def grid_2d_graph(m: Any, n: Any, periodic: Any = False, create_using: Any = None) -> Any:
    if not all(isinstance(size, Integral) and size >= 0 for size in (m, n)):
        return _by_networkx("grid_2d_graph", (m, n, periodic, create_using), {})
    around = tuple(periodic) if np.iterable(periodic) else (periodic, periodic)
    number = np.arange(m * n).reshape(m, n)
    parts = [(number[1:].ravel(), number[:-1].ravel()), (number[:, 1:].ravel(), number[:, :-1].ravel())]
    if around[0] and m > 2:
        parts.append((number[0], number[-1]))
    if around[1] and n > 2:
        parts.append((number[:, 0], number[:, -1]))
    tails, heads = _joined(*parts)
    directed = DIRECTED[create_using]
    if directed:  # NetworkX adds the other direction as it lists the edges
        listed = np.argsort(tails, kind="stable")
        tails, heads = np.concatenate([tails, heads[listed]]), np.concatenate([heads, tails[listed]])
    return _graph([(i, j) for i in range(m) for j in range(n)], tails, heads, directed)


# -- random graphs


def _drawn(numbers: np.ndarray, n: int, directed: bool) -> Any:
    """The graph of some of all pairs, by their numbers."""
    if directed:
        tails, heads = np.divmod(numbers, max(n - 1, 1))
        heads = heads + (heads >= tails)
        return _graph(range(n), tails, heads, True)
    # pairs from the end: the last r nodes have r (r - 1) / 2 among them
    left = n * (n - 1) // 2 - 1 - numbers
    r = ((np.sqrt(8.0 * left + 1) - 1) // 2).astype(np.int64)
    r += (r + 1) * (r + 2) // 2 <= left
    r -= r * (r + 1) // 2 > left
    return _graph(range(n), n - 2 - r, n - 1 - (left - r * (r + 1) // 2), False)


def _count_of_pairs(n: int, directed: bool) -> int:
    return n * (n - 1) // (1 if directed else 2)


@offer(refuses=lambda given: seeded(given) or _class(given))
def gnp_random_graph(n: Any, p: float, seed: Any = None, directed: bool = False, *, create_using: Any = None) -> Any:
    if not isinstance(n, Integral) or n < 2 or not 0 < p < 1 or DIRECTED[create_using] != directed:
        keywords = {"directed": directed, "create_using": create_using}
        return _by_networkx("gnp_random_graph", (n, p, seed), keywords)
    rng, total = np.random.default_rng(seed.getrandbits(64)), _count_of_pairs(int(n), directed)
    gaps = rng.geometric(p, int(total * p + 10 * (total * p) ** 0.5) + 10)
    numbers = np.cumsum(gaps) - 1
    while numbers[-1] < total:
        numbers = np.concatenate([numbers, numbers[-1] + np.cumsum(rng.geometric(p, len(gaps)))])
    return _drawn(numbers[numbers < total], int(n), directed)


offer(name="fast_gnp_random_graph", refuses=lambda given: seeded(given) or _class(given))(gnp_random_graph)


@offer(refuses=lambda given: seeded(given) or _class(given))
def gnm_random_graph(n: Any, m: Any, seed: Any = None, directed: bool = False, *, create_using: Any = None) -> Any:
    whole = isinstance(n, Integral) and isinstance(m, Integral) and n > 1 and m >= 0
    if not whole or m >= _count_of_pairs(int(n), directed) or DIRECTED[create_using] != directed:
        keywords = {"directed": directed, "create_using": create_using}
        return _by_networkx("gnm_random_graph", (n, m, seed), keywords)
    rng, total = np.random.default_rng(seed.getrandbits(64)), _count_of_pairs(int(n), directed)
    numbers = np.unique(rng.integers(0, total, int(m)))
    while len(numbers) < m:  # drawn one after the other, those that are there again
        more = np.setdiff1d(rng.integers(0, total, 2 * (int(m) - len(numbers)) + 10), numbers)
        numbers = np.concatenate([numbers, rng.permutation(more)[: int(m) - len(numbers)]])
    return _drawn(np.sort(numbers), int(n), directed)


DRAWN = ("gnp_random_graph", "fast_gnp_random_graph", "gnm_random_graph", "maximal_independent_set")


# -- NetworkX's own


def _held(name: str) -> None:
    original = _registered_algorithms[name].orig_func

    @wraps(original)
    def run(*arguments: Any, **keywords: Any) -> Any:
        return _by_networkx(name, arguments, keywords)

    offer(name=name, refuses=_class)(run)


for _name in """bull_graph chvatal_graph complete_bipartite_graph complete_multipartite_graph cubical_graph
    davis_southern_women_graph desargues_graph diamond_graph dodecahedral_graph florentine_families_graph frucht_graph
    heawood_graph hoffman_singleton_graph house_graph house_x_graph icosahedral_graph karate_club_graph
    krackhardt_kite_graph les_miserables_graph moebius_kantor_graph octahedral_graph pappus_graph petersen_graph
    sedgewick_maze_graph tetrahedral_graph truncated_cube_graph truncated_tetrahedron_graph turan_graph
    tutte_graph""".split():
    _held(_name)


# -- operators and conversions


@offer()
def complement(G: Any) -> Any:
    arrays, n = G._arrays, len(G)
    C = Matrix(bool, n, n, name="C")
    C(~arrays.pattern().S) << True
    offsets, heads, _ = select.offdiag(C).new().to_csr()
    return type(G).of_arrays(Arrays(arrays.nodes, offsets.astype(np.int64), heads.astype(np.int64)))


@offer()
def reverse(G: Any, copy: bool = True) -> Any:
    if not G.is_directed():
        raise nx.NetworkXError("Cannot reverse an undirected graph.")
    if not copy or "_made" not in G.__dict__:
        return G.reverse(copy=copy)
    turned = DiGraph.of_arrays(G._backwards)
    turned.graph.update(deepcopy(G.graph))
    if "_node" in G.__dict__:  # else no node has attributes
        turned._node = deepcopy(G._node)
    return turned


def _own_order(given: dict[str, Any]) -> str | None:
    nodelist = given.get("nodelist")
    same = nodelist is None or list(nodelist) == list(given["G"])
    return None if same else "some of the nodes, or another order, are NetworkX's matter"


def _fits(values: np.ndarray, limits: np.iinfo) -> bool:
    if not len(values) or values.dtype == np.bool_:
        return True
    return bool(values.min() >= limits.min and values.max() < limits.max + 1)


@offer(parallel=True, refuses=_own_order)
def to_scipy_sparse_array(
    G: Any, nodelist: Any = None, dtype: Any = None, weight: Any = "weight", format: str = "csr"
) -> Any:
    from scipy.sparse import csr_array

    arrays = G._arrays
    if not len(arrays):
        raise nx.NetworkXError("Graph has no nodes or edges")
    values, hidden = arrays.every(weight)
    if hidden.any() or values.dtype.kind not in "biuf" or values.ndim != 1:
        raise NotImplementedError("numbers of 64 bits as the weights of edges")
    if dtype is not None and np.dtype(dtype).kind in "iu" and not _fits(values, np.iinfo(dtype)):
        raise OverflowError(f"a weight does not fit {np.dtype(dtype)}")
    given, heads, offsets = values, arrays.heads, arrays.offsets
    if values.dtype == np.bool_ and not G.is_directed() and (arrays.tails == heads).any():
        given = values.astype(np.int64)  # NetworkX subtracts loops
    if arrays.multigraph:
        heads, offsets = np.repeat(heads, arrays.parallel), np.r_[0, np.cumsum(arrays.parallel)][offsets]
    given = given if len(given) else np.zeros(0)  # as NetworkX has it where there is no edge
    parts = given, heads, offsets
    found = csr_array(parts, shape=(len(arrays), len(arrays)), dtype=dtype, copy=True)  # others go on with these
    found.sum_duplicates()  # in the type of the result
    try:
        return found.asformat(format)
    except ValueError as error:
        raise nx.NetworkXError(f"Unknown sparse matrix format: {format}") from error


offer(name="adjacency_matrix", parallel=True, refuses=_own_order)(
    lambda G, nodelist=None, dtype=None, weight="weight": to_scipy_sparse_array(G, nodelist, dtype, weight)
)


def _plain_matrix(given: dict[str, Any]) -> str | None:
    return "parallel edges are NetworkX's matter" if given.get("parallel_edges") else _class(given)


@offer(refuses=_plain_matrix)
def from_scipy_sparse_array(
    A: Any, parallel_edges: bool = False, create_using: Any = None, edge_attribute: str = "weight"
) -> Any:
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise nx.NetworkXError(f"Adjacency matrix not square: nx,ny={A.shape}")
    coo, directed = A.tocoo(), DIRECTED[create_using]
    ends = (coo.row, coo.col) if directed else (np.minimum(coo.row, coo.col), np.maximum(coo.row, coo.col))
    # The last of several entries is an edge's, where the first one was, as where NetworkX adds one after the other.
    keys = ends[0].astype(np.int64) * A.shape[0] + ends[1]
    _, first = np.unique(keys, return_index=True)
    _, last = np.unique(keys[::-1], return_index=True)
    order = np.argsort(first)
    first, last = first[order], len(keys) - 1 - last[order]
    values = {edge_attribute: coo.data[last]}
    arrays = Arrays.of_edges(range(A.shape[0]), coo.row[first], coo.col[first], directed, values)
    return (DiGraph if directed else Graph).of_arrays(arrays)
