"""CUDA C++ text to machine code by NVRTC, through ctypes: needs no GPU, driver or headers. Results are kept on disk."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import DeviceError, InvalidValue, Panic, message
from ..interrupts import imported
from . import store
from .base import cores

_INVALID_OPTION = 5  # of nvrtcResult

BYTES = (Path(__file__).parent / "bytes.cu").read_text()  # kernels that know no operators
OPTIONS = ("--std=c++17", "-default-device", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "--diag-suppress=177")
BEGUN = 256  # texts that are compiled, or were, before they are asked for
NAMES = (
    "libnvrtc.so",
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "/usr/local/cuda/lib64/libnvrtc.so",
    "nvrtc64_130_0.dll",
    "nvrtc64_120_0.dll",
)


def compile_cubin(text: str, arch: str, fmad: bool = False, soon: bool = False) -> bytes:
    """Machine code of a CUDA C++ text for one architecture ("sm_90"). From the on-disk cache if it was compiled before.

    fmad: allow fused multiply-add; soon: rather compiled fast than to fast code. Raises DeviceError without NVRTC,
    Panic with the log if the text is wrong.
    """
    name, options = _named(text, arch, fmad, soon)
    cubin, begun = store.get("cuda", name), _begun.pop(name, None)
    if cubin is not None:
        return cubin
    return _made(name, text, options) if begun is None else begun.result()


def check(arch: str) -> None:
    """Raises InvalidValue for an architecture that NVRTC does not know, DeviceError without NVRTC."""
    _compile("", (f"-arch={arch}",))


def begin(text: str, arch: str, fmad: bool = False, soon: bool = False) -> None:
    """Compile on another thread what `compile_cubin` will be asked for."""
    name, options = _named(text, arch, fmad, soon)
    if len(_begun) > BEGUN:
        _begun.clear()  # nobody asked; threads go on, into the store
    if name not in _begun and not store.has("cuda", name):
        _begun[name] = aside(_made, name, text, options)


def aside(work: Callable[..., Any], *given: Any) -> Future[Any]:
    """work(*given), which compiles, on another thread."""
    return _threads().submit(work, *given)


def settle() -> None:
    """Wait for all that was begun: it would take cores from what is timed, and goes into the store of now."""
    _threads().shutdown()
    _threads.cache_clear()


def _made(name: str, text: str, options: tuple[str, ...]) -> bytes:
    cubin = _compile(text, options)
    store.put("cuda", name, cubin)
    return cubin


_begun: dict[str, Future[bytes]] = {}  # by the names in the store


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(len(cores()), "gbgpu compiling")


def _in_child() -> None:
    """A child of a fork has no threads."""
    _begun.clear()
    _threads.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def kept_cubin(text: str, arch: str, soon: bool) -> bytes | None:
    """What `compile_cubin` has left on disk for a text."""
    return store.get("cuda", _named(text, arch, False, soon)[0])


def _named(text: str, arch: str, fmad: bool, soon: bool) -> tuple[str, tuple[str, ...]]:
    options = (f"-arch={arch}", *OPTIONS, f"-fmad={'true' if fmad else 'false'}", *_faster(soon))
    return _name(text, options) + ".cubin", options


def _faster(soon: bool) -> tuple[str, ...]:
    """Options by which texts take less time: kernels of one side by side, and less work on each."""
    if version() < (12, 9):
        return ()
    return ("--split-compile=0", *(("--Ofast-compile=min",) if soon else ()))


def _name(text: str, options: tuple[str, ...]) -> str:
    return store.code_name("\0".join((text, *options, repr(version()))))


def compile_ptx(text: str, arch: str) -> bytes:
    """PTX of a text that calls functions of the device runtime, which the driver links. Cached as cubins are."""
    options = (f"-arch={arch.replace('sm', 'compute')}", *OPTIONS, "-fmad=false", "-rdc=true", *_faster(True))
    name = _name(text, options) + ".ptx"
    ptx = store.get("cuda", name)
    if ptx is None:
        ptx = _compile(text, options, "PTX")
        store.put("cuda", name, ptx)
    return ptx


def version() -> tuple[int, int]:
    """(major, minor) of NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


@lru_cache(maxsize=1)
def _library() -> Any:
    library = _open()
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _open() -> Any:
    try:
        return ctypes.CDLL(imported("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc").abs_path)
    except Exception:  # not installed, or it finds none: the system's search path is next
        pass
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(
        "expected NVRTC, the CUDA run-time compiler; came none. Hint: in a clone of gbgpu, "
        "pip install '.[cuda12]' or '.[cuda13]'"
    )


def _check(status: int) -> None:
    if status:
        raise Panic(f"NVRTC: {_library().nvrtcGetErrorString(status).decode()}")


def _compile(text: str, options: tuple[str, ...], form: str = "CUBIN") -> bytes:
    nvrtc, program = _library(), ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"gbgpu.cu", 0, None, None))
    try:
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = nvrtc.nvrtcCompileProgram(program, len(options), flags)
        if status == _INVALID_OPTION:
            raise InvalidValue(message("an architecture that NVRTC knows, such as sm_90", options[0]))
        if status:
            log = (
                _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
                .rstrip(b"\0")
                .decode(errors="replace")
            )
            raise Panic(f"a generated kernel does not compile ({' '.join(options)}):\n{log}\n{_numbered(text)}")
        return _text(program, getattr(nvrtc, f"nvrtcGet{form}Size"), getattr(nvrtc, f"nvrtcGet{form}"))
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: Any, size_of: Any, read: Any) -> bytes:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(read(program, buffer))
    return buffer.raw


def _numbered(text: str) -> str:
    return "\n".join(f"{i:4} {line}" for i, line in enumerate(text.split("\n"), 1))
