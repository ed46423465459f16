"""Predicate-based filtering against NumPy's boolean indices; and the router below it: who takes how much, how far the
input is read ahead, and what is left after an error."""

import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from programs import WIDE

import gbgpu as gb
from algos import predicate_filter
from gbgpu.device.cpu import CpuDevice, CpuDevices
from gbgpu.distribute.router import routed
from gbgpu.errors import EmptyObject, InvalidValue, NotImplementedException

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
COMPARED = {">": np.greater, "<=": np.less_equal, "==": np.equal, "valuelt": np.less, "valuene": np.not_equal}
INDEXED = {"indexle": np.less_equal, "indexgt": np.greater}


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert not [thread for thread in threading.enumerate() if "routed" in thread.name]


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    assert type(found) is np.ndarray
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@st.composite
def filters(draw):
    """Values of any type, often equal ones; an operator, its function, and a thunk of the same type."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    few = {"b": st.booleans(), "f": st.sampled_from([-1.5, -0.0, 0.0, 2.0, np.inf, np.nan])}
    numbers = few.get(dtype.kind, st.integers(0, 3) | st.sampled_from([np.iinfo(dtype).min, np.iinfo(dtype).max])
                      if dtype.kind in "iu" else None)  # fmt: skip
    values = draw(arrays(dtype, st.integers(0, 150), elements=numbers, fill=st.nothing() | numbers))
    return values, *draw(st.sampled_from(sorted(COMPARED.items()))), dtype.type(draw(numbers))


@settings(max_examples=500 if WIDE else 50)
@given(asked=filters(), segment=st.integers(1, 200))
def test_values(devices, asked, segment):
    values, name, compare, thunk = asked
    same(predicate_filter(values, name, thunk, segment=segment), values[compare(values, thunk)])


@settings(max_examples=40)
@given(cuts=st.lists(st.integers(0, 40), max_size=6), name=st.sampled_from(sorted(INDEXED)), thunk=st.integers(0, 100))
def test_indices_are_those_of_the_whole(devices, cuts, name, thunk):
    parts = [np.arange(n, dtype=np.int32)[::-1] for n in cuts]
    whole = np.concatenate([np.zeros(0, np.int32 if parts else float), *parts])
    kept = whole[INDEXED[name](np.arange(len(whole)), thunk)]
    same(predicate_filter(iter(parts), name, thunk, segment=16), kept)


@pytest.mark.parametrize("dtype", TYPES)
def test_all_and_none(devices, dtype):
    values = np.ones(131, dtype)
    same(predicate_filter(values, gb.select.valuene, 0, segment=50), values)
    same(predicate_filter(values, gb.select.valueeq, 0, segment=50), values[:0])
    for n in (0, 1, 2):
        same(predicate_filter(values[:n], "==", 1), values[:n])


def test_predicates(devices):
    values = np.arange(40.0)[::-2]
    odd = gb.select.register_anonymous(lambda x, i, j, t: x % t == 1)
    same(predicate_filter(values, odd, 4, segment=7), values[values % 4 == 1])
    same(predicate_filter(values, gb.select.valuegt[float], gb.Scalar.from_value(9), segment=7), values[values > 9])
    same(predicate_filter(values, lambda x, i, j, t: i >= t, 3, segment=7), values[3:])


def test_values_of_either_byte_order(devices):
    for order in "<>":
        found = predicate_filter(np.arange(300, dtype=f"{order}i4"), ">", 255, segment=70)
        same(found, np.arange(256, 300, dtype="i4"))


def test_files(devices, tmp_path):
    values = np.arange(1000, dtype=np.int16) % 7
    np.save(tmp_path / "values.npy", values)
    same(predicate_filter(np.load(tmp_path / "values.npy", mmap_mode="r"), ">", 4, segment=64), values[values > 4])


@pytest.mark.parametrize(
    ("values", "predicate", "more", "error"),
    [
        (3, ">", {}, TypeError), ([1, 2], ">", {}, TypeError), (np.ones((2, 2)), ">", {}, TypeError),
        ([np.ones(2), np.ones(2, int)], ">", {}, TypeError), (np.array([None]), ">", {}, ValueError),
        (np.ones(2, complex), ">", {}, NotImplementedException),
        (np.ones(2), gb.binary.plus, {}, TypeError), (np.ones(2), 7, {}, TypeError),
        (np.ones(2), "no such", {}, ValueError), (np.ones(2), ">", {"segment": 0}, InvalidValue),
        (np.ones(2), ">", {"segment": 1 << 31}, InvalidValue), (np.ones(2), ">", {"segment": 2.0}, TypeError),
    ],
)  # fmt: skip
def test_refused(devices, values, predicate, more, error):
    with pytest.raises(error):
        predicate_filter(values, predicate, 0, **more)


def test_masks_and_empty_scalars_are_refused(devices):
    with pytest.raises(TypeError, match="a select operator"):
        predicate_filter(np.ones(2), gb.Vector(bool, 1).S)
    with pytest.raises(EmptyObject):
        predicate_filter(np.ones(2), ">", gb.Scalar(float))


# -- who takes how much


def test_a_slow_device_takes_fewer_segments(monkeypatch):
    """The first device ends its first segment when the others have all the rest behind them."""
    gb.init("cpu:3")
    taken, put, rest, lock = [0, 0, 0], CpuDevice.put, threading.Event(), threading.Lock()

    def counted(device, array):
        with lock:
            taken[device.index] += 1
            if sum(taken[1:]) >= 39:
                rest.set()
        if device.index == 0:
            assert rest.wait(60)
        return put(device, array)

    monkeypatch.setattr(CpuDevice, "put", counted)
    values = np.arange(400)
    same(predicate_filter(values, "<", 333, segment=10), values[:333])
    assert taken[0] <= 1 and sum(taken) == 40


@pytest.mark.parametrize("k", [1, 2, 4])
def test_input_is_not_read_ahead(k):
    devices, done = dict(enumerate(CpuDevices(k).devices)), []
    ahead = 0 if k == 1 else k + 1

    def numbers():
        for number in range(100):
            assert number - len(done) <= ahead
            yield number

    def work(d, number):
        assert d in devices
        done.append(number)
        return -number

    assert routed(numbers(), devices, work) == [-number for number in range(100)]
    assert sorted(done) == list(range(100))


def starts(monkeypatch, most: int) -> list:
    """The router's threads from now on, of which no more than `most` can start."""
    start, started = threading.Thread.start, []

    def counted(thread):
        if "routed" in thread.name:
            if len(started) == most:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    return started


