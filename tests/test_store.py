"""Machine code between processes: only what is ours and whole is run, nothing that fails there stops a statement, and
both disk and memory are bounded."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
import time
import warnings
import weakref
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import settings
from gbgpu.device import nvrtc, store
from gbgpu.kernels import compiled, cpu, gpu, kernel

TEXT = "def kernel(x):\n    x[0] += {}\n"


@pytest.fixture
def folder(store, tmp_path, monkeypatch):
    """An empty cache, and another folder for temporary files."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(settings.tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(settings, "_warned", set())
    return store


def strange(path, monkeypatch) -> None:
    """Make a file or folder another user's."""
    try:
        os.chown(path, 12345, -1)
    except PermissionError:
        monkeypatch.setattr(os, "getuid", lambda: 12345)


# ---------------------------------------------------------------- files


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def linked(path):
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def piped(path):
    path.unlink()
    os.mkfifo(path)


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "long": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "head": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "flipped": flipped,
    "another's": lambda path: path.write_bytes((path.parent / "other").read_bytes()),
    "absent": lambda path: path.unlink(),
    "link": linked,
    "pipe": piped,
    "open to all": lambda path: path.chmod(0o666),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_only_whole_files_of_ours_count(folder, damage):
    store.put("cuda", "other", b"other code")
    store.put("cuda", "mine", b"code")
    assert store.get("cuda", "mine") == b"code" and not list(folder.rglob("*.tmp"))
    DAMAGES[damage](folder / "cuda/mine")
    assert store.get("cuda", "mine") is None
    store.put("cuda", "mine", b"code")
    assert store.get("cuda", "mine") == b"code"


def test_files_of_others_do_not_count(folder, monkeypatch):
    store.put("cuda", "mine", b"code")
    monkeypatch.setattr(settings, "cache_directory", lambda: folder)
    strange(folder / "cuda/mine", monkeypatch)
    assert store.get("cuda", "mine") is None


def test_the_cache_is_for_its_owner_only(folder):
    assert settings.cache_directory() == folder
    assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("kind", ["open", "another user's", "a file", "cannot be made"])
def test_a_folder_that_is_not_ours_is_not_used(folder, kind, monkeypatch):
    """The folder for temporary files serves, and is ours alone; a warning says why."""
    if kind == "a file":
        folder.write_text("")
    elif kind == "cannot be made":
        monkeypatch.setenv("GBGPU_CACHE_DIR", "/proc/nowhere")
    else:
        folder.mkdir()
        folder.chmod(0o777) if kind == "open" else strange(folder, monkeypatch)
    warned = kind in ("open", "another user's")
    with pytest.warns(RuntimeWarning, match="code is not kept in .*/cache: ") if warned else nullcontext():
        found = settings.cache_directory()
    if kind == "another user's" and os.getuid() == 12345:
        assert found is None or found.parent.name == "tmp"
        return
    assert found == settings._temporary() and stat.S_IMODE(found.stat().st_mode) == 0o700
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        assert settings.cache_directory() == found
    store.put("cuda", "mine", b"code")
    assert store.get("cuda", "mine") == b"code" and not (folder / "cuda").exists()


@pytest.mark.parametrize("kind", ["link", "open to readers", "another user's"])
def test_a_planted_folder_for_temporary_files_is_not_used(folder, kind, monkeypatch):
    monkeypatch.setenv("GBGPU_CACHE_DIR", "/proc/nowhere")
    planted = settings._temporary()
    if kind == "link":
        (folder.parent / "elsewhere").mkdir(mode=0o700)
        planted.symlink_to(folder.parent / "elsewhere")
    else:
        planted.mkdir(mode=0o700)
        planted.chmod(0o755) if kind == "open to readers" else strange(planted, monkeypatch)
        monkeypatch.setattr(settings, "_temporary", lambda: planted)
    with pytest.warns(RuntimeWarning, match="code is not kept in"):
        assert settings.cache_directory() is None
    store.put("cuda", "mine", b"code")
    assert store.get("cuda", "mine") is None


def test_a_disk_that_is_full_warns_once(folder, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="can't be kept in .*: No space left on device") as caught:
        for name in "abc":
            store.put("cuda", name, b"code")
    assert len(caught) == 1 and store.get("cuda", "a") is None and not list((folder / "cuda").iterdir())


