"""Core numbers: peeling by degrees.

`degree` holds, for the vertices that are left, how many neighbours are left. Those with no more than k go together, and
k is their core number; their neighbours lose as many as went, and are looked at next. When none of them is so low, k
rises to the lowest degree. Who is gone has a degree that nobody can have.

Source: Seidman, "Network Structure and Minimum Degree", Social Networks 1983; peeling of whole levels is that of
Dasari, Ranjan, Zubair, "ParK: An Efficient Algorithm for k-core Decomposition on Multicore Processors", Big Data 2014.
"""

from typing import Any

import numpy as np

from algos import verify
from algos._inputs import degrees
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm, Result
from gbgpu import Matrix, Scalar, Vector, binary, loop, monoid, program, replace, select
from gbgpu.semiring import plus_pair


@program
def core_numbers(A: Matrix) -> Vector:
    """The core number of every vertex of an undirected graph.

    It is the largest k such that the vertex lies in a subgraph whose degrees are all at least k.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.

    Returns
    -------
    Vector
        Core numbers (INT64, size n, all entries).

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square.
    InvalidValue
        If an arc has no reverse.

    References
    ----------
    Seidman, "Network Structure and Minimum Degree", Social Networks 1983. Dasari, Ranjan, Zubair, "ParK: An Efficient
    Algorithm for k-core Decomposition on Multicore Processors", Big Data 2014.
    """
    n = undirected(A)
    A = select.offdiag(A).new(name="A")
    counts = "INT32" if max(n, A.nvals) < 2**31 else "INT64"
    degree = degrees(A).dup(counts)
    core, q, lost = (Vector(counts, n, name=name) for name in ("core", "q", "lost"))
    k = Scalar.from_value(0, counts, name="k")
    if not n:
        return core.dup(int)
    q << select.valuele(degree, k)
    with loop() as it:
        core(q.S) << k
        degree(q.S) << n
        lost(~core.S, replace) << plus_pair[counts](q @ A)
        degree(binary.minus) << lost
        q << binary.second(lost & degree)
        q << select.valuele(q, k)
        with it.when(q.nvals == 0):
            k << degree.reduce(monoid.min, allow_empty=False)
            q << select.valuele(degree, k)
        it.until(core.nvals == n)
    return core.dup(int)


def _summary(core: Vector) -> dict[str, Any]:
    _, numbers = core.to_coo()
    highest = int(numbers.max(initial=0))
    return {"highest": highest, "vertices": int(np.count_nonzero(numbers == highest))}


CORES = Result("vertex", "core")

ALGORITHMS["cores"] = Algorithm(run=core_numbers, verify=verify.core_numbers, summary=_summary, result=CORES, top=CORES)
