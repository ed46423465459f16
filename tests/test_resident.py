"""One kernel for a whole loop: where its blocks meet, what goes with what, and that it compiles without a GPU."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from programs import WIDE

from gbgpu import semiring
from gbgpu.device import nvrtc, rounds
from gbgpu.engine.loop.condition import CudaCondition, Limits
from gbgpu.kernels import resident
from gbgpu.kernels.gpu_functions import FUNCTIONS
from gbgpu.kernels.gpu_source import source
from gbgpu.kernels.hazards import Launch
from gbgpu.kernels.interface import MASKED, XFULL, XLIST, Spec
from gbgpu.kernels.resident import Order, Program, Round, Unknown
from gbgpu.semiring._types import BOOL, INT64

SPEC = Spec(op=semiring.any_pair[BOOL], a=BOOL, b=BOOL, out=BOOL, flip=True, iso=True)


def words(n: int = 64) -> np.ndarray:
    return np.zeros(n, np.int64)


class Body:
    """A body as it is captured: arrays by their names, the same one for the same name."""

    def __init__(self):
        self.arrays, self.parts = {}, []
        self.state, self.counters, self.used = words(8), words(16), count()
        self.gpu = 0

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays.setdefault(name, words())

    def counter(self) -> np.ndarray:
        i = next(self.used)
        return self.counters[i : i + 1]

    def does(self, kind: str, spec: Spec, **given) -> None:
        """A kernel with these arguments; others are arrays that nobody else has."""
        kinds = [each.name for each in FUNCTIONS[kind]]
        ints = {"n": 64, "flags": 0, "p": 1, "lanes": 4, "limit": 9, "row0": 0, "own_lo": 0, "own_hi": 64}
        ints |= dict.fromkeys(("xstride", "astride", "tstride", "bstride"), 1)
        args = [given.get(name, ints.get(name, words(4))) for name in kinds]
        args = [np.bool_(False) if name == "start" else arg for name, arg in zip(kinds, args, strict=True)]
        self.parts.append(Launch(source(kind, spec), kind, tuple(args), gpu=self.gpu))

    def turns(self, reads: list[str | np.ndarray], copies: list[tuple] = (), other: str = "") -> Round:
        """The end of a round, which looks at the first of these arrays, and copies words from one to the other."""
        condition = CudaCondition()
        names = [condition.array(self[each] if isinstance(each, str) else each) for each in reads]
        pairs = [(condition.array(to), condition.array(of), 8) for to, of in copies]
        limits = Limits([], [], [f"{names[0]}[0] {other}"] * bool(other), [])
        text = condition.kernel([f"{names[0]}[0] == 0"], pairs, limits)
        used = next(self.used)
        own = np.uint64(1), self.state, 1 << 40, 100, self.counters, used
        self.parts.append(Launch(text, "turn", (*own, *condition.arrays), 0, True))
        return Round(self.parts, [self.state, *(to for to, _ in copies)], {0: self.counters[:used]})


def thin(body: Body, other: str = "") -> Round:
    """Levels by pushes: levels(q.S) << i; q(~levels.S, replace) << any_pair(q @ A)"""
    write = Spec(a=INT64, b=INT64)
    body.does("write_list", write, tcount=body["q"], tslots=body["slots"], tvals=body.state, tstride=0,
              cvals=body["levels"], cwords=body["words"], count=body["count"])  # fmt: skip
    touched = body.counter()
    names = {"acc_vals": "acc", "acc_words": "marks", "touched": "touched"}
    reached = {name: body[each] for name, each in names.items()} | {"touched_count": touched}
    body.does("push", SPEC, flags=XLIST | MASKED, count=body["q"], slots=body["slots"], mwords=body["words"], **reached)
    body.does("drain", Spec(out=BOOL, iso=True), out_slots=body["slots"], out_counts=touched, **reached)
    return body.turns([touched], [(body["q"], touched)], other)


def wide(body: Body, other: str = "") -> Round:
    """The same by pulls."""
    write = Spec(a=INT64, b=INT64)
    body.does("write", write, cvals=body["levels"], cwords=body["words"], twords=body["bits"], mwords=body["bits"])
    found = body.counter()
    masked = {"flags": XFULL | MASKED, "mwords": body["words"]}
    body.does("pull", SPEC, xwords=body["bits"], out_words=body["new"], count=found, **masked)
    body.parts.append(Launch("", "copy_bytes", (body["bits"], body["new"], 512)))
    return body.turns([found], [], other)


def calls(program: Program) -> str:
    """What the kernel does, in order."""
    names = []
    for line in program.text[program.text.index("void __launch_bounds__(256, 4)\nresident") :].splitlines():
        if "meet_all(" in line:
            names.append("all")
        elif "meet(" in line:
            names.append("meet")
        elif "::" in line:
            names.append(line.split("::")[1].split("(")[0])
    return " ".join(names)


def test_a_thin_round_meets_twice():
    program = Program([thin(Body())])
    assert calls(program) == "drain write_list meet push meet" and program.meetings == 2
    for arch in ("sm_80", "sm_90"):
        assert nvrtc.compile_cubin(program.text, arch, soon=not WIDE)


def test_what_tells_of_the_end_comes_before_it():
    """A round whose end looks at what the last part writes has nothing left to do after it."""
    body = Body()
    body.does("write_list", Spec(a=INT64, b=INT64), cvals=body["v"], count=body["c"])
    body.does("write_list", Spec(a=INT64, b=INT64), cvals=body["w"], count=body["d"])
    assert calls(Program([body.turns(["d"])])) == "write_list write_list meet"
    body = Body()
    body.does("write_list", Spec(a=INT64, b=INT64), cvals=body["v"], count=body["c"])
    body.does("write_list", Spec(a=INT64, b=INT64), tslots=body["v"], cvals=body["w"], count=body["d"])
    assert calls(Program([body.turns(["d"])])) == "write_list meet write_list meet"


def test_single_values_are_done_at_a_meeting():
    body = Body()
    body.parts.append(Launch("", "copy_bytes", (body["a"], body["b"], 8)))
    body.does("write_list", Spec(a=INT64, b=INT64), tvals=body["a"], cvals=body["v"])
    body.parts.append(Launch("", "set_bytes", (body["a"], 16, 0)))
    program = Program([body.turns(["c"])])
    assert calls(program) == "meet write_list meet"
    assert "copy_few" in program.text and "set_few" in program.text
    assert nvrtc.compile_cubin(program.text, "sm_90", soon=not WIDE)


def pushed_apart(body: Body, spec: Spec) -> Round:
    """Parts of a GPU push, each into a workspace and a list of its own, and what all reached is combined."""
    counts = [body.counter() for _ in range(3)]
    for me in "01":
        reached = {name: body[name + me] for name in ("acc_vals", "acc_words", "touched")}
        body.does("push", spec, flags=XLIST, count=body["q" + me], touched_count=counts[int(me)], **reached)
        body.does("drain", spec, out_slots=body["slots" + me], touched_count=counts[int(me)], **reached)
    all = {name: body[name] for name in ("acc_vals", "acc_words", "touched")} | {"touched_count": counts[2]}
    for me in "01":
        one = Spec(op=spec.op.monoid, iso=spec.iso)
        body.does("combine", one, count=counts[int(me)], slots=body["slots" + me], **all)
    return body.turns([counts[2]])


def test_what_does_not_wait_goes_side_by_side():
    program = Program([pushed_apart(Body(), SPEC)])
    assert calls(program) == "push push meet drain drain meet combine combine meet"
    assert nvrtc.compile_cubin(program.text, "sm_90", soon=not WIDE)
    summed = Spec(op=semiring.plus_times[INT64], a=INT64, b=INT64, out=INT64, flip=True)  # in the order of the parts
    assert calls(Program([pushed_apart(Body(), summed)])) == "push push meet drain drain meet combine meet combine meet"


def test_two_kinds_of_rounds_compile():
    body, other = Body(), Body()
    other.arrays = body.arrays
    rounds = [thin(body, "> 9"), wide(other, "< 5")]
    to_bits, to_list = Body(), Body()
    to_bits.does("list_words", Spec(b=BOOL), count=body["q"], slots=body["slots"], out_words=body["bits"])
    found = to_list.counter()
    to_list.does("compact", Spec(b=BOOL), xwords=body["bits"], out_slots=body["slots"], out_count=found)
    crossings = [Round(each.parts, (), {0: each.counters[: next(each.used)]}) for each in (to_bits, to_list)]
    program = Program(rounds, crossings)
    assert "kind = 1;" in program.text and "kind = 0;" in program.text and "#define CROSSES" in program.text
    for arch in ("sm_80", "sm_90"):
        assert nvrtc.compile_cubin(program.text, arch, soon=not WIDE)


def test_what_a_guard_guards():
    body, condition = Body(), CudaCondition()
    text = condition.guarding(f"{condition.array(body['g'])}[0] > 0")
    body.parts.append(Launch(text, "guard", (np.uint64(1), words(1), *condition.arrays), 0, True))
    body.does("write_list", Spec(a=INT64, b=INT64), cvals=body["v"])
    body.parts.append(Launch("", "end"))
    program = Program([body.turns(["c"])])
    assert calls(program) == "meet write_list meet meet" and "if (told == 1) {" in program.text
    assert nvrtc.compile_cubin(program.text, "sm_90", soon=not WIDE)


def pushed_on_two(body: Body) -> Round:
    """Two GPUs push, read each other's bins, and combine them; the first one tells how many are left."""
    write = Spec(a=INT64, b=INT64)
    counters = {gpu: words(16) for gpu in (0, 1)}
    for body.gpu in (0, 1):
        me = str(body.gpu)
        body.does("write_list", write, tcount=body["q" + me], tslots=body["slots" + me], tvals=body.state, tstride=0,
                  cvals=body["levels" + me], cwords=body["words" + me], count=body["count" + me])  # fmt: skip
        lists = {"count": body["q" + me], "slots": body["slots" + me]}
        body.does("push", SPEC, flags=XLIST, acc_words=body["bins" + me], **lists)
    for body.gpu in (0, 1):
        me, other = str(body.gpu), str(1 - body.gpu)
        body.parts.append(Launch("", "copy_bytes", (body["got" + me], body["bins" + other], 512), gpu=body.gpu))
        body.parts.append(Launch("", "copy_bytes", (body["n" + me], body["bins" + other][:1], 8), gpu=body.gpu))
        body.does("list_words", Spec(b=BOOL), count=body["n" + me], slots=body["got" + me], out_words=body["new" + me])
        body.does("write_list", write, tslots=body["new" + me], cvals=body["next" + me], count=counters[body.gpu][:1])
    one = body.turns([counters[0][:1], counters[1][:1]])
    return one._replace(counters={gpu: array[:1] for gpu, array in counters.items()})


