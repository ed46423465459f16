"""Texts of the CPU kernels. Each is a plain Python function in terms of a few names (mult, add, op, cast_*, START, TERMINAL) that a
generated header defines for one instance; numba compiles header and body together. Contract: interface.py."""

from ..semiring._lower import literal_numba, to_numba
from ..semiring._types import BOOL
from .interface import KINDS, Spec

FLAGS = """
MASKED, COMPLEMENT, XFULL, TRACE, XLIST, TFULL, REPLACE, REGION = 1, 2, 4, 8, 16, 32, 64, 128
CFULL, AFULL, BFULL, OUTFULL, VALUED = 256, 512, 1024, 2048, 4096
"""

USER_ID = """
@njit
def user_id(slot, starts, bounds):
    b = 0
    while starts[b + 1] <= slot:
        b += 1
    return bounds[b] + slot - starts[b]
"""

# Bits of the rows of a word that a mask lets through; a word of ones where there is none.
ALLOW = """
        allow = -1
        if flags & MASKED:
            allow = mwords[w]
            if flags & COMPLEMENT:
                allow = ~allow
"""

PASSES = "not masked or ((mwords[{r} >> 6] >> ({r} & 63)) & 1) != unwanted"

BODIES = {
    "pull": """
    full = flags & XFULL
    found, edges, rows = 0, 0, 0
    {iso_value}
    for w in range((n + 63) >> 6):
        first = w << 6
{ALLOW}
        bits = 0
        if allow != 0:
            for r in range(first, min(first + 64, n)):
                if (allow >> (r - first)) & 1 == 0:
                    continue
                rows += 1
                begin, end = np.intp(indptr[r]), np.intp(indptr[r + 1])
                if begin == end:
                    continue
                {acc_start}
                hit = False
                if full:
                    {full_loop}
                else:
                    for e in range(begin, end):
                        edges += 1
                        c = np.intp(cols[e])
                        if (xwords[c >> 6] >> (c & 63)) & 1:
                            hit = True
                            {accumulate}
                            {stop}
                if hit:
                    bits |= 1 << (r - first)
                    found += 1
                    {store}
        out_words[w] = bits
    count[0] += found
    if flags & TRACE:
        stats[0] += edges
        stats[1] += rows
""",
    "push": """
    full, listed = flags & XFULL, flags & XLIST
    masked = flags & MASKED
    unwanted = 1 if flags & COMPLEMENT else 0
    top, edges, rows = touched_count[0], 0, 0
    size = count[0] if listed else n
    {iso_value}
    q = -1
    while q + 1 < size:
        q += 1
        if listed:
            r = np.intp(slots[q])
        else:
            r = q
            if not full:
                word = xwords[q >> 6]
                if word == 0:
                    q |= 63
                    continue
                if (word >> (q & 63)) & 1 == 0:
                    continue
        rows += 1
        {load_x}
        begin, end = np.intp(indptr[r]), np.intp(indptr[r + 1])
        edges += end - begin
        for e in range(begin, end):
            c = np.intp(cols[e])
            if masked and own_lo <= c and c < own_hi:
                o = c - own_lo
                if ((mwords[o >> 6] >> (o & 63)) & 1) == unwanted:
                    continue
            w = c >> 6
            bit = 1 << (c & 63)
            new = acc_words[w] & bit == 0
            {scatter}
            if new:
                acc_words[w] |= bit
                touched[top] = c
                top += 1
    touched_count[0] = top
    if flags & TRACE:
        stats[0] += edges
        stats[1] += rows
""",
    "combine": """
    masked = flags & MASKED
    unwanted = 1 if flags & COMPLEMENT else 0
    top = touched_count[0]
    for q in range(count[0]):
        c = np.intp(slots[q])
        if masked and ((mwords[c >> 6] >> (c & 63)) & 1) == unwanted:
            continue
        w = c >> 6
        bit = 1 << (c & 63)
        new = acc_words[w] & bit == 0
        {scatter}
        if new:
            acc_words[w] |= bit
            touched[top] = c
            top += 1
    touched_count[0] = top
""",
    "drain": """
    b = 0
    for q in range(touched_count[0]):
        c = np.intp(touched[q])
        acc_words[c >> 6] = 0
        while c < starts[b]:
            b -= 1
        while c >= starts[b + 1]:
            b += 1
        at = starts[b] + out_counts[b]
        out_slots[at] = c - starts[b]
        {move}
        out_counts[b] += 1
""",
    "frontier_edges": """
    total = 0
    if flags & XLIST:
        for q in range(count[0]):
            r = slots[q]
            total += indptr[r + 1] - indptr[r]
    elif flags & XFULL:
        total = np.int64(indptr[n])
    else:
        for w in range((n + 63) >> 6):
            word = xwords[w]
            if word != 0:
                for r in range(w << 6, min((w << 6) + 64, n)):
                    if (word >> (r & 63)) & 1:
                        total += indptr[r + 1] - indptr[r]
    out[0] += total
""",
    "write": """
    found = 0
    for w in range((n + 63) >> 6):
        first = w << 6
        last = min(first + 64, n)
        valid = -1 if last - first == 64 else (1 << (last - first)) - 1
{ALLOW}
        region = rwords[w] if flags & REGION else -1
        held = valid if flags & CFULL else cwords[w]
        given = valid if flags & TFULL else twords[w]
        target = allow & region & given
        kept = held
        if flags & REPLACE:
            kept &= allow
        {delete}
        if not flags & CFULL:
            cwords[w] = kept | target
            word = kept | target
            while word != 0:
                word &= word - 1
                found += 1
        if target != 0:
            for r in range(first, last):
                if (target >> (r - first)) & 1:
                    {store_c}
    count[0] += n if flags & CFULL else found
""",
    "write_list": """
    masked = flags & MASKED
    unwanted = 1 if flags & COMPLEMENT else 0
    found = 0
    for q in range(tcount[0]):
        r = np.intp(tslots[q])
        if masked and ((mwords[r >> 6] >> (r & 63)) & 1) == unwanted:
            continue
        bit = 1 << (r & 63)
        old = flags & CFULL or cwords[r >> 6] & bit != 0
        {store_c}
        if not old:
            cwords[r >> 6] |= bit
            found += 1
    count[0] += found
""",
    "ewise": """
    found = 0
    for w in range((n + 63) >> 6):
        first = w << 6
        last = min(first + 64, n)
        valid = -1 if last - first == 64 else (1 << (last - first)) - 1
        ina = valid if flags & AFULL else awords[w]
        inb = valid if flags & BFULL else bwords[w]
        both = ina & inb
        if both == -1:
            for r in range(first, last):
                out_vals[r] = {op_ab}
        elif ina | inb != 0:
            for r in range(first, last):
                if (both >> (r - first)) & 1:
                    out_vals[r] = {op_ab}
                {one_sided}
        if not flags & OUTFULL:
            word = {present}
            out_words[w] = word
            while word != 0:
                word &= word - 1
                found += 1
    count[0] += n if flags & OUTFULL else found
""",
    "ewise_list": """
    top = 0
    for q in range(count[0]):
        r = np.intp(slots[q])
        if flags & BFULL or (bwords[r >> 6] >> (r & 63)) & 1:
            out_slots[top] = r
            out_vals[top] = {op_list}
            top += 1
    out_count[0] += top
""",
    "apply": """
    size = count[0] if flags & XLIST else n
    for q in range(size):
        {row_of_entry}
        out_vals[q] = {op_x}
""",
    "select": """
    found = 0
    for w in range((n + 63) >> 6):
        word = -1 if flags & XFULL else xwords[w]
        bits = 0
        if word != 0:
            first = w << 6
            for r in range(first, min(first + 64, n)):
                if (word >> (r - first)) & 1:
                    q = r
                    if {op_x}:
                        bits |= 1 << (r - first)
                        found += 1
        out_words[w] = bits
    count[0] += found
""",
    "select_list": """
    top = 0
    for q in range(count[0]):
        r = np.intp(slots[q])
        if {op_x}:
            out_slots[top] = r
            out_vals[top] = xvals[q * xstride]
            top += 1
    out_count[0] += top
""",
    "reduce": """
    acc = START
    hit = False
    if flags & XLIST or flags & XFULL:
        size = count[0] if flags & XLIST else n
        for q in range(size):
            {take_q}
            {stop}
        hit = size > 0
    else:
        for w in range((n + 63) >> 6):
            word = xwords[w]
            if word != 0:
                hit = True
                for r in range(w << 6, min((w << 6) + 64, n)):
                    if (word >> (r & 63)) & 1:
                        {take_r}
                {stop}
    out_vals[0] = acc
    out_words[0] = 1 if hit else 0
""",
    "mask_words": """
    for w in range((n + 63) >> 6):
        first = w << 6
        word = -1 if flags & XFULL else xwords[w]
        bits = 0
        if word != 0:
            for r in range(first, min(first + 64, n)):
                if (word >> (r - first)) & 1 and xvals[r * xstride] != 0:
                    bits |= 1 << (r - first)
        out_words[w] = bits
""",
    "list_words": """
    for q in range(count[0]):
        if not flags & VALUED or xvals[q * xstride] != 0:
            r = np.intp(slots[q])
            out_words[r >> 6] |= 1 << (r & 63)
""",
    "mask_list": """
    unwanted = 1 if flags & COMPLEMENT else 0
    top = 0
    for q in range(count[0]):
        r = np.intp(slots[q])
        if ((mwords[r >> 6] >> (r & 63)) & 1) != unwanted:
            out_slots[top] = r
            out_vals[top] = xvals[q * xstride]
            top += 1
    out_count[0] += top
""",
    "scatter": """
    for q in range(count[0]):
        r = np.intp(slots[q])
        out_words[r >> 6] |= 1 << (r & 63)
        out_vals[r] = xvals[q * xstride]
""",
    "compact": """
    top = 0
    for w in range((n + 63) >> 6):
        first = w << 6
        word = -1 if flags & XFULL else xwords[w]
        if word != 0:
            for r in range(first, min(first + 64, n)):
                if (word >> (r - first)) & 1:
                    out_slots[top] = r
                    if xstride:
                        out_vals[top] = xvals[r]
                    top += 1
    out_count[0] += top
""",
    "gather": """
    found = 0
    for w in range((n + 63) >> 6):
        first = w << 6
        bits = 0
        for r in range(first, min(first + 64, n)):
            s = index[r]
            if s >= 0 and (flags & XFULL or (xwords[s >> 6] >> (s & 63)) & 1):
                out_vals[r] = xvals[s * xstride]
                bits |= 1 << (r - first)
                found += 1
        out_words[w] = bits
    count[0] += found
""",
    "matrix_select_count": """
    for r in range(n):
        length = 0
        for e in range(np.intp(indptr[r]), np.intp(indptr[r + 1])):
            if {op_entry}:
                length += 1
        out_lengths[r] = length
""",
    "matrix_select": """
    for r in range(n):
        at = np.intp(out_indptr[r])
        for e in range(np.intp(indptr[r]), np.intp(indptr[r + 1])):
            if {op_entry}:
                out_cols[at] = cols[e]
                if astride:
                    out_vals[at] = avals[e]
                at += 1
""",
    "matrix_apply": """
    for r in range(n):
        for e in range(np.intp(indptr[r]), np.intp(indptr[r + 1])):
            out_vals[e] = {op_entry}
""",
    "merge_count": """
    for r in range(n):
        i, iend, j, jend = np.intp(aptr[r]), np.intp(aptr[r + 1]), np.intp(bptr[r]), np.intp(bptr[r + 1])
        length = 0
        while i < iend or j < jend:
            if j == jend or (i < iend and acols[i] < bcols[j]):
                length += keep & 1
                i += 1
            elif i == iend or bcols[j] < acols[i]:
                length += (keep >> 1) & 1
                j += 1
            else:
                length += (keep >> 2) & 1
                i += 1
                j += 1
        out_lengths[r] = length
""",
    "merge": """
    for r in range(n):
        i, iend, j, jend = np.intp(aptr[r]), np.intp(aptr[r + 1]), np.intp(bptr[r]), np.intp(bptr[r + 1])
        at = np.intp(out_indptr[r])
        while i < iend or j < jend:
            if j == jend or (i < iend and acols[i] < bcols[j]):
                if keep & 1:
                    out_cols[at] = acols[i]
                    out_vals[at] = cast_ac(avals[i * astride])
                    at += 1
                i += 1
            elif i == iend or bcols[j] < acols[i]:
                if keep & 2:
                    out_cols[at] = bcols[j]
                    out_vals[at] = cast_bc(bvals[j * bstride])
                    at += 1
                j += 1
            else:
                if keep & 4:
                    out_cols[at] = acols[i]
                    out_vals[at] = {op_merge}
                    at += 1
                i += 1
                j += 1
""",
}


