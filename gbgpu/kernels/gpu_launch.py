"""How kernels of GPUs are launched: grids from sizes that the host knows, and what kernels take beside the arguments of
their kind (lanes a row, queues, partial sums: gpu_functions.py).

A launcher takes exactly the arguments of kinds.py, by position. Counts stay on the device: a kernel over a list reads
its length there.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, Protocol

import numpy as np

from .. import settings
from ..device.rows import cut
from ..semiring._types import BOOL
from .gpu_source import thunk_type
from .gpu_streams import LONG
from .gpu_tuning import TUNING
from .interface import MASKED, TRACE, XFULL, XLIST, Deferred, Spec, reads
from .kinds import KINDS

BLOCK = 256  # threads, as src/ assumes
HUB, FEW = 1024, 1 << 16  # push, as in src/push.cu: of more than FEW vertices those of HUB entries are the whole grid's
STREAM = 1024  # threads of a block of pull_stream: few blocks, so that few tables of hubs are filled
TABLE, DOT = 8192, 512  # mxm_dot_heavy: places of the table, as in src/mxm_dot.cu, and threads
MEETING = 64  # relax: words of where blocks meet
OWNERS = 16  # pull_far, as in src/, and the words of what it is told of them
FAR = 3 + OWNERS + 1 + OWNERS
_FAR = Struct(f"{FAR}q")
WAIT = ("apply", "select", "select_list", "ewise", "fold")  # kinds whose numbers may be known only when they run
ENTRIES = ("matrix_select", "matrix_apply", "matrix_scale")  # kinds that take entries of matrices, not rows

Launch = Callable[..., None]


class Scratch(Protocol):
    """Whoever keeps the zeroed words that kernels count in."""

    def scratch(self, purpose: str, device: Any, words: int) -> Any: ...


def _run(device: Any, module: Any, name: str) -> Callable[..., None]:
    function, launch, most = module(name), device.launch, device.processors * TUNING.blocks

    def run(blocks: int, args: tuple, listed: bool = False) -> None:
        """`listed`: the work is that of a list, which may be short, whatever room it has."""
        launch(function, min(max(blocks, 1), device.thin if listed and device.thin else most), BLOCK, args)

    return run


def _scalars(kind: str, spec: Spec) -> Callable[[tuple], tuple]:
    """Brings the scalars among the arguments to the kernel's types: int64, and the operator's for thunk and start. At
    the end come the addresses of those that wait on the device, 0 for others: a kernel has one layout for all calls."""
    types = scalar_types(kind, spec)
    table = [(i, cast.type if hasattr(cast, "type") else cast or (lambda value: 0)) for i, cast in types]
    waiting = [(i, dtype) for i, dtype in types if dtype is not int] if kind in WAIT else []

    def scalars(args: tuple) -> tuple:
        values = list(args)
        late = [_address(values, i, dtype) for i, dtype in waiting]
        for i, cast in table:
            values[i] = cast(values[i])
        return (*values, *late)

    return scalars


def _address(values: list[Any], i: int, dtype: Any) -> Any:
    """Where a number waits, which a 0 then stands for; 0 if it is known. `dtype` None: the kernel does not read it."""
    number = values[i]
    if type(number) is not Deferred:
        return 0
    values[i] = 0
    if dtype is None:
        return 0
    if number.array.dtype != dtype:
        raise TypeError(f"a number of {number.array.dtype} in place of {dtype}")
    return number.array


def scalar_types(kind: str, spec: Spec) -> list[tuple[int, Any]]:
    """(place, type) of the scalars among the arguments; None for one that the kernel does not read."""
    return [(i, _scalar(each.type, spec)) for i, each in enumerate(KINDS[kind].arguments) if not each.array]


def _scalar(type: str, spec: Spec) -> Any:
    if type == "i64":
        return int
    if type == "THUNK":
        dtype = thunk_type(spec)
    elif type == "T_OUT":
        dtype = spec.out or getattr(spec.op, "dtype", None)
    else:
        dtype = BOOL if spec.op is None else spec.op.dtypes[type == "DEFAULT_B"]
    return getattr(dtype, "np_type", None)


def _size(kind: str) -> Callable[[tuple], int]:
    """How many threads a call of a kind can use, from lengths that the host knows."""
    names = KINDS[kind].names
    lists = [i for i, name in enumerate(names) if name in ("slots", "tslots", "touched")]
    if "n" not in names:
        return lambda args: args[lists[0]].size
    n = names.index("n")
    if not lists:
        return lambda args: (args[n] + 63) & ~63
    flags = names.index("flags")
    return lambda args: args[lists[0]].size if args[flags] & XLIST else args[n]


def _plain(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """One thread an element. Nothing is launched for nothing."""
    run, scalars, size = _run(device, module, kind), _scalars(kind, spec), _size(kind)
    names = KINDS[kind].names
    lists = bool({"slots", "tslots", "touched"} & set(names))
    flags = names.index("flags") if lists and "n" in names else None

    def launch(*args: Any) -> None:
        if need := size(args):
            run((need + BLOCK - 1) // BLOCK, scalars(args), lists and (flags is None or bool(args[flags] & XLIST)))

    return launch


def _matrix(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """A warp a row, or some entries. The number of blocks goes with `starts`."""
    run, scalars, names = _run(device, module, kind), _scalars(kind, spec), KINDS[kind].names
    starts = names.index("starts") if "starts" in names else None
    entries = names.index("cols") if kind in ENTRIES else None

    def launch(*args: Any) -> None:
        need = args[0] * 32 if entries is None else args[entries].size
        extra = () if starts is None else (args[starts].size - 1,)
        if need:
            run((need + BLOCK - 1) // BLOCK, scalars(args) + extra)

    return launch


def lanes(entries: int, rows: int) -> int:
    """Lanes that take a row: an eighth of the average length at most, as most rows are shorter, or masked out."""
    return 1 << min(5, max(0, (entries // max(rows, 1)).bit_length() - 4))


def _pull(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    run, run_heavy = _run(device, module, "pull"), _run(device, module, "pull_heavy")
    run_short = {plain: _run(device, module, f"pull_short{'_plain' * plain}") for plain in (False, True)}
    scalars = _scalars(kind, spec)
    cols, starts, heavy, flags = (KINDS[kind].index(name) for name in ("cols", "starts", "heavy", "flags"))

    def launch(*args: Any, first: bool = False, fixed: bool = False, short: bool = False) -> None:
        """`first`: the first entry of a row mostly ends it. `fixed`: the order of a sum depends on its row alone.
        `short`: all rows have few entries."""
        values, heavies = scalars(args), args[heavy].size
        n, p = values[0], args[starts].size - 1
        if short:
            plain = args[flags] & (XFULL | MASKED | TRACE) == XFULL
            return run_short[plain]((n // 2 + BLOCK - 1) // BLOCK, (*values, p))
        alone = first and n >= TUNING.filled * device.processors
        width = 1 if alone else 8 if fixed else lanes(args[cols].size, n)
        run((n * width + BLOCK - 1) // BLOCK, (*values, p, width, LONG if heavies else 1 << 62))
        if heavies:
            run_heavy(heavies, (*values, p, LONG, heavies))

    return launch


def _pull_far(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    run, scalars = _run(device, module, kind), _scalars(kind, spec)
    starts, xvals = (KINDS[kind].index(name) for name in ("starts", "xvals"))

    def launch(*args: Any, far: Any) -> None:
        """`far`: whose the slots are, and where their values."""
        values, told = scalars(args), [far.lo, far.n, args[xvals].data.ptr, *far.first]
        told += [0] * (FAR - len(told))
        for b, others in far.at:
            told[b - OWNERS] = others.data.ptr
        run((values[0] // 2 + BLOCK - 1) // BLOCK, (*values, args[starts].size - 1, _FAR.pack(*told)))

    return launch


def _pull_stream(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """x into the order of use, if there is one; as many blocks as the multiprocessors hold, each with the table of
    hubs; then the rows that tiles share."""
    function, join, ordering = module("pull_stream"), module("pull_stream_join"), module("pull_stream_order")
    held, partial, reads_x = spec.b.np_type.itemsize, spec.partial, reads(spec)[1]

    def ordered(order: Any, entries: int, xvals: Any, xstride: int, xwords: Any) -> tuple[Any, Any, bool]:
        """(values, presence words, whether absent values are marked as such instead) in the order of use."""
        used = xvals.size if order is None else order.size
        floats = partial and reads_x and spec.b.kind == "f" and xstride
        packed = bool(floats and (order is not None or entries > TUNING.packed * used))
        if not packed and (order is None or not (partial or (reads_x and xstride))):
            return xvals, xwords, packed
        values = device.empty(used, xvals.dtype) if reads_x and xstride else xvals
        words = device.empty((used + 63) // 64, np.int64) if partial and not packed else xwords
        grid = min((used + BLOCK - 1) // BLOCK, device.processors * TUNING.blocks)
        args = 0 if order is None else order, used, xvals, xstride, xwords, values, words, int(packed)
        device.launch(ordering, grid, BLOCK, args)
        return values, words, packed

    def launch(*args: Any) -> None:
        n, streams, _, avals, astride, xvals, xstride, xwords, _, flags, *_, out, bits, count, stats = args
        if partial:
            device.clear(bits)
        entries = sum(stream.codes.size for stream in streams)
        if flags & TRACE:
            stats[:2] += device.put(np.array([entries, n]))
        order, seen = streams[0].order, 0
        xvals, xwords, packed = ordered(order, entries, xvals, int(xstride), xwords)
        for stream, values in zip(streams, avals, strict=True):
            hubs = 0 if order is None or stream.low else min(order.size, settings.hub_bytes // held)
            tiles = stream.ranks.size - 1
            shared = -(-hubs * held // 16) * 16 if reads_x else 0
            shared += 0 if packed or not partial else -(-hubs // 32) * 4
            sums = kernels.scratch("stream", device, 4 * tiles)  # a sum takes 16 bytes at most
            work = stream.begins, 0 if stream.rows is None else stream.rows, stream.ranks, sums, sums[2 * tiles :]
            operands = stream.codes.size, stream.codes, values, int(astride), xvals, int(xstride), xwords
            # small blocks fill a multiprocessor better where they share no table, and few go to more of them
            threads = STREAM if hubs else BLOCK if tiles * 32 > device.processors * BLOCK else BLOCK // 4
            grid = min(device.fit(function, threads, shared), -(-tiles * 32 // threads))
            result = seen, hubs, out, bits, count, tiles, int(packed)
            device.launch(function, grid, threads, (*operands, *work, *result), shared)
            ending = *work, seen, out, stream.words, bits, bits.size, count, int(stream.present), tiles
            grid = min(-(-max(tiles, bits.size) // BLOCK), device.processors * TUNING.blocks)
            device.launch(join, grid, BLOCK, ending)
            seen = bits if partial else stream.words

    return launch


def _pull_slices(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """x into the order of use; the slices of its segments, those of the rest, and the rows from the sums of both."""
    near, far, join = module("pull_slices"), module("pull_slices_rest"), module("pull_slices_join")
    held, summed = spec.b.np_type.itemsize, spec.op.monoid.dtype.np_type

    def launch(*args: Any) -> None:
        n, slices, entries, avals, astride, xvals, _, _, _, flags, *_, out, bits, count, stats = args
        if flags & TRACE:
            stats[:2] += device.put(np.array([int(entries.size), n]))
        x = device.at(xvals, slices.order)
        words = slices.lengths.size * np.dtype(summed).itemsize // 8  # whole ones: there are 32 of each slice
        sums = kernels.scratch("slices", device, words).view(summed)
        (near_values, far_values), stride, split = avals, int(astride), slices.split
        shared = slices.width * held
        shape = x.size, slices.width, slices.segments, slices.parts
        given = slices.offs, slices.lengths, slices.near, near_values, stride, slices.near_cuts, sums
        device.launch(near, min(device.fit(near, STREAM, shared), slices.parts), STREAM, (x, *shape, *given), shared)
        rest = slices.offs[split:], slices.lengths[32 * split :], slices.far, far_values, stride, slices.far_cuts
        parts = slices.far_cuts.size - 1
        device.launch(far, parts, BLOCK, (x, parts, *rest, sums[32 * split :]))
        ending = slices.ptr, slices.pieces, sums, out, slices.words, bits, bits.size, count, int(slices.present)
        device.launch(join, min(-(-n // BLOCK), device.processors * TUNING.blocks), BLOCK, (n, *ending))

    return launch


def _push(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """hubs=False tells that no row is long, and saves the second launch."""
    run, run_hubs, scalars, size = (
        _run(device, module, "push"),
        _run(device, module, "push_hubs"),
        _scalars(kind, spec),
        _size(kind),
    )
    cols, starts, flags = (KINDS[kind].index(name) for name in ("cols", "starts", "flags"))

    def launch(*args: Any, hubs: bool = True) -> None:
        entries = args[cols].size if hubs else 0
        most = min(entries // LONG, entries // HUB + FEW)
        queue = kernels.scratch("push", device, 2 + most) if most else np.uint64(0)
        values = (*scalars(args), args[starts].size - 1, queue)
        run((size(args) + BLOCK // 32 - 1) // (BLOCK // 32), values, bool(args[flags] & XLIST))
        if most:
            run_hubs(2 * most, values)

    return launch


def _reduce(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """The number of blocks, and with it the order of additions, depends on sizes only."""
    run, scalars = _run(device, module, kind), _scalars(kind, spec)
    values = KINDS[kind].index("xvals" if kind == "reduce" else "avals")
    parts = max(TUNING.partial_sums, device.processors * TUNING.blocks)  # a kernel that stays has one for each block

    def launch(*args: Any) -> None:
        most = max(args[0], args[values].size)
        blocks = min((most + 4 * BLOCK - 1) // (4 * BLOCK), TUNING.partial_sums)
        run(blocks, (*scalars(args), kernels.scratch("reduce", device, 1 + 2 * parts)))

    return launch


def _mxm(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """A thread a term, or a value of the result; each looks up whose it is."""
    run, scalars, names = _run(device, module, kind), _scalars(kind, spec), KINDS[kind].names
    kstarts, jstarts = names.index("kstarts"), names.index("jstarts")
    size = names.index({"mxm_dense": "out_vals", "mxm_expand": "out_keys"}[kind])

    def launch(*args: Any) -> None:
        total = 1 if spec.iso and kind == "mxm_dense" else max(args[size].size, 1)
        run((total + BLOCK - 1) // BLOCK, (*scalars(args), args[kstarts].size - 1, args[jstarts].size - 1, total))

    return launch


def _mxm_dot(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """A warp a row, or a thread where all are short; a block each piece of a long row."""
    light, heavy, scalars = module(kind), module("mxm_dot_heavy"), _scalars(kind, spec)
    names = KINDS[kind].names
    kstarts, jstarts, marks = (names.index(name) for name in ("kstarts", "jstarts", "marks"))
    csr = ("indptr", "cols"), ("bptr", "bcols"), ("mptr", "mcols")
    of_a, of_b, of_m = (tuple(map(names.index, pair)) for pair in csr)
    shared = TABLE * (np.dtype(spec.idx).itemsize + (4 if "x" in spec.op.multiply.program.uses else 0))

    def run(threads: int, values: tuple) -> None:
        grid = min(device.fit(light, BLOCK, 0), max(-(-threads // BLOCK), 1))  # no block waits for another one to end
        device.launch(light, grid, BLOCK, values)

    def launch(*args: Any) -> None:
        pieces = cut(device, args[of_a[0]], args[of_m[0]], LONG)
        args = *args[:marks], pieces, *args[marks + 1 :]
        values = (*scalars(args), args[kstarts].size - 1, args[jstarts].size - 1)
        n, count = values[0], pieces.size // 2
        means = [args[cols].size / max(args[ptr].size - 1, 1) for ptr, cols in (of_a, of_b, of_m)]
        if not count and max(means) <= TUNING.short:
            return run(n, (*values, LONG, 0))
        # entries meet long rows more often than short ones
        width = lanes(int((32 if count else 4) * means[1]), 1)
        run(32 * n, (*values, LONG, width))
        if count:
            queue = kernels.scratch("queue", device, 1)
            device.clear(queue)
            grid = min(device.fit(heavy, DOT, shared), count)
            device.launch(heavy, grid, DOT, (*values, count, width, queue), shared)

    return launch


def _relax(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """relax stays, with as many blocks as the GPU holds at once."""
    run, scalars = _run(device, module, kind), _scalars(kind, spec)
    function, far = module(kind), KINDS[kind].index("far")

    def launch(*args: Any) -> None:
        values = (*scalars(args), args[far].size // 2)
        if kind != "relax":
            return run((args[0] + BLOCK - 1) // BLOCK, values)
        meeting = kernels.scratch("relax", device, MEETING)
        device.clear(meeting)
        grid = min(device.fit(function, BLOCK, 0), TUNING.relaxing_blocks * device.processors)
        device.launch(function, grid, BLOCK, (*values, meeting))

    return launch


def _runs(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    run = _run(device, module, kind)
    order = KINDS[kind].index("order")

    def launch(n: int, *args: Any) -> None:
        if n:
            run((n + BLOCK - 1) // BLOCK, (int(n), *args, args[order - 1].size))

    return launch


def launcher(kernels: Scratch, device: Any, module: Any, kind: str, spec: Spec) -> Launch:
    """Starts a kernel of a loaded module, with the arguments of its kind."""
    return _SPECIAL.get(kind, _plain)(kernels, device, module, kind, spec)


_SPECIAL: dict[str, Callable[..., Launch]] = {
    **dict.fromkeys((*ENTRIES, "merge_count", "merge", "move_rows"), _matrix),
    **dict.fromkeys(("mxm_dense", "mxm_expand"), _mxm),
    "mxm_dot": _mxm_dot,
    "combine_runs": _runs,
    "pull": _pull,
    "pull_stream": _pull_stream,
    "pull_slices": _pull_slices,
    "pull_far": _pull_far,
    "push": _push,
    **dict.fromkeys(("reduce", "fold"), _reduce),
    **dict.fromkeys(("relax_begin", "relax", "relax_receive", "relax_end"), _relax),
}
