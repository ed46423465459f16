"""Kernels that run uncompiled until that has cost as much as compiling them: the same results, before and after."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import programs as p
import pytest
import scipy.sparse
import test_statements as statements
from hypothesis import given, settings
from oracle import Run

import gbgpu as gb
from algos.runs import ALGORITHMS
from gbgpu.device import store
from gbgpu.kernels import alike, cpu, tiered
from gbgpu.kernels.interface import KINDS, XFULL, XLIST
from gbgpu.semiring import min_plus, plus_times

ROOT = Path(__file__).parent.parent
EARLY = """
import sys, gbgpu as gb, algos
from gbgpu.semiring import any_pair
i, j = zip(*[(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (6, 7)])
A = gb.Matrix.from_coo(i + j, j + i, 1.0, nrows=9, ncols=9)
q = gb.Vector(bool, size=9)
q[0] = True
q << any_pair(q @ A)
print(q.nvals, *algos.bfs(A, 0)[0].to_dense(-1), *algos.connected_components(A).to_dense(), "numba" in sys.modules)
"""


UNCOMPILED = """
import sys, gbgpu as gb, algos
from algos.runs import ALGORITHMS
gb.init("cpu:2")
A = gb.io.read(sys.argv[1], directed=False)
for name, algorithm in ALGORITHMS.items():
    options = algorithm.choose(A, {})
    algorithm.verify(A, *options.values(), algorithm.run(A, *options.values()))
q = gb.Vector.from_coo([0], [True], size=A.nrows)
with gb.loop(2) as it:
    q << gb.semiring.any_pair(A @ q)
print(len(ALGORITHMS), q.nvals > 0)
"""


@pytest.fixture
def begun(devices, monkeypatch):
    """Kernels of this session begin uncompiled."""
    if not devices.spec.startswith("cpu"):
        pytest.skip("kernels of GPUs are compiled")
    monkeypatch.setattr(gb.settings, "tiered", True)
    monkeypatch.setattr(gb.settings, "interpret", False)
    monkeypatch.setattr(cpu, "_recent", store.Recent())  # what other sessions have compiled is not theirs
    devices.start()


def square(n: int, seed: int = 1) -> scipy.sparse.csr_array:
    return scipy.sparse.random_array((n, n), density=0.1, rng=seed, format="csr")


def test_small_programs_never_import_the_compiler(tmp_path):
    environment = {**os.environ, "GBGPU_CACHE_DIR": str(tmp_path), "GBGPU_TIERED": "1", "GBGPU_INTERPRET": "0"}
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == "2 0 1 2 3 1 2 -1 -1 -1 0 0 0 0 0 0 6 6 8 False".split()


def test_the_readme_never_imports_the_compiler(tmp_path):
    """Reading a small file, and a search of it."""
    readme = (ROOT / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1].replace('"auto"', '"cpu:2"')
    program += "\nimport sys\nprint(levels.nvals, depth, 'numba' in sys.modules)"
    environment = {**os.environ, "GBGPU_CACHE_DIR": str(tmp_path), "GBGPU_TIERED": "1", "GBGPU_INTERPRET": "0"}
    given = dict(capture_output=True, text=True, env=environment, check=True, cwd=ROOT)
    done = subprocess.run([sys.executable, "-c", program], **given)
    assert done.stdout.split()[-3:] == ["10680", "22", "False"]


def test_everything_runs_where_numba_compiles_nothing(tmp_path):
    """NUMBA_DISABLE_JIT, which people set to measure what their tests cover: functions of numba's have no attributes
    of compiled ones."""
    (tmp_path / "a.el").write_text("0 1\n1 2\n2 0\n2 3\n3 4\n4 5\n5 3\n6 7\n")
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "GBGPU_TIERED": "0", "GBGPU_INTERPRET": "0"}
    given = dict(capture_output=True, text=True, env=environment)
    done = subprocess.run([sys.executable, "-c", UNCOMPILED, str(tmp_path / "a.el")], **given)
    assert done.stdout.split() == [str(len(ALGORITHMS)), "True"], done.stderr


def test_a_kernel_is_compiled_when_that_pays(begun, monkeypatch):
    A, made = square(40), []
    compile = tiered.Tiered._settle
    monkeypatch.setattr(tiered.Tiered, "_settle", lambda kernel: made.append(kernel.kind) or compile(kernel))
    monkeypatch.setattr(tiered, "COMPILE", 0.001)
    monkeypatch.setattr(tiered, "LOAD", 0.001)
    monkeypatch.setattr(tiered, "IMPORT", 0.0)
    B, x = gb.Matrix.from_scipy_sparse(A), np.arange(40.0)
    v, w = gb.Vector.from_dense(x), gb.Vector(float, size=40)
    for _ in range(300):
        statement = w << plus_times(B @ v.apply(lambda a: a * 1.5 + 0.0078125))
        np.testing.assert_allclose(w.to_dense(0), A @ (x * 1.5 + 0.0078125))
        if "apply" in made:
            break
    kernels = [kernel for step in statement.plan.steps for kernel in step.kernels.values()]
    settled = made.count("apply")
    assert settled and kernels
    w << plus_times(B @ v.apply(lambda a: a * 1.5 + 0.0078125))
    assert made.count("apply") == settled  # the compiled one has taken its place


def test_what_is_large_is_compiled_at_once(begun, monkeypatch):
    made = []
    monkeypatch.setattr(tiered.Tiered, "_settle", lambda kernel: made.append(kernel.kind) or _compiled(kernel))
    monkeypatch.setattr(tiered, "_spent", 0.0)
    v = gb.Vector.from_dense(np.arange(1_500_000.0))
    w = v.apply(lambda a: a * 1.5).new()
    assert made and w[1_499_999].value == 1_499_999 * 1.5


def _compiled(kernel) -> None:
    kernel.compiled = kernel.compile()


def test_the_work_of_products_is_their_terms(begun, monkeypatch):
    """Against the number of terms that SciPy counts: pattern(A) @ row lengths of B. A call on a block is no less than
    its longest array."""
    counted, arrays, count = [], [], tiered.work

    def noted(kind, given):
        if kind == "mxm_pattern":
            counted.append(count(kind, given)[0])
            arrays.append(max(getattr(one, "size", 1) for one in given))
        return 0, False

    monkeypatch.setattr(tiered, "work", noted)
    A, B = square(30), square(30, 2)
    ours = min_plus(gb.Matrix.from_scipy_sparse(A) @ gb.Matrix.from_scipy_sparse(B)).new(method="hash")
    terms = int(((A != 0).astype(int) @ np.diff(B.indptr)).sum())
    assert len(counted) == len(gb.settings.session().devices)
    assert terms <= sum(counted) <= terms + sum(arrays)
    assert ours.nvals == ((A != 0).astype(int) @ (B != 0).astype(int)).nnz


@settings(max_examples=100 if p.WIDE else 12)
@given(program=p.programs(statements.KINDS["mixed"]))
def test_random_statements_before_and_after(devices, program):
    """Each kernel runs uncompiled the first time, compiled from then on."""
    if not devices.spec.startswith("cpu"):
        pytest.skip("kernels of GPUs are compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gb.settings, "tiered", True)
        patch.setattr(tiered.Tiered, "_pays", lambda kernel, seconds: kernel.seconds > 0)
        devices.start()
        Run(program, devices).all()


def test_rows_of_one_value_count_as_work():
    """They have no array as long as they are: such a sum ran uncompiled for seconds."""
    n, one, flags = 10**6, np.ones(1, np.int64), KINDS["reduce"].index("flags")
    arguments = [one] * len(KINDS["reduce"])
    arguments[0], arguments[flags] = n, XFULL
    assert tiered.work("reduce", tuple(arguments))[0] == n
    arguments[flags] = XLIST  # of a list, however long the vector is
    assert tiered.work("reduce", tuple(arguments))[0] == 1


def test_rows_cost_what_is_done_to_them(begun):
    """Sixty operations on each of a hundred thousand rows ran uncompiled for two seconds."""
    for function in (lambda x: (x ^ x >> 3) * 5 - (x ^ x >> 7) * 3 | x, lambda x: -x):
        gb.Vector.from_dense(np.arange(9)).apply(function).new()
    kernels = {k.plain.operations: k for k in gb.settings.session().kernels._loaded.values() if k.kind == "apply"}
    few, many = (kernels[k] for k in sorted(kernels))
    few.rows = many.rows = 0, 0.0
    assert many._predicted(1, 1) > 1.5 * few._predicted(1, 1) > few._predicted(1, 0) == tiered.ELEMENT
    many.rows = 2000, 0.02
    assert many._predicted(1, 1) == 1e-5 and many._predicted(1, 0) == tiered.ELEMENT
    many.rows = 0, 0.0


def scaled(k):
    return lambda x, y: x * y * k if x > k else (y - k) * (y - k)


@pytest.mark.parametrize("dtype", ["FP64", "INT64", "INT8"] + ["FP32", "UINT16"] * p.WIDE)
def test_functions_that_capture_other_numbers_share_a_kernel(begun, monkeypatch, dtype):
    """The second one is compiled with the number as an argument, others find that."""
    made, np_type = [], gb.dtypes.lookup_dtype(dtype).np_type
    compile = tiered.Tiered._settle
    monkeypatch.setattr(tiered.Tiered, "_settle", lambda kernel: made.append(kernel.kind) or compile(kernel))
    for name in ("COMPILE", "LOAD", "IMPORT"):
        monkeypatch.setattr(tiered, name, 0.0)
    x, y = (np.arange(start, start + 90).astype(np_type) for start in (1, 20))
    v, w = gb.Vector.from_dense(x), gb.Vector.from_dense(y)
    for k in (1, 2, 3, 5, 7, 5, 1):
        k = np_type.type(k)
        with np.errstate(all="ignore"):
            right = np.where(x > k, x * y * k, (y - k) * (y - k)).astype(np_type)
        op = gb.binary.register_anonymous(scaled(k))
        np.testing.assert_array_equal(op(v & w).new(dtype=dtype).to_dense(), right)
        kept = v.select(lambda x, i, j, t: x > k + t, 0).new()  # noqa: B023
        assert set(kept.to_coo()[1]) == set(x[x > k])
    blocks = len(gb.settings.session().devices)
    assert 0 < made.count("ewise") <= 2 * blocks and 0 < made.count("select") <= 2 * blocks, made


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, -0.0, 1e-300, 5e-324, -1.5])
def test_any_number_may_be_an_argument(begun, number):
    x = np.array([-2.0, -0.0, 0.0, 1.0, np.inf])
    for k in (1.0, 2.0, number):
        with np.errstate(all="ignore"):
            made = gb.Vector.from_dense(x).apply(lambda x: x * k + 0.5).new().to_dense()  # noqa: B023
            np.testing.assert_array_equal(made, x * k + 0.5)


def test_texts_that_differ_elsewhere_stay_apart():
    """Numbers that are no arguments of a function, and texts that differ in more than numbers."""
    text = "import numpy as np\nSTART = np.float64({})\n\n\ndef kernel(x):\n    return x + START * np.int64({}) {}\n"
    assert alike.shared(text.format(1.0, 1, "")) == (text.format(1.0, 1, ""), ())
    assert alike.shared(text.format(2.0, 1, "")) == (text.format(2.0, 1, ""), ())
    assert alike.shared(text.format(1.0, 1, "+ x")) == (text.format(1.0, 1, "+ x"), ())
    common, numbers = alike.shared(text.format(1.0, 7, "+ x"))
    assert "captured1" in common and [type(n) for n in numbers] == [np.int64] and numbers == (7,)
    again, others = alike.shared(text.format(1.0, -9, "+ x"))
    assert again == common and others == (-9,)


def test_numbers_in_loops_that_a_function_of_machine_code_runs(monkeypatch):
    monkeypatch.setattr(gb.settings, "interpret", False)
    gb.init("cpu:1")
    for k in (0.5, 0.25, 0.125, 0.75):
        v, s = gb.Vector.from_dense(np.ones(50)), gb.Scalar(float)
        with gb.loop(400) as it:
            v << v.apply(lambda x: x * k + 1)  # noqa: B023
            s << v.reduce("max", allow_empty=False)
            it.until(s > 1e9)
        np.testing.assert_allclose(v.to_dense(), 1 / (1 - k))
        assert "calls a round" in it.how


def test_processes_go_on_where_others_end(tmp_path, monkeypatch):
    """What one has spent on a kernel counts in the next one, which compiles it sooner."""
    monkeypatch.setattr(gb.settings, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(tiered, "_all", tiered.WeakSet())

    def begun(name: str) -> tiered.Tiered:
        store._starts.cache_clear()
        return tiered.Tiered("ewise", None, lambda: None, name)

    names = ["a" * 32, "b" * 32, "c" * 32]
    for name, seconds in zip(names, (0.2, 0.001, 0.4), strict=True):
        kernel = begun(name)
        kernel.seconds += seconds
        kernel.compiled = len if seconds == 0.4 else None
        tiered._tell()
    assert [begun(name).seconds for name in names] == [0.2, 0.0, 0.0]
    kernel, before = begun(names[0]), [path.stat().st_mtime_ns for path in (tmp_path / "spent").iterdir()]
    monkeypatch.setattr(tiered, "_spent", 1.0)
    assert kernel._pays(0.15) and not kernel._pays(0.05) and not begun(names[1])._pays(0.15)
    tiered._tell()  # nothing new
    assert [path.stat().st_mtime_ns for path in (tmp_path / "spent").iterdir()] == before
    store._starts.cache_clear()