class _Parts:
    """The header under construction: each name once, and the expressions that use them."""

    def __init__(self, cast_program):
        self.text: list[str] = []
        self._cast_program = cast_program

    def define(self, name, program):
        self.text.append("@njit\n" + to_numba(program, name))
        return name

    def cast(self, name, source, target):
        if source is target or source is None:
            self.text.append(f"@njit\ndef {name}(x):\n    return x\n")
        else:
            self.define(name, self._cast_program(source, target))

    def call(self, name, program, **arguments):
        """`name(...)` with the arguments that the program has, in its order."""
        return f"{name}({', '.join(arguments[p] if p in program.uses else '0' for p, _ in program.params)})"


def _product(kind, spec, parts):
    """Expressions of pull and push: terms of one row, and what stops it."""
    semiring, flip = spec.op, spec.flip
    multiply, monoid = semiring.multiply, semiring.monoid
    left, right = multiply.dtypes if len(multiply.dtypes) == 2 else multiply.dtypes * 2
    parts.cast("cast_x", spec.b, left if flip else right)
    parts.cast("cast_a", spec.a, right if flip else left)
    parts.define("mult", multiply.program)
    parts.define("add", monoid.binary.program)
    parts.text.append(f"START = {literal_numba(monoid.start, monoid.dtype)}")
    uses = multiply.program.uses
    inner = "user_id(c, starts, bounds)" if kind == "pull" else "row0 + r"
    outer = "row0 + r" if kind == "pull" else "user_id(c, starts, bounds)"
    x_value = {"pull": "cast_x(xvals[c * xstride])", "push": "x"}[kind]

    def term(x, a):
        values = (x, a) if flip else (a, x)
        return parts.call("mult", multiply.program, x=values[0], y=values[1], k=inner, i="0" if flip else outer, j=outer if flip else "0")

    value = term(x_value, "cast_a(avals[e * astride])")
    first = term("cast_x(xvals[0])", "cast_a(avals[0])")
    stop = "if acc == TERMINAL:\n{pad}break" if monoid.terminal is not None else ""
    if monoid.terminal is not None:
        parts.text.append(f"TERMINAL = {literal_numba(monoid.terminal, monoid.dtype)}")
    names = {"ALLOW": ALLOW, "iso_value": "", "load_x": ""}
    if spec.iso:
        names |= dict(iso_value=f"{'out_vals' if kind == 'pull' else 'acc_vals'}[0] = {first}", acc_start="", accumulate="break", stop="", store="",
                      full_loop="hit = True", scatter="")
        return names
    if monoid.is_any:
        names |= dict(acc_start="acc = START", accumulate=f"acc = {value}\nbreak", stop="", store="out_vals[r] = acc",
                      full_loop=f"e = begin\nc = np.intp(cols[e])\nedges += 1\nacc = {value}\nhit = True",
                      scatter=f"if new:\n    acc_vals[c] = {value}")
    else:
        names |= dict(acc_start="acc = START", accumulate=f"acc = add(acc, {value})", stop=stop.format(pad="    "), store="out_vals[r] = acc",
                      full_loop=_full_loop(value, stop), scatter=f"acc_vals[c] = add(acc_vals[c], {value})")
    if "x" in uses or "y" in uses:
        names["load_x"] = "x = cast_x(xvals[q * xstride])"
    return names


