"""Which operators and types random statements are made of. The ordinary lists are short: each row is a few compiled
kernels, and the same lists are the sample for GPUs. The long run goes through every operator, each with a few of its
types in turn, so that all types come with all kinds of operators."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import graphblas as oracle
import numpy as np
from programs import NP, WIDE

MODULES = ("binary", "unary", "monoid", "semiring", "select", "indexunary", "agg")

# ---------------------------------------------------------------- ordinary: operator, types of both operands

PRODUCTS = [
    ("any_pair", "BOOL", "BOOL"),
    ("min_plus", "INT64", "INT64"),
    ("plus_times", "FP64", "FP64"),
    ("min_second", "INT8", "INT8"),
    ("any_secondi", "INT64", "BOOL"),
]
MXM = [
    ("any_pair", "BOOL", "BOOL"),
    ("min_plus", "INT64", "INT64"),
    ("plus_times", "FP64", "FP64"),
    ("plus_pair", "BOOL", "BOOL"),
    ("max_firstj", "INT64", "BOOL"),
]
EWISE = [
    ("plus", "INT64", "INT64"),
    ("minus", "FP64", "FP64"),
    ("second", "BOOL", "BOOL"),
    ("lt", "INT64", "FP64"),
    ("max", "INT8", "INT8"),
]
POSITIONAL = [("secondj", "INT64", "BOOL")]
KRON = [("times", "INT64", "INT64"), ("minus", "FP64", "FP64")]
OUTER = KRON
UNARY = [("abs", "INT8"), ("minv", "FP64"), ("lnot", "BOOL"), ("one", "INT64")]
BOUND = [("minus", "INT64"), ("floordiv", "INT64")]
INDEX = [("index", "BOOL"), ("rowindex", "INT64"), ("colindex", "FP64"), ("diagindex", "BOOL")]
SELECT = [("valuegt", "INT64"), ("valuene", "FP64"), ("indexle", "FP64"), ("tril", "INT64"), ("offdiag", "BOOL")]
REDUCE = [("plus", "FP64"), ("min", "INT64"), ("lor", "BOOL")]
AGGREGATE = [("count", "BOOL"), ("mean", "INT64")]
INFIX = ["{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} == {k}", "-{x}", "{k} - {x}", "{x} * {s}"]
INFIX_TYPES = ["INT64"]
ACCUMS = {"BOOL": ["binary.lor"], "INT8": ["binary.plus"], "INT64": ["'+'", "binary.min"], "FP64": ["monoid.max"]}
STORED = ["BOOL", "INT64"]  # of what assignments, extractions and masks are tried with

# ---------------------------------------------------------------- what differs how

LIBRARY = {"pow", "rpow", "atan2", "hypot", "ldexp", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos",
           "cosh", "erf", "erfc", "exp", "exp2", "expm1", "lgamma", "log", "log10", "log1p", "log2", "sin", "sinh",
           "sqrt", "tan", "tanh", "tgamma"}
CHECKS = {"plus": "sum", "min": "nan", "max": "nan"}  # by the monoid; anything else is exact
TERMS = {  # what `any` chooses from: a_ik, b_kj and the places i, k, j
    "first": lambda a, b, i, k, j: a, "second": lambda a, b, i, k, j: b,
    "firsti": lambda a, b, i, k, j: i, "firstj": lambda a, b, i, k, j: k,
    "secondi": lambda a, b, i, k, j: k, "secondj": lambda a, b, i, k, j: j,
    "firsti1": lambda a, b, i, k, j: i + 1, "firstj1": lambda a, b, i, k, j: k + 1,
    "secondi1": lambda a, b, i, k, j: k + 1, "secondj1": lambda a, b, i, k, j: j + 1,
}  # fmt: skip


def product_check(name: str) -> str:
    monoid, _, multiply = name.partition("_")
    return "any" if monoid == "any" and multiply in TERMS else CHECKS.get(monoid, "exact")


# ---------------------------------------------------------------- types of results


@cache
def type_of(text: str, *operands: tuple[str, str]) -> str:
    """The type of an expression over objects of python-graphblas: (name, type). Capitals are matrices, s is a scalar.
    Raises KeyError where it has no such types."""
    space = {module: getattr(oracle, module) for module in MODULES} | {"np": np}
    for name, dtype in operands:
        space[name] = oracle.Matrix(dtype, 1, 1) if name.isupper() else oracle.Vector(dtype, 1)
        if name == "s":
            space[name] = oracle.Scalar.from_value(1, dtype=dtype)
    return str(eval(text, space).dtype)


def works(text: str, *operands: tuple[str, str]) -> bool:
    try:
        return bool(type_of(text, *operands))
    except KeyError:
        return False


# ---------------------------------------------------------------- long: every operator, types in turn


def types_of(module: str, name: str) -> list[str]:
    found = [str(dtype) for dtype in getattr(getattr(oracle, module), name).types if str(dtype) in NP]
    monoid, _, multiply = name.partition("_")
    reduces = module in ("semiring", "monoid")
    if name == "rpow":
        return ["FP32", "FP64"]  # integers: see _UNSURE
    if reduces and (monoid == "times" or monoid == "plus" and multiply not in ("", *_SAFE)):
        found = [dtype for dtype in found if not dtype.startswith("FP")]  # the order of the terms shows
    return found


# what `plus` may add up in floats: absolute operands make the terms no smaller, so that `sum` bounds the rounding
_SAFE = ("times", "first", "second", "pair", "plus", "min", "max", "firsti", "secondj", "firstj1")


def spread(module: str, names: list[str], each: int, sides: int = 1) -> list[tuple[str, ...]]:
    """Each operator with `each` of its types in turn; every third row of a binary one mixes two."""
    rows, turn = [], 0
    for name in names:
        known = types_of(module, name)
        for _ in range(min(each, len(known))):
            turn += 1
            first = known[7 * turn % len(known)]
            other = known[5 * turn % len(known)] if turn % 3 == 0 else first
            mixed = {first, other}
            if mixed in ({"UINT64", t} for t in NP if t.startswith("INT")):
                other = first  # python-graphblas takes FP64 for these, whose sums of large values round
            rows.append((name, first, other)[: 1 + sides])
    return rows


def operators(module: str, without: tuple[str, ...] = ()) -> list[str]:
    namespace = getattr(oracle, module)
    names = [name for name in dir(namespace) if name[0] != "_"]
    names = sorted(name for name in names if isinstance(getattr(getattr(namespace, name), "types", None), Mapping))
    return [name for name in names if name not in without and types_of(module, name)]


SEMIRINGS = """any_pair any_first any_second any_firstj any_secondi any_firsti1 any_secondj1 min_plus min_times min_max
min_first min_second min_minus min_pair max_plus max_times max_min max_first max_second max_rminus max_pair plus_times
plus_plus plus_first plus_second plus_pair plus_min plus_max plus_minus times_plus times_times times_first times_second
lor_land lor_lor lor_first lor_pair lor_eq lor_gt land_lor land_eq land_second lxor_land lxor_lxor lxnor_lor eq_ne
band_bor bor_band bxor_band bxnor_bor plus_rminus min_truediv plus_isgt max_iseq min_firsti max_firstj plus_secondi
max_secondj1 plus_land""".split()

# python-graphblas gives whatever was there for a division by zero; C leaves open what ldexp makes of a large exponent
_UNSURE = ("floordiv", "rfloordiv", "ldexp")

if WIDE:
    _PLACES = tuple(f"{side}{place}{one}" for side in ("first", "second") for place in "ij" for one in ("", "1"))
    PRODUCTS = PRODUCTS + spread("semiring", SEMIRINGS, 2, sides=2)
    MXM = MXM + spread("semiring", SEMIRINGS[::-1], 2, sides=2)
    EWISE = EWISE + spread("binary", operators("binary", ("any", "cmplx", *_UNSURE, *_PLACES)), 3, sides=2)
    _PAIRS = [("INT64", "BOOL"), ("FP32", "UINT8")] * 4
    POSITIONAL = [(name, *types) for name, types in zip(_PLACES, _PAIRS, strict=True)]
    KRON = KRON + spread("binary", ["plus", "first", "second", "lor", "eq", "min", "pair", "rminus"], 2, sides=2)
    OUTER = [row for row in KRON if works(f"x.outer(y, binary.{row[0]})", ("x", row[1]), ("y", row[2]))]
    UNARY = UNARY + spread("unary", operators("unary", ("creal", "cimag", "carg", "conj")), 3)
    BOUND = BOUND + [("floordiv", dtype) for dtype in NP if dtype != "BOOL"]
    BOUND = BOUND + spread("binary", operators("binary", ("any", "cmplx", *_UNSURE, *_PLACES)), 2)
    INDEX = INDEX + spread("indexunary", operators("indexunary"), 2)
    SELECT = SELECT + spread("select", operators("select"), 3)
    REDUCE = REDUCE + spread("monoid", operators("monoid", ("any",)), 4)
    # any_value may be any; python-graphblas's first and last crash in SuiteSparse 9.4 (test_battery.py has them)
    AGGREGATE = AGGREGATE + spread("agg", operators("agg", ("any_value", "first", "last")), 3)
    # python-graphblas counts and adds in the type of the entries, which overflows after a few of them (test_regressions
    # has what is right), and squares their sum in FP32, where equal values then differ
    small, means = ("INT8", "INT16", "UINT8", "UINT16"), ("mean", "varp", "stdp", "root_mean_square")
    AGGREGATE = [(name, dtype) for name, dtype in AGGREGATE
                 if not (dtype in small and name in (*means, "geometric_mean", "harmonic_mean"))
                 and not (dtype in (*small, "FP32") and name in ("vars", "stds"))]
    INFIX = INFIX + ["{x} / {y}", "{x} < {y}", "{x} // 3", "{x} % {k}", "{x} ** 2",
                     "{x} <= {y}", "{x} > {k}", "{x} >= {y}",
                     "{x} != {y}", "abs({x})", "{k} < {x}", "{x} + {k}", "{s} - {x}", "{k} / {x}"]
    INFIX_TYPES = [dtype for dtype in NP if dtype != "BOOL"]
    ACCUMS = dict.fromkeys(NP, ["'+'", "binary.minus", "binary.min", "monoid.max", "binary.second", "binary.times"])
    ACCUMS["BOOL"] = ["binary.lor", "monoid.land", "binary.lxor", "'|'", "binary.second", "binary.first"]
    STORED = list(NP)


def literals(dtype: str) -> list[str]:
    """Texts of scalars of exactly this type."""
    if dtype == "BOOL":
        return ["True", "False"]
    kind = f"np.{NP[dtype].__name__}"
    if dtype.startswith("FP"):
        return [f"{kind}({value})" for value in ("0.5", "-1.5", "2", "np.inf", "np.nan")]
    return [f"{kind}({value})" for value in ("0", "1", "3", "7" if dtype.startswith("U") else "-2")]


def scalars(dtype: str) -> list[str]:
    """Texts of scalars to assign to objects of this type, some of other types."""
    if dtype.startswith("FP"):
        return ["0.5", "3", "np.inf", "np.nan", "-1.5", "True"]
    return ["7", "0", "True", "2.75", "5"] + ([] if dtype.startswith("U") else ["-2"])
