"""Python's numbers become exactly what they are, or are refused; NumPy's arrays are cast as everywhere."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import gbgpu as gb
from gbgpu.dtypes import BOOL, lookup_dtype

TOP = 2**64 - 1


def built(values, dtype):
    made = gb.Vector(dtype, len(values))
    made.build(list(range(len(values))), values)
    return made


def placed(values, dtype):
    made = gb.Vector(dtype, len(values))
    made[:] = values
    return made


def picked(values, dtype):
    made = gb.Matrix(dtype, 2, len(values))
    made[1, list(range(len(values)))] << values
    return made


GATES = {
    "from_coo": lambda x, t: gb.Vector.from_coo(range(len(x)), x, t),
    "from_pairs": lambda x, t: gb.Vector.from_pairs(list(enumerate(x)), t),
    "from_dict": lambda x, t: gb.Vector.from_dict(dict(enumerate(x)), t),
    "from_dense": lambda x, t: gb.Vector.from_dense(x, dtype=t),
    "Matrix.from_coo": lambda x, t: gb.Matrix.from_coo(range(len(x)), range(len(x)), x, t),
    "Matrix.from_dense": lambda x, t: gb.Matrix.from_dense([x], dtype=t),
    "from_edgelist": lambda x, t: gb.Matrix.from_edgelist([(i, i, one) for i, one in enumerate(x)], dtype=t),
    "from_edgelist values": lambda x, t: gb.Matrix.from_edgelist([(i, i) for i in range(len(x))], x, t),
    "from_csr": lambda x, t: gb.Matrix.from_csr([0, len(x)], range(len(x)), x, t),
    "from_csc": lambda x, t: gb.Matrix.from_csc([0, len(x)], range(len(x)), x, t),
    "from_dcsr": lambda x, t: gb.Matrix.from_dcsr([3], [0, len(x)], range(len(x)), x, t),
    "from_dcsc": lambda x, t: gb.Matrix.from_dcsc([3], [0, len(x)], range(len(x)), x, t),
    "from_dicts": lambda x, t: gb.Matrix.from_dicts([dict(enumerate(x))], t),
    "build": built,
    "v[:] = list": placed,
    "A[i, J] = list": picked,
    "from_scalar": lambda x, t: gb.Vector.from_scalar(x[-1], 2, t),
    "from_value": lambda x, t: gb.Scalar.from_value(x[-1], t),
}
ONE = GATES["from_scalar"], GATES["from_value"]  # these take the last of them
KEPT = [
    ("UINT64", [1, TOP]),
    ("UINT64", [2**53 + 1, 2**63 + 1]),
    ("INT64", [-(2**63), 2**53 + 1, 2**63 - 1]),
    ("INT8", [-128, 127]),
    ("FP64", [0.1, 2**53]),
    ("BOOL", [True, False]),
]
REFUSED = [
    ("INT8", [1, 300], OverflowError),
    ("UINT8", [1, -1], OverflowError),
    ("INT64", [1, 2**63], OverflowError),
    ("UINT64", [1, 2**64], OverflowError),
    ("INT64", [1, float("nan")], ValueError),
    ("INT64", [1, float("inf")], OverflowError),
    ("INT8", [0.5, 1e300], OverflowError),
    ("FP64", [1, 10**400], OverflowError),
    ("INT64", [1, "2"], TypeError),
    ("FP64", [1, None], TypeError),
    ("FP64", [1.0, 2j], (gb.exceptions.NotImplementedException, TypeError)),
]


def values(x) -> list:
    return [x.value] if x.ndim == 0 else x.to_coo()[-1].tolist()


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
@pytest.mark.parametrize(("dtype", "given"), KEPT, ids=str)
def test_kept(gate, dtype, given):
    found = gate(given, dtype)
    assert found.dtype == dtype
    assert values(found) == given or (gate in ONE and set(values(found)) == {given[-1]})


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
@pytest.mark.parametrize(("dtype", "given", "kind"), REFUSED, ids=lambda x: str(x)[:30])
def test_refused(gate, dtype, given, kind):
    if gate is GATES["from_value"] and given[-1] is None:
        return  # an empty scalar
    with pytest.raises(kind, match="expected|supported"):
        gate(given, dtype)


def test_fractions_are_dropped():
    """As NumPy does for np.array([1.5], int)."""
    for gate in GATES.values():
        assert values(gate([-1.5, 2.9], "INT8"))[-1] == 2


def test_the_type_of_a_list_is_numpys():
    for given in ([1, 2], [1, 2.5], [True, False], [1, 2**63], [2**63, 2**64 - 1], [np.int8(3), np.int8(4)]):
        found = gb.Vector.from_coo([0, 1], given)
        assert found.dtype == np.array(given).dtype and values(found) == np.array(given).tolist()
    with pytest.raises(OverflowError, match="64 bits"):
        gb.Vector.from_coo([0, 1], [1, 2**64])


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT32", "INT64", "UINT64"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arrays_are_cast_as_everywhere(dtype, kind):
    """Integers wrap, floats saturate, NaN becomes 0: at the gates as in statements."""
    given = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**63, -(2.0**63), -1.5, 200.7], kind)
    wide = gb.Vector.from_dense(given)
    inside = gb.Vector(dtype, len(given))
    inside << wide
    ways = [gb.Vector.from_dense(given, dtype=dtype), gb.Vector.from_coo(range(len(given)), given, dtype)]
    for found in (*ways, built(given, dtype), placed(given, dtype)):
        assert values(found) == values(inside)
    assert wide.to_coo(dtype)[1].tolist() == wide.to_dense(dtype=dtype).tolist() == values(inside)
    info = np.iinfo(lookup_dtype(dtype).np_type)
    assert values(inside)[:3] == [0, info.max, info.min]
    whole = np.array([300, -1, 2**40])
    assert values(gb.Vector.from_dense(whole, dtype=dtype)) == whole.astype(lookup_dtype(dtype).np_type).tolist()


def test_scalars_of_operators():
    """A number beside an object takes part with its own type, INT64 or FP64, and what does not fit is refused."""
    v, u = gb.Vector.from_coo([0], [100], "INT8", size=2), gb.Vector.from_coo([0], [TOP], "UINT64", size=2)
    assert (v + 300).new().dtype == "INT64" and values((v + 300).new()) == [400]
    assert values(v.select(">", 300).new()) == [] and values((v < 300).new()) == [True]
    assert values((u + np.uint64(1)).new()) == [0] and values((u - np.uint64(1)).new()) == [TOP - 1]
    for work in (
        lambda: v + 2**63,
        lambda: u + TOP,
        lambda: v.apply(gb.binary.plus["INT8"], 300),
        lambda: v.apply(gb.binary.plus["INT8"], left=-129),
        lambda: v.select(gb.select.valuegt["INT8"], 300),
        lambda: v.ewise_union(v, gb.binary.plus["INT8"], 300, 1),
        lambda: gb.binary.plus(v | v, left_default=2**70, right_default=1),
        lambda: v.to_dense(300, "INT8"),
        lambda: v.to_dense(2**70),
        lambda: v.__setitem__(0, 2**70),
        lambda: v << 2**63,
        lambda: v(gb.binary.plus) << 2**63,
        lambda: gb.select.rowle(v.diag(), 2**63),
        lambda: setattr(gb.Scalar("INT8"), "value", 300),
    ):
        with pytest.raises(OverflowError, match="expected"):
            work()
    with pytest.raises(ValueError, match="nan"):
        gb.select.tril(v.diag(), float("nan"))


NO_IDS = [[0.5], [True], ["1"], [None], None, [[0], [1, 2]], [1j], object(), "1", b"1"]


@pytest.mark.parametrize("dtype", ["INT64", "UINT64", "INT8"])
def test_comparisons_of_integers_with_a_number_are_exact(first, dtype):
    """Where no type of integers holds both sides, too: FP64 has 2**53 for 2**53 + 1."""
    info = np.iinfo(lookup_dtype(dtype).np_type)
    values = [x for x in (info.min, 0, 2**53, 2**53 + 1, info.max - 1, info.max) if x <= info.max]
    v = gb.Vector.from_coo(range(len(values)), values, dtype)
    numbers = [-(2**63), -1, 2**53 + 1, 2**63 - 1, 2**63, TOP, np.int64(2**53 + 1), np.uint64(2**53), np.uint64(TOP)]
    for number in numbers:
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            compare = getattr(operator, name)
            wanted = [compare(x, int(number)) for x in values]
            assert compare(v, number).new().to_dense().tolist() == wanted, (name, number)
            kept = [x for x, keep in zip(values, wanted, strict=True) if keep]
            assert v.select(f"value{name}", number).new().to_coo()[1].tolist() == kept, (name, number)
            mirrored = [compare(int(number), x) for x in values]
            assert getattr(gb.binary, name)(number, v).new().to_dense().tolist() == mirrored, (name, number)
    for late in (gb.Scalar.from_value(np.uint64(TOP)), np.uint64(TOP)):  # a Scalar has its type, whatever it holds
        assert (v < late).new().dtype is BOOL


@pytest.mark.parametrize("ids", NO_IDS, ids=lambda ids: type(ids).__name__)
def test_ids_that_are_no_integers(ids):
    v, made = gb.Vector(int, 3), (gb.exceptions.InvalidValue, TypeError)
    for work in (lambda: gb.Vector.from_coo(ids, 1), lambda: gb.Matrix.from_coo(ids, ids, 1), lambda: v.build(ids, 1)):
        with pytest.raises(made, match="expected"):
            work()
    for work in (lambda: v[ids], lambda: v.__setitem__(ids, 1)):
        with pytest.raises(TypeError):
            work()


@pytest.mark.parametrize("ids", [[2**64], [0, 2**63], [-(2**70)], [2**60]], ids=str)
def test_ids_of_too_many_bits(ids):
    v = gb.Vector(int, 3)
    for work in (lambda: gb.Vector.from_coo(ids, 1), lambda: v[ids], lambda: gb.Matrix.from_coo(ids, ids, 1)):
        with pytest.raises(IndexError, match="expected"):
            work()
