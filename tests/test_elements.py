"""Single entries that are set and deleted: the content beside a dict, and what each of them costs."""

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import select
from gbgpu.semiring import plus_times
from gbgpu.trace import counters


def entries(x) -> dict:
    """The entries of a vector or a matrix, by place."""
    *ids, values = (part.tolist() for part in x.to_coo())
    places = ids[0] if x.ndim == 1 else zip(*ids, strict=True)
    return dict(zip(places, values, strict=True))


def changed(rng, x, known: dict, steps: int) -> None:
    """Random entries of few places are set, deleted and read; reads of every kind come in between."""
    copies = []
    for step in range(steps):
        place = tuple(int(rng.integers(n)) for n in x.shape)
        place = place[0] if x.ndim == 1 else place
        kind = rng.integers(12)
        if kind < 4:
            x[place] = known[place] = step
        elif kind < 8:
            del x[place]
            known.pop(place, None)
        elif kind == 8:
            assert x.get(place) == known.get(place) if x.ndim == 1 else x.get(*place) == known.get(place)
            assert (place in x) == (place in known)
        elif kind == 9:
            assert x.nvals == len(known) and list(x) == sorted(known)
        elif kind == 10:
            copies.append((x.dup(), dict(known)))
        else:
            x(select.valuelt(x, 20).new().S) << 100
            known.update((each, 100) for each, value in known.items() if value < 20)
    assert entries(x) == known
    for copy, then in copies:
        assert entries(copy) == then


@pytest.mark.parametrize("form", ["empty", "list", "bitmap", "full"])
@pytest.mark.parametrize("iso", [False, True])
def test_vectors_are_as_a_dict_is(devices, form, iso):
    rng = np.random.default_rng(5)
    ids = {"empty": [], "full": range(150)}.get(form, [0, 63, 64, 149])
    known = {i: 7 if iso else i for i in ids}
    v = gb.Vector.from_coo(list(ids), 7 if iso else list(ids), int, size=150)
    if form == "bitmap":
        v(form=form) << v
    assert v._store is None if form == "empty" else v._store.form == form
    shared = v.dup()
    before = dict(known)
    changed(rng, v, known, 60)
    assert entries(shared) == before


@pytest.mark.parametrize("shape", [(9, 9), (1, 70), (70, 2)])
@pytest.mark.parametrize("iso", [False, True])
def test_matrices_are_as_a_dict_is(devices, shape, iso):
    rng = np.random.default_rng(7)
    places = {tuple(map(int, rng.integers(shape))) for _ in range(25)}
    known = {place: 7 if iso else place[0] for place in sorted(places)}
    i, j = zip(*known, strict=True)
    A = gb.Matrix.from_coo(i, j, 7 if iso else i, int, nrows=shape[0], ncols=shape[1])
    B, empty = A.dup(), gb.Matrix("INT8", *shape)
    before = dict(known)
    changed(rng, A, known, 60)
    assert entries(B) == before
    changed(rng, empty, {}, 40)


@pytest.mark.parametrize("dtype", ["BOOL", "INT8", "UINT16", "INT32", "UINT64", "FP32", "FP64"])
@pytest.mark.parametrize("shape", [(40, 9), (1, 70), (70, 2)])
def test_lists_of_places(devices, dtype, shape):
    """Values at pairs of rows and columns, unsorted, repeated, counted from the end, beside a dense array."""
    rng = np.random.default_rng(shape[0])
    dense = rng.integers(1, 2 if dtype == "BOOL" else 100, shape).astype(gb.dtypes.lookup_dtype(dtype).np_type)
    held = rng.random(shape) < 0.4
    held[0, 0], held[-1, -1] = True, False
    A = gb.Matrix.from_coo(*held.nonzero(), dense[held], dtype=dtype, nrows=shape[0], ncols=shape[1])
    A[-1, -1] = dense[-1, -1]
    held[-1, -1] = True
    del A[0, 0]
    held[0, 0] = False
    want = np.where(held, dense, dense.dtype.type(0))
    for count in (0, 1, 300):
        i, j = (rng.integers(-n, n, count) for n in shape)
        for B, key in ((A, (i, j)), (A.T, (j, i))):
            found = B.get(*key, dense.dtype.type(0))
            assert found.dtype == dense.dtype and np.array_equal(found, want[i, j])
    there = np.argwhere(held)[::-1].T
    assert np.array_equal(A.get(*there.tolist()), dense[tuple(there)])
    iso = gb.Matrix.from_coo(*held.nonzero(), 1, dtype=dtype, nrows=shape[0], ncols=shape[1])
    assert np.array_equal(iso.get(*there), np.ones(len(there[0])))
    assert not gb.Matrix(dtype, *shape).get([0, -1], [0, -1], 0).any()


def test_lists_of_places_that_there_are_none_of(devices):
    A = gb.Matrix.from_coo([0, 1], [1, 0], [1, 2], nrows=2, ncols=3)
    with pytest.raises(IndexError, match="from -2 to 1"):
        A.get([0, 2], [0, 0], 0)
    with pytest.raises(IndexError, match="from -3 to 2"):
        A.get([0, 1], [0, -4], 0)
    with pytest.raises(ValueError, match="as many rows as columns"):
        A.get([0, 1], [0], 0)
    with pytest.raises(TypeError, match="came 1 of 2"):
        A.get([0, 1], [1, 1])
    with pytest.raises(TypeError, match="list of ints"):
        A.get([0.5], [0], 0)
    for wrong in ("x", [5, 6]):
        with pytest.raises(TypeError):
            A.get([0, 1], [1, 1], wrong)
    small = A.dup("UINT8")
    for default in (-1, 300, 2.5, np.int16(-7)):  # as of to_dense
        found = small.get([0, 1], [1, 1], default)
        assert found.tolist() == [1, default] and found.dtype == small.to_dense(default).dtype


