"""CPU kernels of products of matrices: bodies, and what fills their gaps. Contract: interface.py.

A row's workspace `marks` tells where a column lies in it: by column, or (Spec.hashed) by a table of (column + 1, place,
row + 1) whose entries hold for one row only, so that nothing is cleared. mxm_gustavson has the sums of a row in `sums`,
by column or by place; its marks are bits of the columns, and behind them a bit for each word of these.
"""

from typing import Any

from ..semiring._lower import literal_text
from .cpu_bodies import ROW, fill
from .interface import Spec, counts_hits

# find(marks, c, stamp): 1 + place of column c, 0 if it has none; place(marks, c, value, stamp) gives it one.
DENSE = """
def find(marks, c, stamp):
    return marks[c]


def place(marks, c, value, stamp):
    marks[c] = value
"""
HASHED = """
def found(marks, c, stamp):
    size = len(marks) // 3
    h = (c * 2654435761) & (size - 1)
    while marks[3 * h + 2] == stamp and marks[3 * h] != c + 1:
        h = (h + 1) & (size - 1)
    return 3 * h


def find(marks, c, stamp):
    h = found(marks, c, stamp)
    if marks[h + 2] == stamp:
        return marks[h + 1]
    return 0


def place(marks, c, value, stamp):
    h = found(marks, c, stamp)
    marks[h] = c + 1
    marks[h + 1] = value
    marks[h + 2] = stamp
"""
BODIES = {
    "mxm_rows": """
    {iso_value}
    for r in range(n):
        mbegin, mend = np.intp(mptr[r]), np.intp(mptr[r + 1])
        begin, end = np.intp(indptr[r]), np.intp(indptr[r + 1])
        if mbegin == mend or begin == end:
            continue
        for p in range(mbegin, mend):
            place(marks, np.intp(mcols[p]), p - mbegin + 1, r + 1)
            {start}
        for e in range(begin, end):
            k = np.intp(cols[e])
            for f in range(np.intp(bptr[k]), np.intp(bptr[k + 1])):
                c = np.intp(bcols[f])
                at = find(marks, c, r + 1)
                if at != 0:
                    q = mbegin + at - 1
                    {accumulate}
                    out_found[q] = True
        {clear}
""",
    "mxm_dot": """
    {iso_value}
    for r in range(n):
        mbegin, mend = np.intp(mptr[r]), np.intp(mptr[r + 1])
        begin, end = np.intp(indptr[r]), np.intp(indptr[r + 1])
        if mbegin == mend or begin == end:
            continue
        marked = False
        for q in range(mbegin, mend):
            c = np.intp(mcols[q])
            f, last = np.intp(bptr[c]), np.intp(bptr[c + 1])
            if f == last:
                continue
            {start}
            hit = False
            if (end - begin) * 16 < last - f:  # few entries beside many: look for each in the sorted list
                for e in range(begin, end):
                    k = np.intp(cols[e])
                    low, high = f, last
                    while low < high:
                        middle = (low + high) >> 1
                        if bcols[middle] < k:
                            low = middle + 1
                        else:
                            high = middle
                    f = low
                    if f < last and bcols[f] == k:
                        hit = True
                        {accumulate}
                        {stop}
            else:
                if not marked:
                    for e in range(begin, end):
                        place(marks, np.intp(cols[e]), {where}, r + 1)
                    marked = True
                {count_hits}
                for f in range(f, last):
                    k = np.intp(bcols[f])
                    at = find(marks, k, r + 1)
                    if at != 0:
                        e = begin + at - 1
                        hit = True
                        {accumulate}
                        {stop}
            if hit:
                out_found[q] = True
        {clear}
""",
    "mxm_dense": """
    {iso_value}
    for r in range(n):
        begin, end = np.intp(indptr[r]), np.intp(indptr[r + 1])
        base, done = np.intp(out_indptr[r]), 0
        {quads}
        for e in range(begin if done < width else end, end):
            k = np.intp(cols[e])
            first = np.intp(bptr[k])
            if e == begin:
                for c in range(done, width):
                    f, q = first + c, base + c
                    {assign}
            else:
                for c in range(done, width):
                    f, q = first + c, base + c
                    {accumulate}
""",
    "mxm_expand": """
    {iso_value}
    for r in range(n):
        for e in range(np.intp(indptr[r]), np.intp(indptr[r + 1])):
            k = np.intp(cols[e])
            q = np.intp(begins[e])
            for f in range(np.intp(bptr[k]), np.intp(bptr[k + 1])):
                c = np.intp(bcols[f])
                out_keys[q] = r * width + c
                {assign}
                q += 1
""",
    "mxm_gustavson": """
    {iso_value}
    r, top, words = np.intp(progress[0]), np.intp(0), (width + 63) >> 6
    while r < n:
        begin, end, count = np.intp(indptr[r]), np.intp(indptr[r + 1]), np.intp(terms[r])
        if top + min(count, width) >= len(out_cols):
            break
        first, stamp = top, r + 1
        if (end - begin == 1 or {few}) and not flags & MASKED:  # each term is put in its place
            for e in range(begin, end):
                k, q = np.intp(cols[e]), first
                for f in range(np.intp(bptr[k]), np.intp(bptr[k + 1])):
                    c = np.intp(bcols[f])
                    while q < top and np.intp(out_cols[q]) < c:
                        q += 1
                    if q < top and np.intp(out_cols[q]) == c:
                        {combine}
                    else:
                        p = top
                        while p > q:
                            out_cols[p] = out_cols[p - 1]
                            {shift}
                            p -= 1
                        out_cols[q] = c
                        {assign}
                        top += 1
                    q += 1
        elif {short}:
            if flags & MASKED:
                for p in range(np.intp(mptr[r]), np.intp(mptr[r + 1])):
                    c = np.intp(mcols[p])
                    {bar}
            for e in range(begin, end):
                k = np.intp(cols[e])
                {left}
                for f in range(np.intp(bptr[k]), np.intp(bptr[k + 1])):
                    c = np.intp(bcols[f])
                    {mark}
                    {accumulate}
                    out_cols[top] = c
                    top += np.intp(new)
            {unbar}
            {sort}
            for q in range(first, top):
                c = np.intp(out_cols[q])
                {look_up}
                {store}
        {sweep}
        out_lengths[r] = top - first
        r += 1
    progress[0], progress[1] = r, top
""",
    "mxm_terms": """
    for r in range(n):
        count = np.intp(0)
        for e in range(np.intp(indptr[r]), np.intp(indptr[r + 1])):
            k = np.intp(cols[e])
            count += np.intp(bptr[k + 1]) - np.intp(bptr[k])
        out_lengths[r] = count
""",
    "combine_runs": """
    for q in range(n):
        begin = starts[q]
        end = starts[q + 1] if q + 1 < n else len(order)
        acc = vals[order[begin]]
        for e in range(begin + 1, end):
            {accumulate}
        out_vals[q] = acc
""",
}
# A sum of ones is the number of hits: counted without a branch; nothing is left for the loop that follows.
_COUNT_HITS = """hits = 0
for g in range(np.uintp(f), np.uintp(last)):
    hits += np.intp(marks[np.uintp(bcols[g])] != 0)
hit = hits != 0
out_vals[q] = hits
f = last"""
# Rows of at most so many terms are sorted; with 64 instead, A @ A of deezer-HU takes 6 % longer (EPYC, 2026-11-29).
_SHORT = "count <= 24"
_FEW = "count <= 16"  # terms that are put in their places: with 8 A @ A of luxembourg_osm takes 6 % longer
_BAR = "marks[c >> 6] = np.uint64(marks[c >> 6]) | (ONE << np.uint64(c & 63))"
_MARK = """at, w, bit = c, c >> 6, ONE << np.uint64(c & 63)
old = np.uint64(marks[w])
marks[w] = old | bit
new = (old & bit) == 0"""
_INSERTION = """for q in range(first + 1, top):
    c, at = np.intp(out_cols[q]), q
    while at > first and np.intp(out_cols[at - 1]) > c:
        out_cols[at] = out_cols[at - 1]
        at -= 1
    out_cols[at] = c"""
