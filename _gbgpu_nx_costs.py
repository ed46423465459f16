"""Whether NetworkX's backend `gbgpu` takes a call by itself: the predicted seconds of both decide. NetworkX asks before
anything of gbgpu is imported, so nothing of gbgpu is imported here."""

import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from numbers import Integral
from typing import Any, NamedTuple

import networkx

from _gbgpu_nx import FUNCTIONS

# Seconds on CPU devices: bench/results/networkx-costs.md, 2026-11-28
CONVERSION = 2.3e-7  # of a graph, for each node and arc
LOADING = 4.0e-3  # of a kernel that lies in the cache on disk, with planning what uses it
COMPILING = 0.1, 0.2  # of a kernel that does not, and of importing the compiler
IMPORTS = {"numpy": 0.18, "scipy.sparse": 0.23, "gbgpu": 0.16, "algos.nx": 0.2}
SESSION = 0.01  # of the first call that needs one

ROWS = 500  # at most, at each end of a graph, of which the degrees are looked at
ARCS = 1000  # that a probe looks at
STARTS = 4  # of a probe where the call names none
SHARE = 20  # a look at a graph takes no more than this part of it

STARTED = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"  # how many processes mpiexec has started

INVESTED = 0.1  # of the seconds that calls left to NetworkX were predicted to take, for what first calls take besides

ran: set[str] = set()
"""Programs of which all kernels are loaded in this process."""


class _Left:
    """What calls that were left to NetworkX were predicted to take, less what was invested."""

    seconds = 0.0


_left = _Left()


class Given(NamedTuple):
    """What a call is about."""

    nodes: int
    size: float  # nodes and arcs
    arguments: dict[str, Any]


Times = tuple[float, float]
"""How many times NetworkX goes through a graph, and how many times we do, or as good as that."""


def _once(given: Given) -> Times:
    return 1, 1


def _from_each(given: Given) -> Times:
    """Searches from all nodes, or from the one that `u` or `v` names."""
    one = any(given.arguments.get(name) is not None for name in ("u", "v"))
    return (1 if one else given.nodes,) * 2


def _from_some(given: Given) -> Times:
    """Searches from `k` nodes, or from all."""
    k = given.arguments.get("k")
    return (min(k, given.nodes) if isinstance(k, Integral) else given.nodes,) * 2


def _of_some(given: Given) -> Times:
    """Values of all nodes, or of `nodes`, where we compute all."""
    return float(given.arguments.get("nodes") is None), 1


def _pairs(given: Given) -> Times:
    """Pairs of nodes beside the graph's nodes and arcs. An iterator does not tell how many it has: none."""
    pairs = given.arguments.get("ebunch")
    count = given.nodes**2 / 2 if pairs is None else len(pairs) if hasattr(pairs, "__len__") else 0
    return (count / max(given.size, 1),) * 2


def _between(given: Given) -> Times:
    """A search from both ends looks at as many arcs as the root of all, as a rule. We go through all."""
    return max(given.size, 1) ** -0.5, 1


def _paths(given: Given) -> Times:
    ends = sum(given.arguments.get(name) is not None for name in ("source", "target"))
    return (_from_each, _once, _between)[ends](given)


class Cost(NamedTuple):
    """What functions of one kind cost.

    `networkx`, `arc`: NetworkX's and our nanoseconds for each node and arc, and each of `times`. `call`: our
    milliseconds in any case. `level`: our microseconds for each level of a search. `kernels`: how many we use. `reach`:
    NetworkX looks no further than a search comes.
    """

    networkx: float
    call: float
    arc: float
    kernels: int
    level: float = 0.0
    times: Callable[[Given], Times] = _once
    reach: bool = False