def test_all_entries_may_go_and_come_back(devices):
    A = gb.Matrix.from_coo([0, 1, 1], [1, 0, 2], 2.0, nrows=3, ncols=3)
    for place in list(A):
        del A[place]
    assert A.nvals == 0 and entries(A) == {} and A._store.iso
    A[2, 2] = 4
    assert entries(A) == {(2, 2): 4.0}
    x = gb.Vector.from_dense([1.0, 2.0, 3.0])
    assert entries(plus_times(A @ x).new()) == {2: 12.0}


def test_the_transpose_of_a_symmetric_matrix_goes_with_its_entries(devices):
    A = gb.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1], [5, 5, 6, 6], nrows=3, ncols=3)
    assert A.isequal(A.T.new()) and entries(A.T) == entries(A)
    x = gb.Vector.from_dense([1, 10, 100])
    assert entries(plus_times(x @ A).new()) == {0: 50, 1: 605, 2: 60}
    del A[0, 1]
    assert not A.isequal(A.T.new())
    assert entries(plus_times(x @ A).new()) == {0: 50, 1: 600, 2: 60}
    A[0, 1] = 5
    assert A.isequal(A.T.new()) and entries(plus_times(x @ A).new()) == {0: 50, 1: 605, 2: 60}


def test_what_is_not_there_is_deleted_for_nothing(devices):
    A = gb.Matrix.from_coo([0, 1], [1, 0], 2.0, nrows=3, ncols=3)
    store = A._store
    del A[2, 2], A[0, 0]
    assert A.nvals == 2 and A._store is store


def test_entries_of_a_matrix_are_taken_in_one_pass(devices):
    n = 1000
    A = gb.Matrix.from_coo(range(n), range(n), 1.0, nrows=n, ncols=n)
    with gb.trace() as records:
        reads = counters.host_reads
        for i in range(50):
            A[i, i] = i
            del A[i, i]
            A[i, i + 1] = 5
            del A[n - 1 - i, n - 1 - i]
            assert A.get(i, i) is None and A.get(i, i + 1) == 5  # the log answers
        assert counters.host_reads == reads
        assert A.nvals == n - 50
    passes = {record.statement for record in records if record.step != "element"}
    assert len(passes) == 1 and {record.step for record in records} == {"element", "elements"}


def test_an_entry_of_a_vector_is_deleted_where_it_lies(devices):
    v = gb.Vector.from_dense(np.arange(500.0))
    del v[3]  # it is a bitmap now
    buffers = [block.vals for block in v._store.blocks]
    with gb.trace() as records:
        for i in range(0, 500, 5):
            del v[i]
            v[i + 1] = 2
    steps = {record.step for record in records} - {"compile", "collect"}
    assert steps == {"unwrite", "scalar", "place_scalar", "write_list"}
    assert all(block.vals is held for block, held in zip(v._store.blocks, buffers, strict=True))
    assert v.nvals == 399


def test_parts_are_deleted_without_a_merge(devices):
    A = gb.Matrix.from_dense(np.arange(16).reshape(4, 4))
    v = gb.Vector.from_dense(np.arange(8))
    with gb.trace() as records:
        del A[1, :]
        del A[[0, 3], 2:]
        del v[2:4]
        del v[[7, 0, 7]]
    assert {record.step for record in records} - {"compile", "collect"} == {"region", "unwrite"}
    assert sorted(entries(A)) == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (3, 1)]
    assert sorted(entries(v)) == [1, 4, 5, 6]


@pytest.mark.parametrize("ncols", [0, 4])
def test_empty_vectors_and_matrices_of_as_many_rows_have_plans_of_their_own(devices, ncols):
    """The plan of one was run for the other: what they ask of their planners is the same."""
    A, B = gb.Matrix(bool, 65, ncols), gb.Matrix(float, 65, ncols)
    v, w = gb.Vector(bool, 65), gb.Vector(float, 65)
    assert A.nvals == 0  # the first matrix of its size decides where rows lie
    del v[0]
    A[0, :] << gb.Scalar(bool)
    B[0, :] << gb.Scalar(float)
    del w[0]
    assert A.nvals == B.nvals == v.nvals == w.nvals == 0


def test_recorded_loops_delete(devices):
    A, v = gb.Matrix(int, 5, 5), gb.Vector.from_dense(np.arange(6))
    count, q = gb.Vector(int, 6), gb.Vector.from_coo([0, 1], [1, 1], size=6)
    with gb.loop(max_iterations=30) as it:
        A[1, 2] = it.index
        A[3, 4] = it.index
        del A[1, 2]
        count << v
        del v[4]
        v[4] << it.index
        del q[1]
        q[5] = 1
    assert entries(A) == {(3, 4): 29}
    assert entries(v) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 29, 5: 5} and count[4].new().value == 28
    assert entries(q) == {0: 1, 5: 1}
    with gb.loop(max_iterations=30) as it:  # of vectors alone, as a device may run it
        del v[4]
        count << v
        v[4] << it.index
        del q[5]
    assert sorted(entries(count)) == [0, 1, 2, 3, 5] and entries(q) == {0: 1} and v.get(4) == 29
