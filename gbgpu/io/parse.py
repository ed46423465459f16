"""What reading takes compiled code for: lines of numbers in a text, and a look at both sides of a matrix.

Private functions are in the language of gbgpu/kernels/llvm.py, and run as machine code.

The compiled code of texts reads what is well formed and common; it stops before any other line, which Python then
reads or refuses (`entries.py`). So a mistake costs nothing until it is met, and is told by the code that knows the
words.

Reals are rounded as IEEE 754 wants them: Lemire, "Number parsing at a gigabyte per second" (Software: Practice and
Experience 51(8), 2021).
"""

from functools import cache

import numpy as np

from gbgpu.kernels.functions import compiled
from gbgpu.kernels.interpreted import word_of

NONE, INTEGER, REAL = range(3)  # what stands after the two ids of a line
NEGATIVE, LARGE = 1, 2  # bits of `seen`: an integer below 0, one above INT64

_TAB, _NEWLINE, _RETURN, _SPACE, _PLUS, _MINUS, _POINT, _ZERO, _E = 9, 10, 13, 32, 43, 45, 46, 48, 101
_BETWEEN = 31  # stands for the delimiter of fields
_LONGEST = 19  # decimal digits that always fit 64 bits
_TEN_19 = np.uint64(10**19)
_TOP = np.uint64(1 << 63)
_HALF = np.uint64(0xFFFFFFFF)
_FRACTION = np.uint64((1 << 52) - 1)
_INFINITY = np.uint64(0x7FF << 52)
_NAN = np.uint64(0x7FF8 << 48)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SMALLEST, _LARGEST = -342, 308  # outside, 19 digits times this power of ten are 0 or infinite


def _powers_of_five() -> np.ndarray:
    """The leading 128 bits of 5**q for every q, as two words, rounded as the paper's proof wants.

    That is down, but up where the reciprocal is of a power below 2**64.
    """
    words = []
    for q in range(_SMALLEST, _LARGEST + 1):
        power = 5 ** abs(q)
        if q < 0:
            bits = power.bit_length() + 127
            power = (1 << bits) // power + (q >= -27)
        cut = power.bit_length() - 128
        power = power >> cut if cut >= 0 else power << -cut
        words.append((power >> 64, power & (2**64 - 1)))
    return np.array(words, np.uint64)


@cache
def _powers() -> tuple[np.ndarray, np.ndarray]:
    """Those powers of five, and the powers of ten that are exact as doubles."""
    return _powers_of_five().ravel(), 10.0 ** np.arange(23)


def _digit(text, at):
    """The digit at a place, more than 9 if there is none."""
    return np.uint64(text[at]) - np.uint64(48)


def _digits(text, at, number):
    """(place after the digits that stand there, the number that they continue), modulo 2**64."""
    digit = _digit(text, at)
    while digit <= 9:
        number = number * np.uint64(10) + digit
        at += 1
        digit = _digit(text, at)
    return at, number


def _past_zeros(text, at, end):
    """The place of the first digit that counts, or of the last one."""
    while text[at] == _ZERO and at < end - 1:
        at += 1
    return at


def _skip(text, at):
    """The next place that is not blank, or the end of the line.

    Words end at every byte up to 32; one that is no blank is not passed here, and taken by nobody.
    """
    while text[at] == _SPACE or text[at] == _TAB or text[at] == _RETURN:
        at += 1
    return at


def _id(text, at):
    """(place after it, a number that is not negative); -1 if it is none, or too long."""
    if text[at] == _PLUS:
        at += 1
    end, number = _digits(text, at, np.uint64(0))
    if end - at >= _LONGEST:
        at = _past_zeros(text, at, end)
    return end, np.int64(number) if 0 < end - at < _LONGEST and text[end] <= 32 else np.int64(-1)


