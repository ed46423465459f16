"""Operators against python-graphblas, and the Python text against the CUDA text, over edge values of every type."""

import ctypes
import itertools
import operator
import pickle
import shutil
import subprocess
from zlib import crc32

import graphblas as pg
import numpy as np
import pytest
from programs import WIDE
from user_functions import USER, WHOLE

import gbgpu as gb
from gbgpu import binary, dtypes, exceptions, indexunary, monoid, op, select, semiring, unary
from gbgpu.dtypes import BOOL, FP32, FP64, INT32, INT64, lookup_dtype, unify
from gbgpu.kernels.kernel import Kernel
from gbgpu.semiring import _operators
from gbgpu.semiring._algebra import Monoid
from gbgpu.semiring._lower import cast_program, literal_cuda, literal_text, to_cuda, to_python, to_text
from gbgpu.semiring._types import INTEGERS, SUPPORTED, convert

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # names that the oracle is about to move
TYPES = SUPPORTED
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.5, 1e-3, np.inf, -np.inf, np.nan, 2147483648.5, -3e9, 9.3e18)
TRANSCENDENTAL = set("cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh".split())
TRANSCENDENTAL |= {"asinh", "acosh", "atanh", "atan2", "hypot", "pow", "rpow", "erf", "erfc", "lgamma", "tgamma"}
TRANSCENDENTAL |= {f"numpy.{n}" for n in ("hypot", "float_power", "logaddexp", "logaddexp2")}
TRANSCENDENTAL |= {f"numpy.{n}" for n in ("degrees", "radians", "deg2rad", "rad2deg")}


