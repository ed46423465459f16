"""What algorithms share that repeat a product until little changes."""

from typing import Any

from gbgpu import Matrix, Vector, binary, monoid, unary
from gbgpu.errors import GraphblasException, InvalidValue, message
from gbgpu.semiring import plus_second, plus_times


class ConvergenceError(GraphblasException):
    """The numbers still changed by more than tol when all iterations were done."""


def check_limits(tol: float, max_iterations: int) -> None:
    """InvalidValue unless each is in its range (NaN is in none)."""
    if not tol >= 0:
        raise InvalidValue(message("tol of at least 0", tol))
    if not max_iterations >= 1:
        raise InvalidValue(message("max_iterations of at least 1", max_iterations))


def check_settled(it: Any, tol: float, hint: str) -> None:
    """ConvergenceError if the loop ended by the number of its iterations."""
    if not it.converged:
        raise ConvergenceError(message(f"a change below tol = {tol}", f"more after {it.rounds} iterations", hint))


def products(weighted: bool) -> Any:
    """The semiring that adds the right operand along arcs: times the matrix's values, or once for each entry."""
    return (plus_times if weighted else plus_second)[float]


def difference(x: Any, y: Any) -> Any:
    """The expression of the sum of |x - y|, of what has an entry in both."""
    return unary.abs(binary.minus(x & y)).reduce(monoid.plus, allow_empty=False)


def flat(n: int, value: float, name: str) -> Vector:
    """The same number (FP64) for every vertex."""
    v = Vector(float, n, name=name)
    v[:] = value
    return v


def largest_sum(A: Matrix, weighted: bool) -> float:
    """The geometric mean of the largest sum of a row and that of a column, of the values' sizes or of ones: no
    eigenvalue is larger."""
    ones = flat(A.nrows, 1.0, "ones")
    sizes = abs(A.dup(float)).new() if weighted else A
    most = [products(weighted)(M @ ones).new().reduce(monoid.max).new().value or 0.0 for M in (sizes, sizes.T)]
    return (most[0] * most[1]) ** 0.5
