"""What the fixtures of the pytest plugin do: graphs kept on disk, timed calls, peers (docs/benchmarking.md).

The plugin is `_gbgpu_pytest.py`, beside the packages: pytest loads it whenever it starts. This file is imported when a
test asks for a fixture, and needs no pytest itself.
"""

import hashlib
import inspect
import json
import os
import platform
import resource
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import metadata
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import gbgpu as gb
from gbgpu import settings, timing
from gbgpu.errors import InvalidValue, message
from gbgpu.io import generate

GENERATORS: dict[str, Callable[..., Any]] = {
    "rmat": gb.io.rmat,
    "uniform": gb.io.uniform,
    "grid_road": gb.io.grid_road,
}
SEED = 1  # of generators that are given none
PACKAGES = "numpy scipy llvmlite cupy-cuda12x cupy-cuda13x pytest-benchmark".split()
SECONDS, FEWEST, MOST = 1.0, 5, 100  # of a benchmark with peers: how long it takes, about, in so many rounds


class Graphs:
    """Graphs by name, kept on disk in the folder `graphs` of the cache directory.

    A kept graph is a file of gbgpu's own form, with checksums. Its name is a hash of all that the graph depends on. A
    damaged file is made anew. The files that were not used for longest go where all exceed GBGPU_CACHE_MB.

    Parameters
    ----------
    *folders : path
        Where files with relative names are looked for, after the current folder.

    Attributes
    ----------
    asked : list of dict
        What was asked for: the generator with all its parameters, the seed among them; or the file and its SHA-256.
    """

    def __init__(self, *folders: Path):
        self._folders = [Path(), *folders]
        self.asked: list[dict[str, Any]] = []

    def __call__(self, name: str, *args: Any, **options: Any) -> gb.Matrix:
        """The graph as a Matrix of the session in force.

        Parameters
        ----------
        name : str
            "rmat", "uniform", "grid_road", or a file that `gb.io.read` reads.
        *args, **options : object
            Arguments of `gb.io.rmat` and the others (`seed` is 1 by default), or options of `gb.io.read`.

        Raises
        ------
        InvalidValue
            If there is neither such a generator nor such a file, or the file holds a vector.
        TypeError
            If the generator has no such parameter.
        FileFormatError, OutOfMemory, OSError
            As `gb.io.read` and the generators.
        """
        generator = GENERATORS.get(name)
        if generator is not None:
            given = _bound(name, generator, args, options)
            told, code = {"graph": name, **given}, Path(generate.__file__).read_bytes()
            make, made_by = partial(generator, **given), hashlib.sha256(code).hexdigest()
        else:
            path = self._found(name)
            content, made_by = _checksum(path), gb.__version__
            told, make = {"graph": name, **options, "sha256": content}, partial(_read, path, *args, **options)
            if gb.io.form_of(path) == "gbgpu":  # kept already
                made_by = ""
        self.asked.append(told)
        return _kept(name, json.dumps([told, made_by], default=str), make) if made_by else make()

    def _found(self, name: str) -> Path:
        for folder in self._folders:
            if (path := folder / name).is_file():
                return path
        where = ", ".join(str(folder.resolve()) for folder in self._folders)
        expected = f"a generator ({', '.join(GENERATORS)}) or a file in one of these folders: {where}"
        raise InvalidValue(message(expected, repr(name)))


def _bound(name: str, generator: Callable[..., Any], args: Any, options: dict[str, Any]) -> dict[str, Any]:
    """All parameters of a generator by name, those with defaults included; but for the matrix's name."""
    try:
        bound = inspect.signature(generator).bind(*args, **{"seed": SEED, **options})
    except TypeError as error:
        names = ", ".join(inspect.signature(generator).parameters)
        raise TypeError(f"{name}: {error}. Hint: parameters are those of gb.io.{name}: {names}") from None
    bound.apply_defaults()
    bound.arguments.pop("name")
    bound.arguments["dtype"] = gb.dtypes.lookup_dtype(bound.arguments["dtype"]).name
    return dict(bound.arguments)


