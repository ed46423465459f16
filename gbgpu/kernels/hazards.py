"""What launches read and write, and which of two has to come first.

A launch on a GPU is a record, `Launch`. The roles of its arguments (`kinds.py`, `gpu_functions.py`) and the addresses
that they have say what it uses. Rounds that are replayed on CPU devices (`replay.py`), CUDA graphs of several GPUs and
persistent kernels (`resident.py`) are ordered by this.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from ..device.base import address
from .gpu_functions import FUNCTIONS
from .kinds import Argument

UNDECLARED = Argument("", "void *", "inout")  # of a function that is not known


class Use(NamedTuple):
    """A range of addresses that a launch reads or writes. `own`: each thread its own elements; `joins`: others may add
    to what is there at the same time."""

    begin: int
    end: int
    writes: bool
    own: bool = False
    joins: bool = False

    def meets(self, other: "Use") -> bool:
        """Whether one of the two has to come first."""
        return self.begin < other.end and other.begin < self.end and (self.writes or other.writes)

    def disturbs(self, other: "Use", here: bool = True) -> bool:
        """Whether blocks have to meet between the two. `here`: both are by the threads of one GPU."""
        apart = self.own and other.own and self.begin == other.begin or self.joins and other.joins
        return self.meets(other) and not (here and apart)


@dataclass(frozen=True, eq=False)
class Launch:
    """One thing that a GPU is given: a kernel of a text ("": one of device/bytes.cu), or (name "end") the end of what
    the last open guard guards. `alone`: one thread does it. `gpu`: its number; None, for the first, or for all that
    "end" ends."""

    text: str
    name: str
    args: tuple = ()
    shared: int = 0  # bytes
    alone: bool = False
    gpu: Any = None

    @property
    def ends(self) -> bool:
        """Whether it tells what comes next."""
        return self.name in ("end", "guard", "turn")

    @cached_property
    def uses(self) -> list[Use]:
        """What it reads and writes."""
        if self.ends:
            return []
        if self.name == "number":
            return [use_of(arg, not i) for i, arg in enumerate(self.args)]
        known = FUNCTIONS.get(self.name, ())
        told = {each.name: arg for each, arg in zip(known, self.args, strict=False) if isinstance(arg, int)}
        iso = "const bool ISO = true;" in self.text
        drains, whole = self.name == "drain", told.get("p") == 1
        skipped = {"out_counts"} if drains and whole else set()
        if drains and iso:
            skipped |= {"out_vals", "acc_vals"}
        found = []
        for arg, each in zip_longest(self.args, known[: len(self.args)], fillvalue=UNDECLARED):
            if is_array(arg) and each.name not in skipped:
                moves = told.get(f"{each.name[0]}stride", 1) != 0 if each.name.endswith("vals") else True
                own = each.own and moves and (whole or not drains)
                # What others add at the same time may stay between arrivals without values.
                found.append(use_of(arg, each.written, own, each.role == "adds" and iso))
        return found


def is_array(arg: Any) -> bool:
    return hasattr(arg, "nbytes") and not isinstance(arg, np.generic)


def use_of(array: Any, writes: bool, own: bool = False, joins: bool = False) -> Use:
    begin = address(array)
    return Use(begin, begin + max(int(array.nbytes), 1), writes, own, joins)
