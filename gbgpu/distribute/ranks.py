"""Several processes as one session: mpiexec starts them, all run the same program, each holds the blocks of its own
devices. Only this file and world.py know of MPI.

Ranks meet at every communication, in the same order: each says what it is there for and how much it has for whom, then
the messages go. So a rank that took another path, ended, or broke off is named by the others instead of waited for.
Messages are pickles of arrays and numbers of the host; large arrays go beside them, from buffer to buffer. What lies
on devices is carried without any, as both sides know how much it is: through NCCL (device/nccl.py) where each rank has
a GPU of its own; else it is staged on the host.
"""

import os
import pickle
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, wraps
from itertools import pairwise
from typing import Any, NoReturn, ParamSpec, TypeVar
from zlib import crc32

import numpy as np

from .. import settings
from ..device.base import Device, DeviceSet, cores
from ..device.remote import SharedDevices
from ..errors import DeviceError, InvalidValue, message
from ..interrupts import imported
from .rowmap import Task
from .world import BODY, HEAD, POSTED, world

_LARGE = 1 << 14  # bytes of an array from which it is not part of its message
_PIECE = 1 << 18  # elements that are dealt out at once
_YIELDS, _SLEEP = 2000, 1e-4  # looks at a request before one sleeps in between, and how long
_GRACE = 1.0  # seconds that what a rank sent before it ended may take
_PLAIN = bool, int, float, complex, str, bytes, range, np.generic, np.dtype  # what `repr` tells apart
_NAMES = str, bytes, os.PathLike  # what names a file
_SHOWN = 60  # letters of numbers that a message has of what a rank was given
_REMEMBERED = 64  # statements that a rank can tell of where another carried out other ones
P = ParamSpec("P")
R = TypeVar("R")


def _heard(method: Callable[P, R]) -> Callable[P, R]:
    """A method of Ranks, of which the other ranks hear if it breaks off."""

    @wraps(method)
    def heard(*arguments: P.args, **keywords: P.kwargs) -> R:
        ranks: Any = arguments[0]
        if ranks._world.broken:
            raise DeviceError(f"rank {ranks.rank} {ranks._world.broken}; the other ranks went on")
        try:
            return method(*arguments, **keywords)
        except BaseException as error:
            ranks.failed(error)
            raise

    return heard


