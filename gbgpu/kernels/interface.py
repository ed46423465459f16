"""The contract between plans and backends: which kernels exist, what each is compiled for, what each is called with.

A backend is an object with one method, `get(kind, spec)`, which returns a callable that takes exactly the arguments
listed here and
works on the buffers of one device. `Spec` holds what is compiled in (operators and types); everything else is a run-
time argument, so
mask kind, complement, replace and the forms of operands never multiply the number of instances.

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
from functools import cache
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


class Late(NamedTuple):
    """A number among the arguments that is not known when a call is written down: it will lie in an array of one."""

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


# Groups of arguments, each given as one thing: a block of a matrix by rows (MatrixBlock.csr), a vector as every row
# has a place (Steps.dense) or as a list (VectorBlock.listed), how slots become ids, what is written.
_CSR = ("indptr", "cols", "avals", "astride")
_X, _LIST = ("xvals", "xstride", "xwords"), ("count", "slots", "xvals", "xstride")
_ROWS = ("row0", "users")
_IDS = ("starts", "bounds", *_ROWS)
_OUT, _OUT_LIST = ("out_vals", "out_words", "count"), ("out_slots", "out_vals", "out_count")
_PAIR = (
    *("n", "avals", "astride", "awords", "bvals", "bstride", "bwords", "cvals", "cstride", "cwords"),
    *("flags", *_ROWS, "adefault", "bdefault"),
)
_SPACE = ("acc_vals", "acc_words", "touched", "touched_count")
_MXM = ("n", *_CSR, "bptr", "bcols", "bvals", "bstride")
_TABLES = ("kstarts", "kbounds", "jstarts", "jbounds", *_ROWS)

KINDS: dict[str, tuple[str, ...]] = {
    # -- products. In x @ A (flip) the terms are mult(x_k, a_kj) with i = 0, k inner, j the output row; in A @ x
    # mult(a_ik, x_k) with i the output row, k inner, j = 0. Matrix rows are output rows in pull, inner indices in push.
    # op: TypedSemiring; a, b: types of A and x.
    # Every row that the mask lets through gathers its terms; stops at the monoid's terminal value. Writes all of
    # out_words, values of present rows.
    "pull": ("n", *_CSR, *_X, "mwords", "flags", *_IDS, "heavy", *_OUT, "stats"),
    # The same for a monoid that is not any, from streams of entries and the values of each; mask, ids and heavy are not
    # read. Only backends whose layout names it.
    "pull_stream": ("n", "streams", *_CSR[1:], *_X, "mwords", "flags", *_IDS, "heavy", *_OUT, "stats"),
    # The same of short rows and a full x without a mask; xvals is the device's own part of it, and the last argument
    # (not here) tells where others have theirs.
    "pull_far": ("n", *_CSR, *_X, "mwords", "flags", *_IDS, "heavy", *_OUT, "stats"),
    # Present rows of x scatter into a workspace over all output slots (acc_words = 0 before; see Kernels.neutral). The
    # first arrival at a slot appends it to touched. Slots own_lo <= s < own_hi pass only if the mask of the own block
    # (bit s - own_lo) lets them. Unless DENSE, acc_vals and touched have one place more than there are slots.
    "push": (
        *("n", *_LIST, "xwords", "flags", *_CSR, *_IDS, "mwords", "own_lo", "own_hi"),
        *(*_SPACE, "stats"),
    ),
    # Arrivals of another device at the owner: same workspace rule over the own rows. op: TypedMonoid; b: type of vals
    # (= the monoid's).
    "combine": ("count", "slots", "vals", "mwords", "flags", *_SPACE),
    # Empties a workspace into one list for each of the p owners (entries relative to starts[b]), stored at offset
    # starts[b] of out_slots and out_vals; restores acc_words to zero, and acc_vals to `start` if Kernels.neutral. out:
    # type of values. If p is 1, `out_counts` is left alone: there are touched_count entries.
    "drain": (
        *("touched_count", "touched", "acc_vals", "acc_words", "start", "starts", "p"),
        *("out_slots", "out_vals", "out_counts"),
    ),
    # Sum of row lengths over the present rows of x. TALLY: out[1 + c] = the sum before place 64 * c of x; TRACE: the
    # last 64 of out += rows by the binary digits of their length. Both on CPU devices only.
    "frontier_edges": ("n", "count", "slots", "xwords", "flags", "indptr", "out"),
    # The same by groups of rows: out[1 + g] of rows g << shift and on, out[0] of all.
    "row_edges": ("n", "count", "slots", "xwords", "flags", "indptr", "shift", "out"),
    # -- the write rule C<M, accum, replace> = T. op: typed binary accumulator or None; a: type of C; b: type of T.
    # dense, in place on C. Rows in the region: mask bit set: T present -> accum(C, T) if both, else T; T absent ->
    # deleted, kept if accum. Mask bit not set: kept, deleted if REPLACE. Rows outside the region: kept, deleted if
    # REPLACE and the mask bit is not set. iso: bits alone, as by an accumulator.
    "write": ("n", "cvals", "cwords", "tvals", "tstride", "twords", "mwords", "rwords", "flags", "count"),
    # T is a list: entries that pass the mask are accumulated or stored; nothing is deleted. count is C's own and
    # grows by new entries.
    "write_list": ("tcount", "tslots", "tvals", "tstride", "mwords", "flags", "cvals", "cwords", "count"),
    # The rows of the list T lose their entries; count is C's own and shrinks by them.
    "unwrite": ("tcount", "tslots", "cwords", "count"),
    # -- elementwise. op: typed binary; rows with both get op(a, b), those with one what Spec.lone says. With Spec.then,
    # what this gives (of op's type) and c are combined in rows that have both.
    "ewise": (*_PAIR, *_OUT),
    # The same, summed by Spec.fold as by reduce.
    "fold": (*_PAIR, "out_vals", "out_words"),
    # intersection of a list with a dense operand; a: type of the list, which is the right operand if flip; b: of the
    # dense one.
    "ewise_list": (
        *("count", "slots", "avals", "astride", "bvals", "bstride", "bwords", "flags", *_ROWS),
        *_OUT_LIST,
    ),
    # op: typed unary, index-unary (t = thunk) or binary with the thunk at Spec.bound. Dense: rows 0..n-1 (absent ones
    # too); list: entries.
    "apply": ("n", *_LIST, "thunk", "flags", *_ROWS, "out_vals"),
    # op: typed select operator. Dense: bits of the kept rows; list: compacted.
    "select": ("n", *_X, "flags", *_ROWS, "thunk", "out_words", "count"),
    "select_list": (*_LIST, *_ROWS, "thunk", *_OUT_LIST),
    # op: TypedMonoid; out_val[0] = sum of the present values, out_words[0] = 1 if there was any (bit 0 of one word);
    # both set by the kernel.
    "reduce": ("n", "count", *_X, "flags", "out_vals", "out_words"),
    # -- forms and masks (b: type of the values)
    "mask_words": ("n", *_X, "flags", "out_words"),  # bits of present and true rows
    "list_words": (*_LIST, "flags", "out_words"),  # out_words zeroed by the caller; VALUED: true ones only
    # entries that pass the mask, after those that the result has; there is room for all
    "mask_list": (*_LIST, "mwords", "flags", *_OUT_LIST),
    # The entries of rows from cuts[0] on, before cuts[1].
    "between": (*_LIST, "cuts", *_OUT_LIST),
    # The cuts of what device `taker` takes of the frontier of device `owner`, if those that have more edges than the
    # mean of p devices give away what is beyond it, where that is more than `least`. loads: of each, what row_edges
    # tells, of n groups.
    "deal": ("n", "loads", "p", "owner", "taker", "least", "shift", "out_cuts"),
    "scatter": (*_LIST, "out_vals", "out_words"),  # list -> bitmap; out_words zeroed by the caller
    "compact": ("n", *_X, "flags", *_OUT_LIST),  # dense -> list, ascending where cheap
    # rows of a new layout: out row r = x at global slot index[r] (int64; -1: absent)
    "gather": ("n", "index", *_X, "flags", *_OUT),
    # -- matrices. a: type of the values.
    "matrix_select": ("n", *_CSR, "thunk", *_IDS, "out_words"),  # bits of the kept entries
    "matrix_apply": ("n", *_CSR, "thunk", *_IDS, "out_vals"),
    # op(value of its row, entry), or (bound "right") op(entry, value of its column slot). b: type of these values.
    "matrix_scale": ("n", *_CSR, "xvals", "out_vals"),
    # Two passes: lengths of the rows (int64), then, with out_indptr made of them, the entries.
    # rows of two matrices with ascending columns; keep says which entries survive (A_ONLY | B_ONLY | BOTH); both:
    # op(a, b), or a if op is None; one alone: as Spec.lone says.
    "merge_count": ("n", "aptr", "acols", "bptr", "bcols", "keep", "out_lengths"),
    "merge": (
        *("n", "aptr", "acols", "avals", "astride", "bptr", "bcols", "bvals", "bstride", "keep", *_IDS),
        *("adefault", "bdefault", "out_indptr", "out_cols", "out_vals"),
    ),
    # Row slots[k] (none, if that is -1) is put at out_begins[k] and on; column c is names[c] there, if `renamed`.
    # Values are only moved: a is an unsigned type of their size; with Spec.iso they stay where they are.
    "move_rows": ("n", "slots", *_CSR, "names", "renamed", "out_begins", "out_cols", "out_vals"),
    # -- products of matrices: rows of A on this device, all rows of B (by slot). op: TypedSemiring; a, b: types of A
    # and B. k* translate inner slots, j* column slots. `marks`: workspace as mxm_room says; for
    # backends without "rows" the rows of A with at least HEAVY entries.
    # mxm_rows: each term of row r whose column is in row r of M (a mask, or the pattern of the result) is added to that
    # entry of M. mxm_dot: b is B by columns; each entry (r, j) of M gets the product of row r and column j.
    # out_vals and out_found (zeroed by the caller) go along with M's entries.
    "mxm_rows": (*_MXM, "mptr", "mcols", *_TABLES, "marks", "out_vals", "out_found"),
    "mxm_dot": (*_MXM, "mptr", "mcols", *_TABLES, "marks", "out_vals", "out_found"),
    # B has all its entries (bcols is read for positions only): rows of the result, for rows of A with entries, have
    # `width` values.
    "mxm_dense": (*_MXM, "width", *_TABLES, "out_indptr", "out_vals"),
    # Every term on its own: those of entry e of A at begins[e] and on; key = row * width + column slot.
    "mxm_expand": (*_MXM, "begins", "width", *_TABLES, "out_keys", "out_vals"),
    # Pattern of the product, ascending columns, without those in row r of M (flags MASKED): from row progress[0] on as
    # many rows as surely fit into out_cols; then progress is (first row left, columns written).
    "mxm_pattern": (
        *("n", "indptr", "cols", "bptr", "bcols", "mptr", "mcols", "flags", "width", "marks"),
        *("progress", "out_lengths", "out_cols"),
    ),
    # run q: vals[order[starts[q]]] and on, up to the next run, combined in this order. op: a typed monoid or binary.
    "combine_runs": ("n", "starts", "order", "vals", "out_vals"),
    # -- relaxation of x @ A to its fixpoint (engine/fixpoint.py). op: TypedSemiring whose monoid is idempotent and has
    # the type of its products; a: type of A; b, out: the monoid's.
    # `best` has the values of all vertices, START where there is none; `bits` the vertices whose value is START.
    # `near` and `far` list vertices that wait to be extended, in this window and in a later one; `queued` goes with
    # them (CUDA: the values with which they came to `far`; CPU: marks, as cpu_relax.py has them).
    # limits: the limit of the window, how far it rises, the best value of far. progress (int64): PROGRESS, and more.
    # What other devices own (`spread`): relax has `best`, `bits` and mwords by the slots of all, those of A's rows
    # begin at `first`; of others `best` has what they were told, and what they are to be told is touched (their slots).
    # The caller sets the limit. All other kernels have the device's own rows alone.
    # relax_begin: the list is the frontier, which goes to `far`. Values of others come from d, unless XLIST.
    "relax_begin": (
        *("n", *_LIST, "dvals", "dstride", "dwords", "flags", "best", "bits", "far", "queued"),
        *("limits", "progress"),
    ),
    # Extends what waits, window by window if WINDOWED, until nothing does; or until `most` (CPU: entries, CUDA:
    # nanoseconds) or `windows` (0: any number) are done, or more than `wide` vertices are near: it may be called again.
    # takes (GPUs): vertices that a worker takes from a list at once; 0: as many as there are for each.
    "relax": (
        *("n", *_CSR, "mwords", "flags", "most", "windows", "wide", "takes", "first", "best", "bits", "near", "far"),
        *("queued", "limits", "acc_words", "touched", "touched_count", "progress"),
    ),
    # What others have told: the list's rows that it improves go to `far`.
    "relax_receive": ("n", "count", "slots", "vals", "best", "bits", "far", "queued", "limits", "progress"),
    # Which vertices have a value, and how many; which wait.
    "relax_end": ("n", "best", "bits", "near", "far", "queued", "progress", "out_words", "out_waiting", "count"),
}

# Kinds whose Spec means the same, so that their texts are given the same names for its operators and types (by
# cpu_source.py and gpu_source.py). Kinds that are in no row need none.
_ROLES: dict[str, tuple[str, ...]] = {
    "product": ("pull", "pull_stream", "pull_far", "push"),
    "combine": ("combine",),
    "drain": ("drain",),
    "write": ("write", "write_list"),
    "ewise": ("ewise", "ewise_list", "fold"),
    "map": ("apply", "select", "select_list"),
    "reduce": ("reduce",),
    "truth": ("mask_words", "list_words"),
    "values": ("mask_list", "between", "scatter", "compact", "gather"),
    "matrix_map": ("matrix_select", "matrix_apply"),
    "scale": ("matrix_scale",),
    "merge": ("merge",),
    "mxm": ("mxm_rows", "mxm_dot", "mxm_dense", "mxm_expand", "mxm_pattern"),
    "moved": ("move_rows",),
    "runs": ("combine_runs",),
    "relax": ("relax_begin", "relax", "relax_receive", "relax_end"),
}
ROLES = {kind: role for role, kinds in _ROLES.items() for kind in kinds}

# What relaxation changes from call to call; and what `progress` begins with.
RELAXED = ("best", "bits", "near", "far", "queued", "limits", "progress")
PROGRESS = ("near", "far", "windows", "extended", "edges", "improved", "ended")
UNDER_WAY, CONVERGED, WIDE, CROWDED = range(4)  # ended: why the last call returned; CROWDED: a list was full


@cache
def written(kind: str) -> frozenset[int]:
    """The places of the arguments that a kernel writes, or may write."""
    names = KINDS[kind]
    of_relaxation = RELAXED if kind.startswith("relax") else ()
    content = ("cvals", "cwords") if kind in ("write", "write_list", "unwrite") else of_relaxation
    changed = {"out", "stats", "marks", "progress", *_SPACE, *content}
    counts = names[-2:].index("count") + len(names) - 2 if "count" in names[-2:] else -1  # others are read
    return frozenset(i for i, name in enumerate(names) if i == counts or name in changed or name.startswith("out_"))


# Arguments that are whole numbers of the host.
INTEGERS = {"n", "p", "flags", "keep", "row0", "own_lo", "own_hi", "width", "renamed", "owner", "taker", "least"}
INTEGERS |= {"astride", "bstride", "tstride", "xstride", "dstride", "shift"}
INTEGERS |= {"most", "windows", "wide", "takes", "first"}


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
