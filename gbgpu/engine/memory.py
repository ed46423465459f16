"""What a matrix takes, predicted from its size. The figures of building were fitted to measured peaks (an H200 through
CuPy's pool; NumPy through tracemalloc), which test_memory checks."""

from typing import Any, NamedTuple

from ..distribute.blocks import offset_type
from . import gate


class Memory(NamedTuple):
    """Bytes: `held` by the matrix, `peak` while `from_coo` makes it, beyond the arrays it is given."""

    held: int
    peak: int


def of_matrix(session: Any, nrows: int, ncols: int, nvals: int, dtype: Any, iso: bool) -> Memory:
    """On the GPU that needs most; of the process on CPU devices, which share its memory."""
    p, value = len(session.devices), 0 if iso else dtype.np_type.itemsize
    offset = 4 if offset_type(-(-nvals // p)) == "int32" else 8
    column = 4 if ncols < 2**31 else 8
    held = offset * nrows + (column + value) * nvals
    device = session.home
    if device.kind == "cpu":
        return Memory(held, max(int(26.4 * nvals) + value * nvals + 14 * nrows, held))
    chunk = min(nvals, gate.CHUNK or device.memory()[1] // 256)
    done = (4 + value) * (nvals - chunk)  # of the chunks before the last
    places = 0 if chunk == nvals else 16 * chunk + 8 * nrows
    sorting = (16.2 if iso else 40.3) * chunk + 8 * nrows + places + done
    counting = 8 * chunk + 24 * nrows + places + done
    joining = 2 * (4 + value) * nvals + 8 * nrows if chunk < nvals else 0
    gpus = len({device.gpu for device in session.devices})
    if session.maps.plain(nrows) and session.maps.plain(ncols):
        cutting = (4 + value) * (1 + 1 / gpus) * nvals + 16 * nrows
    else:  # columns are translated
        cutting = (12 + 25 / p + 2 * value) * nvals + 16 * nrows if p > 1 else 0
    return Memory(held // gpus, max(int(sorting), counting, joining, int(cutting), held // gpus))
