"""The contract between plans and backends: what kernels are compiled for, and how their arguments are to be read.

A backend is an object with a method `get(kind, spec)`, which returns a callable that takes exactly the arguments that
kinds.py lists, and works on the buffers of one device. `Spec` holds what is compiled in (operators and types);
everything else is a run-time argument, so mask kind, complement, replace and the forms of operands never multiply the
number of instances.

Conventions
- Buffers are one-dimensional arrays of the device's array module (NumPy or CuPy). An argument that a call does not
need gets a dummy array.
- `n` rows of a block; row r of the block has presence bit r % 64 of words[r // 64]; words are int64; bits at and after
n are zero.
- A list is (count, slots, vals): the first count[0] entries of slots (int32 local rows, no duplicates, any order) and
of vals.
- Every `vals` comes with a stride: 1, or 0 for an iso operand (one value for all entries): entry e has value vals[e *
stride].
- Counts (`count`, `*_count`) are int64[1] and are added to: the caller zeroes them. Output lists start at entry 0.
- `cols` hold global column slots; `starts` (slots) and `bounds` (user ids), int64[p + 1], translate: the block b with
  starts[b] <= slot < starts[b + 1] has user id = bounds[b] + slot - starts[b]. Where rows are in another order than
  their ids, `starts` has one element and the user id is bounds[slot].
- `row0` is the user id of the block's row 0; if negative, row r has the user id users[row0 + 2**62 + r] instead.
- Values are cast from the stored type to the operator's input type when loaded (semiring.cast_program), and to the
stored type when written.
- `stats` is int64[4]: [0] += matrix entries looked at, [1] += rows (pull) or frontier vertices (push) looked at, only
if flags & TRACE.
- `heavy` is the backend's own, as its layout gives it: the long rows of the block, where it spreads these.
- Scalars are NumPy scalars of the type the spec says. The accumulator start of a monoid is `monoid.start`: exactly
neutral.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ..semiring._types import BOOL

MASKED = 1  # a mask is present: `mwords` has its bits
COMPLEMENT = 2  # the mask lets the zero bits through
XFULL = 4  # every row of x is present: xwords is a dummy
TRACE = 8  # count into stats
XLIST = 16  # x is a list
TFULL = 32  # every row of T is present
REPLACE = 64  # entries that the mask does not let through are deleted
REGION = 128  # only rows with a bit in `rwords` are assigned to
CFULL = 256  # C is full (and stays full): cwords is a dummy
AFULL = 512  # every row of a is present
BFULL = 1024  # every row of b is present
OUTFULL = 2048  # the result is full: no words are written
DENSE = 8192  # push: `touched` has no room, and is not filled; `touched_count` counts the slots all the same
TALLY = 16384  # frontier_edges: sums on the way as well
PAIRED = 32768  # reduce: x is present in row r where word 2 * r of xwords is not 0
VALUED = 4096  # a value mask: the entry's value must be true as well
WINDOWED = 65536  # relax: vertices beyond a limit wait for a later window
GROWS = 1 << 17  # relax: windows of few vertices may be followed by wider ones
RENAMED, ADJOINING = 1, 2  # move_rows: columns get other ids; each row of the result begins where the last one ends
A_ONLY, B_ONLY, BOTH = 1, 2, 4  # merge: which entries of two rows survive


class Spec(NamedTuple):
    """What a kernel instance is compiled for. Fields that a kind does not use stay None; operators are typed ones
    (hashed by identity)."""

    op: Any = None  # TypedSemiring, TypedMonoid, typed unary, binary, index-unary or select operator, or None
    a: Any = None  # DataType of the stored values of the first operand (the matrix in a product, C in a write)
    b: Any = None  # DataType of the stored values of the second operand (the vector in a product, T in a write)
    out: Any = None  # DataType of the values written
    ptr: str = "int32"  # type of row offsets
    idx: str = "int32"  # type of column slots
    flip: bool = False  # products: x is the left operand (x @ A); otherwise the matrix is
    # the result has one value, written (always) to out_vals[0], in push to acc_vals[0]; drain and combine then
    # leave values alone
    iso: bool = False
    hashed: bool = False  # mxm: `marks` is a hash table, for rows far shorter than the matrix is wide
    bound: str = ""  # apply: where the thunk of a binary operator stands, "left" or "right"
    # what an entry of one operand alone becomes: "defaults": op(a, bdefault) or op(adefault, b); "union": itself, cast
    # to out (of merge that is always so); "": nothing
    lone: str = ""
    partial: bool = False  # pull_stream: x is not full; relax: there is a mask; drain: values stay where they are
    worker: int = 32  # relax, GPUs: threads that extend vertices together: 1, 32 or 256
    spread: bool = False  # relax: other devices own columns of A
    fixed: bool = False  # pull, CPU devices: sums are rounded term by term, in the order of a row, compiled or not
    # ewise: typed binary operator of the result so far and a third operand (which is its left one if flip)
    then: Any = None
    c: Any = None  # DataType of the third operand's values
    fold: Any = None  # fold: TypedMonoid that sums what the rows give


class Deferred(NamedTuple):
    """A scalar argument that is not known when a call is recorded: it will lie in an array of one element."""

    array: Any

    def __array__(self, *arguments: Any, **keywords: Any) -> Any:
        raise TypeError("a number that only a run of the loop will know")  # where a kernel needs it before


def ends_soon(monoid: Any) -> bool:
    """Whether a sum mostly ends before its last term: other types than BOOL rarely meet their terminal value."""
    return monoid.is_any or (monoid.terminal is not None and monoid.dtype is BOOL)


def reads(spec: Spec) -> tuple[bool, bool]:
    """Whether the multiply of a product reads values of the matrix, and of the vector."""
    uses = spec.op.multiply.program.uses
    return ("y" if spec.flip else "x") in uses, ("x" if spec.flip else "y") in uses


def sums_whole_rows(spec: Spec) -> bool:
    """Whether a product needs all entries of a row, and nothing but their values."""
    return not spec.iso and not spec.op.monoid.is_any and not spec.op.multiply.program.uses & {"i", "j", "k"}


# What `progress` of a relaxation begins with.
PROGRESS = ("near", "far", "windows", "extended", "edges", "improved", "ended")
UNDER_WAY, CONVERGED, WIDE, CROWDED = range(4)  # ended: why the last call returned; CROWDED: a list was full


class Costs(NamedTuple):
    """Seconds of the parts of a step on one device, for the planner's predictions. Measured, and rough: they choose,
    they do not promise."""

    push_edge: float  # an entry scattered into a workspace
    push_first: float  # the same where any first arrival does
    pull_edge: float  # an entry gathered
    row: float  # a row probed, or an element of a dense step
    byte: float  # a byte moved between devices
    step: float  # starting a kernel
    turn: float = 0.0  # an entry of a matrix that is transposed; 0: what that takes is not counted
    link: float = 0.0  # a byte from one GPU to another


class Relaxing(NamedTuple):
    """How a backend relaxes to a fixpoint without rounds, and where that takes less time; as measured."""

    most: int  # what one call of relax does: its argument; 0: there is no such kernel
    alone: int  # devices up to which one of them takes less time without rounds than all in rounds, whatever the graph
    windows: tuple[float, float | None]  # mean weights that one is wide, where weights differ and where not; None: none
    crowd: float  # the share of all vertices near at once from which on rounds take less time; 0: none
    itemsize: int  # bytes of the narrowest values
    meeting: int  # vertices that are extended in the time in which devices tell one another what they found
    cuts: bool = False  # whether relax drops values beyond the cutoff, limits[3]
    by_degree: bool = False  # whether `windows` are divided by the mean degree, as in delta-stepping


def counts_hits(spec: Spec) -> bool:
    """Whether an entry of a product of rows and columns (mxm_dot) is the number of the columns that are marked."""
    return spec.op.name == "plus_pair" and spec.op.monoid.dtype.kind != "b" and not spec.hashed and not spec.iso


def mxm_room(entries: int, width: int, hashed: bool) -> int:
    """Elements (int32; int8 where hits are counted; int64 if hashed) of zeroed `marks`: one a column slot, or three a
    place of a table at most half full with the `entries` of the longest row."""
    return 3 << max(entries, 1).bit_length() + 1 if hashed else width


class Layout(NamedTuple):
    """How a backend pulls from a block: the kernel and its arguments for the matrix. `kind` and `spec` None: those of
    the product."""

    kernel: Any  # where it is no instance
    kind: str
    spec: Spec | None
    rows: tuple[Any, Any, Any, int]  # indptr, cols, avals, astride
    heavy: Any
    options: dict[str, Any]


class Kernels(Protocol):
    """A backend: LLVM on CPU devices (cpu.py), CUDA through CuPy (gpu.py), or one that only counts (null.py). How a
    block is laid out for a product is its own matter."""

    kind: str  # of the devices: "cpu", "cuda", or "mixed"
    weights: Mapping[str, float]  # by the kind of a device: what part of all rows it gets; empty: as much as others
    costs: Costs
    neutral: bool  # whether values of workspaces have to be the monoid's `start` where nothing arrived yet
    relaxing: Relaxing
    atomic: bool  # whether a call of a kernel is compiled code alone, in which Python handles no signal
    whole: int  # rows plus entries of objects below which one device takes less time than several
    mxm: tuple[str, ...]  # how it can multiply matrices: "dot", "rows", "hash", "dense", "sort"

    def get(self, kind: str, spec: Spec) -> Any:
        """The kernel instance as a callable; compiled or loaded from the cache at first use."""
        ...

    def ahead(self, steps: Iterable[Any]) -> None:
        """Begin to compile what the steps of a plan will ask for, if that can go side by side."""
        ...

    def uncut(self, kernel: Any) -> bool:
        """Whether a call that has begun is carried out, whatever signals come."""
        ...

    def pull_layout(self, device: Any, block: Any, spec: Spec, x: Any, width: int, masked: bool, fixed: bool) -> Layout:
        """How to pull from a block. `x`: vals, stride, words of the vector over `width` slots, and where these are (see
        `by_use`); `fixed`: the order of a sum may depend on its row alone."""
        ...

    def reaches(self, block: Any, spec: Spec) -> bool:
        """Whether a pull without a mask from a full vector may read the little that others have where it lies."""
        ...

    def by_use(self, block: Any, spec: Spec, masked: bool) -> Any:
        """The columns in the order in which a pull surely reads x, which may then lie as `x.order` says; or None."""
        ...

    def push_options(self, block: Any) -> dict[str, Any]:
        """Keywords for the push kernel."""
        ...

    def lists(self, device: Any, n: int, spec: Spec) -> tuple[Any, Any, Any, Any]:
        """`near`, `far`, `queued` and `progress` of a relaxation of n vertices."""
        ...

    def marks(self, device: Any, block: Any, entries: int, width: int, hashed: bool, plain: bool = False) -> Any:
        """The `marks` of products of matrices whose left one is `block`; `entries` of the longest row. `plain`: nobody
        asks where a column lies."""
        ...
