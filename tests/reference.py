"""A slow, obvious twin of a few operations, for what python-graphblas can't answer. Dicts in, dicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

Vector = dict[int, object]
Matrix = dict[tuple[int, int], object]


def vector_of(handle) -> Vector:
    ids, values = handle.to_coo()
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


def matrix_of(handle) -> Matrix:
    rows, columns, values = handle.to_coo()
    return dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), values.tolist(), strict=True))


def transpose(A: Matrix) -> Matrix:
    return {(j, i): value for (i, j), value in A.items()}


def terms(x: Vector, A: Matrix) -> Iterator[tuple[int, int, object, object]]:
    """(i, j, x_i, A_ij) of every multiplication in x @ A: i is the inner index, j the place in the output."""
    for (i, j), value in sorted(A.items()):
        if i in x:
            yield i, j, x[i], value


def candidates(x: Vector, A: Matrix, multiply: Callable) -> dict[int, list]:
    """All `multiply(x_i, A_ij, i)` that a place of x @ A combines, in ascending order of the inner index i."""
    found: dict[int, list] = {}
    for i, j, left, right in terms(x, A):
        found.setdefault(j, []).append(multiply(left, right, i))
    return found


def vxm(x: Vector, A: Matrix, add: Callable, multiply: Callable) -> Vector:
    """x @ A, the sum taken in ascending order of the inner index."""
    result: Vector = {}
    for j, products in candidates(x, A, lambda xi, aij, i: multiply(xi, aij)).items():
        total = products[0]
        for product in products[1:]:
            total = add(total, product)
        result[j] = total
    return result


def products(A: Matrix, B: Matrix, multiply: Callable) -> dict[tuple[int, int], list]:
    """All `multiply(A_ik, B_kj, i, k, j)` that a place of A @ B combines, in ascending order of k."""
    rows: dict[int, list] = {}
    for (k, j), value in sorted(B.items()):
        rows.setdefault(k, []).append((j, value))
    found: dict[tuple[int, int], list] = {}
    for (i, k), left in sorted(A.items()):
        for j, right in rows.get(k, ()):
            found.setdefault((i, j), []).append(multiply(left, right, i, k, j))
    return found


def write(w: Vector, result: Vector, allowed: Callable[[int], bool], accum: Callable | None, replace: bool) -> Vector:
    """The one write rule: accumulate, then keep what the mask lets through; the rest stays, or goes with replace."""
    merged = dict(result)
    if accum:
        merged = {**w, **{i: accum(w[i], value) if i in w else value for i, value in result.items()}}
    kept = {} if replace else {i: value for i, value in w.items() if not allowed(i)}
    return kept | {i: value for i, value in merged.items() if allowed(i)}
