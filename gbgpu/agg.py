"""Aggregators that are one monoid: sum, prod, min, max, any, all, count."""

from gbgpu.semiring._algebra import Aggregator

globals().update(Aggregator.registry)


def __getattr__(name: str) -> Aggregator:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(Aggregator.registry)
