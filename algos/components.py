"""Weakly connected components: every vertex takes the smallest label among its neighbours until nothing changes.

Labels begin as the vertices' own numbers; only vertices whose label fell in the last round, q, pass it on. Arcs count
in both directions, so an unsymmetric matrix is used in both orientations.

Source: label propagation, as in Kang, Tsourakakis, Faloutsos, "PEGASUS", ICDM 2009, with a frontier; the test of
symmetry is that of Freivalds, "Probabilistic Machines Can Use Less Running Time", IFIP 1977.
"""

import numpy as np

from algos._inputs import square
from gbgpu import Matrix, Vector, binary, indexunary, monoid, replace
from gbgpu.semiring import min_first, plus_first, plus_second


def connected_components(A: Matrix) -> Vector:
    """Labels (INT64, every vertex): the smallest vertex number of the component, directions and values of A ignored.

    Raises TypeError (A is no Matrix) and DimensionMismatch (A not square).
    """
    n = square(A)
    symmetric = has_symmetric_pattern(A, n)
    labels, t = (Vector(int, size=n, name=name) for name in ("labels", "t"))
    stale = Vector(bool, size=n, name="stale")
    labels[:] = 0
    labels << indexunary.index(labels)
    q = labels.dup(name="q")
    while q.nvals:
        t << min_first[int](q @ A)
        if not symmetric:
            t(binary.min) << min_first[int](q @ A.T)
        stale << binary.ge(t & labels)
        q(~stale.V, replace) << t
        labels(binary.min) << q
    return labels


def has_symmetric_pattern(A: Matrix, n: int) -> bool:
    """Whether every arc has its reverse. A wrong yes, were the numbers truly random, comes once in 2**63 matrices.

    Each vertex has a number of 64 bits; in a symmetric pattern their sums over out- and in-neighbours are the same
    vector.
    """
    numbers = np.random.Generator(np.random.PCG64(0)).integers(1, 1 << 62, n) * 2 + 1
    x = Vector.from_dense(numbers)
    differs = binary.ne(plus_second[int](A @ x).new() | plus_first[int](x @ A).new()).new()
    return not (differs.nvals and differs.reduce(monoid.lor).new().value)
