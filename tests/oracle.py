"""Runs a program on both sides and compares: type, structure and values exactly. Only five things may differ: `any` may
return another candidate, a float sum may be rounded in another order, functions of the math library and aggregators may
differ in the last places, and where every term of a min or a max is NaN SuiteSparse answers NaN or its identity, by the
method it happens to choose. What differs is checked against its bound, then taken over. A float that is stored as an
integer, or as whether it is zero, may differ as far as its rounding decides that."""

from __future__ import annotations

import dataclasses
import faulthandler
import os
import re
import signal
import warnings
from collections import Counter

import graphblas
import numpy as np
import oracle_numba  # noqa: F401  (also on ranks, which no conftest.py prepares)
import programs as p
import reference
import tables
from programs import NP, Key, Program, Statement

import gbgpu as gb

NAMES = (*tables.MODULES, "replace")
HEAD = f"import numpy as np\nimport gbgpu as gb\nfrom gbgpu import {', '.join(NAMES)}\n"
IDS = "ids = lambda places: gb.Vector.from_dense(np.array(places))\n"
REFUSALS = gb.exceptions.GraphblasException, TypeError, ValueError, IndexError, KeyError
RAN: Counter[str] = Counter()  # statements by devices and operation: "cpu:3 shares threads: mxm"
warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*is specific to SuiteSparse.*")


class Mismatch(AssertionError):
    """Results differ; the message ends with a script that repeats it."""


def namespace(module, program: Program) -> dict:
    made = {name: getattr(module, name) for name in NAMES} | {"np": np, "gb": module}
    made["ids"] = list if module is graphblas else lambda places: gb.Vector.from_dense(np.array(places))
    for key, content in program.contents.items():
        made[key.name] = p.build(module, key, content, program.shape)
    return made


def read(handle, key: Key) -> tuple[str, np.ndarray, np.ndarray]:
    """Type, places (one row an entry) and values."""
    if not key.space:
        value = handle.value
        present = [] if value is None else [value]
        return str(handle.dtype), np.zeros((len(present), 0), np.int64), np.array(present, NP[key.dtype])
    *where, what = handle.to_coo()
    return str(handle.dtype), np.stack([np.asarray(ids).astype(np.int64) for ids in where], axis=1), np.asarray(what)


