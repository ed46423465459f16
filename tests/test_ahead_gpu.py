"""What is compiled ahead is what a GPU then asks for. Collected where there is a GPU."""

from __future__ import annotations

from test_cuda_compile import small_program as program

import gbgpu as gb
from gbgpu.device import cuda, nvrtc
from gbgpu.kernels.gpu import GpuKernels

__test__ = bool(cuda.available())


def test_a_gpu_needs_no_more_than_was_compiled_ahead(store, monkeypatch):
    monkeypatch.setattr(GpuKernels, "ahead", lambda *guesses: None)
    monkeypatch.setattr(nvrtc, "_begun", {})  # into another folder
    for device in ("cuda:0", "cuda:0*3"):
        gb.compile_ahead(lambda device=device: (gb.init(device), program()))
        before = set((store / "cuda").iterdir())
        gb.init(device)
        program()
        new = set((store / "cuda").iterdir()) - before
        assert len(new) <= 1  # the device's own, for copies
