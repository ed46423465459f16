"""Process-wide settings, and where handles find the session in force."""

import os
import tempfile
from pathlib import Path
from threading import RLock
from typing import Any

inline = (
    "auto"  # "auto": small steps run on the caller's thread; "never": every step goes to the devices' threads; "always"
)
inline_seconds = (
    70e-6  # predicted work below which "auto" runs a step inline (handing two blocks to threads costs about 64 us)
)
long_seconds = 10e-3  # predicted work from which "auto" leaves the main thread free for Ctrl-C
# Threads of CPU devices stay on a core each; the caller moves freely.
pin = os.environ.get("GBGPU_PIN", "1") != "0"
# CPU kernels run as plain Python, uncompiled: for debuggers, and for tests of small objects.
interpret = os.environ.get("GBGPU_INTERPRET", "0") != "0"
rehearsal: Any = None  # where sessions note the kernels that they ask for: gbgpu.kernels.ahead
# Bytes of shared memory for the columns that a matrix uses most; GPUs only.
hub_bytes = int(os.environ.get("GBGPU_HUB_BYTES", str(148 << 10)))
verbose = int(os.environ.get("GBGPU_VERBOSE", "0"))  # 1: a line a statement, 2: its plan, 4: generated sources


def cache_directory() -> Path:
    """Where generated code is kept between processes: GBGPU_CACHE_DIR, else the user's cache directory, else (where
    that can't be written) a folder for temporary files."""
    root = os.environ.get("GBGPU_CACHE_DIR")
    path = Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gbgpu"
    try:
        path.mkdir(parents=True, exist_ok=True)
        usable = os.access(path, os.W_OK)
    except OSError:
        usable = False
    return path if usable else Path(tempfile.gettempdir()) / f"gbgpu-{os.getuid()}"


_session: Any = None
_start: Any = None


def connect(start: Any) -> None:
    """Tell where sessions come from: `start()` makes the default one. Called once, by the package."""
    global _start
    _start = start


def session() -> Any:
    """The session in force; the first use starts the default one."""
    return _session if _session is not None else _first()


_starting = RLock()


def _first() -> Any:
    with _starting:  # threads may begin together
        return _session if _session is not None else _start()


def install(new: Any) -> Any:
    """Make `new` the session in force (None: no session); returns the one before."""
    global _session
    with _starting:
        old, _session = _session, new
    return old
