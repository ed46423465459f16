"""Functions with loops or with two results, which no formula gives: printed inside the programs that call them.

Each has a Python text and a CUDA text that do the same steps; gcd and ipow take UINT64, binom and comb INT64.
"""

from __future__ import annotations

from gbgpu.semiring._scalar import Program, ordered
from gbgpu.semiring._types import FP32

# python-graphblas's: 0 as soon as a step does not fit, though the result might.
_BINOM = (
    """
def binom(n, k):
    if k > n or k < 0:
        return np.int64(0)
    value = np.int64(1)
    for i in range(min(k, n - k)):
        if value > 9223372036854775807 // (n - i):
            return np.int64(0)
        value = np.int64(value * (n - i) // (i + 1))
    return value
""",
    """
auto binom = [](long long n, long long k) -> long long {
    if (k > n || k < 0) return 0;
    long long value = 1;
    for (long long i = 0; i < (k < n - k ? k : n - k); ++i) {
        if (value > 9223372036854775807LL / (n - i)) return 0;
        value = value * (n - i) / (i + 1);
    }
    return value;
};
""",
)
# Right up to the largest result that fits, 0 beyond: what a step divides by goes first.
_COMB = (
    """
def comb(n, k):
    if k > n or k < 0:
        return np.int64(0)
    value = np.int64(1)
    for i in range(min(k, n - k)):
        part = value % (i + 1) * (n - i) // (i + 1)
        value = value // (i + 1)
        if value > (9223372036854775807 - part) // (n - i):
            return np.int64(0)
        value = np.int64(value * (n - i) + part)
    return value
""",
    """
auto comb = [](long long n, long long k) -> long long {
    if (k > n || k < 0) return 0;
    long long value = 1;
    for (long long i = 0; i < (k < n - k ? k : n - k); ++i) {
        const long long part = value % (i + 1) * (n - i) / (i + 1);
        value /= i + 1;
        if (value > (9223372036854775807LL - part) / (n - i)) return 0;
        value = value * (n - i) + part;
    }
    return value;
};
""",
)
_IPOW = (
    """
def ipow(x, n):
    result = np.uint64(1)
    while n > np.uint64(0):
        if n & np.uint64(1) != np.uint64(0):
            result = np.uint64(result * x)
        x = np.uint64(x * x)
        n = np.uint64(n >> np.uint64(1))
    return result
""",
    """
auto ipow = [](unsigned long long x, unsigned long long n) {
    unsigned long long result = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1) result *= x;
    return result;
};
""",
)
_GCD = (
    """
def gcd(a, b):
    while b != np.uint64(0):
        rest = np.uint64(a % b)
        a = b
        b = rest
    return a
""",
    """
auto gcd = [](unsigned long long a, unsigned long long b) {
    while (b != 0) {
        const unsigned long long rest = a % b;
        a = b;
        b = rest;
    }
    return a;
};
""",
)
# The exponent of what is not finite is 0, whatever the library says.
_FREXPX = (
    "def frexpx(x):\n    return math.frexp(x)[0]",
    """
auto frexpx{f} = []({type} x) -> {type} {
    int exponent;
    return frexp{f}(x, &exponent);
};
""",
)
_FREXPE = (
    "def frexpe(x):\n    return float(math.frexp(x)[1] if abs(x) < np.inf else 0)",
    """
auto frexpe{f} = []({type} x) -> {type} {
    int exponent = 0;
    frexp{f}(x, &exponent);
    return x - x == 0 ? ({type})exponent : 0;
};
""",
)
HELPERS = {"binom": _BINOM, "comb": _COMB, "ipow": _IPOW, "gcd": _GCD, "frexpx": _FREXPX, "frexpe": _FREXPE}


def helpers(program: Program, dialect: str) -> list[str]:
    """The lines that define, inside a function, the helpers that the program calls."""
    called = {(n.value, n.dtype is FP32) for n in ordered(program.body) if n.op == "call" and n.value in HELPERS}
    lines: list[str] = []
    for name, single in sorted(called):
        text = HELPERS[name][dialect == "cuda"].strip()
        text = text.replace("{f}", "f" if single else "").replace("{type}", "float" if single else "double")
        lines += ["    " + line for line in text.split("\n")]
    return lines
