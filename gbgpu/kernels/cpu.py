"""The CPU backend: kernel instances as generated modules, compiled by LLVM; the machine code is kept on disk."""

from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from .. import settings
from ..device.store import Recent
from ..interrupts import in_turn
from .alike import Given, bare, shared
from .cpu_source import source
from .interface import Costs, Layout, Relaxing, Spec, mxm_room
from .interpreted import interpreted
from .kernel import Kernel
from .lengths import pull_by_rows

_compiled: WeakValueDictionary[str, Kernel] = WeakValueDictionary()  # by text, while somebody has them
_recent = Recent()  # of all sessions; equal formulas, such as one lambda written twice, are one kernel
_texts = Recent()  # by kind and Spec, with the numbers that the text lacks


class CpuKernels:
    """Kernels of CPU devices. The text of an instance, with its types, is its key in the cache."""

    kind = "cpu"
    neutral = False
    # Without rounds, an update takes a fourth of the time. One thread goes first in, first out: that is the order of
    # equal weights, without windows. Between 8 and 16, road maps take the same time; meshes and social networks take
    # least below 8.
    relaxing = Relaxing(
        1 << 20, alone=4, windows=(12.0, None), crowd=0.0, itemsize=1, meeting=4000, cuts=True, by_degree=True
    )
    whole = 100_000  # such products take less than handing them out
    weights: Mapping[str, float] = {}
    mxm: tuple[str, ...] = ("dot", "rows", "hash", "dense", "sort")
    costs = Costs(push_edge=3e-9, push_first=1.5e-9, pull_edge=1.3e-9, row=1.5e-9, byte=1e-10, step=3e-6, turn=2.5e-8)

    def __init__(self, interpret: bool | None = None) -> None:
        self._loaded: dict[tuple[str, Spec], Any] = {}
        self.atomic = not (settings.interpret if interpret is None else interpret)
        self._make = load if self.atomic else interpreted

    def pull_layout(self, device: Any, block: Any, spec: Spec, x: Any, width: int, masked: bool, fixed: bool) -> Layout:
        plain = pull_by_rows(device, block, spec, x, masked)
        return plain._replace(spec=spec._replace(fixed=True)) if fixed and plain.kernel is None else plain

    def reaches(self, block: Any, spec: Spec) -> bool:
        return False

    def by_use(self, block: Any, spec: Spec, masked: bool) -> Any:
        return None

    def push_options(self, block: Any) -> dict[str, Any]:
        return {}

    def marks(self, device: Any, block: Any, entries: int, width: int, hashed: bool, plain: bool = False) -> Any:
        return device.zeros(mxm_room(entries, width, hashed), np.int64 if hashed else np.int8 if plain else np.int32)

    def lists(self, device: Any, n: int, spec: Spec) -> tuple[Any, Any, Any, Any]:
        """A vertex is in each at most once."""
        near, far = (device.empty(n + 1, spec.idx) for _ in range(2))
        return near, far, device.zeros(n, np.int8), device.zeros(16, np.int64)

    def ahead(self, steps: Iterable[Any]) -> None:
        """Nothing: LLVM compiles one kernel after the other."""

    def uncut(self, kernel: Any) -> bool:
        return self.atomic and type(bare(kernel)) is not Kernel

    def get(self, kind: str, spec: Spec) -> Any:
        kernel = self._loaded.get((kind, spec))
        if kernel is None:
            known = _texts.get((kind, spec))
            kernel = known and _recent.get((self._make, known[0]))
            if kernel is not None:  # of a session before
                return self._kept(kind, spec, kernel, known[1])
            kernel = in_turn(lambda: self._find(kind, spec))  # the threads of devices may ask together
        return kernel

    def _find(self, kind: str, spec: Spec) -> Any:
        text, numbers = _texts.get((kind, spec), lambda: shared(source(kind, spec)))
        return self._kept(kind, spec, _recent.get((self._make, text), lambda: self._make(kind, text)), numbers)

    def _kept(self, kind: str, spec: Spec, kernel: Any, numbers: tuple) -> Any:
        if len(self._loaded) >= settings.kept_kernels:
            self._loaded.clear()  # each lambda makes specs of its own
        if type(kernel) is not Kernel:
            self._loaded[kind, spec] = found = Given(kernel, numbers) if numbers else kernel
            return found
        kernel = kernel.instance()  # specs of other types may have this text
        self._loaded[kind, spec] = found = Given(kernel, numbers) if numbers else kernel
        kernel.kept(*((found, "kernel") if numbers else (self._loaded, (kind, spec))))
        return found


def load(kind: str, text: str) -> Any:
    """The kernel of a text, the machine code of which is loaded or compiled when it is first called."""
    found = _compiled.get(text)
    if found is None:
        found = _compiled[text] = Kernel(kind, text)
    return found
