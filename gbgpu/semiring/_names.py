"""Names of operators: dotted ones make parts of a namespace, and operators with parameters wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gbgpu.errors import NotImplementedException

EVERYWHERE = "ss"  # the part that every namespace has


class Path:
    """A part of a namespace: `binary.numpy`, or `binary.mine` once there is an operator named "mine.x"."""

    def __init__(self, label: str, prefix: str, find: Callable[[str], Any], names: Callable[[], Iterable[str]]) -> None:
        self._label, self._prefix, self._find, self._names = label, prefix, find, names

    def __getattr__(self, name: str) -> Any:
        found = (
            None if name.startswith("_") else look_up(self._label, f"{self._prefix}.{name}", self._find, self._names)
        )
        if found is None:
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return found

    def __dir__(self) -> list[str]:
        return below(self._names(), self._prefix)

    def __repr__(self) -> str:
        return f"{self._label}.{self._prefix}"


def below(names: Iterable[str], prefix: str = "") -> list[str]:
    """The first parts of the dotted names below a prefix, each once."""
    start = prefix + "." if prefix else ""
    return sorted({name[len(start) :].partition(".")[0] for name in names if name.startswith(start)})


def look_up(label: str, name: str, find: Callable[[str], Any], names: Callable[[], Iterable[str]]) -> Any:
    """The operator or the part of a namespace with this name; None if there is neither."""
    found = find(name)
    if found is None and (name == EVERYWHERE or any(known.startswith(name + ".") for known in names())):
        return Path(label, name, find, names)
    return found


def namespace(space: dict[str, Any], find: Callable[[str], Any], names: Callable[[], Iterable[str]]) -> tuple:
    """`__getattr__` and `__dir__` of a module of operators, whose globals are `space`; what was found is kept there."""
    label = space["__name__"].removeprefix("gbgpu.")

    def getattr_(name: str) -> Any:
        found = None if name.startswith("_") else look_up(label, name, find, names)
        if found is None:
            raise AttributeError(f"module {space['__name__']!r} has no attribute {name!r}")
        space[name] = found
        return found

    return getattr_, lambda: sorted({*below(names()), EVERYWHERE, *space["__all__"]})


def check_free(registry: dict[str, Any], name: str, kind: str) -> None:
    """Raise AttributeError if the name, or an operator on the way to it, is already defined."""
    if name in registry or name == EVERYWHERE or any(known.startswith(name + ".") for known in registry):
        raise AttributeError(f"{kind}.{name} is already defined")
    parts = name.split(".")
    for end in range(1, len(parts)):
        if (path := ".".join(parts[:end])) in registry:
            raise AttributeError(f"{kind}.{path} is already defined. Cannot use as a nested path.")


def refuse_user_types(is_udt: bool) -> None:
    if is_udt:
        raise NotImplementedException("user-defined types aren't supported; is_udt must be False")


class Parameterized:
    """An operator with parameters: `binary.isclose(rel_tol=1e-3)` is an operator. Without a call the defaults hold."""

    def __init__(self, kind: str, name: str, make: Callable, parts: tuple) -> None:
        self.kind, self.name, self._make, self._parts = kind, name, make, parts
        self._made: dict[object, Any] = {}

    def __call__(self, *args, **kwargs):
        key = (args, tuple(sorted(kwargs.items())))
        if key not in self._made:
            made = self._make(*args, **kwargs)
            made.origin = (self, args, kwargs)
            self._made.setdefault(key, made)
        return self._made[key]

    def __repr__(self) -> str:
        return f"{self.kind}.{self.name}"

    def __reduce__(self):
        return pickled(self) or self._parts


# --- pickling --------------------------------------------------------------------------------------------------------

# kind -> how its named operators are found; "parts": semirings of parts; "number": the Scalar of a number
registries: dict[str, Callable[..., Any]] = {}


def pickled(op: Any) -> tuple | None:
    """How an operator that has a name, or that parameters made, is found again; None for others."""
    if registries[op.kind](op.name) is op:
        return _find, (op.kind, op.name)
    origin = getattr(op, "origin", None)
    return None if origin is None else (_call, origin)


def _find(kind: str, name: str) -> Any:
    return registries[kind](name)


def _call(parameterized: Parameterized, args: tuple, kwargs: dict) -> Any:
    return parameterized(*args, **kwargs)
