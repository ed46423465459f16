"""The kinds of kernels: what each is called with, of which types, and what it does to each argument.

An argument is written as `[own] [in | out | inout | adds] name[: type]`. Its role is `in` if none is said: the kernel
only reads it. `out`: it is written, and what was there is not read; `inout`: both; `adds`: what is there and what
kernels that run at the same time add to it is combined. `own`: a thread touches the elements thread_id(), thread_id() +
thread_count(), ... alone, so that what one kernel of a GPU leaves there the next one finds without a meeting. Types are
those of the CUDA texts; with a * it is an array. Most names always have the same type (TYPES).

tests/test_kinds.py holds all of it against the texts of both backends. Conventions are those of interface.py.
"""

from functools import cached_property
from typing import NamedTuple

# Numbers of the host, and arrays by the types of their elements, unless a kind says otherwise.
TYPES = {
    **dict.fromkeys("n flags p keep row0 own_lo own_hi width how owner taker least shift".split(), "i64"),
    **dict.fromkeys("astride bstride cstride tstride xstride dstride".split(), "i64"),
    **dict.fromkeys("most windows wide takes first".split(), "i64"),
    **{"thunk": "THUNK", "start": "T_OUT", "adefault": "DEFAULT_A", "bdefault": "DEFAULT_B"},
    **dict.fromkeys("indptr aptr bptr mptr".split(), "PTR *"),
    **dict.fromkeys("cols acols bcols mcols out_cols slots tslots out_slots touched near far names".split(), "IDX *"),
    **{"avals": "T_A *", "bvals": "T_B *", "cvals": "T_C *", "xvals": "T_B *", "tvals": "T_B *", "out_vals": "T_OUT *"},
    **dict.fromkeys("acc_vals dvals vals best queued limits".split(), "Z *"),
    **{"marks": "int *", "heavy": "int *", "progress": "Work *", "out_found": "bool *", "streams": "Views *"},
    "slices": "Slices *",
    **dict.fromkeys("count tcount touched_count out_count out_counts out cuts out_cuts loads stats".split(), "i64 *"),
    **dict.fromkeys("xwords mwords rwords awords bwords cwords twords dwords acc_words out_words".split(), "i64 *"),
    **dict.fromkeys("starts bounds users kstarts kbounds jstarts jbounds index order begins bits".split(), "i64 *"),
    **dict.fromkeys("out_begins out_lengths out_indptr out_keys out_waiting".split(), "i64 *"),
}
CONSTANTS = {"flags", "p", "astride", "bstride", "cstride", "xstride", "tstride"}  # numbers that a plan fixes


class Argument(NamedTuple):
    """What a kernel is given in one place."""

    name: str
    type: str
    role: str = "in"
    own: bool = False

    @property
    def array(self) -> bool:
        return self.type.endswith("*")

    @property
    def written(self) -> bool:
        return self.role != "in"


def argument(text: str) -> Argument:
    """The argument that a line of KINDS writes."""
    words, _, given = text.partition(": ")
    *said, name = words.split()
    role = next((word for word in said if word != "own"), "in")
    return Argument(name, given or TYPES[name], role, "own" in said)


class Kind:
    """A kind of kernel."""

    def __init__(self, name: str, *arguments: str):
        self.name, self.arguments = name, tuple(map(argument, arguments))
        self.names = tuple(each.name for each in self.arguments)

    def index(self, name: str) -> int:
        """The place of an argument."""
        return self.names.index(name)

    @cached_property
    def written(self) -> frozenset[int]:
        """The places of what it writes, or may write."""
        return frozenset(i for i, each in enumerate(self.arguments) if each.written)


