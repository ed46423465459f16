"""The processes that mpiexec started: whether this is one of them, how they meet, and what ends them all."""

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from .. import settings
from ..errors import DeviceError, message
from ..interrupts import imported

_NEAR = 16  # ranks up to which each sends to each where they meet: sooner than a collective
POSTED = 512  # bytes of a message for all up to which they read it where they meet
_PATIENCE = 5  # seconds after which one that fails before it met the others is gone, if these don't come
_MEET, HEAD, BODY, _END = range(4)  # tags: where all meet, a message, what lies beside it, a rank's last words
_STARTED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")


def wanted() -> bool:
    """Whether this process is one of several that mpiexec or srun started.

    GBGPU_RANKS=1 says so where they don't, 0 makes each process one of its own.
    """
    if settings.ranks != "auto":
        return settings.ranks != "0"
    return _promised() > 1


def _promised() -> int:
    """How many processes mpiexec says that it has started."""
    return max(int(os.environ.get(name, "1") or 1) for name in _STARTED)


class Meeting:
    """Where all ranks meet before they exchange messages: each sends the same number of words to all.

    The words of a rank: the bytes that it has for each rank; what it is there for; whether a short message for all
    follows them; the bytes that it expects of each rank. Then comes that message.
    """

    def __init__(self, mpi: Any, comm: Any):
        words, self._mpi, self._comm = 8 * (2 * comm.size + 2), mpi, comm
        self._all = np.zeros((comm.size, words + POSTED), np.uint8)
        self._mine = np.zeros_like(self._all[0])
        self._shown, self._heads = self._mine[:words].view(np.int64), self._all[:, :words].view(np.int64)
        self._moves: list[Any] = []  # begun again and again
        if comm.size <= _NEAR:
            others = [rank for rank in range(comm.size) if rank != comm.rank]
            self._moves = [comm.Recv_init(self._all[rank], rank, _MEET) for rank in others]
            self._moves += [comm.Send_init(self._mine, rank, _MEET) for rank in others]

    def begin(
        self, sizes: Sequence[int], number: int, post: bytes | None, awaited: Sequence[int]
    ) -> Callable[[], bool]:
        """Show these; whether all have come."""
        if post is not None:
            self._mine[-POSTED:][: len(post)] = np.frombuffer(post, np.uint8)
        self._shown[:] = [*sizes, number, post is not None, *awaited]
        if not self._moves:
            return self._comm.Iallgather(self._mine, self._all).Test
        self._mpi.Prequest.Startall(self._moves)
        return lambda: self._mpi.Prequest.Testall(self._moves)

    def shown(self) -> list[list[int]]:
        """The words of each rank."""
        self._heads[self._comm.rank] = self._shown
        return self._heads.tolist()

    def unlike(self) -> tuple[int, int] | None:
        """Two ranks, the first of which sends something else than the other one waits for."""
        n = self._comm.size
        wrong = np.argwhere(self._heads[:, :n] != self._heads[:, n + 2 :].T)
        return (int(wrong[0][0]), int(wrong[0][1])) if len(wrong) else None

    def posted(self, rank: int, length: int) -> np.ndarray:
        """The short message that a rank has sent to all."""
        return self._all[rank, -POSTED:][:length]


class World:
    """All ranks, once a process: how they communicate, and which of them have ended.

    `heard`: the last words of ranks that ended or failed, by their numbers; `broken`: those of this one.
    """

    def __init__(self, mpi: Any, comm: Any):
        self.mpi, self.comm, self.rank, self.size = mpi, comm, comm.rank, comm.size
        self.heard: dict[int, str] = {}
        self.broken = ""
        self.direct: dict[tuple, Any] = {}  # by where their GPUs sit: to make it takes a second
        self.pending: list[Any] = []  # requests whose buffers must outlive who began them
        self._process = os.getpid()

    @cached_property
    def meeting(self) -> Meeting:
        """Where this process meets the others."""
        return Meeting(self.mpi, self.comm)

    def last_words(self, text: str) -> None:
        """Tell all others, who may wait for us, that we come no more."""
        if not self.broken and self.here() and not self.mpi.Is_finalized():
            self.broken = text
            self.pending += [self.comm.isend(text, rank, _END) for rank in range(self.size) if rank != self.rank]

    def here(self) -> bool:
        """Whether this process is the rank, and no child that it forked."""
        return os.getpid() == self._process

    def listen(self) -> None:
        """Hear last words."""
        status = self.mpi.Status()
        while self.comm.Iprobe(self.mpi.ANY_SOURCE, _END, status):
            self.heard[status.source] = self.comm.recv(source=status.source, tag=_END)


@cache
def world() -> World:
    """The ranks of this start. Raises DeviceError without mpi4py, or for one of another MPI than mpiexec's."""
    try:
        mpi = imported("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        hint = "pip install '.[mpi]' brings both; GBGPU_RANKS=0 makes each process one of its own"
        raise DeviceError(message("mpi4py and an MPI in a process that mpiexec started", error, hint)) from error
    comm = mpi.COMM_WORLD.Dup()
    found = World(mpi, comm)
    if comm.size == 1 < _promised():
        hint = "mpiexec and mpi4py belong to different MPIs: python -m mpi4py --mpi-std-version, mpiexec --version"
        raise DeviceError(message(f"{_promised()} ranks, as mpiexec says", "one", hint))
    if comm.size > 1:
        watch()
        atexit.register(found.last_words, "has ended")
    return found


@cache
def watch() -> None:
    """From now on what this process raises and nobody catches ends all ranks."""
    before, process = sys.excepthook, os.getpid()
    os.environ["GBGPU_RANKS"] = "0"  # processes that this one starts inherit what mpiexec told it, and are no ranks

    def raised(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        if os.getpid() != process:
            return
        if not world.cache_info().currsize and current_thread() is main_thread():
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_PATIENCE)  # the others may be gone, and MPI begins with all
        with suppress(ImportError, RuntimeError):
            mpi = imported("mpi4py.MPI")
            comm = mpi.COMM_WORLD
            if comm.size > 1:
                place = f"rank {comm.rank} of {comm.size} on {mpi.Get_processor_name()}"
                print(f"gbgpu: {place} raised {kind.__name__}, which ends all ranks", file=sys.stderr, flush=True)
                time.sleep(0.2)  # mpiexec hands the text on
                comm.Abort(1)

    sys.excepthook = raised
