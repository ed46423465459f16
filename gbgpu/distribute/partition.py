"""Rows -> owners: pure arithmetic. A partition divides the rows of a size; a RowMap translates user ids and slots."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device
from ..device.cpu import LARGE, host_room
from ..errors import InvalidValue, message
from ..interrupts import imported

WORD = 64  # rows of a presence word; every block starts on one
PIECE = 1 << 16  # ids that are translated at once, so that they stay in the caches
ORDER = 32  # bytes a row, at most, that an order of rows takes while it is made
FEW = 16  # rows for each device below which METIS is not asked
FAR = 1 << 62  # kernels/interface.py: `row0` of rows that have an order of their own

Order = np.ndarray | None  # user ids in the order of blocks; None where that is 0, 1, 2 ...


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


def in_words(n: int, p: int) -> bool:
    """Whether p blocks of consecutive ids begin with whole words.

    Slots are then the user ids, and nothing has to be translated.
    """
    return n >= p * WORD * WORD


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
    known = _weights(weights) if weights else lambda p: np.ones(p)
    return Partition(f"equal_edges{weights}", lambda rows, p: (_cut_work(rows, p, known(p)), None))


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
    known = _weights(weights)
    return Partition(f"shares{weights}", lambda rows, p: (_cut(rows.n, known(p)), None))


def _weights(weights: tuple[float, ...]) -> Callable[[int], np.ndarray]:
    """What gives the weights of p devices."""
    try:
        given = np.array([np.nan if isinstance(weight, (str, bytes)) else float(weight) for weight in weights])
    except (TypeError, ValueError, OverflowError):
        given = np.array([np.nan])
    with np.errstate(over="ignore"):
        total = given.sum()
    if not weights or not (given >= 0).all() or not 0 < total < np.inf:
        raise InvalidValue(message("non-negative weights with a positive sum", weights, "one weight for each device"))

    def known(p: int) -> np.ndarray:
        if p != len(weights):
            raise InvalidValue(message(f"one weight for each of the {p} devices", f"{len(weights)} weights: {weights}"))
        return given

    return known


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
        turn = np.arange(rows.n) % (2 * p)
        bounds, order = _by_owner(np.minimum(turn, 2 * p - 1 - turn), p)
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
        apart = degrees > (_least_moved(degrees, p) if auto else threshold)
        if not apart.any():
            return equal_edges().divide(rows, p)
        few = np.flatnonzero(apart)
        few = few[np.argsort(-degrees[few], kind="stable")]
        turn = np.arange(len(few)) % (2 * p)
        theirs = np.minimum(turn, 2 * p - 1 - turn)
        many = np.flatnonzero(~apart)
        upto = np.cumsum(_work(rows)[many])
        mine = np.minimum((upto - 1) * p // max(upto[-1:].sum(), 1), p - 1)
        owners = np.concatenate([theirs, mine])
        bounds, order = _by_owner(owners, p)
        return bounds, np.concatenate([few, many])[order], np.bincount(theirs, minlength=p)

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
        apart = each > least
        left = 1 - (each * rows)[apart].sum() / (each * rows).sum()  # share of entries that normal rows have
        found.append(((rows * others(each * left)).sum() + (rows * others(each))[apart].sum(), int(least)))
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


class Task(NamedTuple):
    """Rows lo .. hi - 1 of a block, for a device to work on. Who stores and writes a block is another matter."""

    device: int
    block: int
    lo: int
    hi: int


class Tables(NamedTuple):
    """A map in a device's memory.

    ids: what kernels are given as (starts, bounds) to turn slots into user ids; slots: of each user id, and users: of
    each slot, if rows have an order of their own.
    """

    starts: Any
    bounds: Any
    ids: tuple[Any, Any]
    slots: Any
    users: Any


class RowMap:
    """User id <-> slot of one index space.

    Block b owns the places bounds[b]..bounds[b+1]; its slots begin at starts[b], a multiple of 64. `order`: the user id
    at each place; None where places are the user ids, as in a map of one block. `heads`: the map of the delegates, the
    first rows of each block, with slots of their own; None if there are none.
    """

    __slots__ = (
        *("n", "p", "bounds", "starts", "nslots", "rows", "tasks", "seconds", "plain", "order", "heads", "_place"),
        *("_bounds", "_starts", "_tables", "successor"),
    )

    def __init__(self, bounds: np.ndarray, order: Order = None, delegates: np.ndarray | None = None):
        self.bounds = np.asarray(bounds, np.int64)
        self.n = int(self.bounds[-1])
        self.p = len(self.bounds) - 1
        self.rows = [int(r) for r in np.diff(self.bounds)]
        self.seconds: float | None = None  # predicted, of a pass over a block's rows
        self.tasks = tuple(Task(b, b, 0, n) for b, n in enumerate(self.rows))  # each block whole, by its owner
        padded = [-(-r // WORD) * WORD for r in self.rows]
        self.starts = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)
        self.nslots = int(self.starts[-1])
        ascending = order is None or self.p == 1 or bool((order == np.arange(self.n)).all())
        self.order = None if ascending else np.asarray(order, np.int64)
        self._place = None if self.order is None else np.argsort(self.order)
        has = np.diff(self.bounds) > 0  # slots are the user ids, where there are any
        self.plain = self.order is None and bool((self.starts[:-1] == self.bounds[:-1])[has].all())
        self.heads = None if delegates is None else RowMap(np.concatenate([[0], np.cumsum(delegates)]))
        self._bounds, self._starts = self.bounds.tolist(), self.starts.tolist()  # NumPy scalars are slow to pass around
        self._tables: dict[str, Tables] = {}
        self.successor: RowMap | None = None  # where what lies on these rows goes at its next use (engine/moving.py)

    def same(self, other: "RowMap") -> bool:
        """Whether rows lie in the same places."""
        mine, its = (np.zeros(0) if map.order is None else map.order for map in (self, other))
        heads = [None if map.heads is None else map.heads.rows for map in (self, other)]
        return np.array_equal(self.bounds, other.bounds) and np.array_equal(mine, its) and heads[0] == heads[1]

    def straight(self) -> "RowMap":
        """The same sizes of blocks, with rows in the order of user ids."""
        return self if self.order is None else RowMap(self.bounds)

    def first(self, b: int) -> int:
        """Place of block b's first row."""
        return self._bounds[b]

    def first_slot(self, b: int) -> int:
        """Slot of block b's first row."""
        return self._starts[b]

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Places of user ids."""
        return ids if self._place is None else self._place[ids]

    def part(self, b: int) -> Any:
        """Where an array in the order of user ids has the rows of block b: a slice, or their ids."""
        rows = slice(self._bounds[b], self._bounds[b + 1])
        return rows if self.order is None else self.order[rows]

    def owner(self, ids: Any) -> Any:
        """The block of each user id."""
        return np.searchsorted(self.bounds, self.places(ids), side="right") - 1

    def slots(self, ids: np.ndarray) -> np.ndarray:
        """Slots of user ids, int64."""
        if self.plain:
            return np.asarray(ids, np.int64)
        if len(ids) > self.n:
            return self.slots(np.arange(self.n))[ids]
        places = self.places(ids)
        block = np.searchsorted(self.bounds, places, side="right") - 1
        return places + (self.starts[:-1] - self.bounds[:-1])[block]

    def by_owner(self, slots: np.ndarray) -> list[np.ndarray]:
        """For each block, which of these slots are its own."""
        below = [slots < end for end in self._starts[1:]]  # faster than a search
        return [np.flatnonzero(below[0]), *(np.flatnonzero(b & ~a) for a, b in pairwise(below))]

    def by_block(self, places: np.ndarray) -> list[np.ndarray]:
        """Ascending places of all rows as rows of each block, of the type of slots."""
        dtype = self.slot_type()
        if self.p == 1:
            return [places.astype(dtype)]
        cuts = np.searchsorted(places, self.bounds)
        return [(places[cuts[b] : cuts[b + 1]] - self.bounds[b]).astype(dtype) for b in range(self.p)]

    def to_slots(self, ids: np.ndarray) -> None:
        """Turn user ids into slots where they lie, one piece after another."""
        pieces = (ids[at : at + PIECE] for at in range(0, len(ids), PIECE))
        if self.order is not None:
            slots: Callable[[np.ndarray], np.ndarray] = self.slots
            if len(ids) > self.n:  # each id is looked up once
                table = np.arange(self.n)
                self.to_slots(table)
                slots = table.__getitem__
            for part in pieces:
                part[:] = slots(part)
            return
        shifts = self.starts[:-1] - self.bounds[:-1]
        steps = [(self.bounds[b], np.int8(shifts[b] - shifts[b - 1])) for b in range(self.p - 1, 0, -1)]
        steps = [(ids.dtype.type(bound), step) for bound, step in steps if step]
        for part in pieces if steps else ():
            for bound, step in steps:  # from the last block, so that what was moved stays above the other bounds
                part += (part >= bound).view(np.int8) * step

    def users(self, slots: np.ndarray) -> np.ndarray:
        """User ids of slots, int64."""
        if self.p == 1:
            return np.asarray(slots, np.int64)
        if len(slots) > self.nslots:  # each slot looked up once
            return self.users(np.arange(self.nslots))[slots]
        block = np.searchsorted(self.starts, slots, side="right") - 1
        places = slots + (self.bounds[:-1] - self.starts[:-1])[block]
        return places if self.order is None else self.order[np.minimum(places, self.n - 1)]  # padding is nobody's

    def tables(self, device: Device) -> Tables:
        """The map in the device's memory."""
        found = self._tables.get(device.name)
        if found is None:
            with device.uncaptured():
                starts, bounds = device.put(self.starts), device.put(self.bounds)
                found = Tables(starts, bounds, (starts, bounds), None, None)
                if self.order is not None:
                    users = device.put(self.users(np.arange(self.nslots)))
                    slots = device.put(self.slots(np.arange(self.n)))
                    found = found._replace(ids=(device.put(self.starts[:1]), users), slots=slots, users=users)
            self._tables[device.name] = found
        return found

    def row_ids(self, device: Device, b: int) -> tuple[int, Any]:
        """(row0, users): how kernels turn rows of block b into user ids."""
        if self.order is None:
            return self._bounds[b], self.tables(device).starts
        return self._starts[b] - FAR, self.tables(device).users

    def slot_type(self) -> str:
        """Column slots are 32-bit while they fit."""
        return "int32" if self.nslots < 2**31 else "int64"