def test_the_oldest_files_go_first(folder, monkeypatch):
    monkeypatch.setattr(store, "_EVERY", 1 << 60)  # no sweep but the one below
    monkeypatch.setattr(settings, "cache_megabytes", 1)
    for i in range(15):
        store.put("cuda" if i % 2 else "cpu", f"{i}", bytes(100_000))
        path = folder / ("cuda" if i % 2 else "cpu") / f"{i}"
        os.utime(path, (time.time() - 1e6 + i,) * 2)
    assert store.get("cpu", "0") is not None  # used now: no longer among the oldest
    old, new = folder / "cuda/old.tmp", folder / "cuda/new.tmp"
    old.write_bytes(b""), new.write_bytes(b"")
    os.utime(old, (time.time() - 1e6,) * 2)
    store.sweep(folder)
    left = {int(path.name) for path in folder.rglob("*") if path.is_file() and path.suffix != ".tmp"}
    assert left == {0, *range(9, 15)}
    assert new.exists() and not old.exists()


def test_stored_files_are_looked_at_from_time_to_time(folder, monkeypatch):
    looks = []
    monkeypatch.setattr(store, "sweep", looks.append)
    for i in range(2 * store._EVERY):
        store.put("cuda", f"{i}", b"")
    assert len(looks) == 2


# ---------------------------------------------------------------- CPU kernels


def load(number: int):
    return kernel.Kernel("test", TEXT.format(number))


def added(kernel, x: int) -> int:
    """What the kernel makes of a number."""
    array = np.array([x])
    kernel(array)
    return int(array[0])


@pytest.fixture(autouse=True, scope="module")
def called() -> None:
    """What calls kernels is compiled for the first one of a process, and not counted here."""
    added(load(0), 0)


@pytest.fixture
def made(monkeypatch):
    """What is compiled."""
    texts, plain = [], compiled.machine_code
    monkeypatch.setattr(compiled, "machine_code", lambda *given: texts.append(given) or plain(*given))
    return texts


@pytest.mark.parametrize("damage", [None, "empty", "short", "flipped"])
def test_damaged_machine_code_is_compiled_again(folder, made, damage):
    assert added(load(5), 2) == 7 and len(made) == 1
    (file,) = (folder / "cpu").iterdir()
    if damage:
        DAMAGES[damage](file)
    assert added(load(5), 2) == 7 and len(made) == 1 + (damage is not None)
    assert added(load(5), 2) == 7 and len(made) == 1 + (damage is not None)


def test_kernels_run_where_nothing_can_be_written(folder, monkeypatch):
    monkeypatch.setattr(settings, "cache_directory", lambda: None)
    assert added(load(6), 2) == 8


def test_a_dropped_kernel_leaves_nothing_behind(folder):
    kernel = load(7)
    assert added(kernel, 1) == 8
    (code,) = kernel.codes.values()
    call, gone = code.call, weakref.ref(kernel)
    assert call.__self__ is kernel
    del kernel, code
    gc.collect()
    assert added(call, 1) == 8 and gone() is not None  # the machine code keeps what it needs
    del call
    gc.collect()
    assert gone() is None
    assert added(load(7), 1) == 8


def test_what_compiles_is_freed(folder, monkeypatch):
    from llvmlite.binding import newpassmanagers

    freed = []
    dispose = newpassmanagers.NewPassManager._dispose
    for kind in (newpassmanagers.ModulePassManager, newpassmanagers.FunctionPassManager):
        assert kind._dispose is dispose
        monkeypatch.setattr(kind, "_dispose", lambda self: (freed.append(type(self)), dispose(self)))
    assert added(load(8), 1) == 9
    gc.collect()
    assert {kind.__name__ for kind in freed} == {"ModulePassManager"}


PROGRAM = """
import resource, sys, warnings
import gbgpu as gb
if "full" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
warnings.simplefilter("always")
gb.init("cpu:1")
v = gb.Vector.from_coo([0, 2], [5, 7], size=4)
print(v.apply(lambda x: x * 3 + 1).new().to_dict())
"""


def program(folder, *arguments: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "GBGPU_CACHE_DIR": str(folder), "TMPDIR": str(folder.parent / "tmp")}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)


def test_a_full_disk_and_planted_code(tmp_path):
    """A disk that takes nothing; then files that others left where anybody could, which never run."""
    folder = tmp_path / "cache"  # not this process's: its threads may compile for earlier tests
    (tmp_path / "tmp").mkdir()
    right = "{0: 16, 2: 22}\n"
    done = program(folder, "full")
    assert done.stdout == right and done.stderr.count("RuntimeWarning") == 1
    assert "File too large" in done.stderr and not [path for path in folder.rglob("*") if path.is_file()]
    assert program(folder).stdout == right
    files = [*(folder / "cpu").iterdir()]
    assert len(files) == 2 and {file.suffix for file in files} == {".o"}  # the kernel, and what calls all kernels
    bomb = b"cos\nsystem\n(S'touch " + str(folder / "ran").encode() + b"'\ntR."
    for file in files:
        file.write_bytes(store._digest(file.name, bomb) + bomb)
    folder.chmod(0o777)
    done = program(folder)
    assert done.stdout == right and "other users can write there" in done.stderr
    assert not (folder / "ran").exists()


