"""gbgpu: graph algorithms as masked matrix products over semirings, on every GPU (or CPU core) a person has."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from . import agg, binary, dtypes, errors, exceptions, indexunary, monoid, op, select, semiring, settings, ss, unary
from .configuration import MAX_SIZE, config
from .distribute import partition
from .distribute import ranks as _ranks
from .distribute.sets import BlockSets
from .distribute.topology import measured
from .engine.calls import foldable
from .engine.memory import Memory, of_matrix
from .engine.session import Session
from .interrupts import imported
from .language.expr import Expression, Statement, new_like
from .language.masks import replace
from .language.matrix import Matrix, TransposedMatrix
from .language.recording import Loop, loop
from .language.scalar import Scalar
from .language.update import Updater
from .language.vector import Vector
from .modes import Changed
from .trace import Records, compiling, trace

__version__ = "0.1.0"


def init(
    devices: str = "auto",
    partition: Any = None,
    *,
    deterministic: bool = False,
    balance: Any = "auto",
    replicas: Any = "auto",
    ranks: bool | None = None,
    **others: Any,
) -> Session:
    """Start a session on `devices` and end the one before, whose handles then raise InvalidValue.

    "auto" (the first GPU and those like it, else virtual CPU devices), "cpu:4" (4 row blocks on 4 threads), "cuda:0",
    "cuda:0-1" and "cuda:0,2" (several GPUs), "cuda:0*3" (three logical devices on one GPU), "sim:dgx1-v100" (as many
    CPU devices as that host has GPUs, for predictions: see docs/balance.md). `partition`: how rows are divided, from
    `gb.partition`. `deterministic`: sums of floats are the same, bit for bit, from run to run and on any number of
    devices of one kind, and `any` takes the term of the lowest index in products with a vector; such products go by
    rows (pull) then, which costs time. `balance`: whether a device computes for another whose part of a frontier is
    larger, "auto", "off" or a `gb.balance.Policy`; GPUs share pulls of all entries, and wide pushes (docs/balance.md).
    `replicas`: bytes that copies may take: of whole matrices on the first of several GPUs, which then does by itself
    what others would only delay, and of rows that others compute (docs/devices.md); "auto", as many as leave room, 0
    for none.

    In processes that mpiexec started the session has the devices of all of them (docs/clusters.md), each of which calls
    this; `ranks=False` gives each process a session of its own, and True is for what starts processes otherwise. Raises
    DeviceError for a device that is not there, or without mpi4py; InvalidValue if ranks ask for different sessions.
    """
    if others or devices in ("suitesparse", "suitesparse-vanilla"):  # as python-graphblas is begun
        came = ", ".join([repr(devices), *(f"{name}={value!r}" for name, value in others.items())])
        hint = 'gb.init("cpu:4"), gb.init("cuda:0"), or no call at all; statements run when they are written'
        raise TypeError(errors.message("devices, and perhaps partition and deterministic", came, hint))
    session = Session(devices, partition, deterministic, balance, replicas, ranks)
    old = settings.install(session)
    if old is not None:
        old.close()
    return session


settings.connect(init)
if _ranks.wanted():
    _ranks.watch()


def rank() -> int:
    """The number of this process among those of the session in force, from 0; where it is the only one, 0."""
    ranks = settings.session().ranks
    return 0 if ranks is None else ranks.rank


def device_info() -> list[dict[str, Any]]:
    """The devices of the session in force: name, kind, model, free and total bytes."""
    found, ranks = [], settings.session().ranks
    for device in settings.session().devices:
        if device.kind == "remote":
            continue
        free, total = device.memory()
        found.append({"name": device.name, "kind": device.kind, "model": device.model, "free": free, "total": total})
    return found if ranks is None else sum(ranks.gathered(found, "gb.device_info"), [])


def topology() -> Any:
    """The links between the devices of the session in force as a `balance.Topology`, measured now by copies (128 MiB on
    each device): bytes a second and seconds, from each device (row) to each other one. Logical devices of one GPU count
    as devices. Raises NotImplementedException across ranks."""
    if settings.session().ranks is not None:
        raise errors.NotImplementedException("links between ranks aren't measured yet")
    if settings.session().simulated is not None:
        return settings.session().simulated
    links = measured(settings.session().devices)
    np.fill_diagonal(links.bandwidth, 0)
    names = ", ".join(device.name for device in settings.session().devices)
    best = links.bandwidth.max(0), links.bandwidth.max(1)  # of all links of a device together no more is known
    connected = imported("gbgpu.balance.topology").made
    return connected(names, links.bandwidth, links.latency, *best, simulated=False)


def block_sets(matrix: Matrix | TransposedMatrix) -> BlockSets:
    """What each row block of a matrix, or of a transpose, reads and writes, and what of that other devices have: edge
    cut, balance, and bytes of a round. Counted now, where the blocks lie. Raises TypeError for what is no Matrix."""
    turned = isinstance(matrix, TransposedMatrix)
    if not turned and not isinstance(matrix, Matrix):
        raise TypeError(errors.message("a Matrix, or A.T", type(matrix).__name__))
    stored = matrix.T if turned else matrix
    return stored._session.block_sets(stored, turned)


def estimate_memory(
    nrows: int, ncols: int, nvals: int, dtype: Any = "FP64", *, iso: bool = False, replica: bool = False
) -> Memory:
    """Bytes that a Matrix of distinct entries needs, as `Memory(held, peak)`: `held` once it is there, `peak` while
    `from_coo` makes it from arrays on the device (beyond these arrays). They are those of the GPU that needs most, or
    of the process if the devices of the session in force are CPU ones.

    `iso`: one value for all entries. `replica`: with a copy of all of it on the first of several GPUs, which loops of
    little work leave there (docs/devices.md). A product that needs the transpose holds a second matrix like it, unless
    the matrix is symmetric; on GPUs, products with a vector may keep columns in another order as well (4 bytes an
    entry). Not counted: what a partition takes once for a size, where it gives rows an order of their own. Raises
    InvalidValue for a negative size.
    """
    if min(nrows, ncols, nvals) < 0:
        raise errors.InvalidValue(errors.message("sizes from 0 on", (nrows, ncols, nvals)))
    return of_matrix(settings.session(), nrows, ncols, nvals, dtypes.lookup_dtype(dtype), iso, replica)


def synchronize() -> None:
    """Wait until every device has finished what it was given."""
    for device in settings.session().devices:
        device.synchronize()


def compile_ahead(program: Callable[[], object], arch: str | None = None) -> int:
    """Compile the kernels that `program()` needs into the on-disk cache, where other processes find them; returns how
    many.

    For a GPU, of `arch` ("sm_80", "sm_90", ...) or by default the first one here, the program runs on CPU devices, as
    slowly as plain Python, and plans as it would on a GPU; give it small objects of the types it is for. Without both,
    CPU kernels are compiled: the program runs as ever, but for kernels that are compiled at their first call. Raises
    DeviceError without NVRTC for a GPU, InvalidValue for an `arch` that it does not know.
    """
    ahead, cuda = imported("gbgpu.kernels.ahead"), imported("gbgpu.device.cuda")
    if arch is None and not cuda.available():
        count = compiling.kernels
        with ahead.compiled_at_once(), ahead.anew(), ahead.anew_in_loops():
            _apart(program)
        return compiling.kernels - count
    arch = cuda.info(0)["arch"] if arch is None else arch
    imported("gbgpu.device.nvrtc").check(arch)  # before the program runs for long
    asked: dict[Any, None] = {}
    with ahead.rehearsed(asked):
        _apart(program)
    return ahead.compile_all(asked, arch)


def _apart(program: Callable[[], object]) -> None:
    """program(), with a session of its own, which ends with it."""
    with Changed(settings.changes, settings, _session=None):
        try:
            program()
        finally:
            if settings._session is not None:
                settings._session.close()


class PlanText(str):
    """A plan as text that a console shows as it is."""

    def __repr__(self) -> str:
        return str(self)


class Plans(list):
    """The plans of several statements; printed one after another."""

    def __str__(self) -> str:
        return "\n".join(self)

    __repr__ = __str__


def explain(what: Any = None) -> Any:
    """The plan of a statement that ran, or of an expression without running it, as text; of a loop that ran, what ran
    it and the plans that its statements took last.

    Without an argument a context in which every statement of this thread is planned and none runs: `with gb.explain()
    as text: ...; print(text)`.
    """
    if what is None:
        return settings.session().planning(Plans())
    if isinstance(what, Statement):
        return PlanText(f"{what!r}\n{what.plan}")
    if isinstance(what, Loop):
        return PlanText(what.explained())
    if not isinstance(what, Expression):
        raise TypeError(
            errors.message(
                "a statement, an expression, a loop, or nothing",
                type(what).__name__,
                "gb.explain(w << semiring(A @ v))",
            )
        )
    with settings.session().planning(Plans()) as text:
        Updater(new_like(what.shape, what.dtype, "w")) << what
    return PlanText(text)


# what else python-graphblas has -> what there is
_INSTEAD = {
    "Recorder": "gb.trace() records what statements do, gb.explain() shows how they are planned",
    "backend": 'there is one; gb.init("cuda:0") says on which devices',
    "viz": "networkx.draw(gb.io.to_networkx(A)), or spy(A.to_scipy_sparse()) of matplotlib.pyplot",
}


def __getattr__(name: str) -> Any:
    """`gb.core` and `gb.sparse`, imported when they are asked for."""
    if name not in ("core", "sparse"):
        raise errors.no_attribute(f"module {__name__!r}", name, _INSTEAD.get(name))
    return import_module("gbgpu.core") if name == "core" else import_module("gbgpu.sparse")


from . import io  # noqa: E402  (made of the public names above)

Records.table = lambda records: str(imported("gbgpu.report").text(records))

__all__ = [
    "MAX_SIZE",
    "Matrix",
    "Scalar",
    "TransposedMatrix",
    "Vector",
    "agg",
    "balance",
    "binary",
    "block_sets",
    "compile_ahead",
    "config",
    "device_info",
    "dtypes",
    "estimate_memory",
    "exceptions",
    "explain",
    "foldable",
    "indexunary",
    "init",
    "io",
    "loop",
    "monoid",
    "op",
    "partition",
    "rank",
    "replace",
    "select",
    "semiring",
    "settings",
    "sparse",
    "ss",
    "synchronize",
    "topology",
    "trace",
    "unary",
]


def __dir__() -> list[str]:
    return sorted(__all__)
