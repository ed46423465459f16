"""What a captured round makes and launches, in order."""

from collections.abc import Callable
from typing import Any

from ...device.base import address
from ...kernels.hazards import Launch


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
    """Vectors leave a round in other forms than they had before, or not with one value for all any more. `unlike`: each
    with its form, and whether it has one value."""

    def __init__(self, unlike: list[tuple[Any, str, bool]]):
        super().__init__(f"{unlike[0][0].name} has another form after a round")
        self.unlike = unlike


class Journal:
    """`instead`: buffers that are given in place of new ones, by their number."""

    def __init__(self, instead: dict[int, Any]):
        self._instead = instead
        self.buffers: list[Any] = []
        self.held: list[Any] = []  # whatever launches were given, and their code
        self._made: list[tuple[int, int]] = []  # (address, launches before)
        self._launched: list[set[int]] = []
        self.before: Callable[[Launch], None] = lambda launch: None  # is told of what a GPU is given, just before
        self.launches: list[Launch] = []  # what GPUs are given

    def did(
        self, text: str, name: str, args: tuple = (), shared: int = 0, alone: bool = False, gpu: int | None = None
    ) -> None:
        """`gpu`: None for what each one does."""
        launch = Launch(text, name, args, shared, alone, gpu)
        self.before(launch)
        self.launches.append(launch)

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
