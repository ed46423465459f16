"""Minimum spanning forests: every component takes its cheapest edge out, until none leads out.

A matrix of components holds the least entry between each two of them. The least entry of a row is the edge that its
component takes; the components that such edges join become one, which is a product with the selection matrix of the
new components on both sides. Entries are the places of edges in the order of their weights, all different: so the
forest is the one that Kruskal's rule finds in that order, and no cycle can close.

Source: Boruvka 1926; in the language of matrices in Kepner, Gilbert, "Graph Algorithms in the Language of Linear
Algebra", SIAM 2011, chapter 5.
"""

from typing import Any

import numpy as np

from algos import verify
from algos._inputs import square
from algos.runs import ALGORITHMS, Algorithm
from gbgpu import Matrix, Vector, binary, monoid, select
from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import min_first, min_second


def minimum_spanning_forest(A: Matrix) -> Matrix:
    """The edges of a minimum spanning forest with their weights.

    Parameters
    ----------
    A : Matrix
        Weights of edges, n x n. Directions and loops are ignored: the least entry between two vertices counts.

    Returns
    -------
    Matrix
        The edges (dtype of `A`, n x n), each once, at [i, j] with i < j. Of edges of the same weight the one with the
        lower [i, j] is taken first.

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square.
    InvalidValue
        If the weight of an edge is NaN. A NaN is ignored if the reverse arc has a number.

    References
    ----------
    Boruvka 1926. Kepner, Gilbert, "Graph Algorithms in the Language of Linear Algebra", SIAM 2011, chapter 5.
    """
    n = square(A)
    rows, cols, weights = select.triu(binary.min(A | A.T).new(), 1).new().to_coo()
    if np.isnan(weights).any():
        raise InvalidValue(message("weights that can be compared", "NaN"))
    order = np.argsort(weights, kind="stable")
    rows, cols, weights = rows[order], cols[order], weights[order]
    taken = of_ordered(n, rows, cols)
    return Matrix.from_coo(rows[taken], cols[taken], weights[taken], A.dtype, nrows=n, ncols=n, name="forest")


def of_ordered(n: int, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """The places of the forest's edges among edges that lie in the order of their weights, none twice."""
    return chosen_edges(Matrix.from_coo(rows, cols, np.arange(len(rows)), int, nrows=n, ncols=n), rows, cols)


def chosen_edges(C: Matrix, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """The places of the forest's edges: C (INT64) holds the place of each, and rows[k] - cols[k] is that of place k."""
    n = C.nrows
    C = select.offdiag(binary.min(C | C.T)).new(name="C")
    component, taken = np.arange(n), []
    while C.nvals:
        mine, edges = C.reduce_rowwise(monoid.min).new().to_coo()
        taken.append(np.unique(edges))
        ends = component[rows[edges]], component[cols[edges]]
        joined = np.arange(C.nrows)
        joined[mine] = np.where(ends[0] == mine, ends[1], ends[0])
        number = numbered(joined)
        component = number[component]
        C = contracted(C, number)
    return np.concatenate(taken) if taken else np.arange(0)


def numbered(joined: np.ndarray) -> np.ndarray:
    """The number of the tree of each component, where component i joins `joined[i]`.

    Two components that chose each other are the root of a tree.
    """
    own = np.arange(len(joined))
    mutual = (joined[joined] == own) & (own < joined)
    root = Vector.from_coo(own, np.where(mutual, own, joined), int, size=len(own), name="root")
    while True:
        above = root[root].new()
        if above.isequal(root):
            return np.unique(root.to_coo()[1], return_inverse=True)[1]
        root << above


def contracted(C: Matrix, number: np.ndarray) -> Matrix:
    """The least entries between new components."""
    new = int(number.max(initial=-1)) + 1
    S = Matrix.from_coo(np.arange(len(number)), number, 1, int, nrows=len(number), ncols=new, name="S")
    half = min_first[int](C @ S).new(name="half")
    return select.offdiag(min_second[int](S.T @ half).new()).new(name="C")


def _summary(found: Matrix) -> dict[str, Any]:
    weight = found.reduce_scalar(monoid.plus["FP64"]).new().value
    return {"edges": found.nvals, "trees": found.nrows - found.nvals, "weight": weight or 0.0}


ALGORITHMS["forest"] = Algorithm(run=minimum_spanning_forest, verify=verify.minimum_spanning_forest, summary=_summary)
