"""Text of one CPU kernel instance: a body with its gaps filled, below a header that defines what the body names."""

from ..semiring._lower import literal_text, to_text
from ..semiring._types import BOOL
from . import cpu_mxm, cpu_products, cpu_relax
from .cpu_bodies import ALLOW, BODIES, FLAGS, LANES, ROW, ROW_ID, SORT, USER_ID, fill
from .cpu_products import COUNT_DEGREE, FETCH
from .interface import Spec
from .kinds import KINDS, ROLES


class _Parts:
    """The header under construction: each name once, and the expressions that use them."""

    def __init__(self, cast_program):
        self.text: list[str] = []
        self.names: set[str] = set()
        self._cast_program = cast_program

    def define(self, name, program):
        self.names.add(name)
        self.text.append(to_text(program, name))
        return name

    def cast(self, name, source, target):
        self.names.add(name)
        if source is target or source is None:
            self.text.append(f"def {name}(x):\n    return x\n")
        else:
            self.define(name, self._cast_program(source, target))

    def call(self, name, program, **arguments):
        """`name(...)` with the arguments that the program has, in its order."""
        return f"{name}({', '.join(arguments[p] if p in program.uses else '0' for p, _ in program.params)})"


def _reduce(kind, spec, parts):
    op = spec.op
    take, stop = _sum(op, spec.b, parts)
    take_q, take_r = (take.format(f"xvals[{at} * xstride]") for at in "qr")
    # Those that end soon go one by one, and sums of floats: their order may not depend on the form.
    one_by_one = op.is_any or op.dtype is BOOL or (op.dtype.kind == "f" and op.name not in ("min", "max"))
    lanes = "" if one_by_one else LANES
    return {"take_q": take_q, "take_r": take_r, "stop": stop, "lanes": lanes}


def _sum(monoid, dtype, parts):
    """How a value of a type is added to acc, and what ends that."""
    parts.define("add", monoid.binary.program)
    parts.cast("cast_sum", dtype, monoid.dtype)
    parts.text.append(f"START = {literal_text(monoid.start, monoid.dtype)}")
    if monoid.is_any:
        return "acc = cast_sum({})", "break"
    stop = ""
    if monoid.terminal is not None:
        parts.text.append(f"TERMINAL = {literal_text(monoid.terminal, monoid.dtype)}")
        stop = "if acc == TERMINAL:\n    break"
    return "acc = add(acc, cast_sum({}))", stop


def _matrix_map(kind, spec, parts):
    op = spec.op
    parts.define("op", op.program)
    parts.cast("cast_a", spec.a, op.dtypes[0])
    ids = {"i": ROW, "j": "user_id(np.int64(cols[e]), starts, bounds)", "t": "thunk"}
    entry = parts.call("op", op.program, x="cast_a(avals[np.intp(e) * astride])", **ids)
    return {"op_entry": entry, "marks": (_BY_ROWS if "i" in op.program.uses else _BY_WORDS).format(entry)}


def _scale(kind, spec, parts):
    op, left = spec.op, spec.bound == "left"
    parts.define("op", op.program)
    parts.cast("cast_a", spec.a, op.dtypes[-1 if left else 0])
    parts.cast("cast_b", spec.b, op.dtypes[0 if left else -1])
    entry, value = "cast_a(avals[e * np.uintp(astride)])", f"cast_b(xvals[{'r' if left else 'np.uintp(cols[e])'}])"
    x, y = (value, entry) if left else (entry, value)
    return {"scaled": parts.call("op", op.program, x=x, y=y)}


_BY_ROWS = """for w in range((indptr[n] + 63) >> 6):
    out_words[w] = 0
for r in range(n):
    for e in range(np.intp(indptr[r]), np.intp(indptr[r + 1])):
        out_words[e >> 6] |= np.int64(1 if {} else 0) << (e & 63)"""
_BY_WORDS = """for w in range((indptr[n] + 63) >> 6):
    bits, first = np.int64(0), w << 6
    for e in range(first, min(first + 64, indptr[n])):
        bits |= np.int64(1 if {} else 0) << (e - first)
    out_words[w] = bits"""


def _moving(kind, spec, parts):
    return {"both": "", "values": ""} if spec.iso else {"both": _MOVED_TOGETHER, "values": _MOVED}