_UNBAR = """if flags & MASKED:
    for p in range(np.intp(mptr[r]), np.intp(mptr[r + 1])):
        at = np.intp(mcols[p])
        marks[at >> 6] = np.uint64(marks[at >> 6]) & ~(ONE << np.uint64(at & 63))
        {clear}"""
# Without a branch: whether a column is new is as good as random.
_TERMS = """for e in range(begin, end):
    k = np.intp(cols[e])
    {left}
    for f in range(np.intp(bptr[k]), np.intp(bptr[k + 1])):
        c = np.intp(bcols[f])
        at, w = c, c >> 6
        {accumulate}
        marks[w] = np.uint64(marks[w]) | (ONE << np.uint64(c & 63))
        {above}"""
_ABOVE = "marks[words + (w >> 6)] = np.uint64(marks[words + (w >> 6)]) | (ONE << np.uint64(w & 63))"
# The bits give the columns in ascending order. Where a row has far more terms than there are words of bits, all words
# are looked at: writing to few places above them, each term would wait for the one before.
_SWEEP = """elif count < 8 * words:
    {terms_above}
    {read_off}
else:
    {terms}
    for w in range(words):
        {above}
    {read_off}"""
_READ_OFF = """{unbar}
for s in range((words + 63) >> 6):
    some = np.uint64(marks[words + s])
    marks[words + s] = 0
    while some != 0:
        w = (s << 6) + lowest(some)
        some &= some - ONE
        word = np.uint64(marks[w])
        marks[w] = 0
        while word != 0:
            out_cols[top] = (w << 6) + lowest(word)
            word &= word - ONE
            top += 1
{stores}"""
_STORES = """for q in range(first, top):
    at = np.intp(out_cols[q])
    {store}"""
