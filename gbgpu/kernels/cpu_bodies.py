"""Bodies of the CPU kernels, plain Python in terms of a few names (mult, add, op, cast_*, START, TERMINAL) that a
generated header defines.
Gaps in braces are filled with the expressions of one instance. Contract: interface.py."""

FLAGS = """
# Indices that are never negative cost less as unsigned ones.
SIX, LOW_BITS, ONCE, ONE = np.uintp(6), np.uintp(63), np.uintp(1), np.uint64(1)
MASKED, COMPLEMENT, XFULL, TRACE, XLIST, TFULL, REPLACE, REGION = 1, 2, 4, 8, 16, 32, 64, 128
CFULL, AFULL, BFULL, OUTFULL, VALUED, DENSE, TALLY = 256, 512, 1024, 2048, 4096, 8192, 16384
PAIRED, WINDOWED = 32768, 65536
"""

# Rows of a list lie anywhere: where one begins is asked for when it is so many rows away, what it has when fewer.
FETCH = """
FAR, NEAR = 8, 4
BRIEF = 8  # mean entries of rows so short that what each decides is not foreseen: choosing costs less than branching
"""

COUNT_DEGREE = """
def count_degree(out, degree):
    digits, rest = 0, degree
    while rest:
        digits, rest = digits + 1, rest >> 1
    out[len(out) - 64 + digits] += 1
"""

# Shell's, with Knuth's gaps: rows are short.
SORT = """
def sort(items, first, end):
    gap = 1
    while 3 * gap < end - first:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            item, j = items[i], i
            while j >= first + gap and items[j - gap] > item:
                items[j] = items[j - gap]
                j -= gap
            items[j] = item
        gap //= 3
"""

# Slots and rows -> user ids, as interface.py tells.
USER_ID = """
def user_id(slot, starts, bounds):
    if len(starts) == 1:
        return bounds[slot]
    b = 0
    while starts[b + 1] <= slot:
        b += 1
    return bounds[b] + slot - starts[b]
"""

ROW = "row_id(r, row0, users)"
ROW_ID = """
def row_id(r, row0, users):
    return row0 + r if row0 >= 0 else users[row0 + r + (1 << 62)]
"""

# Bits of the rows of a word that a mask lets through; a word of ones where there is none.
ALLOW = """
        allow = -1
        if flags & MASKED:
            allow = mwords[w]
            if flags & COMPLEMENT:
                allow = ~allow
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
spare = np.uintp(max(len(acc_vals), 1) - 1)  # a place that is no slot's
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
if brief:
    for e in range(begin, end):
        c = np.uintp(cols[e])
        w, o, mine = c >> SIX, c - low, np.int64(1) << np.int64(c & LOW_BITS)
        if masked and o < room:
            mine &= ~(mwords[o >> SIX] ^ flip)  # 0: shut out
        seen = acc_words[w]
        acc_words[w] = seen | mine
        new = mine & ~seen != 0
        {brief_scatter}
        touched[top] = c
        top += np.uintp(new)
    continue
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

# A full vector in four sums side by side: each term then waits for the fourth before it, not for the one before it.
LANES = """
if flags & XFULL and xstride == 1 and n >= 16:
    one, two, three, four = START, START, START, START
    for q in range(0, n - 3, 4):
        one = add(one, cast_sum(xvals[q]))
        two = add(two, cast_sum(xvals[q + 1]))
        three = add(three, cast_sum(xvals[q + 2]))
        four = add(four, cast_sum(xvals[q + 3]))
    for q in range(n & ~3, n):
        one = add(one, cast_sum(xvals[q]))
    acc = add(add(one, two), add(three, four))
    hit = True
"""

# Rows of two vectors, and of a third, a word at a time.
_PAIRS = """for w in range((n + 63) >> 6):
        first = w << 6
        last = min(first + 64, n)
        valid = -1 if last - first == 64 else ~(-1 << (last - first))
        ina = valid if flags & AFULL else awords[w]
        inb = valid if flags & BFULL else bwords[w]
        {third}
        both = ina & inb
        {both_rows}
        {one_sided}"""

# All terms of all rows, where nothing ends a row: what is decided for each row takes as long as a short row itself.
ALL_TERMS = """
if full and not flags & MASKED and {strides}:
    for w in range((n + 63) >> 6):
        first, bits = w << 6, np.int64(0)
        for r in range(first, min(first + 64, n)):
            begin, end = np.uintp(indptr[r]), np.uintp(indptr[r + 1])
            acc = START
            for e in range(begin, end):
                c = np.uintp(cols[e])
                acc = add(acc, {value})
            out_vals[r] = acc
            bits |= np.int64(begin != end) << (r - first)
        out_words[w] = bits
        found += popcount(bits)
    count[0] += found
    if flags & TRACE:
        stats[0] += np.int64(indptr[n]) - np.int64(indptr[0])
        stats[1] += n
    return
