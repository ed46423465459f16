"""Inputs for kernel tests: the same call on both backends, random operands in every form, and comparisons."""

from __future__ import annotations

import numpy as np

from gbgpu.device.cuda_devices import CudaDevices
from gbgpu.kernels import gpu_streams
from gbgpu.kernels import interface as k
from gbgpu.kernels.cpu import CpuKernels
from gbgpu.kernels.gpu import GpuKernels
from gbgpu.kernels.interface import Spec
from gbgpu.kernels.kinds import KINDS
from gbgpu.semiring._types import BOOL

SIZES = (0, 1, 63, 64, 65, 1000)
MASKS = (0, k.MASKED, k.MASKED | k.COMPLEMENT)
FORMS = (k.XFULL, 0, k.XLIST)
CPU = CpuKernels()


class Pair:
    """The same kernel call on both backends."""

    def __init__(self) -> None:
        devices = CudaDevices([(0, 0)])
        self.device, self.kernels = devices.devices[0], GpuKernels(devices)

    def run(self, kind: str, spec: Spec, **given) -> tuple[dict, dict]:
        """Call with the arguments by name; returns all buffers afterwards, of the CPU and of the GPU."""
        given = {"users": one(), **given}
        args = [given[name] for name in KINDS[kind].names]
        ours = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        theirs = [self.device.put(a) if isinstance(a, np.ndarray) else a for a in args]
        CPU.get(kind, spec)(*ours)
        self.kernels.get(kind, spec)(*theirs)
        self.device.synchronize()
        read = [self.device.get(t) if isinstance(a, np.ndarray) else t for a, t in zip(args, theirs, strict=True)]
        return dict(zip(KINDS[kind].names, ours, strict=True)), dict(zip(KINDS[kind].names, read, strict=True))


# -- random inputs


def rng_of(*parts: object) -> np.random.Generator:
    return np.random.default_rng(list(repr(parts).encode()))


def values(rng, n: int, dtype, special: bool = True) -> np.ndarray:
    if dtype is BOOL:
        return rng.random(n) < 0.5
    if dtype.kind == "i":
        return rng.integers(-6, 7, n).astype(dtype.np_type)
    found = rng.integers(-8, 9, n) / 4
    if special and n:
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
        found = np.where(rng.random(n) < 0.2, rng.choice(odd, n), found)
    return found.astype(dtype.np_type)


def words_of(bits: np.ndarray) -> np.ndarray:
    padded = np.zeros((len(bits) + 63) // 64 * 64, bool)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view(np.int64)


def bits_of(words: np.ndarray) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)


def random_words(rng, n: int, share: float = 0.5) -> np.ndarray:
    return words_of(rng.random(n) < share)


def one() -> np.ndarray:
    return np.zeros(1, np.int64)


class Map:
    """m ids in two blocks of slots, the first a third of them."""

    def __init__(self, m: int):
        cut = m // 3
        self.bounds = np.array([0, cut, m])
        self.starts = np.cumsum([0, (cut + 63) // 64 * 64, (m - cut + 63) // 64 * 64])
        self.n = int(self.starts[-1])
        self.slots = np.concatenate([np.arange(cut), self.starts[1] + np.arange(m - cut)])


class Csr:
    """n random rows over the slots of a map; the length depends on the map, so that every number of lanes is used.

    The first `hubs` rows hold nearly all columns.
    """

    def __init__(self, rng, n: int, columns: Map, dtype, hubs: int = 0, ptr="int32", idx="int32", special: bool = True):
        m = len(columns.slots)
        lengths = np.minimum(rng.geometric({300: 0.02, 1000: 0.05}.get(m, 0.2), n) - 1, m)
        lengths[: min(hubs, n)] = max(m - 7, 0)
        rows = [np.sort(rng.choice(m, length, replace=False)) for length in lengths]
        self.n, self.lengths = n, lengths
        self.indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(ptr)
        self.cols = columns.slots[np.concatenate([*rows, []]).astype(int)].astype(idx)
        self.vals = values(rng, len(self.cols), dtype, special)
        self.heavy = np.flatnonzero(lengths >= gpu_streams.LONG).astype(np.int32)


class Sparse:
    """A vector of n rows in one of the forms."""

    def __init__(
        self,
        rng,
        n: int,
        dtype,
        form: int,
        iso: bool = False,
        valid: np.ndarray | None = None,
        special: bool = True,
        idx="int32",
    ):
        bits = rng.random(n) < (1.0 if form == k.XFULL else 0.4)
        if valid is not None:
            bits &= np.isin(np.arange(n), valid)
        self.n, self.words, self.form = n, words_of(bits), form
        self.slots = rng.permutation(np.flatnonzero(bits)).astype(idx)
        self.count = np.array([len(self.slots)])
        size = 1 if iso else max(n if form != k.XLIST else len(self.slots), 1)
        self.vals, self.stride = values(rng, size, dtype, special), 0 if iso else 1
        if form == k.XLIST:  # capacity beyond the count
            self.slots = np.concatenate([self.slots, np.zeros(5, idx)]).astype(idx)

    def args(self) -> dict:
        return dict(xvals=self.vals, xstride=self.stride, xwords=self.words, count=self.count, slots=self.slots)


# -- comparisons


def same(a: np.ndarray, b: np.ndarray, close: bool = False) -> None:
    assert a.dtype == b.dtype
    if close:
        np.testing.assert_allclose(b, a, rtol=1e-4 if a.dtype == np.float32 else 1e-12, atol=1e-5)
    else:
        np.testing.assert_array_equal(a, b)


def same_list(slots: str, vals: str | None, count: str, ours: dict, theirs: dict, first: int = 0) -> None:
    same(ours[count], theirs[count])
    c = int(ours[count][0])
    orders = [np.argsort(side[slots][first : first + c], kind="stable") for side in (ours, theirs)]
    same(*(side[slots][first : first + c][order] for side, order in zip((ours, theirs), orders, strict=True)))
    if vals:
        same(*(side[vals][first : first + c][order] for side, order in zip((ours, theirs), orders, strict=True)))


def same_dense(n: int, words: str, vals: str, ours: dict, theirs: dict, close: bool = False, iso: bool = False) -> None:
    same(ours[words], theirs[words])
    if iso:
        return same(ours[vals][:1], theirs[vals][:1])
    bits = bits_of(ours[words])[:n]
    same(ours[vals][:n][bits], theirs[vals][:n][bits], close)
