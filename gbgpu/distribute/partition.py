"""Partitions: how the rows of a size are divided among devices. Their result becomes a RowMap (rowmap.py)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..device.cpu import LARGE, host_room
from ..errors import InvalidValue, message
from ..interrupts import imported
from .rowmap import WORD, Order, in_words

ORDER = 32  # bytes a row, at most, that an order of rows takes while it is made
FEW = 16  # rows for each device below which METIS is not asked


class Pattern(NamedTuple):
    """What is known of the rows that are to be divided.

    lengths: entries a row, an empty array where no row has any; cols(): the columns of these entries, row after row, of
    a square matrix. None: nobody knows. each: rows that have a length together, for partitions into neighbours.
    """

    n: int
    lengths: np.ndarray | None = None
    cols: Callable[[], np.ndarray] | None = None
    each: int = 1


# Bounds of blocks, p + 1 places; the user id at each place; and how many rows at the head of each block are delegates
Division = tuple[np.ndarray, Order] | tuple[np.ndarray, Order, np.ndarray]


class Partition:
    """How rows are divided among devices; the functions of `gb.partition` make them.

    `divide(rows, p)` divides rows among p devices. `permutes`: rows may have another order than ids.
    """

    def __init__(self, name: str, divide: Callable[[Pattern, int], Division], permutes: bool = False):
        self.name, self.divide, self.permutes = name, divide, permutes

    def __repr__(self) -> str:
        return f"partition.{self.name}"


def _cut(n: int, weights: np.ndarray, words: bool = True) -> np.ndarray:
    """Bounds of blocks whose sizes are as weights.

    Each row goes to one block; sizes differ from the exact share by less than one row, or (`words`) by less than a word
    where there are many.
    """
    share = np.cumsum(weights)[:-1] / weights.sum()
    return _bounds(np.floor(share * n + 0.5).astype(np.int64), n, words)


def _bounds(inner: np.ndarray, n: int, words: bool = True) -> np.ndarray:
    """Bounds of blocks from those between them; who is to have nothing has nothing."""
    if words and in_words(n, len(inner) + 1):
        inner = np.where(inner < n, inner // WORD * WORD, n)
    return np.concatenate([[0], inner, [n]]).astype(np.int64)


def _work(rows: Pattern) -> np.ndarray:
    """Of each row (or so many together): one, because a probe of an empty row is work too, and its entries."""
    lengths = rows.lengths
    return np.ones(rows.n, np.int64) if lengths is None or not len(lengths) else rows.each + lengths.astype(np.int64)


def _cut_work(rows: Pattern, p: int, weights: np.ndarray) -> np.ndarray:
    """Bounds of p contiguous blocks whose work is about as weights."""
    n = rows.n
    if n == 0 or rows.lengths is None:
        return _cut(n, weights)
    upto, share = np.cumsum(_work(rows)), np.cumsum(weights)[:-1] / weights.sum()
    inner = np.minimum(np.searchsorted(upto, upto[-1] * share, side="left") + 1, len(upto))
    if rows.each > 1:  # as if rows that are together were alike
        inner = (inner - (upto[inner - 1] - upto[-1] * share) / np.diff(upto, prepend=0)[inner - 1]) * rows.each
    return _bounds(np.minimum(inner, n).astype(np.int64), n)


def _room(n: int) -> None:
    """Raises OutOfMemory unless the host can hold an order of `n` rows."""
    if n >= LARGE:
        host_room(ORDER * n, f"an order of {n} rows", "equal_rows, equal_edges and shares keep the order of ids")


def _by_owner(owners: np.ndarray, p: int) -> tuple[np.ndarray, Order]:
    """Rows by the block that each belongs to, in a block by id."""
    sizes = np.bincount(owners, minlength=p)
    return np.concatenate([[0], np.cumsum(sizes)]), np.argsort(owners, kind="stable")


def _forth_and_back(n: int, p: int) -> np.ndarray:
    """The owners of `n` rows that are given to devices 0 .. p - 1, p - 1 .. 0, 0 .. in turn."""
    turn = np.arange(n) % (2 * p)
    return np.minimum(turn, 2 * p - 1 - turn)


def equal_rows() -> Partition:
    """The same number of rows for every device.

    If there are 4096 rows or more for each device, blocks begin at multiples of 64.

    Returns
    -------
    Partition
        For `gb.init(partition=...)`.
    """
    return Partition("equal_rows()", lambda rows, p: (_cut(rows.n, np.ones(p)), None))


def equal_edges(*weights: float) -> Partition:
    """About the same number of rows plus entries for every device, of the first matrix of a size.

    Parameters
    ----------
    *weights : float
        One for each device: shares in proportion to these. By default all are the same.

    Returns
    -------
    Partition
        For `gb.init(partition=...)`.

    Raises
    ------
    InvalidValue
        As `shares`.

    References
    ----------
    Jia et al., "A Distributed Multi-GPU System for Fast Graph Processing" (Lux), VLDB 2017, section 4.2.
    """
    of_devices = _weights(weights) if weights else np.ones
    return Partition(f"equal_edges{weights}", lambda rows, p: (_cut_work(rows, p, of_devices(p)), None))


def shares(*weights: float) -> Partition:
    """Rows in proportion to weights: `shares(1, 5, 3)` for three devices.

    If there are 4096 rows or more for each device, blocks begin at multiples of 64.

    Parameters
    ----------
    *weights : float
        One for each device, 0 or more.

    Returns
    -------
    Partition
        For `gb.init(partition=...)`.

    Raises
    ------
    InvalidValue
        If a weight is negative or their sum is 0; later if the number of devices is another.
    """
    of_devices = _weights(weights)
    return Partition(f"shares{weights}", lambda rows, p: (_cut(rows.n, of_devices(p)), None))


def _weights(weights: tuple[float, ...]) -> Callable[[int], np.ndarray]:
    """A function of the number of devices that returns their weights, or raises if there is another number."""
    try:
        given = np.array([np.nan if isinstance(weight, (str, bytes)) else float(weight) for weight in weights])
    except (TypeError, ValueError, OverflowError):
        given = np.array([np.nan])
    with np.errstate(over="ignore"):
        total = given.sum()
    if not weights or not (given >= 0).all() or not 0 < total < np.inf:
        raise InvalidValue(message("non-negative weights with a positive sum", weights, "one weight for each device"))

    def of_devices(p: int) -> np.ndarray:
        if p != len(weights):
            raise InvalidValue(message(f"one weight for each of the {p} devices", f"{len(weights)} weights: {weights}"))
        return given

    return of_devices


def _number(given: Any, least: int) -> int | None:
    """A whole number of Python or NumPy; None where it is none, or too small."""
    whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given >= least
    return int(given) if whole else None


def random(seed: int = 0) -> Partition:
    """The same number of rows for every device, drawn at random.

    Parameters
    ----------
    seed : int
        The same seed gives the same rows; 0 or more.

    Returns
    -------
    Partition
        For `gb.init(partition=...)`.

    Raises
    ------
    InvalidValue
        If `seed` is no whole number from 0 on.
    """
    if _number(seed, 0) is None:
        raise InvalidValue(message("a seed from 0 on", repr(seed)))

    def divide(rows: Pattern, p: int) -> tuple[np.ndarray, Order]:
        _room(rows.n)
        owners = np.repeat(np.arange(p), np.diff(_cut(rows.n, np.ones(p), words=False)))
        return _by_owner(np.random.default_rng(seed).permutation(owners), p)

    return Partition(f"random({seed})", divide, permutes=True)


def segments(each: int = 8) -> Partition:
    """Runs of neighbouring ids of about the same rows plus entries, several for every device, in turn.

    Neighbouring ids stay together where ids have locality. A frontier that moves through them, as on a road map, keeps
    several devices busy. `segments(1)` is `equal_edges()`.

    Parameters
    ----------
    each : int
        Runs for each device, 1 or more.

    Returns
    -------
    Partition
        For `gb.init(partition=...)`.

    Raises
    ------
    InvalidValue
        If `each` is no whole number from 1 on.

    References
    ----------
    Meng et al., GUM, ICDE 2023, section 6, experiment 6 (`seg`).
    """
    if (count := _number(each, 1)) is None:
        raise InvalidValue(message("a positive number of segments for each device", repr(each)))
    each = count

    def divide(rows: Pattern, p: int) -> tuple[np.ndarray, Order]:
        _room(rows.n)
        count = p * min(each, max(rows.n, 1))
        cuts = _cut_work(rows, count, np.ones(count))
        return _by_owner(np.repeat(np.arange(count) % p, np.diff(cuts)), p)

    return Partition(f"segments({each})", divide, permutes=each > 1)


def degree_sorted() -> Partition:
    """Rows by their number of entries, most first, to the devices in turn, forth and back.

    Every device has the same number of rows, of hubs, and about the same number of entries. The rows of a device stay
    in this order, so its hubs are neighbours in memory.

    Returns
    -------
    Partition
        For `gb.init(partition=...)`.
    """

    def divide(rows: Pattern, p: int) -> tuple[np.ndarray, Order]:
        _room(rows.n)
        ranked = np.argsort(-_work(rows), kind="stable")
        bounds, order = _by_owner(_forth_and_back(rows.n, p), p)
        return bounds, ranked[order]

    return Partition("degree_sorted()", divide, permutes=True)


def degree_separated(threshold: int | str = "auto") -> Partition:
    """Hubs (delegates) divided evenly and apart from all other rows, which are runs of neighbouring ids.

    Rows and columns with more entries than `threshold` are delegates. They lie at the head of every block, most entries
    first. The other rows are runs with as many rows plus entries in each block.

    Parameters
    ----------
    threshold : int or "auto"
        "auto" takes the threshold by which the fewest values are expected to move, which may be none.

    Returns
    -------
    Partition
        For `gb.init(partition=...)`.

    Raises
    ------
    InvalidValue
        If `threshold` is neither "auto" nor a whole number from 0 on.

    Notes
    -----
    A product with a square matrix then asks other devices for two kinds of values: those of delegates, and those that
    entries between two other rows name. An entry in a delegate's row is stored a second time with the owner of its
    column, who sums there (docs/partitions.md). Rows of matrices that are not square are divided like the others,
    without delegates.

    References
    ----------
    Pan, Pearce, Owens, "Scalable Breadth-First Search on a GPU Cluster", IPDPS 2018, section III.
    """
    auto = isinstance(threshold, str) and threshold == "auto"
    if not auto and _number(threshold, 0) is None:
        hint = "rows with more entries are delegates"
        raise InvalidValue(message('threshold="auto", or an int from 0 on', repr(threshold), hint))
    threshold = threshold if auto else int(threshold)

    def divide(rows: Pattern, p: int) -> Division:
        if rows.cols is None or p == 1 or rows.lengths is None or not rows.lengths.any():
            return equal_edges().divide(rows, p)
        _room(rows.n)
        degrees = np.maximum(rows.lengths, np.bincount(rows.cols(), minlength=rows.n))
        is_hub = degrees > (_least_moved(degrees, p) if auto else threshold)
        if not is_hub.any():
            return equal_edges().divide(rows, p)
        hubs, others = np.flatnonzero(is_hub), np.flatnonzero(~is_hub)
        hubs = hubs[np.argsort(-degrees[hubs], kind="stable")]
        hub_owners, upto = _forth_and_back(len(hubs), p), np.cumsum(_work(rows)[others])
        owners = np.minimum((upto - 1) * p // max(upto[-1:].sum(), 1), p - 1)
        bounds, order = _by_owner(np.concatenate([hub_owners, owners]), p)
        return bounds, np.concatenate([hubs, others])[order], np.bincount(hub_owners, minlength=p)

    return Partition(f"degree_separated({threshold!r})", divide, permutes=True)


def _least_moved(degrees: np.ndarray, p: int) -> int:
    """The threshold, a power of two, with which the fewest values are expected to move in a pull.

    Neighbours are taken to lie anywhere. Of the thresholds within a hundredth of the fewest it is the least, as
    searches bring bits for delegates, and ids for others. It is the largest degree, unless that saves a tenth of what
    moves with it.

    A row of k entries has one with (p - 1) * (1 - (1 - 1/p)**k) of the others. Rows of delegates are summed where
    their entries lie, so who reads a value has another row with it; and sums come for delegates alone.
    """
    each, rows = np.unique(degrees, return_counts=True)

    def others(entries: np.ndarray) -> np.ndarray:
        return (p - 1) * (1 - (1 - 1 / p) ** entries)

    found = []
    for least in [*2 ** np.arange(int(each[-1]).bit_length()), each[-1]]:
        hubs = each > least
        left = 1 - (each * rows)[hubs].sum() / (each * rows).sum()  # share of entries that normal rows have
        found.append(((rows * others(each * left)).sum() + (rows * others(each))[hubs].sum(), int(least)))
    fewest = min(found)[0]
    if fewest > 0.9 * found[-1][0]:
        return found[-1][1]
    return next(least for moved, least in found if moved <= 1.01 * fewest)


def metis(seed: int = 0) -> Partition:
    """Blocks of about the same rows plus entries between which few entries lie, by METIS.

    METIS divides the first square matrix of a size, its pattern made symmetric. Rows of other sizes are divided by
    their work.

    Parameters
    ----------
    seed : int
        From 0 to 2**31 - 1.

    Returns
    -------
    Partition
        For `gb.init(partition=...)`.

    Raises
    ------
    InvalidValue
        If `seed` is another.
    ImportError
        If pymetis is not installed (`pip install '.[metis]'`).

    References
    ----------
    Karypis, Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs", SIAM J. Sci. Comput.
    20, 1998.
    """
    if _number(seed, 0) is None or seed >= 1 << 31:
        raise InvalidValue(message("a seed from 0 to 2**31 - 1", repr(seed)))
    try:
        pymetis = imported("pymetis")
    except ImportError as error:
        raise ImportError("gb.partition.metis needs pymetis: pip install pymetis") from error

    def divide(rows: Pattern, p: int) -> tuple[np.ndarray, Order]:
        few = rows.n < FEW * p  # METIS wants vertices for each part, and says so on stdout
        if rows.cols is None or p == 1 or rows.lengths is None or not rows.lengths.any() or few:
            return _cut_work(rows, p, np.ones(p)), None
        _room(rows.n)
        graph = pymetis.CSRAdjacency(*_undirected(rows.lengths, rows.cols()))
        options = pymetis.Options(seed=seed)
        _, owners = pymetis.part_graph(p, graph, vweights=_work(rows), options=options, recursive=False)
        return _by_owner(np.asarray(owners), p)

    return Partition(f"metis({seed})", divide, permutes=True)


def _undirected(lengths: np.ndarray, cols: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """CSR of a square pattern and its transpose together, without self loops."""
    n = len(lengths)
    rows = np.repeat(np.arange(n), lengths)
    away = rows != cols
    keys = np.concatenate([rows[away] * n + cols[away], cols[away] * np.int64(n) + rows[away]])
    keys = np.unique(keys)
    return np.searchsorted(keys, np.arange(n + 1) * n), keys % n


NAMED = {
    "rows": equal_rows,
    "edges": equal_edges,
    "random": random,
    "segments": segments,
    "metis": metis,
    "degree_sorted": degree_sorted,
    "degree_separated": degree_separated,
}  # those that need no more than a name
