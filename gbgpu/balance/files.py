"""JSON files that users give: models, traces, topologies."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileFormatError, InvalidValue, message

# LookupError: keys and places; ArithmeticError: numbers beyond a float or an int64
_MISFITS = ValueError, LookupError, ArithmeticError, TypeError, AttributeError, RecursionError, InvalidValue


@contextmanager
def reading(path: str | Path, expected: str) -> Iterator[Any]:
    """What a file holds. Raises OSError, and FileFormatError for what is no JSON, or is found not to fit inside."""
    try:
        yield json.loads(Path(path).read_text(encoding="utf-8"))
    except _MISFITS as error:
        raise FileFormatError(message(expected, f"{path}: {error!r}")) from None


def numbers(held: Any, unit: float = 1.0) -> np.ndarray:
    """So many units as JSON has as a number, or as lists of them.

    Raises ValueError for anything else, and for what is not finite.
    """
    found = np.array(held)
    if found.dtype.kind in "iuf":
        with np.errstate(over="ignore"):
            found = found * unit
        if np.isfinite(found).all():
            return found
    raise ValueError("no numbers, or some that are not finite")