def test_gpus_meet_where_one_reads_what_another_one_wrote():
    round = pushed_on_two(Body())
    programs = [Program([round], (), (0, 1), me) for me in (0, 1)]
    work = "write_list push all copy_bytes meet list_words meet write_list all"
    for program, arch in zip(programs, ("sm_80", "sm_90"), strict=True):
        assert calls(program) == work, program.text[-3000:]
        for one in ("sm_80", "sm_90") if WIDE else (arch,):
            assert nvrtc.compile_cubin(program.text, one, soon=not WIDE)
    assert "::turn(" in programs[0].text.split("resident(const")[1] and "::turn(" not in programs[1].text
    assert "#define GPUS 2" in programs[0].text and "define GPUS" not in Program([thin(Body())]).text
    with pytest.raises(Unknown, match="GPU 1"):
        Program([round])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_how_gpus_wait_for_each_other_compiles(arch):
    for gpus in (2, 8):
        assert nvrtc.compile_ptx(rounds.meeting(gpus), arch)


def test_streams_meet_where_one_gpu_uses_what_another_one_has_used():
    array, other, order = words(64), words(64), Order((0, 1))
    writes = [Launch("", "set_bytes", (array, 512, 0), gpu=gpu) for gpu in (0, 1)]
    reads = [Launch("", "copy_bytes", (other[i : i + 1], array, 8), gpu=i) for i in (0, 1)]
    assert not order.disturbed(writes[0]) and not order.disturbed(reads[0])
    assert order.disturbed(reads[1]) and not order.disturbed(reads[0])  # reads do not disturb each other
    assert order.disturbed(writes[0]) and order.disturbed(writes[1])
    order.met()
    assert not order.disturbed(reads[0])


