"""CPU kernels of products of a matrix and a vector: bodies, and what fills their gaps. Contract: interface.py."""

from ..semiring._lower import literal_text
from .cpu_bodies import ALLOW, ROW, fill

# Rows of a list lie anywhere: where one begins is asked for when it is so many rows away, what it has when fewer.
FETCH = """
FAR, NEAR = 8, 4
BRIEF = 8  # mean entries of rows so short that what each decides is not foreseen: choosing costs less than branching
ROOM = 128  # entries of brief rows that are put side by side
"""

COUNT_DEGREE = """
def count_degree(out, degree):
    out[len(out) - 64 + digits(degree)] += 1
"""

# Terms of a row of pull where x is a bitmap.
SPARSE_LOOP = """
for e in range(begin, end):
    c = np.uintp(cols[e])
    if np.uint64(xwords[c >> SIX]) >> np.uint64(c & LOW_BITS) & ONE != 0:
        hit = True
        {accumulate}
        {stop}
"""
# The same for multiplications so cheap that doing them for absent entries too costs less than a branch.
BLENDED_LOOP = """
seen = np.uint64(0)
for e in range(begin, end):
    c = np.uintp(cols[e])
    present = np.uint64(xwords[c >> SIX]) >> np.uint64(c & LOW_BITS) & ONE
    seen |= present
    term = {value}
    acc = add(acc, term if present != 0 else START)
    {stop}
hit = seen != 0
"""

# Any first arrival does: slots that are done or masked are told by a byte each, which is quicker to test than bits
# where the frontier is large enough to pay for the spreading.
SPREAD = """
spread = not listed or size << 6 > n
brief = not spread and not flags & DENSE and np.int64(indptr[n]) - np.int64(indptr[0]) <= BRIEF * n
blocked = np.empty(len(acc_words) << 6 if spread else 1, np.uint8)
if spread:
    for v in range(len(acc_words)):
        word = acc_words[v]
        if masked and own_lo >> 6 <= v and v < (own_hi + 63) >> 6:
            word |= mwords[v - (own_lo >> 6)] ^ flip
        for b in range(64):
            blocked[(v << 6) + b] = (word >> b) & 1
"""
SPREAD_LOOP = """
if spread:
    for e in range(begin, end):
        c = np.uintp(cols[e])
        if blocked[c] == 0:
            blocked[c] = 1
            {scatter}
            acc_words[c >> SIX] |= np.int64(1) << np.int64(c & LOW_BITS)
            touched[top & keep] = c
            top += ONCE
    continue
"""

# Rows of few entries: these are put side by side first, at the end of `touched`, four at a time whatever a row has. One
# loop then goes through those of many rows. Where a row ends, and whether an arrival is the first, is no branch, as it
# is not foreseen. What lacks room for that is left to the loop over rows.
BRIEF_ROWS = """
last, total, e, end = np.intp(len(touched)) - ROOM - 4, np.uintp(indptr[n]), np.uintp(0), np.uintp(0)
while brief and (q + 1 < size or e < end) and np.intp(top) + ROOM + 4 <= last:
    many = 0
    while many < ROOM and (q + 1 < size or e < end):
        if e == end:
            q += 1
            r = np.intp(slots[q])
            {load_x}
            e, end = np.uintp(indptr[np.uintp(r)]), np.uintp(indptr[np.uintp(r) + ONCE])
            edges += np.intp(end - e)
        if e + FOUR > total:
            brief = False
            break
        to, some = last + many, min(end - e, FOUR)
        c0, c1, c2, c3 = cols[e], cols[e + ONCE], cols[e + np.uintp(2)], cols[e + np.uintp(3)]
        touched[to], touched[to + 1], touched[to + 2], touched[to + 3] = c0, c1, c2, c3
        {keep}
        e, many = e + some, many + np.intp(some)
    for k in range(last, last + many):
        c = np.uintp(touched[k])
        w, o, mine = c >> SIX, c - low, np.int64(1) << np.int64(c & LOW_BITS)
        if masked and o < room:
            mine &= ~(mwords[o >> SIX] ^ flip)  # 0: shut out
        seen = acc_words[w]
        acc_words[w] = seen | mine
        {listed}
        touched[top] = c
        top += np.uintp(mine & ~seen != 0)
if e < end:  # the loop over rows takes this one from its beginning
    edges -= np.intp(end - np.uintp(indptr[np.uintp(r)]))
    q -= 1
rows = q + 1
"""