# NetworkX's: the least of random, scale-free, path and grid graphs and DAGs of 30,000 nodes, of fewer where it takes
# seconds. Ours: what random graphs of 30,000 nodes take, and those of 300; levels, grids and DAGs of 30,000. On CPU
# devices: bench/results/networkx-costs.md, 2026-11-28.
_ROWS: tuple[tuple[Cost, str], ...] = (
    (Cost(300, 15, 220, 24, 1770, reach=True), """bfs_edges bfs_layers bfs_predecessors bfs_successors bfs_tree
        generic_bfs_edges predecessor single_source_shortest_path single_target_shortest_path"""),
    (Cost(160, 4, 75, 9, 5, reach=True), """single_source_shortest_path_length single_target_shortest_path_length
        descendants_at_distance"""),
    (Cost(230, 4, 55, 9, 5, reach=True), "ancestors descendants"),
    (Cost(86, 60, 40, 15, 6, times=_from_each), "all_pairs_shortest_path_length"),
    (Cost(86, 60, 4000, 20, times=_from_each), "all_pairs_shortest_path"),
    (Cost(300, 4, 60, 9, 5, times=_between), "has_path bidirectional_shortest_path"),
    (Cost(85, 15, 220, 24, 1770, times=_paths, reach=True), "shortest_path shortest_path_length"),
    (Cost(900, 20, 1000, 47, 300, reach=True), """single_source_dijkstra single_source_dijkstra_path
        multi_source_dijkstra multi_source_dijkstra_path single_source_bellman_ford single_source_bellman_ford_path"""),
    (Cost(560, 15, 480, 31, 30, reach=True), "multi_source_dijkstra_path_length single_source_dijkstra_path_length"),
    (Cost(1250, 15, 480, 33, 30, reach=True), "single_source_bellman_ford_path_length"),
    (Cost(500, 20, 700, 43, 30, times=_between), """dijkstra_path dijkstra_path_length bidirectional_dijkstra
        bellman_ford_path bellman_ford_path_length"""),
    (Cost(270, 100, 150, 40, times=_from_each), """all_pairs_bellman_ford_path_length all_pairs_dijkstra_path_length
        floyd_warshall"""),
    (Cost(350, 100, 500, 52, times=_from_each), """all_pairs_bellman_ford_path all_pairs_dijkstra
        all_pairs_dijkstra_path johnson"""),
    (Cost(50, 100, 150, 40, times=_from_each), "floyd_warshall_numpy"),
    (Cost(86, 50, 15, 35, times=_from_each), """average_shortest_path_length closeness_centrality global_efficiency
        harmonic_centrality wiener_index"""),
    (Cost(86, 50, 20, 15, 6, times=_from_each), "diameter eccentricity periphery radius"),
    (Cost(600, 10, 110, 25, 300, times=_from_some), "betweenness_centrality"),
    (Cost(1000, 18, 320, 31, 300, times=_from_some), "edge_betweenness_centrality"),
    (Cost(1350, 12, 400, 14), "pagerank"),
    (Cost(2000, 20, 10_000, 6), "hits"),
    (Cost(13_000, 18, 400, 10), "katz_centrality"),
    (Cost(10_000, 22, 230, 12), "eigenvector_centrality"),
    (Cost(68, 1, 100, 0), "degree_centrality in_degree_centrality out_degree_centrality"),
    (Cost(130, 7, 60, 27, 5), "connected_components number_connected_components"),
    (Cost(130, 7, 60, 27, 5, reach=True), "is_connected node_connected_component"),
    (Cost(270, 8, 230, 21, 5), "weakly_connected_components number_weakly_connected_components"),
    (Cost(270, 8, 230, 21, 5, reach=True), "is_weakly_connected"),
    (Cost(700, 21, 490, 44, 2300), """strongly_connected_components kosaraju_strongly_connected_components
        number_strongly_connected_components attracting_components number_attracting_components"""),
    (Cost(700, 21, 490, 44, 2300, reach=True), "is_strongly_connected"),
    (Cost(1650, 14, 60, 27, 5, reach=True), "is_forest"),
    (Cost(1750, 24, 2500, 13), "maximum_spanning_edges minimum_spanning_edges"),
    (Cost(3700, 24, 2500, 13), "maximum_spanning_tree minimum_spanning_tree"),
    (Cost(1050, 8, 130, 22, times=_of_some), "triangles"),
    (Cost(3100, 8, 150, 21, times=_of_some), "average_clustering clustering transitivity"),
    (Cost(890, 50, 140, 23), "core_number k_core k_shell k_crust"),
    (Cost(560, 30, 300, 37), "greedy_color"),
    (Cost(7300, 250, 1500, 61), "label_propagation_communities"),
    (Cost(3700, 16, 430, 29), "k_truss"),
    (Cost(2600, 8, 7500, 13, times=_pairs), """adamic_adar_index jaccard_coefficient preferential_attachment
        resource_allocation_index"""),
    (Cost(5200, 2, 60, 3, times=_of_some), "overall_reciprocity reciprocity"),
    (Cost(1150, 1, 330, 0), "adjacency_matrix to_scipy_sparse_array"),
    # NetworkX may come to an end after a look at few nodes, or has no more to do than we for a conversion.
    (Cost(1, 14, 60, 30), """center complement is_arborescence is_attracting_component is_branching
        is_directed_acyclic_graph is_regular is_tree isolates maximal_independent_set negative_edge_cycle
        number_of_isolates number_of_selfloops reverse"""),
)
COSTS = {name: cost for cost, names in _ROWS for name in names.split()}
BACKWARDS = {"ancestors", "single_target_shortest_path", "single_target_shortest_path_length"}


