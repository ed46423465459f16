"""Which lines of a file name an entry twice."""

from typing import Any

import numpy as np

from .files import open_bytes


def lines(
    source: Any, limit: int | None, rows: np.ndarray, cols: np.ndarray, base: int, either: bool, ahead: int
) -> str:
    """Where the first entry that comes again stands, as text ": 3 7 on lines 5 and 9".

    `base`: the first id in the file; `either`: 7 3 is the same entry; `ahead`: lines before the entries, comments left
    out.
    """
    pair = _first_again(np.minimum(rows, cols), np.maximum(rows, cols)) if either else _first_again(rows, cols)
    if pair is None:
        return ""
    wanted = {(pair[0] + base, pair[1] + base)}
    wanted |= {(j, i) for i, j in wanted} if either else set()
    found: list[int] = []
    with open_bytes(source, limit) as opened:
        for number, line in enumerate(opened.stream, 1):
            words = line.removeprefix(b"a ").split()
            if not words or words[0][:1] in (b"#", b"%") or words[0] in (b"c", b"p"):
                continue
            ahead -= 1
            if ahead < 0 and len(words) > 1 and words[0].isdigit() and words[1].isdigit():
                if (int(words[0]), int(words[1])) in wanted:
                    found.append(number)
                    if len(found) == 2:
                        return f": {int(words[0])} {int(words[1])} on lines {found[0]} and {number}"
    return ""


def _first_again(rows: np.ndarray, cols: np.ndarray) -> tuple[int, int] | None:
    order = np.lexsort((np.arange(len(rows)), cols, rows))
    i, j = rows[order], cols[order]
    again = np.flatnonzero((i[1:] == i[:-1]) & (j[1:] == j[:-1]))
    if not len(again):
        return None
    first = order[again + 1].min()
    return int(rows[first]), int(cols[first])
