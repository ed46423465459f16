"""Process-wide settings, and where handles find the session in force."""

import os
import stat
import tempfile
import warnings
from pathlib import Path
from threading import RLock
from typing import Any

from .modes import Changed, Open, Threads, Within, restored


def _number(name: str, default: int, least: int = 0) -> int:
    """A whole number of the environment; the default, and a warning, for what is none."""
    text = os.environ.get(name) or str(default)
    if text.removeprefix("-").isdecimal() and int(text) >= least:
        return int(text)
    warnings.warn(f"{name}: expected a whole number from {least} on; came {text!r}, {default} is taken", stacklevel=2)
    return default


inline = (
    "auto"  # "auto": small steps run on the caller's thread; "never": every step goes to the devices' threads; "always"
)
inline_seconds = (
    70e-6  # predicted work below which "auto" runs a step inline (handing two blocks to threads costs about 64 us)
)
long_seconds = 10e-3  # predicted work from which "auto" leaves the main thread free for Ctrl-C
# Threads of CPU devices stay on a core each; the caller moves freely.
pin = os.environ.get("GBGPU_PIN", "1") != "0"
# CPU kernels run as plain Python, for debuggers.
interpret = os.environ.get("GBGPU_INTERPRET", "0") not in ("", "0")
# How much LLVM does for the machine code of CPU kernels: 0, compiled in a few milliseconds, to 3.
optimize = min(_number("GBGPU_OPTIMIZE", 3, 0), 3)
rehearsal: Any = None  # where sessions note the kernels that they ask for: gbgpu.kernels.ahead
# Bytes of shared memory for the columns that a matrix uses most; GPUs only.
hub_bytes = _number("GBGPU_HUB_BYTES", 148 << 10)
# What devices read of each other is brought to them first, of GPUs through the host, as where they can't reach each
# other's memory.
staged = os.environ.get("GBGPU_STAGED", "0") != "0"
# Whether processes that mpiexec started are ranks of one session: "auto", "1" (it is not seen that they are), "0".
ranks = os.environ.get("GBGPU_RANKS", "auto")
# Whether ranks compare the arrays, numbers, ids and file names that they are given, by checksums.
rank_checks = os.environ.get("GBGPU_RANK_CHECKS", "1") != "0"
# Whether one kernel runs a recorded loop of short lists on a GPU: "auto", once it is compiled, which goes on beside a
# CUDA graph; "now": that is waited for; "always": so are others' loops run; "never".
resident = os.environ.get("GBGPU_RESIDENT", "auto")
verbose = _number("GBGPU_VERBOSE", 0)  # 1: a line a statement, 2: its plan, 4: generated sources


cache_megabytes = _number("GBGPU_CACHE_MB", 512)  # of generated code on disk; the oldest goes first
kept_kernels = _number("GBGPU_KEPT_KERNELS", 1024, 1)  # loaded ones that a process keeps, the last used
_warned: set[str] = set()


def warn_once(text: str) -> None:
    """A warning that a process gives once."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def cache_directory() -> Path | None:
    """The directory where generated code is kept between processes.

    The first of these that is safe and can be written: GBGPU_CACHE_DIR, or the user's cache directory; a folder of ours
    for temporary files.

    Returns
    -------
    Path or None
        None if code is kept nowhere, as no folder is ours alone to write.
    """
    for find, look, others in ((_chosen, os.stat, 0o002), (_temporary, os.lstat, 0o077)):
        try:
            path = find()
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            problem = _unsafe(look(path), others)
        except OSError:
            continue
        if problem:  # what lies there is run as code
            warn_once(f"generated code is not kept in {path}: {problem}")
        elif os.access(path, os.W_OK):
            return path
    return None


def _chosen() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("GBGPU_CACHE_DIR") or Path(home, "gbgpu"))


def _temporary() -> Path:
    return Path(tempfile.gettempdir()) / f"gbgpu-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _unsafe(found: os.stat_result, others: int) -> str:
    """Why code must not be run from a folder, told by its owner and by the bits of others; nothing if it may."""
    if not stat.S_ISDIR(found.st_mode):
        return "it is a link or a file"
    if os.name == "nt":
        return ""
    if found.st_uid not in (_user(), 0):
        return f"it belongs to another user ({found.st_uid})"
    return "other users can write there" if found.st_mode & others else ""


changes: list[Changed] = []  # of settings, and of what is as wide, while a program is compiled ahead
_session: Any = None
_start: Any = None


def connect(start: Any) -> None:
    """Tell where sessions come from: `start()` makes the default one.

    The package calls it once.
    """
    global _start
    _start = start


class Seen(Open):
    """What a thread takes for the session in force, while a call is recorded."""

    def __init__(self, session: Any):
        self.session = session


_seen = Threads()


def seen_as(session: Any) -> Within:
    """A context in which this thread takes an object for the session in force."""
    return Within(_seen, Seen(session))


def recording() -> Any:
    """What this thread takes for the session, while a call is recorded or run again; None at other times."""
    here = _seen.here() if _seen else None
    return None if here is None else here.session


def session() -> Any:
    """The session in force; the first use starts the default one."""
    if changes:
        restored(changes)
    if _seen and (found := recording()) is not None:
        return found
    return _session if _session is not None else _first()


def ranks_in_force() -> Any:
    """The ranks of the session in force, or None: without a session, and in one of one process."""
    return None if _session is None else _session.ranks


_starting = RLock()


def _first() -> Any:
    with _starting:  # threads may begin together
        return _session if _session is not None else _start()


def install(new: Any) -> Any:
    """Make `new` the session in force (None: no session); returns the one before."""
    global _session
    with _starting:
        restored(changes)
        old, _session = _session, new
    return old
