"""The compiled part of `steal.py`: a revised simplex method for min-max assignments, and its rounding.

Method: Dantzig, "Linear Programming and Extensions" (1963), chapters 8 and 9. The problem helps twice: work where it
costs least is a basis to start from, and since z alone has a cost, z's row of the basis' inverse is the vector of
prices, which bounds the optimum from below at every step.

Private functions are in the language of gbgpu/kernels/llvm.py, and run as machine code. Their arrays have one
dimension: of costs and `p` (3, n, n), x (n, n) and full (3, n), row after row.
"""

import numpy as np

from gbgpu.kernels.functions import compiled

DEVICE, INTO, OUT = 0, 1, 2  # what an edge takes time of: a device, the links into it, the links out of its block
DONE, NEGATIVE, NOWHERE, HUGE = 0, 1, 2, 3  # what came of numbers: the last three are errors
MOST = 1 << 62  # edges in all blocks, so that their sum is an int64
_GAP = 1e-7  # relative, of z and its bound, at which the search ends
_TINY = 1e-11  # what counts as nothing beside coefficients of about 1
_FAR = 1e7  # of z: where a whole load takes longer, less than its 1e-7th can go, which is not worth rounding errors
_LEAST = 1e-280  # of a unit, so that loads below MOST are finite in it
_SHIFT = 1e-9  # of the right sides, each another one: no two bases then tie, so none comes again


def _invalid(costs, loads):
    """The code DONE for numbers that make a problem: costs of 0 to infinity, and a place for all work.

    Of costs (3, n, n), the device's become infinite where the links' are.
    """
    total, n = 0.0, len(loads)
    for i in range(n):
        somewhere = loads[i] == 0
        total += loads[i]
        if loads[i] < 0:
            return NEGATIVE
        for j in range(n):
            for kind in range(3):
                if not costs[(kind * n + i) * n + j] >= 0:  # NaN too
                    return NEGATIVE
                if costs[(kind * n + i) * n + j] == np.inf:
                    costs[(DEVICE * n + i) * n + j] = np.inf
            somewhere |= costs[(DEVICE * n + i) * n + j] < np.inf
        if not somewhere:
            return NOWHERE
    return DONE if total < MOST else HUGE


def _scaled(costs, loads, p):
    """Write into `p` the costs of whole loads, in units of what all of them cost where they cost least.

    Returns the unit, seconds. So numbers are about 1.
    """
    n, unit = len(loads), 0.0
    for i in range(n):
        least = np.inf
        for j in range(n):
            least = min(
                least, max(costs[(DEVICE * n + i) * n + j], costs[(INTO * n + i) * n + j], costs[(OUT * n + i) * n + j])
            )
        unit += least * loads[i] if loads[i] else 0.0
    unit = max(unit, _LEAST) if unit else 1.0
    for kind in range(3):
        for i in range(n):
            for j in range(n):
                p[(kind * n + i) * n + j] = costs[(kind * n + i) * n + j] * (loads[i] / unit) if loads[i] else 0.0
    return unit


