"""A backend that computes nothing and counts what it would have run, for tests of what is run at all."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .cpu import CpuKernels
from .interface import Costs, Spec
from .kinds import KINDS


class NullKernels:
    """`calls` counts kernel calls by kind; buffers stay as they are."""

    kind = "null"
    atomic, neutral = False, True
    relaxing = CpuKernels.relaxing._replace(most=0)
    weights: Mapping[str, float] = {}
    mxm: tuple[str, ...] = ("rows",)
    costs = Costs(push_edge=3e-9, push_first=1.5e-9, pull_edge=1.3e-9, row=1.5e-9, byte=1e-10, step=3e-6)
    whole = CpuKernels.whole

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    lists = CpuKernels.lists
    pull_layout, push_options, marks = CpuKernels.pull_layout, CpuKernels.push_options, CpuKernels.marks
    ahead, by_use, reaches = CpuKernels.ahead, CpuKernels.by_use, CpuKernels.reaches

    def uncut(self, kernel: Any) -> bool:
        return True  # a launch

    def get(self, kind: str, spec: Spec) -> Any:
        """A callable that only counts, and checks how many arguments it gets."""

        def call(*args: Any) -> None:
            if len(args) != len(names := KINDS[kind].names):
                raise TypeError(f"{kind} takes {len(names)} arguments ({', '.join(names)}); came {len(args)}")
            self.calls[kind] += 1

        return call