# All terms of all rows, where nothing ends a row: what is decided for each row takes as long as a short row itself.
ALL_TERMS = """
if full and not flags & MASKED and {strides}:
    total = np.uintp(indptr[n])
    for w in range((n + 63) >> 6):
        first, bits = w << 6, np.int64(0)
        for r in range(first, min(first + 64, n)):
            begin, end = np.uintp(indptr[r]), np.uintp(indptr[r + 1])
            acc = START
            {four_terms}
            for e in range(begin, end):
                c = np.uintp(cols[e])
                acc = add(acc, {value})
            out_vals[r] = acc
        for r in range(first, min(first + 64, n)):
            bits |= np.int64(indptr[r] != indptr[r + 1]) << (r - first)
        out_words[w] = bits
        found += popcount(bits)
    count[0] += found
    if flags & TRACE:
        stats[0] += np.int64(indptr[n]) - np.int64(indptr[0])
        stats[1] += n
    return
"""

# The same four at a time. Nobody foresees where a row ends: three more are computed, and those that are another row's
# count as nothing.
FOUR_TERMS = """
while begin + FOUR <= end:
    {columns}
    acc = {four}
    begin += FOUR
if begin + FOUR <= total:
    {columns}
    t0, t1, t2, left = {v0}, {v1}, {v2}, end - begin
    t0 = t0 if left > 0 else START
    t1 = t1 if left > 1 else START
    t2 = t2 if left > 2 else START
    acc = {three}
    begin = end
"""
COLUMNS = ", ".join(f"c{k}" for k in range(4)) + " = " + ", ".join(f"np.uintp(cols[begin + {k}])" for k in range(4))

BODIES = {
    "pull": """
    full = flags & XFULL
    found, edges, rows = 0, 0, 0
    {iso_value}
    {all_terms}
    for w in range((n + 63) >> 6):
        first = w << 6
{ALLOW}
        bits = 0
        if n - first < 64:
            allow &= ~(-1 << (n - first))
        rest = np.uint64(allow)
        while rest != 0:
            r = first + lowest(rest)
            rest &= rest - ONE
            rows += 1
            begin, end = np.uintp(indptr[r]), np.uintp(indptr[r + 1])
            if begin == end:
                continue
            {acc_start}
            hit = False
            e = begin
            if full:
                {full_loop}
            else:
                {sparse_loop}
            edges += np.intp(e - begin) + 1
            if hit:
                bits |= 1 << (r - first)
                {store}
        out_words[w] = bits
        found += popcount(bits)
    count[0] += found
    if flags & TRACE:
        stats[0] += edges
        stats[1] += rows
""",
    "push": """
    full, listed = flags & XFULL, flags & XLIST
    masked = flags & MASKED
    flip = 0 if flags & COMPLEMENT else -1  # words ^ flip: bits of the slots that the mask does not let through
    low, room = np.uintp(own_lo), np.uintp(own_hi - own_lo)
    keep = np.uintp(0) if flags & DENSE else ~np.uintp(0)
    top, edges, rows = np.uintp(touched_count[0]), 0, 0
    size = count[0] if listed else n
    {spread}
    {iso_value}
    q = -1
    {brief_rows}
    while q + 1 < size:
        q += 1
        if listed:
            r = np.intp(slots[q])
            if q + FAR < size:
                fetch(indptr, np.uintp(slots[q + FAR]))
            if q + NEAR < size:
                fetch(cols, np.uintp(indptr[np.uintp(slots[q + NEAR])]))
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
        at = np.uintp(r)
        begin, end = np.uintp(indptr[at]), np.uintp(indptr[at + ONCE])
        edges += np.intp(end - begin)
        {spread_loop}
        for e in range(begin, end):
            c = np.uintp(cols[e])
            w = c >> SIX
            bit = np.int64(1) << np.int64(c & LOW_BITS)
            if masked:
                o = c - low  # unsigned: a slot before the own ones is a large number
                if o < room and (mwords[o >> SIX] ^ flip) & bit != 0:
                    continue
            new = acc_words[w] & bit == 0
            {scatter}
            if new:
                acc_words[w] |= bit
                touched[top & keep] = c
                top += ONCE
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
        if c < 0 or masked and ((mwords[c >> 6] >> (c & 63)) & 1) == unwanted:
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
    if p == 1:
        for q in range(touched_count[0]):
            c = np.intp(touched[q])
            acc_words[c >> 6] = 0
            out_slots[q] = touched[q]
            at = q
            {move}
        return
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
    total, tally = np.int64(0), flags & TALLY
    if flags & XFULL and not flags & (TALLY | TRACE):
        total = np.int64(indptr[n])
    elif flags & XFULL or flags & XLIST:
        for q in range(count[0] if flags & XLIST else n):
            r = np.intp(slots[q]) if flags & XLIST else q
            degree = np.int64(indptr[r + 1] - indptr[r])
            if tally and not q & 63:
                out[1 + (q >> 6)] = total
            if flags & TRACE:
                count_degree(out, degree)
            total += degree
    else:
        for w in range((n + 63) >> 6):
            if tally:
                out[1 + w] = total
            rest = np.uint64(xwords[w])
            while rest != 0:
                r = (w << 6) + lowest(rest)
                rest &= rest - ONE
                degree = np.int64(indptr[r + 1] - indptr[r])
                if flags & TRACE:
                    count_degree(out, degree)
                total += degree
    out[0] += total
""",
    "row_edges": """
    for q in range(count[0] if flags & XLIST else n):
        r = np.intp(slots[q]) if flags & XLIST else q
        if flags & (XLIST | XFULL) or (xwords[r >> 6] >> (r & 63)) & 1:
            edges = np.int64(indptr[r + 1] - indptr[r])
            out[0] += edges
            out[1 + (r >> shift)] += edges
""",
    "deal": """
    mean, lacking, before, upto = 0.0, 0.0, 0.0, 0.0
    for d in range(p):
        mean += loads[d * (1 + n)] / p
    for d in range(p):
        if d == taker:
            before = lacking
        lacking += max(mean - loads[d * (1 + n)], 0.0)
        if d == taker:
            upto = lacking
    at = owner * (1 + n)
    own = float(loads[at])
    away = own - mean if own - mean > least and lacking > 0 else 0.0
    out_cuts[0], out_cuts[1] = 0, 1 << 62 if taker == owner else 0
    for side in range(2):
        x = upto if side else before
        if taker == owner:
            x = 0.0
        if away == 0 or taker == owner and side == 0:
            continue
        out_cuts[side] = 1 << 62
        if x >= lacking:
            continue
        left = own - away + away * (x / lacking)
        for g in range(n if left < own else 0):
            edges = loads[at + 1 + g]
            if left < edges:  # they are taken to lie evenly
                out_cuts[side] = (g << shift) + np.int64(left / edges * (1 << shift))
                break
            left -= edges
""",
}

