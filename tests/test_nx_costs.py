"""Which calls NetworkX's backend takes by itself: predictions, and what they are told. No test measures a time."""

from __future__ import annotations

import inspect
import logging
import math
import subprocess
import sys

import networkx as nx
import pytest
from nx_backend import environment, register

import _gbgpu_nx_costs as costs
import gbgpu as gb
from _gbgpu_nx import FUNCTIONS, GROUPS
from _gbgpu_nx_costs import COSTS, Cost, program, should_run
from algos import nx as backend
from algos._nx_offers import Offer, Watch
from gbgpu.kernels.interpreted import interpreted
from gbgpu.trace import counters

ALL = sorted(COSTS)


@pytest.fixture(autouse=True)
def registered(monkeypatch, tmp_path):
    """A process that has begun, with an empty cache."""
    register(monkeypatch)
    costs.ran.clear()
    monkeypatch.setattr(costs._left, "seconds", 0.0)
    monkeypatch.setattr(costs, "IMPORTS", {})
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path / "cache"))
    costs._notes.cache_clear()
    gb.init("cpu:2")


def set_cost(monkeypatch, name, **fields):
    plain = Cost(networkx=10_000, call=1, arc=10, kernels=0)
    monkeypatch.setitem(COSTS, name, plain._replace(**fields))


def test_each_function_of_a_graph_has_a_cost():
    generators = " ".join(names for group, names in GROUPS.items() if "generators" in group).split()
    assert COSTS.keys() == FUNCTIONS.keys() - {*generators, "from_scipy_sparse_array"}


def test_small_graphs_are_left_to_networkx(monkeypatch):
    set_cost(monkeypatch, "pagerank")
    assert should_run("pagerank", (nx.complete_graph(60),), {}) is True
    assert should_run("pagerank", (), {"G": nx.complete_graph(60)}) is True
    assert should_run("pagerank", (nx.path_graph(5),), {}).startswith(
        "NetworkX is predicted to take 0.13 ms, gbgpu 1 ms")
    monkeypatch.setattr(nx.config.backends.gbgpu, "threshold", 1000.0)
    assert should_run("pagerank", (nx.complete_graph(60),), {}) is not True
    monkeypatch.setattr(nx.config.backends.gbgpu, "threshold", 0)
    assert should_run("pagerank", (nx.path_graph(2),), {}) is True


def test_a_conversion_counts_unless_networkx_keeps_one(monkeypatch):
    G = nx.complete_graph(60)
    set_cost(monkeypatch, "degree_centrality", networkx=1.5e9 * costs.CONVERSION, call=0, arc=0.9e9 * costs.CONVERSION)
    assert should_run("degree_centrality", (G,), {}).endswith("the graph is not converted yet")
    nx.is_regular(G, backend="gbgpu")
    assert should_run("degree_centrality", (G,), {}) is True
    part = G.subgraph(range(50))
    nx.is_regular(part, backend="gbgpu")
    assert should_run("degree_centrality", (part,), {}) is not True  # it is read in each call


def test_kernels_count_until_they_are_compiled_and_loaded(monkeypatch):
    G = nx.complete_graph(60)
    set_cost(monkeypatch, "pagerank", kernels=9)
    assert should_run("pagerank", (G,), {}).endswith("its 9 kernels are not compiled yet")
    gb.settings.session().note_compiled(costs.noted(program("pagerank", G)))
    monkeypatch.setattr(costs, "LOADING", 1.0)
    assert should_run("pagerank", (G,), {}).endswith("its 9 kernels are not loaded yet")
    assert should_run("pagerank", (G.to_directed(),), {}).endswith("not compiled yet")
    costs.ran.add(program("pagerank", G))
    assert should_run("pagerank", (G,), {}) is True


def test_first_calls_take_a_tenth_of_what_networkx_took(monkeypatch):
    G = nx.complete_graph(60)  # 3,600 nodes and arcs
    set_cost(monkeypatch, "pagerank", networkx=1e9 / 3600, kernels=9)
    monkeypatch.setattr(costs, "COMPILING", (0.25, 0.0))
    found = [should_run("pagerank", (G,), {}) is True for _ in range(30)]
    assert found.index(True) == 23 and not any(found[24:])  # 2.25 seconds, of 23; then again from the beginning
    H = nx.path_graph(4)
    costs.ran.add(program("pagerank", H))
    costs._left.seconds = 1e9
    assert should_run("pagerank", (H,), {}) is True  # ten nodes and arcs: 2.8 ms, of which a call takes 1
    set_cost(monkeypatch, "pagerank", networkx=1)
    assert should_run("pagerank", (H,), {}) is not True


