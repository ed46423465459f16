"""Whatever can be done to a matrix can be done to `A.T`, and gives what python-graphblas gives."""

from __future__ import annotations

from functools import cache

import graphblas
import numpy as np
import pytest

import gbgpu as gb

# T = A.T is 4 x 3 and stands for a matrix; B is 4 x 3, C 3 x 3, v of 3, u of 4, p BOOL 4 x 3, Q BOOL 3 x 4, s 2
EXPRESSIONS = [
    "T.dup()", "T.dup(float)", "T.dup(clear=True)", "T.dup(mask=p.S)", "T.new()", "T.new(float, mask=p.V)",
    "T.T.dup()", "T.T.T.new()", "T.diag()", "T.diag(1)", "T.diag(-2)", "T.power(2)", "Z.T.power(2)", "Z.T.power(0)",
    "T.reduce_scalar('plus')", "T.reduce_scalar('min')", "T.reduce_scalar(agg.mean)",
    "T.reduce_scalar('plus', allow_empty=False)", "T.reduce_scalar(agg.count)", "T.reduce_scalar(monoid.max['FP64'])",
    "E.T.reduce_scalar('plus')", "T.reduce_scalar('any') > 0", "E.T.reduce_scalar('plus', allow_empty=False)",
    "T.reduce_rowwise('plus')", "T.reduce_columnwise('max')", "T.reduce_rowwise(agg.mean)",
    "T.reduce_columnwise(agg.argmin)", "T.reduce_rowwise(agg.last)", "T.reduce_rowwise(agg.count)", "agg.sum(T)",
    "agg.sum(T, rowwise=True)", "monoid.plus(T)", "monoid.min(T, rowwise=True)", "monoid.min(T, columnwise=True)",
    "T.apply('abs')", "T.apply('plus', right=2)", "T.apply('minus', left=s)", "unary.exp(T)", "binary.minus(T, 1)",
    "binary.minus(1, T)", "T.apply(indexunary.rowindex)", "T.apply(indexunary.colindex, 3)",
    "indexunary.diagindex(T)", "T.apply(unary.positioni)", "T.apply(unary.positionj)", "T.select('>', 3)",
    "select.tril(T)", "select.triu(T, 1)", "select.rowle(T, 1)", "select.colgt(T, 0)", "T.select(p)", "T.select(p.S)",
    "T.select(T > 3)", "T.select(~p.V)", "T.ewise_add(B)", "T.ewise_mult(B, 'minus')",
    "T.ewise_union(B, 'minus', 1, 2)", "B.ewise_mult(T, 'first')", "T.ewise_add(v)", "T.ewise_mult(v)",
    "binary.minus(T | B)", "binary.minus(B | T)", "binary.minus(T & T)",
    "binary.minus(T | B, left_default=1, right_default=9)", "binary.minus(T | v)", "binary.minus(u & T)",
    "binary.firsti(T & B)", "binary.secondj(T & B)", "binary.firstj(T | T)", "T + B", "T + T", "B - T", "T - 1",
    "1 - T", "T * 2", "T * v", "u * T", "T / 2", "7 // T", "T % 3", "T ** 2", "2 ** T", "divmod(T, 2)[0]", "-T",
    "abs(T)", "T < 3", "T <= B", "3 > T", "T == B", "T != 2", "p & Q.T", "p | Q.T", "p ^ Q.T", "~Q.T", "T.mxm(C)",
    "T.mxm(A, 'min_plus')", "T @ A", "A @ T", "semiring.plus_minus(T @ C)", "semiring.plus_minus(C @ B.T)",
    "semiring.min_firstj(A @ T)", "T @ T.T", "T.mxv(v)", "T @ v", "u @ T", "u.vxm(T, 'min_plus')",
    "semiring.max_first(T @ v)", "semiring.max_first(u @ T)", "semiring.any_secondj(T @ v)", "T.kronecker(C)",
    "C.kronecker(T, 'minus')", "T.kronecker(T)", "T[0, :]", "T[:, 1]", "T[0, [0, 2]]", "T[[3, 0], 1]", "T[[3, 0], :]",
    "T[[3, 0], [1, 1]]", "T[::2, 1:]", "T[1, 2]", "T[-1, -1]", "T[0, 0]", "T[:, :]", "T.reposition(1, -1)",
    "T.reposition(-1, 1, nrows=2, ncols=7)", "T.reposition(0, 0)", "ss.diag(T)", "ss.diag(T, 1)",
    "ss.concat([[T, B], [B, T]])",
]  # fmt: skip
READINGS = [
    "T.shape", "T.nrows", "T.ncols", "T.nvals", "T.ndim", "str(T.dtype)", "sorted(zip(*T.to_coo()))",
    "sorted(zip(*T.to_coo(float)))", "sorted(T.to_coo(rows=False)[2])", "T.to_coo(values=False)[2]", "T.to_csr()",
    "T.to_csc()", "T.to_dcsr()", "T.to_dcsc()", "T.to_dense(0)", "T.to_dense(9, float)", "T.to_dicts()",
    "T.to_dicts('columnwise')", "sorted(T.to_edgelist()[0].tolist())", "sorted(T.to_edgelist()[1])",
    "T.to_edgelist(values=False)[1]", "T.get(0, 1)", "T.get(1, 0, 'none')", "(0, 1) in T", "(1, 0) in T", "sorted(T)",
    "T.isequal(T)", "T.isequal(T.new())", "T.new().isequal(T)", "T.isequal(B)",
    "T.isequal(T.new(float), check_dtype=True)", "T.isclose(T.new(float))", "T.isclose(B)", "T.isclose(T + 1e-9)",
    "T.wait().shape", "T.T.shape", "io.to_scipy_sparse(T).toarray()",
]  # fmt: skip
STATEMENTS = [
    "B << T", "B(p.S) << T", "B(binary.plus) << T", "B(~p.S, replace=True) << T", "B[:, :] << T",
    "B[1:3, :] << T[1:3, :]", "B += T", "B *= T", "B -= T", "B @= C.T", "p &= Q.T", "p |= Q.T",
    "B[[0, 1], [0, 1]] << T[[1, 0], [2, 1]]", "B[0, :] << T[1, :]", "B(p.S) << 4", "v << T[0, :]",
    "s << T.reduce_scalar()", "s << T[0, 1]", "B(binary.min) << T @ C", "C << A @ T", "C(Z.S) << A @ T",
    "v << T.reduce_columnwise()", "u(binary.plus) << T.reduce_rowwise('max')",
]  # fmt: skip


