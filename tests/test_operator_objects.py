"""Operators as objects: shared, printed, called, and quick to look up."""

import subprocess
import sys

import graphblas as pg
import numpy as np
import pytest

import gbgpu
from gbgpu import agg, binary, indexunary, monoid, select, semiring, unary
from gbgpu.dtypes import BOOL, FP32, FP64, INT32, INT64
from gbgpu.semiring._types import SUPPORTED


def test_typed_operators_are_one_object_per_types():
    assert binary.plus[INT32] is binary.plus["INT32"] is binary.plus[np.int32] is binary.plus[INT32, INT32]
    assert binary.plus[INT32, FP32] is binary.plus[FP64] and semiring.min_plus[BOOL, FP32] is semiring.min_plus[FP32]
    assert semiring.any_pair[bool] is semiring.any_pair[BOOL] and semiring.any_pair[bool].return_type is BOOL
    assert semiring.any_pair[bool, bool].return_type is INT64
    for typed in (binary.plus[INT32], semiring.min_plus[FP64], monoid.min[INT64], select.tril[FP32], unary.abs[INT64]):
        assert typed == typed and len({typed, typed}) == 1
    assert binary.plus[INT32].monoid is monoid.plus[INT32] and binary.first[INT32].monoid is None


def test_repr_as_python_graphblas():
    assert repr(binary.plus[INT32]) == repr(pg.binary.plus["INT32"]) and repr(select.tril) == repr(pg.select.tril)
    assert repr(monoid.min[FP32]) == "monoid.min[FP32]" and repr(semiring.min_plus[INT64]) == "min_plus[INT64]"
    assert repr(semiring.min_plus) == "semiring.min_plus" and repr(agg.sum) == "agg.sum" and repr(INT32) == "INT32"


def test_aggregators():
    for name in ("sum", "prod", "min", "max", "any", "all"):
        theirs = getattr(pg.agg, name)
        for dtype in (dtype for dtype in SUPPORTED if dtype.name in theirs):
            assert getattr(agg, name)[dtype].return_type.name == theirs[dtype.name].return_type.name
    assert agg.count[FP64].return_type is INT64


class Recorder:
    """Stands for a matrix or an expression: remembers what an operator asked of it."""

    def __getattr__(self, name):
        if not name.startswith("_apply"):
            raise AttributeError(name)
        return lambda *args, **kwargs: (name, *args, kwargs)


def test_calls_go_to_the_object():
    x = Recorder()
    assert semiring.min_plus[INT32](x) == ("_apply_semiring", semiring.min_plus[INT32], {})
    assert semiring.min_plus(x)[1] is semiring.min_plus
    assert binary.plus(x, left_default=0) == ("_apply_binary", binary.plus, {"left_default": 0})
    assert binary.plus(x, 3) == binary.plus(x, right=3) == ("_apply_unary", binary.plus, {"right": 3})
    assert binary.plus(2, x) == ("_apply_unary", binary.plus, {"left": 2})
    assert monoid.plus(x) == ("_apply_binary", monoid.plus, {})
    assert unary.abs[INT32](x) == ("_apply_unary", unary.abs[INT32], {})
    assert select.tril(x, 1) == ("_apply_select", select.tril, 1, {})
    assert indexunary.rowindex(x, 1) == ("_apply_unary", indexunary.rowindex, {"right": 1})


CALLS = [semiring.min_plus, binary.plus, unary.abs, select.tril, monoid.plus, indexunary.index]


@pytest.mark.parametrize("call", CALLS)
def test_calls_on_the_wrong_thing(call):
    with pytest.raises(TypeError, match="Bad type when calling"):
        call([1, 2])


def calls(function):
    """How many Python functions a call of `function` enters, itself apart."""
    entered = []
    sys.setprofile(lambda frame, event, argument: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(entered) - 1


def test_lookups_and_calls_are_short():
    class Quick:
        def _apply_semiring(self, op):
            return op

    any_pair, plus, quick = semiring.any_pair, binary.plus, Quick()
    for function, most in ((lambda: any_pair(quick), 2), (lambda: plus[INT32], 1), (lambda: plus[INT32, FP64], 2)):
        function()  # the first look-up makes what is kept
        assert calls(function) <= most


def test_import_is_light():
    """The package alone takes no compiler, and nothing of gbgpu but itself and errors."""
    code = f"""
import sys, types, numpy
gbgpu = sys.modules["gbgpu"] = types.ModuleType("gbgpu")
gbgpu.__path__ = {list(gbgpu.__path__)!r}
import gbgpu.semiring
assert "llvmlite" not in sys.modules
print(*sorted({{name.split(".")[1] for name in sys.modules if name.startswith("gbgpu.")}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"semiring", "errors", "settings"}