class Ranks:
    """The ranks of a session and, once they are `joined`, their devices. Everything here is called by all ranks, in the
    same order."""

    def __init__(self) -> None:
        self._world = world()
        self._comm, self.rank, self.size = self._world.comm, self._world.rank, self._world.size
        self._rank_of: list[int] = []
        self._own = 0  # the first device that is here
        self._done, self._marks = 0, 0  # statements so far: how many, and the sum of what tells them apart
        self._last: deque[tuple[int, tuple]] = deque(maxlen=_REMEMBERED)  # the last ones, by their numbers
        self._direct: Any = None  # the way from GPU to GPU

    def beside(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(which, of how many) ranks this is that share a machine's GPUs; and cores: mpiexec may bind each to some."""
        name = self._world.mpi.Get_processor_name()
        told = self.gathered(((name, os.environ.get("CUDA_VISIBLE_DEVICES")), (name, cores())), "gb.init")
        alike = [[rank for rank, each in enumerate(told) if each[i] == told[self.rank][i]] for i in (0, 1)]
        gpus, shared = ((ranks.index(self.rank), len(ranks)) for ranks in alike)
        return gpus, shared

    def joined(self, own: DeviceSet, facts: tuple) -> SharedDevices:
        """The devices of all. `facts`: what all ranks must have asked for alike. Raises InvalidValue unless they did,
        and are of a kind."""
        facts = (own.devices[0].kind, *facts)
        told = self.same(facts, "gb.init", [device.name for device in own.devices])
        names = [f"{rank}/{name}" for rank, held in enumerate(told) for name in held]
        self._rank_of = [rank for rank, held in enumerate(told) for _ in held]
        self._direct = self._way(own.devices[0]) if own.devices[0].kind == "cuda" else None
        self._own = self._rank_of.index(self.rank)
        return SharedDevices(own, names, self._own, self.failed)

    def _way(self, device: Device) -> Any:
        """From this rank's first GPU to those of the others; None where two share one, or NCCL is not to be had."""
        nccl, known = imported("gbgpu.device.nccl"), self._world.direct
        place = None if settings.staged else nccl.place(device)
        places = tuple(self.gathered(place and (self._world.mpi.Get_processor_name(), place), "GPUs of ranks"))
        if None in places or len(set(places)) < self.size:
            return None
        if places not in known:
            secret = self.gathered(nccl.secret() if self.rank == 0 else None, "GPUs of ranks")[0]
            known[places] = nccl.communicator(device, self.size, self.rank, secret)
        return nccl.Direct(device, known[places])

    def here(self, d: int) -> bool:
        """Whether device d is one of this process."""
        return self._rank_of[d] == self.rank

    def rank_of(self, d: int) -> int:
        """Whose device d is."""
        return self._rank_of[d]

    @cached_property
    def most(self) -> int:
        """Devices of the rank that has most."""
        return max(Counter(self._rank_of).values())

    def failed(self, error: BaseException) -> None:
        """This rank broke off something that the others carry out: it meets them no more."""
        self._world.last_words(f"broke off with {type(error).__name__}: {error}")

    def does(self, *what: Any, given: Any = ()) -> None:
        """A statement, or what makes an object, which all ranks carry out: that they do shows where they meet next.
        `given`: numbers, texts and arrays that the user gave it; their checksum is compared too."""
        mark, summed = _mark(what), checksum(given) if settings.rank_checks else 0
        self._done, self._marks = self._done + 1, crc32(struct.pack("=QQ", mark, summed), self._marks) & 0x7FFFFFFF
        self._last.append((self._done, (*what, f"given {_shown(given)}") if summed else what))

    def agree_on(self, path: Any, what: str) -> None:
        """Raises InvalidValue, on all ranks, unless all name the same file; file objects are not compared."""
        if settings.rank_checks:
            names = path if isinstance(path, (list, tuple)) else [path]
            texts = [os.path.abspath(os.fsdecode(x)) if isinstance(x, _NAMES) else "a file object" for x in names]
            self.same(", ".join(texts), what, hint="GBGPU_RANK_CHECKS=0 where ranks have one file under several names")

    # -- what ranks tell each other

    def gathered(self, mine: Any, what: str) -> list[Any]:
        """What each rank has, numbers and arrays of the host, by rank."""
        found = self.swapped({rank: mine for rank in range(self.size) if rank != self.rank}, what)
        return [mine if rank == self.rank else found[rank] for rank in range(self.size)]

    def agreed(self, failure: Exception | None, what: str) -> None:
        """What any rank failed with, or None where all went well: raised by all."""
        for told in self.gathered(failure, what):
            if told is not None:
                raise told

    def alike(self, work: Callable[[], Any], what: str) -> Any:
        """work(), which every rank does; what any rank raises, all raise."""
        found, failure = None, None
        try:
            found = work()
        except Exception as error:
            failure = error
        self.agreed(failure, what)
        return found

    def same(self, facts: Any, what: str, beside: Any = None, hint: str = "") -> list[Any]:
        """What each rank has `beside`, by rank. Raises InvalidValue unless `facts` are alike on all."""
        told = self.gathered((facts, beside), what)
        for rank, (others, _) in enumerate(told):
            if others != told[0][0]:
                expected = f"the same {what} on all ranks: {told[0][0]}"
                raise InvalidValue(message(expected, f"{others} on rank {rank}", hint))
        return [held for _, held in told]

    def summed(self, array: np.ndarray, what: str) -> np.ndarray:
        """The sum of arrays of one length, of which no rank ever holds more than two."""
        cuts = [len(array) * rank // self.size for rank in range(self.size + 1)]
        parts = [array[lo:hi] for lo, hi in pairwise(cuts)]
        mine = parts[self.rank].copy()
        for part in self.swapped({rank: part for rank, part in enumerate(parts) if rank != self.rank}, what).values():
            mine += part
        return np.concatenate(self.gathered(mine, what))

    def dealt(
        self, owner: Callable[[np.ndarray], np.ndarray], arrays: Sequence[np.ndarray], types: Sequence[Any], what: str
    ) -> list[np.ndarray]:
        """Element k of every array goes to the rank that owner(first array)[k] names: what came, of these types, by
        sender and in its order. What is on its way at a time doesn't grow with the arrays."""
        pieces = [[array[at : at + _PIECE] for array in arrays] for at in range(0, len(arrays[0]), _PIECE)]
        owners = [owner(piece[0]).astype(np.int32) for piece in pieces]
        counts = sum((np.bincount(each, minlength=self.size) for each in owners), np.zeros(self.size, np.int64))
        told = self.gathered(counts, what)
        ends = np.cumsum([0, *(sent[self.rank] for sent in told)])[:-1]  # where the next of each sender goes
        arrived = [np.empty(sum(sent[self.rank] for sent in told), type) for type in types]
        nothing = np.zeros(0, np.int32), [array[:0] for array in arrays]
        for turn in range(max(-(-int(sent.sum()) // _PIECE) for sent in told)):
            each, piece = (owners[turn], pieces[turn]) if turn < len(pieces) else nothing
            order = np.argsort(each, kind="stable")
            cuts = np.searchsorted(each[order], np.arange(self.size + 1))
            parcels = {
                rank: [array[order[lo:hi]].astype(type, copy=False) for array, type in zip(piece, types, strict=True)]
                for rank, (lo, hi) in enumerate(pairwise(cuts))
                if hi > lo or rank == self.rank
            }
            mine = {self.rank: parcels.pop(self.rank)}
            for rank, parts in (self.swapped(parcels, what) | mine).items():
                for whole, part in zip(arrived, parts, strict=True):
                    whole[ends[rank] : ends[rank] + len(part)] = part
                ends[rank] += len(parts[0])
        return arrived

    def allgather(self, tasks: Sequence[Task], values: Sequence[Any], what: str) -> list[Any]:
        """The values of all tasks, on every rank, from those of each rank's own."""
        mine = [value for task, value in zip(tasks, values, strict=True) if self.here(task.device)]
        parts = [iter(part) for part in self.gathered(mine, what)]
        return [next(parts[self.rank_of(task.device)]) for task in tasks]

    def total(self, mine: int, what: str) -> int:
        """The sum of a number that each rank has, within 64 bits."""
        return sum(numbers[0] for numbers in self.numbers([int(mine)], what))

    @_heard
    def numbers(self, mine: Sequence[int], what: str) -> list[Sequence[int]]:
        """What each rank has, as many 64-bit integers on all of them, by rank."""
        layout = f"={len(mine)}q"
        post = struct.pack(layout, *mine)
        if len(post) > POSTED:
            return self.gathered(mine, what)
        self._met([len(post)] * self.size, post, what)
        posted = (self._world.meeting.posted(rank, len(post)) for rank in range(self.size))
        return [mine if rank == self.rank else struct.unpack(layout, each.data) for rank, each in enumerate(posted)]

    @_heard
    def swapped(self, parcels: Mapping[int, Any], what: str) -> dict[int, Any]:
        """Each rank's parcels go to the ranks that they are for; what came, by sender. To who is not named goes
        nothing."""
        comm, meeting, size = self._comm, self._world.meeting, self.size
        packed = {id(parcel): _packed(parcel) for parcel in parcels.values()}
        messages = {rank: packed[id(parcel)] for rank, parcel in parcels.items()}
        post = None
        if len(packed) == 1 and len(messages) == size - 1:
            head, beside = next(iter(packed.values()))
            post = head if len(head) <= POSTED and not beside else None
        told = self._met([len(messages[rank][0]) if rank in messages else 0 for rank in range(size)], post, what)
        sent, found = [], {}
        for rank, (head, beside) in messages.items():
            parts = [] if post is not None else [(head, HEAD), *((part, BODY) for part in beside)]
            sent += [comm.Isend(part, rank, tag) for part, tag in parts]
        for rank, shown in enumerate(told):
            if length := shown[self.rank]:
                arrived = meeting.posted(rank, length) if shown[size + 1] else self._received(rank, HEAD, length, what)
                lengths, begin = _lengths(arrived)
                beside = [self._received(rank, BODY, nbytes, what) for nbytes in lengths]
                found[rank] = pickle.loads(arrived[begin:].data, buffers=beside)
        for request in sent:
            self._wait(request.Test, what)
        return found

    def _met(
        self, sizes: Sequence[int], post: bytes | None, what: str, awaited: Sequence[int] | None = None
    ) -> list[list[int]]:
        """What each rank shows where all meet."""
        meeting, number = self._world.meeting, self._marks << 32 | crc32(what.encode())
        self._wait(meeting.begin(sizes, number, post, awaited or [0] * self.size), what)
        told = meeting.shown()
        if any(shown[self.size] != number for shown in told):
            self._apart(what)
        return told

    def _received(self, rank: int, tag: int, length: int, what: str) -> np.ndarray:
        room = np.empty(length, np.uint8)
        self._wait(self._comm.Irecv(room, rank, tag).Test, what)
        return room

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        """Until it is `done`; raises DeviceError if another rank has ended instead."""
        looks, late = 0, 0.0
        while not done():
            looks += 1
            if looks < _YIELDS:
                os.sched_yield()
                continue
            time.sleep(_SLEEP)
            self._world.listen()
            if self._world.heard:
                late = late or time.monotonic() + _GRACE
                if time.monotonic() > late:
                    rank, words = next(iter(self._world.heard.items()))
                    raise DeviceError(f"rank {rank} {words}, while rank {self.rank} waits for it at {what!r}")

    def _apart(self, what: str) -> NoReturn:
        """Ranks met for different things, or carried out other statements before: say which."""
        each = self._comm.allgather((what, dict(self._last)))
        expected, places = "all ranks at the same place of the program", [place for place, _ in each]
        if len(set(places)) == 1:
            expected, places = "the same statements on all ranks", _first_unlike([last for _, last in each])
        came = ", ".join(f"rank {rank} at {place!r}" for rank, place in enumerate(places))
        hint = "every rank runs the same statements and reads the same values, also where only one prints"
        raise DeviceError(message(expected, came, hint))

    # -- buffers of devices

    @_heard
    def carried(
        self,
        devices: Sequence[Device],
        sent: Sequence[tuple[int, int, Any]],
        coming: Sequence[tuple[int, int, int, Any]],
        what: str,
    ) -> list[Any]:
        """Arrays from devices of this rank to other ranks, and from these. `sent`: (device, rank, array); `coming`:
        (rank, device, length, type), with what is of one rank in the order in which that sends it. What came, by
        `coming`. Raises DeviceError, on all ranks, where two have different things in mind."""
        comm, direct, staged = self._comm, self._direct, devices[self._own].kind != "cpu"
        held: dict[int, Any] = {}  # what goes to several ranks is read once
        for d, _, array in sent:
            if id(array) not in held and array.size:
                read = direct.leaving if direct is not None else devices[d].get if staged else None
                held[id(array)] = array if read is None else read(array)
        leaving = [(rank, held[id(array)]) for _, rank, array in sent if array.size]
        if direct is not None:
            rooms = [direct.empty(n, dtype) for *_, n, dtype in coming]
        else:
            rooms = [(np if staged else devices[d]).empty(n, dtype) for _, d, n, dtype in coming]
        into = [(rank, room) for (rank, *_), room in zip(coming, rooms, strict=True) if room.size]
        self._agree(leaving, into, what)
        if direct is not None:
            if leaving or into:
                direct.swap(leaving, into)
            return [direct.came(devices[d], room) for (_, d, *_), room in zip(coming, rooms, strict=True)]
        moves = [comm.Irecv(room.view(np.uint8), rank, BODY) for rank, room in into]
        moves += [comm.Isend(array.view(np.uint8), rank, BODY) for rank, array in leaving]
        try:
            for move in moves:
                self._wait(move.Test, what)
        except BaseException:
            self._world.pending += moves
            raise
        return [devices[d].put(room) if staged else room for (_, d, *_), room in zip(coming, rooms, strict=True)]

    def _agree(self, leaving: Sequence[tuple[int, Any]], into: Sequence[tuple[int, Any]], what: str) -> None:
        """Meet before anything is sent: nobody waits for who has no room, or something else."""
        sizes, awaited = [0] * self.size, [0] * self.size
        for counts, moves in ((sizes, leaving), (awaited, into)):
            for rank, array in moves:
                counts[rank] += array.nbytes
        told = self._met(sizes, None, what, awaited)
        unlike = self._world.meeting.unlike()
        if unlike is not None:
            one, other = unlike
            expected = f"{told[other][self.size + 2 + one]} bytes of {what} for rank {other} from rank {one}"
            hint = "every rank holds the same, also where it is drawn at random or read from a file"
            raise DeviceError(message(expected, told[one][other], hint))


def _first_unlike(known: Sequence[Mapping[int, tuple]]) -> list[str]:
    """Of the statements that each rank knows, by their numbers, the first that are not alike."""
    begin = max(min(last, default=0) for last in known)  # before, not all know theirs
    for number in sorted({number for last in known for number in last if number >= begin}):
        texts = [" ".join(map(str, last.get(number, ("none",)))) for last in known]
        if len(set(texts)) > 1:
            return texts
    return ["none"] * len(known)


def checksum(given: Any) -> int:
    """Of numbers, texts and arrays, also in lists; 0 for what is none of these, such as operators and objects."""
    if isinstance(given, (list, tuple)):
        return _in_turn(map(checksum, given))
    if isinstance(given, dict):
        return checksum([*given.items()])
    if hasattr(given, "__cuda_array_interface__"):
        given = imported("gbgpu.device.cuda").as_host(given)
    if isinstance(given, np.ndarray):
        plain = np.ascontiguousarray(given)
        return crc32(plain.view(np.uint8).data if plain.size else b"", crc32(repr((plain.dtype, plain.shape)).encode()))
    return crc32(repr(given).encode()) if isinstance(given, _PLAIN) else 0


def _in_turn(sums: Iterable[int]) -> int:
    """One checksum of several in this order; 0 for nothing but 0."""
    held = [*sums]
    return crc32(struct.pack(f"={len(held)}I", *held)) if any(held) else 0


def _shown(given: Any) -> str:
    """What was given, for a message: a few numbers as they are, else a checksum."""
    text = ", ".join(map(str, given)) if all(isinstance(each, _PLAIN) for each in given) else ""
    return text if 0 < len(text) <= _SHOWN else f"values of checksum {checksum(given):08x}"


@lru_cache(maxsize=4096)
def _mark(what: tuple) -> int:
    return crc32(repr(what).encode())


def _packed(parcel: Any) -> tuple[bytes, list[Any]]:
    """A message, and the arrays that go beside it. The message: how many, their lengths, and the pickle."""
    beside: list[Any] = []

    def inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _LARGE:
            return True
        beside.append(raw)
        return False

    text = pickle.dumps(parcel, protocol=5, buffer_callback=inside)
    return struct.pack(f"={1 + len(beside)}q", len(beside), *(part.nbytes for part in beside)) + text, beside


def _lengths(head: np.ndarray) -> tuple[list[int], int]:
    """Lengths of what comes beside a message, and where its pickle begins."""
    (count,) = struct.unpack_from("=q", head.data)
    return list(struct.unpack_from(f"={count}q", head.data, 8)), 8 + 8 * count
