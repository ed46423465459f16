"""gbgpu: graph algorithms as masked matrix products over semirings, on every GPU (or CPU core) a person has."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from . import agg, binary, dtypes, errors, exceptions, indexunary, monoid, op, select, semiring, settings, ss, unary
from .configuration import MAX_SIZE, config
from .device.limits import Limits
from .device.limits import measured as reached
from .distribute import partition
from .distribute import world as _world
from .distribute.sets import BlockSets
from .distribute.topology import measured
from .engine.memory import Memory, of_matrix
from .engine.session import Session
from .interrupts import imported
from .language.expr import Expression, Statement, new_like
from .language.fixpoint import Fixpoint, fixpoint
from .language.masks import replace
from .language.matrix import Matrix, TransposedMatrix
from .language.program import program
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
    """Start a session on devices, and end the session before.

    Objects of the ended session raise InvalidValue. Without a call the first statement starts a session on "auto".

    Parameters
    ----------
    devices : str
        Which devices:

        - "auto": the first GPU and those like it, else virtual CPU devices;
        - "cpu:4": 4 row blocks on 4 threads;
        - "cuda:0", "cuda:0-1", "cuda:0,2": one or several GPUs;
        - "cuda:0*3": three logical devices on one GPU;
        - "sim:dgx1-v100": as many CPU devices as that host has GPUs, for predictions (docs/balance.md).
    partition : Partition, optional
        How rows are divided among devices, from `gb.partition`.
    deterministic : bool
        Whether sums of floats are the same, bit for bit, from run to run and on any number of devices of one kind.
        Products with a vector are then pulls, which takes longer, and `any` takes the term of the lowest index.
    balance : str or Policy
        Whether a device computes for another whose part of a frontier is larger: "auto", "off", or a
        `gb.balance.Policy`.
    replicas : str or int
        Bytes that copies of matrices and rows may take (docs/devices.md): "auto" for as many as leave room, 0 for none.
    ranks : bool, optional
        Whether processes that mpiexec started share one session (docs/clusters.md); each of them calls this. By default
        they do if mpiexec started them. False gives each process its own session.
    **others : object
        None. TypeError tells users of python-graphblas what to write instead.

    Returns
    -------
    Session
        The session in force from now on.

    Raises
    ------
    DeviceError
        If a device does not exist, or mpi4py is missing for ranks.
    InvalidValue
        If ranks ask for different sessions, or arguments contradict each other.
    TypeError
        If an argument has another type.
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
if _world.wanted():
    _world.watch()


def rank() -> int:
    """The number of this process among the ranks of the session, from 0.

    Returns
    -------
    int
        0 if the process is the only one.
    """
    ranks = settings.session().ranks
    return 0 if ranks is None else ranks.rank


def device_info() -> list[dict[str, Any]]:
    """The devices of the session, those of all ranks included.

    Returns
    -------
    list of dict
        `name`, `kind`, `model`, and the memory's `free` and `total` bytes of each device.
    """
    found, ranks = [], settings.session().ranks
    for device in settings.session().devices:
        if device.kind == "remote":
            continue
        free, total = device.memory()
        found.append({"name": device.name, "kind": device.kind, "model": device.model, "free": free, "total": total})
    return found if ranks is None else sum(ranks.gathered(found, "gb.device_info"), [])


def topology() -> Any:
    """The links between the devices of the session, measured now by copies of 128 MiB on each device.

    Logical devices of one GPU count as devices. Of a simulated host they are the links that it has.

    Returns
    -------
    balance.Topology
        Bandwidth (bytes a second) and latency (seconds) from each device (row) to each other one.

    Raises
    ------
    NotImplementedException
        If the session has several ranks.
    """
    if settings.session().ranks is not None:
        raise errors.NotImplementedException("links between ranks aren't measured yet")
    if settings.session().simulated is not None:
        return settings.session().simulated
    links = measured(settings.session().devices)
    names = ", ".join(device.name for device in settings.session().devices)
    best = links.bandwidth.max(0), links.bandwidth.max(1)  # of all links of a device together no more is known
    connected = imported("gbgpu.balance.topology").made
    return connected(names, links.bandwidth, links.latency, *best, simulated=False)


def limits(sizes: Sequence[int] = ()) -> list[Limits]:
    """What the memory of each device gives at most, measured now: copies, random gathers, starts of work.

    All devices work at the same time. A few seconds; on a GPU it takes 2 GiB of memory.

    Parameters
    ----------
    sizes : sequence of int, optional
        Bytes of the arrays that are gathered from. By default one that fits into a cache, and one that does not.

    Returns
    -------
    list of Limits
        `copy`, `gather`, `start` and `wait` of each device.

    Raises
    ------
    NotImplementedException
        If the session has several ranks.
    """
    if settings.session().ranks is not None:
        raise errors.NotImplementedException("limits of several ranks aren't measured yet. Hint: ranks=False")
    return reached(settings.session().device_set, sizes)


def block_sets(matrix: Matrix | TransposedMatrix) -> BlockSets:
    """What each row block of a matrix reads and writes, and what of that other devices have.

    It is counted now, where the blocks lie.

    Parameters
    ----------
    matrix : Matrix or TransposedMatrix
        The matrix of the product.

    Returns
    -------
    BlockSets
        Edge cut, balance, and bytes of a round.

    Raises
    ------
    TypeError
        If `matrix` is no Matrix.
    """
    turned = isinstance(matrix, TransposedMatrix)
    if not turned and not isinstance(matrix, Matrix):
        raise TypeError(errors.message("a Matrix, or A.T", type(matrix).__name__))
    stored = matrix.T if turned else matrix
    return stored._session.block_sets(stored, turned)