def test_what_has_no_text_is_refused(monkeypatch):
    body = Body()
    body.parts.append(Launch("", "cumsum", (body["a"],)))
    with pytest.raises(Unknown, match="cumsum"):
        Program([body.turns(["a"])])
    with pytest.raises(Unknown, match="without an end"):
        Program([Round([Launch("", "fill8", (body["a"], np.int64(1), 64))], [body.state], {})])
    monkeypatch.setattr(resident, "MOST", 20)
    with pytest.raises(Unknown, match="arguments"):
        Program([thin(Body())])


def test_the_text_does_not_depend_on_the_data():
    assert Program([thin(Body())]).text == Program([thin(Body())]).text


def test_machine_code_is_made_beside_what_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path))
    text = 'extern "C" __global__ void nothing_much(int *x) { *x = 5; }'
    code = resident.Code.of(text, "sm_80")
    assert not code.ready(False) and resident.Code.of(text, "sm_80") is code
    for _ in range(resident.OFTEN):
        code.wanted(0.0)
    code.begun.result(60)
    assert code.ready(False) and resident.Code(text, "sm_80").ready(False)
    later = resident.Code(text, "sm_90")
    assert not later.ready(False)
    later.begin()
    assert later.ready(True) and resident.Code(text, "sm_90").ready(False)


def test_what_cannot_be_compiled_aside_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path))
    code = resident.Code.of("this is no kernel", "sm_80")
    with pytest.warns(RuntimeWarning, match="goes on as it went.*does not compile"):
        for _ in range(resident.OFTEN):
            code.wanted(0.0)
        nvrtc.settle()
    assert not code.ready(False)
