"""Bodies of the CPU kernels but those of products, plain Python in terms of a few names (mult, add, op, cast_*, START,
TERMINAL) that a generated header defines. Products: cpu_products.py, cpu_mxm.py, cpu_relax.py.

Gaps in braces are filled with the expressions of one instance. Contract: interface.py.
"""

FLAGS = """
# Indices that are never negative cost less as unsigned ones.
SIX, LOW_BITS, ONCE, FOUR, ONE = np.uintp(6), np.uintp(63), np.uintp(1), np.uintp(4), np.uint64(1)
MASKED, COMPLEMENT, XFULL, TRACE, XLIST, TFULL, REPLACE, REGION = 1, 2, 4, 8, 16, 32, 64, 128
CFULL, AFULL, BFULL, OUTFULL, VALUED, DENSE, TALLY = 256, 512, 1024, 2048, 4096, 8192, 16384
PAIRED, WINDOWED = 32768, 65536
RENAMED, ADJOINING = 1, 2
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

BODIES = {
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
    "move_bits": """
    last = (begin + n - 1) >> 6
    for w in range(at >> 6, (at + n + 63) >> 6):
        first, word = w << 6, np.int64(0)
        place = begin + first - at
        q, s = place >> 6, place & 63
        if q >= 0:
            word = np.int64(np.uint64(words[q]) >> np.uint64(s))
        if s != 0 and q < last:
            word |= words[q + 1] << (64 - s)
        if first < at:
            word &= -1 << (at - first)
        if at + n - first < 64:
            word &= ~(-1 << (at + n - first))
        out_words[w] |= word
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
    held, room = np.uintp(len(cols)), np.uintp(len(out_cols))
    for k in range(n):
        if k + FAR < n:
            fetch(indptr, np.uintp(max(slots[k + FAR], 0)))
        if k + NEAR < n:
            ahead = indptr[np.uintp(max(slots[k + NEAR], 0))]
            fetch(cols, np.uintp(ahead))
            fetch(avals, np.uintp(ahead * astride))
        r = np.intp(slots[k])
        if r < 0:
            continue
        begin, end = np.uintp(indptr[r]), np.uintp(indptr[r + 1])
        to = np.uintp(out_begins[k])
        if how & RENAMED:
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
        r, c = np.intp(rows[k]), columns[k]
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
