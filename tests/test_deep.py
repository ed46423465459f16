"""Deep graphs: chains, cycles, grids and trees, whose searches take a round for each of many levels."""

import networkx as nx
import numpy as np
import pytest

import algos
import gbgpu as gb
from algos import _in_order
from algos.strong import heights
from gbgpu.trace import counters


def one_way(G):
    """Arcs from lesser to greater nodes."""
    G = nx.convert_node_labels_to_integers(G)
    return nx.DiGraph([(min(edge), max(edge)) for edge in G.edges])


def chain_of_cycles(k):
    return nx.DiGraph([arc for i in range(0, 2 * k, 2) for arc in ((i, i + 1), (i + 1, i), (i + 1, i + 2))])


def shuffled(G, seed=3):
    order = np.random.default_rng(seed).permutation(len(G)).tolist()
    return nx.relabel_nodes(G, dict(zip(G, order, strict=True)))


GRAPHS = {
    "empty": nx.DiGraph,
    "one vertex": lambda: nx.empty_graph(1, nx.DiGraph),
    "a loop": lambda: nx.DiGraph([(0, 0)]),
    "chain": lambda: nx.path_graph(11, nx.DiGraph),
    "chain, shuffled": lambda: shuffled(nx.path_graph(11, nx.DiGraph)),
    "chain, both ways": lambda: nx.path_graph(11).to_directed(),
    "cycle": lambda: nx.cycle_graph(11, nx.DiGraph),
    "cycle with tails": lambda: nx.DiGraph([*nx.cycle_graph(4, nx.DiGraph).edges, (8, 7), (7, 0), (2, 9), (9, 5)]),
    "chain of cycles": lambda: chain_of_cycles(5),
    "grid": lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 5)).to_directed(),
    "grid, one way": lambda: one_way(nx.grid_2d_graph(3, 5)),
    "tree": lambda: nx.bfs_tree(nx.random_labeled_tree(25, seed=2), 0),
    "tree, both ways": lambda: nx.random_labeled_tree(25, seed=2).to_directed(),
    "acyclic": lambda: one_way(nx.gnm_random_graph(20, 45, 1)),
    "components and loops": lambda: nx.disjoint_union_all(
        [nx.path_graph(7, nx.DiGraph), chain_of_cycles(2), nx.DiGraph([(0, 0), (0, 1)]), nx.empty_graph(2, nx.DiGraph)]
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")
each_graph = pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)


@pytest.mark.few(6)
@each_graph
def test_components_and_heights(devices, make):
    G = make()
    theirs = {frozenset(some) for some in nx.strongly_connected_components(G)}
    assert {frozenset(some) for some in nx.strongly_connected_components(G, backend="gbgpu")} == theirs
    assert nx.is_directed_acyclic_graph(G, backend="gbgpu") == nx.is_directed_acyclic_graph(G)
    if not len(G):
        return
    order = nx.condensation(G)
    number = [order.graph["mapping"][node] for node in G]
    A = gb.io.from_networkx(G)
    right = {}
    for node in reversed(list(nx.topological_sort(order))):
        right[node] = max((right[after] + 1 for after in order[node]), default=0)
    assert heights(A, np.array(number)).tolist() == [right[node] for node in sorted(order)]


@pytest.mark.few(8)
@each_graph
def test_searches_in_the_order_of_the_queue(devices, make):
    G = make()
    for source in list(G)[:1]:
        ours = {"backend": "gbgpu"}
        assert list(nx.bfs_edges(G, source, **ours)) == list(nx.bfs_edges(G, source))
        assert list(nx.bfs_edges(G, source, depth_limit=2, **ours)) == list(nx.bfs_edges(G, source, depth_limit=2))
        mine, theirs = nx.bfs_tree(G, source, **ours), nx.bfs_tree(G, source)
        assert list(mine) == list(theirs) and list(mine.edges) == list(theirs.edges)
        assert list(nx.bfs_layers(G, [source], **ours)) == list(nx.bfs_layers(G, [source]))
        assert nx.predecessor(G, source, **ours) == nx.predecessor(G, source)


@each_graph
def test_colors(devices, make):
    G = nx.Graph(make())
    assert nx.greedy_color(G, backend="gbgpu") == nx.greedy_color(G)


@pytest.mark.parametrize("largest", [2.0**62, 40.0])
def test_keys_are_replaced_by_ranks_before_they_are_too_large(first, monkeypatch, largest):
    """In a binary tree a key grows by a bit in each level."""
    monkeypatch.setattr(_in_order, "LARGEST", largest)
    rounds, begin = [], _in_order.loop
    monkeypatch.setattr(_in_order, "loop", lambda *given: rounds.append(given) or begin(*given))
    G = nx.balanced_tree(2, 6)
    assert list(nx.bfs_edges(G, 0, backend="gbgpu")) == list(nx.bfs_edges(G, 0))
    assert (len(rounds) > 1) == (largest < 2.0**62)


DEEP = {
    "strong components": lambda n: algos.strongly_connected_components(chain(n)),
    "strong components, a cycle": lambda n: algos.strongly_connected_components(chain(n, True)),
    "in order": lambda n: _in_order.search_in_order(chain(n), np.arange(n - 1), np.arange(1, n), np.array([0])),
    "colors": lambda n: algos.greedy_color(both(chain(n)), "jones-plassmann", order=descending(n)),
    "labels": lambda n: algos.label_propagation(both(chain(n))),
}


def chain(n, closed=False):
    tails = np.arange(n if closed else n - 1)
    return gb.Matrix.from_coo(tails, (tails + 1) % n, True, nrows=n, ncols=n)


def both(A):
    return gb.binary.first(A | A.T).new()


def descending(n):
    return gb.Vector.from_dense(-np.arange(n))


@pytest.mark.parametrize("name", DEEP)
def test_rounds_need_no_statement(monkeypatch, name):
    """As many statements in Python for a chain of twice the length."""
    monkeypatch.setattr(gb.settings, "interpret", False)
    gb.init("cpu:1")
    run, found = DEEP[name], []
    for n in (1000, 2000):
        run(n)
        before = counters.statements
        run(n)
        found.append(counters.statements - before)
    assert abs(found[1] - found[0]) < 100 and max(found) < 900, found


@pytest.mark.parametrize("name", DEEP)
def test_each_arc_is_followed_few_times(first, name):
    """Entries of the matrix that products look at: twice as many for a chain of twice the length."""
    found = []
    for n in (40, 80):
        with gb.trace() as records:
            DEEP[name](n)
        found.append(sum(record.edges for record in records))
    assert 0 < found[1] < 3 * found[0], found
