"""The helpers `v.ss` and the import functions `Vector.ss`."""

from typing import Any

import numpy as np

from ..errors import checked_text, message
from .arrays import array_of, checked_size, room_for
from .compose import of_ndim
from .expr import _kinds
from .imports import by_format, first, first_values, imported
from .row_order import chosen_of_rows, compacted_rows, scanned_rows, sorted_rows
from .tools import ObjectTools, chunk_sizes, concat, folded


class VectorTools(ObjectTools):
    """The helpers `v.ss` of a vector; as `Vector.ss` the import functions."""

    @property
    def format(self) -> str:
        """The form in which the vector lies on the devices now: "sparse", "bitmap" or "full"."""
        return str(self._parent._session.seen(self, "_form"))

    @property
    def _form(self) -> str:
        store = self._parent._store
        return store.form if store is not None and store.form in ("bitmap", "full") else "sparse"

    def build_diag(self, matrix: Any, k: int = 0) -> None:
        """The parent becomes a diagonal of a matrix."""
        self._parent << of_ndim(matrix, 2)._computed().diag(k)

    def build_scalar(self, indices: Any, value: Any) -> None:
        """Fill an empty vector with one value at the given indices."""
        self._parent.build(indices, value)

    def concat(self, tiles: Any) -> None:
        """The parent becomes these vectors, one after another."""
        self._parent << concat(tiles, self._parent.dtype)

    def split(self, chunks: Any, *, name: str | None = None) -> list:
        """Pieces of the given size, or sizes; one None in a list of them is the rest."""
        v = self._parent
        ends, name = np.cumsum([0, *chunk_sizes(chunks, v.size)]).tolist(), v.name if name is None else name
        return [v[a:b].new(name=f"{name}_{i}") for i, (a, b) in enumerate(zip(ends, ends[1:], strict=False))]

    def reshape(self, nrows: int, ncols: int | None = None, order: str = "rowwise", *, name: Any = None) -> Any:
        """A matrix filled by rows (or columns) with the vector (one size may be -1)."""
        return folded(self._parent, nrows, ncols, order, name)

    def selectk(self, how: str, k: int, *, name: str | None = None) -> Any:
        """At most k entries.

        Parameters
        ----------
        how : str
            "first", "last", "smallest", "largest" (of equal values the first), or "random".
        k : int
            The number of entries.
        name : str, optional
            The vector's name.

        Returns
        -------
        Vector
            A new one, of this size.
        """
        return chosen_of_rows(self._parent, how, k, "rowwise", name)

    def compactify(
        self, how: str = "first", size: int | None = None, *, reverse: bool = False, asindex: bool = False,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """The first, last, smallest, largest or random entries, moved to the start."""
        return compacted_rows(self._parent, how, size, "rowwise", reverse, asindex, name)

    def sort(self, op: Any = "lt", *, values: bool = True, permutation: bool = True) -> tuple[Any, Any]:
        """The values in order, from the start, and where they were (UINT64); see `A.ss.sort`."""
        return sorted_rows(self._parent, op, "rowwise", values, permutation)

    def scan(self, op: Any = "plus", *, name: str | None = None) -> Any:
        """Each entry becomes the reduction of the entries up to it."""
        return scanned_rows(self._parent, op, "rowwise", name)

    def export(self, format: str | None = None, *, sort: bool = False, raw: bool = False, **opts: Any) -> dict:
        """The content as NumPy arrays of a format: sparse (default), bitmap or full; see `A.ss.export`."""
        v, format = self._parent, "sparse" if format is None else checked_text(format, "a format").lower()
        ids, vals = v.to_coo()
        iso = self.is_iso and len(vals) > 0
        if format == "sparse":
            made = {"size": v.size, "indices": ids, "values": vals[:1] if iso else vals, "sorted_index": True}
            made["nvals"] = len(ids)
        elif format == "bitmap":
            room_for(v.shape, vals.dtype)
            bitmap, dense = np.zeros(v.size, bool), np.zeros(v.size, vals.dtype)
            bitmap[ids], dense[ids] = True, vals
            made = {"bitmap": bitmap, "values": vals[:1] if iso else dense, "nvals": len(ids)}
        elif format == "full":
            made = {"size": v.size, "values": vals[:1] if iso else v.to_dense()}
        else:
            raise ValueError(message("a format among sparse, bitmap, full", format))
        return made | {"format": format, "is_iso": iso}

    @classmethod
    def import_sparse(cls, *, size: int, indices: Any, values: Any, nvals: int | None = None, **opts: Any) -> Any:
        """A vector of the arrays of `export("sparse")`; see `Vector.from_coo`."""
        vals, dtype = imported(values, opts, "sparse")
        if nvals is not None:
            indices, vals = first(nvals, indices), first_values(nvals, vals)
        return _kinds["vector"].from_coo(indices, vals, dtype, size=size, name=opts.get("name"))

    @classmethod
    def import_bitmap(cls, *, bitmap: Any, values: Any, size: int | None = None, nvals: Any = None, **opts: Any) -> Any:
        """A vector of the values where `bitmap` is true."""
        keep, (vals, dtype) = array_of(bitmap).astype(bool), imported(values, opts, "bitmap")
        n = len(keep) if size is None else checked_size(size)
        ids, vals = np.flatnonzero(first(n, keep)), first_values(n, vals)
        kept = vals if np.ndim(vals) == 0 else vals[ids]
        return _kinds["vector"].from_coo(ids, kept, dtype, size=n, name=opts.get("name"))

    @classmethod
    def import_full(cls, values: Any, *, size: int | None = None, **opts: Any) -> Any:
        """A vector with a value at every place; `size` is needed beside one value."""
        vals, dtype = imported(values, opts, "full")
        if np.ndim(vals):
            vals = vals if size is None else first(size, vals)
            return _kinds["vector"].from_dense(vals, dtype=dtype, name=opts.get("name"))
        if size is None:
            raise TypeError(message("a size beside one value", "none"))
        return _kinds["vector"].from_scalar(vals, size, dtype, name=opts.get("name"))

    @classmethod
    def import_any(cls, *, format: str | None = None, **given: Any) -> Any:
        """A vector of the arrays of any format, known by `format` or by the arrays' names."""
        names = {name for name, value in given.items() if value is not None}
        guess = "bitmap" if "bitmap" in names else "sparse" if "indices" in names else "full"
        return by_format(cls, format or guess, given)