def objects(module) -> dict:
    A = module.Matrix.from_coo([0, 0, 1, 2, 2], [0, 3, 1, 0, 2], [5, 3, -2, 7, 4], nrows=3, ncols=4)
    made = {
        "A": A,
        "T": A.T,
        "B": module.Matrix.from_coo([0, 0, 1, 3], [0, 1, 1, 2], [9, 5, 2, 8], nrows=4, ncols=3),
        "C": module.Matrix.from_coo([0, 1, 2, 2], [1, 2, 0, 2], [1, 2, 3, 4], nrows=3, ncols=3),
        "Z": module.Matrix.from_coo([0, 1, 2], [1, 2, 0], [1, 2, 3], nrows=3, ncols=3),
        "E": module.Matrix(int, 2, 5),
        "v": module.Vector.from_coo([0, 2], [1, 5], size=3),
        "u": module.Vector.from_coo([0, 1, 3], [1, 2, 3], size=4),
        "p": module.Matrix.from_coo([0, 0, 2, 3], [0, 1, 2, 0], [True, False, True, True], nrows=4, ncols=3),
        "Q": module.Matrix.from_coo([0, 1, 2, 0], [0, 0, 2, 3], [True, True, False, True], nrows=3, ncols=4),
        "s": module.Scalar.from_value(2),
    }
    names = ("agg", "binary", "indexunary", "io", "monoid", "replace", "select", "semiring", "ss", "unary")
    return made | {name: getattr(module, name) for name in names} | {"np": np}


@cache
def expected(text: str, statement: bool = False):
    return outcome(text, graphblas, statement)


def outcome(text: str, module, statement: bool = False):
    """What it gives, or the class of what it raises."""
    space = objects(module)
    try:
        if statement:
            exec(text, space)
            return [plain(space[name]) for name in "ABCQpsuv"]
        return plain(eval(text, space))
    except Exception as error:
        return type(error).__name__


def plain(x):
    if hasattr(x, "dtype") and hasattr(x, "nvals"):
        x = x.new() if hasattr(x, "new") else x  # python-graphblas gives entries of A.T in the order of A's
        return str(x.dtype), x.shape, x.value if x.ndim == 0 else [np.asarray(part).tolist() for part in x.to_coo()]
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x


