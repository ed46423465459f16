"""Graph500: every rule of validation refuses a result that breaks it; counts and statistics by independent means."""

import json
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import coo_array, csgraph

import gbgpu as gb
from algos import graph500
from algos.bfs import bfs
from algos.cli import main
from algos.sssp import shortest_path_tree
from algos.verify import VerificationError, dense
from gbgpu.interrupts import imported


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    monkeypatch.setattr(graph500, "PIECE", 50)


@pytest.fixture(scope="module")
def edges():
    return graph500.generated(6, 4, 3)


@pytest.fixture(scope="module")
def found(edges):
    """A search key, levels and parents, distances and their parents."""
    gb.init("cpu:2")
    A, key = graph500.constructed(edges), int(graph500.search_keys(edges, 3, 1)[0])
    trees, paths = bfs(A, key), shortest_path_tree(A, key)
    arrays = (trees.levels, -1), (trees.parents, -1), (paths.distances, np.inf), (paths.parents, -1)
    return key, *(dense(vector, missing)[0] for vector, missing in arrays)


def test_the_tuples_are_those_of_rmat(edges):
    apart = edges.tails != edges.heads
    assert 0 < np.count_nonzero(~apart) < edges.tails.size == 4 * 64
    ends = {(min(i, j), max(i, j)) for i, j in zip(edges.tails[apart], edges.heads[apart], strict=True)}
    assert len(ends) < np.count_nonzero(apart)  # repeats
    _, rows, cols, _ = gb.io.generate.rmat_edges(6, 4, seed=3)
    assert ends == {(i, j) for i, j in zip(rows, cols, strict=True) if i < j}
    assert edges.weights.min() >= 0 and edges.weights.max() < 1


def test_the_matrix_has_the_lightest_of_repeats_both_ways(edges, found):
    lightest = {}
    for i, j, w in zip(edges.tails, edges.heads, edges.weights, strict=True):
        if i != j:
            for pair in ((i, j), (j, i)):
                lightest[pair] = min(w, lightest.get(pair, 1))
    rows, cols, values = graph500.constructed(edges).to_coo()
    assert lightest == dict(zip(zip(rows, cols, strict=True), values, strict=True))


def test_arcs_are_there_once_when_the_matrix_is_built(monkeypatch):
    """24 bytes an edge beside the tuples: two arcs of two numbers of 32 bits and a weight."""
    gb.init("cpu:2")
    edges, found, build = graph500.generated(12, 16, 1), [], gb.Matrix.from_coo

    def building(*given, **options):
        found.append(tracemalloc.get_traced_memory())
        return build(*given, **options)

    monkeypatch.setattr(gb.Matrix, "from_coo", building)
    tracemalloc.start()
    graph500.constructed(edges)
    tracemalloc.stop()
    now, peak = (each / edges.tails.size for each in found[0])
    assert 23 < now < 26 and peak < 36, (now, peak)


def test_keys_have_neighbours_and_differ(edges):
    keys = graph500.search_keys(edges, 1)
    apart = edges.tails != edges.heads
    able = set(edges.tails[apart]) | set(edges.heads[apart])
    assert len(set(keys)) == len(keys) == min(64, len(able)) and set(keys) <= able
    loop = edges._replace(tails=np.array([5]), heads=np.array([5]))
    assert graph500.search_keys(loop, 1).size == 0


def test_results_agree_with_scipy(edges, found):
    key, levels, parents, distances, above = found
    graph500.validate_bfs(edges, key, levels, parents)
    graph500.validate_sssp(edges, key, distances, above)
    rows, cols, values = graph500.constructed(edges).to_coo()
    A = coo_array((values.astype(float), (rows, cols)), shape=(64, 64)).tocsr()
    np.testing.assert_allclose(distances, csgraph.dijkstra(A, indices=key), rtol=1e-6)
    _, label = csgraph.connected_components(A, directed=False)
    same = label[edges.tails] == label[key]
    assert graph500.traversed(edges, parents) == np.count_nonzero(same)


