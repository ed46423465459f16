"""What a captured round makes and launches, in order."""

from collections.abc import Callable
from typing import Any

from ...device.base import address


class NotCompiled(Exception):
    """A loop that runs statement by statement, and why. `number`: of the statement that prevents compiling, among those
    of the loop, where one does."""

    number: int | None = None

    @classmethod
    def may_be_empty(cls) -> "NotCompiled":
        return cls("a scalar may be empty (.reduce(..., allow_empty=False) always has a value)")

    @classmethod
    def reads(cls) -> "NotCompiled":
        return cls("a value is read on the host")


class Invalidated(NotCompiled):
    """CUDA broke a capture off. That may have been for what another thread, or a tool that watches, did meanwhile."""


class OtherEmpty(NotCompiled):
    """A scalar that a round leaves without a value counts as something else than before. `sure`: it has one now."""

    def __init__(self, handle: Any, empty: Any, sure: bool):
        super().__init__(f"{handle.name} may be empty")
        self.handle, self.empty, self.sure = handle, empty, sure


class OtherForm(NotCompiled):
    """A vector leaves a round in another form than it had before, or not with one value for all any more."""

    def __init__(self, handle: Any, form: str, iso: bool):
        super().__init__(f"{handle.name} has another form after a round")
        self.handle, self.form, self.iso = handle, form, iso


class Journal:
    """`instead`: buffers that are given in place of new ones, by their number."""

    def __init__(self, instead: dict[int, Any]):
        self._instead = instead
        self.buffers: list[Any] = []
        self.held: list[Any] = []  # whatever launches were given, and their code
        self._made: list[tuple[int, int]] = []  # (address, launches before)
        self._launched: list[set[int]] = []
        self.before: Callable[[tuple], None] = lambda part: None  # is told of what a GPU is given, just before
        # what a GPU is given: (text, name, arguments, shared bytes, whether by one thread, number of the GPU)
        self.parts: list[tuple] = []

    def did(
        self, text: str, name: str, args: tuple = (), shared: int = 0, alone: bool = False, gpu: int | None = None
    ) -> None:
        """`gpu`: None for what each one does."""
        part = text, name, args, shared, alone, gpu
        self.before(part)
        self.parts.append(part)

    def given(self, buffer: Any) -> Any:
        found = self._instead.get(len(self._made))
        if found is not None and (found.size, found.dtype) == (buffer.size, buffer.dtype):
            buffer = found
        self.buffers.append(buffer)
        self._made.append((address(buffer), len(self._launched)))
        return buffer

    def launched(self, arrays: list[Any], *code: Any) -> None:
        self.held += [*arrays, *code]
        self._launched.append({address(array) for array in arrays})

    def replaceable(self, made: Any, place: Any) -> int | None:
        """The number of the buffer `made`, if nothing looks at `place` any more once it is there; else None."""
        numbers = [number for number, (at, _) in enumerate(self._made) if at == address(made)]
        if not numbers or made.size != place.size:
            return None
        later = self._launched[self._made[numbers[-1]][1] :]
        return None if any(address(place) in launch for launch in later) else numbers[-1]
