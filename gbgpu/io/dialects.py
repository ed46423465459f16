"""Edge lists that are told by their names: tables with commas, KONECT's files; and adjacency lists, which are refused.

Source: the files of the Koblenz Network Collection (KONECT).
"""

import io
from typing import Any, NoReturn

from gbgpu import Matrix
from gbgpu.errors import FileFormatError, NotImplementedException, message
from gbgpu.io import shares
from gbgpu.io.edgelist import read_edgelist
from gbgpu.io.files import damage, open_bytes
from gbgpu.io.text import Text, malformed, shown, words

_TWO_SIDES = "i, j = np.loadtxt(FILE, int, comments='%', usecols=(0, 1)).T; gb.Matrix.from_coo(i - 1, j - 1, 1.0)"
_ADJACENCY = (
    "lines = [x.split() for x in open(FILE) if x[0] != '%'][1:]; "
    "gb.Matrix.from_edgelist([(i, int(j) - 1) for i, x in enumerate(lines) for j in x], nrows=len(lines))"
)


def read_csv(source: Any, *, delimiter: str = ",", **options: Any) -> Matrix:
    """Read a square Matrix from lines `source,target` or `source,target,weight`, with a head or without one.

    As `read_edgelist` with this delimiter, which takes the options and raises what is wrong.
    """
    return read_edgelist(source, delimiter=delimiter, **options)


def read_konect(source: Any, *, limit: int | None = None, **options: Any) -> Matrix:
    """Read a square Matrix from a file of KONECT (`out.NAME`): lines `source target [weight [time]]`, ids from 1.

    Times are passed over. The first comment tells whether edges have a direction. `options` go to `read_edgelist`,
    which raises what is wrong. FileFormatError for a graph whose two sides have ids of their own, and where neither the
    first comment nor `directed=` tells the direction.
    """
    if hasattr(source, "read"):
        with open_bytes(source, limit) as opened, damage(lambda: "KONECT file"):
            source = io.BytesIO(opened.stream.read())

    def head() -> tuple[list[bytes], int]:
        with open_bytes(source, limit) as opened:
            text = Text(opened.stream)
            text.skip(b"  ")  # blank lines
            first = [word.lower() for word in words(text.peek().lstrip(b" \t%#"))]
            text.skip(b"%%")
            return first, len(words(text.peek()))

    several = shares.files_of(source)
    if several:
        source = several
        told, width = [], 0
    else:
        told, width = shares.alike(head, "the head of a file")
    if hasattr(source, "seek"):
        source.seek(0)
    if told[:1] == [b"bip"]:
        came = "bip: each side has ids of its own"
        raise FileFormatError("line 1: " + message("a graph of one kind of vertices", came, _TWO_SIDES))
    if told[:1] not in ([b"sym"], [b"asym"]) and "directed" not in options:
        came = shown(b" ".join(told[:1]))
        raise malformed(1, '"% sym", "% asym" or "% bip"', came, "directed=True or directed=False tells it instead")
    found = {"base": 1, "directed": told[:1] != [b"sym"]} | ({"columns": (0, 1, 2)} if width > 3 else {})
    return read_edgelist(source, limit=limit, **(found | options))


def refuse_adjacency(source: Any, **options: Any) -> NoReturn:
    """Raise NotImplementedException, with the call that reads a METIS file (`.graph`) without weights."""
    raise NotImplementedException(message("a file with a line an edge", "METIS's adjacency lists", _ADJACENCY))
