"""Laws of semirings on which a fixpoint rests: whether its result depends on the order in which vertices are relaxed.

With an idempotent monoid (+), f(x) = x (x) a must be monotone: then f(x (+) y) = f(x) (+) f(y), and the best value of a
vertex is the best over all paths, in whatever order they are found (Mohri, "Semiring Frameworks and Algorithms for
Shortest-Distance Problems", 2002).
"""

from functools import lru_cache
from typing import Any

from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import _operators as ops

# Multiply operators that are monotone in each operand, for each group of monoids that order values alike.
SCALING = "times"  # monotone where the factors are not negative
_NUMBERS = frozenset(f"plus first second pair min max fmin fmax {SCALING}".split())
_TRUTH = frozenset("land lor".split())  # of numbers, -1 is as true as 1, and 0 between them is not
_LOGICAL = _TRUTH | frozenset(f"first second pair min max {SCALING}".split())
_BITS = frozenset("first second pair band bor".split())
_MONOTONE = {"min": _NUMBERS, "max": _NUMBERS, "land": _LOGICAL, "lor": _LOGICAL, "band": _BITS, "bor": _BITS}


def refusal(semiring: Any, accum: Any) -> str | None:
    """Which law keeps `d(accum) << semiring(d @ A)` from being order-free, as an error message; None: none does."""
    monoid, multiply = semiring.monoid, semiring.multiply
    if accum is None or accum.program.key != monoid.binary.program.key:
        came = "no accumulator" if accum is None else f"binary.{accum.name}"
        return message(f"the accumulator of the monoid, d(binary.{monoid.binary.name}) << ...", came)
    if not monoid.is_idempotent or monoid.is_any:
        hint = "monoid.register_anonymous(f, identity, is_idempotent=True) declares it"
        if ops.BinaryOp.registry.get(monoid.name) is monoid.op.binaryop:
            hint = "min, max, land, lor, band and bor are; gb.loop repeats statements in order"
        return message("an idempotent monoid, whose result does not depend on the order", f"monoid.{monoid.name}", hint)
    if multiply.return_type is not monoid.dtype:
        return message(f"products of the monoid's type, {monoid.dtype.name}", multiply.return_type.name)
    if multiply.op.is_positional or not is_monotone(semiring):
        hint = "binary.register_anonymous(f, is_monotone=True) declares it"
        return message("a product that is monotone: x <= y gives f(x, a) <= f(y, a)", f"binary.{multiply.name}", hint)
    return None


def is_monotone(semiring: Any) -> bool:
    """Whether the product is monotone in the operand that is not the matrix; of `times`, if no factor is negative."""
    op = semiring.multiply.op
    if op.is_monotone:
        _check(semiring)
        return True
    monoid, registry = semiring.monoid, ops.BinaryOp.registry
    known = registry.get(op.name) is op
    named = registry.get(monoid.name) is monoid.op.binaryop
    truth = op.name in _TRUTH and monoid.name in ("min", "max") and monoid.dtype.kind in "bu"
    return known and named and (truth or op.name in _MONOTONE.get(monoid.name, ()))


@lru_cache(256)
def _check(semiring: Any) -> None:
    """Raise InvalidValue if a declared law fails on a few values."""
    from gbgpu.semiring._lower import to_python

    multiply = semiring.multiply
    add, f = to_python(semiring.monoid.program), to_python(multiply.program)
    first, second = (
        [dtype.np_type.type(x) for x in ops.samples(dtype) if x == x and abs(x) < 100] for dtype in multiply.dtypes
    )
    for a in second:
        for x in first:
            for y in first:
                one, other = f(add(x, y), a), add(f(x, a), f(y, a))
                if not (one == other or one != one and other != other):
                    name = semiring.monoid.name
                    came = f"f({name}({x}, {y}), {a}) = {one} and {name}(f({x}, {a}), f({y}, {a})) = {other}"
                    raise InvalidValue(message(f"binary.{multiply.name} monotone, as declared", came))