def _read(path: Path, *args: Any, **options: Any) -> gb.Matrix:
    found = gb.io.read(path, *args, **options)
    if not isinstance(found, gb.Matrix):
        raise InvalidValue(f"{path}: " + message("a graph, a matrix", "a vector"))
    return found


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _kept(name: str, recipe: str, make: Callable[[], Any]) -> Any:
    """The graph of a recipe, as it was kept; made, and kept, where no whole file is there."""
    folder = settings.cache_directory()
    if folder is None or settings.ranks_in_force() is not None:  # ranks make it in parts
        return make()
    stem = Path(name).name.partition(".")[0]
    path = folder / "graphs" / f"{stem}-{hashlib.sha256(recipe.encode()).hexdigest()[:32]}.gbgpu"
    try:
        found = gb.io.load(path)
    except (OSError, ValueError):  # it is not there, or damaged
        found = None
    if found is not None:
        with suppress(OSError):
            os.utime(path)  # the oldest go first
        return found
    made = make()
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        gb.io.save(path, made)
        _make_room(path)
        return gb.io.load(path)  # the same forms as later, when it is not made
    except OSError as error:
        warnings.warn(f"the graph can't be kept in {path.parent}, and is made anew each time: {error}", stacklevel=4)
        return made


def _make_room(new: Path) -> None:
    """Delete the files that were not used for longest while all exceed the limit of the cache; the new one stays."""
    files = []
    for path in new.parent.iterdir():
        with suppress(OSError):  # another process has deleted it
            about = path.lstat()
            files.append((about.st_mtime, about.st_size, path))
    excess = sum(size for _, size, _ in files) - settings.cache_megabytes * 1_000_000
    for _, size, path in sorted(files):
        if excess > 0 and path != new:
            path.unlink(missing_ok=True)
            excess -= size


class Comparison(NamedTuple):
    """What `beside` found.

    Attributes
    ----------
    milliseconds : float
        The median of our call.
    peers : dict
        The median milliseconds of each peer.
    peer : str
        The fastest one; "" without peers.
    ratio : float or None
        How many times faster we are than the fastest peer.
    """

    milliseconds: float
    peers: dict[str, float]
    peer: str
    ratio: float | None