def far(levels):
    """A vertex of the highest level."""
    return int(np.flatnonzero(levels == levels.max())[0])


def broken(edges, key, levels, parents, distances, above, rule):
    """The result of each kernel, changed so that it breaks one rule."""
    levels, parents, distances, above = (array.copy() for array in (levels, parents, distances, above))
    v = far(levels)
    u = int(np.flatnonzero(levels == 1)[0])
    if rule == "is not its own parent":
        parents[key] = above[key] = u
    elif rule == "not a vertex":
        parents[v] = above[v] = 64
    elif rule == "outside the tree":
        lone = int(np.flatnonzero(parents < 0)[0])
        parents[v] = above[v] = lone
    elif rule == "cycle":
        parents[u], parents[v] = v, u
        above[u], above[v] = v, u
    elif rule == "leads out of the tree":
        leaf = np.setdiff1d(np.flatnonzero(parents >= 0), parents)[0]
        parents[leaf] = levels[leaf] = -1
        leaf = np.setdiff1d(np.flatnonzero(above >= 0), above)[0]
        above[leaf], distances[leaf] = -1, np.inf
    elif rule == "not joined by an edge":
        def stranger(x, depth):
            near = {*edges.heads[edges.tails == x], *edges.tails[edges.heads == x]}
            level = np.flatnonzero(levels == depth)
            return next((int(i) for i in level if i not in near), None)

        x = next(int(x) for x in np.flatnonzero(levels > 1) if stranger(x, levels[x] - 1) is not None)
        parents[x] = stranger(x, levels[x] - 1)
        leaf = next(int(x) for x in np.setdiff1d(np.flatnonzero(above >= 0), above) if stranger(x, 1) is not None)
        above[leaf] = stranger(leaf, 1)
    return levels, parents, distances, above


@pytest.mark.parametrize(
    "rule",
    [
        *("is not its own parent", "not a vertex", "outside the tree", "cycle"),
        *("leads out of the tree", "not joined by an edge"),
    ],
)
def test_a_tree_that_breaks_a_rule_is_refused(edges, found, rule):
    key = found[0]
    levels, parents, distances, above = broken(edges, *found, rule)
    with pytest.raises(VerificationError, match=rule):
        graph500.validate_bfs(edges, key, levels, parents)
    with pytest.raises(VerificationError, match=rule):
        graph500.validate_sssp(edges, key, distances, above)


def test_levels_and_distances_that_break_a_rule_are_refused(edges, found):
    key, levels, parents, distances, above = found
    v = far(levels)

    def changed(array, place, value):
        array = array.copy()
        array[place] = value
        return array

    for wrong, rule in ((changed(levels, v, levels[v] + 1), "2: an arc"), (changed(levels, v, -1), "or neither")):
        with pytest.raises(VerificationError, match=rule):
            graph500.validate_bfs(edges, key, wrong, parents)
    leaf = int(np.setdiff1d(np.flatnonzero(above >= 0), above)[0])
    for wrong, rule in (
        (changed(distances, leaf, distances[leaf] + np.float32(0.5)), "3: an edge is shorter"),
        (changed(distances, leaf, np.nextafter(distances[leaf], np.float32(0))), "2: an arc"),
        (changed(distances, leaf, np.inf), "or neither"),
        (changed(distances, key, np.float32(0.1)), "not 0"),
    ):
        with pytest.raises(VerificationError, match=rule):
            graph500.validate_sssp(edges, key, wrong, above)


def test_a_deeper_tree_is_refused():
    """A path to a neighbour of the key, by its other neighbours: levels fit the parents, and an edge spans two."""
    edges = graph500.Tuples(3, np.array([0, 1, 0]), np.array([1, 2, 2]), np.ones(3, np.float32))
    with pytest.raises(VerificationError, match="3: an edge spans more than one level"):
        graph500.validate_bfs(edges, 0, np.array([0, 1, 2]), np.array([0, 0, 1]))


