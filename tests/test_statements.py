"""The oracle: random statements give what python-graphblas gives, on every set of devices.

Both sides run the same source text (`statements.py`). After each statement its target is compared: type, structure and
values exactly. Only four things may differ: `any` may return another candidate, a float sum may be rounded in another
order, functions of the math library may differ in the last places, and where every term of a min or a max is NaN
SuiteSparse answers NaN or its identity, by the method it happens to choose. What differs is checked against its bound,
then taken over.
"""

from __future__ import annotations

from functools import cache

import graphblas as oracle
import numpy as np
import reference
import statements as s
from hypothesis import given, note
from hypothesis import strategies as st
from statements import NP, Key, Program, Statement

import gbgpu as gb

NAMES = ("binary", "unary", "monoid", "semiring", "select", "indexunary", "replace")


class Mismatch(AssertionError):
    """Results differ; the message ends with a script that repeats it."""


def namespace(module, program: Program) -> dict:
    made = {name: getattr(module, name) for name in NAMES} | {"np": np, "gb": module}
    for key, content in program.contents.items():
        made[key.name] = s.build(module, key, content, program.shape)
    return made


def read(handle, key: Key) -> tuple[str, np.ndarray, np.ndarray]:
    """Type, places (one row an entry) and values."""
    if key.space == "s":
        value = handle.value
        present = [] if value is None else [value]
        return str(handle.dtype), np.zeros((len(present), 0), np.int64), np.array(present, NP[key.dtype])
    *where, what = handle.to_coo()
    return str(handle.dtype), np.stack([np.asarray(ids).astype(np.int64) for ids in where], axis=1), np.asarray(what)