# In one loop, and four entries at a time if more than the row's own may be written: what a loop takes before its first
# entry and after its last one is most of what short rows take.
_FOUR = ", ".join(f"{{0}}[{{1}} + {k}]" for k in range(4))
_MOVED_TOGETHER = f"""if astride == 1:
    while how & ADJOINING and begin < end and begin + FOUR <= held and to + FOUR <= room:
        {_FOUR.format("out_cols", "to")} = {_FOUR.format("cols", "begin")}
        {_FOUR.format("out_vals", "to")} = {_FOUR.format("avals", "begin")}
        begin, to = begin + FOUR, to + FOUR
    for q in range(end - begin if begin < end else 0):
        out_cols[to + q] = cols[begin + q]
        out_vals[to + q] = avals[begin + q]
    continue"""
_MOVED = """if astride == 1:
    for q in range(end - begin):
        out_vals[to + q] = avals[begin + q]
else:
    for q in range(end - begin):
        out_vals[to + q] = avals[0]"""


def _rows(word: str, statement: str) -> str:
    """`statement` for each row r of a word: a plain loop where all bits are set."""
    return (
        f"if {word} == valid:\n    for r in range(first, last):\n        {statement}\n"
        f"else:\n    rest = np.uint64({word})\n    while rest != 0:\n"
        f"        r = first + lowest(rest)\n        rest &= rest - ONE\n        {statement}"
    )


def _write(kind, spec, parts):
    if spec.iso:
        return {"ALLOW": ALLOW, "delete": "", "store_rows": ""}
    row = "r" if kind == "write" else "q"
    parts.cast("cast_t", spec.b, spec.a)
    plain = f"cvals[r] = cast_t(tvals[{row} * tstride])"
    if spec.op is None:
        stores = {"store_c": plain, "store_rows": _rows("target", plain)}
        return {"ALLOW": ALLOW, "delete": "kept &= ~(allow & region)", **stores}
    parts.define("op", spec.op.program)
    first, second = spec.op.dtypes
    parts.cast("cast_c_in", spec.a, first)
    parts.cast("cast_t_in", spec.b, second)
    parts.cast("cast_out", spec.op.return_type, spec.a)
    old_value, new_value = "cast_c_in(cvals[r])", f"cast_t_in(tvals[{row} * tstride])"
    both = f"cast_out({parts.call('op', spec.op.program, x=old_value, y=new_value, i='0', j='0', k='0')})"
    return {
        "ALLOW": ALLOW,
        "delete": "",
        "store_c": f"if old:\n    cvals[r] = {both}\nelse:\n    {plain}",
        "store_rows": f"old, new = target & held, target & ~held\n{_rows('old', f'cvals[r] = {both}')}\n"
        + _rows("new", plain),
    }


def _ewise(kind, spec, parts):
    op = spec.op
    first, second = op.dtypes
    parts.define("op", op.program)
    swapped = kind == "ewise_list" and spec.flip
    parts.cast("cast_a", spec.a, second if swapped else first)
    parts.cast("cast_b", spec.b, first if swapped else second)
    if kind == "ewise_list":
        values = ["cast_a(avals[q * astride])", "cast_b(bvals[r * bstride])"]
        x, y = reversed(values) if swapped else values
        return {"op_list": parts.call("op", op.program, x=x, y=y, i=ROW, k=inner_id(op, ROW, "0"), j="0")}
    both = parts.call(
        "op",
        op.program,
        x="cast_a(avals[r * astride])",
        y="cast_b(bvals[r * bstride])",
        i=ROW,
        k=inner_id(op, ROW, "0"),
        j="0",
    )
    third = "inc = valid if flags & CFULL else cwords[w]\nina &= inc\ninb &= inc" if spec.then else ""

    take, stop = "out_vals[r] = {}", ""
    if kind == "fold":
        take, stop = _sum(spec.fold, (spec.then or op).return_type, parts)
        stop = "if hit:\n    break" if spec.fold.is_any else stop

    def rows(word, value):
        return _rows(word, take.format(_then(spec, parts, value) if spec.then else value))

    names = {"third": third, "both_rows": rows("both", both), "one_sided": "", "present": "both", "stop": stop}
    if not spec.lone:
        return names
    only_a, only_b = _one_sided(
        spec._replace(out=op.return_type) if spec.then else spec,
        parts,
        "avals[r * astride]",
        "bvals[r * bstride]",
        i=ROW,
        k=inner_id(op, ROW, "0"),
        j="0",
    )
    one_sided = f"left, right = ina & ~inb, inb & ~ina\n{rows('left', only_a)}\n{rows('right', only_b)}"
    return {**names, "one_sided": one_sided, "present": "ina | inb"}