"""

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
    "write": """
    found = 0
    for w in range((n + 63) >> 6):
        first = w << 6
        last = min(first + 64, n)
        valid = -1 if last - first == 64 else ~(-1 << (last - first))
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
            found += popcount(word)
        {store_rows}
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
    "unwrite": """
    lost = 0
    for q in range(tcount[0]):
        r = np.intp(tslots[q])
        bit = 1 << (r & 63)
        if cwords[r >> 6] & bit != 0:
            cwords[r >> 6] ^= bit
            lost += 1
    count[0] -= lost
""",
    "ewise": f"""
    found = 0
    {_PAIRS}
        if not flags & OUTFULL:
            word = {{present}}
            out_words[w] = word
            found += popcount(word)
    count[0] += n if flags & OUTFULL else found
""",
    "fold": f"""
    acc = START
    hit = False
    {_PAIRS}
        if {{present}} != 0:
            hit = True
        {{stop}}
    out_vals[0] = acc
    out_words[0] = 1 if hit else 0
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
        out_slots[top] = r
        out_vals[top] = xvals[q * xstride]
        top += 1 if {op_x} else 0  # no branch: nobody can tell which way it goes
    out_count[0] += top
""",
    "reduce": """
    acc = START
    hit = False
    {lanes}
    if hit:
        pass
    elif flags & XLIST or flags & XFULL:
        size = count[0] if flags & XLIST else n
        for q in range(size):
            {take_q}
            {stop}
        hit = size > 0
    elif flags & PAIRED:
        for r in range(n):
            if xwords[2 * r] != 0:
                hit = True
                {take_r}
                {stop}
    else:
        for w in range((n + 63) >> 6):
            rest = np.uint64(xwords[w])
            if rest != 0:
                hit = True
                while rest != 0:
                    r = (w << 6) + lowest(rest)
                    rest &= rest - ONE
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
                bits |= np.int64(xvals[r * xstride] != 0) << (r - first)
        out_words[w] = bits & word
""",
    "list_words": """
    for q in range(count[0]):
        if not flags & VALUED or xvals[q * xstride] != 0:
            r = np.intp(slots[q])
            out_words[r >> 6] |= 1 << (r & 63)
""",
    "mask_list": """
    unwanted = 1 if flags & COMPLEMENT else 0
    top = out_count[0]
    for q in range(count[0]):
        r = np.intp(slots[q])
        out_slots[top] = r
        out_vals[top] = xvals[q * xstride]
        top += 1 if ((mwords[r >> 6] >> (r & 63)) & 1) != unwanted else 0
    out_count[0] = top
""",
    "between": """
    top = 0
    for q in range(count[0]):
        if cuts[0] <= slots[q] < cuts[1]:
            out_slots[top] = slots[q]
            if xstride:
                out_vals[top] = xvals[q]
            top += 1
    out_count[0] = top
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
        rest = np.uint64(-1 if flags & XFULL else xwords[w])
        if n - first < 64:
            rest &= ~(~np.uint64(0) << np.uint64(n - first))
        while rest != 0:
            r = first + lowest(rest)
            rest &= rest - ONE
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
    "matrix_select": """
    {marks}
""",
    "matrix_apply": """
    for r in range(n):
        for e in range(np.intp(indptr[r]), np.intp(indptr[r + 1])):
            out_vals[e] = {op_entry}
""",
    "matrix_scale": """
    for r in range(n):
        for e in range(np.uintp(indptr[r]), np.uintp(indptr[r + 1])):
            out_vals[e] = {scaled}
""",
    "move_rows": """
    for k in range(n):
        r = np.intp(slots[k])
        if r < 0:
            continue
        begin, end = np.uintp(indptr[r]), np.uintp(indptr[r + 1])
        to = np.uintp(out_begins[k])
        if renamed:
            for q in range(end - begin):
                out_cols[to + q] = names[np.uintp(cols[begin + q])]
        else:
            {both}
            for q in range(end - begin):
                out_cols[to + q] = cols[begin + q]
        {values}
""",
    "look_up": """
    for k in range(n):
        r, c = np.intp(slots[k]), columns[k]
        low, last = np.uintp(indptr[r]), np.uintp(indptr[r + 1])
        high = last
        while low < high:
            middle = (low + high) >> ONCE
            if cols[middle] < c:
                low = middle + ONCE
            else:
                high = middle
        hit = low < last and cols[low] == c
        out_found[k] = hit
        if hit:
            out_vals[k] = avals[low * np.uintp(astride)]
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
                    out_vals[at] = {only_a}
                    at += 1
                i += 1
            elif i == iend or bcols[j] < acols[i]:
                if keep & 2:
                    out_cols[at] = bcols[j]
                    out_vals[at] = {only_b}
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


def fill(body: str, names: dict[str, str]) -> str:
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