_CHEAP = ("first", "second", "pair", "plus", "times", "min", "max")  # defined for whatever bits an absent value has


def product(kind, spec, parts):
    """Expressions of pull and push: terms of one row, and what stops it."""
    semiring, flip = spec.op, spec.flip
    multiply, monoid = semiring.multiply, semiring.monoid
    left, right = multiply.dtypes if len(multiply.dtypes) == 2 else multiply.dtypes * 2
    parts.cast("cast_x", spec.b, left if flip else right)
    parts.cast("cast_a", spec.a, right if flip else left)
    parts.define("mult", multiply.program)
    parts.define("add", monoid.binary.program)
    parts.text.append(f"START = {literal_text(monoid.start, monoid.dtype)}")
    uses = multiply.program.uses
    inner = "user_id(np.intp(c), starts, bounds)" if kind == "pull" else ROW
    outer = ROW if kind == "pull" else "user_id(np.intp(c), starts, bounds)"
    x_value = {"pull": "cast_x(xvals[np.intp(c) * xstride])", "push": "x"}[kind]

    def term(x, a):
        values = (x, a) if flip else (a, x)
        return parts.call(
            "mult",
            multiply.program,
            x=values[0],
            y=values[1],
            k=inner,
            i="0" if flip else outer,
            j=outer if flip else "0",
        )

    value = term(x_value, "cast_a(avals[np.intp(e) * astride])")
    first = term("cast_x(xvals[0])", "cast_a(avals[0])")
    stop = "if acc == TERMINAL:\n{pad}break" if monoid.terminal is not None else ""
    if monoid.terminal is not None:
        parts.text.append(f"TERMINAL = {literal_text(monoid.terminal, monoid.dtype)}")
    load = []
    if not spec.iso and ("x" in uses or "y" in uses):
        load.append("x = cast_x(xvals[q * xstride])")
    if not spec.iso and kind == "push" and "(e)" not in value and "(c)" not in value:  # one for all entries of a row
        load.append(f"once = {value}")
        value = "once"
    names = {"ALLOW": ALLOW, "iso_value": "", "load_x": "\n".join(load)}
    names |= dict.fromkeys(("spread", "spread_loop", "brief_rows", "all_terms"), "")
    # No first arrival is looked at again: unless DENSE, their values lie as `touched` has the slots.
    first_arrival = f"acc_vals[c if flags & DENSE else top] = {value}"
    if monoid.is_any or spec.iso:
        names |= {"spread": SPREAD, "spread_loop": fill(SPREAD_LOOP, {"scatter": "" if spec.iso else first_arrival})}
        four = [value.replace("(e)", f"(e + np.uintp({k}))").replace("(c)", f"(c{k})") for k in range(4)]
        keep = "" if spec.iso else "\n".join(f"acc_vals[to + {k}] = {one}" for k, one in enumerate(four))
        listed = "" if spec.iso else "acc_vals[top] = acc_vals[k]"
        if kind == "push":
            gaps = {"load_x": "\n".join(load), "keep": keep, "listed": listed}
            names["brief_rows"] = fill(BRIEF_ROWS, gaps)
    if spec.iso:
        names |= dict(
            iso_value=f"{'out_vals' if kind == 'pull' else 'acc_vals'}[0] = {first}",
            acc_start="",
            sparse_loop=fill(SPARSE_LOOP, {"accumulate": "break", "stop": ""}),
            store="",
            full_loop="hit = True",
            scatter="",
        )
        return names
    if monoid.is_any:
        names |= dict(
            acc_start="acc = START",
            sparse_loop=fill(SPARSE_LOOP, {"accumulate": f"acc = {value}\nbreak", "stop": ""}),
            store="out_vals[r] = acc",
            full_loop=f"c = np.uintp(cols[e])\nacc = {value}\nhit = True",
            scatter=f"if new:\n    {first_arrival}",
        )
    else:
        cheap = multiply.name in _CHEAP and multiply.return_type is monoid.dtype
        gaps = {"accumulate": f"acc = add(acc, {value})", "value": value, "stop": stop.format(pad="    ")}
        plain = _of_strides_1(value)
        terms = _four_terms(plain["value"], spec.fixed) if cheap and monoid.name == "plus" else ""
        names |= dict(
            acc_start="acc = START",
            sparse_loop=fill(BLENDED_LOOP if cheap else SPARSE_LOOP, gaps),
            store="out_vals[r] = acc",
            full_loop=_full_loop(value, stop),
            all_terms="" if stop else fill(ALL_TERMS, plain | {"four_terms": terms}),
            scatter=f"if new:\n    acc_vals[c] = {value}\nelse:\n    acc_vals[c] = add(acc_vals[c], {value})",
        )
    return names