def should_run(name: str, arguments: tuple, keywords: dict[str, Any]) -> bool | str:
    """True, or both predictions. `networkx.config.backends.gbgpu.threshold`: how many times as long as gbgpu NetworkX
    must be predicted to take; 0: all calls run.

    A call runs if gbgpu is quicker with all that first calls take besides: imports, loading and compiling kernels. It
    also runs if gbgpu is quicker without that, once that is a tenth of what NetworkX has taken: no script takes more
    than a tenth longer."""
    threshold = networkx.config.backends.gbgpu.threshold
    given = {**dict(zip(_parameters(name), arguments, strict=False)), **keywords}
    graph = given.get("G")
    if not threshold or not isinstance(graph, networkx.Graph):
        return True
    theirs, ours, once = predicted(name, graph, given)
    each, all_ = (sum(seconds for seconds, _ in parts) for parts in (ours, ours + once))
    if theirs > threshold * all_:
        return True
    if theirs > threshold * each and all_ - each < INVESTED * _left.seconds:
        _left.seconds -= (all_ - each) / INVESTED
        return True
    _left.seconds += theirs
    reason = max(ours + once)[1]
    return f"NetworkX is predicted to take {_shown(theirs)}, gbgpu {_shown(all_)}" + (reason and f": {reason}")


Parts = list[tuple[float, str]]
"""Seconds, and what they are spent on."""


def predicted(name: str, graph: Any, arguments: dict[str, Any]) -> tuple[float, Parts, Parts]:
    """(NetworkX's seconds; ours; ours that the first calls of a process take besides)."""
    cost, given = COSTS[name], Given(*counted(graph), arguments)
    times, our_times = cost.times(given)
    theirs = 1e-9 * cost.networkx * given.size * times
    ours = [(1e-3 * cost.call + 1e-9 * cost.arc * given.size * our_times, "")]
    if not converted(graph):
        ours.append((CONVERSION * given.size, "the graph is not converted yet"))
    if theirs <= sum(seconds for seconds, _ in ours):
        return theirs, ours, []  # what else it takes does not matter
    if cost.reach or cost.level:
        levels, looked = probed(name, graph, given)
        if looked is not None and cost.reach:
            theirs *= min(looked / given.size, 1)
        ours.append((1e-6 * cost.level * levels * our_times, f"a search has about {levels:.0f} levels"))
    return theirs, ours, _beginning(name, graph, cost)


def _beginning(name: str, graph: Any, cost: Cost) -> Parts:
    """What only the first calls of a process take. Nothing, where several processes share a session: each of them knows
    what it has loaded, and all of them must decide the same."""
    if _several():
        return []
    missing = [seconds for module, seconds in IMPORTS.items() if module not in sys.modules]
    found = [(sum(missing) + SESSION * (_session() is None), "gbgpu has not begun yet")]
    which = program(name, graph)
    if which in ran:
        return found
    several = f"its {cost.kernels} kernels are not"
    if cost.kernels and not _compiled(which):
        each, start = COMPILING
        return [*found, (each * cost.kernels + start, f"{several} compiled yet")]
    return [*found, (LOADING * cost.kernels, f"{several} loaded yet")]


def _session() -> Any:
    """The session in force, without a beginning."""
    settings = sys.modules.get("gbgpu.settings")
    return settings and settings._session


def _several() -> bool:
    """Whether this process is one of several of a session, or will be (`gbgpu.distribute.world.wanted`)."""
    session = _session()
    if session is not None:
        return session.ranks is not None
    asked = os.environ.get("GBGPU_RANKS", "auto")
    return asked != "0" if asked != "auto" else any(os.environ.get(name, "1") not in ("", "1") for name in STARTED)


# -- kernels


@cache
def _parameters(name: str) -> tuple[str, ...]:
    return tuple(inspect.signature(getattr(networkx, name, None) or getattr(networkx.community, name)).parameters)


def program(name: str, graph: Any) -> str:
    """By what name it is noted that all kernels of a call are compiled."""
    return f"networkx.{name}.{'directed' if graph.is_directed() else 'undirected'}."


def noted(which: str) -> str:
    """The whole name of a program, with gbgpu's version."""
    return which + sys.modules["gbgpu"].__version__


def _compiled(which: str) -> bool:
    """Whether the kernels lie in the cache on disk. Before there is a session the name of a note is enough, of whatever
    version, compiler and device."""
    session = _session()
    if session is not None:
        return session.compiled(noted(which))
    return any(name.startswith(which) for name in _notes())