def estimate_memory(
    nrows: int, ncols: int, nvals: int, dtype: Any = "FP64", *, iso: bool = False, replica: bool = False
) -> Memory:
    """The bytes that a Matrix of distinct entries needs.

    The bytes are those of the GPU that needs most, or of the process if the devices of the session are CPU devices.

    Parameters
    ----------
    nrows, ncols, nvals : int
        The shape and the number of entries.
    dtype : dtype
        The type of the values.
    iso : bool
        Whether all entries have one value.
    replica : bool
        Whether the first of several GPUs has a copy of all, as it does for loops of little work (docs/devices.md).

    Returns
    -------
    Memory
        `held`: bytes of the matrix. `peak`: bytes while `from_coo` makes it from arrays on the device, beyond these
        arrays.

    Raises
    ------
    InvalidValue
        If a size is negative.

    Notes
    -----
    Not counted:

    - a second matrix like it, if a product needs the transpose of an unsymmetric matrix;
    - 4 bytes an entry, if products with a vector keep columns in another order on GPUs;
    - what a partition that reorders rows takes once for a size.
    """
    if min(nrows, ncols, nvals) < 0:
        raise errors.InvalidValue(errors.message("sizes from 0 on", (nrows, ncols, nvals)))
    return of_matrix(settings.session(), nrows, ncols, nvals, dtypes.lookup_dtype(dtype), iso, replica)


def synchronize() -> None:
    """Wait until every device has finished all work."""
    for device in settings.session().devices:
        device.synchronize()


def timeit(call: Callable[[], object], seconds: float = 1.0) -> Any:
    """Time a call, and print one line: median, spread, first call, kernels, devices.

    The call is repeated until it is warm (docs/benchmarking.md): kernels are compiled and loops captured. Then it is
    timed. Each timed call ends when all devices have finished. In a session of several ranks every rank calls this, and
    the first one prints.

    Parameters
    ----------
    call : callable
        Called without arguments.
    seconds : float
        About how long all timed calls take together. There are 5 to 10,000. The warm-up, of 20 seconds at most, comes
        on top.

    Returns
    -------
    timing.Timing
        `seconds`, the median; `spread`, the interquartile range; `first`, the first call: all in seconds. `calls` and
        `warm_calls`: timed calls, and those before. `compiled`: False if CPU kernels were interpreted. `settled`: False
        if kernels or loops were still compiled or captured meanwhile. `devices`: their names.

    Raises
    ------
    TypeError
        If `call` can't be called.
    ValueError
        If `seconds` is not above 0, or is infinite.

    Examples
    --------
        gb.timeit(lambda: algos.bfs(A, 0))
    """
    return imported("gbgpu.timing").timeit(call, seconds)


def compile_ahead(program: Callable[[], object], arch: str | None = None) -> int:
    """Compile the kernels that a program needs into the on-disk cache, where other processes find them.

    For a GPU the program runs on CPU devices as plain Python, which is slow, and is planned as on a GPU: give it small
    objects of the types it is for. Without a GPU and `arch` CPU kernels are compiled, and the program runs as usual.

    Parameters
    ----------
    program : callable
        Called without arguments, in a session of its own.
    arch : str, optional
        The GPU's architecture, such as "sm_80" or "sm_90". By default that of the first GPU here.

    Returns
    -------
    int
        The number of kernels.

    Raises
    ------
    DeviceError
        If NVRTC is missing for a GPU.
    InvalidValue
        If NVRTC does not know `arch`.
    """
    ahead, cuda = imported("gbgpu.kernels.ahead"), imported("gbgpu.device.cuda")
    if arch is None and not cuda.available():
        count = compiling.kernels
        with ahead.compiled(), ahead.anew(), ahead.anew_in_calls(), ahead.anew_in_loops():
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
    """The plan of a statement, an expression or a loop, as text.

    Without an argument, `with gb.explain() as text: ...` plans every statement of this thread, and runs none. Reading
    what such a statement would have written raises InvalidValue.

    Planning builds, counts and reads nothing. Where a run would look first, the plan assumes the ordinary case. A
    frontier has the mean number of edges a vertex. A transpose that is not there has a row without entries if the
    matrix has one. What a statement would leave, for those inside it or after it, is estimated from the sizes of its
    operands.

    Parameters
    ----------
    what : Statement, Expression, Loop or Fixpoint, optional
        A statement that ran; an expression, which is planned and not run; or a loop that ran.

    Returns
    -------
    str or context manager
        The plan. Of a loop: what ran it, and the plans that its statements took last.

    Raises
    ------
    TypeError
        If `what` is something else.

    Examples
    --------
        with gb.explain() as text:
            w << plus_times(A @ v)
        print(text)
    """
    if what is None:
        return settings.session().planning(Plans())
    if isinstance(what, Statement):
        return PlanText(f"{what!r}\n{what.plan}")
    if isinstance(what, Loop | Fixpoint):
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
    """Import `gb.core` and `gb.sparse` when they are asked for."""
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
    "fixpoint",
    "indexunary",
    "init",
    "io",
    "limits",
    "loop",
    "monoid",
    "op",
    "partition",
    "rank",
    "program",
    "replace",
    "select",
    "semiring",
    "settings",
    "sparse",
    "ss",
    "synchronize",
    "timeit",
    "topology",
    "trace",
    "unary",
]


def __dir__() -> list[str]:
    return sorted(__all__)
