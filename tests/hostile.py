"""Calls with arguments that nobody means: every public method, function, operator and constructor with values drawn
from a nasty pool. `attempt` makes one and says what was wrong with its outcome."""

from __future__ import annotations

import inspect
import operator
import pickle
from random import Random

import numpy as np

import gbgpu as gb
from gbgpu import errors, sparse
from gbgpu.language.expr import Lazy, Operand

# what a call may raise; KeyError: an operator looked up for a type that it does not have
CLASSES = (errors.GraphblasException, TypeError, ValueError, IndexError, OverflowError)


class Odd:
    """What looks like a number, an array or a sequence, and is none."""

    def __len__(self):
        return 2

    def __repr__(self):
        return "Odd()"


def values() -> list:
    """Arguments that are no objects of the session."""
    return [
        None, True, False, 0, 1, 2, 3, -1, -7, 2**31, 2**45, 2**63, 2**64 - 1, 2**70, 10**400, -(2**63), 0.0, -0.0,
        0.5, 1e300, float("nan"), float("inf"), -float("inf"), 1j, "", "x", "plus", "min", "min_plus", ">", "rowwise",
        "csr", "count", "first", b"", b"x", [], [0], [1, 2], [0, 0], [-1], [0.5], [None], ["x"], [[1]], [[1], [2, 3]],
        [2**70], [300, 1], [float("nan")], (), (0, 1), (1, 2, 3), (None, None), (slice(None), 0), (0, slice(None)),
        ([0, 1], [1, 0]), {}, {0: 1}, {"x": 1}, {0: {1: 2}}, {0, 1}, range(2), range(0), slice(None), slice(1, 3),
        slice(None, None, -1), slice("x"), ..., NotImplemented, object(), Odd(), np.int8(3), np.uint64(2**64 - 1),
        np.float32(1.5), np.float64("nan"), np.bool_(True), np.str_("x"), np.complex64(1), np.array(3),
        np.array([1, 2]), np.array([0.5, 1.5]), np.array([True, False]), np.array([[1, 2], [3, 4]]), np.array([]),
        np.array([1, None], object), np.array(["x", "y"]), np.array([1j]), np.array([-1, 5]),
        np.array([2**64 - 1], np.uint64), np.float16(2), np.datetime64("2020-01-01"), int, float, bool, complex,
        object, str, np.int8, "INT8", "FP32", "FC64", "no such", gb, len, lambda x: x, lambda x, y: x + y,
        lambda x: "text", gb.dtypes.INT64, gb.replace, gb.binary, gb.binary.plus, gb.binary.plus["INT64"],
        gb.binary.firstj, gb.binary.lor, gb.unary.abs, gb.unary.positioni, gb.monoid.min, gb.monoid.any,
        gb.semiring.plus_times, gb.semiring.any_secondi, gb.semiring.min_plus["FP64"], gb.select.tril,
        gb.select.valuegt, gb.indexunary.rowindex, gb.agg.mean, gb.agg.argmin, gb.agg.count["INT64"],
    ]  # fmt: skip


def handles() -> dict:
    """Objects of the session in force."""
    made = {
        "v": gb.Vector.from_coo([1, 3], [5, -6], size=4, name="v"),
        "w": gb.Vector.from_dense([1.5, -2.5, 0.0, 4.5], name="w"),
        "p": gb.Vector.from_coo([0, 2], [True, False], size=4, name="p"),
        "u": gb.Vector.from_coo([0, 1], [2**64 - 1, 3], "UINT64", size=3, name="u"),
        "e": gb.Vector("INT8", 0, name="e"),
        "h": gb.Vector.from_coo([1], [2], size=2**45, name="h"),
        "A": gb.Matrix.from_coo([0, 1, 2], [1, 3, 0], [1, 2, 3], nrows=3, ncols=4, name="A"),
        "B": gb.Matrix.from_coo([0, 1, 3], [1, 0, 3], [1.5, 2.5, 3.5], nrows=4, ncols=4, name="B"),
        "Q": gb.Matrix.from_coo([0, 1], [1, 0], [True, False], nrows=4, ncols=4, name="Q"),
        "E": gb.Matrix(int, 0, 3, name="E"),
        "H": gb.Matrix(int, 2**45, 2**45, name="H"),
        "s": gb.Scalar.from_value(3, name="s"),
        "n": gb.Scalar(float, name="n"),
        "S": sparse.csr_array(([1.0, 2.0], ([0, 1], [2, 0])), shape=(4, 4)),
        "C": sparse.coo_array(([1, 2], ([0, 1], [2, 0])), shape=(3, 4)),
    }
    return made


