"""What every algorithm asks of its arguments."""

from operator import index
from typing import Any

import numpy as np

from gbgpu import Matrix, Vector, agg, binary, indexunary, settings
from gbgpu.errors import DimensionMismatch, IndexOutOfBound, InvalidValue, message

THIN = 4  # mean arcs of a vertex up to which CPU devices take less time without rounds: road maps, sparse random graphs


def square(A: Any) -> int:
    """The number of vertices; TypeError if A is no Matrix, DimensionMismatch if it is not square."""
    if not isinstance(A, Matrix):
        makes = {"adj": "gb.io.from_networkx(G)", "matrix": "its .matrix", "tocoo": "gb.Matrix.from_scipy_sparse(A)"}
        hint = next((how for name, how in makes.items() if hasattr(A, name)), "gb.Matrix.from_dense(array), from_coo")
        raise TypeError(message("a gbgpu Matrix", type(A).__name__, hint))
    if A.nrows != A.ncols:
        raise DimensionMismatch(message("a square matrix, arc i -> j in A[i, j]", f"{A.nrows} x {A.ncols}"))
    return A.nrows


def vertex(source: Any, n: int) -> int:
    """The number as an int; TypeError if it is no whole one, IndexOutOfBound if it is not one of 0 .. n-1."""
    try:
        number = None if isinstance(source, bool) else index(source)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(message("a vertex number", repr(source)))
    if not 0 <= number < n:
        raise IndexOutOfBound(message(f"a vertex from 0 to {n - 1}", number) if n else "the graph has no vertex")
    return number


def vertices(sources: Any, n: int, seed: int) -> np.ndarray:
    """Different vertices: all of them for None, so many for a number, drawn at random, or those that are listed.

    Raises TypeError (no whole numbers), InvalidValue (more than there are, one twice), IndexOutOfBound (no vertex)."""
    if sources is None:
        return np.arange(n)
    if isinstance(sources, Vector):
        sources = sources.to_coo()[0]
    listed = np.asarray(sources)
    if listed.size and listed.dtype.kind not in "iu" or listed.ndim > 1:
        raise TypeError(message("a number of sources, or a list of vertices", repr(sources)))
    if listed.ndim == 0:
        if not 0 <= listed <= n:
            raise InvalidValue(message(f"from 0 to {n} sources", listed, "a list names the vertices themselves"))
        return np.sort(np.random.default_rng(seed).choice(n, int(listed), replace=False, shuffle=False))
    listed = np.array([vertex(source, n) for source in listed.tolist()], int)
    if len(np.unique(listed)) < len(listed):
        raise InvalidValue(message("each source once", "one that is listed twice"))
    return listed


def others(n: int, sources: np.ndarray) -> np.ndarray:
    """How many of the sources are another vertex, for each vertex; NaN where none is, but others exist."""
    count = np.full(n, float(len(sources)))
    count[sources] -= 1
    count[count == 0] = np.nan if n > 1 else 1
    return count


def drawn(n: int, seed: int) -> Vector:
    """A number (INT64) for each of n vertices, a different one for each and all below 2n, in an order drawn by seed."""
    numbers = Vector(int, n, name="drawn")
    numbers[:] = 0
    numbers << indexunary.rowindex(numbers, int(np.random.default_rng(seed).integers(1 << 31)))
    for _ in range(2):
        numbers << numbers.apply(mixed, right=max(n - 1, 1).bit_length())
    return numbers


def _mixed(x, bits):
    """Another number of so many bits, each from one only: odd factors and shifts can be undone."""
    x = (x & (1 << bits) - 1) * 0x5851F42D & (1 << bits) - 1
    x ^= x >> (bits + 1 >> 1)
    x = x * 0x2545F491 & (1 << bits) - 1
    return x ^ x >> (bits + 1 >> 1)


mixed = binary.register_anonymous(_mixed, "mixed")


def sample(v: Vector, most: int = 1000) -> np.ndarray:
    """Values of a vector at places drawn at random, always the same ones; some twice, none where it has no value."""
    places = np.random.default_rng(0).integers(0, max(v.size, 1), most if v.size else 0)
    return v[places].new().to_coo()[1]


def rounds_are_cheap() -> bool:
    """Whether a round of a loop that reaches few vertices takes a microsecond: on CPU devices of one process."""
    session = settings.session()
    return session.home.kind == "cpu" and session.ranks is None


def is_thin(A: Matrix) -> bool:
    """Whether vertices have few arcs, so that frontiers are small, or last for many rounds."""
    return A.nvals <= THIN * A.nrows


def without_rounds(A: Matrix, search: str = "") -> bool:
    """Whether `gb.fixpoint` is predicted to take less time than rounds.

    `search`: than those of a search for "levels", or for a "tree", which look at no arc twice. Where rounds are cheap,
    they are quicker, but for levels of thin graphs on several devices, which meet in each round.
    """
    session = settings.session()
    if search and rounds_are_cheap():
        meets = search == "levels" and len(session.devices) > 1
        return meets and session.free(A) and is_thin(A)
    return session.free(A)


def row_lengths(A: Matrix) -> Any:
    """The expression of how many entries each row has (INT64), nothing where there is none: out-degrees."""
    return A.reduce_rowwise(agg.count)


def degrees(A: Matrix) -> Vector:
    """The same, with 0 where there is none."""
    degree = Vector(int, A.nrows, name="degree")
    degree[:] = 0
    degree(binary.plus) << row_lengths(A)
    return degree
