"""Segments of work for the first free device of an uneven set: the faster a device, the more of them it takes.

Source: Ben-Nun, Sutton, Pai, Pingali, "Groute: An Asynchronous Multi-GPU Programming Model for Irregular
Computations", PPoPP 2017, sections 3 and 4: a router whose policy is any device.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from ..device.base import Device
from ..interrupts import held

S = TypeVar("S")
R = TypeVar("R")


def routed(segments: Iterable[S], devices: Mapping[int, Device], work: Callable[[int, S], R]) -> list[R]:
    """work(d, segment) for every segment, d the number of the device that is free first; results in the order of the
    segments. Each device has a thread, and the caller's goes through `segments`; it also serves a device that is alone.

    However many segments there are, each device has one, one waits for the device that is free next, and the caller
    holds one. What the segments or the work raise, or Ctrl-C, is raised once, after all devices have finished what they
    have; the rest is left.
    """
    numbered = list(devices.items())
    if len(numbered) == 1:
        [(d, device)] = numbered
        with device.here():
            return [work(d, segment) for segment in segments]
    results: list[Any] = []
    todo: SimpleQueue = SimpleQueue()  # one for all: who is free takes the next
    done: SimpleQueue = SimpleQueue()
    threads: list[Thread] = []

    def serve(d: int, device: Device) -> None:
        while (given := todo.get()) is not None:
            place, segment = given
            try:
                with device.here():
                    done.put((place, work(d, segment), None))
            except BaseException as error:  # for the caller, who raises it
                done.put((place, None, error))

    def start(d: int, device: Device) -> None:
        thread = Thread(target=serve, args=(d, device), name=f"{device.name} routed", daemon=True)
        thread.start()
        threads.append(thread)

    def take() -> None:
        place, results[place], error = done.get()
        if error is not None:
            raise error

    def end() -> None:
        with suppress(Empty):
            while True:
                todo.get_nowait()
        for _ in threads:
            todo.put(None)
        for thread in threads:
            thread.join()

    try:
        for place, segment in enumerate(segments):
            if place > len(numbered):
                take()
            results.append(None)
            todo.put((place, segment))
            if place < len(numbered):
                held(partial(start, *numbered[place]))
        for _ in range(min(len(results), len(numbered) + 1)):
            take()
    finally:
        held(end)
    return results
