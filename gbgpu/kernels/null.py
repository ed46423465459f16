"""A backend that computes nothing and counts what it would have run, for tests of what is run at all."""

from collections import Counter
from typing import Any

from .interface import KINDS, Spec


class NullKernels:
    """`calls` counts kernel calls by kind; buffers stay as they are."""

    kind = "null"

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def get(self, kind: str, spec: Spec) -> Any:
        """A callable that only counts, and checks how many arguments it gets."""

        def call(*args: Any) -> None:
            if len(args) != len(KINDS[kind]):
                raise TypeError(f"{kind} takes {len(KINDS[kind])} arguments ({', '.join(KINDS[kind])}); came {len(args)}")
            self.calls[kind] += 1

        return call
