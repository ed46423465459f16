"""The compiled part of `steal.py`: a revised simplex method for min-max assignments, and its rounding.

The only file here that imports numba, and itself imported late.

Method: Dantzig, "Linear Programming and Extensions" (1963), chapters 8 and 9. The problem helps twice: work where it
costs least is a basis to start from, and since z alone has a cost, z's row of the basis' inverse is the vector of
prices, which bounds the optimum from below at every step.

Loops over numbers and no array expressions, which would take numba three times as long to compile.
"""

import numpy as np
from numba import njit

from ..interrupts import compiled_apart
from .problem import DEVICE, DONE, HUGE, INTO, MOST, NEGATIVE, NOWHERE, OUT

_GAP = 1e-7  # relative, of z and its bound, at which the search ends
_TINY = 1e-11  # what counts as nothing beside coefficients of about 1
_FAR = 1e7  # of z: where a whole load takes longer, less than its 1e-7th can go, which is not worth rounding errors
_LEAST = 1e-280  # of a unit, so that loads below MOST are finite in it
_SHIFT = 1e-9  # of the right sides, each another one: no two bases then tie, so none comes again

_compiled = njit(nogil=True, cache=True, error_model="numpy")


@_compiled
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
                if not costs[kind, i, j] >= 0:  # NaN too
                    return NEGATIVE
                if costs[kind, i, j] == np.inf:
                    costs[DEVICE, i, j] = np.inf
            somewhere |= costs[DEVICE, i, j] < np.inf
        if not somewhere:
            return NOWHERE
    return DONE if total < MOST else HUGE


@_compiled
def _scaled(costs, loads, p):
    """Write into `p` the costs of whole loads, in units of what all of them cost where they cost least.

    Returns the unit, seconds. So numbers are about 1.
    """
    n, unit = len(loads), 0.0
    for i in range(n):
        least = np.inf
        for j in range(n):
            least = min(least, max(costs[DEVICE, i, j], costs[INTO, i, j], costs[OUT, i, j]))
        unit += least * loads[i] if loads[i] else 0.0
    unit = max(unit, _LEAST) if unit else 1.0
    for kind in range(3):
        for i in range(n):
            for j in range(n):
                p[kind, i, j] = costs[kind, i, j] * (loads[i] / unit) if loads[i] else 0.0
    return unit