def edges(dtype):
    """The values at which arithmetic goes wrong: 0, 1, -1, extremes, infinities, NaN, -0.0, denormals."""
    if dtype is BOOL:
        return np.array([False, True])
    if dtype.kind == "i":
        info = np.iinfo(dtype.np_type)
        return np.array([0, 1, -1, 2, 3, 7, -7, 100, info.min, info.min + 1, info.max], dtype.np_type)
    if dtype.kind == "u":
        top = np.iinfo(dtype.np_type).max
        return np.array([0, 1, 2, 3, 7, 100, top // 2, top // 2 + 1, top - 7, top - 1, top], dtype.np_type)
    info = np.finfo(dtype.np_type)
    ends = [info.max, info.min, info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    return np.array([*FLOATS, *ends], dtype.np_type)


def pairs(dtype):
    values = edges(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


OWN = {cls: set(cls.registry) for cls in (*_operators._CLASSES.values(), Monoid)}  # before tests register theirs


def names(cls):
    """The operators' own names: no aliases, no operators with parameters."""
    return sorted(n for n in OWN[cls] if isinstance(op := cls.registry[n], cls) and op.name == n)


def at(namespace, name):
    """namespace.a.b for "a.b"."""
    return operator.attrgetter(name)(namespace)


def typed_ops(cls):
    return [cls.registry[name][dtype] for name in names(cls) for dtype in TYPES if dtype in cls.registry[name]]


# --- names and types -------------------------------------------------------------------------------------------------


MORE = [(select, pg.select), (indexunary, pg.indexunary)]


@pytest.mark.parametrize("mine, theirs", [(unary, pg.unary), (binary, pg.binary), (monoid, pg.monoid), *MORE])
def test_names_are_python_graphblas_names(mine, theirs):
    registered = set().union(*(set(cls.registry) - own for cls, own in OWN.items()))
    extra = {name for name in dir(mine) if not hasattr(theirs, name) and name != "oneb"}
    assert not extra - {part for name in registered for part in (name, name.partition(".")[0])}


def test_every_semiring_of_known_parts_is_there():
    parts = [name.split("_", 1) for name in dir(pg.semiring) if hasattr(getattr(pg.semiring, name), "binaryop")]
    wanted = {f"{m}_{b}" for m, b in parts if hasattr(monoid, m) and hasattr(binary, b)}
    assert len(wanted) > 180
    assert wanted <= set(dir(semiring))
    assert all(getattr(semiring, name) is getattr(op, name) for name in wanted)


KEYS = ["INT64", "int64", "i8", int, np.int64, np.dtype("i8"), INT64, "fp32", "f4", bool, "float"]


@pytest.mark.parametrize("key", KEYS)
def test_lookup_dtype(key):
    theirs = pg.dtypes.lookup_dtype(key.name if key is INT64 else "FP32" if key == "fp32" else key)
    assert lookup_dtype(key).name == theirs.name
    assert lookup_dtype(key) is lookup_dtype(theirs.np_type)


def test_unify_as_python_graphblas():
    for a, b in itertools.product(TYPES, TYPES):
        assert unify(a, b).name == pg.dtypes.unify(pg.dtypes.lookup_dtype(a.name), pg.dtypes.lookup_dtype(b.name)).name


def test_unsupported_types_name_the_supported_ones():
    for key in ("FC32", "FC64", complex, np.float16):
        with pytest.raises(exceptions.NotImplementedException, match="BOOL, INT8, .* UINT64, FP32, FP64"):
            lookup_dtype(key)
    for key, kind in ((None, TypeError), ("nothing", ValueError), (object, ValueError)):
        with pytest.raises(kind, match="Unknown dtype"):
            lookup_dtype(key)
    assert lookup_dtype("GrB_INT8") is dtypes.INT8 and INT32 != "nothing"
    for operators in (binary.plus, unary.abs, monoid.plus, semiring.plus_times, indexunary.rowindex, select.valuegt):
        assert "nothing" not in operators and object not in operators and "INT8" in operators


def test_dtypes_are_shared_objects():
    assert pickle.loads(pickle.dumps(INT32)) is INT32
    assert INT32 == "INT32" and INT32 == np.int32 and INT32 != "INT64" and INT32 != "nothing" and INT32 is not None
    with pytest.raises(AttributeError):
        INT32.name = "other"
    assert {INT32: 1}[INT32] == 1 and dtypes.lookup_dtype(INT32) is INT32


def types_of(typed, attribute):
    return None if typed is None else getattr(typed, attribute).name


def theirs_or_none(op, key):
    try:
        return op[key]
    except KeyError:
        return None


def check_types(mine, theirs, key):
    expected = theirs_or_none(theirs, tuple(k.name for k in key) if isinstance(key, tuple) else key.name)
    supported = {dtype.name for dtype in TYPES}
    if expected is None or expected.return_type.name not in supported or expected.type.name not in supported:
        assert key not in mine, (mine, key)
        return None
    typed = mine[key]
    assert typed.return_type.name == expected.return_type.name, (mine, key)
    return typed, expected


def input_names(expected, key):
    """The oracle's input type; also ours where it casts inputs that are not read, or that a float function casts."""
    own = unify(*key) if isinstance(key, tuple) else key
    free = expected.return_type.name != "BOOL" and own.name != expected.type.name
    return {expected.type.name, own.name} if free else {expected.type.name}


def asked(cls):
    """The operators of which python-graphblas is asked for the types. It infers the types of those that have
    NumPy's names one by one: the ordinary run asks for one of those that have the same types here. One that goes
    wrong alone has other types than the rest, and is asked for."""
    chosen = {}
    for name in names(cls):
        typed = [cls.registry[name][dtype] for dtype in TYPES if dtype in cls.registry[name]]
        types = tuple((op.type.name, op.return_type.name) for op in typed)
        chosen.setdefault(types if name.startswith("numpy.") and not WIDE else name, name)
    return list(chosen.values())


@pytest.mark.parametrize("name", asked(_operators.BinaryOp))
def test_binary_types(name):
    mine, theirs = at(binary, name), at(pg.binary, name)
    for key in [*TYPES, *itertools.product(TYPES, TYPES)]:
        found = check_types(mine, theirs, key)
        if found:
            assert found[0].dtypes[0].name in input_names(found[1], key)


@pytest.mark.parametrize("kind", ["unary", "select", "indexunary"])
def test_other_types(kind):
    mine, theirs = globals()[kind], getattr(pg, kind)
    for name in asked(_operators._CLASSES[kind]):
        for dtype in TYPES if name != "diagindex" else (INT32, INT64):  # the others are an oversight there
            check_types(at(mine, name), at(theirs, name), dtype)


def test_semiring_types():
    checked = 0
    for name in dir(semiring):
        theirs = getattr(pg.semiring, name, None)
        if not hasattr(theirs, "binaryop"):
            continue
        for key in [*TYPES, *itertools.product(TYPES, TYPES)]:
            found = check_types(getattr(semiring, name), theirs, key)
            if found:
                mine, expected = found
                assert mine.multiply.dtypes[0].name in input_names(expected.binaryop, key), (name, key)
                assert mine.monoid.dtype.name == expected.monoid.type.name, (name, key)
                checked += 1
    assert checked > 4000


def test_monoid_types_and_identities():
    for name in names(monoid.Monoid):
        mine, theirs = at(monoid, name), at(pg.monoid, name)
        for dtype in TYPES:
            found = check_types(mine, theirs, dtype)
            if found:
                assert found[0].identity == found[1].identity, (name, dtype)
                assert found[0].is_idempotent == found[1].is_idempotent, (name, dtype)


# --- values: three ways to compute each program ----------------------------------------------------------------------


class Case:
    """One program and the arrays on which it is computed, one per parameter."""

    def __init__(self, label, program, arrays):
        self.label = label  # of the last operator with this program
        self.program = program
        self.arrays = arrays
        self.values = self.cuda = None

    def run_python(self):
        """The same text run by Python on NumPy scalars."""
        run = to_python(self.program)
        return np.array([run(*row) for row in zip(*self.arrays, strict=True)], self.program.result.np_type)

    @property
    def signature(self):
        return tuple(dtype for _, dtype in self.program.params)


def user_cases():
    for dtype in TYPES[1:]:
        for number, function in enumerate(USER + (WHOLE if dtype.kind in "iu" else [])):
            program = binary.register_anonymous(function)[dtype].program
            yield Case(f"user{number}", program, pairs(dtype))


def index_arrays(dtype, thunk):
    rows = np.array(list(itertools.product(range(3), range(3), range(-2, 3), range(2))))
    values = edges(dtype)[rows[:, 3]]
    return values, rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].astype(thunk.np_type)


def all_cases():
    cases = []
    for t in typed_ops(_operators.UnaryOp):
        ids = [np.full(len(edges(t.type)), n, np.int64) for n in (4, 5)] if t.is_positional else []
        cases.append(Case(repr(t), t.program, (edges(t.type), *ids)))
    for t in typed_ops(_operators.BinaryOp):
        ids = [np.full(len(pairs(t.type)[0]), n, np.int64) for n in (4, 5, 6)] if t.is_positional else []
        cases.append(Case(repr(t), t.program, (*pairs(t.type), *ids)))
    for t in [*typed_ops(_operators.IndexUnaryOp), *typed_ops(_operators.SelectOp)]:
        cases.append(Case(repr(t), t.program, index_arrays(*t.dtypes)))
    for src, dst in itertools.product(TYPES, TYPES):
        cases.append(Case(f"cast {src} {dst}", cast_program(src, dst), (edges(src),)))
    return list({case.program.key: case for case in cases + list(user_cases())}.values())


def batched(items, size):
    return [items[i : i + size] for i in range(0, len(items), size)]


def run_compiled(cases):
    """Programs of one signature in one kernel, some at a time."""
    for signature, group in itertools.groupby(sorted(cases, key=by_signature), key=by_signature):
        params = [f"p{i}" for i in range(signature.count(",") + 1)]
        for some in batched(list(group), 20):
            outs = [f"out{i}" for i in range(len(some))]
            text = [
                "import math",
                "import numpy as np",
                *(to_text(case.program, f"f{i}") for i, case in enumerate(some)),
            ]
            text += [f"def kernel({', '.join(params + outs)}):", f"    for n in range(len({params[0]})):"]
            text += [f"        out{i}[n] = f{i}({', '.join(f'{p}[n]' for p in params)})" for i in range(len(some))]
            for case in some:
                case.values = np.empty(case.arrays[0].size, case.program.result.np_type)
            Kernel("test", "\n".join(text))(*some[0].arrays, *[case.values for case in some])


def by_signature(case):
    # Index operators differ in their arrays only by type, so one signature has one set of arrays.
    return ", ".join(dtype.name for dtype in case.signature)


def run_cuda_text(cases, folder):
    """The CUDA text compiled as C++: the qualifiers are defined away, fused multiply-add is off as on the device."""
    text = ["#include <cmath>", "#define __device__", "#define __forceinline__ inline"]
    for i, case in enumerate(cases):
        text.append(to_cuda(case.program, f"f{i}"))
        types = [dtype.c_type for dtype in case.signature]
        params = ", ".join(f"const {t}* p{k}" for k, t in enumerate(types))
        values = ", ".join(f"p{k}[n]" for k in range(len(types)))
        text.append(f'extern "C" void run{i}(long size, {params}, {case.program.result.c_type}* out)')
        text.append(f"{{ for (long n = 0; n < size; ++n) out[n] = f{i}({values}); }}")
    source, library = folder / "operators.cpp", folder / "operators.so"
    source.write_text("\n".join(text))
    flags = ["-O0", "-shared", "-fPIC", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-function"]
    flags += ["-Wno-parentheses", "-Wno-bool-compare", "-Wno-bool-operation", "-Wno-tautological-compare"]
    subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    for i, case in enumerate(cases):
        case.cuda = np.empty(case.arrays[0].size, case.program.result.np_type)
        arrays = [np.ascontiguousarray(a) for a in (*case.arrays, case.cuda)]
        getattr(loaded, f"run{i}")(ctypes.c_long(case.cuda.size), *[ctypes.c_void_p(a.ctypes.data) for a in arrays])


@pytest.fixture(scope="module")
def computed():
    """The cases by the key of their program: a fifth run by Python, the others compiled."""
    cases = all_cases()
    plain = {id(case) for case in cases if not crc32(case.label.encode()) % 5}
    run_compiled([case for case in cases if id(case) not in plain])
    for case in cases:
        case.values = case.run_python() if id(case) in plain else case.values
    return {case.program.key: case for case in cases}


def bits(values):
    """The values with every NaN made the same, as bytes to compare."""
    clean = np.where(np.isnan(values), np.array(np.nan, values.dtype), values) if values.dtype.kind == "f" else values
    return np.ascontiguousarray(clean).view(np.uint8).reshape(len(values), -1)


def differing(case, left, right):
    rows = np.flatnonzero((bits(left) != bits(right)).any(axis=1))
    return [([a[n].item() for a in case.arrays], left[n].item(), right[n].item()) for n in rows[:5]]


@pytest.mark.skipif(shutil.which("g++") is None, reason="the CUDA text is checked as C++, which needs g++")
def test_both_printings_agree_bit_for_bit(computed, tmp_path):
    cases = [case for case in computed.values() if WIDE or crc32(case.label.encode()) % 2]
    assert len(cases) > 300
    run_cuda_text(cases, tmp_path)
    for case in cases:
        if case.label.partition(".")[2].split("[")[0] in TRANSCENDENTAL:  # two mathematical libraries
            np.testing.assert_allclose(case.values, case.cuda, rtol=1e-6, err_msg=case.label)
        else:
            assert not differing(case, case.values, case.cuda), case.label


def test_python_run_of_the_text_agrees(computed):
    for typed in (binary.plus[INT32], binary.min[FP32], binary.floordiv[INT64], binary.cdiv[INT32], unary.minv[INT64]):
        case = computed[typed.program.key]
        assert not differing(case, case.values, case.run_python()), typed


def pg_vector(values):
    return pg.Vector.from_coo(np.arange(len(values)), values)


def same_values(mine, theirs, rtol=0.0):
    with np.errstate(all="ignore"):
        close = np.isclose(mine, theirs, rtol=rtol, atol=0) if rtol else mine == theirs
    both_nan = (mine != mine) & (theirs != theirs)
    return np.asarray(close) | both_nan


def tolerance(name, dtype):
    return (1e-5 if dtype is FP32 else 1e-12) if name in TRANSCENDENTAL else 0.0


# What python-graphblas has numba compile, for each type anew, as NumPy computes it; the long run asks python-graphblas.
FORMULAS = {"floordiv": np.floor_divide, "rfloordiv": lambda x, y: y // x, "rpow": lambda x, y: y**x,
            "absfirst": lambda x, y: np.abs(x), "abssecond": lambda x, y: np.abs(y)}  # fmt: skip


def expected_values(kind, typed, arrays):
    """The oracle's results; for operators with NumPy's names NumPy's own, since a compiled copy of them errs there."""
    function = None if WIDE or kind == "unary" else FORMULAS.get(typed.name)
    if typed.name.startswith("numpy.") and typed.name != "numpy.float_power":
        function = getattr(np, typed.name.removeprefix("numpy."))
    if function is not None:
        given = typed.return_type if typed.return_type.kind != "b" else typed.type
        with np.errstate(all="ignore"):
            return function(*[a.astype(given.np_type) for a in arrays]).astype(typed.return_type.np_type)
    op, vectors = at(getattr(pg, kind), typed.name)[typed.type.name], [pg_vector(a) for a in arrays]
    return op(vectors[0] if kind == "unary" else vectors[0] & vectors[1]).new().to_coo()[1]


def test_unary_values(computed):
    for typed in typed_ops(_operators.UnaryOp):
        if typed.is_positional:
            continue
        case = computed[typed.program.key]
        theirs = expected_values("unary", typed, case.arrays[:1])
        assert theirs.dtype == case.values.dtype
        ok = same_values(case.values, theirs, tolerance(typed.name, typed.return_type))
        if typed.name == "numpy.reciprocal" and typed.type.kind in "iu":  # 1 / 0 is 0 here, anything there
            ok |= case.arrays[0] == 0
        assert ok.all(), (typed, case.arrays[0][~ok], case.values[~ok], theirs[~ok])


def defined(name, x, y):
    """Where the oracle's result is one: its compiled Python leaves memory unset when a division by zero raises, C
    leaves casts of what does not fit open, and its integer powers go through floats from 2 ** 16 on."""
    everywhere = np.ones(x.size, bool)
    if name in ("floordiv", "rfloordiv"):
        divisor = x if name == "rfloordiv" else y
        return (divisor != 0) & ((divisor != -1) | (x.dtype.kind == "f"))
    if name == "rpow" and x.dtype.kind in "iu":
        return (x >= 0) & (x < 1 << 16)
    if name == "ldexp":
        return (y >= -(2.0**31)) & (y < 2.0**31)
    return everywhere


def test_binary_values(computed):
    for typed in typed_ops(_operators.BinaryOp):
        if typed.is_positional:
            continue
        case = computed[typed.program.key]
        keep = defined(typed.name, *case.arrays)
        theirs = expected_values("binary", typed, [a[keep] for a in case.arrays])
        mine = case.values[keep]
        ok = same_values(mine, theirs, tolerance(typed.name, typed.return_type))
        assert ok.all(), (typed, [a[keep][~ok][:5] for a in case.arrays], mine[~ok][:5], theirs[~ok][:5])


def test_the_oracle_compiles_an_operator_in_its_first_call():
    """oracle_numba.py: types are known before."""
    made, values = pg.binary.register_anonymous(lambda x, y: x * x - y), pg_vector(np.array([3, -4]))
    assert made["INT8"].return_type == "INT8" and not made._numba_func.compiled.overloads
    assert made(values & values).new().to_coo()[1].tolist() == [6, 20]
    assert [*map(str, made._numba_func.compiled.overloads)] == ["(int64, int64)"]


def test_integer_division_by_zero_is_zero(computed):
    for dtype in INTEGERS:
        case = computed[binary.floordiv[dtype].program.key]
        x, y = case.arrays
        assert (case.values[y == 0] == 0).all()
        assert dtype.kind == "u" or (case.values[(y == -1) & (x == x.min())] == x.min()).all()
        with np.errstate(all="ignore"):
            assert (case.values == np.floor_divide(x, y)).all()


def test_min_max_ignore_nan_and_order_zeros():
    for dtype in (FP32, FP64):
        low, high = to_python(binary.min[dtype].program), to_python(binary.max[dtype].program)
        for x, y in [(0.0, -0.0), (-0.0, 0.0)]:
            assert np.signbit(low(x, y)) and not np.signbit(high(x, y))
        for f in (low, high):
            assert f(np.nan, 3.0) == 3.0 == f(3.0, np.nan) and np.isnan(f(np.nan, np.nan))


def test_casts(computed):
    for src, dst in itertools.product(TYPES, TYPES):
        case = computed[cast_program(src, dst).key]
        theirs = pg_vector(case.arrays[0]).dup(dst.name).to_coo()[1]
        assert same_values(case.values, theirs).all(), (src, dst, case.arrays[0], case.values, theirs)


def pg_square(dtype):
    rows, columns = (a.ravel() for a in np.indices((3, 3)))
    return pg.Matrix.from_coo(rows, columns, np.resize(edges(dtype), 9), nrows=3, ncols=3)


def at_square(typed, thunk):
    f, matrix = to_python(typed.program), pg_square(typed.type)
    return {(i, j): f(x, i, j, thunk) for i, j, x in zip(*matrix.to_coo(), strict=True)}


@pytest.mark.parametrize("name", [name for name in names(_operators.SelectOp) if not name.startswith("index")])
def test_select_values(name):
    for dtype, thunk in itertools.product(TYPES, (-1, 0, 1)):
        typed_thunk = convert(thunk, dtype) if name.startswith("value") else thunk
        theirs = getattr(pg.select, name)(pg_square(dtype), typed_thunk).new()
        kept = {key for key, keep in at_square(getattr(select, name)[dtype], typed_thunk).items() if keep}
        assert kept == set(zip(*theirs.to_coo(values=False)[:2], strict=True)), (dtype, thunk)


def test_select_on_vectors_by_index():
    values = pg_vector(np.arange(5))
    for name, thunk in itertools.product(["indexle", "indexgt"], (1, 3)):
        f = to_python(getattr(select, name)[INT64].program)
        theirs = getattr(pg.select, name)(values, thunk).new().to_coo()[0]
        assert [i for i in range(5) if f(i, i, 0, thunk)] == theirs.tolist()


@pytest.mark.parametrize("name", ["rowindex", "colindex", "diagindex"])
def test_indexunary_values(name):
    for dtype, thunk in itertools.product((INT32, INT64) if name == "diagindex" else TYPES, (-1, 0, 2)):
        typed = getattr(indexunary, name)[dtype]
        theirs = getattr(pg.indexunary, name)[dtype.name](pg_square(dtype), thunk).new()
        assert theirs.dtype.name == typed.return_type.name
        mine = at_square(typed, thunk)
        assert [mine[key] for key in zip(*theirs.to_coo()[:2], strict=True)] == theirs.to_coo()[2].tolist()


def test_positional_binary_values():
    a = pg.Matrix.from_coo([1], [2], [7], nrows=4, ncols=4)
    b = pg.Matrix.from_coo([2], [3], [8], nrows=4, ncols=4)
    for name in names(_operators.BinaryOp):
        typed = at(binary, name)[INT64] if INT64 in at(binary, name) else binary.plus[INT64]
        if typed.is_positional:
            theirs = getattr(pg.semiring, f"min_{name}")(a @ b).new().to_coo()[2]
            assert to_python(typed.program)(7, 8, 1, 2, 3) == theirs[0], name
            assert typed.program.uses <= {"i", "k", "j"} and len(typed.program.uses) == 1


def test_uses_says_what_is_read():
    assert binary.first[INT32].program.uses == {"x"} and binary.second[INT32].program.uses == {"y"}
    assert binary.pair[BOOL].program.uses == frozenset() and binary.plus[FP32].program.uses == {"x", "y"}
    assert select.tril[FP64].program.uses == {"i", "j", "t"} and select.valuegt[FP64].program.uses == {"x", "t"}


# --- literals --------------------------------------------------------------------------------------------------------


def test_literals_give_the_value_back():
    for dtype in TYPES:
        for value in edges(dtype):
            text = literal_text(value, dtype)
            again = np.array([eval(text, {"np": np})], dtype.np_type)
            assert (bits(again) == bits(np.array([value]))).all(), text


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_cuda_literals_give_the_value_back(tmp_path):
    values = [(dtype, value) for dtype in TYPES for value in edges(dtype)]
    text = ["#include <type_traits>"]
    for i, (dtype, value) in enumerate(values):
        literal = literal_cuda(value, dtype)
        text.append(f"static_assert(std::is_same<decltype({literal}), {dtype.c_type}>::value);")
        text.append(f'extern "C" void at{i}({dtype.c_type}* out) {{ *out = {literal}; }}')
    (tmp_path / "literals.cpp").write_text("\n".join(text))
    source, library = str(tmp_path / "literals.cpp"), str(tmp_path / "literals.so")
    subprocess.run(["g++", "-shared", "-fPIC", "-Wall", "-Werror", source, "-o", library], check=True)
    loaded = ctypes.CDLL(library)
    for i, (dtype, value) in enumerate(values):
        out = np.empty(1, dtype.np_type)
        getattr(loaded, f"at{i}")(ctypes.c_void_p(out.ctypes.data))
        assert (bits(out) == bits(np.array([value]))).all(), (dtype, value)


# --- registration, laws, strings -------------------------------------------------------------------------------------


def test_register_new_appears_in_the_namespaces():
    made = binary.register_new("test_saturating", lambda x, y: min(x + y, 100))
    assert binary.test_saturating is made is op.test_saturating and "test_saturating" in dir(binary)
    total = monoid.register_new("test_saturating", made, 0)
    assert monoid.test_saturating is total is made.monoid and total[INT32].identity == 0
    assert semiring.test_saturating_times[INT32].monoid is total[INT32]
    own = semiring.register_new("test_own", total, binary.first)
    assert semiring.test_own is own and own[INT64].multiply is binary.first[INT64]
    with pytest.raises(AttributeError, match="already defined"):
        binary.register_new("test_saturating", lambda x, y: x)
    with pytest.raises(AttributeError):
        _ = semiring.no_such


def test_laws_are_spot_checked():
    register = monoid.register_anonymous
    with pytest.raises(exceptions.InvalidValue, match="fails"):
        register(binary.register_anonymous(lambda x, y: x - y), 0)[INT64]
    with pytest.raises(exceptions.InvalidValue, match="identity"):
        register(binary.register_anonymous(lambda x, y: x * y), 0)[INT64]
    with pytest.raises(exceptions.InvalidValue, match=r"f\(1, 1\)"):
        register(binary.register_anonymous(lambda x, y: x + y), 0, is_idempotent=True)[INT64]
    with pytest.raises(exceptions.InvalidValue, match="fails"):
        register(binary.register_anonymous(lambda x, y: (x + y) / 2), 0.0)[FP64]
    largest = register(binary.register_anonymous(max), {"INT32": 0, "FP64": -np.inf}, is_idempotent=True)
    assert largest[INT32].is_idempotent and largest[FP64].identity == -np.inf and INT64 not in largest
    assert binary.register_anonymous(lambda x, y: x * y + 1).is_commutative
    assert not binary.register_anonymous(lambda x, y: x * 2 + y).is_commutative


@pytest.mark.parametrize("kind", ["unary", "binary", "monoid", "select", "semiring"])
def test_strings_as_python_graphblas(kind):
    texts = ["-", "~", "+", "<=", "==", "min", "plus[INT32]", "//", "**", "*", "/", "&", "|", "^", "min_plus", "col<="]
    for text in [*texts, "ABS", "min.plus", "nothing", "plus[", "valuegt", "plus[INT32", "row>", "min_plus[fp64]"]:
        try:
            expected = repr(getattr(pg, kind).from_string(text))
        except ValueError:
            with pytest.raises(ValueError):
                _operators.resolve(text, kind)
        else:
            assert repr(_operators.resolve(text, kind)).removeprefix(f"{kind}.") == expected.removeprefix(f"{kind}.")


def test_resolve():
    resolve = _operators.resolve
    assert resolve(min, "binary") is binary.min and resolve(abs, "unary") is unary.abs
    assert resolve(monoid.plus, "binary") is binary.plus
    assert resolve(monoid.plus["INT32"], "binary") is binary.plus[INT32]
    assert resolve(binary.lt, "select") is select.valuelt and resolve(binary.isge, "select") is select.valuege
    assert resolve(lambda x, y: x, "binary")[INT32].return_type is INT32
    assert resolve("%", "binary") is binary.numpy.mod
    for thing, kind in [(binary.plus, "monoid"), (binary.plus[INT32], "monoid"), (3, "binary"), (unary.abs, "binary")]:
        with pytest.raises(TypeError, match="Bad type for argument `op`"):
            resolve(thing, kind)


# gcd(0, -3) is 3; log(exp(-inf) + exp(-0.0)) is 0.0
INEXACT = {"any", "numpy.gcd", "numpy.hypot", "numpy.logaddexp", "numpy.logaddexp2"}


def test_starts_are_exact_neutrals():
    for name, dtype in itertools.product(names(monoid.Monoid), TYPES):
        if dtype not in at(monoid, name) or name in INEXACT or name.startswith("test_"):
            continue
        typed = at(monoid, name)[dtype]
        f, values = to_python(typed.program), edges(typed.dtype)
        out = np.array([f(typed.start, v) for v in values], typed.dtype.np_type)
        assert (bits(out) == bits(values)).all(), typed
        if typed.terminal is not None:
            assert all(f(typed.terminal, v) == typed.terminal for v in values), typed


@pytest.mark.parametrize("dtype", ["UINT8", "INT64", "BOOL"])
@pytest.mark.parametrize("name", ["truediv", "rtruediv", "fmod", "hypot", "copysign", "plus", "min", "second"])
def test_accumulators_take_values_in_their_type(name, dtype, monkeypatch):
    """7 / 2.5 is no 7 / 2: the output's type is that of the result alone."""
    monkeypatch.setattr(gb.settings, "interpret", True)
    gb.init("cpu:3")
    found = []
    for m in (gb, pg):
        op = getattr(m.binary, name)
        old = [True, False, True] if dtype == "BOOL" else [7, 3, 100]
        v, A = m.Vector.from_coo([0, 1, 2], old, dtype, size=5), m.Matrix.from_coo([0, 1, 2], [0, 1, 0], old, dtype)
        w, x = m.Vector.from_coo([0, 2, 3], [2.5, 3.5, 4.0], size=5), m.Vector.from_coo([0, 1], [2.5, 1.5], size=3)
        B, s = m.Matrix.from_coo([0, 2, 2], [0, 0, 1], [2.5, 1.5, 3.5]), m.Scalar.from_value(7, dtype)
        v(op) << w
        v(op)[[0, 1]] << w[[0, 2]].new()
        v(op)[0] << 2.5
        v(w.S, op) << 2.5
        A(op) << B
        A(op)[:, 0] << x
        A(op)[[2, 0], :] << B[:2, :].new()
        A(op)[0, 0] << 2.5
        s(op) << 2.5
        s(op) << x.reduce(m.monoid.plus)
        found.append([*v.to_dense(0), *A.to_dense(0).ravel(), s.value])
    assert np.allclose(*found, rtol=1e-6, atol=0), found
