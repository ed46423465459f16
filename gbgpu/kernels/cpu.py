"""The CPU backend: kernel instances as generated modules in an on-disk cache, compiled by numba at first use."""

import hashlib
import importlib.util
import os
import sys
from typing import Any

import numpy as np

from .. import settings
from ..interrupts import apart, compiled_apart
from .cpu_source import source
from .interface import Costs, Layout, Spec, mxm_room
from .interpreted import interpreted
from .lengths import pull_by_rows


class CpuKernels:
    """Kernels of CPU devices. The text of an instance, with its types and captured values, is its key in the cache."""

    kind = "cpu"
    dense, touches = False, True
    mxm = ("dot", "rows", "hash", "dense", "sort")
    costs = Costs(push_edge=3e-9, push_first=1.5e-9, pull_edge=1.3e-9, row=1.5e-9, byte=1e-10, step=3e-6)

    def __init__(self, interpret: bool | None = None) -> None:
        self._loaded: dict[tuple[str, Spec], Any] = {}
        self.atomic = not (settings.interpret if interpret is None else interpret)
        self._make = _load if self.atomic else interpreted
        self._texts: dict[str, Any] = {}  # equal formulas, such as one lambda written twice, are one kernel

    def pull_layout(self, device: Any, block: Any, spec: Spec, x: Any, width: int, masked: bool, fixed: bool) -> Layout:
        return pull_by_rows(device, block, spec, x, masked)

    def push_options(self, block: Any) -> dict[str, Any]:
        return {}

    def marks(self, device: Any, block: Any, entries: int, width: int, hashed: bool) -> Any:
        return device.zeros(mxm_room(entries, width, hashed), np.int64 if hashed else np.int32)

    def get(self, kind: str, spec: Spec) -> Any:
        kernel = self._loaded.get((kind, spec))
        if kernel is None:
            kernel = apart(lambda: self._find(kind, spec))  # the threads of devices may ask together
        return kernel

    def _find(self, kind: str, spec: Spec) -> Any:
        text = source(kind, spec)
        kernel = self._texts.get(text)
        if kernel is None:
            kernel = self._texts[text] = self._make(kind, text)
        self._loaded[kind, spec] = kernel
        return kernel


def _load(kind: str, text: str) -> Any:
    if settings.verbose & 4:
        print(text, file=sys.stderr)
    name = f"gbgpu_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    path = settings.cache_directory() / "numba" / f"{name}.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.tmp")
        scratch.write_text(text)
        scratch.replace(path)
    module_spec = importlib.util.spec_from_file_location(name, path)
    assert module_spec is not None and module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    module_spec.loader.exec_module(module)
    return compiled_apart(module.kernel)
