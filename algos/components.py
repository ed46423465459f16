"""Weakly connected components: a search from a vertex of highest degree, then labels of what is left.

A breadth-first search finds the component of a vertex of highest degree. Where rounds are cheap, the smallest vertex
of each other component then labels it, one component after the other; of a matrix of few entries, these are all.
Elsewhere, few vertices that are left pass labels on; more of them take part in hooking and shortcutting.

The search mostly finds the largest component within few levels. It is left out where no vertex has many neighbours (a
road network), and given up where a level does not double what has been reached. The few vertices with arcs that it does
not close are mostly in components of a handful: the labels of those that fell are passed on until none falls, or for
so many rounds. Where more are left, or they have not settled, the labels become a forest: each is its vertex's
parent. A round takes for every vertex the least parent among its neighbours, hooks that onto the vertex's parent and
onto the vertex, and lets every vertex point to its grandparent, again and again. In the end all of a component point to
its smallest vertex.
Arcs count in both directions, so an unsymmetric matrix is used in both orientations, or united with its transpose.

Source: Zhang, Azad, Hu, "FastSV: A Distributed-Memory Connected Component Algorithm with Fast Convergence", SIAM PP
2020; to find the largest component first is the idea of Slota, Rajamanickam, Madduri, "BFS and Coloring-based Parallel
Algorithms for Strongly Connected Components", IPDPS 2014; the test of symmetry is that of Freivalds, "Probabilistic
Machines Can Use Less Running Time", IFIP 1977.
"""

from typing import Any

import numpy as np

from algos import verify
from algos._inputs import is_thin, rounds_are_cheap, row_lengths, square
from algos.runs import ALGORITHMS, Algorithm, Result
from gbgpu import Matrix, Scalar, Vector, binary, fixpoint, indexunary, loop, monoid, program, replace, select
from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import any_pair, min_first, plus_second

BUSY = 16  # neighbours without which no vertex is worth a search: a road network is not reached within few levels
FEW, ROUNDS = 16, 32  # labels are passed on where less than a sixteenth is left, for so many rounds
SHORTCUTS = 3  # two more than FastSV has, where all vertices take part: they cost less than the rounds that they save


@program
def connected_components(A: Matrix) -> Vector:
    """The weakly connected component of every vertex, named by its smallest vertex.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Directions and values are ignored.

    Returns
    -------
    Vector
        Labels (INT64, size n, all entries): the smallest vertex number of the component.

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square.

    References
    ----------
    Zhang, Azad, Hu, "FastSV: A Distributed-Memory Connected Component Algorithm with Fast Convergence", SIAM PP 2020.
    Slota, Rajamanickam, Madduri, "BFS and Coloring-based Parallel Algorithms for Strongly Connected Components", IPDPS
    2014.
    """
    n = square(A)
    labels = Vector("INT32" if n <= 2**31 else int, size=n, name="labels")
    labels[:] = 0
    labels << indexunary.rowindex(labels, 0)
    if rounds_are_cheap() and is_thin(A):
        one_by_one(binary.first(A | A.T).new(name="both"), labels)
    else:
        from_the_busiest([A] if has_symmetric_pattern(A, n) else [A, A.T], labels)
    found = Vector(int, size=n, name="labels")
    found << labels
    return found


def from_the_busiest(sides: list, labels: Vector) -> None:
    """Lower labels, of each vertex its own number, to the least of each component."""
    n, degree = labels.size, Vector(int, size=labels.size, name="degree")
    degree << row_lengths(sides[0])
    seen = component_of_the_busiest(sides, labels, degree)
    if seen.nvals:
        labels(seen.S) << binary.first(labels & seen).reduce(monoid.min).new().value
    if seen.nvals < n and one_side_is_cheap(sides):
        rest = Vector(labels.dtype, size=n, name="rest")
        rest(~seen.S) << binary.second(degree & labels)
        one_by_one(sides[0], rest)
        labels(rest.S) << rest
    elif seen.nvals < n and not (seen.nvals and passed_on(sides, labels, degree, seen)):
        grown(sides, seen, labels)


def component_of_the_busiest(sides: list, labels: Vector, degree: Vector) -> Vector:
    """True at the vertices of the component that has a vertex of highest degree.

    No entry if the search was left out or given up, or there is no vertex. `labels` has the number of each vertex.
    """
    seen, q = (Vector(bool, size=labels.size, name=name) for name in ("seen", "q"))
    highest = busiest(degree & labels).reduce(monoid.max).new().value
    n, A = labels.size, sides[0]
    if highest is None or highest >> 32 < BUSY:
        return seen
    q[highest & 0xFFFFFFFF] = True
    with loop() as it:
        seen(q.S) << True
        if len(sides) == 1:
            q(~seen.S, replace) << any_pair[bool](q @ A)
        else:
            t = any_pair[bool](q @ A).new(mask=~seen.S, name="t")
            t(~seen.S, binary.lor) << any_pair[bool](q @ A.T)
            q << t
        it.until(q.nvals == 0)
        if not one_side_is_cheap(sides):
            it.until(seen.nvals * 2 < binary.min(2.0 ** (it.index + 1) | n))
    return Vector(bool, size=n, name="seen") if q.nvals else seen