def _start(p, basis, full, inverse, n):
    """The basis that gives each load to the device that then has least, with its inverse; returns z's row.

    `full`: how much fills each row.
    """
    m = len(basis)
    for i in range(n):
        best, least = 0, np.inf
        for j in range(n):
            after = full[n + j] + p[(DEVICE * n + i) * n + j]
            if after < least:
                best, least = j, after
        basis[i] = i * n + best
        inverse[i * m + i] = 1.0
        for kind in range((m - n) // n):
            r = n + kind * n + (i if kind == OUT else best)
            full[r] += p[(kind * n + i) * n + best]
            inverse[r * m + i] += p[(kind * n + i) * n + best]
    top = n
    for r in range(n, m):
        inverse[r * m + r] = -1.0
        basis[r] = n * n + 1 + r
        top = r if full[r] > full[top] else top
    basis[top] = n * n
    for r in range(n, m):
        if r != top:  # the row's slack is z without what fills the row
            for c in range(m):
                inverse[r * m + c] = inverse[top * m + c] - inverse[r * m + c]
    return top


def _fractions(p, basis, held, column, inverse, n):
    """The linear program: basic variables into `basis`, their values into `held`; returns a lower bound of z.

    Rows: n sums of fractions (= 1); n devices' seconds; with links, n of those into devices, n of those out of blocks
    (all <= z). Columns: n * n fractions of loads (rows of `p`) that devices compute, then z, then the rows' slacks.
    """
    m = len(basis)
    kinds = (m - n) // n
    top = _start(p, basis, held, inverse, n)
    for r in range(m):
        held[r] = 0.0
        for c in range(m):
            held[r] += inverse[r * m + c] * (1.0 if c < n else _SHIFT * (c - n + 1))
    bound, far = 0.0, _FAR * held[top]
    for _ in range(50 * m):
        entering, best, lower, weight = -1, _TINY, 0.0, 0.0
        for r in range(n, m):
            price = inverse[top * m + r]
            weight += max(-price, 0.0)
            if price > best:
                entering, best = n * n + 1 + r, price
        for i in range(n):
            cheapest = np.inf
            for j in range(n):
                if p[(DEVICE * n + i) * n + j] < far:
                    value, sure = inverse[top * m + i], 0.0
                    for kind in range(kinds):
                        price = inverse[top * m + n + kind * n + (i if kind == OUT else j)]
                        value += p[(kind * n + i) * n + j] * price
                        sure += p[(kind * n + i) * n + j] * max(-price, 0.0)
                    cheapest = min(cheapest, sure)
                    if value > best:
                        entering, best = i * n + j, value
            lower += cheapest
        bound = max(bound, lower / weight)
        if entering < 0 or held[top] * (1 - _GAP) <= bound:
            break
        i, j = entering // n, entering % n
        leaving, step = -1, np.inf
        for r in range(m):
            if entering > n * n:
                column[r] = inverse[r * m + entering - n * n - 1]
            else:
                column[r] = inverse[r * m + i]
                for kind in range(kinds):
                    column[r] += p[(kind * n + i) * n + j] * inverse[r * m + n + kind * n + (i if kind == OUT else j)]
            if column[r] > _TINY and held[r] < step * column[r] and r != top:
                leaving, step = r, max(held[r], 0.0) / column[r]
        if leaving < 0:
            break  # z would be 0: rounding errors
        for c in range(m):
            inverse[leaving * m + c] /= column[leaving]
        for r in range(m):
            if r != leaving and column[r] != 0.0:
                held[r] -= step * column[r]
                for c in range(m):
                    inverse[r * m + c] -= column[r] * inverse[leaving * m + c]
        held[leaving], basis[leaving] = step, entering
    return bound * (1 - n / _FAR)


def _add(costs, full, x, n, i, j, count):
    """`count` more edges of block i for device j."""
    x[i * n + j] += count
    full[DEVICE * n + j] += count * costs[(DEVICE * n + i) * n + j]
    full[INTO * n + j] += count * costs[(INTO * n + i) * n + j]
    full[OUT * n + i] += count * costs[(OUT * n + i) * n + j]


def _best(costs, full, n, i, away, limit):
    """The device where an edge of block i does least harm, taken from device `away` or new (-1).

    -1 if none, nor the links, stay below `limit` with it.
    """
    best, least = -1, limit
    out = full[OUT * n + i] - (costs[(OUT * n + i) * n + away] if away >= 0 else 0.0)
    for j in range(n):
        after = max(
            full[DEVICE * n + j] + costs[(DEVICE * n + i) * n + j],
            full[INTO * n + j] + costs[(INTO * n + i) * n + j],
            out + costs[(OUT * n + i) * n + j],
        )
        if j != away and after < least:
            best, least = j, after
    return best


def _rounded(basis, held, costs, loads, full, x):
    """Whole edges, their sums exact, into `x`; returns z.

    `full` (3, n), zeros: seconds of devices, and of links into and out of them. What the fractions leave over, and then
    single edges of the fullest device, go where they do least harm.
    """
    n = len(loads)
    for r in range(len(basis)):
        if basis[r] < n * n:
            i, j = basis[r] // n, basis[r] % n
            count = min(np.int64(max(held[r], 0.0) * loads[i]), loads[i])
            if count:  # nothing may well be where costs are infinite
                _add(costs, full, x, n, i, j, count)
    for i in range(n):
        left, most = loads[i], 0
        for j in range(n):
            left -= x[i * n + j]
            most = j if x[i * n + j] > x[i * n + most] else most
        while left:  # a fraction of a large load is not exact to an edge
            whole = left < 0 or left > n
            _add(costs, full, x, n, i, most if whole else _best(costs, full, n, i, -1, np.inf), left if whole else 1)
            left = 0 if whole else left - 1
    for _ in range(4 * n):
        fullest, to, i = 0, -1, -1
        for j in range(n):
            fullest = j if full[DEVICE * n + j] > full[DEVICE * n + fullest] else fullest
        while to < 0 and i < n - 1:
            i += 1
            if x[i * n + fullest] > 0 and costs[(DEVICE * n + i) * n + fullest] > 0:
                to = _best(costs, full, n, i, fullest, full[DEVICE * n + fullest])
        if to < 0:
            break
        _add(costs, full, x, n, i, fullest, -1)
        _add(costs, full, x, n, i, to, 1)
    z = 0.0
    for kind in range(3):
        for j in range(n):
            z = max(z, full[kind * n + j])
    return z


def _check(costs, loads, code):
    code[0] = _invalid(costs, loads)


def _solve(costs, loads, x, p, held, column, inverse, basis, full, code, told):
    n = len(loads)
    code[0] = _invalid(costs, loads)
    if code[0] != DONE:
        return
    unit = _scaled(costs, loads, p)
    if not unit < np.inf:
        code[0] = HUGE
        return
    told[1] = _fractions(p, basis, held, column, inverse, n) * unit
    told[0] = _rounded(basis, held, costs, loads, full, x)


def invalid(costs: np.ndarray, loads: np.ndarray) -> int:
    """What is wrong with costs (3, n, n) and loads, or DONE. Where links cost infinitely much, so do devices then."""
    code = np.zeros(1, np.int64)
    compiled(__name__, "_check")(costs.reshape(-1), loads, code)
    return int(code[0])


def solve(costs: np.ndarray, loads: np.ndarray, links: bool) -> tuple[int, np.ndarray, float, float]:
    """(what came of it, edges (n, n), z, its lower bound).

    costs (3, n, n), seconds an edge, which become infinite as of `invalid`; `links`: whether these count.
    """
    n, m = len(loads), (4 if links else 2) * len(loads)
    x, code, told = np.zeros((n, n), np.int64), np.zeros(1, np.int64), np.zeros(2)
    p, held, column, inverse = np.empty(3 * n * n), np.zeros(m), np.zeros(m), np.zeros(m * m)
    basis, full = np.empty(m, np.int64), np.zeros(3 * n)
    compiled(__name__, "_solve")(
        costs.reshape(-1), loads, x.reshape(-1), p, held, column, inverse, basis, full, code, told
    )
    return int(code[0]), x, float(told[0]), float(told[1])