_ENTERED = """
def entered(marks, c, value, stamp):
    h = found(marks, c, stamp)
    if marks[h + 2] != stamp:
        place(marks, c, value, stamp)
    return marks[h + 1]
"""

# Four columns at a time, whose sums stay in registers.
_QUADS = """while astride == 1 and bstride == 1 and begin < end and done + 4 <= width:
    k = np.intp(cols[begin])
    f, a = np.intp(bptr[k]) + np.intp(done), avals[np.intp(begin)]
    {first}
    for e in range(np.intp(begin + 1), np.intp(end)):
        k = np.intp(cols[e])
        f, a = np.intp(bptr[k]) + np.intp(done), avals[e]
        {further}
    {store}
    done += 4"""


def names(kind: str, spec: Spec, parts: Any) -> dict[str, str]:
    """What fills the gaps of a body."""
    if kind == "combine_runs":
        return _runs(spec, parts)
    if kind == "mxm_terms":
        return {}
    parts.text.append(HASHED if spec.hashed else DENSE)
    gaps = _terms(kind, spec, parts)
    return _gustavson(spec, parts, gaps) if kind == "mxm_gustavson" else gaps


def _gustavson(spec: Spec, parts: Any, gaps: dict[str, str]) -> dict[str, str]:
    """A row's sums begin with the monoid's start, which is restored when they are stored. Columns that a mask bars are
    marked before a short row, so that they are not new; what is summed up there is dropped."""
    monoid = spec.op.monoid
    start = "" if spec.iso or monoid.is_any else f"sums[at] = {literal_text(monoid.start, monoid.dtype)}"
    gaps["store"] = "" if spec.iso else f"out_vals[q] = sums[at]\n{start}".strip()
    gaps["few"] = _FEW
    gaps["combine"] = gaps["accumulate"] or "pass"
    gaps["shift"] = "" if spec.iso else "out_vals[p] = out_vals[p - 1]"
    entry = "cast_a(avals[e * astride])"  # read once: no store may have changed it
    gaps["left"] = f"left = {entry}" if entry in gaps["accumulate"] else ""
    gaps["accumulate"] = gaps["accumulate"].replace("out_vals[q]", "sums[at]").replace(entry, "left")
    if spec.hashed:
        parts.text.append(_ENTERED)
        own = {
            "short": "True",
            "sort": "sort(out_cols, first, top)",
            "bar": "place(marks, c, len(sums), stamp)",
            "mark": "at = entered(marks, c, top - first + 1, stamp) - 1\nnew = at == top - first",
            "look_up": "at = find(marks, c, stamp) - 1",
            "unbar": "",
            "sweep": "",
        }
        return gaps | own
    unbar = fill(_UNBAR, {"clear": start})
    stores = fill(_STORES, gaps) if gaps["store"] else ""
    sweep = {
        "terms_above": fill(_TERMS, {**gaps, "above": _ABOVE}),
        "terms": fill(_TERMS, {**gaps, "above": ""}),
        "above": _ABOVE,
        "read_off": fill(_READ_OFF, {"unbar": unbar, "stores": stores}),
    }
    own = {"short": _SHORT, "sort": _INSERTION, "bar": _BAR, "mark": _MARK, "unbar": unbar}
    return gaps | own | {"look_up": "at = c\nmarks[c >> 6] = 0", "sweep": fill(_SWEEP, sweep)}


