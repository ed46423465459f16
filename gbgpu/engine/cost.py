"""Predicted seconds of pull and push, from numbers the host holds already; the planner takes the smaller."""

from typing import Any

from ..kernels.interface import Costs, ends_soon


class Facts:
    """The numbers and kinds behind a product: maps, matrix, and the direction chosen. Made anew for each statement;
    cheap."""

    __slots__ = (
        "inner",
        "outer",
        "flip",
        "dtype",
        "iso",
        "p",
        "ptr",
        "idx",
        "direction",
        "dense",
        "seconds",
        "orientation",
        "empty_rows",
        "store",
    )

    def choose(
        self, hint: str | None, costs: Costs, semiring: Any, x_count: int | None, edges: int | None, allowed: int | None
    ) -> None:
        """Set direction and seconds. `edges`: entries in the rows of the frontier, `allowed`: unmasked output rows;
        None where only the devices know."""
        pull, push = self._pull_seconds(costs, semiring, x_count, allowed), self._push_seconds(costs, semiring, edges)
        self.direction = hint or ("push" if push < pull else "pull")
        self.seconds = pull if self.direction == "pull" else push

    def _pull_seconds(self, costs: Costs, semiring: Any, x_count: int | None, allowed: int | None) -> float:
        rows = self.outer.n if allowed is None else allowed
        length = self.store.nvals / max(self.outer.n, 1)
        monoid = semiring.monoid
        if ends_soon(monoid):
            probes = self.inner.n if x_count is None else self.inner.n / max(x_count, 1)  # until an entry is present
            length = min(length, probes)
        width = self.dtype.np_type.itemsize + 1
        moved = self.inner.n * width * costs.byte if self.p > 1 else 0.0
        return costs.step + (rows * (costs.row + length * costs.pull_edge)) / self.p + moved

    def _push_seconds(self, costs: Costs, semiring: Any, edges: int | None) -> float:
        edges = self.store.nvals if edges is None else edges
        edge = costs.push_first if semiring.monoid.is_any else costs.push_edge
        return (1 + 2 * (self.p > 1)) * costs.step + edges * edge / self.p
