"""The eigenvector of a symmetric operator's largest eigenvalue, by restarted Lanczos steps.

Power iterations need as many rounds as the largest eigenvalue is closer to the second one, relatively: many thousands
on lattices and small-world graphs. Lanczos steps need the square root of that number.

Source: Wu, Simon, "Thick-Restart Lanczos Method for Large Symmetric Eigenvalue Problems", SIAM Journal on Matrix
Analysis and Applications 2000. ARPACK restarts with equivalent vectors, of as many.
"""

from collections.abc import Callable

import numpy as np

VECTORS = 20  # of the basis, as SciPy asks ARPACK for
NOTHING = 1e-13  # times the eigenvalue: a remainder so small is rounding
# Relative difference of values that are one: rounding brings further vectors of the largest eigenvalue into a basis.
SAME = 1e-10


def top_eigenvector(
    product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, tol: float, restarts: int
) -> np.ndarray | None:
    """The start's part (FP64, length 1) in the space of the largest eigenvalue, which must not be negative. None if the
    residual is above `tol` (at least rounding) times the eigenvalue after so many bases.

    The start must not be 0. It decides which eigenvector is found where several have the largest eigenvalue."""
    n = len(start)
    size = min(n, VECTORS)
    V, T = np.zeros((size + 1, n)), np.zeros((size, size))
    V[0] = start / np.linalg.norm(start)
    kept = 0
    for _ in range(restarts):
        for step in range(kept, size):
            basis, rest = V[: step + 1], product(V[step])
            T[step, : step + 1] = 0
            for _ in range(2):  # one subtraction leaves rounding, which grows
                share = basis @ rest
                rest = rest - share @ basis
                T[step, : step + 1] += share
            T[: step + 1, step] = T[step, : step + 1]
            length = np.linalg.norm(rest)
            ended = length <= NOTHING * np.abs(T[: step + 1, : step + 1]).max()
            if ended:
                break
            V[step + 1] = rest / length
        values, vectors = np.linalg.eigh(T[: step + 1, : step + 1])
        best = vectors[:, -1]
        if ended or length * abs(best[-1]) <= max(tol, np.finfo(float).eps) * values[-1]:
            top = vectors[:, values >= values[-1] * (1 - SAME)]
            found = top @ (top.T @ (V[: step + 1] @ start)) @ V[: step + 1]
            return found / np.linalg.norm(found)
        kept = size // 2
        V[:kept], V[kept] = vectors[:, -kept:].T @ V[:size], V[size]
        T[:] = 0
        T[range(kept), range(kept)] = values[-kept:]
    return None