def _full_loop(value, stop):
    """All terms of a row of pull when x is full. Unsigned indices spare the check for negative ones; strides of one the multiplications."""
    if stop:
        return (f"e = begin\nfor e in range(begin, end):\n    c = np.intp(cols[e])\n    acc = add(acc, {value})\n    {stop.format(pad='        ')}\n"
                "edges += e + 1 - begin\nhit = True")
    plain = value.replace("[e * astride]", "[e]").replace("[c * xstride]", "[c]")
    return (f"if astride == 1 and xstride == 1:\n    for e in range(np.uintp(begin), np.uintp(end)):\n        c = np.uintp(cols[e])\n        acc = add(acc, {plain})\n"
            f"else:\n    for e in range(begin, end):\n        c = np.intp(cols[e])\n        acc = add(acc, {value})\n"
            "edges += end - begin\nhit = True")


def _names(kind, spec, parts):
    """What fills the gaps of a body."""
    op = spec.op
    if kind in ("pull", "push"):
        return _product(kind, spec, parts)
    if kind == "combine":
        if not spec.iso:
            parts.define("add", op.binary.program)
        if spec.iso:
            return {"scatter": ""}
        return {"scatter": "if new:\n    acc_vals[c] = vals[q]" if op.is_any else "acc_vals[c] = add(acc_vals[c], vals[q])"}
    if kind == "drain":
        return {"move": "" if spec.iso else "out_vals[at] = acc_vals[c]\nacc_vals[c] = start"}
    if kind in ("write", "write_list"):
        return _write(kind, spec, parts)
    if kind in ("ewise", "ewise_list"):
        return _ewise(kind, spec, parts)
    if kind == "reduce":
        parts.define("add", op.binary.program)
        parts.cast("cast_b", spec.b, op.dtype)
        parts.text.append(f"START = {literal_numba(op.start, op.dtype)}")
        takes = {"take_q": "acc = add(acc, cast_b(xvals[q * xstride]))", "take_r": "acc = add(acc, cast_b(xvals[r * xstride]))"}
        if op.is_any:
            return {"take_q": "acc = cast_b(xvals[q * xstride])", "take_r": "acc = cast_b(xvals[r * xstride])", "stop": "break"}
        if op.terminal is None:
            return {**takes, "stop": ""}
        parts.text.append(f"TERMINAL = {literal_numba(op.terminal, op.dtype)}")
        return {**takes, "stop": "if acc == TERMINAL:\n    break"}
    if kind in ("apply", "select", "select_list"):
        return _map(kind, spec, parts)
    if kind in ("matrix_select_count", "matrix_select", "matrix_apply"):
        parts.define("op", op.program)
        parts.cast("cast_a", spec.a, op.dtypes[0])
        return {"op_entry": parts.call("op", op.program, x="cast_a(avals[e * astride])", i="row0 + r", j="user_id(np.int64(cols[e]), starts, bounds)", t="thunk")}
    if kind == "merge":
        return _merge(spec, parts)
    return {}