def same(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return (ours == theirs) | ((ours != ours) & (theirs != theirs))


class Run:
    """One program on both sides."""

    def __init__(self, program: Program, start: str):
        self.program, self.start, self.done = program, start, 0
        self.ours, self.theirs = namespace(gb, program), namespace(oracle, program)

    def fail(self, text: str) -> None:
        script = self.program.script(self.done)
        target = self.program.statements[self.done - 1].target
        view = f"print({target.name}{'.value' if target.space == 's' else '.to_coo()'})"
        head = f"import numpy as np\nimport gbgpu as gb\nfrom gbgpu import {', '.join(NAMES)}\n{self.start}"
        raise Mismatch(f"{text}\n\n{head}\n{script}\n{view}")

    def all(self) -> None:
        for key in self.program.contents:
            self.compare(key)
        for statement in self.program.statements:
            self.step(statement)

    def step(self, statement: Statement) -> None:
        self.done += 1
        self.clear_negative_zeros(statement.mask)
        before = read(self.theirs[statement.target.name], statement.target)
        bound = self.magnitude(statement) if statement.check == "sum" else None
        candidates = self.candidates(statement) if statement.check == "any" else None
        exec(statement.text(hints=False), self.theirs)
        try:
            exec(statement.text(hints=True), self.ours)
        except Exception as error:
            error.add_note(self.program.script(self.done) + "\n" + self.start)
            raise
        self.compare(statement.target, statement.check, before, bound, candidates)

    def clear_negative_zeros(self, mask: str) -> None:
        """SuiteSparse takes a -0.0 in a value mask for true, by its bits; the C API's cast to BOOL makes it false."""
        name = mask.removeprefix("~").removesuffix(".V")
        if mask.endswith(".V") and "fp" in name:
            for space in (self.ours, self.theirs):
                space[name] << space["binary"].plus(space[name], 0.0)

    def compare(self, key: Key, check: str = "exact", before=None, bound=None, candidates=None) -> None:
        ours, theirs = read(self.ours[key.name], key), read(self.theirs[key.name], key)
        if ours[0] != theirs[0] or str(ours[2].dtype) != str(theirs[2].dtype):
            self.fail(f"{key.name}: type {ours[0]}, expected {theirs[0]}")
        if ours[1].shape != theirs[1].shape or (ours[1] != theirs[1]).any():
            mine, other = {*map(tuple, ours[1].tolist())}, {*map(tuple, theirs[1].tolist())}
            self.fail(f"{key.name}: structure differs: too many {sorted(mine - other)}, missing {sorted(other - mine)}")
        self.counts(key)
        differs = ~same(ours[2], theirs[2])
        if not differs.any():
            return
        allowed = self.allowed(check, ours, theirs, before, bound, candidates)
        bad = np.nonzero(differs & ~allowed)[0]
        if bad.size:
            rows = [(tuple(ours[1][k].tolist()), ours[2][k].item(), theirs[2][k].item()) for k in bad[:8]]
            self.fail(f"{key.name}: (place, value, expected): {rows}")
        self.take_over(key)

    def counts(self, key: Key) -> None:
        if key.space != "s" and self.ours[key.name].nvals != self.theirs[key.name].nvals:
            self.fail(f"{key.name}: nvals {self.ours[key.name].nvals}, expected {self.theirs[key.name].nvals}")

    def allowed(self, check: str, ours, theirs, before, bound, candidates) -> np.ndarray:
        """Where the values may differ as they do."""
        if check == "any":
            old = {tuple(place): value for place, value in zip(before[1].tolist(), before[2].tolist(), strict=True)}
            pairs = zip(map(tuple, ours[1].tolist()), ours[2], strict=True)
            options = [(value, [*candidates.get(place[0], ()), *([old[place]] if place in old else [])])
                       for place, value in pairs]
            return np.array([any(same(value, np.array(option)) for option in many) for value, many in options], bool)
        if ours[2].dtype.kind != "f" or check == "exact":
            return np.zeros(ours[2].shape, bool)
        if check == "nan":
            return np.isnan(ours[2]) & np.isinf(theirs[2])
        eps = np.finfo(ours[2].dtype).eps
        with np.errstate(invalid="ignore", over="ignore"):
            gap = np.abs(ours[2].astype(float) - theirs[2].astype(float))
            if check == "ulp":
                return gap <= 8 * eps * np.abs(theirs[2].astype(float))
            scale = np.array([bound.get(tuple(place), 0.0) for place in theirs[1].tolist()])
            # a GPU's atomic addition of FP32 takes denormals for zeros, one a term at most
            tiny = np.finfo(ours[2].dtype).tiny * max(self.program.shape.nrows, self.program.shape.ncols)
            # beyond the largest value the order of a sum decides whether it overflows
            return (gap <= 4 * eps * scale + tiny) | (scale > np.finfo(ours[2].dtype).max)

    def magnitude(self, statement: Statement) -> dict:
        """By place: the number of terms times the sum of their absolute values, which bounds a sum's rounding."""
        positive = {}
        for key in statement.uses:
            handle = self.theirs[key.name]
            if key.space == "s":
                continue
            positive[key.name] = oracle.unary.abs(handle.dup(dtype="FP64")).new()
        total = eval(statement.rhs, self.theirs | positive).new(dtype="FP64")
        factor = max(self.program.shape.nrows, self.program.shape.ncols) ** (2 if "scalar" in statement.rhs else 1)
        bounds: dict = {}
        for handle in [total, *([self.theirs[statement.target.name]] if statement.accum else [])]:
            _, where, what = read(handle, statement.target._replace(dtype="FP64"))
            for place, value in zip(map(tuple, where.tolist()), what.tolist(), strict=True):
                if np.isfinite(value):  # sums of infinities and NaN don't depend on the order
                    bounds[place] = bounds.get(place, 0.0) + abs(value) * factor
        return bounds

    def candidates(self, statement: Statement) -> dict[int, list]:
        """What `any` may return in each place of semiring(x @ A), semiring(A @ x) and their transposes."""
        inner = statement.rhs[statement.rhs.index("(") + 1 : -1]
        left, right = inner.split(" @ ")
        matrix_first = left.startswith(("A", "B"))
        vector, matrix = (right, left) if matrix_first else (left, right)
        A = reference.matrix_of(self.theirs[matrix.removesuffix(".T")])
        if matrix_first != matrix.endswith(".T"):
            A = reference.transpose(A)  # reference.candidates wants x @ A
        x, takes = reference.vector_of(self.theirs[vector]), statement.rhs.partition("(")[0]
        if takes == "semiring.any_secondi":
            return reference.candidates(x, A, lambda xi, aij, i: i)
        takes_vector = (takes == "semiring.any_first") != matrix_first
        return reference.candidates(x, A, lambda xi, aij, i: xi if takes_vector else aij)

    def take_over(self, key: Key) -> None:
        """What differs within its bound would make later statements differ: both sides go on with our values."""
        _, where, what = read(self.ours[key.name], key)
        if key.space == "s":
            self.theirs[key.name].value = what[0].item()
        else:
            self.theirs[key.name] = s.make(oracle, key, tuple(where.T), what, self.program.shape)


def check(program: Program, devices) -> None:
    note(devices.text())
    Run(program, devices.text()).all()


KINDS = {
    "products": [s.product],
    "elementwise": [s.elementwise],
    "assign": [s.assign_scalar, s.assign_vector, s.change],
    "apply and select": [s.apply, s.choose],
    "reduce": [s.reduce],
    "matrices": [s.matrix],
    "mixed": [s.product, s.product, s.elementwise, s.assign_scalar, s.assign_vector, s.apply, s.choose, s.reduce,
              s.change],
}


@given(program=s.programs(KINDS["products"]))
def test_products(devices, program):
    check(program, devices)


@given(program=s.programs(KINDS["elementwise"]))
def test_elementwise(devices, program):
    check(program, devices)


@given(program=s.programs(KINDS["assign"]))
def test_assign(devices, program):
    check(program, devices)


@given(program=s.programs(KINDS["apply and select"]))
def test_apply_and_select(devices, program):
    check(program, devices)


@given(program=s.programs(KINDS["reduce"]))
def test_reduce(devices, program):
    check(program, devices)


@given(program=s.programs(KINDS["matrices"], most=5))
def test_matrices(devices, program):
    check(program, devices)


@given(program=s.programs(KINDS["mixed"], most=12))
def test_mixed(devices, program):
    check(program, devices)


def formula(x, y):
    return 2 * x - y + 1


@cache
def user_operators(module) -> dict:
    mine = module.binary.register_anonymous(formula, "mine")
    return {"mine": mine, "mine_least": module.semiring.register_anonymous(module.monoid.min, mine, "mine_least")}


@given(data=st.data())
def test_user_operators(devices, data):
    """One formula, compiled by python-graphblas with Numba and by gbgpu through its own scalar programs."""
    shape = data.draw(s.shapes())
    column = shape.column_space()
    keys = [Key("x", "r", "INT64"), Key("A", "rc", "INT64"), Key("w", column, "INT64"), Key("y", column, "INT64")]
    contents = {key: data.draw(s.contents(key))._replace(palette="small") for key in keys}
    x, A, w, y = keys
    product, union, both = f"{x.name} @ {A.name}", f"{w.name} | {y.name}", f"{y.name} & {w.name}"
    steps = [(w, f"mine_least({product})"), (w, f"mine({union})"), (y, f"mine({both})")]
    program = Program(shape, contents, tuple(Statement(target, rhs, tuple(keys)) for target, rhs in steps))
    run = Run(program, devices.text())
    run.ours |= user_operators(gb)
    run.theirs |= user_operators(oracle)
    run.all()


def test_thunks_and_scalars_take_the_type_of_the_operand(devices):
    """What the oracle gets wrong (it hands 64-bit thunks to 32-bit operators), stated outright."""
    for dtype in ("INT32", "INT64", "FP32", "FP64"):
        x = gb.Vector.from_coo([1, 2, 3], [2, 1, -3], dtype=dtype, size=9)
        for one in (1, 1.0, np.float32(1), np.int64(1)):
            assert gb.select.valuegt(x, one).new().to_coo()[0].tolist() == [1]
            assert x.select("<=", one).new().to_coo()[0].tolist() == [2, 3]
