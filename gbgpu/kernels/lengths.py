"""Products that only count the entries of rows: no kernel, the row offsets have it."""

from typing import Any

from .interface import Layout, Spec

_NOTHING: dict[str, Any] = {}
_new = tuple.__new__  # a third of what the constructor of a named tuple takes


def counts(spec: Spec) -> bool:
    """Whether a product with a full vector counts the entries of rows."""
    return spec.op.monoid.name == "plus" and spec.op.multiply.name == "pair" and spec.out.kind != "b"


def lengths(device: Any) -> Any:
    """A kernel with the arguments of pull that leaves the lengths of rows that have entries."""

    def kernel(n: int, indptr: Any, *arguments: Any) -> None:
        vals, words, count, _ = arguments[-4:]
        device.lengths(indptr, vals, words, count)

    return kernel


def pull_by_rows(device: Any, block: Any, spec: Spec, x: Any, masked: bool) -> Layout:
    """A block as it is."""
    rows = block.csr
    if not masked and x.words is None and counts(spec):
        return Layout(lengths(device), "pull", None, rows, block.cols, _NOTHING)
    return _new(Layout, (None, "pull", None, rows, block.cols, _NOTHING))
