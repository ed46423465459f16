"""JSON files that users give: models, traces, topologies."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import FileFormatError, InvalidValue, message

_MISFITS = ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidValue


@contextmanager
def reading(path: str | Path, expected: str) -> Iterator[Any]:
    """What a file holds. Raises OSError, and FileFormatError for what is no JSON, or is found not to fit inside."""
    try:
        yield json.loads(Path(path).read_text(encoding="utf-8"))
    except _MISFITS as error:
        raise FileFormatError(message(expected, f"{path}: {error!r}")) from None
