"""What the functions of the CUDA texts are called with: the arguments of their kind, and what a launcher adds; of those
of device/bytes.cu, which are of no kind, all. A kernel that stays on the GPU (resident.py) has to know."""

from .kinds import KINDS, Argument, argument

# Behind the arguments of a kind. `late`: where a number waits on the device.
_MORE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("apply", "select", "select_list"), ("late: THUNK *",)),
    "ewise": ("alate: DEFAULT_A *", "blate: DEFAULT_B *"),
    "fold": ("alate: DEFAULT_A *", "blate: DEFAULT_B *", "inout scratch: u64 *"),
    "reduce": ("inout scratch: u64 *",),
    **dict.fromkeys(("matrix_apply", "matrix_select", "merge"), ("p",)),
    "combine_runs": ("total: i64",),
    **dict.fromkeys(("mxm_dense", "mxm_expand"), ("kp: i64", "jp: i64", "total: i64")),
    "mxm_dot": ("kp: i64", "jp: i64", "limit: i64", "lanes: i64"),
    "pull": ("p", "lanes: i64", "limit: i64"),
    "pull_far": ("p", "far: Far"),
    "push": ("p", "inout queue: u64 *"),
    "relax": ("room: i64", "inout meeting: Meeting *"),
    **dict.fromkeys(("relax_begin", "relax_receive", "relax_end"), ("room: i64",)),
}
# What a launcher makes of a kind's arguments. `Views`: parts of a stream; `Slices`: of pieces of rows.
_OTHERS: dict[str, tuple[str, ...]] = {
    "pull_stream_order": (
        *("order: int *", "n", "xvals", "xstride", "xwords", "out out: T_B *", "out out_words", "packed: i64"),
    ),
    "pull_stream": (
        *("entries: i64", "codes: int *", "avals", "astride", "xvals", "xstride", "xwords"),
        *("begins: unsigned char *", "rows: int *", "ranks: int *", "out heads: Sum *", "out tails: Sum *"),
        *("seen: i64 *", "hub_count: i64", "out out_vals", "out out_words", "inout count", "tiles: i64", "packed: i64"),
    ),
    "pull_stream_join": (
        *("begins: unsigned char *", "rows: int *", "ranks: int *", "heads: Sum *", "tails: Sum *", "seen: i64 *"),
        *("out out_vals", "words: i64 *", "out out_words", "nwords: i64", "inout count", "present: i64", "tiles: i64"),
    ),
    "pull_slices": (
        *("xvals", "nx: i64", "width", "segments: i64", "parts: i64", "offs: i64 *", "lengths: unsigned char *"),
        *("codes: unsigned short *", "avals", "astride", "cuts: int *", "out sums: Z *"),
    ),
    "pull_slices_rest": (
        *("xvals", "parts: i64", "offs: i64 *", "lengths: unsigned char *"),
        *("codes: int *", "avals", "astride", "cuts: int *", "out sums: Z *"),
    ),
    "pull_slices_join": (
        *("n", "ptr: i64 *", "cells: int *", "sums: Z *", "out out_vals", "words: i64 *", "out out_words"),
        *("nwords: i64", "inout count", "present: i64"),
    ),
}
_CELLS = {1: "unsigned char", 2: "unsigned short", 4: "u32", 8: "u64"}
_BYTES: dict[str, tuple[str, ...]] = {
    **{f"set_{many}": ("out out: unsigned char *", "n", "byte: i64") for many in ("bytes", "few")},
    **{f"copy_{many}": ("out out: unsigned char *", "in: unsigned char *", "n") for many in ("bytes", "few")},
    **{f"fill{size}": (f"out out: {cell} *", f"value: {cell}", "n") for size, cell in _CELLS.items()},
    **{
        f"copy{size}": (f"own out out: {cell} *", f"own in in: {cell} *", "count", "n")
        for size, cell in _CELLS.items()
    },
    **{
        f"checked{size}": (
            *("own ids: void *", "code: i64", "count: i64", "n", f"own out slots: {cell} *", "inout bad: i64 *"),
        )
        for size, cell in ((4, "int"), (8, "i64"))
    },
    **{
        f"take{size}": (
            *("own ids: void *", "code: i64", "count: i64", "n", f"vals: {cell} *", f"own out out: {cell} *"),
            "inout bad: i64 *",
        )
        for size, cell in _CELLS.items()
    },
    **{
        f"fetch{size}": ("ids: void *", "code: i64", "n", "first", f"vals: {cell} *", f"out out: {cell} *")
        for size, cell in _CELLS.items()
    },
}  # fmt: skip


BYTE_FUNCTIONS = frozenset(_BYTES)


def _of(kind: str, *more: str) -> tuple[Argument, ...]:
    return (*KINDS[kind].arguments, *map(argument, more))


def _dot(marks: str, *more: str) -> tuple[Argument, ...]:
    """Of mxm_dot; `marks`: the pieces of long rows."""
    return tuple(argument(marks) if each.name == "marks" else each for each in _of("mxm_dot", *more))


FUNCTIONS: dict[str, tuple[Argument, ...]] = {
    **{kind: _of(kind, *_MORE.get(kind, ())) for kind in KINDS},
    "push_hubs": _of("push", *_MORE["push"]),
    "pull_heavy": _of("pull", "p", "limit: i64", "heavies: i64"),
    **dict.fromkeys(("pull_short", "pull_short_plain"), _of("pull", "p")),
    "mxm_dot": _dot("marks: i64 *", *_MORE["mxm_dot"]),
    "mxm_dot_heavy": _dot("pieces: i64 *", "kp: i64", "jp: i64", "count: i64", "lanes: i64", "inout queue: u64 *"),
    **{name: tuple(map(argument, given)) for name, given in (_OTHERS | _BYTES).items()},
}
