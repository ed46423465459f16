"""The row maps of a session: one default map a size, made by the first matrix of that size."""

from collections.abc import Callable

import numpy as np

from ..distribute.partition import Partition, Pattern, equal_edges, equal_rows
from ..distribute.rowmap import RowMap, in_words


class Maps:
    """Maps over p devices; objects of fewer than `whole` rows and entries live on the first."""

    def __init__(self, p: int, whole: int, partition: Partition | None):
        self._p, self._whole, self._partition = p, whole, partition
        if partition is not None:
            partition.divide(Pattern(64), p)  # raises now if the weights don't fit the devices
        self.alone = False  # the first device works alone
        self.unsettled = False  # whether objects may lie on other maps than those of their sizes (engine/moving.py)
        self._made: dict[tuple[int, bool], RowMap] = {}
        self._defaults: dict[int, RowMap] = {}
        self._first: dict[int, RowMap] = {}

    def clear(self) -> None:
        for made in (self._made, self._defaults, self._first):
            made.clear()

    def of(self, n: int) -> RowMap:
        """The default map of a size: the one its first matrix made, else equal rows (or the session's partition)."""
        return self.first(n) if self.alone else self._default(n)

    def first(self, n: int) -> RowMap:
        """All rows on the first device, while it works alone."""
        map = self._default(n)
        return map if map.p == 1 else self._first.get(n) or self._first.setdefault(n, RowMap(np.array([0, n])))

    def left(self, n: int) -> bool:
        """What lies on the first device alone belongs to where others of its size are, from now on. Whether that is
        elsewhere."""
        map, default = self.first(n), self._default(n)
        if map is default:
            return False
        map.successor, self.unsettled = default, True
        return True

    def leave(self) -> None:
        """All devices work again; what was made meanwhile belongs to where others of its size are."""
        self.alone = False
        for n in self._first:
            self.left(n)

    def stays(self, map: RowMap) -> bool:
        """Whether these rows are what a loop left on the first device."""
        return not self.alone and map is self._first.get(map.n)

    def _default(self, n: int) -> RowMap:
        found = self._defaults.get(n)
        return found if found is not None else self._make(Pattern(n), n < self._whole)

    def plain(self, n: int) -> bool:
        """Whether slots of a new matrix of this size are the user ids."""
        return self._p > 1 and self._partition is None and in_words(n, self._p)

    @property
    def permutes(self) -> bool:
        """Whether rows may have another order than their ids."""
        return self._partition is not None and self._partition.permutes

    def reorders(self, nrows: int, ncols: int, nvals: int) -> bool:
        """Whether rows or columns of a new matrix of these sizes have another order than their ids, or may get one."""
        if self._p == 1 or not self.permutes or max(nrows, ncols) + nvals < self._whole:
            return False
        maps = map(self._defaults.get, (nrows, ncols))
        return any(found is None or found.p == 1 or found.order is not None for found in maps)

    def succeed(self, old: RowMap, new: RowMap) -> None:
        """Where objects were made on one map, they are made on another one of their size."""
        self.unsettled = True
        self._made.update({key: new for key, map in self._made.items() if map is old})
        self._defaults.update({n: new for n, map in self._defaults.items() if map is old})

    def whole(self, n: int) -> RowMap:
        """All rows in one block."""
        return self._make(Pattern(n), True)

    def _make(self, rows: Pattern, whole: bool) -> RowMap:
        key = rows.n, whole
        found = self._made.get(key)
        if found is None or rows.lengths is not None:
            partition = self._partition or (equal_rows() if rows.lengths is None else equal_edges())
            made = RowMap(*((np.array([0, rows.n]),) if whole else partition.divide(rows, self._p)))
            if found is None or not found.same(made):
                found = self._made[key] = made
        return found

    def pair(self, nrows: int, ncols: int, p: int) -> tuple[RowMap, RowMap]:
        """The maps of a matrix made on `p` devices."""
        rows, cols = (
            found if found.p == p else self._make(Pattern(found.n), p == 1) for found in map(self.of, (nrows, ncols))
        )
        return rows, cols

    def of_matrix(
        self,
        nrows: int,
        ncols: int,
        nnz: int,
        lengths: np.ndarray | None,
        pattern: Callable[[], np.ndarray] | None = None,
        each: int = 1,
    ) -> tuple[RowMap, RowMap]:
        """The maps of a new matrix; the first of its size decides the defaults, by its row lengths (of `each` rows
        together) and `pattern`, the columns of its entries, if given."""
        whole = max(nrows, ncols) + nnz < self._whole
        p = 1 if whole else self._p
        maps = []
        known = Pattern(nrows, lengths, pattern if nrows == ncols else None, each)
        for n in (nrows, ncols):
            found = self._defaults.get(n)
            if found is None or found.p != p:
                first = n == nrows and not whole and n not in self._defaults
                found = self._make(known if first else Pattern(n), whole)
                if lengths is None or len(lengths):  # a matrix without entries decides nothing
                    self._defaults.setdefault(n, found)
            maps.append(found)
        return maps[0], maps[1]