def _integer(text, at):
    """(place after it, its 64 bits, `seen`); place -1 if it is no integer or does not fit."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    start = at
    at, number = _digits(text, start, np.uint64(0))
    digits = at - start
    if digits > _LONGEST:
        start = _past_zeros(text, start, at)
        digits = at - start
    fits = digits <= _LONGEST or (digits == 20 and text[start] == 49 and number >= _TEN_19)
    if digits == 0 or not fits or text[at] > 32 or (negative and number > _TOP):
        return -1, np.uint64(0), 0
    if negative:
        return at, np.uint64(0) - number, NEGATIVE if number else 0
    return at, number, LARGE if number >= _TOP else 0


def _high(a, b):
    """The upper word of a product of two words."""
    low_a, high_a, low_b, high_b = a & _HALF, a >> np.uint64(32), b & _HALF, b >> np.uint64(32)
    cross = high_a * low_b + ((low_a * low_b) >> np.uint64(32))
    other = low_a * high_b + (cross & _HALF)
    return high_a * high_b + (cross >> np.uint64(32)) + (other >> np.uint64(32))


def _nearest(w, q, fives):
    """The bits of the double nearest to w * 10**q, ties to even."""
    if w == 0 or q < _SMALLEST:
        return np.uint64(0)
    if q > _LARGEST:
        return _INFINITY
    zeros, step = 0, 32
    while step > 0:
        if w >> np.uint64(64 - step) == 0:
            w <<= np.uint64(step)
            zeros += step
        step >>= 1
    five, rest = fives[2 * (q - _SMALLEST)], fives[2 * (q - _SMALLEST) + 1]
    high, low = _high(w, five), w * five
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # the bits below may carry: the second word is needed
        more = _high(w, rest)
        low += more
        high += np.uint64(low < more)
    top = np.int64(high >> np.uint64(63))
    shift = np.uint64(top + 9)
    fraction = high >> shift  # 54 bits: one more than a double has, to round by
    exponent = ((217706 * q) >> 16) + 63 + top - zeros + 1023  # 217706 / 2**16 is log2(10)
    if exponent <= 0:
        return _subnormal(fraction, exponent)
    if low <= 1 and -4 <= q <= 23 and fraction & np.uint64(3) == 1 and fraction << shift == high:
        fraction &= ~np.uint64(1)  # exactly between two doubles
    fraction = (fraction + (fraction & np.uint64(1))) >> np.uint64(1)
    if fraction >> np.uint64(53):
        fraction >>= np.uint64(1)
        exponent += 1
    if exponent >= 0x7FF:
        return _INFINITY
    return (fraction & _FRACTION) | (np.uint64(exponent) << np.uint64(52))


def _subnormal(fraction, exponent):
    if exponent <= -63:
        return np.uint64(0)
    fraction >>= np.uint64(1 - exponent)
    return (fraction + (fraction & np.uint64(1))) >> np.uint64(1)  # a carry into the exponent is the right one


def _cut(text, at, end):
    """The first 19 digits that count of a long number.

    Returned are the number, the places that its point moves right, and what it lacks: 1 if a digit other than 0
    follows.
    """
    number, taken, moved, fraction, lacks = np.uint64(0), 0, 0, 0, np.uint64(0)
    for k in range(at, end):
        if text[k] == _POINT:
            fraction = 1
        elif taken < _LONGEST:
            number = number * np.uint64(10) + _digit(text, k)
            taken += number != 0
            moved -= fraction
        else:
            moved += 1 - fraction
            if text[k] != _ZERO:
                lacks = np.uint64(1)
    return number, moved, lacks


def _named(text, at):
    """(place after it, bits) of inf, infinity and nan in any case; place -1 if it is none."""
    if text[at] | 32 == 110 and text[at + 1] | 32 == 97 and text[at + 2] | 32 == 110 and text[at + 3] <= 32:
        return at + 3, _NAN
    if not (text[at] | 32 == 105 and text[at + 1] | 32 == 110 and text[at + 2] | 32 == 102):
        return -1, _NAN
    if text[at + 3] <= 32:
        return at + 3, _INFINITY
    whole = text[at + 3] | 32 == 105 and text[at + 4] | 32 == 110 and text[at + 5] | 32 == 105
    whole = whole and text[at + 6] | 32 == 116 and text[at + 7] | 32 == 121 and text[at + 8] <= 32
    return at + 8 if whole else -1, _INFINITY


def _real(text, at, fives, tens):
    """(place after it, the bits of a double); place -1 if it is no number, or nearly between two doubles."""
    sign = np.uint64(0)
    if text[at] == _MINUS:
        sign = _TOP
    if text[at] == _MINUS or text[at] == _PLUS:
        at += 1
    start, fraction = at, 0
    at, number = _digits(text, start, np.uint64(0))
    digits = at - start
    if text[at] == _POINT:
        point = at + 1
        at, number = _digits(text, point, number)
        fraction = at - point
        digits += fraction
    if digits == 0:
        at, bits = _named(text, start)
        return at, bits | sign
    end, exponent = at, 0
    if (text[at] | 32) == _E:
        at, exponent = _exponent(text, at + 1)
    if at < 0 or text[at] > 32:
        return -1, sign
    if digits <= _LONGEST:
        return at, _bits(number, exponent - fraction, fives, tens) | sign
    number, moved, lacks = _cut(text, start, end)
    bits = _nearest(number, exponent + moved, fives)
    return at if bits == _nearest(number + lacks, exponent + moved, fives) else -1, bits | sign


def _exponent(text, at):
    """(place after it, an exponent, of at most six digits); place -1 without a digit."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    start, exponent = at, np.int64(0)
    while _digit(text, at) <= 9:
        if exponent < 100_000:
            exponent = exponent * 10 + np.int64(_digit(text, at))
        at += 1
    return at if at > start else -1, -exponent if negative else exponent