# expressions, transposes and masks of them
DERIVED = """v + w; v | w; v & w; v @ w; B @ w; A @ B; A | A; v.reduce(); A.T; B.T; v.S; ~p.V; Q.S; ~A.S; v[1]; v[2];
v[1:]; A[1, :]; A[[0, 1], [1, 2]]; B[0, 0]; s + 1; A.reduce_rowwise(); B.apply("abs"); v(p.S); B(Q.V, "plus");
v("min")[1:]; v.ss; A.ss; v.reposition(1); h + h; H.T; Q.T; n + s; v.outer(w);
A.kronecker(B)""".replace("\n", " ").split("; ")


ARRAYS = sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix
MODULES = [gb, gb.io, gb.ss, sparse]
# these end the session, write files, or take long
NOT_CALLED = {"init", "compile_ahead", "explain", "trace", "TransposedMatrix", "load_npz", "save_npz"}


def functions() -> list:
    """(name, function) of what can be called beside methods."""
    found = []
    for module in MODULES:
        for name in getattr(module, "__all__", dir(module)):
            one = getattr(module, name)
            if name.startswith("_") or name in NOT_CALLED or not callable(one) or inspect.ismodule(one):
                continue
            if module is gb.io and ("read" in name or "write" in name or name in ("load", "save")):
                continue  # files have tests of their own
            own = hasattr(module, "__all__") or getattr(one, "__module__", "") == module.__name__
            if own and not (isinstance(one, type) and issubclass(one, BaseException)):
                found.append((f"{module.__name__}.{name}", one))
    for cls in (gb.Vector, gb.Matrix, gb.Scalar):
        found += [(f"{cls.__name__}.{n}", getattr(cls, n)) for n in dir(cls) if n.startswith("from_")]
        if cls is not gb.Scalar:
            tools = cls.ss
            found += [(f"{cls.__name__}.ss.{n}", getattr(tools, n)) for n in dir(tools) if n.startswith("import_")]
    return found


def operators() -> list:
    """(name, operator) of every namespace; one of twenty semirings."""
    found = []
    for space in (gb.unary, gb.binary, gb.monoid, gb.semiring, gb.select, gb.indexunary, gb.agg):
        names = [n for n in dir(space) if not n.startswith(("_", "register")) and callable(getattr(space, n))]
        names = [n for n in names if not isinstance(getattr(space, n), type)]
        found += [(f"{space.__name__}.{n}", getattr(space, n)) for n in names[:: 20 if space is gb.semiring else 1]]
    return found


INFIX = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.and_, operator.or_, operator.xor, operator.lt, operator.eq, operator.ne, operator.ge,
    operator.lshift, divmod, operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.iand,
    operator.ior, operator.ixor, operator.imatmul, operator.ifloordiv, operator.imod, operator.ipow, operator.getitem,
    operator.delitem, operator.contains,
]  # fmt: skip
ALONE = [abs, operator.neg, operator.invert, bool, int, float, complex, len, repr, str, list, operator.index, iter]
ALONE += [pickle.dumps, np.asarray, hash]


def valued(s, value):
    s.value = value


def assigned(x, key, value):
    x[key] = value


def masked(x, mask, accum, value):
    x(mask, accum) << value


def placed(x, mask, key, value):
    x(mask)[key] << value