def _write(kind, spec, parts):
    row = "r" if kind == "write" else "q"
    parts.cast("cast_t", spec.b, spec.a)
    plain = f"cvals[r] = cast_t(tvals[{row} * tstride])"
    if spec.op is None:
        return {"ALLOW": ALLOW, "delete": "kept &= ~(allow & region)", "store_c": plain}
    parts.define("op", spec.op.program)
    first, second = spec.op.dtypes
    parts.cast("cast_c_in", spec.a, first)
    parts.cast("cast_t_in", spec.b, second)
    parts.cast("cast_out", spec.op.return_type, spec.a)
    both = f"cast_out({parts.call('op', spec.op.program, x='cast_c_in(cvals[r])', y=f'cast_t_in(tvals[{row} * tstride])', i='0', j='0', k='0')})"
    old = "(held >> (r - first)) & 1" if kind == "write" else "old"
    return {"ALLOW": ALLOW, "delete": "", "store_c": f"if {old}:\n    cvals[r] = {both}\nelse:\n    {plain}"}


def _ewise(kind, spec, parts):
    op = spec.op
    first, second = op.dtypes
    parts.define("op", op.program)
    swapped = kind == "ewise_list" and spec.side == "right"
    parts.cast("cast_a", spec.a, second if swapped else first)
    parts.cast("cast_b", spec.b, first if swapped else second)
    if kind == "ewise_list":
        values = ["cast_a(avals[q * astride])", "cast_b(bvals[r * bstride])"]
        x, y = reversed(values) if swapped else values
        return {"op_list": parts.call("op", op.program, x=x, y=y, i="row0 + r", k="0", j="0")}
    both = parts.call("op", op.program, x="cast_a(avals[r * astride])", y="cast_b(bvals[r * bstride])", i="row0 + r", k="0", j="0")
    if spec.side != "union":
        return {"op_ab": both, "one_sided": "", "present": "both"}
    parts.cast("cast_ac", spec.a, spec.out)
    parts.cast("cast_bc", spec.b, spec.out)
    one_sided = ("elif (ina >> (r - first)) & 1:\n    out_vals[r] = cast_ac(avals[r * astride])\n"
                 "elif (inb >> (r - first)) & 1:\n    out_vals[r] = cast_bc(bvals[r * bstride])")
    return {"op_ab": both, "one_sided": one_sided, "present": "ina | inb"}


