"""What kinds of kernels are said to take and to write, held against the texts of both backends."""

from __future__ import annotations

import ast
import re
from types import SimpleNamespace

import pytest
from test_cuda_compile import INSTANCES

from gbgpu.device import nvrtc
from gbgpu.kernels import cpu_source, gpu, gpu_launch
from gbgpu.kernels.gpu_functions import BYTE_FUNCTIONS, FUNCTIONS
from gbgpu.kernels.gpu_source import SOURCES
from gbgpu.kernels.kinds import CONSTANTS, KINDS, argument

CPU = [kind for kind in KINDS if kind not in ("pull_stream", "pull_slices", "pull_far")]
HEAD = r"KERNEL\w*(?:\([^)]*\))?\s+(\w+)\s*\(([^)]*)\)"


def declared() -> dict[str, list[str]]:
    """The parameters of each function of the CUDA texts."""
    found = {}
    for text in (nvrtc.BYTES, *(path.read_text() for path in sorted(SOURCES.glob("*.cu")))):
        text = text.replace("\\\n", " ")
        for name, parameters in re.findall(HEAD, text):
            names = re.findall(r"^SHORT_ROWS\((\w+)", text, re.MULTILINE) if name == "name" else [name]
            found.update(dict.fromkeys(names, [" ".join(each.split()) for each in parameters.split(",")]))
    return found


def test_functions_of_cuda_texts_take_what_is_said():
    """Names, types, and `const` for what is only read, in order."""
    texts = declared()
    assert {*texts} == {*FUNCTIONS} - {*gpu.ABSENT}
    for function, parameters in texts.items():
        said = []
        for each in FUNCTIONS[function]:
            const = "const " if each.array and not each.written else ""
            said.append(f"{const}{each.type} {each.name}".replace("* ", "*"))
        assert [each.replace("const __grid_constant__ ", "") for each in parameters] == said, function
    assert BYTE_FUNCTIONS == {name for name, _ in re.findall(HEAD, nvrtc.BYTES)}


def changed(kind: str) -> tuple[set[str], set[str]]:
    """The arguments that CPU texts of a kind store to; and those that they hand to other functions."""
    stored, handed = set(), set()
    of = "mxm_dot" if kind in gpu.ABSENT else kind  # whose Spec means the same
    for _, spec in [each for each in INSTANCES if each[0] == of][:12]:
        kernel = next(
            node
            for node in ast.parse(cpu_source.source(kind, spec)).body
            if isinstance(node, ast.FunctionDef) and node.name == "kernel"
        )
        assert [each.arg for each in kernel.args.args] == [*KINDS[kind].names]
        for node in ast.walk(kernel):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                stored.add(getattr(node.value, "id", ""))
            if isinstance(node, ast.Call):
                handed |= {each.id for each in node.args if isinstance(each, ast.Name)}
    return stored & {*KINDS[kind].names}, handed


@pytest.mark.parametrize("kind", CPU)
def test_kernels_of_cpus_write_what_is_said(kind):
    stored, handed = changed(kind)
    said = {each.name for each in KINDS[kind].arguments if each.written}
    assert stored <= said
    restored = {"acc_vals"} if kind == "drain" else set()  # GPUs do, where values have to be neutral
    assert said - stored - restored <= handed


def test_how_arguments_are_written():
    assert argument("own out out_slots") == ("out_slots", "IDX *", "out", True)
    assert argument("n") == ("n", "i64", "in", False) and not argument("n").array
    assert argument("inout bad: i64 *").written and argument("adds touched").role == "adds"
    with pytest.raises(KeyError):
        argument("out nothing")
    roles = {each.role for kind in KINDS.values() for each in kind.arguments}
    assert roles == {"in", "out", "inout", "adds"}
    numbers = {each.name for kind in KINDS.values() for each in kind.arguments if each.type == "i64"}
    assert numbers >= CONSTANTS


def test_what_kernels_write():
    """The arguments that come last are results, but for counts and stats, and what is restored on the way."""
    results = {name: [kind.names[i] for i in sorted(kind.written)] for name, kind in KINDS.items()}
    assert results["pull"] == ["out_vals", "out_words", "count", "stats"]
    assert results["push"] == ["acc_vals", "acc_words", "touched", "touched_count", "stats"]
    assert results["write"] == results["write_list"] == ["cvals", "cwords", "count"]
    assert results["unwrite"] == ["cwords", "count"]
    assert results["ewise"] == ["out_vals", "out_words", "count"] and results["reduce"] == ["out_vals", "out_words"]
    assert results["combine"] == ["acc_vals", "acc_words", "touched", "touched_count"]
    assert results["apply"] == ["out_vals"] and results["frontier_edges"] == ["out"]
    assert all(results.values())


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in INSTANCES} - {*gpu.ABSENT}))
def test_every_kind_has_what_starts_it_on_gpus(kind):
    """How many threads a call can use is known by the names of its arguments."""
    spec = next(spec for each, spec in INSTANCES if each == kind)
    device = SimpleNamespace(launch=None, processors=1, fit=lambda *_: 1)
    assert callable(gpu_launch.launcher(None, device, lambda name: name, kind, spec))