def _terms(kind: str, spec: Spec, parts: Any) -> dict[str, str]:
    multiply, monoid = spec.op.multiply, spec.op.monoid
    parts.cast("cast_a", spec.a, multiply.dtypes[0])
    parts.cast("cast_b", spec.b, multiply.dtypes[-1])
    parts.define("mult", multiply.program)
    parts.define("add", monoid.binary.program)
    parts.cast("to_sum", multiply.return_type, monoid.dtype)
    ids = {"i": ROW, "k": "user_id(k, kstarts, kbounds)", "j": "user_id(c, jstarts, jbounds)"}
    if kind == "mxm_dense":
        ids["j"] = "user_id(np.intp(bcols[f]), jstarts, jbounds)"

    def term(x: str, y: str, **others: str) -> str:
        values = {"x": f"cast_a({x})", "y": f"cast_b({y})", **ids, **others}
        return f"to_sum({parts.call('mult', multiply.program, **values)})"

    value = term("avals[e * astride]", "bvals[f * bstride]")
    gaps = dict.fromkeys(("iso_value", "start", "accumulate", "assign", "stop", "count_hits", "quads"), "")
    gaps["clear"] = "" if spec.hashed else _clear(kind)
    gaps["where"] = "e - begin + 1"
    if spec.iso:
        # an iso product has no positions: one term of any two entries is the value of all
        gaps["iso_value"] = f"if len(avals) and len(bvals):\n    out_vals[0] = {term('avals[0]', 'bvals[0]')}"
        return gaps | {"stop": "break"}
    gaps["assign"] = f"out_vals[q] = {value}"
    if monoid.is_any:
        accumulate = f"out_vals[q] = {value}"
        return (
            gaps
            | {
                "accumulate": f"if not out_found[q]:\n    {accumulate}" if kind == "mxm_rows" else accumulate,
                "stop": "break",
            }
            | ({"accumulate": ""} if kind == "mxm_dense" else {})
        )
    entries = [f"f + {i}" for i in range(4)]
    terms = [term("a", f"bvals[{f}]", j=ids["j"].replace("[f]", f"[{f}]")) for f in entries]
    gaps["quads"] = (
        _QUADS.replace("{first}", "; ".join(f"s{i} = {one}" for i, one in enumerate(terms)))
        .replace("{further}", "; ".join(f"s{i} = add(s{i}, {one})" for i, one in enumerate(terms)))
        .replace("{store}", "; ".join(f"out_vals[base + done + {i}] = s{i}" for i in range(4)))
    )
    start = literal_text(monoid.start, monoid.dtype)
    stop = (
        ""
        if monoid.terminal is None
        else f"if out_vals[q] == {literal_text(monoid.terminal, monoid.dtype)}:\n    break"
    )
    at = "p" if kind == "mxm_rows" else "q"
    if counts_hits(spec):
        gaps |= {"count_hits": _COUNT_HITS, "where": "1"}
    return gaps | {
        "start": f"out_vals[{at}] = {start}",
        "accumulate": f"out_vals[q] = add(out_vals[q], {value})",
        "stop": stop,
    }


def _clear(kind: str) -> str:
    """Dense marks are zero between rows."""
    if kind == "mxm_rows":
        return "for p in range(mbegin, mend):\n    marks[mcols[p]] = 0"
    return "if marked:\n    for e in range(begin, end):\n        marks[cols[e]] = 0" if kind == "mxm_dot" else ""


def _runs(spec: Spec, parts: Any) -> dict[str, str]:
    op = getattr(spec.op, "binary", spec.op)
    parts.define("op", op.program)
    parts.cast("cast_x", spec.b, op.dtypes[0])
    parts.cast("cast_y", spec.b, op.dtypes[-1])
    parts.cast("cast_out", op.return_type, spec.b)
    call = parts.call("op", op.program, x="cast_x(acc)", y="cast_y(vals[order[e]])", i="0", k="0", j="0")
    return {"accumulate": f"acc = cast_out({call})"}
