"""Entries that lie on a GPU, or that GPUs draw -> sorted rows of their owners; the host learns how many there are, and
little else.

Entries are sorted by keys of 64 bits, row and column side by side, as many rows at a time as have about CHUNK entries:
what that needs beyond input and result (16 bytes for each of these, 40 with values) does not grow with the matrix. Each
of several GPUs gets the entries of its own rows, and all sort at the same time: what makes a block is a generator,
which gives way before it waits for a device.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from ..device.remote import AWAY
from ..distribute.rowmap import RowMap, Task
from ..errors import InvalidValue, Panic, message
from ..interrupts import imported
from .build import check_duplicates
from .context import Context
from .matrix.csr import Rows, store_of, take_rows, to_slots
from .matrix.mxm import combined
from .run.steps import copied

Entries = Generator[None, None, tuple[Any, Any]]  # keys and values, once a device has them
SLACK = 16  # of a block of several ranges one part in so many may be room of entries that came more than once
CHUNK: int | None = None  # None: one for each 256 bytes of the GPU's memory


class Given:
    """Entries that lie on the first GPU, with values (one, if `iso`), and what combines those of one place."""

    chunks = 1  # CHUNKs that are sorted at once

    def __init__(self, session: Context, nrows: int, rows: Any, cols: Any, vals: Any, iso: bool, dup_op: Any):
        home: Any = session.devices[0]
        self._session, self.home, self.iso, self._dup_op, self._all = session, home, iso, dup_op, (0, nrows)
        with home.here():
            rows, cols = (ids.astype(np.int32) if ids.itemsize < 4 else ids for ids in (rows, cols))
            self._rows, self._cols, self._vals = map(home.xp.ascontiguousarray, (rows, cols, vals))
        self.dtype, self.most = vals.dtype, len(rows)

    def bins(self, shift: int) -> np.ndarray:
        """How many entries each bin of rows has."""
        return self.home.get(_entries().binned(self.home, self._rows, shift))

    def entries(self, device: Any, low: int, high: int, bits: int, most: int) -> Entries:
        """(sorted keys that differ, their values or None) of the entries of rows low .. high - 1, at most so many, on a
        device."""
        picked = self._picked(low, high, bits, most)
        yield
        keys, vals = (array and _near(device, self.home, array()) for array in picked)
        del picked  # nobody else keeps it
        if vals is None:
            keys, repeated = yield from _apart(device, keys)
            if repeated:
                check_duplicates(True, self._dup_op)
            return keys, None
        order = device.order(keys)
        keys = device.at(keys, order)
        first = device.xp.ones(len(keys), bool)
        device.xp.not_equal(keys[1:], keys[:-1], out=first[1:])
        unique = device.truths(first)
        yield
        if int(device.get(unique)[0]) == len(keys):
            return keys, device.at(vals, order)
        check_duplicates(False, self._dup_op)
        return keys[first], combined(self._session, device, self._dup_op, order, first, vals)

    def _picked(self, low: int, high: int, bits: int, most: int) -> tuple[Callable[[], Any], Callable[[], Any] | None]:
        """What gives the keys of some rows on the first GPU, and what their values, in another step than this one."""
        home, iso = self.home, self.iso
        if (low, high) == self._all:
            keys = home.keys(self._rows, self._cols, bits)
            return lambda: keys, None if iso else lambda: self._vals
        keys, places, end = _entries().picked(home, self._rows, self._cols, low, high, bits, most, not iso)
        vals = None if iso else home.at(self._vals, places)
        total: list[int] = []

        def some(array: Any) -> Any:
            if not total:
                total.append(int(home.get(end)[0]))
            return array[: total[0]]

        return lambda: some(keys), None if iso else lambda: some(vals)

    def one(self, device: Any) -> Any:
        """The value of all entries, on a device."""
        return self._vals if device is self.home else copied(device, self._vals)


class Drawn:
    """A graph that each GPU draws for itself (io/generate.py): the edges of all, of which it keeps those of its
    rows."""

    chunks = 4  # all edges are drawn for each

    def __init__(self, session: Context, recipe: Any, dtype: Any):
        self._session, self._recipe, self.dtype, self.home = session, recipe, np.dtype(dtype.np_type), None
        self.iso, self.most = recipe.weights is None, recipe.units * (1 + recipe.symmetric)
        self._tasks = [Task(d, d, 0, 0) for d in range(len(session.devices))]
        self._labels: dict[int, Any] = {}  # by GPU
        if recipe.labels is not None:
            ranks = session.ranks
            names = recipe.labels() if ranks is None else ranks.alike(recipe.labels, "new names of vertices")
            session.over(self._tasks, lambda task: self._named(session.devices[task.device], names), 0.0)

    def _named(self, device: Any, names: np.ndarray) -> None:
        if device.gpu not in self._labels:
            self._labels[device.gpu] = device.put(names)

    def _drawing(self, device: Any, first: int, last: int) -> Any:
        return _entries().Drawing(device, self._recipe, self._labels.get(device.gpu), first, last)

    def bins(self, shift: int) -> np.ndarray:
        """How many entries each bin of rows has: each device counts a share of the draws."""
        units, devices, tasks = self._recipe.units, self._session.devices, self._tasks
        thread = _entries().UNITS  # what it takes: shares are multiples of it
        each = -(-units // (len(devices) * thread)) * thread

        def counted(task: Task) -> Any:
            first, last = (min(each * d, units) for d in (task.device, task.device + 1))
            return self._drawing(devices[task.device], first, last).bins(shift)

        found = self._session.over(tasks, counted, 0.0)
        found = self._session.over(tasks, lambda task: devices[task.device].get(found[task.block]), 0.0)
        total: np.ndarray = np.sum(self._session.allgather(tasks, found, "entries of rows"), axis=0)
        return total

    def entries(self, device: Any, low: int, high: int, bits: int, most: int) -> Entries:
        """As those of `Given`."""
        keys, count = self._drawing(device, 0, self._recipe.units).keys(low, high, bits, most)
        yield
        total = int(device.get(count)[0])
        if total > most:
            raise Panic(f"{device.name} drew {total} entries of rows {low} to {high - 1}, and counted {most}")
        keys, _ = yield from _apart(device, keys[:total])
        if self.iso:
            return keys, None
        recipe = self._recipe
        args = low, bits, recipe.n, recipe.symmetric, recipe.weights, self.dtype
        return keys, _entries().weighed(device, keys, *args)

    def one(self, device: Any) -> Any:
        return device.full(1, 1, self.dtype)


def _apart(device: Any, keys: Any) -> Generator[None, None, tuple[Any, bool]]:
    """(the keys that differ, sorted; whether some are there more than once). The array is given away."""
    device.sort(keys)
    offsets = _entries().distinct_counts(device, keys)
    yield
    total = int(device.get(offsets[-1:])[0])
    return (keys, False) if total == len(keys) else (_entries().distinct(device, keys, offsets, total), True)


def build(session: Context, matrix: Any, source: Given | Drawn) -> None:
    """Give a matrix the entries of a source. Equal places of given ones are combined in input order; columns (user ids)
    ascend."""
    (nrows, ncols), devices = matrix.shape, session.devices
    if not fits(nrows, ncols):
        raise InvalidValue(message("a shape of at most 2**62 places", matrix.shape, "arrays on the host may be larger"))
    bits, shift, bins, tasks = _bits(ncols), _entries().shift_of(nrows), None, [Task(0, 0, 0, nrows)]
    rowmap, colmap = RowMap(np.array([0, nrows])), None
    apart = by_owners(session)
    if apart or source.most > chunk_of(devices[0]) or isinstance(source, Drawn):
        bins = source.bins(shift)[: -(-nrows >> shift)]
    if apart and bins is not None:
        rowmap, colmap = session.maps.of_matrix(nrows, ncols, int(bins.sum()), bins, each=1 << shift)
        tasks = [*rowmap.tasks]

    def rows_of(task: Task) -> Generator[None, None, Rows]:
        device, low = devices[task.device], rowmap.first(task.block)
        if device is source.home and len(tasks) > 1:  # which first picks what others copy while it picks its own
            yield
        rows = yield from _block(device, source, low, low + task.hi, ncols, bins, shift, bits)
        if colmap is None or colmap.plain:
            return rows
        return to_slots(device, rows._replace(cols=rows.cols.astype(np.int64)), colmap)

    parts = _in_turns(session, tasks, rows_of)
    if colmap is None:
        home: Any = devices[0]
        with home.here():
            distribute(session, matrix, parts[0], source.iso)
    else:
        matrix._store = store_of(session, rowmap, colmap, matrix.dtype, source.iso, parts)


def _block(
    device: Any, source: Given | Drawn, low: int, high: int, ncols: int, bins: np.ndarray | None, shift: int, bits: int
) -> Generator[None, None, Rows]:
    """Rows low .. high - 1 on a device."""
    ranges = list(_ranges(low, high, source.most, bins, shift, source.chunks * chunk_of(device)))
    room = sum(most for *_, most in ranges) if len(ranges) > 1 else 0  # one range has as much as is found
    indptr, above, narrow = device.zeros(high - low + 1, np.int64), 0, np.int32 if ncols <= 2**31 else np.int64
    cols, vals = device.empty(room, narrow), device.empty(0 if source.iso else room, source.dtype)
    for lo, hi, most in ranges:
        ends = indptr[lo - low : hi - low + 1]
        if not most:
            if above:
                ends[...] = above
            continue
        keys, found = yield from source.entries(device, lo, hi, bits, most)
        begins, upto = device.firsts(keys, bits, hi - lo, np.int64), above + len(keys)
        if above:
            begins += above
        device.copy(ends, begins)
        if not room:
            cols, vals = device.empty(upto, narrow), vals if found is None else found
        elif found is not None:
            device.copy(vals[above:upto], found)
        device.low_bits(keys, bits, cols[above:upto])
        above = upto
        del keys, found, begins
    cols, vals = cols[:above], source.one(device) if source.iso else vals[:above]
    if above < room - room // SLACK:
        cols, vals = copied(device, cols), copied(device, vals)
    return Rows(indptr, cols, vals, int(not source.iso))


def _ranges(
    low: int, high: int, most: int, bins: np.ndarray | None, shift: int, chunk: int
) -> Iterator[tuple[int, int, int]]:
    """Cut rows low .. high - 1 into ranges of about `chunk` entries, with the number that each has at most: bins that
    are cut count whole."""
    if bins is None:
        yield low, high, most
        return
    upto = np.concatenate([[0], np.cumsum(bins)])
    while low < high:
        before = upto[low >> shift]
        end = max(int(np.searchsorted(upto, before + chunk, side="right")) - 1, (low >> shift) + 1)
        end = min(end << shift, high)
        yield low, end, int(upto[-(-end >> shift)] - before)
        low = end


def _in_turns(
    session: Context, tasks: Sequence[Task], work: Callable[[Task], Generator[None, None, Rows]]
) -> list[Rows]:
    """What work(task) returns, for every task: each goes on, on its device, until it would wait. The first device,
    which has what others read, is a turn behind: it comes last where they read, and first where they would wait."""
    turn = 0
    going = {task: work(task) for task in tasks if session.devices[task.device].kind != "remote"}
    found: dict[Task, Any] = {}

    def further(task: Task) -> None:
        try:
            next(going[task])
        except StopIteration as ended:
            found[task] = ended.value
            del going[task]

    while going:
        turn += 1
        session.over(list(going)[:: 1 if turn > 1 and turn % 2 else -1], further, 0.0)
    return [found.get(task, AWAY) for task in tasks]


def from_csr(session: Context, matrix: Any, indptr: Any, cols: Any, vals: Any, iso: bool) -> None:
    """Give a matrix rows whose columns may be in any order. Raises ValueError for duplicates."""
    device, n = session.devices[0], len(indptr) - 1
    begins = device.zeros(len(cols) + 1, np.bool_)
    begins[indptr[:-1]] = True
    if len(cols) > 1 and bool(device.get(((cols[1:] <= cols[:-1]) & ~begins[1:-1]).any())):
        return build(session, matrix, Given(session, n, device.owners(indptr, len(cols)), cols, vals, iso, None))
    return distribute(session, matrix, Rows(indptr.astype(np.int64), cols.copy(), vals.copy(), 0 if iso else 1), iso)


def distribute(session: Context, matrix: Any, rows: Rows, iso: bool) -> None:
    """Give a matrix these rows, cut into the blocks of its devices."""
    first, ptr, (nrows, ncols) = session.devices[0], rows.indptr, matrix.shape
    lengths = first.get(first.xp.diff(ptr)) if len(session.devices) > 1 else None
    rowmap, colmap = session.maps.of_matrix(nrows, ncols, len(rows.cols), lengths, lambda: first.get(rows.cols))
    parts = [rows]
    if rowmap.order is not None:
        rows = take_rows(session, first, rows, first.put(rowmap.order))
        ptr = rows.indptr
    if rowmap.p > 1:
        cuts = first.get(ptr[rowmap.bounds]).tolist()

        def part(task: Task) -> Rows:
            b, device = task.block, session.devices[task.device]
            lo, hi = cuts[b : b + 2]

            def here(array: Any) -> Any:
                return copied(device, array) if task.device else array

            local = here(ptr[rowmap.bounds[b] : rowmap.bounds[b + 1] + 1]) - lo
            cols = rows.cols[lo:hi]
            vals = here(rows.vals) if iso else copied(device, rows.vals[lo:hi])
            if colmap.plain:
                return Rows(local, copied(device, cols), vals, rows.stride)
            return to_slots(device, Rows(local, here(cols).astype(np.int64), vals, rows.stride), colmap)

        parts = session.over(rowmap.tasks, part, 0.0)
    matrix._store = store_of(session, rowmap, colmap, matrix.dtype, iso, parts)


def fits(nrows: int, ncols: int) -> bool:
    """Whether a key has room for a row and a column."""
    return _bits(nrows) + _bits(ncols) <= 62


def by_owners(session: Context) -> bool:
    """Whether each device sorts the entries of its own rows."""
    return len(session.devices) > 1 and not session.maps.permutes and session.kernels.kind == "cuda"


def chunk_of(device: Any) -> int:
    """How many entries a device sorts at once."""
    return CHUNK or device.total // 256


def _bits(n: int) -> int:
    """Of numbers below n."""
    return max(n - 1, 1).bit_length()


def _entries() -> Any:
    return imported("gbgpu.device.entries")


def _near(device: Any, home: Any, array: Any) -> Any:
    """An array of the first GPU, on a device."""
    return array if device.gpu == home.gpu else copied(device, array)