def _four_terms(value, fixed):
    """Rows of terms four at a time; `fixed`: summed one after the other."""
    lanes = [value.replace("c]", f"c{k}]").replace("(c)", f"(c{k})").replace("[e]", f"[begin + {k}]") for k in range(4)]
    in_order = "add(add(add(add(acc, {}), {}), {}), {})", "add(add(add(acc, t0), t1), t2)"
    in_pairs = "add(add(acc, add({}, {})), add({}, {}))", "add(add(acc, t0), add(t1, t2))"
    four, three = in_order if fixed else in_pairs
    sums = {"columns": COLUMNS, "four": four.format(*lanes), "three": three}
    return fill(FOUR_TERMS, sums | {f"v{k}": lane for k, lane in enumerate(lanes)})


def _full_loop(value, stop):
    """All terms of a row of pull when x is full; strides of one spare multiplications."""
    strides, plain = _of_strides_1(value).values()
    loop = "    for e in range(begin, end):\n        c = np.uintp(cols[e])\n        acc = add(acc, {value})\n"
    loop += stop and f"        {stop.format(pad='            ')}\n"
    return f"if {strides}:\n{loop.format(value=plain)}else:\n{loop.format(value=value)}hit = True"


def _of_strides_1(value):
    """The condition on which a term is so, and the term."""
    plain = value.replace("[np.intp(e) * astride]", "[e]").replace("[np.intp(c) * xstride]", "[c]")
    strides = " and ".join(f"{stride} == 1" for stride in ("astride", "xstride") if stride in value) or "True"
    return {"strides": strides, "value": plain}


def combine(kind, spec, parts):
    if spec.iso:
        return {"scatter": ""}
    parts.define("add", spec.op.binary.program)
    if spec.op.is_any:
        return {"scatter": "if new:\n    acc_vals[top] = vals[q]"}
    return {"scatter": "if new:\n    acc_vals[c] = vals[q]\nelse:\n    acc_vals[c] = add(acc_vals[c], vals[q])"}


def drain(kind, spec, parts):
    listed = spec.op is not None and spec.op.is_any
    return {"move": "" if spec.iso else f"out_vals[at] = acc_vals[{'q' if listed else 'c'}]"}