def _then(spec, parts, value):
    """The second operator of a chain, on what the first gave and c."""
    first, second = reversed(spec.then.dtypes) if spec.flip else spec.then.dtypes
    if "then" not in parts.names:
        parts.define("then", spec.then.program)
        parts.cast("cast_made", spec.op.return_type, first)
        parts.cast("cast_c", spec.c, second)
    operands = f"cast_made({value})", "cast_c(cvals[r * cstride])"
    x, y = reversed(operands) if spec.flip else operands
    return parts.call("then", spec.then.program, x=x, y=y)


def inner_id(op, row, column):
    """What `k` of a positional operator means where no product has an inner index: secondi's row, firstj's column."""
    return row if op.name.startswith("second") else column


def _one_sided(spec, parts, a, b, **ids):
    """What an entry of one operand alone becomes: itself, or the operator's result with the other's default."""
    if spec.lone == "defaults":
        calls = ({"x": f"cast_a({a})", "y": "bdefault"}, {"x": "adefault", "y": f"cast_b({b})"})
        if "cast_out" not in parts.names:
            parts.cast("cast_out", spec.op.return_type, spec.out)
        return tuple(f"cast_out({parts.call('op', spec.op.program, **values, **ids)})" for values in calls)
    parts.cast("cast_ac", spec.a, spec.out)
    parts.cast("cast_bc", spec.b, spec.out)
    return f"cast_ac({a})", f"cast_bc({b})"


def _map(kind, spec, parts):
    op = spec.op
    parts.define("op", op.program)
    stored = "cast_b(xvals[q * xstride])"
    if spec.bound:  # a binary operator with one side bound
        x, y = ("thunk", stored) if spec.bound == "left" else (stored, "thunk")
        parts.cast("cast_b", spec.b, op.dtypes[1 if spec.bound == "left" else 0])
    else:
        x, y = stored, ""
        parts.cast("cast_b", spec.b, op.dtypes[0])
    row = "r = np.intp(slots[q]) if flags & XLIST else q" if op.program.uses & {"i", "j", "k"} else ""
    return {"op_x": parts.call("op", op.program, x=x, y=y, i=ROW, j="0", k="0", t="thunk"), "row_of_entry": row}


def _merge(kind, spec, parts):
    if spec.op is None:
        only_a, only_b = _one_sided(spec, parts, "avals[i * astride]", "bvals[j * bstride]")
        return {"op_merge": only_a, "only_a": only_a, "only_b": only_b}
    parts.define("op", spec.op.program)
    parts.cast("cast_a", spec.a, spec.op.dtypes[0])
    parts.cast("cast_b", spec.b, spec.op.dtypes[1])
    parts.cast("cast_out", spec.op.return_type, spec.out)
    column = "user_id(np.int64(out_cols[at]), starts, bounds)"
    ids = {"i": ROW, "k": inner_id(spec.op, ROW, column), "j": column}
    inner = parts.call("op", spec.op.program, x="cast_a(avals[i * astride])", y="cast_b(bvals[j * bstride])", **ids)
    only_a, only_b = _one_sided(spec, parts, "avals[i * astride]", "bvals[j * bstride]", **ids)
    return {"op_merge": f"cast_out({inner})", "only_a": only_a, "only_b": only_b}


_GAPS = {
    "product": cpu_products.product,
    "combine": cpu_products.combine,
    "drain": cpu_products.drain,
    "write": _write,
    "ewise": _ewise,
    "map": _map,
    "reduce": _reduce,
    "matrix_map": _matrix_map,
    "scale": _scale,
    "merge": _merge,
    "mxm": cpu_mxm.names,
    "moved": _moving,
    "runs": cpu_mxm.names,
    "relax": cpu_relax.names,
}
_BODIES = BODIES | cpu_products.BODIES | cpu_mxm.BODIES | cpu_relax.BODIES


def _names(kind, spec, parts):
    """What fills the gaps of a body, by the role of its kind."""
    fill = _GAPS.get(ROLES.get(kind, ""))
    return {} if fill is None else fill(kind, spec, parts)


_CALLED = {"fetch": FETCH, "user_id": USER_ID, "count_degree": COUNT_DEGREE, "row_id": ROW_ID, "sort": SORT}


def source(kind: str, spec: Spec) -> str:
    """The module text of one kernel instance: a header, and one function named `kernel`."""
    from ..semiring._lower import cast_program

    parts = _Parts(cast_program)
    names = _names(kind, spec, parts)
    body = fill(_BODIES[kind], names)
    head = [f'"""{kind}, generated."""', "import math", "import numpy as np", FLAGS]
    head += [text for name, text in _CALLED.items() if f"{name}(" in body]
    return "\n".join([*head, "", *parts.text, "", f"def kernel({', '.join(KINDS[kind].names)}):"]) + body
