"""Kernels that run uncompiled until they are compiled, and those that are on disk: the same results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from weakref import WeakValueDictionary

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
from gbgpu.kernels import alike, background, cpu, tiered
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


LOOPED = """
import sys
import numpy as np, gbgpu as gb
from gbgpu import binary, semiring, unary
gb.init(sys.argv[1])
n, ids = 300, np.arange(300)
x, y = (gb.Vector.from_dense(np.zeros(n, int)) for _ in range(2))
ring = gb.Matrix.from_coo(ids, (ids + 1) % n, np.ones(n, int), nrows=n, ncols=n)
ways = set()
for _ in range(12):
    for body in (
        lambda: x(binary.plus) << ring.mxv(y, semiring.plus_times),
        lambda: x(binary.plus) << 1,
        lambda: y(binary.max) << x.apply(unary.one),
    ):
        with gb.loop(60) as it:
            body()
        ways.add(it.how)
print(*set(x.to_dense().tolist()), *set(y.to_dense().tolist()), all("statements" in way for way in ways))
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
    monkeypatch.setattr(cpu, "_compiled", WeakValueDictionary())
    devices.start()


def here(monkeypatch, made: list) -> None:
    """Nothing is on disk or compiled in the background: what is waited for is compiled here, and noted."""
    monkeypatch.setattr(tiered.Kernel, "ready", lambda kernel, types: None)
    compile = tiered.machine_code
    monkeypatch.setattr(tiered, "machine_code", lambda kind, *rest: made.append(kind) or compile(kind, *rest))


def on_disk(kernel, types, ready=tiered.Kernel.ready):
    """The machine code if it is there, which nobody is asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gb.settings, "tiered", False)
        return ready(kernel, types)


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
    here(monkeypatch, made)
    monkeypatch.setattr(tiered.Kernel, "_pays", lambda kernel, types, seconds: kernel.seconds + seconds > 0.001)
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
    here(monkeypatch, made)
    v = gb.Vector.from_dense(np.arange(1_500_000.0))
    w = v.apply(lambda a: a * 1.5).new()
    assert made and w[1_499_999].value == 1_499_999 * 1.5


def test_calls_of_other_threads_count_while_they_run(monkeypatch):
    """Threads of several devices take turns in plain Python: what they take together decides."""
    compiled, started, end = [], Event(), Event()

    def plain(*_):
        if not started.is_set():
            started.set()
            end.wait(60)

    kernel = tiered.Kernel("apply", "")
    kernel._plain = plain
    monkeypatch.setattr(gb.settings, "tiered", True)
    monkeypatch.setattr(tiered, "work", lambda *_: (1, False))
    monkeypatch.setattr(tiered.Kernel, "ready", lambda *_: None)
    monkeypatch.setattr(tiered.Kernel, "_predicted", lambda *_: 0.6 * tiered.compiler.price)
    monkeypatch.setattr(tiered.Kernel, "code", lambda *_: SimpleNamespace(call=compiled.append))
    other = Thread(target=kernel, args=(1,))
    other.start()
    assert started.wait(60)
    kernel(2)
    end.set()
    other.join()
    assert compiled == [2]
    kernel.seconds = 0.0  # as if what the other call took were little
    kernel(3)
    assert compiled == [2]


def test_the_work_of_products_is_their_terms(begun, monkeypatch):
    """Against the number of terms that SciPy counts: pattern(A) @ row lengths of B. A call on a block is no less than
    its longest array."""
    counted, arrays, count = [], [], tiered.work

    def noted(kind, given):
        if kind == "mxm_pattern":
            counted.append(count(kind, given)[0])
            arrays.append(max(getattr(one, "size", 1) for one in given))
        return 0, False

    here(monkeypatch, [])
    monkeypatch.setattr(tiered, "work", noted)
    A, B = square(30), square(30, 2)
    ours = min_plus(gb.Matrix.from_scipy_sparse(A) @ gb.Matrix.from_scipy_sparse(B)).new(method="hash")
    terms = int(((A != 0).astype(int) @ np.diff(B.indptr)).sum())
    assert len(counted) == len(gb.settings.session().devices)
    assert terms <= sum(counted) <= terms + sum(arrays)
    assert ours.nvals == ((A != 0).astype(int) @ (B != 0).astype(int)).nnz


@pytest.mark.few(1)
@settings(max_examples=100 if p.WIDE else 12)
@given(program=p.programs(statements.KINDS["mixed"]))
def test_random_statements_before_and_after(devices, program):
    """Each kernel runs uncompiled the first time, compiled from then on."""
    if not devices.spec.startswith("cpu"):
        pytest.skip("kernels of GPUs are compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gb.settings, "tiered", True)
        patch.setattr(tiered.Kernel, "ready", lambda kernel, types: on_disk(kernel, types) if kernel.seconds else None)
        patch.setattr(tiered.Kernel, "_pays", lambda kernel, types, seconds: kernel.seconds > 0)
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


def test_rows_cost_what_is_done_to_them(begun, monkeypatch):
    """Sixty operations on each of a hundred thousand rows ran uncompiled for two seconds."""
    here(monkeypatch, [])
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


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", ["FP64", "INT64", "INT8"] + ["FP32", "UINT16"] * p.WIDE)
def test_functions_that_capture_other_numbers_share_a_kernel(begun, monkeypatch, dtype):
    """The second one is compiled with the number as an argument, others find that."""
    made, np_type = [], gb.dtypes.lookup_dtype(dtype).np_type
    here(monkeypatch, made)
    monkeypatch.setattr(tiered.Kernel, "_pays", lambda kernel, types, seconds: True)
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


MADE = """
import sys, time
import numpy as np
import gbgpu as gb
from gbgpu.kernels import tiered
from gbgpu.semiring import plus_times

