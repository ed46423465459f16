"""A session as runners see it, and what prepares their plans."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ..device.base import Device, DeviceSet
from ..distribute.blocks import MatrixStore, VectorStore
from ..distribute.needs import Transfer
from ..distribute.ranks import Ranks
from ..distribute.rowmap import Task
from ..kernels.interface import Kernels
from ..semiring._types import DataType
from .maps import Maps
from .plan import Step
from .pool import Placeholders, Pool
from .watch import Watched


class Context(Protocol):
    """Devices, what they share, and what handles hold."""

    device_set: DeviceSet
    simulated: Any  # of a "sim:" session, the balance.Topology that its devices stand for; else None
    devices: Sequence[Device]
    at: int  # the number of the first device of this process
    ranks: Ranks | None  # the processes of the session, if there are several
    kernels: Kernels
    maps: Maps
    pool: Pool
    placeholders: Callable[[int], Placeholders]  # the dummies of a device
    once: Callable[[Any, Callable[[], Any]], Any]  # what is made for a key, kept
    int64: DataType
    deterministic: bool
    doubted: bool  # whether devices may have found something wrong since the last read
    watched: Watched | None  # the step in hand, while somebody traces
    counts_unknown: bool  # plans hold for any counts: a round is about to be captured
    writing: bool  # a round of a loop is written down, for devices to do it by themselves
    changes: Any  # modes.Changed contexts under way: what they set is as it was before once they are over
    looping: set[Any]  # an element a loop that runs: what a round makes lies where it belongs, as it is handed on
    capturing: Any  # the loop that is captured; None at other times
    assigner: Any  # who computes what of a product (an assign.Assigner); None: each owner its block
    sharing: Any  # the same of pulls, once for all (a sharing.Sharing), or None
    repartitioning: Any  # when rows move to other owners (a repartitioning.Repartitioning), or None: never
    replicas: Any  # a replicas.Replicas
    loops: Any  # captured rounds (a loop.captured_loops.CapturedLoops)

    @property
    def apart(self) -> bool:
        """Whether what a device reads of others, again and again, has to be brought to it."""

    @property
    def brings(self) -> bool:
        """Whether what it reads once has to be, too."""

    @property
    def explaining(self) -> Any:
        """Where this thread wants plans in place of results, or None."""

    @property
    def dry(self) -> bool:
        """Whether the statement in hand is planned and does not run (engine/dry.py)."""

    def stored(self, handle: Any) -> Any:
        """The content of an object; in a plan, what statements that were planned before would have left."""

    def planned(self, handle: Any) -> bool:
        """Whether this thread wants plans, and has only planned the statement that writes an object."""

    def filled(self, handle: Any) -> None:
        """An object has content that no statement wrote."""

    def computed(self, handle: Any) -> None:
        """Raise InvalidValue where an object is read whose statement was only planned."""

    def over(
        self, tasks: Sequence[Task], work: Callable[[Task], Any], seconds: float, whole: bool = False
    ) -> list[Any]:
        """work(task) for every task, each on its device (see DeviceSet.over)."""

    def account(self, d: int, moved: int, unknown: Sequence[tuple[Any, int]] = ()) -> None:
        """Bytes that arrived at device d; of messages whose length only devices know, (count, bytes an entry)."""

    def carry(self, d: int, transfers: list[Transfer]) -> None:
        """Carry out transfers to device d."""

    def brought(self, owner: int, d: int, parts: Iterable[Any]) -> list[Any]:
        """Copies of arrays of one device, on device d."""

    def within_reach(self, owner: int, d: int, parts: Sequence[Any]) -> Sequence[Any]:
        """The same where kernels can't read them where they lie, once in this step."""

    @property
    def home(self) -> Device:
        """The first device of this process."""

    def allgather(self, tasks: Sequence[Task], values: Sequence[Any], what: str) -> Sequence[Any]:
        """What the host has found for each task, of all ranks. `what` it is, for the error of ranks that differ."""

    def total(self, counts: Sequence[Any], what: str) -> int:
        """The sum of what the host has counted for each task, of all ranks."""

    def room(self, n: int, each: int, what: Any) -> None:
        """Raises OutOfMemory unless the host can hold `n` elements of `each` bytes."""

    def watch(self, device: Device, flag: Any, kind: type[Exception], text: str) -> None:
        """Raise kind(text) at the next read, if the device finds `flag` true by then."""

    def raise_watched(self, reading: bool = False) -> None: ...

    def content(self, handle: Any) -> VectorStore: ...

    def aside(self, step: Step | None, work: Callable[[], Any], foreseen: Callable[[], Any]) -> Any:
        """work(), as a step of the statement in hand that its plan does not have (None: nobody is told of it). Where
        the statement does not run: foreseen(), what is known without doing it."""

    def known_count(self, store: VectorStore) -> int | None:
        """Entries of a vector, if the host can tell without reading from a device."""

    def matrix_store(self, matrix: Any) -> MatrixStore: ...

    def waits(self, matrix: Any, place: tuple[int, int], value: Any) -> MatrixStore | None: ...

    def oriented(self, matrix: Any, transposed: bool) -> MatrixStore: ...

    def store_to_host(self, store: MatrixStore, bare: bool = False) -> tuple[np.ndarray, Any, np.ndarray]: ...