def one_side_is_cheap(sides: list) -> bool:
    """Whether rounds cost what they reach; to unite what two sides reach is a pass over all vertices."""
    return rounds_are_cheap() and len(sides) == 1


# A degree and the number of its vertex, as one. (Of 2**32 vertices and more it is some vertex's.)
busiest = binary.register_anonymous(lambda degree, i: (degree << 32) + i, "busiest")
fallen = binary.register_anonymous(lambda x, known: x if x < known else -1, "fallen")


def one_by_one(A: Matrix, labels: Vector) -> None:
    """Lower the labels of a symmetric matrix to the least of each component.

    The vertex of the least label is extended with all that it reaches before any vertex of a greater label.
    """
    with fixpoint(window=1, schedule="free"):
        labels(binary.min) << min_first[labels.dtype](labels @ A)


def passed_on(sides: list, labels: Vector, degree: Vector, seen: Vector) -> bool:
    """Lower the labels of vertices that were not seen to the least of each component.

    `degree` counts the arcs of the first side; those of the others are added to it. Returns whether the labels settled.
    """
    n, dtype = labels.size, labels.dtype
    q, t = (Vector(dtype, size=n, name=name) for name in ("q", "t"))
    for side in sides[1:]:
        degree(binary.plus) << row_lengths(side)
    q(~seen.S) << binary.second(degree & labels)
    if q.nvals > n // FEW:
        return False
    with loop(ROUNDS) as it:
        t << min_first[dtype](q @ sides[0])
        for side in sides[1:]:
            t(binary.min) << min_first[dtype](q @ side)
        t << fallen(t & labels)
        q << select.valuege(t, 0)
        labels(binary.min) << q
        it.until(q.nvals == 0)
    return it.converged


def grown(sides: list, seen: Vector, labels: Vector) -> None:
    """Lower the labels to the least of each component; those of the vertices in `seen` are right already.

    No label may be greater than the number of its vertex.
    """
    parent, dtype = labels, labels.dtype
    before, near, least = (Vector(dtype, size=labels.size, name=name) for name in ("before", "near", "least"))
    stale = Scalar(bool, name="stale")
    rest = ~seen.S if seen.nvals else None
    with loop() as it:
        before << parent
        (near if rest is None else near(rest, replace)) << min_first[dtype](parent @ sides[0])
        for side in sides[1:]:
            near(mask=rest, accum=binary.min) << min_first[dtype](parent @ side)
        least << binary.min(parent | near)
        parent(binary.min)[parent] << least
        parent(binary.min) << least
        for _ in range(SHORTCUTS if rest is None else 1):
            parent << parent[parent]
        stale << binary.ne(before & parent).reduce(monoid.lor, allow_empty=False)
        it.until(~stale)


def has_symmetric_pattern(A: Matrix, n: int) -> bool:
    """Whether every arc has its reverse.

    Each vertex has a number of 64 bits; in a symmetric pattern their sums over out- and in-neighbours are the same
    vector. A wrong yes, were the numbers truly random, comes once in 2**63 matrices.
    """
    if "FP" not in A.dtype.name and A.isequal(A.T):  # known without comparing from the first time on
        return True
    x = Vector(int, size=n, name="x")
    x[:] = 0
    x << scrambled(x)
    differs = binary.ne(plus_second[int](A @ x).new() | plus_second[int](A.T @ x).new()).new()
    return not (differs.nvals and differs.reduce(monoid.lor).new().value)


def undirected(A: Matrix) -> int:
    """Return the number of vertices; errors as `square`, and InvalidValue for an arc without its reverse."""
    n = square(A)
    if not has_symmetric_pattern(A, n):
        raise InvalidValue(
            message("a symmetric pattern", "an arc without its reverse", "binary.first(A | A.T) has both")
        )
    return n


def _scrambled(x):
    x = (x ^ (x >> 30)) * -4658895280553007687
    x = (x ^ (x >> 27)) * -7723592293110705685
    return x ^ (x >> 31) | 1


# An odd number for each INT64, as a random generator would draw them: the last steps of Steele, Lea, Flood, "Fast
# Splittable Pseudorandom Number Generators", OOPSLA 2014, on multiples of an odd constant.
scrambled = indexunary.register_anonymous(
    lambda x, row, column, thunk: _scrambled((row + 1) * -7046029254386353131), "scrambled"
)


def _sizes(labels: Vector) -> Vector:
    """How many vertices have each label."""
    found, counts = np.unique(labels.to_coo()[1], return_counts=True)
    return Vector.from_coo(found, counts, size=labels.size)


def _counts(labels: Vector) -> dict[str, Any]:
    sizes = _sizes(labels).to_coo()[1]
    return {"components": sizes.size, "largest": sizes.max(initial=0)}


ALGORITHMS["components"] = Algorithm(
    run=connected_components,
    verify=verify.connected_components,
    summary=_counts,
    result=Result("vertex", "component"),
    top=Result("component", "size", _sizes),
)