def test_several_processes_of_a_session_decide_the_same(monkeypatch):
    """Each of them knows what it has loaded, and what was left to NetworkX before."""
    G = nx.complete_graph(60)
    set_cost(monkeypatch, "pagerank", kernels=9)
    assert should_run("pagerank", (G,), {}) is not True
    monkeypatch.setattr(gb.settings.session(), "ranks", object())
    assert should_run("pagerank", (G,), {}) is True
    monkeypatch.setattr(gb.settings, "_session", None)
    for variables, several in (({"PMI_SIZE": "2"}, True), ({"PMI_SIZE": "1"}, False), ({"GBGPU_RANKS": "1"}, True),
                               ({"PMI_SIZE": "2", "GBGPU_RANKS": "0"}, False)):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            assert costs._several() is several
    from gbgpu.distribute.world import _STARTED

    assert costs.STARTED == _STARTED


def test_compiling_ahead_calls_each_function_to_its_end(monkeypatch):
    called = []

    def some(G, source, k=None):
        yield called.append((G.is_directed(), source, k))

    offers = {"some": Offer("some", some, (), True, lambda given: None, inspect.signature(some))}
    monkeypatch.setattr(backend, "OFFERS", offers)
    backend.rehearse()
    assert called == [(False, 0, 3)] * 3 + [(True, 0, 3)] * 3


def test_notes_are_of_one_compiler_and_one_kind_of_devices(monkeypatch):
    session = gb.settings.session()
    session.note_compiled("networkx.some.0")
    assert session.compiled("networkx.some.0") and not session.compiled("networkx.some")
    monkeypatch.setattr("gbgpu.kernels.programs.compiler_and_processor", lambda: "another")
    assert not session.compiled("networkx.some.0")


def test_a_process_that_has_not_begun_looks_for_notes_by_name(monkeypatch):
    G = nx.complete_graph(60)
    gb.settings.session().note_compiled(costs.noted(program("pagerank", G)))
    costs._notes.cache_clear()
    monkeypatch.setattr(gb.settings, "_session", None)
    assert costs._compiled(program("pagerank", G)) and not costs._compiled(program("hits", G))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("interpret", [False, True])
def test_calls_note_that_their_kernels_are_compiled(monkeypatch, interpret, lazy):
    monkeypatch.setattr(gb.settings, "interpret", interpret)
    which = "networkx.some."

    def call():
        counters.statements += 1
        return iter([1]) if lazy else [1]

    found = Watch(which).over(call)
    assert not lazy or which not in costs.ran
    assert list(found) == [1]
    noted = gb.settings.session().compiled(costs.noted(which))
    assert (which in costs.ran) is noted is not interpret


def test_calls_without_a_statement_note_nothing(monkeypatch):
    monkeypatch.setattr(gb.settings, "interpret", False)
    assert Watch("networkx.some.").over(lambda: 1) == 1 and not costs.ran


def test_kernels_that_run_as_plain_python_are_counted():
    kernel, before = interpreted("apply", "def kernel():\n    pass\n"), counters.interpreted
    kernel()
    assert counters.interpreted == before + 1


DEEP = {"path": nx.path_graph(2000), "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(45, 45)),
        "DAG": nx.DiGraph((u, v) for u in range(2000) for v in range(u + 1, min(u + 4, 2000)))}
SHALLOW = {"random": nx.gnm_random_graph(2000, 8000, seed=1), "star": nx.star_graph(2000),
           "complete": nx.complete_graph(100), "random arcs": nx.gnm_random_graph(2000, 16000, seed=1, directed=True)}


def test_levels_of_deep_graphs_count(monkeypatch):
    set_cost(monkeypatch, "descendants", level=10_000, reach=True)
    for kind, G in DEEP.items():
        assert "levels" in should_run("descendants", (G, 0), {}), kind
    for kind, G in SHALLOW.items():
        assert should_run("descendants", (G, 0), {}) is True, kind


@pytest.mark.parametrize("kind", [*DEEP, *SHALLOW])
def test_levels_are_about_as_many_as_there_are(kind):
    G = {**DEEP, **SHALLOW}[kind]
    given = costs.Given(*costs.counted(G), {"source": 0})
    found = costs.probed("descendants", G, given)[0]
    there = 1 + max(nx.single_source_shortest_path_length(G, 0).values())
    assert there / 3 <= found <= 3 * there


def test_a_search_that_ends_early_is_left_to_networkx(monkeypatch):
    set_cost(monkeypatch, "descendants", reach=True)
    G = nx.gnm_random_graph(2000, 8000, seed=1)
    G.add_edge("a", "b")
    assert should_run("descendants", (G, 0), {}) is True
    assert should_run("descendants", (G, "a"), {}) is not True
    set_cost(monkeypatch, "bfs_edges", networkx=1000, reach=True)
    assert should_run("bfs_edges", (G, 0), {}) is True
    for limit in (1, 4):  # the second one is further than a probe comes
        assert should_run("bfs_edges", (G, 0), {"depth_limit": limit}) is not True
    D = nx.path_graph(2000, nx.DiGraph)
    set_cost(monkeypatch, "ancestors", reach=True)
    assert should_run("ancestors", (D, 1999), {}) is True and should_run("ancestors", (D, 0), {}) is not True


