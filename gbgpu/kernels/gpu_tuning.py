"""The numbers by which the CUDA backend chooses, in one record. They were measured on an H200; other GPUs may want
others. Results depend on them by rounding at most. `Costs` and `Relaxing` of gpu.py are what planners ask for."""

from dataclasses import dataclass


@dataclass(slots=True)
class Tuning:
    """Each number with its unit, and the date of the measurement. Sizes of blocks and tables that texts of kernels
    share are no choice: they stand beside the launchers."""

    # Grids: 2026-11-21, FP32 products and reductions of rmat22
    blocks: int = 8  # a multiprocessor: as many threads of 256 as it can hold
    partial_sums: int = 512  # blocks of a reduction at most
    relaxing_blocks: int = 2  # a multiprocessor, of a relaxation (2026-11-28)
    filled: int = 2048  # rows a multiprocessor from which a thread takes one by itself; of fewer, lanes share each
    # (2026-11-26, searches of kron21)

    # Layouts of blocks: 2026-11-21 to 2026-11-26, products and searches of rmat22, kron21 and road networks
    least: int = 1 << 16  # entries below which rows are not worth preparing
    wide: int = 1 << 17  # columns from which their order by use pays: fewer values of x are in caches anyway
    short: float = 3.2  # entries a row, on average, up to which a thread takes it where a stream could take all
    lone: float = 8  # the same where no stream could
    room: float = 2  # times the bytes of a view that must be free
    pulls: int = 3  # by rows before streams are made, which takes as long as some
    launches: int = 1 << 25  # entries by whose pulls the launches of that are paid, a second of compiling among them
    likely_pulls: int = 16  # after which the most used columns first in each row pay
    sampled: int = 4  # of so many entries one is counted to know which columns are used most
    skewed: float = 0.25  # of the entries that a sixteenth of the columns must have for these to come first
    hub_share: float = 0.2  # of the entries that hubs must have to be worth their table, and slices after the first
    cut_entries: float = 2  # that a row has in a slice, at least, on average: each slice adds to each row
    packed: int = 4  # entries a value of x that pay for packing it with its presence

    # Segments of x in shared memory: 2026-11-29, rmat22 in FP32 and BOOL (bench/results/gpu-slices.md)
    rest: int = 64  # parts of the entries outside the segments, a multiprocessor
    gain: float = 0.9  # of the time of a stream that slices may take at most
    streamed: float = 4.95e-12  # seconds an entry in a stream
    near: float = 9e-13  # seconds an entry whose x is in shared memory
    far: float = 7.4e-12  # seconds an entry whose x is not
    byte: float = 3.2e-13  # seconds a byte that is read
    piece: float = 1e-11  # seconds a piece of a row, whose sum is written and read
    segment: float = 8e-6  # seconds a segment, which is copied into shared memory


TUNING = Tuning()
