"""What operators, monoids and semirings share: the table of their typed ones."""

from __future__ import annotations

from typing import Any

from gbgpu.errors import NotImplementedException, UdfParseError
from gbgpu.semiring._types import SUPPORTED, DataType, types_alone


def of_type(op: Any, key: object) -> Any:
    """op[key], or None where there is none. What a user's function does wrong is raised: it is no matter of types."""
    try:
        return op[key]
    except (KeyError, TypeError, NotImplementedException):
        return None


class ByType:
    """A named object that is looked up by types: `op[dtype]`, `op[dtype1, dtype2]`."""

    kind = ""
    name: str
    _typed: dict[object, Any]  # by whatever the user looked it up with

    def __repr__(self) -> str:
        return f"{self.kind}.{self.name}"

    def __getitem__(self, key: object) -> Any:
        """The typed one for one type, or for two (unified). KeyError if there is none for them."""
        typed = self._typed.get(key)
        return typed if typed is not None else self._find(key)

    def __contains__(self, key: object) -> bool:
        try:
            return types_alone(key) and of_type(self, key) is not None
        except UdfParseError:
            return False

    @property
    def types(self) -> dict[DataType, DataType]:
        """Input type -> result type, for the types it works on."""
        return {dtype: self[dtype].return_type for dtype in SUPPORTED if dtype in self}

    def _find(self, key: object) -> Any:
        raise NotImplementedError
