"""CPU devices that behave as several GPUs do: each array belongs to a device, and whatever is done to it is done while
that device is the current one. Outside of tasks the current device is the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import gbgpu as gb
from gbgpu import settings
from gbgpu.device.cpu import CpuDevice
from gbgpu.distribute import blocks

# The arguments that may be what another device has.
CROSSES = {"copy": {1}, "copy_counted": {1}, "where": {0}}
# The same of kernels, once it is in reach: what they read, and where sums are written.
REACHES = {"between": {0, 1, 2}, "combine": {0, 1, 2}, "write": {3, 5}, "reduce": {6, 7}, "fold": {15, 16}}
MAKES = ("empty", "zeros", "full", "put", "owners", "checked", "take", "order", "transpose", "truths", *CROSSES)
MAKES += ("get", "peek", "clear", "has_empty", "longest", "equal")


STOP, NOWHERE = False, -1


class Current:
    """The device that work goes to, and what was done wrong."""

    def __init__(self) -> None:
        self.device, self.broken = NOWHERE, []
        self.reached: set[tuple[int, int | None]] = set()  # (device, owner) of what may be used in this step

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        before, self.device = self.device, device
        try:
            yield
        finally:
            self.device = before

    def check(self, what: str, values: Any) -> None:
        for value in values:
            if isinstance(value, (tuple, list)):
                self.check(what, value)
            elif isinstance(value, Owned) and value.at is not None and value.size and value.at != self.device:
                self.broken.append(f"{what} on {self.device} was given an array of {value.at}")
                if STOP:
                    raise AssertionError(self.broken[-1])


current = Current()


class Owned(np.ndarray):
    """An array of one device. Views and results belong to the same one."""

    at: int | None

    def __array_finalize__(self, made_of: Any) -> None:
        self.at = getattr(made_of, "at", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        current.check(ufunc.__name__, (*inputs, *options.get("out", ())))
        plain = {**options, "out": tuple(map(bare, options["out"]))} if "out" in options else options
        made = getattr(ufunc, method)(*map(bare, inputs), **plain)
        return options["out"][0] if "out" in options else owned(made, current.device)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        current.check(function.__name__, (*args, *options.values()))
        made = function(*map(bare, args), **{name: bare(value) for name, value in options.items()})
        return options["out"] if options.get("out") is not None else owned(made, current.device)

    def _worked(name: str) -> Any:
        def method(self: Any, *args: Any, **options: Any) -> Any:
            current.check(name, (self, *args, *options.values()))
            made = getattr(bare(self), name)(*map(bare, args), **options)
            return owned(made, current.device)

        return method

    astype, copy, all, any, sum, fill, repeat, cumsum = map(
        _worked, ("astype", "copy", "all", "any", "sum", "fill", "repeat", "cumsum")
    )

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, (np.ndarray, list)):
            current.check("indexing", (self, place))
            return owned(bare(self)[bare(place)], current.device)
        return super().__getitem__(place)

    def __setitem__(self, place: Any, value: Any) -> None:
        current.check("assigning", (self, place, value))
        bare(self)[bare(place)] = bare(value)


def bare(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(bare, value))
    return value.view(np.ndarray) if isinstance(value, Owned) else value


def owned(value: Any, device: int) -> Any:
    if isinstance(value, tuple):
        return tuple(owned(each, device) for each in value)
    if type(value) is np.ndarray:
        value = value.view(Owned)
        value.at = device
    return value


def _method(name: str) -> Callable:
    plain = getattr(CpuDevice, name)

    def method(self: CpuDevice, *args: Any) -> Any:
        with current.on(self.index):
            current.check(name, [arg for i, arg in enumerate(args) if i not in CROSSES.get(name, ())])
            made = plain(self, *map(bare, args))
            return np.array(made) if name == "get" else None if name == "peek" else owned(made, self.index)

    return method


def _reach(device: CpuDevice, array: Any) -> None:
    current.reached.add((device.index, getattr(array, "at", None)))


@contextmanager
def several(shares: tuple[int, ...] = (1, 5, 3), partition: Any = None, direct: bool = False) -> Iterator[Current]:
    """A session on devices whose memory nobody else touches, or if `direct` reads some of, with blocks of these shares,
    or of a partition; gives what was done wrong."""
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        for name in MAKES:
            patch.setattr(CpuDevice, name, _method(name))
        patch.setattr(settings, "interpret", True)
        patch.setattr(settings, "inline", "always")
        patch.setattr(settings, "staged", not direct)
        patch.setattr(CpuDevice, "reach", _reach)
        patch.setattr(blocks, "handed_over", lambda device, array: device.put(array))  # as to a GPU
        current.device, current.broken = NOWHERE, []
        session = gb.init(f"cpu:{len(shares)}", partition or gb.partition.shares(*shares))
        plain_over, plain_get = session.device_set.over, session.kernels.get

        def over(tasks: Any, work: Any, seconds: float, whole: bool = False) -> Any:
            def there(task: Any) -> Any:
                with current.on(task.device):
                    return work(task)

            current.reached.clear()
            return plain_over(tasks, there, seconds, whole)

        def get(kind: str, spec: Any) -> Any:
            kernel = plain_get(kind, spec)

            def checked(*args: Any, **options: Any) -> Any:
                def near(i: int, arg: Any) -> bool:
                    theirs = (current.device, getattr(arg, "at", None)) in current.reached
                    return theirs and i in REACHES.get(kind, ())

                current.check(f"kernel {kind}", [arg for i, arg in enumerate(args) if not near(i, arg)])
                return kernel(*map(bare, args), **options)

            return checked

        patch.setattr(session.device_set, "over", over)
        patch.setattr(session.device_set, "switches", True)
        patch.setattr(session.device_set, "one_memory", False)
        patch.setattr(session.kernels, "get", get)
        yield current
        patch.undo()
    gb.init("cpu:1")