def _map(kind, spec, parts):
    op = spec.op
    parts.define("op", op.program)
    stored = "cast_b(xvals[q * xstride])"
    if spec.side:  # a binary operator with one side bound
        x, y = ("thunk", stored) if spec.side == "left" else (stored, "thunk")
        parts.cast("cast_b", spec.b, op.dtypes[1 if spec.side == "left" else 0])
    else:
        x, y = stored, ""
        parts.cast("cast_b", spec.b, op.dtypes[0])
    row = "r = np.intp(slots[q]) if flags & XLIST else q" if op.program.uses & {"i", "j", "k"} else ""
    return {"op_x": parts.call("op", op.program, x=x, y=y, i="row0 + r", j="0", k="0", t="thunk"), "row_of_entry": row}


def _merge(spec, parts):
    parts.cast("cast_ac", spec.a, spec.out)
    parts.cast("cast_bc", spec.b, spec.out)
    if spec.op is None:
        return {"op_merge": "cast_ac(avals[i * astride])"}
    parts.define("op", spec.op.program)
    parts.cast("cast_a", spec.a, spec.op.dtypes[0])
    parts.cast("cast_b", spec.b, spec.op.dtypes[1])
    parts.cast("cast_out", spec.op.return_type, spec.out)
    inner = parts.call("op", spec.op.program, x="cast_a(avals[i * astride])", y="cast_b(bvals[j * bstride])", i="0", k="0", j="0")
    return {"op_merge": f"cast_out({inner})"}