class Rows(dict):
    """Counts the rows that are looked at, and what lies in them."""

    rows = arcs = 0

    def __getitem__(self, node):
        self.rows, self.arcs = self.rows + 1, self.arcs + len(super().__getitem__(node))
        return super().__getitem__(node)


@pytest.mark.parametrize("name", ["descendants", "strongly_connected_components"])
@pytest.mark.parametrize("kind", [*DEEP, *SHALLOW])
def test_a_probe_looks_at_a_small_part(monkeypatch, name, kind):
    set_cost(monkeypatch, name, networkx=1e9, level=1e-3)
    G = {**DEEP, **SHALLOW}[kind].to_directed()
    looked = G.__dict__["_adj"] = G.__dict__["_succ"] = Rows(G._adj)
    should_run(name, (G,), {"source": 0} if name == "descendants" else {})
    most = max(map(len, looked.values()))
    assert 0 < looked.arcs <= min(costs.ARCS, (len(G) + G.size()) / costs.SHARE) + costs.STARTS * most


def test_arguments_say_how_often_a_graph_is_gone_through(monkeypatch):
    G, pairs = nx.complete_graph(40), [(0, 1)]
    for name, few, many in [
        ("betweenness_centrality", {"k": 2}, {}),
        ("shortest_path", {"source": 0, "target": 1}, {"source": 0}),
        ("shortest_path", {"target": 0}, {}),
        ("jaccard_coefficient", {"ebunch": iter(pairs)}, {"ebunch": pairs}),
        ("jaccard_coefficient", {"ebunch": pairs}, {}),
        ("eccentricity", {"v": 0}, {}),
        ("closeness_centrality", {"u": 0}, {}),
        ("triangles", {"nodes": [0]}, {}),
    ]:
        less, more = (costs.predicted(name, G, {"G": G, **given})[0] for given in (few, many))
        assert less < more, name


@pytest.mark.parametrize("name", ALL)
def test_any_graph_is_answered(monkeypatch, name):
    """A sentence or True, whether a prediction looks at levels or not."""
    graphs = [nx.Graph(), nx.empty_graph(1), nx.empty_graph(3, nx.DiGraph), nx.Graph([(0, 0)]),
              nx.MultiGraph([(0, 1), (0, 1)]), nx.MultiDiGraph([(0, 0), (0, 0)]), nx.path_graph(4).subgraph([0, 1]),
              nx.path_graph(4, nx.DiGraph).reverse(copy=False), nx.freeze(nx.path_graph("abc"))]
    for fields in ({}, {"networkx": 1e12, "level": 1e-3, "reach": True}):
        monkeypatch.setitem(COSTS, name, COSTS[name]._replace(**fields))
        for G in graphs:
            for given in ({}, {"source": 0, "n": 0, "target": [1], "cutoff": None}, {"source": "absent", "k": 2},
                          {"k": "x"}):
                found = should_run(name, (G,), given)
                assert found is True or found.startswith("NetworkX is predicted to take "), found


def test_what_is_no_graph_is_not_left_to_networkx_here():
    assert should_run("pagerank", ([(0, 1)],), {}) is True and should_run("pagerank", (), {}) is True


def test_degrees_of_some_nodes_count_for_all():
    assert costs.counted(nx.path_graph(5)) == (5, 13) and costs.counted(nx.Graph()) == (0, 0)
    G = nx.gnm_random_graph(5000, 20000, seed=1)
    nodes, size = costs.counted(G)
    assert nodes == 5000 and math.isclose(size, 45000, rel_tol=0.1)


def test_it_runs_of_its_own_accord(monkeypatch, caplog):
    set_cost(monkeypatch, "is_regular")
    with nx.config.backend_priority(algos=["gbgpu"]), caplog.at_level(logging.DEBUG, "networkx"):
        assert nx.is_regular(nx.complete_graph(40))
        assert "Using backend 'gbgpu' for call to 'is_regular'" in caplog.text
        caplog.clear()
        assert not nx.is_regular(nx.path_graph(3)) and nx.is_biconnected(nx.complete_graph(12))
        assert "Using backend 'gbgpu'" not in caplog.text
        assert "NetworkX is predicted to take" in caplog.text


SCRIPT = """
import sys
import networkx as nx
G = nx.path_graph(100)
nx.number_connected_components(G)
print({"gbgpu", "algos"} & set(sys.modules))
for function, graph in ((nx.pagerank, nx.MultiGraph(G)), (nx.core_number, nx.DiGraph(G))):
    try:
        function(graph, backend="gbgpu")
    except NotImplementedError as error:
        print(error.__cause__)
print(nx.is_regular(G, backend="gbgpu"))
"""


def test_small_calls_do_not_import_gbgpu(tmp_path):
    """Whether a first call can run shows when it is made."""
    given = dict(cwd=tmp_path, env=environment(tmp_path, NETWORKX_AUTOMATIC_BACKENDS="gbgpu"), text=True)
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, **given)
    assert done.stdout.splitlines() == ["set()", "multigraphs are left to NetworkX", "None", "False"], done.stderr
