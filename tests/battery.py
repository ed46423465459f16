"""Named matrices, each of which catches a kind of bug: `BATTERY[name]()` is (rows, columns, values, nrows, ncols)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Coo = tuple[np.ndarray, np.ndarray, np.ndarray, int, int]


def made(rows, columns, nrows: int, ncols: int, values=None) -> Coo:
    rows, columns = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    weights = np.arange(1, rows.size + 1) % 7 + 1 if values is None else np.asarray(values)
    return rows, columns, weights, nrows, ncols


def random(nrows: int, ncols: int, density: float, seed: int = 7) -> Coo:
    rows, columns = np.nonzero(np.random.default_rng(seed).random((nrows, ncols)) < density)
    return made(rows, columns, nrows, ncols)


def path(n: int) -> Coo:
    return made(np.arange(n - 1), np.arange(1, n), n, n)


def star_out(n: int) -> Coo:
    """One row has everything: one thread or one device gets all the work."""
    return made(np.zeros(n - 1), np.arange(1, n), n, n)


def star_in(n: int) -> Coo:
    """One column has everything: every device writes the same place."""
    return made(np.arange(1, n), np.zeros(n - 1), n, n)


def two_parts(n: int) -> Coo:
    """Two paths that never meet, and isolated vertices between them."""
    half = n // 2
    left, right = np.arange(half - 2), np.arange(half + 1, n - 1)
    rows = np.concatenate([left, right])
    return made(rows, rows + 1, n, n)


def hub_last_row(n: int) -> Coo:
    """The last row is the hub, so unequal blocks and the end of the last word matter."""
    rows = np.concatenate([np.full(n, n - 1), np.arange(n - 1)])
    columns = np.concatenate([np.arange(n), np.full(n - 1, n - 1)])
    return made(rows, columns, n, n)


BATTERY: dict[str, Callable[[], Coo]] = {
    "0 x 0": lambda: made([], [], 0, 0),
    "0 rows": lambda: made([], [], 0, 5),
    "0 columns": lambda: made([], [], 5, 0),
    "1 x 1 empty": lambda: made([], [], 1, 1),
    "1 x 1 loop": lambda: made([0], [0], 1, 1),
    "no edges": lambda: made([], [], 70, 70),
    "all self loops": lambda: made(np.arange(66), np.arange(66), 66, 66),
    "fewer rows than devices": lambda: random(2, 2, 1.1),
    "one row": lambda: random(1, 130, 0.5),
    "one column": lambda: random(130, 1, 0.5),
    "wide": lambda: random(5, 200, 0.2),
    "tall": lambda: random(200, 5, 0.2),
    "hub row": lambda: star_out(150),
    "hub column": lambda: star_in(150),
    "hub last row": lambda: hub_last_row(129),
    "path": lambda: path(100),
    "two parts": lambda: two_parts(140),
    "full": lambda: random(40, 40, 1.1),
    "stored zeros": lambda: made([0, 1, 2, 2], [1, 2, 0, 2], 3, 3, [0, 0, 5, 0]),
    **{f"n = {n}": (lambda n=n: random(n, n, 0.1)) for n in (63, 64, 65, 127, 128, 129, 192, 193)},
}