# Groups of arguments, each given as one thing: a block of a matrix by rows (MatrixBlock.csr), a vector as every row
# has a place (Steps.dense) or as a list (VectorBlock.listed), how slots become ids, what is written.
_CSR = ("indptr", "cols", "avals", "astride")
_X, _LIST = ("xvals", "xstride", "xwords"), ("count", "slots", "xvals", "xstride")
_ROWS = ("row0", "users")
_IDS = ("starts", "bounds", *_ROWS)
_OUT = ("out out_vals", "out out_words", "inout count")
_OUT_LIST = ("out out_slots", "out out_vals", "inout out_count")
_PAIR = (
    *("n", "avals", "astride", "awords", "bvals", "bstride", "bwords", "cvals", "cstride", "cwords"),
    *("flags", *_ROWS, "adefault", "bdefault"),
)
_SPACE = ("adds acc_vals", "adds acc_words", "adds touched", "adds touched_count")
_MXM = ("n", *_CSR, "bptr", "bcols", "bvals", "bstride")
_TABLES = ("kstarts", "kbounds", "jstarts", "jbounds", *_ROWS)

_OWN_LIST = ("count", "own slots", "own xvals", "xstride")
_MOVED_LIST = ("out out_slots", "out out_vals: T_B *", "inout out_count")  # of the types that they have
_FOUND = ("out out_vals: Z *", "out out_found")