# ---------------------------------------------------------------- what a process keeps


@pytest.fixture
def few(monkeypatch):
    """Uncompiled kernels, of which three are kept."""
    monkeypatch.setattr(settings, "interpret", True)
    monkeypatch.setattr(settings, "kept_kernels", 3)
    monkeypatch.setattr(cpu, "_recent", store.Recent())
    made: list[str] = []
    plain = cpu.interpreted
    monkeypatch.setattr(cpu, "interpreted", lambda kind, text: made.append(kind) or plain(kind, text))
    return made


def test_sessions_share_kernels(few):
    for _ in range(3):
        gb.init("cpu:1")
        v = gb.Vector.from_coo([0, 2], [5, 7], size=4)
        assert v.apply(lambda x: x + 1).new().to_dict() == {0: 6, 2: 8}
    assert len(few) == 1


def test_distinct_functions_are_kept_within_bounds(few):
    gb.init("cpu:1")
    v = gb.Vector.from_coo([0, 2], [5, 7], size=4)
    session = settings.session()
    for i in range(1, 11):
        assert v.apply(eval(f"lambda x: {' + '.join('x' * i)}")).new().to_dict() == {0: 5 * i, 2: 7 * i}
    assert len(few) == 10
    assert len(cpu._recent) == 3 and len(session.kernels._loaded) <= 3 and len(session.plans) <= 3
    for i in range(10):  # all but the first share one
        assert v.apply(lambda x, i=i: x + i).new().to_dict() == {0: 5 + i, 2: 7 + i}
    assert len(few) == 12
    assert len(cpu._recent) == 3 and len(session.kernels._loaded) <= 3 and len(session.plans) <= 3


def test_the_last_used_are_kept(monkeypatch):
    monkeypatch.setattr(settings, "kept_kernels", 2)
    recent, made = store.Recent(), []
    for key in "abacab":
        assert recent.get(key, lambda key=key: made.append(key) or key.upper()) == key.upper()
    assert made == ["a", "b", "c", "b"]


# ---------------------------------------------------------------- GPU kernels


def test_damaged_cubins_are_compiled_again(folder, monkeypatch):
    compiled, plain = [], nvrtc._compile

    def compile(text, options):  # another thread may prepare kernels meanwhile
        return plain(text, options) if text != "text" else compiled.append(text) or b"machine code"

    monkeypatch.setattr(nvrtc, "version", lambda: (12, 0))
    monkeypatch.setattr(nvrtc, "_compile", compile)
    for damage in (None, None, "empty", "flipped", "short"):
        if damage:
            DAMAGES[damage](next((folder / "cuda").iterdir()))
        assert nvrtc.compile_cubin("text", "sm_90") == b"machine code"
    assert len(compiled) == 4


def test_sessions_share_modules_of_a_gpu(monkeypatch):
    """One module a text and GPU, one object a kernel; launchers are dropped when they are many, after a wait."""
    loaded, waits = [], []

    def device(number):
        def load(cubin, text):
            loaded.append((number, cubin))
            return lambda name: SimpleNamespace(name=name)

        here = SimpleNamespace(gpu=number, arch="sm_90", here=nullcontext, load=load, launch=None, processors=1)
        here.synchronize = lambda: waits.append(number)
        return here

    monkeypatch.setattr(settings, "kept_kernels", 3)
    monkeypatch.setattr(gpu, "_modules", store.Recent())
    monkeypatch.setattr(gpu, "scalar_types", lambda kind, spec: [])
    monkeypatch.setattr(gpu, "source", lambda kind, spec: "text")
    monkeypatch.setattr(gpu, "compile", lambda kind, spec, arch: str(spec).encode())
    monkeypatch.setattr(gpu, "launcher", lambda kernels, device, module, kind, spec: module("k"))
    one, other = device(0), device(1)
    kernels = [gpu.GpuKernels(SimpleNamespace(devices=[d], current_gpu=lambda: 0)) for d in (one, one, other)]
    launchers = [each.get("apply", "same") for each in kernels]
    assert launchers[0] is launchers[1] is not launchers[2] and loaded == [(0, b"same"), (1, b"same")]
    for i in range(9):
        kernels[0].get("apply", i)
    assert len(kernels[0]._launchers) <= 3 and len(gpu._modules) == 3 and waits == [0, 0, 0]
