"""Bodies of the CPU kernels that relax to a fixpoint, as cpu_bodies.py has the others'; and what fills their gaps.

One thread does all of one device. Vertices of a window wait in a ring, first in first out. Those beyond its limit wait
in a list, which is gone through when the ring is empty. A vertex is in each at most once, so that both have room for
all. Of those that wait, one that improves again keeps its place; one that comes into the window leaves the list at the
next look. As long as the list is as it was given, and its values ascend, a window begins at `front`, before which none
waits: labels of components, which all vertices have, are then looked at once and not in each window.

What the next vertices of the ring reach is put side by side first, and then relaxed in one loop. Where rows are short,
nobody can foresee where a row ends and which arc improves its head, so that neither is a branch.
"""

from math import isnan
from typing import Any

from ..semiring._lower import literal_text
from ..semiring._operators import BinaryOp
from .interface import CONVERGED, CROWDED, WIDE, Spec

BODIES = {
    "relax_begin": """
    if flags & XLIST == 0:
        for r in range(n):
            if flags & XFULL or (dwords[r >> 6] >> (r & 63)) & 1:
                best[r] = dvals[r * dstride]
                if is_start(best[r]):
                    bits[r >> 6] |= np.int64(1) << np.int64(r & 63)
            else:
                best[r] = START
    low, last, room = START, START, len(far)
    for q in range(count[0]):
        r = np.intp(slots[q])
        best[r] = xvals[q * xstride]
        bits[r >> 6] |= np.int64(1) << np.int64(r & 63)
        if q < room:
            far[q] = r
            queued[r] = LISTED | WAITS
            low = add(low, best[r])
            if q > 0 and beyond(last, best[r]):
                progress[8] = UNORDERED
            last = best[r]
    if count[0] > room:
        progress[6] = CROWDED
    progress[1] = min(count[0], room)
    limits[2] = low
""",
    "relax": """
    at, waiting, far_count = progress[7], progress[0], progress[1]
    limit, delta, lowest, cutoff = limits[0], limits[1], limits[2], limits[3]
    edges, extended, improved, begun, ended = np.int64(0), np.int64(0), np.int64(0), np.int64(0), 0
    masked, windowed, told = flags & MASKED, flags & WINDOWED, touched_count[0]
    flip = 0 if flags & COMPLEMENT else -1
    front = UNORDERED if SPREAD else np.intp(progress[8])
    rare = np.int64(indptr[n]) - np.int64(indptr[0]) > BRIEF * n  # that an arc improves its head, which is foreseen
    heads = np.empty(ROOM + 4, np.int64)
    terms = np.empty(ROOM + 4, np.{term})
    total, e, end = np.uintp(indptr[n]), np.uintp(0), np.uintp(0)
    while ended == 0 and (edges < most or e < end):
        if waiting == 0 and e == end:
            while 0 <= front < far_count and queued[far[front]] & WAITS == 0:
                front += 1
            if far_count == 0 or front == far_count:
                ended, far_count = CONVERGED, 0
            elif windows != 0 and begun == windows:
                break
            else:
                low, kept, at = START, 0, 0
                if front != UNORDERED:
                    low, kept = best[first + np.intp(far[front])], far_count
                for q in range(far_count if front == UNORDERED else 0):
                    r = np.intp(far[q])
                    if queued[r] & WAITS:
                        low = add(low, best[first + r])
                        far[kept] = r
                        kept += 1
                    else:
                        queued[r] = queued[r] & RINGED
                far_count = kept
                if not SPREAD:
                    limits[0] = START
                    if windowed:
                        limits[0] = low + delta
                        if beyond(low, limits[0]):  # it wrapped
                            limits[0] = START
                limit, lowest, kept = limits[0], START, 0
                for q in range(far_count if front == UNORDERED else 0):
                    r = np.intp(far[q])
                    if beyond(best[first + r], limit):
                        far[kept] = r
                        kept += 1
                        if SPREAD:
                            lowest = add(lowest, best[first + r])
                    else:
                        queued[r] = RINGED
                        near[waiting] = r
                        waiting += 1
                if front == UNORDERED:
                    far_count = kept
                while 0 <= front < far_count:  # these stay in the list, where they wait no more
                    r = np.intp(far[front])
                    if queued[r] & WAITS:
                        if beyond(best[first + r], limit):
                            break
                        queued[r] = RINGED | LISTED
                        near[waiting] = r
                        waiting += 1
                    front += 1
                begun += 1
                if wide != 0 and waiting > wide:
                    ended = WIDE
        else:
            many = 0
            while many < ROOM and (waiting > 0 or e < end):
                if e == end:
                    if waiting > FAR:
                        ahead = at + FAR
                        fetch(indptr, np.uintp(near[ahead if ahead < n else ahead - n]))
                        ahead = at + NEAR
                        row = indptr[np.uintp(near[ahead if ahead < n else ahead - n])]
                        fetch(cols, np.uintp(row))
                        fetch(avals, np.uintp(row * astride))
                    r = np.intp(near[at])
                    at += 1
                    if at == n:
                        at = 0
                    waiting -= 1
                    queued[r] = queued[r] & (LISTED | WAITS)
                    extended += 1
                    {load_x}
                    e, end = np.uintp(indptr[np.uintp(r)]), np.uintp(indptr[np.uintp(r) + ONCE])
                    edges += np.int64(end - e) + 1
                some = min(end - e, FOUR)
                if e + FOUR <= total:
                    c0, c1, c2, c3 = cols[e], cols[e + ONCE], cols[e + np.uintp(2)], cols[e + np.uintp(3)]
                    heads[many], heads[many + 1], heads[many + 2], heads[many + 3] = c0, c1, c2, c3
                    if astride == 1:
                        {four}
                    else:
                        {alike}
                else:
                    for k in range(np.intp(some)):
                        heads[many + k] = cols[e + np.uintp(k)]
                        {one}
                e, many = e + some, many + np.intp(some)
            for k in range(many):
                c, term = np.intp(heads[k]), terms[k]
                if masked and (mwords[c >> 6] ^ flip) & (np.int64(1) << np.int64(c & 63)) != 0:
                    continue
                old = best[c]
                better = np.int64(improves(old, term)) & np.int64(within(term, cutoff))
                if is_start(term) and is_start(old):
                    bit = np.int64(1) << np.int64(c & 63)
                    better = np.int64(bits[c >> 6] & bit == 0)
                    bits[c >> 6] |= bit
                if rare and better == 0:
                    continue
                made = {made}
                best[c] = made if better != 0 else old
                improved += better
                if SPREAD and (c < first or c >= first + n):
                    bit = np.int64(1) << np.int64(c & 63)
                    if better != 0 and acc_words[c >> 6] & bit == 0:
                        acc_words[c >> 6] |= bit
                        touched[told] = c
                        told += 1
                    continue
                to = c - first
                was = np.int64(queued[to])
                later = better & np.int64(beyond(made, limit))
                sooner = better - later
                far[far_count] = to
                far_count += later & np.int64(was & LISTED == 0)
                place, rings = at + waiting, sooner & np.int64(was & RINGED == 0)
                place = place if place < n else place - n
                near[place if rings != 0 else n] = to
                waiting += rings
                now = was | LISTED | WAITS if later != 0 else was
                queued[to] = (was | RINGED) & (RINGED | LISTED) if sooner != 0 else now
                front = UNORDERED if later != 0 else front
                if SPREAD and later != 0:
                    lowest = add(lowest, made)
    if SPREAD:
        limits[2], touched_count[0] = lowest, told
    progress[0], progress[1] = waiting, far_count
    progress[2] += begun
    progress[3] += extended
    progress[4] += edges - extended
    progress[5] += improved
    progress[6], progress[7], progress[8] = ended, at, front
""",
    "relax_receive": """
    far_count, lowest = progress[1], limits[2]
    for q in range(count[0]):
        r, term = np.intp(slots[q]), vals[q]
        made = add(best[r], term)
        if made == best[r] or made != made:
            bit = np.int64(1) << np.int64(r & 63)
            if not is_start(term) or not is_start(best[r]) or bits[r >> 6] & bit != 0:
                continue
            bits[r >> 6] |= bit
        best[r] = made
        was = queued[r]
        if was & RINGED == 0:
            if was & LISTED == 0:
                far[far_count] = r
                far_count += 1
            queued[r] = was | LISTED | WAITS
            lowest = add(lowest, made)
    progress[1], limits[2] = far_count, lowest
""",
    "relax_end": """
    found = 0
    for w in range((n + 63) >> 6):
        have, wait = np.int64(0), np.int64(0)
        for r in range(w << 6, min((w << 6) + 64, n)):
            bit = np.int64(1) << np.int64(r & 63)
            if not is_start(best[r]):
                have |= bit
            if queued[r] & (RINGED | WAITS):
                wait |= bit
        have |= bits[w]
        out_words[w], out_waiting[w] = have, wait
        found += popcount(have)
    count[0] += found
""",
}

