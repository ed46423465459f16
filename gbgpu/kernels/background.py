"""A process that compiles CPU kernels while this one runs. numba is imported there: in a thread it would hold the
interpreter's lock, for which each call of compiled code waits when it returns."""

import os
import struct
import sys
from ast import literal_eval
from contextlib import suppress
from queue import SimpleQueue
from threading import Condition, Thread
from time import perf_counter
from typing import Any, BinaryIO

from .. import settings
from ..device import store
from ..interrupts import held, imported

ASSEMBLY = "; LLVM"  # so begin texts that are no Python
COMPILE = 0.3  # seconds for a kernel, until one was compiled
START = 1.0  # until a process has imported numba
_SERVE = "import sys; sys.path[:] = {path!r}\nfrom gbgpu.kernels.background import serve; serve()"
_LENGTH = struct.Struct("<Q")


class Request:
    """A kernel to be compiled: its object file, once that is made."""

    __slots__ = "what", "object", "failed", "ended", "_compiler"

    def __init__(self, what: tuple, compiler: "Compiler"):
        self.what, self.failed, self._compiler = what, False, compiler
        self.object: bytes | None = None
        self.ended: SimpleQueue = SimpleQueue()  # has an element once that is settled

    @property
    def settled(self) -> bool:
        return self.object is not None or self.failed

    def wait(self) -> bytes | None:
        """The object file; None if the other process could not make it."""
        return self._compiler.wait(self)


class Compiler:
    """The other process, which begins with the first request, and ends with this one, after the kernel in hand."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._requests: list[Request] = []  # the last one is next
        self._in_hand: Request | None = None
        self._change = Condition()
        self._thread: Thread | None = None
        self._process: Any = None
        self._each, self._up = COMPILE, False

    @property
    def price(self) -> float:
        """Seconds until a kernel is compiled, as the last one was."""
        return self._each + START * (not self._up)

    def request(self, *what: Any) -> Request:
        """A kernel that is compiled in the background: its kind, text, types and file."""
        request = Request(what, self)
        held(lambda: self._add(request))  # Ctrl-C would leave the lock taken, or a thread that was not started
        return request

    def _add(self, request: Request) -> None:
        with self._change:
            self._requests.insert(0, request)
            self._change.notify_all()
            if self._thread is None:
                self._thread = Thread(target=self._work, name="gbgpu compiling", daemon=True)  # it mostly waits
                self._thread.start()

    def wait(self, request: Request) -> bytes | None:
        held(lambda: self._prefer(request))
        if not request.settled:
            try:
                request.ended.get()
            finally:
                if request.settled:
                    request.ended.put(None)  # for others who wait
        return request.object

    def _prefer(self, request: Request) -> None:
        with self._change:
            if request in self._requests:
                self._requests.append(self._requests.pop(self._requests.index(request)))

    def _work(self) -> None:
        """Hand over one request after the other. Without a process, those who wait compile for themselves."""
        while True:
            with self._change:
                while not self._requests:
                    self._change.wait()
                request = self._in_hand = self._requests.pop()
            object: bytes | None = None
            start = perf_counter()
            with suppress(OSError, EOFError):
                self._process = self._process or _begun()
                _send(self._process.stdin, repr(request.what).encode())
                object = _receive(self._process.stdout) or None
            if object is not None:
                store.put("numba", request.what[-1], object)
            with self._change:
                if self._up:  # the first one waited for the process
                    self._each = perf_counter() - start
                self._up, request.object, request.failed = True, object, object is None
            request.ended.put(None)

    def forked(self) -> None:
        """In a child of this process, which has neither the thread nor the other process: it begins anew."""
        for request in (*self._requests, self._in_hand):
            if request is not None and request.object is None:
                request.failed = True
        if self._process is not None:
            os.close(self._process.stdin.fileno())  # the other process ends with the parent
        self._begin()


def _begun() -> Any:
    """A process that Ctrl-C does not come to. Its input ends when this process does."""
    subprocess = imported("subprocess")  # late: most processes need none
    command = [sys.executable, "-c", _SERVE.format(path=sys.path)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True)


compiler = Compiler()
os.register_at_fork(after_in_child=compiler.forked)


def machine_code(kind: str, text: str, types: tuple[str, ...]) -> bytes:
    """The object file of a kernel, compiled here."""
    made = imported("gbgpu.kernels.compiled")  # numba takes a second to import
    if settings.verbose & 4:
        print(text, file=sys.stderr)
    return made.assembled(text) if text.startswith(ASSEMBLY) else made.compiled(kind, text, types)


def serve() -> None:
    """Compile what is asked for on standard input, until that ends."""
    taken, given = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    from . import compiled  # noqa: F401

    with suppress(EOFError):
        while True:
            *what, file = literal_eval(_receive(taken).decode())
            try:
                object = machine_code(*what)
            except Exception:
                object = b""  # who asked compiles it, and shows the error
            try:
                _send(given, object)
            except BrokenPipeError:  # nobody asks any more
                return store.put("numba", file, object) if object else None


def _send(pipe: BinaryIO, content: bytes) -> None:
    pipe.write(_LENGTH.pack(len(content)) + content)
    pipe.flush()


def _receive(pipe: BinaryIO) -> bytes:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return pipe.read(_LENGTH.unpack(head)[0])
