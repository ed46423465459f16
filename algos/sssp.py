"""Single-source shortest paths: Bellman-Ford that extends only the vertices whose distance fell in the last round.

t holds the lengths of the paths one arc longer than those of q; those that are no shorter than what is known are
stale, the others are the next q. While q is many, all known distances are extended, which changes nothing and is
quicker to look up, as almost every neighbour has one. Without a negative cycle no shortest path has more than n - 1
arcs, so q is empty after n rounds.

Source: Bellman 1958, Ford 1956; as masked min-plus products in Kepner, Gilbert, "Graph Algorithms in the Language of
Linear Algebra", SIAM 2011.
"""

from math import inf

from algos._inputs import square, vertex
from gbgpu import Matrix, Vector, binary, monoid, replace, select, unary
from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import min_plus

MANY = 16  # q is many from a sixteenth of all vertices


def sssp(A: Matrix, source: int) -> Vector:
    """Distances from `source`, nothing where it does not reach; 0 at the source.

    Weights are A's values: INT64 sums for integers, FP32 and FP64 as given; every entry of a BOOL matrix weighs 1.
    Negative weights are allowed. Raises TypeError, DimensionMismatch, IndexOutOfBound as `bfs`; InvalidValue for a
    weight that is NaN or -inf, for integers whose sums may not fit in 64 bits, and for a negative cycle that the
    source reaches.
    """
    n = square(A)
    source = vertex(source, n)
    if A.dtype.name == "BOOL":
        A = unary.one(A).new(dtype="INT64")
    check_weights(A)
    dtype = A.dtype.name if A.dtype.name in ("FP32", "FP64") else "INT64"
    d, q, t = (Vector(dtype, size=n, name=name) for name in "dqt")
    stale = Vector(bool, size=n, name="stale")
    d[source] = 0
    q[source] = 0
    for _ in range(n):
        t << min_plus((d if MANY * q.nvals > n else q) @ A)
        stale << binary.ge(t & d)
        q(~stale.V, replace) << t
        d(binary.min) << q
        if not q.nvals:
            return d
    raise InvalidValue(
        message("no negative cycle within reach of the source", f"distances that still fall after {n} rounds")
    )


def check_weights(A: Matrix) -> None:
    """Refuse weights that have no shortest paths: NaN, -inf, and integers so large that a path's sum may not fit."""
    if not A.nvals:
        return
    if A.dtype.name in ("FP32", "FP64"):
        # A sum above -inf proves that no weight is NaN or -inf, in one pass; only another one asks for a look at each.
        if not A.reduce_scalar(monoid.plus).new().value > -inf and select.valuegt(A, -inf).new().nvals < A.nvals:
            raise InvalidValue(message("weights above -inf", "a weight that is NaN or -inf"))
    else:
        low, high = (int(A.reduce_scalar(op).new().value) for op in (monoid.min, monoid.max))
        if max(-low, high) * A.nrows >= 1 << 63:
            raise InvalidValue(message("path lengths below 2**63", f"weights from {low} to {high}", "use FP64 weights"))
