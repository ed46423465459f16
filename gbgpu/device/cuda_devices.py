"""CUDA devices: buffers, copies and launches through CuPy's current stream, allocator and module loader.

Several logical devices of one GPU have buffers of their own and share its stream. The caller's thread launches all
work, each task while its GPU is CuPy's current one. `peers.py` has what GPUs read of each other.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from struct import Struct
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DeviceError, OutOfMemory, message
from ..trace import counters
from .arrays import BLOCK, TEXT, functions, id_code
from .cuda import CUDADriverError, CUDARuntimeError, Kernel, available, cupy, info, view, works
from .nvrtc import begin, compile_cubin
from .peers import Peers
from .transpose import Sorts

if TYPE_CHECKING:
    from .base import Device, DeviceSet

ZEROS = 4096  # words cleared at a time
ENTRIES, _ENTRIES = 24, Struct("120q")  # of what is done at once, as in arrays.cu
PINNED = 256  # bytes that are read through memory which the GPU writes at once


class CudaDevice(Sorts):
    """A block owner on a GPU. `switch`: the machine has others, so calls select this one first. `peers`: those of the
    same set, if there are any."""

    kind, shares_memory, captures = "cuda", False, "graph"
    xp = cupy

    def __init__(self, gpu: int, name: str, switch: bool = False, peers: Any = None):
        found = info(gpu)
        self.gpu = gpu
        self.name = name
        self.arch: str = found["arch"]
        self.model: str = found["name"]
        self.processors: int = found["processors"]
        begin(TEXT, self.arch)
        self.l2: int = found["l2"]  # bytes
        self.shared: int = found["shared"]  # bytes of shared memory that a block may have
        self.total: int = found["memory"]
        self.journal: Any = None  # hears of buffers and launches, while a loop is captured
        self.thin = 0  # blocks at most that work on lists, while a loop of short ones is captured
        self._uncaptured: Callable[[], AbstractContextManager] = nullcontext
        self._allocated: Callable[[int], Any] | None = None  # gives memory for buffers, while a loop is captured
        self.relieve: Any = None  # weak: what gives memory back, and says whether there was any
        self._queued: list[tuple] | None = None  # what is copied or cleared at once
        self._late = False  # what others have, too: owners wait until it is done
        self._used = 0  # of the zeroed words
        self.waited = 0.0  # seconds that the host has waited for small reads
        self._counting: Iterator[Any] | None = None  # words that a loop's body clears itself
        self._rare: dict[str, tuple[dict[str, Kernel], Callable[[str], Kernel]]] = {}  # by text
        self._context, self.peers = cupy.cuda.Device(gpu) if switch else nullcontext(), peers

    def here(self) -> AbstractContextManager:
        """The context in which this device's GPU is CuPy's current one."""
        return self._context

    # -- buffers

    def empty(self, n: int, dtype: Any) -> Any:
        dtype = np.dtype(dtype)
        each = 4 // dtype.itemsize or 1  # whole words: atomics on small types work on them
        room = n if each == 1 else (n + each - 1) // each * each
        try:
            with self._context:
                memory = None if self._allocated is None else self._allocated(room * dtype.itemsize)
                buffer = cupy.ndarray((room,), dtype, memory)
        except cupy.cuda.memory.OutOfMemoryError as error:
            if self._relieved():
                return self.empty(n, dtype)
            raise self._out_of_memory(room * dtype.itemsize) from error
        if self.journal is not None:
            buffer = self.journal.given(buffer)
        return buffer if room == n else buffer[:n]

    def zeros(self, n: int, dtype: Any) -> Any:
        if n == 1 and dtype is np.int64:
            return self._zero()
        return self._set_bytes(self.empty(n, dtype), 0)

    def _zero(self) -> Any:
        """One word, from many cleared at once: most statements count something."""
        if self._counting is not None:
            return next(self._counting)
        at = self._used % ZEROS
        if at == 0:
            self._words = self._set_bytes(self.empty(ZEROS, np.int64), 0).data
        self._used += 1
        return cupy.ndarray((1,), np.int64, self._words + 8 * at)  # a slice takes longer

    @contextmanager
    def captured(
        self,
        words: Iterator[Any] | None = None,
        journal: Any = None,
        thin: int = 0,
        uncaptured: Callable[[], AbstractContextManager] = nullcontext,
        allocated: Callable[[int], Any] | None = None,
    ) -> Iterator[None]:
        """Words of zero are those given, which are cleared elsewhere; `journal` hears of buffers and launches; at most
        `thin` blocks work on a list, unless it is 0; `uncaptured` gives way to what is done at once; `allocated` gives
        memory for buffers, which the journal keeps."""
        before = self._counting, self.journal, self.thin, self._uncaptured, self._allocated
        self._counting, self.journal, self.thin, self._uncaptured = words, journal, thin, uncaptured
        self._allocated = allocated
        try:
            yield
        finally:
            self._counting, self.journal, self.thin, self._uncaptured, self._allocated = before

    def allocator(self) -> Callable[[int], Any]:
        """What gives memory as now, also where another stream is the current one: memory that was used before comes
        again for the stream that had it."""
        allocate, stream = cupy.cuda.get_allocator(), cupy.cuda.get_current_stream()

        def allocated(size: int) -> Any:
            with stream:
                return allocate(size)

        return allocated

    def uncaptured(self) -> AbstractContextManager:
        return self._uncaptured()

    def full(self, n: int, value: Any, dtype: Any) -> Any:
        buffer = self.empty(n, dtype)
        pattern = np.array([value], dtype).tobytes()
        if len(set(pattern)) == 1:
            return self._set_bytes(buffer, pattern[0])
        if n:
            bits = np.frombuffer(pattern, f"u{len(pattern)}")[0]
            self.run(f"fill{len(pattern)}", n, (buffer, bits, n))
        return buffer

    def halves(self, words: Any, dtype: Any) -> tuple[Any, Any]:
        return cupy.ndarray((1,), dtype, words.data), cupy.ndarray((1,), np.int64, words.data + 8)  # slices take longer

    def put(self, array: np.ndarray) -> Any:
        buffer = self.empty(array.size, array.dtype)
        if array.size:
            self._only_here()
            with self.here():
                buffer.set(np.ascontiguousarray(array))
        return buffer

    def _only_here(self, what: str = "host memory") -> None:
        """The host's memory is not there any more when a captured loop runs; and to wait for a stream that is captured
        breaks the capture off, after which drivers crash that end the capture around it."""
        if self.journal is not None:
            raise DeviceError(f"{self.name}: {what} in a loop that is captured")

    def get(self, buffer: Any) -> np.ndarray:
        self._only_here("a read")
        counters.host_reads += 1
        try:
            with self._context:
                if buffer.nbytes > PINNED:
                    return buffer.get()
                stream, held = cupy.cuda.get_current_stream(), self._pinned
                buffer.data.copy_to_host_async(held.ptr, buffer.nbytes, stream)
                start = perf_counter()
                stream.synchronize()
                self.waited += perf_counter() - start
        except (CUDADriverError, CUDARuntimeError) as error:
            raise self._failure(error) from error
        return np.frombuffer(held, buffer.dtype, buffer.size).copy()

    def peek(self, buffer: Any) -> None:
        return None

    def clear(self, buffer: Any) -> None:
        if self._queued is not None:
            return self._queued.append((buffer, None, buffer.nbytes, None, 1))
        self._set_bytes(buffer, 0)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        if self._queued is not None or self.journal is not None:
            yield
            return
        queued: list[tuple] = []
        self._queued, self._late = queued, self.peers is not None and self.peers.late
        try:
            yield
        finally:
            self._queued, self._late = None, False
            for first in range(0, len(queued), ENTRIES):
                self._launched_at_once(queued[first : first + ENTRIES])

    def _launched_at_once(self, entries: list[tuple]) -> None:
        words = [0 if x is None else x if type(x) is int else x.data.ptr for entry in entries for x in entry]
        words += [0] * (5 * ENTRIES - len(words))
        most = max(entry[2] for entry in entries)
        self.run("at_once", (most >> 4) + 1, (_ENTRIES.pack(*words), len(entries)))

    def copy(self, target: Any, source: Any) -> None:
        if not target.size:
            return
        same = not isinstance(source, np.ndarray) and source.dtype == target.dtype and source.size == target.size
        peers, captured = self.peers, self.journal is not None
        if same and self._queue(target, source, target.nbytes, None, 1):
            return
        if same and peers is not None and (captured or peers.direct and not self._has(source)):
            # CUDA's own copies between GPUs wait for all that either was given before, and hold up what comes after;
            # within the WHILE node of a graph they do not end (CUDA 13.0)
            with self.here(), self._reading(source) as source:
                return self.run("copy_bytes", (target.nbytes >> 4) + 1, (target, source, target.nbytes))
        counters.launches += 1
        if self.journal is not None:
            self.journal.launched([target, source])
        with self.here(), self._reading(source) as source:
            if isinstance(source, np.ndarray):
                self._only_here()
                target.set(np.ascontiguousarray(source, target.dtype))
            elif same:
                if self.journal is not None:
                    self.journal.did("", "copy_bytes", (target, source, target.nbytes), gpu=self.gpu)
                target.data.copy_from_device_async(source.data, target.nbytes)
            else:
                target[...] = source

    def copy_counted(self, target: Any, source: Any, count: Any) -> None:
        n = min(target.size, source.size)
        if isinstance(source, np.ndarray):
            source = self.put(source[:n])
        if self._queue(target, source, n * target.itemsize, count, target.itemsize):
            return
        if n:
            with self.here(), self._reading(source) as source:
                self.run(f"copy{target.itemsize}", n, (target, source, count, n))

    def fetch(self, target: Any, slots: Any, source: Any, first: int) -> None:
        """`target` gets at these slots what their owner has, whose slots begin with `first`, from where it lies."""
        with self.here(), self._reading(source) as source:
            args = slots, id_code(slots), slots.size, first, source, target
            self.run(f"fetch{target.itemsize}", slots.size, args)

    def where(self, source: Any, words: Any) -> Any:
        target = self.empty(source.size, source.dtype)
        with self.here(), self._reading(source) as source:
            self.run(f"where{source.itemsize}", source.size, (source, words, target, source.size))
        return target

    def _queue(self, target: Any, source: Any, size: int, count: Any, each: int) -> bool:
        """Whether it is copied with what is queued: what lies here, and in steps what others have, who wait then."""
        if self._queued is None:
            return False
        if not self._has(source):
            if not self._late:
                return False
            with self._reading(source):
                pass
        self._queued.append((target, source, size, count, each))
        return True

    def _has(self, array: Any) -> bool:
        """Whether an array lies on this device's GPU, and not on another one."""
        return self.peers is None or bool(array.device.id == self.gpu)

    def _reading(self, source: Any) -> AbstractContextManager:
        """What is there to read of an array, which another GPU may have."""
        if isinstance(source, np.ndarray) or self._has(source):
            return nullcontext(source)
        return self.peers.reading(self.gpu, source)

    def reach(self, array: Any) -> None:
        if self._has(array):
            return
        if self.peers.late:
            return self.peers.reach(self.gpu, array)
        with self.here(), self._reading(array):
            pass

    # -- arrays, with CuPy

    def adopt(self, array: Any) -> Any:
        with self.here():
            found = view(array)
        if found.device.id == self.gpu:
            return found
        with cupy.cuda.Device(found.device.id):
            host = found.get()
        with self.here():
            return cupy.asarray(host)

    # -- the device as a whole

    def memory(self) -> tuple[int, int]:
        with self.here():
            free, total = cupy.cuda.runtime.memGetInfo()
            return free + cupy.get_default_memory_pool().free_bytes(), total

    def has_room(self, need: float) -> bool:
        with self.here():  # which spares a call of the driver, mostly
            pooled = cupy.get_default_memory_pool().free_bytes()
        return pooled > need or self.memory()[0] > need

    def synchronize(self) -> None:
        self._only_here("waiting")
        with self.here(), self._naming():
            cupy.cuda.get_current_stream().synchronize()

    def mark(self) -> Any:
        with self._context:
            return cupy.cuda.get_current_stream().record(cupy.cuda.Event())

    busy = mark

    def between(self, one: Any, two: Any) -> float | None:
        return 1e-3 * float(cupy.cuda.get_elapsed_time(one, two)) if two.done else None

    # -- kernels

    def load(self, cubin: bytes, text: str = "", alone: bool = False) -> Callable[[str], "Kernel"]:
        """A loaded module: its kernels by name. `text`: what was compiled; `alone`: for one thread."""
        module = cupy.cuda.function.Module()
        with self.here(), self._naming():
            module.load(cubin)
        return lambda name: Kernel(module.get_function(name), name, text, alone)

    def fit(self, kernel: "Kernel", block: int, shared: int) -> int:
        """How many blocks with this much dynamic shared memory (bytes) the GPU holds at once."""
        key = block, shared
        if key not in kernel.fits:
            driver = cupy.cuda.driver
            if shared > kernel.most_shared:
                driver.funcSetAttribute(kernel.ptr, 8, shared)  # MAX_DYNAMIC_SHARED_SIZE_BYTES
                kernel.most_shared = shared
            kernel.fits[key] = max(driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.ptr, block, shared), 1)
        return kernel.fits[key] * self.processors

    def launch(self, kernel: "Kernel", grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
        """Start a kernel on the current stream. Arrays go as pointers, int as int64, NumPy scalars as they are.
        `shared`: bytes of dynamic shared memory."""
        counters.launches += 1
        if self.journal is not None:
            self.journal.launched([arg for arg in args if isinstance(arg, cupy.ndarray)], kernel)
            self.journal.did(kernel.text, kernel.name, tuple(args), shared, kernel.alone, self.gpu)
        kernel.fill(args)
        stream = cupy.cuda.get_current_stream().ptr
        how = kernel.ptr, grid, 1, 1, block, 1, 1, shared, stream, kernel.places, 0
        try:
            cupy.cuda.driver.launchKernel(*how)
        except (CUDADriverError, CUDARuntimeError) as error:
            if "INVALID_CONTEXT" not in str(error):
                raise self._failure(error) from error
            cupy.cuda.runtime.setDevice(self.gpu)  # a thread that has not used the GPU before
            cupy.cuda.runtime.free(0)
            cupy.cuda.driver.launchKernel(*how)

    @cached_property
    def _pinned(self) -> Any:
        return cupy.cuda.alloc_pinned_memory(PINNED)

    @cached_property
    def _functions(self) -> dict[str, Any]:
        kernel = self.load(compile_cubin(TEXT, self.arch))
        return {name: kernel(name) for name in functions()}

    def function(self, name: str, text: str) -> Kernel:
        """A kernel of a text for devices that is not always needed."""
        kernels, module = self._rare.get(text) or self._rare.setdefault(
            text, ({}, self.load(compile_cubin(text, self.arch)))
        )
        if name not in kernels:
            kernels[name] = module(name)
        return kernels[name]

    def run(self, name: str, n: int, args: tuple, text: str = TEXT) -> None:
        """Start a kernel of bytes.cu or arrays.cu, or of another text, for so many elements."""
        if n <= 0:
            return
        most = self.thin if self.thin and name.startswith("copy") else self.processors * 8
        kernel = self._functions[name] if text is TEXT else self.function(name, text)
        with self.here():
            self.launch(kernel, min((n + BLOCK - 1) // BLOCK, most), BLOCK, args)

    def _set_bytes(self, buffer: Any, byte: int) -> Any:
        if buffer.size:
            counters.launches += 1
            if self.journal is not None:
                self.journal.did("", "set_bytes", (buffer, buffer.nbytes, byte), gpu=self.gpu)
            with self.here():
                buffer.data.memset_async(byte, buffer.nbytes)
        return buffer

    def _in_room(self, need: int, work: Callable[[], Any]) -> Any:
        """work(), which CuPy finds about so many bytes for: again, where others can give theirs."""
        self._only_here("sorting")
        while True:
            try:
                with self.here():
                    return work()
            except MemoryError as error:  # CuPy's own, and what sorting makes of that
                if not self._relieved():
                    raise self._out_of_memory(need) from error

    def _relieved(self) -> bool:
        """Whether others have given memory back."""
        relieve = self.relieve() if self.relieve is not None else None
        return relieve is not None and bool(relieve())

    def _out_of_memory(self, need: int) -> OutOfMemory:
        free = f"{self.memory()[0]} of {self.total} bytes free"
        return OutOfMemory(message(f"{need} bytes on {self.name}", free, "use more devices, or free other arrays"))

    @contextmanager
    def _naming(self):
        try:
            yield
        except (CUDADriverError, CUDARuntimeError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> DeviceError:
        """What CUDA has told here, of the GPU that does not work any more: others wait for it."""
        gpus = () if self.peers is None or self.journal is not None else self.peers.gpus  # no waiting in a capture
        broken = [f"cuda:{gpu}" for gpu in gpus if not works(gpu)]
        return DeviceError(f"{', '.join(broken) or self.name}: {error}")


class CudaDevices:
    """The CUDA devices of a session: pairs (GPU, logical device on it). The caller's thread serves them in order."""

    def __init__(self, pairs: Sequence[tuple[int, int]]):
        count = available()
        sharing = Counter(gpu for gpu, _ in pairs)
        for gpu in sharing:
            if not 0 <= gpu < count:
                raise DeviceError(message(f"one of {count} usable GPUs", f"cuda:{gpu}", "cpu:1 works everywhere"))
        self.switches, self.one_memory = count > 1, len(sharing) == 1
        if not self.switches:
            cupy.cuda.Device(pairs[0][0]).use()
        self._peers = Peers(list(sharing)) if len(sharing) > 1 else None
        self.devices = [
            CudaDevice(gpu, f"cuda:{gpu}/{i}" if sharing[gpu] > 1 else f"cuda:{gpu}", self.switches, self._peers)
            for gpu, i in pairs
        ]

    @property
    def direct(self) -> bool:
        return self._peers is None or bool(self._peers.direct)

    def inline(self, p: int, seconds: float) -> bool:
        return True

    def over(self, tasks: Sequence[Any], work: Callable[[Any], Any], seconds: float, whole: bool = False) -> list[Any]:
        """work(task) for every task, launched one after another from the caller's thread."""
        if not self.switches:
            return [work(task) for task in tasks]
        results = []
        with nullcontext() if self._peers is None else self._peers.step():
            for task in tasks:
                with self.devices[task.device].here():
                    results.append(work(task))
        return results

    def streams(self) -> dict[int, Any]:
        """What each GPU is given by this thread goes to."""
        return {device.gpu: cupy.cuda.get_current_stream(device.gpu) for device in self.devices}

    def read(self, source: Any, streams: dict[int, Any]) -> np.ndarray:
        """An array on the host, as it is once its GPU has done what these streams were given, or else this thread's."""
        gpu = source.device.id
        with cupy.cuda.Device(gpu), streams.get(gpu) or nullcontext():
            return source.get()

    def current_gpu(self) -> int:
        """The GPU that calls go to now."""
        return int(cupy.cuda.runtime.getDevice())

    def forked(self) -> str | None:
        return "CUDA does not work in a forked process. Hint: multiprocessing.get_context('spawn'), or gb.init('cpu:4')"

    def close(self) -> None:
        """Nothing to give back: buffers return to CuPy's allocator with their last reference."""


if TYPE_CHECKING:  # what mypy holds them against

    def _contract(device: CudaDevice, devices: CudaDevices) -> tuple[Device, DeviceSet]:
        return device, devices