@cache
def _notes() -> list[str]:
    """Names of the notes of the cache that this process begins with (`gbgpu.settings` says where it lies)."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(os.environ.get("GBGPU_CACHE_DIR") or os.path.join(home, "gbgpu"), "cpu")
    try:
        return [name for name in os.listdir(folder) if name.startswith("networkx.")]
    except OSError:
        return []


# -- the graph


def converted(graph: Any) -> bool:
    """Whether NetworkX keeps a conversion."""
    return bool((getattr(graph, "__networkx_cache__", None) or {}).get("backends", {}).get("gbgpu"))


def counted(graph: Any) -> tuple[int, float]:
    """(nodes; nodes and arcs, an edge counting for both of its directions), by the degrees of the first and of the last
    nodes: those of fewer arcs count, as hubs may lie at one end."""
    nodes, rows = len(graph._adj), graph._adj.values()
    some = min(max(nodes // SHARE, 10), ROWS)
    ends = [rows, reversed(rows)] if nodes > some and type(graph._adj) is dict else [rows]
    arcs = min(sum(map(len, islice(end, some))) for end in ends)
    return nodes, nodes + arcs * max(nodes / some, 1)


def probed(name: str, graph: Any, given: Given) -> tuple[float, float | None]:
    """(how many levels a search has; the nodes and arcs that it comes to, None if these are too many to tell).

    The search stops after some arcs. How fast it grew until then predicts its levels: as the distance to some power.
    The power is 1 on a path, 2 on a grid, and large where most nodes are few arcs apart."""
    adjacency = graph._pred if name in BACKWARDS and graph.is_directed() else graph._adj
    limits = [given.arguments.get(key) for key in ("depth_limit", "cutoff", "distance")]
    limit = next((value for value in limits if isinstance(value, int | float)), math.inf)
    sources = [given.arguments.get(key) for key in ("source", "n", "target")]
    starts = [node for node in sources if node is not None and node in graph][:1]
    if not starts and COSTS[name].reach:
        starts = list(islice(adjacency, 1))
    elif not starts:  # any may be in a small part
        starts = list(islice(adjacency, 0, None, max(given.nodes // STARTS, 1)))
    left, levels, reached = min(ARCS, given.size / SHARE), 0.0, None
    for start in starts:
        sizes, looked, ended = _searched(adjacency, start, left, limit)
        left -= looked
        levels = max(levels, len(sizes) if ended else _levels(sizes, given.nodes))
        reached = sizes[-1] + looked if ended or limit < levels else None  # within a limit: no less
        if not ended:
            break
    return min(levels, limit + 1), reached


def _searched(adjacency: Any, start: Any, most: float, limit: float) -> tuple[list[int], int, bool]:
    """(the nodes found, all in all, level by level; arcs looked at, at most `most`; whether it came to its end)."""
    seen, frontier = {start}, [start]
    sizes, looked = [1], 0
    while frontier and len(sizes) <= limit:
        reached = []
        for node in frontier:
            row = adjacency[node]
            if looked + len(row) > most:
                return [*sizes, len(seen)], looked, False
            looked += len(row)
            for head in row:
                if head not in seen:
                    seen.add(head)
                    reached.append(head)
        frontier = reached
        sizes.append(len(seen))
    return sizes, looked, True


def _levels(sizes: list[int], nodes: int) -> float:
    """How many levels a search has that found so many nodes, all in all, level by level, before it was stopped."""
    last = len(sizes) - 1
    half = sizes[last // 2]
    if last < 2 or sizes[last] <= half:
        return last + 1
    power = math.log(sizes[last] / half) / math.log(last / (last // 2))
    return last * (nodes / sizes[last]) ** (1 / power)


def _shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


# -- what the entry point loads


def _loaded() -> Any:
    return importlib.import_module("algos.nx").backend


def _called(name: str, /, *arguments: Any, **keywords: Any) -> Any:
    """The first call: nobody could tell before whether it can run."""
    can = name not in FUNCTIONS or _loaded().can_run(name, arguments, keywords)
    if can is not True:
        raise NotImplementedError(can)
    return getattr(_loaded(), name)(*arguments, **keywords)


class Backend:
    """The backend of `algos.nx`, which is imported when the first call is to run: that takes longer than NetworkX does
    on small graphs."""

    def __getattr__(self, name: str) -> Any:
        if "algos.nx" in sys.modules:
            return getattr(_loaded(), name)
        if name in FUNCTIONS or name in ("convert_from_nx", "convert_to_nx", "on_start_tests"):
            return partial(_called, name)
        raise AttributeError(name)

    @staticmethod
    def can_run(name: str, arguments: tuple, keywords: dict[str, Any]) -> bool | str:
        """True, or why not; True for all calls before anything is imported."""
        return "algos.nx" not in sys.modules or _loaded().can_run(name, arguments, keywords)

    @staticmethod
    def should_run(name: str, arguments: tuple, keywords: dict[str, Any]) -> bool | str:
        """True, or why NetworkX is to be left with it."""
        should = should_run(name, arguments, keywords)
        return should if should is not True else _loaded().can_run(name, arguments, keywords)


backend = Backend()
