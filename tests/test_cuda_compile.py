"""Every CUDA kernel compiles where there is no GPU, for many operators and types, and takes its arguments."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import test_user_math
from hypothesis import settings

import gbgpu as gb
from gbgpu import binary, indexunary, monoid, select, semiring, unary
from gbgpu.device import arrays, cuda, entries, nvrtc, rows
from gbgpu.device.store import _starts
from gbgpu.distribute import needs
from gbgpu.errors import Panic
from gbgpu.kernels import ahead, gpu, gpu_launch
from gbgpu.kernels.gpu_functions import FUNCTIONS
from gbgpu.kernels.gpu_source import SOURCES, atomic_form
from gbgpu.kernels.interface import Deferred, Spec
from gbgpu.kernels.kinds import KINDS
from gbgpu.semiring import Semiring
from gbgpu.semiring._lower import to_cuda
from gbgpu.semiring._operators import BinaryOp, IndexUnaryOp, SelectOp, UnaryOp
from gbgpu.semiring._types import BOOL, FP32, FP64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, UNSIGNED

LONG = settings.get_current_profile_name() == "long"
TYPES = (BOOL, INT32, INT64, FP32, FP64)
distance = Semiring.register_anonymous(
    monoid.min, binary.register_anonymous(lambda x, y: abs(x - y) if x > y else x * 2), "distance"
)


def products() -> list[tuple[str, Spec]]:
    ordinary = [semiring.min_plus[dtype] for dtype in (INT32, INT64, FP32, FP64)] + [
        semiring.plus_times[dtype] for dtype in (INT32, FP32, FP64)
    ]
    logical = [semiring.any_pair[BOOL], semiring.lor_land[BOOL], semiring.lxor_land[BOOL], semiring.lxnor_lor[BOOL]]
    others = [
        semiring.max_first[FP64],
        semiring.max_minus[FP32],
        semiring.any_second[INT64],
        semiring.times_plus[FP32],
        semiring.min_secondi[INT64],
        semiring.plus_pair[INT64],
        distance[INT32],
        distance[FP64],
    ]
    small = [
        semiring.plus_times[INT8],
        semiring.min_plus[UINT16],
        semiring.max_first[INT16],
        semiring.bor_band[UINT8],
        semiring.plus_times[UINT32],
        semiring.max_plus[UINT64],
        semiring.bxor_band[UINT64],
        semiring.bxnor_bor[UINT32],
    ]
    found = []
    for i, op in enumerate(ordinary + logical + others + small):
        left, right = op.multiply.dtypes
        spec = Spec(op=op, a=right, b=left, out=op.return_type, flip=True, iso=op.name == "any_pair")
        found.append(("push", spec._replace(flip=False, a=left, b=right) if i % 2 else spec))
        if LONG or i % 2 == 0 or op in others:  # a pull has no atomics, in which types differ most
            found.append(("pull", spec))
    streamed = semiring.plus_times[FP32], semiring.plus_second[FP64], semiring.min_plus[INT64], semiring.lor_land[BOOL]
    for op in streamed:
        stream = Spec(op=op, a=op.multiply.dtypes[0], b=op.multiply.dtypes[1], out=op.return_type)
        found += [("pull_stream", stream), ("pull_stream", stream._replace(partial=True)), ("pull_far", stream)]
        found.append(("pull_slices", stream))
    mixed = Spec(op=semiring.min_plus[FP64], a=INT32, b=FP32, out=FP32, ptr="int64", idx="int64")
    return [*found, ("pull", mixed), ("push", mixed._replace(out=None))]


def writes() -> list[tuple[str, Spec]]:
    accums = [
        (None, FP32, INT64),
        (binary.plus[INT32], INT32, INT32),
        (binary.min[FP64], FP32, FP64),
        (binary.lor[BOOL], BOOL, BOOL),
        (binary.plus[UINT8], UINT8, INT16),
        (binary.numpy.gcd[INT16], INT16, UINT64),
    ]
    pairs = [(kind, Spec(op=op, a=a, b=b)) for op, a, b in accums for kind in ("write", "write_list")]
    pairs.append(("write", Spec(op=binary.lor[BOOL], a=BOOL, b=BOOL, iso=True)))
    two = [
        (binary.minus[FP32], FP32, INT32, FP32),
        (binary.lt[INT64], INT64, INT64, BOOL),
        (binary.firsti[INT64], BOOL, BOOL, INT64),
    ]
    for op, a, b, out in two:
        pairs += [("ewise", Spec(op=op, a=a, b=b, out=out, lone=lone)) for lone in ("", "union", "defaults")]
        pairs += [("ewise_list", Spec(op=op, a=a, b=b, out=out, flip=flip)) for flip in (False, True)]
    for lone, flip in (("", False), ("union", False), ("defaults", True)):
        chain = Spec(op=binary.plus[FP32], a=INT32, b=FP64, out=FP64, flip=flip, lone=lone)
        pairs.append(("ewise", chain._replace(then=binary.minus[FP64], c=INT8)))
        pairs.append(("fold", pairs[-1][1]._replace(fold=monoid.plus[FP64])))
    least = Spec(op=binary.firsti[INT64], a=BOOL, b=BOOL, out=INT64, fold=monoid.min[INT64])
    pairs += [("fold", least), ("fold", least._replace(op=binary.ne[FP32], a=FP32, b=FP32, out=BOOL))]
    pairs[-1] = "fold", pairs[-1][1]._replace(fold=monoid.lor[BOOL])
    return pairs


def maps() -> list[tuple[str, Spec]]:
    applied = [
        Spec(op=unary.exp[FP64], b=INT32, out=FP32),
        Spec(op=binary.floordiv[INT32], b=INT32, out=INT32, bound="left"),
        Spec(op=indexunary.rowindex[INT64], b=BOOL, out=INT64),
        Spec(op=unary.positioni[UINT16], b=UINT16, out=UINT8),
        Spec(op=unary.frexpe[FP32], b=INT8, out=INT8),
        Spec(op=binary.binom[UINT64], b=UINT32, out=INT64, bound="right"),
    ]
    selected = [Spec(op=select.valuege[FP32], b=FP32), Spec(op=select.indexle[INT64], b=INT64)]
    reduced = [monoid.plus[FP32], monoid.times[INT64], monoid.min[FP64], monoid.land[BOOL], monoid.any[INT32]]
    reduced += [monoid.plus[INT8], monoid.max[UINT16], monoid.bor[UINT64], monoid.numpy.gcd[INT16]]
    return (
        [("apply", spec) for spec in applied]
        + [(kind, spec) for spec in selected for kind in ("select", "select_list")]
        + [("reduce", Spec(op=op, b=op.dtype)) for op in reduced]
        + [("combine", Spec(op=op, b=op.dtype)) for op in reduced]
        + [("drain", Spec(out=dtype)) for dtype in (BOOL, FP64)]
    )


def forms() -> list[tuple[str, Spec]]:
    kinds = ("mask_words", "list_words", "mask_list", "between", "scatter", "compact", "gather")
    numbers = [(kind, Spec()) for kind in ("frontier_edges", "row_edges", "deal", "unwrite", "move_bits")]
    return [*numbers, *((kind, Spec(b=TYPES[i % 5])) for i, kind in enumerate(kinds * 2))]


def matrices() -> list[tuple[str, Spec]]:
    kinds = ("matrix_select", "matrix_apply")
    ops = [(select.tril[FP32], FP32), (select.valuene[INT64], INT64)]
    found = [
        (kind, Spec(op=op, a=a, out=a if kind != "matrix_apply" else BOOL, ptr="int64"))
        for op, a in ops
        for kind in kinds
    ]
    scaled = [(binary.first[INT64], INT64, BOOL, "left"), (binary.lt[INT64], INT64, INT64, "right")]
    scaled += [(binary.minus[FP32], FP32, INT32, side) for side in ("left", "right")]
    found += [("matrix_scale", Spec(op=op, a=a, b=b, out=op.return_type, bound=side)) for op, a, b, side in scaled]
    merged = [Spec(op=op, a=FP64, b=INT32, out=FP64) for op in (None, binary.plus[FP64])]
    merged.append(Spec(op=binary.minus[FP32], a=FP32, b=INT64, out=FP64, lone="defaults"))
    merged.append(Spec(op=binary.secondj[INT64], a=FP32, b=INT64, out=INT64))
    found += [("move_rows", Spec(a=a, ptr=ptr, iso=ptr == "int64")) for a in UNSIGNED for ptr in ("int32", "int64")]
    found += [("look_up", Spec(a=a, ptr=ptr)) for a, ptr in ((UNSIGNED[0], "int32"), (UNSIGNED[-1], "int64"))]
    return [*found, ("merge_count", Spec()), *(("merge", spec) for spec in merged)]


def mxm() -> list[tuple[str, Spec]]:
    ops = [semiring.plus_times[FP32], semiring.plus_pair[INT64], semiring.any_secondi[INT64], semiring.min_plus[INT32]]
    ops += [semiring.plus_firsti[INT64], semiring.any_pair[BOOL]]
    specs = [Spec(op=op, a=FP32, b=INT32, out=op.return_type, iso=op.name == "any_pair") for op in ops]
    found = [(kind, spec) for spec in specs for kind in ("mxm_dot", "mxm_dense", "mxm_expand")]
    runs = [monoid.plus[FP32], monoid.min[INT64], binary.minus[INT32], binary.lt[FP64]]
    return [*found, *(("combine_runs", Spec(op=op, b=op.dtypes[0])) for op in runs)]


def relaxations() -> list[tuple[str, Spec]]:
    ops = [semiring.min_plus[FP32], semiring.max_min[FP64], semiring.bor_band[UINT64], semiring.min_first[INT32]]
    specs = [
        Spec(op=op, a=a, b=op.monoid.dtype, out=op.monoid.dtype, flip=bool(i % 2), ptr=ptr, idx=ptr)
        for i, (op, a, ptr) in enumerate(zip(ops, (FP32, INT32, UINT64, BOOL), ("int32", "int64") * 2, strict=True))
    ]
    specs[3] = specs[3]._replace(partial=True, worker=256)  # the ordinary run compiles this one, and the first
    specs += [specs[1]._replace(partial=True), specs[0]._replace(worker=1)]
    specs += [specs[2]._replace(spread=True), specs[0]._replace(spread=True, worker=256)]
    told = [("drain", Spec(out=FP32, partial=True)), ("drain", Spec(out=UINT64, idx="int64", partial=True))]
    return told + [(k, spec) for spec in specs for k in ("relax_begin", "relax", "relax_receive", "relax_end")]


INSTANCES = products() + writes() + maps() + forms() + matrices() + mxm() + relaxations()
HERE = [kind for kind in KINDS if kind not in gpu.ABSENT]


@pytest.mark.few(28)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", HERE)
def test_every_kind_compiles(kind, arch, tmp_path, monkeypatch):
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path))
    specs = [spec for of, spec in INSTANCES if of == kind]
    assert specs
    few = 1 if LONG else (len(specs) + 1) // 2 if arch == "sm_90" else len(specs)
    for spec in specs[::few]:  # the text differs by what is compiled in
        assert gpu.compile(kind, spec, arch).startswith(b"\x7fELF")


@pytest.mark.parametrize("kind", HERE)
def test_numbers_wait_for_some_kernels(kind):
    assert any(each.name in ("late", "alate", "blate") for each in FUNCTIONS[kind]) == (kind in gpu_launch.WAIT)


def test_all_agree_on_how_many_owners_a_vector_may_have():
    text = gpu.source("pull_far", next(spec for of, spec in INSTANCES if of == "pull_far"))
    assert f"const int OWNERS = {gpu_launch.OWNERS};" in text and gpu_launch.OWNERS == needs.OWNERS


def test_numbers_may_wait_on_the_device():
    """Their address comes at the end; a 0 of their type stands for them."""
    waits, spec = Deferred(np.ones(1, np.float32)), Spec(op=select.valuege[FP32], b=FP32)
    for kind, op, thunk, end in [
        ("select", spec, waits, waits.array),
        ("select", spec, 2.5, 0),
        ("select", Spec(op=select.tril[FP32], b=FP32), 3, 0),
        ("select_list", spec, waits, waits.array),
        ("apply", Spec(op=unary.exp[FP64], b=INT32, out=FP32), waits, 0),  # which has no thunk
    ]:
        place, given = KINDS[kind].index("thunk"), [1] * len(KINDS[kind].names)
        given[place] = thunk
        *values, last = gpu_launch._scalars(kind, op)(tuple(given))
        assert len(values) == len(given) and last is end and values[place] == (0 if thunk is waits else thunk)
        assert kind == "apply" or type(values[place]) is (np.int64 if thunk == 3 else np.float32)
    chain = Spec(op=binary.minus[FP32], a=FP32, b=FP32, out=FP32, lone="defaults")
    given = [1] * len(KINDS["ewise"].names)
    given[KINDS["ewise"].index("bdefault")] = waits
    *_, a, b = gpu_launch._scalars("ewise", chain)(tuple(given))
    assert a == 0 and b is waits.array
    other, before = Spec(op=select.valuege[FP64], b=FP64), Spec(op=binary.plus[FP32], a=FP32, bound="right")
    for kind, op in (("select", other), ("matrix_apply", before)):  # of another type; in a kernel that needs it before
        given = [1] * len(KINDS[kind].names)
        given[KINDS[kind].index("thunk")] = waits
        with pytest.raises(TypeError):
            gpu_launch._scalars(kind, op)(tuple(given))


def test_atomics_follow_from_the_formula():
    native = {monoid.plus: "sum", monoid.min: "min", monoid.max: "max"}
    for op, form in native.items():
        assert {atomic_form(op[dtype]) for dtype in (INT32, INT64, FP32, FP64)} == {form}
    assert [atomic_form(op[BOOL]) for op in (monoid.lor, monoid.land, monoid.lxor, monoid.lxnor)] == [
        "or",
        "and",
        "xor",
        "xnor",
    ]
    assert atomic_form(monoid.times[INT64]) == "cas"
    wide = [monoid.plus[UINT64], monoid.max[UINT32], monoid.bor[UINT32], monoid.band[UINT64], monoid.bxor[UINT64]]
    assert [atomic_form(op) for op in wide] == ["sum", "max", "or", "and", "xor"]
    assert {atomic_form(op) for op in (monoid.plus[INT8], monoid.min[UINT16], monoid.bxnor[UINT64])} == {"cas"}


COMPILED = (BOOL, INT8, UINT16, INT64, UINT64, FP32, FP64)


def test_every_operator_compiles(tmp_path, monkeypatch):
    """Each built-in operator on a few types, and each function of math, all in one text."""
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path))
    programs = {}
    for cls in (UnaryOp, BinaryOp, IndexUnaryOp, SelectOp):
        for op in cls.registry.values():
            types = [dtype for dtype in COMPILED if isinstance(op, cls) and dtype in op]
            programs.update({op[dtype].program.key: op[dtype].program for dtype in types})
    programs.update({case.program.key: case.program for _, case in test_user_math.cases()})
    text = "\n".join(to_cuda(program, f"f{i}") for i, program in enumerate(programs.values()))
    for arch in ("sm_80", "sm_90"):
        assert nvrtc.compile_cubin(text, arch).startswith(b"\x7fELF")


def test_the_text_of_entries_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path))
    assert nvrtc.compile_cubin(entries.TEXT, "sm_90", soon=not LONG).startswith(b"\x7fELF")


def test_cubins_are_cached_by_text_and_options(store):
    text = 'extern "C" __global__ void f(float *x) { *x = *x * *x + *x; }'
    plain, again = (nvrtc.compile_cubin(text, "sm_90") for _ in range(2))
    fused = nvrtc.compile_cubin(text, "sm_90", fmad=True)
    assert plain == again != fused
    assert len(list(store.rglob("*.cubin"))) == 2
    assert not list(store.rglob("*.tmp"))


def test_errors_carry_the_log(store):
    with pytest.raises(Panic, match="nonsense"):
        nvrtc.compile_cubin("nonsense;", "sm_90")
    assert not list(store.rglob("*.cubin"))


def small_program():
    A = gb.Matrix.from_coo([0, 1, 2, 3], [1, 2, 3, 0], True)
    q, seen = gb.Vector(bool, 4), gb.Vector(int, 4)
    q[0] = True
    for depth in range(3):
        seen(q.S) << depth
        q(~seen.S, gb.replace) << gb.semiring.any_pair(q @ A)
    x = gb.Vector.from_dense(np.ones(4, np.float32))
    x << gb.semiring.plus_second(A @ x)


def test_kernels_are_compiled_ahead(store):
    session = gb.init("cpu:2")
    count = gb.compile_ahead(small_program, "sm_90")
    names = {path.name for path in (store / "cuda").glob("*.cubin")}
    assert 5 < len(names) <= count and not (store / "cpu").exists()
    assert gb.compile_ahead(small_program, "sm_90") == count  # from the cache
    assert names == {path.name for path in (store / "cuda").glob("*.cubin")}
    assert gb.settings.session() is session and gb.settings.rehearsal is None


def test_rehearsals_push_into_bitmaps_as_gpus_do(monkeypatch):
    """What follows a push is asked for in the form that a GPU would have."""
    rows, cols = np.random.default_rng(4).integers(0, 400, (2, 3000))
    ids = np.arange(0, 400, 10)
    found = []
    for spec in ("cpu:1", "cuda:0"):
        with ahead.rehearsed({}) if spec == "cuda:0" else nullcontext():
            session = gb.init(spec)
            monkeypatch.setattr(session.kernels, "costs", session.kernels.costs._replace(pull_edge=1.0))  # always push
            A = gb.Matrix.from_coo(rows, cols, 1, nrows=400, ncols=400, dup_op="first")
            q = gb.Vector.from_coo(ids, np.arange(len(ids)), size=400)
            results = [op(q @ A).new() for op in (gb.semiring.min_plus, gb.semiring.any_pair)]
            found.append([(v._store.form, v.nvals, v.to_dict()) for v in results])
    assert [form for form, _, _ in found[0]] == ["bitmap", "bitmap"]
    assert found[0] == found[1]


def test_without_a_gpu_and_an_architecture_cpu_kernels_are_compiled(store, monkeypatch):
    monkeypatch.setattr(cuda, "available", lambda: 0)
    session, interpret = gb.init("cpu:2"), gb.settings.interpret
    count = gb.compile_ahead(small_program)
    names = {path.name for path in (store / "cpu").glob("*.o")}
    assert 4 < count == len(names) and not (store / "cuda").exists()
    assert gb.compile_ahead(small_program) == count  # from the cache
    assert names == {path.name for path in (store / "cpu").glob("*.o")}
    assert gb.settings.session() is session and gb.settings.interpret == interpret


BEHIND = re.compile(r"(\w+)\W*(?:&&|\|\||\?)[^;{}]*?__(?:ballot|any|all|shfl|match|sync)")


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.cu*")), ids=lambda path: path.name)
def test_no_vote_is_behind_a_condition(path):
    """All lanes must call a vote or a shuffle; those that a `&&` stops short would not. Constants stop all or none."""
    found = [match for match in BEHIND.finditer(path.read_text()) if not match[1].isupper()]
    assert not found, [match[0] for match in found]


def test_votes_behind_conditions_are_found():
    assert BEHIND.search("more = more && !(__ballot_sync(ALL, stop) & group);")
    assert BEHIND.search("x = on ? __shfl_sync(ALL, v, 0) : 0;") and not BEHIND.search("f(a && b); __syncwarp();")


def test_kernels_of_a_plan_are_compiled_side_by_side(store, monkeypatch):
    """What a thread has begun is what is asked for then, and what is wrong is raised there."""
    monkeypatch.setattr(nvrtc, "_begun", {})
    gb.init("cpu:1")
    A, q = gb.Matrix.from_coo([0, 1], [1, 2], [1.0, 2.0], nrows=3, ncols=3), gb.Vector.from_coo([0], [1.0], size=3)
    w = semiring.min_plus(q @ A).new()
    w(~q.S, binary.plus) << semiring.plus_times(q @ A)
    steps = list(gb.settings.session().plans.values())[-1].steps
    kernels = gpu.GpuKernels(SimpleNamespace(devices=[SimpleNamespace(arch="sm_90", gpu=0)]))
    C = A.dup()
    C(A.S) << select.valuegt(A, 1)
    kernels.ahead(list(gb.settings.session().plans.values())[-1].steps)  # of matrices: nothing
    assert not nvrtc._begun
    kernels.ahead(steps)
    begun = dict(nvrtc._begun)
    asked = [(step.kind, step.spec) for step in steps if step.kind in ("push", "drain", "write_list", "write")]
    assert len(begun) == len(asked) > 1
    for kind, spec in asked:
        assert gpu.compile(kind, spec, "sm_90").startswith(b"\x7fELF")
    assert not nvrtc._begun and all(future.done() for future in begun.values())
    assert {file.name for file in (store / "cuda").iterdir()} >= set(begun)
    _starts.cache_clear()  # as another process
    kernels.ahead(steps)
    assert not nvrtc._begun
    nvrtc.begin("nonsense;", "sm_90")
    with pytest.raises(Panic, match="does not compile"):
        nvrtc.compile_cubin("nonsense;", "sm_90")


def test_functions_of_arrays_are_those_that_devices_run(tmp_path, monkeypatch):
    """Each is compiled, is told of, and runs."""
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path))
    text = "".join(Path(part.__file__).read_text(encoding="utf-8") for part in (cuda, arrays, rows))
    asked = re.findall(r'run\(f?"([a-z_]+)|name = f"([a-z_]+)|_flag\(f?"([a-z_]+)', text)
    names, compiled = arrays.functions(), nvrtc.compile_cubin(arrays.TEXT, "sm_90", soon=not LONG)
    for name in {"".join(one) for one in asked}:
        assert any(re.fullmatch(rf"{name}\d*", known) for known in names), name
    assert compiled.startswith(b"\x7fELF")
    for name in names:
        assert name.encode() + b"\0" in compiled, name