def test_statistics():
    values = np.random.default_rng(1).random(64)
    told = graph500.statistics(values)
    ordered = np.sort(values)
    assert told["firstquartile"] == ordered[15:17].mean() and told["thirdquartile"] == ordered[47:49].mean()
    assert told["median"] == np.median(values)
    rates = dict(graph500.rates("bfs ", graph500.Searches([1, 2, 4], [8, 8, 8], [])))
    assert rates["bfs  harmonic_mean_TEPS"] == pytest.approx(3 / (1 / 8 + 1 / 4 + 1 / 2))
    assert (rates["bfs  min_TEPS"], rates["bfs  max_TEPS"]) == (2, 8)
    inverse = np.array([1, 2, 4]) / 8
    error = inverse.std(ddof=1) / inverse.mean() ** 2 / np.sqrt(2)
    assert rates["bfs  harmonic_stddev_TEPS"] == pytest.approx(error)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_command(capsys, form):
    words = ["bench", "graph500", "--scale", "5", "--edgefactor", "4", "--devices", "cpu:2", "--quiet", *form]
    assert main(words) == 0
    out = capsys.readouterr().out
    told = json.loads(out) if form else dict(line.split(":") for line in out.splitlines())
    assert (int(told["SCALE"]), int(told["edgefactor"]), int(told["num_mpi_processes"])) == (5, 4, 1)
    assert 0 < int(told["NBFS"]) <= 32
    assert float(told["min_nedge"]) <= float(told["max_nedge"]) <= 128
    for name in ("bfs ", "sssp"):
        assert float(told[f"{name} min_time"]) > 0
        assert float(told[f"{name} min_TEPS"]) <= float(told[f"{name} harmonic_mean_TEPS"])
        assert f"{name} max_validate" in told


def test_all_devices_traverse_the_same(devices):
    """Results are validated where they lie."""
    told = dict(graph500.run(7, 4, count=5))
    edges = graph500.generated(7, 4, 1)
    keys = graph500.search_keys(edges, 1, 5)
    A = coo_array((edges.weights + 1, (edges.tails, edges.heads)), shape=(128, 128))
    _, label = csgraph.connected_components(A)
    traversed = [np.count_nonzero(label[edges.tails] == label[key]) for key in keys]
    assert (told["min_nedge"], told["max_nedge"]) == (min(traversed), max(traversed))


def test_rules_are_those_of_arrays_on_the_device(devices, edges, found):
    key, *arrays = found
    gb.init(devices.spec)
    there = graph500.placed(edges)
    put = np.array if isinstance(there.tails, np.ndarray) else imported("cupy").asarray
    for rule in ("not a vertex", "cycle", "leads out of the tree", "not joined by an edge"):
        levels, parents, distances, above = map(put, broken(edges, *found, rule))
        with pytest.raises(VerificationError, match=rule):
            graph500.validate_bfs(there, key, levels, parents)
        with pytest.raises(VerificationError, match=rule):
            graph500.validate_sssp(there, key, distances, above)
    levels, parents, distances, above = map(put, arrays)
    graph500.validate_bfs(there, key, levels, parents)
    graph500.validate_sssp(there, key, distances, above)
    assert graph500.traversed(there, parents) == graph500.traversed(edges, arrays[1])
    assert graph500.search_keys(there, 3, 9).tolist() == graph500.search_keys(edges, 3, 9).tolist()


def test_a_wrong_result_exits_with_1(capsys, monkeypatch):
    def wrong(A, key):
        found = bfs(A, key)
        found.levels[key] = 1
        return found

    monkeypatch.setattr(graph500, "bfs", wrong)
    assert main(["bench", "graph500", "--scale", "4", "--devices", "cpu:2", "--quiet"]) == 1
    assert "check failed" in capsys.readouterr().err