def same(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return (ours == theirs) | ((ours != ours) & (theirs != theirs))


def made(key: Key, content: tuple, shape: p.Shape):
    """The python-graphblas object of what was `read`."""
    _, where, what = content
    if key.space:
        return p.make(graphblas, key, tuple(where.T), what, shape)
    scalar = graphblas.Scalar(key.dtype)
    scalar.value = what[0].item() if what.size else None
    return scalar


def with_values(term, values: np.ndarray):
    """A python-graphblas object with other values, FP64, in the same places."""
    other = term.dup(dtype="FP64")
    if not term.ndim:
        other.value = values[0].item() if values.size else None
    else:
        other.build(*term.to_coo(values=False)[: term.ndim], values, clear=True)
    return other


ROUNDED = "sum", "ulp", "close"  # checks of floats that are rounded in one way or another
CANCELS = "'+'", "binary.plus", "binary.minus"  # accumulators: what is left may be less than their operands' errors


def by_place(content: tuple) -> dict:
    """The values of what was `read`."""
    return {tuple(place): value for place, value in zip(content[1].tolist(), content[2].tolist(), strict=True)}


class Run:
    """One program on both sides."""

    def __init__(self, program: Program, devices):
        self.program, self.start, self.devices, self.done = program, devices.text(), devices.name, 0
        self.ours, self.theirs = namespace(gb, program), namespace(graphblas, program)

    def script(self) -> str:
        program = self.program.script(self.done)
        ids = IDS if "ids(" in program else ""
        return f"{HEAD}{self.start}\n{ids}{program}"

    def fail(self, text: str) -> None:
        target = self.program.statements[self.done - 1].target
        view = f"print({target.name}{'.to_coo()' if target.space else '.value'})"
        raise Mismatch(f"{text}\n\n{self.script()}\n{view}")

    def all(self) -> None:
        if p.WIDE and self.oracle_dies():
            RAN[f"{self.devices}: SuiteSparse crashed"] += 1
            return
        for key in self.program.contents:
            self.compare(key)
        for statement in self.program.statements:
            if not self.step(statement):
                break

    def oracle_dies(self) -> bool:
        """Whether SuiteSparse crashes on the program, tried in a process of its own."""
        if child := os.fork():
            return os.WIFSIGNALED(os.waitpid(child, 0)[1])
        try:
            faulthandler.disable()
            signal.alarm(60)
            graphblas.ss.config["nthreads"] = 1  # threads don't survive a fork
            for statement in self.program.statements:
                self.plain_masks(statement, (self.theirs,))
                exec(statement.text(hints=False), self.theirs)
        except BaseException:
            pass
        finally:
            self.theirs.clear()  # damage to the heap mostly shows when it is freed
            os._exit(0)

    def step(self, statement: Statement) -> bool:
        """Whether both sides went on; a statement that python-graphblas refuses must be refused here too."""
        self.done += 1
        self.plain_masks(statement, (self.ours, self.theirs))
        statement = self.offered(statement)
        before = read(self.theirs[statement.target.name], statement.target)
        refused = self.carry_out(statement)
        if refused is None:
            bound = self.bound(statement, before)
            candidates = self.choices if statement.check == "any" else None
            self.compare(statement.target, statement.check, before, bound, candidates)
        RAN[f"{self.devices}: {statement.op if refused is None else 'refused by both'}"] += 1
        return refused is None

    def offered(self, statement: Statement) -> Statement:
        """Without a method hint that the devices or the operands do not allow."""
        method = re.search(r'method="(\w+)"', statement.hints)
        if not method:
            return statement
        right = statement.rhs.removesuffix(")").split(" @ ")[-1] if " @ " in statement.rhs else ""
        B = self.ours.get(right.removesuffix(".T")) if right else None
        allowed = {
            "dot": statement.mask[:1] not in ("", "~") and not re.search("[&|]", statement.mask),
            "dense": B is not None and B.nvals == B.nrows * B.ncols,
        }
        known = method[1] in gb.settings.session().kernels.mxm
        return statement if known and allowed.get(method[1], True) else dataclasses.replace(statement, hints="")

    def carry_out(self, statement: Statement) -> Exception | None:
        """Run on both sides; the error, if both raise one."""
        self.choices = self.candidates(statement) if statement.check == "any" else {}
        self.total = self.magnitude(statement) if statement.check == "sum" else None
        self.nans = self.nan_terms(statement) if statement.check == "nan" else set()
        refused = None
        try:
            exec(statement.text(hints=False), self.theirs)
        except (graphblas.exceptions.GraphblasException, TypeError, ValueError, IndexError) as error:
            refused = error
        except KeyError as error:  # no such operator for these types there; here there may be
            return error
        try:
            exec(statement.text(hints=True), self.ours)
        except Exception as error:
            if isinstance(error, gb.exceptions.EmptyObject) and self.has_empty_scalar(statement):
                return error  # python-graphblas does not look at a scalar where there is no place for a result
            if refused is None or not isinstance(error, REFUSALS):
                error.add_note(self.script())
                raise
        else:
            if refused is not None:
                self.fail(f"python-graphblas refuses: {refused!r}")
        return refused

    def has_empty_scalar(self, statement: Statement) -> bool:
        return any(not key.space and self.ours[key.name].is_empty for key in statement.uses)

    def plain_masks(self, statement: Statement, spaces: tuple[dict, ...]) -> None:
        """SuiteSparse takes a -0.0 in a value mask for true, by its bits; the C API's cast to BOOL makes it false.
        python-graphblas takes NaN and values between -1 and 1 for false where it combines complements."""
        text = f"{statement.mask} {statement.rhs}"
        for name in re.findall(r"(\w+_fp\d+)\.V", text):
            for space in spaces:
                if re.search("[&|]", text):
                    space[name] << space["binary"].ne(space[name], 0)
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
            if ours[2].dtype.kind == "f" and (np.signbit(ours[2]) != np.signbit(theirs[2])).any():
                self.take_over(key)  # which of two zeros is a minimum depends on the order; a quotient would tell them
            return
        allowed = self.allowed(check, ours, theirs, before, bound, candidates)
        bad = np.nonzero(differs & ~allowed)[0]
        if bad.size:
            rows = [(tuple(ours[1][k].tolist()), ours[2][k].item(), theirs[2][k].item()) for k in bad[:8]]
            self.fail(f"{key.name}: (place, value, expected): {rows}")
        self.take_over(key)

    def counts(self, key: Key) -> None:
        if key.space and self.ours[key.name].nvals != self.theirs[key.name].nvals:
            self.fail(f"{key.name}: nvals {self.ours[key.name].nvals}, expected {self.theirs[key.name].nvals}")
        if key.space and self.ours[key.name].shape != self.theirs[key.name].shape:
            self.fail(f"{key.name}: shape {self.ours[key.name].shape}, expected {self.theirs[key.name].shape}")

    def allowed(self, check: str, ours, theirs, before, bound, candidates) -> np.ndarray:
        """Where the values may differ as they do."""
        if check == "any":
            return self.is_candidate(ours, before, candidates)
        if check == "nan" and ours[2].dtype.kind != "f":  # what an integer is made of
            return np.array([tuple(place) in self.nans for place in ours[1].tolist()], bool)
        if check in ROUNDED and ours[2].dtype.kind != "f":
            return self.is_rounding(ours, before)
        if ours[2].dtype.kind != "f" or check == "exact":
            return np.zeros(ours[2].shape, bool)
        if check == "nan":
            return np.isnan(ours[2]) & np.isinf(theirs[2])
        eps = np.finfo(ours[2].dtype).eps
        with np.errstate(invalid="ignore", over="ignore"):
            gap, size = np.abs(ours[2].astype(float) - theirs[2].astype(float)), np.abs(theirs[2].astype(float))
            if self.program.statements[self.done - 1].accum in CANCELS:
                old = by_place(before)
                size += [abs(old.get(tuple(place), 0.0)) for place in theirs[1].tolist()]
            if check == "ulp":
                return gap <= 8 * eps * size
            if check == "close":
                return gap <= 200 * eps * (1 + size)
            scale = np.array([bound.get(tuple(place), 0.0) for place in theirs[1].tolist()])
            # a GPU's atomic addition of FP32 takes denormals for zeros, one a term at most
            tiny = np.finfo(ours[2].dtype).tiny * max(self.program.shape)
            # beyond the largest value the order of a sum decides whether it overflows
            return (gap <= 4 * eps * scale + tiny) | (scale > np.finfo(ours[2].dtype).max)

    def is_candidate(self, ours, before, candidates) -> np.ndarray:
        """Whether each value is one of the terms, or what was there before."""
        old = by_place(before)
        kind = ours[2].dtype
        found = []
        for place, value in zip(map(tuple, ours[1].tolist()), ours[2], strict=True):
            options = [*candidates.get(place, ()), *([old[place]] if place in old else [])]
            found.append(any(same(value, np.array(option).astype(kind)) for option in options))
        return np.array(found, bool)

    # -- what may differ, and how much

    def magnitude(self, statement: Statement):
        """By place: the sum of the absolute values of all terms."""
        positive = {}
        for key in statement.uses:
            if key.space:
                positive[key.name] = graphblas.unary.abs(self.theirs[key.name].dup(dtype="FP64")).new()
        return eval(statement.rhs, self.theirs | positive).new(dtype="FP64")

    def nan_terms(self, statement: Statement) -> set:
        """The places where the right side is NaN here, and a minimum's identity there."""
        if statement.index or statement.target.dtype.startswith("FP"):
            return set()
        try:
            term = eval(statement.rhs, self.ours).new()
        except Exception:  # the statement itself will tell
            return set()
        _, where, what = read(term, statement.target._replace(dtype=term.dtype.name))
        return {tuple(place) for place, value in zip(where.tolist(), what.tolist(), strict=True) if value != value}

    def is_rounding(self, ours, before) -> np.ndarray:
        """Whether each value, of no float type, is what the statement gives for a float right side rounded otherwise.

        The statement runs again on python-graphblas with other right sides: the least and the greatest number that
        rounding leaves possible, and the one between them that is closest to zero."""
        statement = self.program.statements[self.done - 1]
        key, name = statement.target, statement.target.name
        given = self.theirs | {name: made(key, before, self.program.shape)}
        term = eval(statement.rhs, given).new()
        if not term.dtype.name.startswith("FP"):
            return np.zeros(ours[2].shape, bool)
        what, room = self.room(statement, term)
        results = []
        for edge in (what - room, what + room, np.clip(0, what - room, what + room)):
            space = given | {name: made(key, before, self.program.shape), "rounded": with_values(term, edge)}
            exec(dataclasses.replace(statement, rhs="rounded").text(hints=False), space)
            results.append(read(space[name], key)[2])
        found = np.any([same(ours[2], result) for result in results], axis=0)
        if np.any(room >= 0.5) and ours[2].dtype.kind != "b":  # there may be integers between
            found |= (np.min(results, axis=0) <= ours[2]) & (ours[2] <= np.max(results, axis=0))
        return found

    def room(self, statement: Statement, term) -> tuple[np.ndarray, np.ndarray]:
        """The values of a right side, and how far from each rounding may lead: not from infinities and NaN."""
        key = Key("", "rc"[: term.ndim], term.dtype.name)
        _, where, what = read(term, key)
        kind, what, check = np.finfo(what.dtype), what.astype(float), statement.check
        if check == "sum":
            bounds = self.bounds(statement, read(self.total, key._replace(dtype="FP64")))
            scale = np.array([bounds.get(tuple(place), 0.0) for place in where.tolist()])
            room = 4 * kind.eps * scale + kind.tiny * max(self.program.shape)
        else:
            room = 8 * kind.eps * np.abs(what) if check == "ulp" else 200 * kind.eps * (1 + np.abs(what))
        return what, np.where(np.isfinite(what), room, 0.0)

    def bound(self, statement: Statement, before) -> dict:
        """By place, what bounds the rounding of a sum and of what it is combined with."""
        if self.total is None:
            return {}
        total = read(self.total, statement.target._replace(dtype="FP64"))
        return self.bounds(statement, total, *([before] if statement.accum else []))

    def bounds(self, statement: Statement, *contents: tuple) -> dict:
        """By place: the number of terms times the sum of their absolute values, which bounds a sum's rounding."""
        factor = max(self.program.shape) ** (1 if statement.target.space else 2)
        bounds: dict = {}
        for content in contents:
            for place, value in by_place(content).items():
                if np.isfinite(value):  # sums of infinities and NaN don't depend on the order
                    bounds[place] = bounds.get(place, 0.0) + abs(float(value)) * factor
        return bounds

    def candidates(self, statement: Statement) -> dict[tuple, list]:
        """What `any` may return in each place of semiring(a @ b)."""
        name, inner = re.fullmatch(r"semiring\.any_(\w+)\((.*)\)", statement.rhs).groups()
        if name == "pair":
            return {}
        (a, row), (b, column) = (self.as_matrix(text, side) for side, text in enumerate(inner.split(" @ ")))
        found = reference.products(a, b, tables.TERMS[name])
        return {place[row : 2 - column]: options for place, options in found.items()}

    def as_matrix(self, text: str, side: int) -> tuple[reference.Matrix, int]:
        """(an operand as a matrix, whether it is a vector): a row as the left operand, a column as the right one."""
        handle = self.theirs[text.removesuffix(".T")]
        if handle.ndim == 1:
            return {((i, 0) if side else (0, i)): value for i, value in reference.vector_of(handle).items()}, 1
        A = reference.matrix_of(handle)
        return (reference.transpose(A) if text.endswith(".T") else A), 0

    def take_over(self, key: Key) -> None:
        """What differs within its bound would make later statements differ: both sides go on with our values."""
        self.theirs[key.name] = made(key, read(self.ours[key.name], key), self.program.shape)
