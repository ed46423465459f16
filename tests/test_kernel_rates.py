"""`gbgpu bench kernels` and `gb.limits`: statements give what SciPy and NumPy do, and run kernels of their names."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import gbgpu as gb
from algos import gap, kernel_rates, measurements
from algos.cli import main
from algos.verify import VerificationError
from gbgpu.device import limits
from gbgpu.timing import timed

NAMES = ("pull, full vector", "pull, pattern", "pull, masked", "push, list", "push, bitmap", "elementwise", "apply",
         "assign, masked", "reduce", "transpose", "build", "rows", "relax", "mxm", "mxm, masked")  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    """Limits are measured on less, and rarely."""
    for name, value in {"COPIED": 1 << 16, "GATHERED": 1 << 12}.items():
        monkeypatch.setattr(limits, name, {"cpu": value})
    monkeypatch.setattr(limits, "PLACES", ({"cpu": 1 << 12}, {"cpu": 1 << 16}))
    monkeypatch.setattr(limits, "TIMES", 2)


def test_each_statement_is_right_and_runs_its_kernels(devices):
    assert NAMES == tuple(form.name for form in kernel_rates.forms(6))
    for form in kernel_rates.forms(6):
        kernel_rates.verified(form)
        given = form.fresh()
        with gb.trace() as records:
            form.call(*given)
        ran = {record.step for record in records}
        assert not form.steps or ran & {*form.steps}, (form.name, ran)
        assert form.entries > 0 and form.bytes >= 4 * form.entries


def test_a_wrong_result_is_refused():
    gb.init("cpu:1")
    for form in kernel_rates.forms(6):
        right = form.expected()
        wrong = right + csr_array(np.eye(*right.shape)) if hasattr(right, "tocsr") else right + 1
        with pytest.raises(VerificationError, match=form.name):
            kernel_rates.verified(form._replace(expected=lambda wrong=wrong: wrong))


def test_bytes_are_those_of_the_arrays():
    gb.init("cpu:1")
    A = kernel_rates.graph(6, "A")
    indptr, cols, vals = (np.asarray(part, dtype) for part, dtype in zip(A.to_csr(), "iif", strict=True))
    x = np.ones(A.nrows, np.float32)
    counted = {form.name: form for form in kernel_rates.forms(6)}
    arrays = indptr[1:], cols, vals, x, x
    assert counted["pull, full vector"].bytes == sum(array.nbytes for array in arrays)
    assert counted["pull, pattern"].bytes == sum(array.nbytes for array in arrays) - vals.nbytes
    assert counted["transpose"].bytes == 2 * (indptr[1:].nbytes + cols.nbytes + vals.nbytes)
    B = kernel_rates.graph(kernel_rates.product_scale(6), "B").to_scipy_sparse().tocsr()
    B.data[:] = 1
    assert counted["mxm"].entries == (B @ B).sum()


def test_the_command_prints_and_keeps_a_table(small, tmp_path, capsys):
    words = ["bench", "kernels", "--scale", "5", "--seconds", "0.0001", "--devices", "cpu:2", "--quiet"]
    assert main([*words, "--output", str(tmp_path / "kernels")]) == 0
    out, kept = capsys.readouterr().out, json.loads((tmp_path / "kernels.json").read_text())
    assert measurements.rendered(kept) == (tmp_path / "kernels.md").read_text()
    reached, rates = kept["parts"]
    assert measurements.markdown(measurements.Table(**rates)) in out
    assert [row[0] for row in rates["rows"]] == list(NAMES)
    assert [row[0] for row in reached["rows"]] == ["cpu:0", "cpu:1", "all together"]
    for name, _, ms, entries, speed, bandwidth, least, by, share in rates["rows"]:
        assert 0 < least and 0 < speed == pytest.approx(entries / ms / 1e6) and bandwidth > 0, name
        assert by in ("gathers", "copies") and share == f"{100 * least / ms:.0f}%"
    assert main([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["parts"]) == 2
    assert main([*words[:4], "--seconds", "0"]) == 3 and "seconds above 0" in capsys.readouterr().err


def test_limits_of_each_device(small, capsys):
    gb.init("cpu:3")
    found = gb.limits([1 << 10])
    assert [each.device for each in found] == ["cpu:0", "cpu:1", "cpu:2"]
    for each in found:
        assert each.gather.keys() == {(4, 1 << 10), (8, 1 << 10)} and min(each.gather.values()) > 0
        assert each.copy > 0 and 0 < each.start <= each.wait
    assert main(["info", "--devices", "cpu:2", "--limits"]) == 0
    assert "all together" in capsys.readouterr().out
    assert main(["info", "--devices", "cpu:1", "--limits", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["limits"]
    assert [each[:2] for each in told["gather"]] == [[4, 1 << 12], [8, 1 << 12], [4, 1 << 16], [8, 1 << 16]]


def test_the_scale_grows_with_what_is_gathered_a_second_and_fits():
    gb.init("cpu:1")

    def scale(rate: float) -> int:
        return kernel_rates.default_scale([limits.Limits("cpu:0", 1.0, {(4, 64): 1e12, (4, 128): rate}, 0, 0)])

    scales = [scale(2.0**k) for k in range(0, 60, 3)]
    assert scales == sorted(scales) and scales[0] == kernel_rates.CHECKED and scales[-1] <= kernel_rates.MOST
    assert scale(2**30) == 21  # 2^21 * 16 entries in 1/32 second
    n = 1 << scales[-1]
    assert gb.estimate_memory(n, n, 16 * n, "FP32").peak <= gb.device_info()[0]["free"]


def test_arguments_are_made_for_each_call_outside_of_its_time():
    gb.init("cpu:1")
    made, taken = [], []
    found = timed(taken.append, 1e-6, lambda: (made.append(len(made)) or len(made),))
    assert len(made) == len(taken) == found.calls + found.warm_calls and taken == [k + 1 for k in range(len(made))]


def test_peers_of_gap_have_the_same_sources_in_turns():
    gb.init("cpu:1")
    graph, asked = gap.graph("kron", 5, 1, None), []
    line = gap.measured(graph, "bfs", 1, 3, {name: lambda at, name=name: asked.append((name, at)) for name in "ab"})
    assert [name for name, _ in asked] == ["a", "b"] * 4
    sources = graph.sources(1, 1)
    first = next(sources)
    trials = graph.sources(1, 1)
    expected = [first, *(next(trials) for _ in range(3))]
    assert [at for name, at in asked if name == "a"] == expected == [at for name, at in asked if name == "b"]
    assert len(line.seconds) == 3 and all(len(took) == 3 for took in line.peers.values())