def _bits(number, power, fives, tens):
    """The bits of number * 10**power: two exact doubles are rounded once by the machine, others need more."""
    if number >> np.uint64(53) == 0 and -22 <= power <= 22:
        exact = np.float64(number)
        return word_of(exact / tens[-power] if power < 0 else exact * tens[power])
    return _nearest(number, power, fives)


def _later(text, at, apart, count):
    """The field that begins `count` fields after the end of one, or the end of the line.

    Where fields stand `apart`, byte 31 is between them, else blanks are.
    """
    while text[at] != _NEWLINE:
        at = _skip(text, at)
        if apart:
            if text[at] != _BETWEEN:
                return _line_end(text, at)
            at = _skip(text, at + 1)
        count -= 1
        if count == 0:
            break
        at = _end(text, at, apart)
    return at


def _end(text, at, apart):
    """Where the field at a place ends."""
    while text[at] != _NEWLINE and (text[at] != _BETWEEN if apart else text[at] > 32):
        at += 1
    return at


def _line_end(text, at):
    while text[at] != _NEWLINE:
        at += 1
    return at


def _ids(text, at, first, bounds, diagonal, apart, between):
    """(place after them, row, column), from 0; row -1 if they are none, or outside."""
    at, row = _id(text, at)
    at, col = _id(text, _later(text, at, apart, between))
    row -= first
    col -= first
    outside = col < 0 or row >= bounds[0] or col >= bounds[1] or (row == col and not diagonal)
    return at, np.int64(-1) if outside else row, col


def _passed(text, at, comments):
    """The next line's place if this one is blank or a comment, else -1."""
    if text[at] == comments[0] or text[at] == comments[1]:
        while text[at] != _NEWLINE:
            at += 1
    return at + 1 if text[at] == _NEWLINE else -1


def _all_passed(text, at, comments, told):
    line = 0
    while at < len(text):
        after = _passed(text, _skip(text, at), comments)
        if after < 0:
            break
        at = after
        line += 1
    told[0], told[1] = at, line


def _lines(
    text, at, prefix, comments, ids, first, bounds, diagonal, kind, count, seen, rows, cols, words, apart, steps, fives,
    tens, told
):  # fmt: skip
    line, size, room, row, col = 0, len(text), max(len(rows), len(words)), np.int64(0), np.int64(0)
    while at < size:
        here = _skip(text, at)
        after = _passed(text, here, comments)
        if after < 0:
            if count == room:
                break
            if prefix:
                if text[here] != prefix or text[here + 1] > 32:
                    break
                here = _skip(text, here + 1)
            if ids:
                if steps[0]:
                    here = _later(text, _end(text, here, apart), apart, steps[0])
                here, row, col = _ids(text, here, first, bounds, diagonal, apart, steps[1])
                if row < 0:
                    break
                here = _later(text, here, apart, steps[2]) if kind else _skip(text, here)
            if kind:
                here, word, found = _value(text, here, kind, fives, tens)
                if here < 0 or (found | seen) == NEGATIVE | LARGE:
                    break
                seen |= found
                words[count] = word
            if steps[3]:
                here = _skip(text, here)
                if apart and text[here] != _BETWEEN and text[here] != _NEWLINE:
                    break
                here = _line_end(text, here)
            after = _skip(text, here) + 1
            if text[after - 1] != _NEWLINE:
                break
            if ids:
                rows[count], cols[count] = row, col
            count += 1
        at = after
        line += 1
    told[0], told[1], told[2], told[3] = at, line, count, seen