_KINDS: dict[str, tuple[str, ...]] = {
    # -- products. In x @ A (flip) the terms are mult(x_k, a_kj) with i = 0, k inner, j the output row; in A @ x
    # mult(a_ik, x_k) with i the output row, k inner, j = 0. Matrix rows are output rows in pull, inner indices in push.
    # op: TypedSemiring; a, b: types of A and x.
    # Every row that the mask lets through gathers its terms; stops at the monoid's terminal value. Writes all of
    # out_words, values of present rows.
    "pull": ("n", *_CSR, *_X, "mwords", "flags", *_IDS, "heavy", *_OUT, "inout stats"),
    # The same for a monoid that is not any, from streams of entries and the values of each; mask, ids and heavy are not
    # read. Only backends whose layout names it.
    "pull_stream": ("n", "streams", *_CSR[1:], *_X, "mwords", "flags", *_IDS, "heavy", *_OUT, "inout stats"),
    # The same with a full x, from slices of pieces of rows.
    "pull_slices": ("n", "slices", *_CSR[1:], *_X, "mwords", "flags", *_IDS, "heavy", *_OUT, "inout stats"),
    # The same of short rows and a full x without a mask; xvals is the device's own part of it, and the last argument
    # (not here) tells where others have theirs.
    "pull_far": ("n", *_CSR, *_X, "mwords", "flags", *_IDS, "heavy", *_OUT, "inout stats"),
    # Present rows of x scatter into a workspace over all output slots (acc_words = 0 before; see Kernels.neutral). The
    # first arrival at a slot appends it to touched. Slots own_lo <= s < own_hi pass only if the mask of the own block
    # (bit s - own_lo) lets them. Unless DENSE, acc_vals and touched have one place more than there are slots; on CPU
    # devices, values of the monoid any then lie in the order of touched, as also after combine.
    "push": (
        *("n", *_LIST, "xwords", "flags", *_CSR, *_IDS, "mwords", "own_lo", "own_hi"),
        *(*_SPACE, "inout stats"),
    ),
    # Arrivals of another device at the owner: same workspace rule over the own rows. op: TypedMonoid; b: type of vals
    # (= the monoid's).
    "combine": ("count", "slots", "vals", "mwords", "flags", *_SPACE),
    # Empties a workspace into one list for each of the p owners (entries relative to starts[b]), stored at offset
    # starts[b] of out_slots and out_vals; restores acc_words to zero, and acc_vals to `start` if Kernels.neutral. out:
    # type of values; op: the monoid, if it is any on CPU devices. If p is 1, `out_counts` is left alone: there are
    # touched_count entries.
    "drain": (
        *("touched_count", "own touched", "inout acc_vals: T_OUT *", "inout acc_words", "start", "starts", "p"),
        *("own out out_slots", "own out out_vals", "inout out_counts"),
    ),
    # Sum of row lengths over the present rows of x. TALLY: out[1 + c] = the sum before place 64 * c of x; TRACE: the
    # last 64 of out += rows by the binary digits of their length. Both on CPU devices only.
    "frontier_edges": ("n", "count", "own slots", "xwords", "flags", "indptr", "inout out"),
    # The same by groups of rows: out[1 + g] of rows g << shift and on, out[0] of all.
    "row_edges": ("n", "count", "slots", "xwords", "flags", "indptr", "shift", "inout out"),
    # -- the write rule C<M, accum, replace> = T. op: typed binary accumulator or None; a: type of C; b: type of T.
    # dense, in place on C. Rows in the region: mask bit set: T present -> accum(C, T) if both, else T; T absent ->
    # deleted, kept if accum. Mask bit not set: kept, deleted if REPLACE. Rows outside the region: kept, deleted if
    # REPLACE and the mask bit is not set. iso: bits alone, as by an accumulator.
    "write": (
        *("n", "inout cvals: T_A *", "inout cwords", "tvals", "tstride", "twords", "mwords", "rwords", "flags"),
        "inout count",
    ),
    # T is a list: entries that pass the mask are accumulated or stored; nothing is deleted. count is C's own and
    # grows by new entries.
    "write_list": (
        *("tcount", "own tslots", "own tvals", "tstride", "mwords", "flags", "inout cvals: T_A *", "inout cwords"),
        "inout count",
    ),
    # The rows of the list T lose their entries; count is C's own and shrinks by them.
    "unwrite": ("tcount", "own tslots", "inout cwords", "inout count"),
    # -- elementwise. op: typed binary; rows with both get op(a, b), those with one what Spec.lone says. With Spec.then,
    # what this gives (of op's type) and c are combined in rows that have both.
    "ewise": (*_PAIR, *_OUT),
    # The same, summed by Spec.fold as by reduce.
    "fold": (*_PAIR, "out out_vals: Z *", "out out_words"),
    # intersection of a list with a dense operand; a: type of the list, which is the right operand if flip; b: of the
    # dense one.
    "ewise_list": (
        *("count", "own slots", "own avals", "astride", "bvals", "bstride", "bwords", "flags", *_ROWS),
        *_OUT_LIST,
    ),
    # op: typed unary, index-unary (t = thunk) or binary with the thunk at Spec.bound. Dense: rows 0..n-1 (absent ones
    # too); list: entries.
    "apply": ("n", *_LIST, "thunk", "flags", *_ROWS, "out out_vals"),
    # op: typed select operator. Dense: bits of the kept rows; list: compacted.
    "select": ("n", *_X, "flags", *_ROWS, "thunk", "out out_words", "inout count"),
    "select_list": (*_OWN_LIST, *_ROWS, "thunk", *_MOVED_LIST),
    # op: TypedMonoid; out_val[0] = sum of the present values, out_words[0] = 1 if there was any (bit 0 of one word);
    # both set by the kernel.
    "reduce": ("n", "count", *_X, "flags", "out out_vals: Z *", "out out_words"),
    # -- forms and masks (b: type of the values)
    "mask_words": ("n", *_X, "flags", "out out_words"),  # bits of present and true rows
    # out_words zeroed by the caller; VALUED: true ones only
    "list_words": ("count", "own slots", *_LIST[2:], "flags", "inout out_words"),
    # entries that pass the mask, after those that the result has; there is room for all
    "mask_list": (*_OWN_LIST, "mwords", "flags", *_MOVED_LIST),
    # The entries of rows from cuts[0] on, before cuts[1].
    "between": (*_LIST, "cuts", *_MOVED_LIST),
    # The cuts of what device `taker` takes of the frontier of device `owner`, if those that have more edges than the
    # mean of p devices give away what is beyond it, where that is more than `least`. loads: of each, what row_edges
    # tells, of n groups.
    "deal": ("n", "loads", "p", "owner", "taker", "least", "shift", "out out_cuts"),
    # Bits begin .. begin + n - 1 of words are ORed into out_words, from bit `at` on.
    "move_bits": ("n", "words: i64 *", "begin: i64", "at: i64", "inout out_words"),
    "scatter": (*_OWN_LIST, "out out_vals: T_B *", "inout out_words"),  # list -> bitmap; out_words zeroed by the caller
    "compact": ("n", *_X, "flags", *_MOVED_LIST),  # dense -> list, ascending where cheap
    # rows of a new layout: out row r = x at global slot index[r] (int64; -1: absent)
    "gather": ("n", "index", *_X, "flags", "out out_vals: T_B *", *_OUT[1:]),
    # -- matrices. a: type of the values.
    "matrix_select": ("n", *_CSR, "thunk", *_IDS, "out out_words"),  # bits of the kept entries
    "matrix_apply": ("n", *_CSR, "thunk", *_IDS, "out out_vals"),
    # op(value of its row, entry), or (bound "right") op(entry, value of its column slot). b: type of these values.
    "matrix_scale": ("n", *_CSR, "xvals", "out out_vals"),
    # Two passes: lengths of the rows (int64), then, with out_indptr made of them, the entries.
    # rows of two matrices with ascending columns; keep says which entries survive (A_ONLY | B_ONLY | BOTH); both:
    # op(a, b), or a if op is None; one alone: as Spec.lone says.
    "merge_count": ("n", "aptr", "acols", "bptr", "bcols", "keep", "out out_lengths"),
    "merge": (
        *("n", "aptr", "acols", "avals", "astride", "bptr", "bcols", "bvals", "bstride", "keep", *_IDS),
        *("adefault", "bdefault", "out_indptr: PTR *", "out out_cols", "out out_vals"),
    ),
    # Row slots[k] (none, if that is -1) is put at out_begins[k] and on; column c is names[c] there, if `how` has
    # RENAMED. ADJOINING: out_begins ascend without gaps, so that a row may be written over what comes after it.
    # Values are only moved: a is an unsigned type of their size; with Spec.iso they stay where they are.
    "move_rows": (
        *("n", "slots: i64 *", *_CSR, "names", "how", "out_begins", "out out_cols", "out out_vals: T_A *"),
    ),
    # What a matrix has in row `rows[k]` and the column with slot `columns[k]`; out_vals keeps what it has where that is
    # no entry. Values are only moved, as by move_rows.
    "look_up": ("n", "rows: i64 *", "columns: i64 *", *_CSR, "out out_found", "inout out_vals: T_A *"),
    # -- products of matrices: rows of A on this device, all rows of B (by slot). op: TypedSemiring; a, b: types of A
    # and B. k* translate inner slots, j* column slots. `marks`: workspace as mxm_room says;
    # nothing for backends without "rows".
    # mxm_rows: each term of row r whose column is in row r of M (a mask, or the pattern of the result) is added to that
    # entry of M. mxm_dot: b is B by columns; each entry (r, j) of M gets the product of row r and column j.
    # out_vals and out_found (zeroed by the caller) go along with M's entries.
    "mxm_rows": (*_MXM, "mptr", "mcols", *_TABLES, "inout marks", *_FOUND),
    "mxm_dot": (*_MXM, "mptr", "mcols", *_TABLES, "inout marks", *_FOUND),
    # B has all its entries (bcols is read for positions only): rows of the result, for rows of A with entries, have
    # `width` values.
    "mxm_dense": (*_MXM, "width", *_TABLES, "out_indptr", "out out_vals: Z *"),
    # Every term on its own: those of entry e of A at begins[e] and on; key = row * width + column slot.
    "mxm_expand": (*_MXM, "begins", "width", *_TABLES, "out out_keys", "out out_vals: Z *"),
    # Whole rows of the product, columns ascending, without those in row r of M (flags MASKED): from row progress[0] on
    # as many rows as surely fit into out_cols, which has room for one more; then progress is (first row left, columns
    # written). terms: how many each row has, as mxm_terms counts them. `sums`: the monoid's start for every column
    # slot, or (Spec.hashed) for as many as the longest row has, and one more; restored.
    "mxm_gustavson": (
        *(*_MXM, "terms: i64 *", "mptr", "mcols", "flags", "width", *_TABLES, "inout marks", "inout sums: Z *"),
        *("inout progress", "out out_lengths", "out out_cols", "out out_vals: Z *"),
    ),
    "mxm_terms": ("n", "indptr", "cols", "bptr", "out out_lengths"),
    # run q: vals[order[starts[q]]] and on, up to the next run, combined in this order. op: a typed monoid or binary.
    "combine_runs": ("n", "starts", "order", "vals: T_B *", "out out_vals: T_B *"),
    # -- relaxation of x @ A to its fixpoint (engine/fixpoint.py). op: TypedSemiring whose monoid is idempotent and has
    # the type of its products; a: type of A; b, out: the monoid's.
    # `best` has the values of all vertices, START where there is none; `bits` the vertices whose value is START.
    # `near` and `far` list vertices that wait to be extended, in this window and in a later one; `queued` goes with
    # them (CUDA: the values with which they came to `far`; CPU: marks, as cpu_relax.py has them).
    # limits: the limit of the window, how far it rises, the best value of far, and the cutoff (if Relaxing.cuts).
    # progress (int64): PROGRESS, and more.
    # If other devices own columns of A (`spread`), relax has `best`, `bits` and mwords by the slots of all; those of
    # A's rows begin at `first`. Of others' vertices, `best` has the best value that was found here, and `touched` lists
    # the slots of those that improved since it was drained. The caller sets the limit. All other kernels have the
    # device's own rows alone.
    # relax_begin: the list is the frontier, which goes to `far`. Values of others come from d, unless XLIST.
    "relax_begin": (
        *("n", "count", "slots", "xvals: Z *", "xstride", "dvals", "dstride", "dwords", "flags", "inout best"),
        *("inout bits", "inout far", "inout queued", "inout limits", "inout progress"),
    ),
    # Extends what waits, window by window if WINDOWED, until nothing does; or until `most` (CPU: entries, CUDA:
    # nanoseconds) or `windows` (0: any number) are done, or more than `wide` vertices are near: it may be called again.
    # takes (GPUs): vertices that a worker takes from a list at once; 0: as many as there are for each.
    "relax": (
        *("n", *_CSR, "mwords", "flags", "most", "windows", "wide", "takes", "first", "inout best", "inout bits"),
        *("inout near", "inout far", "inout queued", "inout limits", "inout acc_words", "inout touched"),
        *("inout touched_count", "inout progress"),
    ),
    # Takes what another device found for rows of this one, a list: those that improve go to `far`.
    "relax_receive": (
        *("n", "count", "slots", "vals", "inout best", "inout bits", "inout far", "inout queued", "inout limits"),
        "inout progress",
    ),
    # Which vertices have a value, and how many; which wait.
    "relax_end": (
        *("n", "best", "bits", "near", "far", "queued", "progress", "out out_words", "inout out_waiting"),
        "inout count",
    ),
}
KINDS = {name: Kind(name, *arguments) for name, arguments in _KINDS.items()}

# Kinds whose Spec means the same, so that their texts are given the same names for its operators and types (by
# cpu_source.py and gpu_source.py). Kinds that are in no row need none.
_ROLES: dict[str, tuple[str, ...]] = {
    "product": ("pull", "pull_stream", "pull_slices", "pull_far", "push"),
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
    "mxm": ("mxm_rows", "mxm_dot", "mxm_dense", "mxm_expand", "mxm_gustavson", "mxm_terms"),
    "moved": ("move_rows", "look_up"),
    "runs": ("combine_runs",),
    "relax": ("relax_begin", "relax", "relax_receive", "relax_end"),
}
ROLES = {kind: role for role, kinds in _ROLES.items() for kind in kinds}