class Benchmark:
    """The fixture `gb_benchmark`: pytest-benchmark's fixture, for calls that run on devices.

    Attributes
    ----------
    milliseconds : float or None
        The median; None where nothing was timed.
    peers : dict
        The median milliseconds of each peer.
    """

    def __init__(self, benchmark: Any, graphs: Graphs):
        self.benchmark, self._graphs = benchmark, graphs
        self.milliseconds: float | None = None
        self.peers: dict[str, float] = {}

    def ratio(self, of: str = "") -> float | None:
        """How many times faster than a peer, the fastest one by default; None where nothing was timed."""
        theirs = self.peers.get(of) if of else min(self.peers.values(), default=None)
        return None if theirs is None or self.milliseconds is None else theirs / self.milliseconds

    @property
    def extra_info(self) -> dict[str, Any]:
        """What pytest-benchmark stores with the times."""
        info: dict[str, Any] = self.benchmark.extra_info
        return info

    def __call__(
        self, function: Callable[..., Any], *args: Any, check: Callable[[Any], object] | None = None, **kwargs: Any
    ) -> Any:
        """Time function(*args, **kwargs), and return what the last call returned.

        Parameters
        ----------
        function : callable
            It is called until it is warm, and then timed by pytest-benchmark. The timed call ends when all devices have
            finished.
        *args, **kwargs : object
            Its arguments.
        check : callable, optional
            Called with the result, before and after the timed calls. It raises if the result is wrong.
        """
        call = partial(function, *args, **kwargs)
        return self._measured(call, check, lambda whole, last: self.benchmark(whole))

    def beside(
        self,
        call: Callable[[], Any],
        peers: Mapping[str, Callable[[], object]],
        *,
        rounds: int | None = None,
        check: Callable[[Any], object] | None = None,
    ) -> Comparison | None:
        """Time a call; before each of its rounds every peer runs once. See the fixture `beside`."""
        alone = {name: timing.synchronized(peer) for name, peer in peers.items()}
        times: dict[str, list[float]] = {name: [] for name in peers}

        def others() -> None:
            for name, peer in alone.items():
                start = timing.now()
                peer()
                times[name].append(timing.now() - start)

        def timed(whole: Callable[[], Any], last: float) -> Any:
            if self.benchmark.enabled:
                others()  # their first calls are not measured
                last += sum(kept.pop() for kept in times.values())
            count = rounds or min(max(round(SECONDS / last), FEWEST), MOST)
            return self.benchmark.pedantic(whole, setup=others, rounds=count, iterations=1)

        self._measured(call, check, timed)
        if self.milliseconds is None:
            return None
        self.peers = {name: 1e3 * median(kept) for name, kept in times.items()}
        peer, ratio = min(self.peers, key=self.peers.__getitem__, default=""), self.ratio()
        self.extra_info.update(peers_ms=self.peers, peer=peer, ratio=ratio)
        return Comparison(self.milliseconds, self.peers, peer, ratio)

    def _measured(
        self,
        call: Callable[[], Any],
        check: Callable[[Any], object] | None,
        timed: Callable[[Callable[[], Any], float], Any],
    ) -> Any:
        """timed(the synchronized call, seconds of a warm one), between a warm-up, checks, and more calls to count."""
        whole = timing.synchronized(call)
        if not self.benchmark.enabled:  # all is called once, nothing is timed
            result = timed(whole, inf)
            if check is not None:
                check(result)
            return result
        found = timing.warmed(whole)
        if check is not None:
            check(found.result)
        watched = timing.Watched()
        result = timed(whole, found.last)
        told = {"first_call_ms": 1e3 * found.first, "warm_calls": found.calls, "compiled_anew": found.anew}
        told |= {"settled": watched.settled(found), "compiled": watched.compiled}
        self.milliseconds = 1e3 * self.benchmark.stats.stats.median
        self.extra_info.update(told, **timing.costs(call), **memory(), **circumstances(), graphs=self._graphs.asked)
        if check is not None:
            check(result)
        return result


def memory() -> dict[str, Any]:
    """`host_peak_bytes` of this process, and `device_bytes`: what is in use on each device with memory of its own."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    own = [device for device in settings.session().devices if not device.shares_memory and device.kind != "remote"]
    used = {device.name: total - free for device in own for free, total in [device.memory()]}
    return {"host_peak_bytes": peak, "device_bytes": used}


def circumstances() -> dict[str, Any]:
    """`devices`, `models`, `python` and `versions`."""
    found = settings.session().devices
    models = sorted({device.model for device in found if device.kind != "remote"})
    python = platform.python_version()
    return {"devices": timing.devices(), "models": models, "python": python, "versions": versions(*PACKAGES)}


def versions(*packages: str) -> dict[str, str]:
    """Versions of gbgpu and of those packages that are installed."""
    found = {"gbgpu": gb.__version__}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


class Verdict(NamedTuple):
    """One target: what it asks for, what was measured, and whether it is met (None: nothing was timed)."""

    target: str
    came: str
    met: bool | None

    def __str__(self) -> str:
        word = {True: "met", False: "missed", None: "not timed"}[self.met]
        return f"{word}: {self.target}" + (f"; came {self.came}" if self.came else "")


def verdicts(found: Benchmark | None, milliseconds: float | None, ratio: float | None, of: str = "") -> list[Verdict]:
    """What became of a test's targets: its milliseconds at most, its ratio to a peer at least."""
    told = []
    if milliseconds is not None:
        took = None if found is None else found.milliseconds
        met = None if took is None else took <= milliseconds
        told.append(Verdict(f"<= {milliseconds:g} ms", "" if took is None else f"{took:.3g} ms", met))
    if ratio is not None:
        times = None if found is None else found.ratio(of)
        met = None if times is None else times >= ratio
        target = f">= {ratio:g} x as fast as {of or 'the fastest peer'}"
        timed = "" if found is None or not found.peers else f"peers {', '.join(map(repr, found.peers))}"
        told.append(Verdict(target, timed if times is None else f"{times:.3g} x", met))
    return told