def _scattered(number, key):
    """64 bits that depend on all bits of a number and of a key (after Steele, Lea, Flood: SplitMix64)."""
    mixed = (np.uint64(number) ^ key) * _MIX_1
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _MIX_2
    return mixed ^ (mixed >> np.uint64(32))


def _asymmetry(offsets, cols, values, keys, found):
    total, one = np.uint64(0), len(values) != len(cols)
    for i in range(len(offsets) - 1):
        x, y, line = _scattered(i, keys[0]), _scattered(i, keys[1]), np.uint64(0)
        for k in range(offsets[i], offsets[i + 1]):
            term = x * _scattered(cols[k], keys[1]) - y * _scattered(cols[k], keys[0])
            line += term if one else term * _scattered(values[k], keys[2])
        total += line
    found[0] = total


def _value(text, at, kind, fives, tens):
    """(place after it, its 64 bits, `seen`); place -1 if it cannot be settled here."""
    if kind == INTEGER:
        return _integer(text, at)
    at, word = _real(text, at, fives, tens)
    return at, word, 0


def passed(text: np.ndarray, at: int, comments: bytes) -> tuple[int, int]:
    """(place after the blank lines and comments that stand there, their number)."""
    told = np.zeros(2, np.int64)
    compiled(__name__, "_all_passed")(text, at, _letters(comments), told)
    return int(told[0]), int(told[1])


def lines(
    text: np.ndarray, at: int, prefix: int, comments: bytes, ids: bool, first: int, bounds: tuple[int, int],
    diagonal: bool, kind: int, count: int, seen: int, rows: np.ndarray, cols: np.ndarray, words: np.ndarray,
    apart: bool, steps: tuple[int, ...],
) -> tuple[int, int, int, int]:  # fmt: skip
    """Read lines `[prefix] [row column] [value]` of `text` from the place `at` on.

    text (uint8) ends with a newline; `prefix` is a letter or 0, `comments` two letters that begin lines to skip (line
    ends: none). Where `ids`, they count from `first`, are below `bounds` from there, and differ unless `diagonal`.
    Fields stand `apart` by byte 31, or by blanks. steps: the field of the row, how many fields after it the column
    comes, how many after that the value, and 1 if fields follow that are passed. Writes ids from 0 and the 64 bits of
    each value from `count` on, until the text ends, or before a line that it cannot settle, or has no room for.

    Returns (place, lines passed, count, seen).
    """
    told, ends = np.zeros(4, np.int64), np.array(bounds, np.int64)
    compiled(__name__, "_lines")(
        text, at, prefix, _letters(comments), ids, first, ends, diagonal, kind, count, seen, rows, cols, words, apart,
        np.array(steps, np.int64), *_powers(), told,
    )  # fmt: skip
    at, line, count, seen = told.tolist()
    return at, line, count, seen


def asymmetry(offsets: np.ndarray, cols: np.ndarray, values: np.ndarray, keys: np.ndarray) -> int:
    """0 if a square matrix equals its transpose, and hardly ever for another one.

    `values` (unsigned) has one for each entry, or one. The result is x A y - y A x modulo 2**64 for random x, y and a
    random number for each value, all made of `keys`. Nobody who does not know these can write a matrix for which it is
    0 by chance, and the entries are read once, in order.
    """
    found = np.zeros(1, np.uint64)
    compiled(__name__, "_asymmetry")(offsets, cols, values, keys, found)
    return int(found[0])


def _letters(comments: bytes) -> np.ndarray:
    return np.array([*comments], np.uint8)