class Calls:
    """A seeded stream of calls on one session."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        gb.init("cpu:2")
        self.ended = list(handles().values())
        gb.init("cpu:3", partition=gb.partition.shares(1, 5, 3))
        self.functions, self.operators, self.values = functions(), operators(), values()
        self.made = handles()
        self.content = contents(self.made)

    def pick(self) -> object:
        kind = self.random.random()
        if kind < 0.55:
            return self.random.choice(self.values)
        if kind < 0.85:
            return self.random.choice(list(self.made.values()))
        if kind < 0.97:
            return eval(self.random.choice(DERIVED), dict(self.made))
        return self.random.choice(self.ended)

    def target(self) -> tuple:
        """(name, function, positional arguments, keywords)."""
        draw, pick = self.random.random(), self.pick
        if draw < 0.2:
            name, function = self.random.choice(self.functions)
            return name, function, *self.arguments(function)
        x = self.random.choice([*self.made.values(), *DERIVED, *self.ended])
        x = eval(x, dict(self.made)) if isinstance(x, str) else x
        if draw < 0.3:
            name, function = self.random.choice(self.operators)
            return name, function, *self.arguments(function, x)
        if draw < 0.4:
            function = self.random.choice(INFIX)
            asked = function in (operator.lshift, operator.getitem, operator.delitem, operator.contains)
            pair = (x, pick()) if asked or self.random.random() < 0.7 else (pick(), x)
            return function.__name__, function, pair, {}
        if draw < 0.45:
            function = self.random.choice(ALONE)
            return function.__name__, function, (x,), {}
        if draw < 0.6:
            function = self.random.choice([assigned, masked, placed])
            return function.__name__, function, [x, *(pick() for _ in inspect.signature(function).parameters)][:-1], {}
        name = self.random.choice([n for n in dir(x) if not n.startswith("_") and n != "of"] or ["__repr__"])
        try:
            function = getattr(x, name)
        except (*CLASSES, AttributeError):  # of what can't be computed, or says that it has none
            return "repr", repr, (x,), {}
        if not callable(function):
            return "valued", valued, (self.made["s"], pick()), {}
        return f"{type(x).__name__}.{name}", function, *self.arguments(function)

    def arguments(self, function, *first) -> tuple[list, dict]:
        try:
            names = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            names = []
        keywords = {}
        places = [one for one in names if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        room, needed = len(places), sum(one.default is one.empty for one in places)
        for one in names:
            if one.kind is one.KEYWORD_ONLY and (one.default is one.empty or self.random.random() < 0.2):
                keywords[one.name] = self.pick()
        count = self.random.randint(needed, max(room, needed)) if names else self.random.randint(0, 2)
        return [*first, *(self.pick() for _ in range(max(count, len(first)) - len(first)))], keywords

    def attempt(self) -> tuple[str, str]:
        """(the call, what was wrong with its outcome or "")."""
        name, function, positional, keywords = self.target()
        text = f"{name}({', '.join([*map(shown, positional), *(f'{k}={shown(v)}' for k, v in keywords.items())])})"
        try:
            found = function(*positional, **keywords)
            if isinstance(found, Lazy):
                found.new()
        except errors.Panic as error:
            return text, f"Panic: {error}"
        except CLASSES as error:
            wrong = "" if not isinstance(error, UnicodeError) else repr(error)
        except (NotImplementedError, ZeroDivisionError) as error:  # SciPy's
            wrong = "" if "array" in text else repr(error)
        except AttributeError as error:  # CPython's for a class that has items that can be set
            wrong = "" if str(error) == "__delitem__" else repr(error)
        except KeyError as error:
            known = isinstance(error.args[0], str) and "does not work with" in error.args[0]
            wrong = "" if known else f"KeyError: {shown(error.args[0])}"
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        else:
            self.made = handles()
            return text, ""
        if contents(self.made) != self.content:
            self.made = handles()
            return text, f"{wrong} and it changed an object"
        return text, wrong


def contents(made: dict) -> list:
    found: list = []
    for x in made.values():
        if sparse.issparse(x):
            found.append((x.shape, str(x.dtype), x.nnz, repr(x.data.tolist()), x.format))
        elif x.ndim == 2 and x.shape[0] > 100:
            found.append((x.shape, x.dtype, x.nvals))
        else:
            held = [x.value] if x.ndim == 0 else [part.tolist() for part in x.to_coo()]
            found.append((x.shape, x.dtype, repr(held)))
    return found


def shown(x: object) -> str:
    if isinstance(x, (Operand, *ARRAYS)):
        named = getattr(x, "_name", None) or getattr(x, "text", None)
        return named if isinstance(named, str) else type(x).__name__
    return repr(x)[:60]
