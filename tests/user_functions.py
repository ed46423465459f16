"""User functions that several tests compile: traced ones, ones for integers, and one that branches."""


def clipped(x, y, top=5):
    """Branches, so that its source is read."""
    low = min(x, y)
    if low < 0:
        low = -low
    elif low > top:
        return top
    return low if 1 <= low < 3 else max(low, y)


USER = [
    lambda x, y: x + y * 2,
    lambda x, y: (x - y) / 4,
    lambda x, y: x // y,
    lambda x, y: x % y,
    lambda x, y: abs(x) + (x > y),
    lambda x, y: x if x > y else y,
    lambda x, y: -x * 0.1 + y**3,
    clipped,
]
WHOLE = [lambda x, y: (x & 12) | (y ^ 5), lambda x, y: ~x + (y << 3) - (x >> 2), lambda x, y: int(x * 1.5) + y]
