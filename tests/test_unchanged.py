"""A statement or a method happens, or it raises and leaves every object as it was."""

from __future__ import annotations

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import binary, replace, select, semiring  # noqa: F401  (cases are source text)
from gbgpu.device.cpu import CpuDevice

# A is 4 x 4 with two entries, E an empty one; x is a list, f full, b a bitmap, e empty, i integers; s is a scalar
CHANGES = [
    "x << f",
    "f << x",
    "f(x.S) << 7",
    "f(x.V) << x",
    "f += x",
    "f(binary.plus) << x",
    "b(binary.plus)[[0, 2]] << 7",
    "b(~x.S, replace) << f",
    "b << 3",
    "b[5] = 3",
    "f[5] = 3",
    "x[5] = 3",
    "del f[3]",
    "del b[1]",
    "f[[1, 7]] << [3, 4]",
    "f[i] << 3",
    "f(binary.plus)[i] << f",
    "b(binary.plus)[i] << f",
    "f << semiring.plus_times(A @ f)",
    "b(binary.plus) << semiring.min_plus(x @ A)",
    "f(binary.min) << semiring.min_plus(A @ x)",
    "b(x.S, replace) << select.valuegt(f, 3)",
    "f *= 2",
    "f /= x",
    "e(binary.plus) << f",
    "A << A.T",
    "A(binary.plus) << A @ A",
    "A[3, :] << f",
    "A(A.S)[:, [1, 2]] << 5",
    "A[0, 0] = 1",
    "del A[0, 1]",
    "A @= A",
    "A.setdiag(f)",
    "E << A",
    "E[1, 1] = 2",
    "s << f.reduce()",
    "s('+') << f.reduce()",
    "x.build([1, 2], [3, 4], clear=True, size=9)",
    "e.build([1, 2], [3, 4])",
    "E.build([1, 2], [3, 4], [5, 6], nrows=50, ncols=50)",
    "x.resize(3)",
    "x.resize(30)",
    "f.resize(3)",
    "A.resize(3, 30)",
    "E.resize(3, 30)",
    "x.clear()",
    "A.clear()",
    "s.clear()",
    "A.ss.build_diag(f)",
    "f.ss.build_diag(A)",
    "A.ss.reshape(5, 20, inplace=True)",
    "A.ss.concat([[A[:5, :], ], [A[:5, :]]])",
    "f.ss.concat([x[:5], x[:5]])",
    "e.ss.build_scalar([1, 2], 3)",
    "E.ss.build_scalar([1, 2], [1, 2], 3)",
]
"""What fails by itself."""
FAILING = [
    "x.build([0, 0], [1, 2], clear=True, size=1000)",
    "x.build([0, 9999], [1, 2], clear=True, size=1000)",
    "x.build([0, 1], [1, 2, 3], clear=True, size=1000)",
    "x.build([0, 1], [1, None], clear=True, size=1000)",
    "x.build([0, 1], [1, 2**70], clear=True, size=1000)",
    "x.build([0, 1], [1, 2], size=1000)",
    "x.build([0, 1], [1, 2], clear=True, size=-1)",
    "x.build([0, 0], [1, 2], clear=True, size=1000, dup_op='no such')",
    "x.build([0, 0], 1, clear=True, size=1000, dup_op='plus')",
    "A.build([0, 0], [1, 1], [1, 2], clear=True, nrows=1000)",
    "A.build([0, 9999], [1, 1], [1, 2], clear=True, nrows=1000, ncols=7)",
    "A.build([0], [1], ['text'], clear=True, nrows=1000, ncols=7)",
    "A.build([0, 1], [1, 1], [1, 2], nrows=1000)",
    "A.build([0, 1], [1, 1], [1, 2], clear=True, nrows=1000, ncols=None, dup_op=3.5)",
    "x.resize(-1)",
    "x.resize(2.5)",
    "A.resize(4, None)",
    "A.ss.reshape(3, 33, inplace=True)",
    "x[:] = [1] * 9 + [2**70]",
    "x[[0, 1]] = [300, 1]",
    "x[[0, 1]] = [1, float('nan')]",
    "f[[0, 99]] << 3",
    "A[[0, 1], 0] << [1, 2, 3]",
    "A.setdiag([1, 2])",
    "s.value = 2**70",
    "s << 2**70",
]


def objects() -> dict:
    ids = np.arange(10)
    made = {
        "x": gb.Vector.from_coo([1, 4, 8], [1, 0, 3], "INT8", size=10),
        "f": gb.Vector.from_dense(ids),
        "b": gb.Vector.from_coo(ids[::2], ids[::2], size=10),
        "e": gb.Vector(int, 10),
        "i": gb.Vector.from_dense([3, 1, 2, 9, 0, 5, 4, 8, 7, 6]),
        "A": gb.Matrix.from_coo(ids, ids[::-1], ids, nrows=10, ncols=10),
        "E": gb.Matrix(int, 10, 10),
        "s": gb.Scalar.from_value(3),
    }
    made["b"](made["x"].S) << 5  # of form bitmap from now on
    return made


def contents(made: dict) -> dict:
    return {
        name: [x.value if x.ndim == 0 else [part.tolist() for part in x.to_coo()], x.dtype, x.shape, x.nvals]
        for name, x in made.items()
    }


@pytest.mark.parametrize("text", FAILING)
def test_what_fails_changes_nothing(devices, text):
    made = objects()
    before = contents(made)
    with pytest.raises((gb.exceptions.GraphblasException, ValueError, TypeError, OverflowError, IndexError)):
        exec(text, globals() | made)
    assert contents(made) == before


class Starved:
    """Devices whose allocation number `at` fails."""

    def __init__(self, monkeypatch):
        self.left = None
        for name in ("empty", "zeros", "full", "put"):
            monkeypatch.setattr(CpuDevice, name, self._wrapped(getattr(CpuDevice, name)))

    def _wrapped(self, allocate):
        def method(device, *arguments):
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise MemoryError("no more")
            return allocate(*arguments) if isinstance(allocate, type(np.empty)) else allocate(device, *arguments)

        return method


@pytest.mark.parametrize("text", CHANGES)
def test_without_memory_nothing_changes(monkeypatch, text):
    gb.init("cpu:3", partition=gb.partition.shares(1, 5, 3))
    starved, made, tries = Starved(monkeypatch), objects(), 0
    after = objects()
    exec(text, globals() | after)
    while True:
        before = contents(made)
        starved.left = tries
        try:
            exec(text, globals() | made)
            break
        except gb.exceptions.OutOfMemory:
            pass
        finally:
            starved.left = None
        assert contents(made) == before, f"after {tries} allocations"
        tries += 1
    assert contents(made) == contents(after)