made = []
compile = tiered.machine_code
tiered.machine_code = lambda kind, *rest: made.append(kind) or compile(kind, *rest)
for k in (2, 3):  # captured numbers, twice: the second kernel has them as arguments
    w = gb.Vector.from_dense(np.arange(100.0)).apply(lambda x: x * k + 0.5).new()
    np.testing.assert_array_equal(w.to_dense(), np.arange(100.0) * k + 0.5)
A = gb.Matrix.from_coo([0, 0, 1, 2], [2, 1, 3, 0], [1.0, 2.0, 3.0, 4.0], nrows=4, ncols=4)
B = plus_times(A @ A).new()  # one of its kernels sorts
assert sorted(zip(*map(np.ndarray.tolist, B.to_coo()))) == [(0, 0, 4.0), (0, 3, 6.0), (2, 1, 8.0), (2, 2, 4.0)]
kernels = {id(kernel): kernel for kernel in gb.settings.session().kernels._loaded.values()}
while sys.argv[1:] and any(kernel._requests for kernel in map(tiered.kernel_of, kernels.values())):
    for kernel in map(tiered.kernel_of, kernels.values()):
        for types in [*kernel._requests]:
            kernel.code(types)
codes = sum(len(kernel.codes) for kernel in map(tiered.kernel_of, kernels.values()))
print(len(made), "numba" in sys.modules, "llvmlite" in sys.modules, codes)
"""


def test_what_is_on_disk_is_loaded_without_the_compiler(tmp_path):
    """The first process has its kernels compiled by another one; the second one loads them at their first call."""
    environment = {**os.environ, "GBGPU_CACHE_DIR": str(tmp_path), "GBGPU_TIERED": "1", "GBGPU_INTERPRET": "0"}

    def run(*arguments: str) -> list[str]:
        command = [sys.executable, "-c", MADE, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.split()

    made, numba, llvm, codes = run("wait")
    assert (made, numba, llvm) == ("0", "False", "False") and int(codes) >= 2
    assert run() == ["0", "False", "False", codes]


def test_calls_of_other_types(begun, monkeypatch):
    """Machine code checks the types of its arguments: others have machine code of their own."""
    monkeypatch.setattr(gb.settings, "tiered", False)
    text = "from numba import njit as _njit\n\n@_njit(nogil=True)\ndef kernel(x, y, k):\n    x[0] = y[0] * k\n"
    kernel = tiered.Kernel("test", text)
    x, y = np.zeros(1), np.arange(1.0, 9)
    kernel(x, y, 2)
    call = next(iter(kernel.codes.values())).call
    whole, strided = np.arange(3, 9), y[1::2]
    others = [(y, 3), (y, 0.5), (y, True), (whole, 3), (strided, 3), (whole.astype(np.int32)[::3], np.float32(0.5))]
    others += [(y.astype("q"), np.int8(-3)), (y.astype(np.longlong), np.uint64(9)), (y.view(np.memmap), 2)]
    for values, k in others:
        for run in (call, kernel):
            run(x, values, k)
            assert x[0] == values[0] * k
    assert len(kernel.codes) == len({tiered.entry.types_of((x, *other)) for other in others})
    with pytest.raises(TypeError, match="one dimension"):
        call(x, y.reshape(2, 4), 2)
    with pytest.raises(TypeError, match="arrays and numbers; came str"):
        call(x, y, "2")


def test_without_another_process_kernels_are_compiled_here(monkeypatch):
    """Nor does a child of a fork wait for its parent's."""
    compiler = background.Compiler()
    monkeypatch.setattr(background, "_begun", lambda: open("/nowhere/at/all"))
    request = compiler.request("test", "", (), "file")
    assert request.wait() is None and request.failed
    waiting = background.Request((), compiler)
    compiler._requests.append(waiting)
    compiler.forked()
    assert waiting.failed and compiler.price == background.COMPILE + background.START


def test_a_push_from_a_list_costs_the_entries_of_its_rows():
    """Not those of the matrix."""
    arguments = dict.fromkeys(KINDS["push"], np.ones(1, np.int64))
    arguments |= {"n": 4, "flags": XLIST, "count": np.array([2]), "slots": np.array([1, 3, 0, 0], np.int32)}
    arguments |= {"indptr": np.array([0, 100, 103, 200, 207]), "cols": np.zeros(207, np.int32)}
    assert tiered.work("push", tuple(arguments.values())) == (3 + 7 + 2 + 1, False)


@pytest.mark.few(1)
@pytest.mark.parametrize("spec", ["cpu:1", "cpu:3"])
def test_loops_again_and_again_with_the_ordinary_settings(tmp_path, spec):
    """A process that finds its kernels on disk, one that does not, and loops that are captured in both."""
    environment = {**os.environ, "GBGPU_CACHE_DIR": str(tmp_path), "GBGPU_INTERPRET": "0"}
    environment.pop("GBGPU_TIERED")
    for _ in range(2):
        given = dict(capture_output=True, text=True, env=environment)
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", LOOPED, spec], **given)
        assert done.returncode == 0, done.stderr
        x, y, uncaptured = done.stdout.split()
        assert (int(x), int(y)) == (12 * 60 + 11 * 60, 1)
    assert uncaptured == "False"
