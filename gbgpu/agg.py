"""Aggregators by name; those that look at positions are in `agg.ss` too."""

from types import SimpleNamespace as _Namespace

from gbgpu.errors import checked_text
from gbgpu.language.aggregator import Aggregator, TypedAggregator

ss = _Namespace(**{name: found for name, found in Aggregator.registry.items() if found.places})
globals().update(Aggregator.registry)


_SIGNS = {"+": "sum", "*": "prod", "&": "all", "|": "any"}


def from_string(text: str) -> Aggregator | TypedAggregator:
    """The aggregator for a string.

    Parameters
    ----------
    text : str
        A name, and a type in brackets if wanted: "sum", "sum[INT32]".

    Returns
    -------
    Aggregator or TypedAggregator
        Typed, if the string has a type.

    Raises
    ------
    ValueError
        If there is none.
    """
    base, bracket, dtype = checked_text(text, "an aggregator").strip().partition("[")
    found = Aggregator.registry.get(_SIGNS.get(base, base))
    if found is None or (bracket and not dtype.endswith("]")):
        raise ValueError(f"Unknown agg string: {text!r}.  Example usage: 'sum[int]'")
    return found[dtype[:-1]] if bracket else found


def __getattr__(name: str) -> Aggregator:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*Aggregator.registry, "Aggregator", "TypedAggregator", "from_string", "ss"])
