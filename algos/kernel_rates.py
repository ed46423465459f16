"""What the kernels of statements reach, beside what the memory gives at most: `gbgpu bench kernels`.

Each row is one statement, and the steps of its kernels. `ms` is the median time of whole statements, the devices
synchronised, kernels compiled. They run on an RMAT graph of 2^scale vertices (edge factor 16, directed); weights and
vectors are FP32. In the table `nnz` are its entries, `n` its vertices, `e` the entries that a statement looks at.

Bytes are those that a statement must move at least, each array once, with ids of 4 bytes. An index of rows has n + 1
offsets of 4 bytes. Elements of random positions count as gathers, whether they are read or added to.

| kernel | entries | bytes | gathers |
|---|---|---|---|
| pull, full vector | nnz | 8 nnz: ids, weights; 12 n: offsets, x, y | nnz: x |
| pull, pattern | nnz | 4 nnz: ids; 12 n | nnz: x |
| pull, masked | e, of half of the rows | 8 e; 8 n: offsets, x; 4 each of the rows; n / 8: mask | e: x |
| push, list | e, of n / 64 vertices | 8 e; 16 each of the vertices: id, value, two offsets | e: the result |
| push, bitmap | e, of n / 2 vertices | 8 e; 4 n: x; 4 n: offsets; 4 n: the result | e: the result |
| elementwise, apply | nnz, of vectors of nnz elements | 12 nnz (4 for each operand and the result); apply: 8 nnz | |
| assign, masked | nnz / 2 | 8 each: read, written; nnz / 8: mask | |
| reduce | nnz | 4 nnz | |
| transpose | nnz | 16 nnz: ids, weights, read and written; 8 n | nnz: the result |
| build | nnz, in random order | 28 nnz: row and column (8 each), weight; 8 written | nnz: the result |
| rows | e, of n / 2 rows, whose numbers the host gives | 16 e: read and written; 12 each of the rows | |
| mxm | e: terms, products of two entries | 8 e: each row of B once for each use | |
| mxm, masked | e: terms | 8 e | |
| relax | nnz: each entry once, at least | 8 nnz; 4 n: distances; 4 n: offsets | nnz: distances |

Terms grow faster than entries: products of matrices are those of a graph of scale (2 * scale + 4) / 3.

`limit` is the time of these bytes at the rate of a copy, or that of these gathers at the rate of random gathers of
FP32 from an array as large as the one that is gathered from: the longer of the two, and which one it is. Both rates are
of all devices together (`gb.limits`). A row can exceed its limit where caches serve what is counted: graphs have hubs,
whose values stay in the cache, and rows of B in products of matrices are read again and again.

Before anything is timed, each statement is checked against SciPy or NumPy, on the same devices, at scale CHECKED.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log2
from typing import Any, NamedTuple

import numpy as np

import gbgpu as gb
from algos.measurements import Table, machine
from algos.verify import VerificationError
from gbgpu import binary, monoid, unary
from gbgpu.interrupts import imported
from gbgpu.semiring import min_plus, plus_second, plus_times
from gbgpu.timing import timed

FACTOR = 16  # edges a vertex
CHECKED = 8
LONGEST = 1 / 32  # seconds of a statement that gathers for all entries, at the default scale
MOST = 24  # scale: NumPy makes its vectors in seconds
FRACTION = 4  # of the free memory that the matrix may take
SEED = 1


class Form(NamedTuple):
    """A statement: its name and steps of which one at least must run; entries, bytes, gathers and bytes of the array
    that is gathered from; `call(*fresh())`, which gives the result; and `expected()`, by SciPy or NumPy."""

    name: str
    steps: tuple[str, ...]
    entries: int
    bytes: float
    gathers: int
    array: int
    call: Callable[..., Any]
    expected: Callable[[], Any]
    fresh: Callable[[], tuple] = tuple


@dataclass(frozen=True)
class Result:
    """A measured statement: which steps it had, seconds of one, and seconds by the limits of copies and gathers."""

    form: Form
    steps: str
    seconds: float
    copies: float
    gathers: float

    @property
    def limit(self) -> float:
        """Seconds that the memory needs at least."""
        return max(self.copies, self.gathers)


def default_scale(limits: list[Any]) -> int:
    """The scale at which gathers for all entries take about LONGEST seconds, if the matrix has room."""
    rate = sum(found.gather[4, _far(found)] for found in limits)
    room = min(device["free"] for device in gb.device_info()) / FRACTION
    scale = max(int(log2(LONGEST * rate / FACTOR)), CHECKED)
    while scale > CHECKED and gb.estimate_memory(1 << scale, 1 << scale, FACTOR << scale, "FP32").peak > room:
        scale -= 1
    return min(scale, MOST)


def _far(found: Any) -> int:
    """Bytes of the largest array that was gathered from."""
    return int(max(size for _, size in found.gather))


def graph(scale: int, name: str) -> gb.Matrix:
    """The graph that statements run on."""
    return gb.io.rmat(scale, FACTOR, seed=SEED, weights=(1, 255), dtype="FP32", symmetric=False, name=name)


def forms(scale: int) -> Iterator[Form]:
    """The statements at a scale. Arrays of NumPy and SciPy are made when `expected` is called."""
    random = np.random.default_rng(SEED)
    A = graph(scale, "A")
    n, nnz = A.nrows, A.nvals
    indptr, indices, weights = csr = A.to_csr()
    degrees = np.diff(indptr)
    x, y = gb.Vector.from_dense(random.random(n, np.float32), name="x"), gb.Vector("FP32", n, name="y")
    chosen = random.random(n) < 0.5
    rows = np.flatnonzero(chosen)
    mask = gb.Vector.from_coo(rows, True, size=n, name="mask")

    def scipys() -> Any:
        return imported("scipy.sparse").csr_array((weights, indices, indptr), shape=(n, n)).astype(np.float64)

    def product(dtype: type = float) -> np.ndarray:
        return scipys().astype(dtype) @ x.to_dense().astype(np.float64)

    def pull() -> gb.Vector:
        y << plus_times(A @ x)
        return y

    yield Form("pull, full vector", ("pull",), nnz, 8 * nnz + 12 * n, nnz, 4 * n, pull, product)

    pattern = unary.one(A).new("BOOL", name="pattern")
    yield Form("pull, pattern", ("pull",), nnz, 4 * nnz + 12 * n, nnz, 4 * n,
               lambda: plus_second(pattern @ x).new(), lambda: product(bool))  # fmt: skip
    masked = int(degrees[chosen].sum())
    moved = 8 * masked + 8 * n + 4 * len(rows) + n / 8
    yield Form("pull, masked", ("pull",), masked, moved, masked, 4 * n,
               lambda: plus_times(A @ x).new(mask=mask.S, direction="pull"),
               lambda: np.where(chosen, product(), 0.0))  # fmt: skip

    for name, count, form in (("push, list", max(n // 64, 1), "list"), ("push, bitmap", n // 2, "bitmap")):
        starts = np.sort(random.choice(np.flatnonzero(degrees), min(count, np.count_nonzero(degrees)), replace=False))
        values = random.integers(1, 9, len(starts)).astype(np.float32)
        frontier = gb.Vector.from_coo(starts, values, size=n, name="frontier")
        edges = int(degrees[starts].sum())
        moved = 8 * edges + (16 * len(starts) if form == "list" else 12 * n)

        def reached(starts: Any = starts, values: Any = values) -> np.ndarray:
            found = np.full(n, np.inf)
            lengths = degrees[starts]
            at = np.repeat(indptr[starts] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
            np.minimum.at(found, indices[at], weights[at] + np.repeat(values, lengths))
            return np.where(np.isinf(found), 0, found)

        yield Form(name, ("push",), edges, moved, edges, 4 * n,
                   lambda f=frontier: min_plus(f @ A).new(direction="push"), reached)  # fmt: skip

    u, v = (gb.Vector.from_dense(random.random(nnz, np.float32), name=name) for name in "uv")
    w = gb.Vector.from_dense(np.zeros(nnz, np.float32), name="w")
    half = random.random(nnz) < 0.5
    inside = gb.Vector.from_coo(np.flatnonzero(half), True, size=nnz, name="inside")

    def elementwise() -> gb.Vector:
        w << binary.plus(u & v)
        return w

    def applied() -> gb.Vector:
        w << unary.ainv(u)
        return w

    def assigned() -> gb.Vector:
        w(inside.S) << v
        return w

    yield Form("elementwise", ("ewise",), nnz, 12 * nnz, 0, 0, elementwise, lambda: u.to_dense() + v.to_dense())
    yield Form("apply", ("apply",), nnz, 8 * nnz, 0, 0, applied, lambda: -u.to_dense())
    some = int(half.sum())  # after apply: w is -u
    yield Form("assign, masked", ("write", "write_list"), some, 8 * some + nnz / 8, 0, 0, assigned,
               lambda: np.where(half, v.to_dense(), -u.to_dense()))  # fmt: skip
    yield Form("reduce", ("reduce",), nnz, 4 * nnz, 0, 0, lambda: u.reduce(monoid.plus).new(),
               lambda: u.to_dense().sum(dtype=np.float64))  # fmt: skip

    given = _on_device(*csr)
    yield Form("transpose", ("transpose",), nnz, 16 * nnz + 8 * n, nnz, 8 * nnz, lambda B: B.T.new(),
               lambda: scipys().T, lambda: (gb.Matrix.from_csr(*given, ncols=n, name="B"),))  # fmt: skip
    order = random.permutation(nnz)
    ids = np.repeat(np.arange(n), degrees)[order], indices[order].astype(np.int64)
    triples = _on_device(*ids, weights[order])
    yield Form("build", (), nnz, 28 * nnz, nnz, 8 * nnz,
               lambda: gb.Matrix.from_coo(*triples, nrows=n, ncols=n), scipys)  # fmt: skip
    kept = int(degrees[rows].sum())
    yield Form("rows", ("extract",), kept, 16 * kept + 12 * len(rows), 0, 0,
               lambda: A[rows, :].new(), lambda: scipys()[rows])  # fmt: skip

    root = int(degrees.argmax())
    yield Form("relax", ("relax",), nnz, 8 * nnz + 8 * n, nnz, 4 * n, lambda: _relaxed(A, root),
               lambda: _distances(scipys(), root))  # fmt: skip

    B = graph(product_scale(scale), "B")
    small = B.to_scipy_sparse().tocsr().astype(np.float64)
    terms = int(np.diff(small.indptr)[small.indices].sum())
    yield Form("mxm", ("mxm",), terms, 8 * terms, 0, 0, lambda: plus_times(B @ B).new(), lambda: small @ small)
    yield Form("mxm, masked", ("mxm",), terms, 8 * terms, 0, 0, lambda: plus_times(B @ B).new(mask=B.S),
               lambda: (small @ small).multiply(small.astype(bool)))  # fmt: skip


def product_scale(scale: int) -> int:
    """The scale of products of matrices."""
    return (2 * scale + 4) // 3


def _on_device(*arrays: Any) -> tuple:
    """Arrays of the first GPU, where there is one: what is timed does not bring them there."""
    gpu = gb.device_info()[0]["kind"] == "cuda"
    return tuple(map(imported("cupy").asarray, arrays)) if gpu else arrays


def _relaxed(A: gb.Matrix, root: int) -> gb.Vector:
    d = gb.Vector("FP32", A.nrows, name="d")
    d[root] = 0
    with gb.fixpoint(schedule="auto"):
        d(binary.min) << min_plus(d @ A)
    return d


def _distances(S: Any, root: int) -> np.ndarray:
    found = imported("scipy.sparse.csgraph").dijkstra(S, indices=root)
    return np.where(np.isinf(found), 0, found)


def verified(form: Form) -> None:
    """VerificationError unless the statement gives what SciPy or NumPy do."""
    found, right = form.call(*form.fresh()), form.expected()
    if isinstance(found, gb.Matrix):
        mine, theirs = _sorted(found.to_scipy_sparse()), _sorted(right)
        if not (np.array_equal(mine.indptr, theirs.indptr) and np.array_equal(mine.indices, theirs.indices)):
            raise VerificationError(f"{form.name}: has other entries than SciPy's result")
        ours, right = mine.data, theirs.data
    else:
        ours = found.value if isinstance(found, gb.Scalar) else found.to_dense(0)
    off = float((np.abs(ours - right) / np.maximum(np.abs(right), 1)).max(initial=0))
    if not off < 1e-4:
        raise VerificationError(f"{form.name}: differs from SciPy's or NumPy's result by {off:.1e} of it")


def _sorted(matrix: Any) -> Any:
    """CSR, with the columns of a row in their order."""
    rows = matrix.tocsr()
    rows.sort_indices()
    return rows


def measured(form: Form, limits: dict[int, list[Any]], seconds: float) -> Result:
    """A statement, timed for about so many seconds."""
    took = timed(form.call, seconds, form.fresh).seconds
    given = form.fresh()
    with gb.trace() as records:
        form.call(*given)
    spent: dict[str, float] = {}
    for record in records:
        if record.device != "host":
            name = record.direction if record.step in ("push", "pull") and record.direction else record.step
            spent[name] = spent.get(name, 0.0) + record.end - record.start
    steps = sorted(spent, key=lambda name: -spent[name])[:3]
    known = limits[form.array] if form.array else next(iter(limits.values()))
    copies = form.bytes / sum(each.copy for each in known)
    gathers = form.gathers / sum(each.gather[4, form.array] for each in known) if form.gathers else 0.0
    return Result(form, ", ".join(steps) or "(not a statement)", took, copies, gathers)


def run(scale: int, seconds: float, step: Callable[[str], None]) -> tuple[list[Any], list[Result], float]:
    """Limits, results at the scale, and the seconds of a statement on vectors of one element. `step` is told what
    begins. VerificationError for a wrong result."""
    step("checking")
    for form in forms(min(scale, CHECKED)):
        verified(form)
    limits: dict[int, list[Any]] = {}
    results = []
    for form in forms(scale):
        step(form.name)
        if form.array not in limits and (form.array or not limits):
            limits[form.array] = gb.limits([form.array] if form.array else [])
        results.append(measured(form, limits, seconds))
    u, v, w = (gb.Vector.from_dense(np.ones(1, np.float32)) for _ in range(3))
    statement = timed(lambda: w << binary.plus(u & v), seconds).seconds
    return limits[results[0].form.array], results, statement


def tables(devices: str, scale: int, found: list[Result], limits: list[Any], statement: float) -> list[Table]:
    """The limits, and the kernels beside them."""
    rows = [
        [
            result.form.name,
            result.steps,
            1e3 * result.seconds,
            result.form.entries,
            result.form.entries / result.seconds / 1e9,
            result.form.bytes / result.seconds / 1e9,
            1e3 * result.limit,
            "gathers" if result.gathers > result.copies else "copies",
            f"{100 * result.limit / result.seconds:.0f}%",
        ]
        for result in found
    ]
    columns = ["kernel", "longest steps", "ms", "entries", "G entries/s", "GB/s", "limit, ms", "limited by", "reached"]
    text = f"A statement on vectors of one element takes {1e6 * statement:.1f} us."
    return [limits_table(limits), Table(columns, rows, f"{devices}, scale {scale}", text)]


def limits_table(limits: list[Any]) -> Table:
    """What `gb.limits` found: a row for each device, and the sum."""
    kinds = list(dict.fromkeys(kind for each in limits for kind in each.gather))
    columns = ["device", "copy, GB/s", *(f"FP{8 * size} gathers of {_size(n)}, G/s" for size, n in kinds)]
    rows = [
        [each.device, each.copy / 1e9, *(each.gather[kind] / 1e9 if kind in each.gather else "" for kind in kinds),
         1e6 * each.start, 1e6 * each.wait]
        for each in limits
    ]  # fmt: skip
    if len(limits) > 1:
        sums = (sum(each.gather.get(kind, 0.0) for each in limits) / 1e9 for kind in kinds)
        rows.append(["all together", sum(each.copy for each in limits) / 1e9, *sums])
    note = "Best of several runs, all devices at work. A copy's bytes count twice, read and written."
    return Table([*columns, "start of work, us", "start and wait, us"], rows, "Measured limits", note)


def _size(n: int) -> str:
    return next(f"{n / unit:.3g} {name}" for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1, "B")) if n >= unit)


def page(command: str, parts: list[Table]) -> dict[str, Any]:
    """What is kept of a run."""
    title, text = "Kernels beside the limits of memory", (__doc__ or "").partition("\n\n")[2].strip()
    return {"title": title, "command": command, **machine(), "text": text, "parts": parts}
