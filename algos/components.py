"""Weakly connected components: every vertex takes the smallest label among its neighbours until nothing changes.

Labels begin as the vertices' numbers plus one, and 0 at a vertex of highest degree: nothing is smaller, so a vertex
that meets a 0 looks no further, and most of the largest component is done after few rounds. Only vertices whose label
fell in the last round, q, need to pass it on; while they are many all do, as a full vector is quicker to look things
up in. Arcs count in both directions, so an unsymmetric matrix is used in both orientations.

Source: label propagation, as in Kang, Tsourakakis, Faloutsos, "PEGASUS", ICDM 2009, with a frontier; to begin with the
largest component is the idea of Slota, Rajamanickam, Madduri, "BFS and Coloring-based Parallel Algorithms for Strongly
Connected Components", IPDPS 2014; the test of symmetry is that of Freivalds, "Probabilistic Machines Can Use Less
Running Time", IFIP 1977.
"""

from algos._inputs import square
from gbgpu import Matrix, Vector, binary, indexunary, monoid, replace, select, unary
from gbgpu.semiring import min_first, plus_first, plus_pair, plus_second

MANY = 16  # q is many from a sixteenth of all vertices


def connected_components(A: Matrix) -> Vector:
    """Labels (INT64, every vertex): the smallest vertex number of the component, directions and values of A ignored.

    Raises TypeError (A is no Matrix) and DimensionMismatch (A not square).
    """
    n = square(A)
    symmetric = has_symmetric_pattern(A, n)
    labels, t = (Vector("UINT32" if n < 2**32 - 1 else "UINT64", size=n, name=name) for name in ("labels", "t"))
    stale = Vector(bool, size=n, name="stale")
    spread = min_first[labels.dtype]
    labels[:] = 0
    labels << indexunary.rowindex(labels, 1)
    labels[busiest(A, n)] = 0
    q = labels.dup(name="q")
    while q.nvals:
        x = labels if MANY * q.nvals > n else q
        t << spread(x @ A)
        if not symmetric:
            t(binary.min) << spread(x @ A.T)
        stale << binary.ge(t & labels)
        q(~stale.V, replace) << t
        labels(binary.min) << q
    return smallest_vertices(labels, n)


def busiest(A: Matrix, n: int) -> slice:
    """A vertex of highest out-degree, as a slice; none without vertices."""
    ones, degree = Vector(int, size=n, name="ones"), Vector(int, size=n, name="degree")
    ones[:] = 1
    degree << plus_pair[int](A @ ones)
    highest = degree.reduce(monoid.max).new().value
    first = 0 if highest is None else int(select.valueeq(degree, highest).new().to_coo()[0][0])
    return slice(first, min(first + 1, n))


def smallest_vertices(labels: Vector, n: int) -> Vector:
    """The labels in terms of vertices: 0 becomes the smallest vertex that has it, others are a vertex plus one."""
    found = Vector(int, size=n, name="labels")
    found << labels
    found << found.apply(binary.minus, right=1)
    first = select.valuelt(found, 0).new(name="first")
    if first.nvals:
        found(first.S) << indexunary.index(first).new().reduce(monoid.min).new().value
    return found


def has_symmetric_pattern(A: Matrix, n: int) -> bool:
    """Whether every arc has its reverse. A wrong yes, were the numbers truly random, comes once in 2**63 matrices.

    Each vertex has a number of 64 bits; in a symmetric pattern their sums over out- and in-neighbours are the same
    vector.
    """
    x = Vector(int, size=n, name="x")
    x[:] = 0
    x << indexunary.index(x)
    x << x.apply(scrambled)
    differs = binary.ne(plus_second[int](A @ x).new() | plus_first[int](x @ A).new()).new()
    return not (differs.nvals and differs.reduce(monoid.lor).new().value)


def _scrambled(x):
    x = (x ^ (x >> 30)) * -4658895280553007687
    x = (x ^ (x >> 27)) * -7723592293110705685
    return x ^ (x >> 31) | 1


# An odd number for each INT64, as a random generator would draw them: the last steps of Steele, Lea, Flood, "Fast
# Splittable Pseudorandom Number Generators", OOPSLA 2014, on multiples of an odd constant.
scrambled = unary.register_anonymous(lambda x: _scrambled((x + 1) * -7046029254386353131), "scrambled")