def test_threads_are_those_that_are_needed(monkeypatch):
    gb.init("cpu:4")
    started = starts(monkeypatch, 4)
    for n, threads in ((0, 0), (20, 2), (100, 4)):
        started.clear()
        predicate_filter(np.arange(n), ">", 3, segment=10)
        assert len(started) == threads


# -- errors


several = pytest.mark.parametrize("k", [1, 2, 5])


@several
@pytest.mark.parametrize("all_fail", [False, True])
def test_an_error_ends_the_rest(monkeypatch, k, all_fail):
    gb.init(f"cpu:{k}")
    put, calls = CpuDevice.put, []

    def failing(device, array):
        calls.append(device.index)
        if all_fail or 25 in array:
            raise OSError(f"{device.name} is gone")
        return put(device, array)

    values = np.arange(10_000)
    with monkeypatch.context() as patch:
        patch.setattr(CpuDevice, "put", failing)
        with pytest.raises(OSError, match="is gone"):
            predicate_filter(values, ">", 1, segment=10)
    if all_fail:
        assert len(calls) <= k + 1
    same(predicate_filter(values, ">", 9000, segment=1000), values[9001:])


def test_an_error_of_the_input(devices):
    def parts():
        yield from np.ones((20, 5))
        raise OSError("no more to read")

    with pytest.raises(OSError, match="no more to read"):
        predicate_filter(parts(), ">", 1)


def test_a_thread_that_cannot_start(monkeypatch):
    gb.init("cpu:4")
    starts(monkeypatch, 1)
    with pytest.raises(RuntimeError, match="can't start"):
        predicate_filter(np.arange(100), ">", 3, segment=10)


@several
def test_ctrl_c(monkeypatch, k):
    """It comes while the first segment is with a device, and ends the rest."""
    gb.init(f"cpu:{k}")
    before, put, calls = signal.signal(signal.SIGINT, signal.default_int_handler), CpuDevice.put, []

    def interrupting(device, array):
        calls.append(device.index)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return put(device, array)

    try:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(CpuDevice, "put", interrupting)
            predicate_filter(np.arange(100_000), ">", 3, segment=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) < 100_000