@_compiled
def _start(p, basis, full, inverse):
    """The basis that gives each load to the device that then has least, with its inverse; returns z's row.

    `full`: how much fills each row.
    """
    n, m = p.shape[1], len(basis)
    for i in range(n):
        best, least = 0, np.inf
        for j in range(n):
            after = full[n + j] + p[DEVICE, i, j]
            if after < least:
                best, least = j, after
        basis[i] = i * n + best
        inverse[i, i] = 1.0
        for kind in range((m - n) // n):
            r = n + kind * n + (i if kind == OUT else best)
            full[r] += p[kind, i, best]
            inverse[r, i] += p[kind, i, best]
    top = n
    for r in range(n, m):
        inverse[r, r] = -1.0
        basis[r] = n * n + 1 + r
        top = r if full[r] > full[top] else top
    basis[top] = n * n
    for r in range(n, m):
        if r != top:  # the row's slack is z without what fills the row
            for c in range(m):
                inverse[r, c] = inverse[top, c] - inverse[r, c]
    return top


@_compiled
def _fractions(p, basis, held, column, inverse):
    """The linear program: basic variables into `basis`, their values into `held`; returns a lower bound of z.

    Rows: n sums of fractions (= 1); n devices' seconds; with links, n of those into devices, n of those out of blocks
    (all <= z). Columns: n * n fractions of loads (rows of `p`) that devices compute, then z, then the rows' slacks.
    """
    n, m = p.shape[1], len(basis)
    kinds = (m - n) // n
    top = _start(p, basis, held, inverse)
    for r in range(m):
        held[r] = 0.0
        for c in range(m):
            held[r] += inverse[r, c] * (1.0 if c < n else _SHIFT * (c - n + 1))
    bound, far = 0.0, _FAR * held[top]
    for _ in range(50 * m):
        entering, best, lower, weight = -1, _TINY, 0.0, 0.0
        for r in range(n, m):
            price = inverse[top, r]
            weight += max(-price, 0.0)
            if price > best:
                entering, best = n * n + 1 + r, price
        for i in range(n):
            cheapest = np.inf
            for j in range(n):
                if p[DEVICE, i, j] < far:
                    value, sure = inverse[top, i], 0.0
                    for kind in range(kinds):
                        price = inverse[top, n + kind * n + (i if kind == OUT else j)]
                        value += p[kind, i, j] * price
                        sure += p[kind, i, j] * max(-price, 0.0)
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
                column[r] = inverse[r, entering - n * n - 1]
            else:
                column[r] = inverse[r, i]
                for kind in range(kinds):
                    column[r] += p[kind, i, j] * inverse[r, n + kind * n + (i if kind == OUT else j)]
            if column[r] > _TINY and held[r] < step * column[r] and r != top:
                leaving, step = r, max(held[r], 0.0) / column[r]
        if leaving < 0:
            break  # z would be 0: rounding errors
        for c in range(m):
            inverse[leaving, c] /= column[leaving]
        for r in range(m):
            if r != leaving and column[r] != 0.0:
                held[r] -= step * column[r]
                for c in range(m):
                    inverse[r, c] -= column[r] * inverse[leaving, c]
        held[leaving], basis[leaving] = step, entering
    return bound * (1 - n / _FAR)


@_compiled
def _add(costs, full, x, i, j, count):
    """`count` more edges of block i for device j."""
    x[i, j] += count
    full[DEVICE, j] += count * costs[DEVICE, i, j]
    full[INTO, j] += count * costs[INTO, i, j]
    full[OUT, i] += count * costs[OUT, i, j]


@_compiled
def _best(costs, full, i, away, limit):
    """The device where an edge of block i does least harm, taken from device `away` or new (-1).

    -1 if none, nor the links, stay below `limit` with it.
    """
    best, least = -1, limit
    out = full[OUT, i] - (costs[OUT, i, away] if away >= 0 else 0.0)
    for j in range(costs.shape[2]):
        after = max(full[DEVICE, j] + costs[DEVICE, i, j], full[INTO, j] + costs[INTO, i, j], out + costs[OUT, i, j])
        if j != away and after < least:
            best, least = j, after
    return best


@_compiled
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
                _add(costs, full, x, i, j, count)
    for i in range(n):
        left, most = loads[i], 0
        for j in range(n):
            left -= x[i, j]
            most = j if x[i, j] > x[i, most] else most
        while left:  # a fraction of a large load is not exact to an edge
            whole = left < 0 or left > n
            _add(costs, full, x, i, most if whole else _best(costs, full, i, -1, np.inf), left if whole else 1)
            left = 0 if whole else left - 1
    for _ in range(4 * n):
        fullest, to, i = 0, -1, -1
        for j in range(n):
            fullest = j if full[DEVICE, j] > full[DEVICE, fullest] else fullest
        while to < 0 and i < n - 1:
            i += 1
            if x[i, fullest] > 0 and costs[DEVICE, i, fullest] > 0:
                to = _best(costs, full, i, fullest, full[DEVICE, fullest])
        if to < 0:
            break
        _add(costs, full, x, i, fullest, -1)
        _add(costs, full, x, i, to, 1)
    z = 0.0
    for kind in range(3):
        for j in range(n):
            z = max(z, full[kind, j])
    return z


@_compiled
def _solve(costs, loads, x, p, work, inverse, basis):
    """Fill `x` with edges; returns what came of it, z and its lower bound.

    costs (3, n, n), seconds an edge, which become infinite as `_invalid` says; for scratch: p (3, n, n); work (2, m),
    inverse (m, m), both zeros, basis (m,); m is 2 n, or 4 n if links count.
    """
    wrong = _invalid(costs, loads)
    if wrong != DONE:
        return wrong, 0.0, 0.0
    unit, n = _scaled(costs, loads, p), len(loads)
    if not unit < np.inf:
        return HUGE, 0.0, 0.0
    bound = _fractions(p, basis, work[0], work[1], inverse) * unit
    return DONE, _rounded(basis, work[0], costs, loads, np.zeros((3, n)), x), bound


solve, invalid = compiled_apart(_solve), compiled_apart(_invalid)