JUDGES = f"""
CONVERGED, WIDE, CROWDED = {CONVERGED}, {WIDE}, {CROWDED}
# Where a vertex is: in the ring, in the list of those beyond the limit; and whether it waits there.
RINGED, LISTED, WAITS = 1, 2, 4
UNORDERED = -1  # in place of the front


def is_start(value):
    return {{}}
"""

# The same of any monoid, and in one comparison of min and max. A sum heeds NaN and the sign of zeros.
ANY = """
def beyond(value, limit):
    better = add(value, limit)
    return better != value and (better == better or value == value)


def within(value, cutoff):
    return True


def improves(old, term):
    made = add(old, term)
    return made != old and made == made
"""
LINE = """
def beyond(value, limit):
    return limit {less} value


def within(value, cutoff):
    return not cutoff {less} value


def improves(old, term):
    return not old {less}= term and term == term
"""


def names(kind: str, spec: Spec, parts: Any) -> dict[str, str]:
    """What fills the gaps; below it in the header, what tells values beyond a limit and those that are none."""
    multiply, monoid, flip = spec.op.multiply, spec.op.monoid, spec.flip
    left, right = multiply.dtypes
    parts.define("add", monoid.binary.program)
    parts.text.append(f"START = {literal_text(monoid.start, monoid.dtype)}")
    none = "value != value" if monoid.dtype.kind == "f" and isnan(monoid.start) else "value == START"
    built_in = monoid.op.binaryop is BinaryOp.registry.get(monoid.name)
    less = {"min": "<", "max": ">"}.get(monoid.name) if built_in else None
    parts.text += [JUDGES.format(none), LINE.format(less=less) if less else ANY]
    if kind != "relax":
        return {}
    parts.cast("cast_x", spec.b, left if flip else right)
    parts.cast("cast_a", spec.a, right if flip else left)
    parts.define("mult", multiply.program)
    parts.text.append(f"SPREAD = {spec.spread}")

    def term(k, at):
        entry = f"cast_a(avals[{at}])"
        x, y = ("x", entry) if flip else (entry, "x")
        return f"terms[many + {k}] = " + parts.call("mult", multiply.program, x=x, y=y)

    names = {
        "term": monoid.dtype.np_type.name,
        "four": "\n".join(term(k, f"e + np.uintp({k})") for k in range(4)),
        "alike": "\n".join(term(k, 0) for k in range(4)),
        "one": term("k", "(e + np.uintp(k)) * np.uintp(astride)"),
    }
    names["made"] = "term" if less else "add(old, term)"
    return {"load_x": "x = cast_x(best[first + r])"} | names
