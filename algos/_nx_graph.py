"""Graphs of the NetworkX backend, and how those of NetworkX become matrices.

A graph is dictionaries, as NetworkX has them, or arrays; what is not there is made of the other when first looked at.
Graphs that are converted share the dictionaries of the original; generators give arrays. So every method of NetworkX's
classes works here too, and one that changes the graph clears `__networkx_cache__`, where the arrays are kept.
"""

from collections.abc import Callable, Hashable, Iterable
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np

from gbgpu import Matrix, settings


class Arrays:
    """The arcs of a graph, tail by tail in the order in which NetworkX lists them; an undirected edge is two arcs.

    `nodes`: labels by number, a range where they are their own numbers. `offsets`, `heads`: as of CSR (int64).
    `attributes`: values of the arcs by the name of an edge attribute, where there are no dictionaries. `rows`: what
    NetworkX holds for each node's neighbours, if this was read from it; `multigraph`: for each one attributes by key.
    `keeps`: whether weights are read once. (NetworkX warns where it keeps a conversion; nobody does where
    `G[u][v]["weight"]` is set in a graph of the backend.)
    """

    def __init__(
        self,
        nodes: range | list,
        offsets: np.ndarray,
        heads: np.ndarray,
        attributes: dict[str, np.ndarray] | None = None,
        rows: list | None = None,
        multigraph: bool = False,
        keeps: bool = True,
    ):
        self.nodes, self.offsets, self.heads, self.keeps = nodes, offsets, heads, keeps
        self.attributes, self.rows, self.multigraph = attributes or {}, rows, multigraph
        self._numbers: dict[Hashable, int] | None = None
        self._kept: dict[Any, Any] = {}
        self._weights: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        self._ascending: tuple[np.ndarray, np.ndarray] | None = None  # heads in each row, and the arcs' order

    @classmethod
    def read(cls, nodes: Iterable, adjacency: Any, multigraph: bool, keeps: bool = True) -> "Arrays":
        """From the dictionaries of successors, or of predecessors."""
        labels: Any = list(nodes)
        if labels == list(range(len(labels))) and set(map(type, labels)) <= {int}:
            labels = range(len(labels))
        rows = list(map(adjacency.__getitem__, labels))
        if not all(type(row) is dict for row in rows):  # those of a view, which looks at each entry whether it shows
            rows = list(map(dict, rows))
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=offsets[1:])
        new = cls(labels, offsets, np.zeros(0, np.int64), rows=rows, multigraph=multigraph, keeps=keeps)
        ends = chain.from_iterable(rows)
        numbers = ends if isinstance(labels, range) else map(new.numbers.__getitem__, ends)
        new.heads = np.fromiter(numbers, np.int64, offsets[-1])
        return new

    @classmethod
    def of_edges(cls, nodes: range | list, tails: Any, heads: Any, directed: bool, attributes: Any = None) -> "Arrays":
        """As NetworkX would list edges that are added one after the other; the first of equal ones counts. Attributes:
        a value for each edge, by name."""
        n, tails, heads = len(nodes), np.asarray(tails, np.int64), np.asarray(heads, np.int64)
        edge = np.arange(len(tails))
        if not directed:
            tails, heads = np.stack([tails, heads], 1).ravel(), np.stack([heads, tails], 1).ravel()
            edge = np.repeat(edge, 2)
        first = np.unique(tails * n + heads, return_index=True)[1]
        first = first[np.lexsort((first, tails[first]))]
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(tails[first], minlength=n), out=offsets[1:])
        values = {name: column[edge[first]] for name, column in (attributes or {}).items()}
        return cls(nodes, offsets, heads[first], values)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def numbers(self) -> dict[Hashable, int]:
        """The number of each label."""
        if self._numbers is None:
            self._numbers = {label: number for number, label in enumerate(self.nodes)}
        return self._numbers

    def labels(self, numbers: np.ndarray) -> list:
        """The labels of an array of numbers."""
        listed = numbers.tolist()
        return listed if isinstance(self.nodes, range) else [self.nodes[number] for number in listed]

    def by_node(self, values: np.ndarray) -> dict[Hashable, Any]:
        """A value for each node, in the order of nodes."""
        return dict(zip(self.nodes, values.tolist(), strict=True))

    def kept(self, what: Any, make: Callable[[], Any]) -> Any:
        """What was made of the graph in the session in force, once."""
        session = settings.session()
        if self._kept.get("session") is not session:
            self._kept = {"session": session}
        if what not in self._kept:
            self._kept[what] = make()
        return self._kept[what]

    @property
    def tails(self) -> np.ndarray:
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def parallel(self) -> np.ndarray:
        """How many edges each arc stands for: more than one in multigraphs only."""
        if not self.multigraph:
            return np.ones(len(self.heads), np.int64)
        return np.array([len(keys) for row in self.rows or () for keys in row.values()], np.int64)

    def degrees(self, directed: bool) -> np.ndarray:
        """Out-degrees with parallel edges, or degrees, to which a loop adds 2."""
        found = np.bincount(self.tails, self.parallel, len(self)).astype(np.int64)
        if not directed:
            loops = self.heads == self.tails
            found += np.bincount(self.heads[loops], self.parallel[loops], len(self)).astype(np.int64)
        return found

    def transposed(self) -> "Arrays":
        """The arcs by their heads."""
        order = np.argsort(self.heads, kind="stable")
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.bincount(self.heads, minlength=len(self)), out=offsets[1:])
        values = {name: column[order] for name, column in self.attributes.items()}
        return Arrays(self.nodes, offsets, self.tails[order], values)

    def pattern(self) -> Matrix:
        """The adjacency matrix, all of whose values are True."""
        return self.kept("pattern", lambda: self.matrix(True))

    def matrix(self, values: Any) -> Matrix:
        """Values at the arcs, or one for all."""
        if self._ascending is None:
            from scipy.sparse import csr_array

            n = len(self)
            order = csr_array((np.arange(len(self.heads)), self.heads.copy(), self.offsets.copy()), shape=(n, n))
            order.sort_indices()
            self._ascending = order.indices, order.data
        heads, order = self._ascending
        ordered = values if np.ndim(values) == 0 else values[order]
        return Matrix.from_csr(self.offsets, heads, ordered, ncols=len(self), name="A")

    def weights(self, weight: Any, combine: Callable[[Iterable], Any] = sum) -> np.ndarray:
        """The number at each arc (INT64 or FP64): the attribute `weight` where there is one, else 1; None: 1. Parallel
        edges are combined. A function is the name of an attribute like any other object, as in NetworkX's matrices.

        NotImplementedError for values that are no numbers."""
        values, hidden = self.seen(weight, combine)
        if hidden.any():
            raise NotImplementedError("numbers as the weights of edges, not None")
        return values

    def seen(
        self, weight: Any, combine: Callable[[Iterable], Any], calls: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same, and where it is None, which hides an edge. `calls`: a function is called with both ends and what
        NetworkX holds of the edge, as NetworkX's paths do."""
        called, key = calls and callable(weight), (weight, combine)
        if called or key not in self._weights:  # of functions none is kept
            values, hidden = self.values(weight, combine, called)
            whole = values.dtype.kind in "biu" and not (values.dtype == np.uint64 and values.max(initial=0) >> 63)
            if not (whole or values.dtype.kind == "f") or values.ndim != 1:
                raise NotImplementedError(f"numbers of 64 bits as the weights of edges; {weight!r} has other values")
            found = values.astype(np.int64 if whole else np.float64), hidden
            if callable(weight) or self.rows is not None and not self.keeps:
                return found
            self._weights[key] = found
        return self._weights[key]

    def values(
        self, weight: Any, combine: Callable[[Iterable], Any] = sum, called: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The values as they are, of whatever type; 0 where they are None, and where that is. `called`: `weight` is a
        function to call, and there are dictionaries."""
        none = np.zeros(len(self.heads), bool)
        if weight is None:
            return self.parallel if combine is sum else np.ones(len(self.heads), np.int64), none
        if self.rows is None:
            return self.attributes.get(weight, np.ones(len(self.heads), np.int64)), none
        if called:
            pairs = zip(self.nodes, self.rows, strict=True)
            found = [weight(u, v, data) for u, row in pairs for v, data in row.items()]
        elif self.multigraph:
            edges = (keys.values() for row in self.rows for keys in row.values())
            found = [_combined([data.get(weight, 1) for data in parallel], combine) for parallel in edges]
        else:
            found = [data.get(weight, 1) for row in self.rows for data in row.values()]
        return _as_array(found)

    def every(self, weight: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same of all edges, parallel ones one after the other."""
        if not self.multigraph:
            return self.values(weight)
        edges = (data for row in self.rows or () for keys in row.values() for data in keys.values())
        return _as_array([1 if weight is None else data.get(weight, 1) for data in edges])

    def of_rows(self, rows: list) -> "Arrays":
        """The same arcs, with what NetworkX holds of them from now on."""
        new = Arrays(self.nodes, self.offsets, self.heads, rows=rows, keeps=False)
        new._numbers, new._kept, new._ascending = self._numbers, self._kept, self._ascending
        return new

    def dictionaries(self, directed: bool) -> tuple[dict, dict | None]:
        """Of successors, and of predecessors; the two of an edge share its attributes."""
        heads, columns = self.labels(self.heads), [column.tolist() for column in self.attributes.values()]
        rows = zip(*columns, strict=True) if columns else ((),) * len(heads)
        data = (dict(zip(self.attributes, row, strict=True)) for row in rows)
        successors: dict[Any, dict] = {}
        for number, label in enumerate(self.nodes):
            ends = heads[self.offsets[number] : self.offsets[number + 1]]
            row = successors[label] = {head: next(data) for head in ends}
            if not directed:
                for head in ends:
                    if head in successors:
                        row[head] = successors[head][label]
        if not directed:
            return successors, None
        predecessors: dict[Any, dict] = {label: {} for label in self.nodes}
        for label, row in successors.items():
            for head, attributes in row.items():
                predecessors[head][label] = attributes
        return successors, predecessors


def _combined(values: list, combine: Callable[[Iterable], Any]) -> Any:
    """One value for parallel edges, those that None hides left out: None where all are, and of sums where one is."""
    seen = [value for value in values if value is not None]
    if not seen or combine is sum and len(seen) < len(values):
        return None
    try:
        return combine(seen)
    except TypeError:
        raise NotImplementedError("numbers as the weights of parallel edges") from None


def _as_array(found: list) -> tuple[np.ndarray, np.ndarray]:
    """0 where a value is None, and where that is."""
    hidden = np.zeros(len(found), bool)
    try:
        values = np.array(found, None if found else np.int64)
        if values.dtype == object and None in found:
            hidden = np.array([value is None for value in found])
            values = np.array([0 if value is None else value for value in found])
    except ValueError:  # sequences of several lengths
        values = np.array(None)
    return values, hidden


class _Unfolding:
    """A dictionary of NetworkX's which is made when first looked at; set as in the class before, whose views follow."""

    def __init__(self, before: Any):
        self.before = before

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, graph: Any, owner: type | None = None) -> Any:
        if graph is None:
            return self
        if self.name not in graph.__dict__:
            graph._unfold(self.name)
        return graph.__dict__[self.name]

    def __set__(self, graph: Any, value: Any) -> None:
        self.before.__set__(graph, value)


class _Both:
    """What the classes have beside NetworkX's."""

    __networkx_backend__ = "gbgpu"
    _lent = False  # whether the dictionaries are those of a graph of NetworkX's

    def __new__(cls, *arguments: Any, **attributes: Any) -> Any:  # not by dispatch, as NetworkX's does
        return object.__new__(cls)

    @classmethod
    def _empty(cls) -> Any:
        """An object without anything in it yet."""
        new: Any = object.__new__(cls)
        new.graph, new.__networkx_cache__ = {}, {}
        return new

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> Any:
        new = cls._empty()
        new._made = arrays
        return new

    def _unfold(self: Any, name: str) -> None:
        """Make what is looked at; with the edges' dictionaries it is these that count from now on."""
        arrays = self._arrays
        if name == "_node":
            self._node = {label: {} for label in arrays.nodes}
            return
        self._node  # noqa: B018  they belong together
        self.__dict__.pop("_made", None)
        self._adj, predecessors = arrays.dictionaries(self.is_directed())
        if predecessors is not None:
            self._pred = predecessors
        self._cache.pop("gbgpu backwards", None)
        self._cache["gbgpu"] = arrays.of_rows(list(self._adj.values()))

    @property
    def _cache(self: Any) -> dict:
        """What is kept until the graph changes. A view keeps nothing: it changes with its graph, and with its filter,
        and is not told of either."""
        if self.__networkx_cache__ is None or is_view(self):  # None: somebody wants none
            return {}
        return self.__networkx_cache__

    @property
    def _arrays(self: Any) -> Arrays:
        """The arcs from their tails."""
        if "_made" in self.__dict__:
            return self._made
        cache = self._cache
        if "gbgpu" not in cache:
            cache["gbgpu"] = Arrays.read(self._node, self._adj, self.is_multigraph(), self._lent)
        return cache["gbgpu"]

    @property
    def _backwards(self: Any) -> Arrays:
        """The arcs from their heads; those of undirected graphs are the same."""
        if not self.is_directed():
            return self._arrays
        cache = self._cache
        if "gbgpu backwards" not in cache:
            arrays = self._arrays
            if "_made" in self.__dict__:
                cache["gbgpu backwards"] = arrays.transposed()
            else:
                cache["gbgpu backwards"] = Arrays.read(arrays.nodes, self._pred, self.is_multigraph(), self._lent)
        return cache["gbgpu backwards"]

    def _called(self: Any, weight: Any) -> Arrays:
        """The arcs, with the dictionaries that a weight is given where it is a function."""
        if callable(weight):
            self._adj  # noqa: B018
        return self._arrays

    def __len__(self: Any) -> int:
        return len(self._made if "_made" in self.__dict__ else self._node)

    def number_of_nodes(self) -> int:
        return len(self)

    order = number_of_nodes

    def number_of_edges(self: Any, u: Any = None, v: Any = None) -> int:
        if u is not None or "_made" not in self.__dict__:
            return super().number_of_edges(u, v)  # type: ignore[misc]
        arrays = self._made
        return int(arrays.degrees(False).sum()) // 2 if not self.is_directed() else len(arrays.heads)

    def to_directed_class(self: Any) -> type:
        return MultiDiGraph if self.is_multigraph() else DiGraph

    def to_undirected_class(self: Any) -> type:
        return MultiGraph if self.is_multigraph() else Graph

    def __copy__(self: Any) -> Any:
        """Another object on the same dictionaries, with the same cache: a change of one is a change of both."""
        self._adj  # noqa: B018
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __getstate__(self: Any) -> dict:
        self._adj  # noqa: B018  matrices stay with their session
        return {**self.__dict__, "__networkx_cache__": {}, "_lent": False}


class Graph(_Both, nx.Graph):
    """An undirected graph of the backend."""

    _adj = _Unfolding(nx.Graph._adj)
    _node = _Unfolding(nx.Graph._node)


class DiGraph(_Both, nx.DiGraph):
    """A directed graph of the backend."""

    _adj = _Unfolding(nx.DiGraph._adj)
    _succ = _Unfolding(nx.DiGraph._succ)
    _pred = _Unfolding(nx.DiGraph._pred)
    _node = _Unfolding(nx.DiGraph._node)


class MultiGraph(_Both, nx.MultiGraph):
    """An undirected multigraph of the backend: dictionaries, always."""


class MultiDiGraph(_Both, nx.MultiDiGraph):
    """A directed multigraph of the backend: dictionaries, always."""


CLASSES = {(False, False): Graph, (True, False): DiGraph, (False, True): MultiGraph, (True, True): MultiDiGraph}
PLAIN = {Graph: nx.Graph, DiGraph: nx.DiGraph, MultiGraph: nx.MultiGraph, MultiDiGraph: nx.MultiDiGraph}


def convertible(graph: Any) -> bool:
    """Whether the graph's dictionaries say all of it: a class that answers by others does not count."""
    return isinstance(graph, nx.Graph) and type(graph).__getitem__ is nx.Graph.__getitem__


def is_view(graph: Any) -> bool:
    """Whether the graph shows another one: `subgraph`, `reverse(copy=False)`, `to_directed(as_view=True)` and so on."""
    return getattr(graph, "_graph", None) is not None


def as_it_is(graph: Any) -> Any:
    """The graph, or for a view of one of the backend a graph on its dictionaries for one call: its arrays are read
    once."""
    return from_networkx(graph) if isinstance(graph, _Both) and is_view(graph) else graph


def from_networkx(graph: Any) -> Any:
    """A graph of the backend on the dictionaries of one of NetworkX's. Arrays are shared with conversions of the same
    graph that NetworkX keeps, if it is to use them."""
    if not convertible(graph):
        raise NotImplementedError(f"a graph of NetworkX's, which a {type(graph).__name__} is not")
    new = CLASSES[graph.is_directed(), graph.is_multigraph()]._empty()
    new._lent = True
    cache = getattr(graph, "__networkx_cache__", None) if nx.config.cache_converted_graphs else None
    kept = (cache or {}).get("backends", {}).get("gbgpu", {})
    earlier = next((found for found in kept.values() if isinstance(found, _Both)), None)
    if earlier is not None:
        new.__networkx_cache__ = earlier.__networkx_cache__
    if is_view(graph):
        graph.__networkx_cache__ = None  # of a view, which changes with its graph, NetworkX is to keep no conversion
    _share(graph, new)
    return new


def to_networkx(graph: Any) -> Any:
    """The same graph of NetworkX's class, on the same dictionaries. A change of one is a change of both, so they
    share the cache that a change clears."""
    new = PLAIN[type(graph)]()
    _share(graph, new)
    new.__networkx_cache__ = graph.__networkx_cache__
    return new


def _share(graph: Any, new: Any) -> None:
    new.graph, new._node, new._adj = graph.graph, graph._node, graph._adj
    if graph.is_directed():
        new._pred = graph._pred