@pytest.mark.parametrize("text", EXPRESSIONS + READINGS)
def test_expressions(devices, text):
    assert outcome(text, gb) == expected(text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(devices, text):
    assert outcome(text, gb, True) == expected(text, True)


def test_no_name_is_missing():
    theirs, ours = objects(graphblas)["T"], objects(gb)["T"]
    missing = {name for name in dir(theirs) if not name.startswith("_") and not hasattr(ours, name)}
    assert missing == {"gb_obj"}


ALIKE = ["select.offdiag(S)", "select.diag(S)", "S.select('>', 3)", "S[ids, ids]", "S[1:30, 1:30]", "unary.ainv(S)",
         "S * 2", "S.dup(bool)", "unary.one(S)", "S[ids[::-1], ids[::-1]]", "S[kept, kept]"]  # fmt: skip
UNLIKE = ["select.tril(S)", "select.offdiag(S, 1)", "S[ids, ids[::-1]]", "S[ids, ids + 1]", "indexunary.rowindex(S)",
          "select.rowle(S, 20)"]  # fmt: skip


@pytest.mark.parametrize("text", ALIKE + UNLIKE)
def test_what_is_made_of_a_symmetric_matrix(devices, text):
    random = np.random.default_rng(0)
    i, j, w = (random.integers(0, most, 300) for most in (40, 40, 9))
    S = gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], np.r_[w, w], nrows=40, ncols=40, dup_op="max")
    assert S.isequal(S.T)
    ids = np.arange(2, 38, 3)
    made = eval(text, {**vars(gb), "S": S, "ids": ids, "kept": gb.Vector.from_dense(ids)}).dup()
    dense = made.to_scipy_sparse().toarray()
    assert made._session.known_symmetric(made) == (text in ALIKE)
    assert np.array_equal(made.T.new().to_scipy_sparse().toarray(), dense.T)  # where it is known, of the same arrays
    assert text in UNLIKE or np.array_equal(dense, dense.T)


def test_what_is_known_of_a_diagonal_ends_with_the_content(devices):
    i, j = np.nonzero(np.random.default_rng(0).random((70, 70)) < 0.2)
    A = gb.Matrix.from_coo(i, j, np.arange(len(i)) + 1.0, nrows=70, ncols=70)
    away = gb.select.offdiag(A).new()
    off = i != j
    for part, expected in zip(away.to_coo(), (i[off], j[off], np.flatnonzero(off) + 1.0), strict=True):
        np.testing.assert_array_equal(part, expected)
    for B in (away, away.apply("ainv").new(), gb.select.valuegt(away, 9).new()):
        assert B._store.hollow and gb.select.offdiag(B).new().isequal(B)
        B[3, 3] = 5
        assert not B._store.hollow and gb.select.offdiag(B).new().nvals == B.nvals - 1
    full = gb.Matrix.from_coo(i[off], j[off], 1, nrows=70, ncols=70)
    assert not full._store.hollow and gb.select.offdiag(full).new().isequal(full) and full._store.hollow
    full << gb.semiring.plus_times(full @ full)
    assert gb.select.offdiag(full).new().nvals < full.nvals


def test_a_matrix_that_is_told_to_be_symmetric_needs_no_transpose(devices):
    rng = np.random.default_rng(1)
    i, j, values = *rng.integers(0, 300, (2, 2000)), rng.random(2000)
    A = gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], np.r_[values, values], nrows=300, ncols=300, dup_op="max")
    A.ss.declare_symmetric()
    x = gb.Vector.from_dense(rng.random(300))
    with gb.trace() as records:
        found = [gb.semiring.max_times(product).new() for product in (A @ x, x @ A, A.T @ x, x @ A.T)]
    right = (A.to_scipy_sparse().toarray() * x.to_dense()).max(axis=1)
    assert all(np.allclose(each.to_dense(0.0), right) for each in found)
    assert "transpose" not in {record.step for record in records}
    with pytest.raises(gb.exceptions.DimensionMismatch):
        gb.Matrix(int, 2, 3).ss.declare_symmetric()


def test_symmetric_matrices_equal_their_transposes(devices):
    """Also where some devices have no entries."""
    A, same, both = gb.Matrix(int, 20, 20), gb.program(lambda A: A.isequal(A.T)), [True, True]
    assert [A.isequal(A.T), same(A)] == both
    for i, j, equal in ((1, 0, False), (0, 1, True), (5, 5, True), (19, 0, False), (0, 19, True)):
        A[i, j] = 3
        assert [A.isequal(A.T), same(A)] == [equal, equal] and A.T.isequal(A) is equal
    A << gb.select.offdiag(A)
    assert [A.isequal(A.T), same(A)] == both
    del A[0, 19], A[19, 0]
    assert [A.isequal(A.T), same(A)] == both
    A[0, 1] = 4
    assert [A.isequal(A.T), same(A)] == [False, False]