def _fill(body: str, names: dict[str, str]) -> str:
    """Put each expression in its gap; further lines of it take the indentation of the gap."""
    lines = []
    for line in body.split("\n"):
        gap = line.strip()
        if gap.startswith("{") and gap.endswith("}") and gap[1:-1] in names:
            pad = "" if gap == "{ALLOW}" else line[: len(line) - len(line.lstrip())]
            lines += [pad + inner for inner in names[gap[1:-1]].split("\n") if inner.strip()]
        else:
            for name, text in names.items():
                line = line.replace("{" + name + "}", text)
            lines.append(line)
    return "\n".join(lines)


def source(kind: str, spec: Spec) -> str:
    """The module text of one kernel instance: a header, and one function named `kernel`."""
    from ..semiring._lower import cast_program

    parts = _Parts(cast_program)
    names = _names(kind, spec, parts)
    body = _fill(BODIES[kind], names)
    contract = "fastmath={'contract'}, " if kind == "pull" and getattr(spec.op, "name", "") == "plus_times" and spec.out is not BOOL else ""
    head = [f'"""{kind}, generated."""', "import math", "import numpy as np", "from numba import njit as _njit", "",
            "njit = _njit(nogil=True, error_model='numpy')", FLAGS]
    if "user_id(" in body:
        head.append(USER_ID)
    signature = f"@_njit({contract}nogil=True, cache=True, error_model='numpy')\ndef kernel({', '.join(KINDS[kind])}):"
    return "\n".join(head) + "\n\n" + "\n\n".join(parts.text) + "\n\n\n" + signature + body
