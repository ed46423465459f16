"""Collaborative filtering: ratings as products of what users like and what items have.

R holds the ratings, users in rows, items in columns; U and V, full matrices of a few columns, are to give U V^T = R
where there is a rating. One product inside the mask of R gives the errors E. Gradient descent moves U along E V, then V
along E^T U; a row's step is as long as its ratings surely allow, so the loss never rises. Alternating least squares
solves for each row: its factors' equations are one product of the pattern of R with the outer products of V's rows.
Each device solves those of its own rows, in one call of its library of linear algebra.

Source: Koren, Bell, Volinsky, "Matrix Factorization Techniques for Recommender Systems", IEEE Computer 2009; Zhou,
Wilkinson, Schreiber, Pan, "Large-Scale Parallel Collaborative Filtering for the Netflix Prize", AAIM 2008, for the
weights of the penalty; as masked products: Kepner, Gilbert, "Graph Algorithms in the Language of Linear Algebra", 2011.
"""

from math import inf
from typing import Any, NamedTuple

import numpy as np

from algos import verify
from algos._inputs import row_lengths
from algos.runs import ALGORITHMS, Algorithm, Option
from gbgpu import Matrix, Vector, binary, monoid, unary
from gbgpu.errors import InvalidValue, message
from gbgpu.interrupts import imported
from gbgpu.semiring import any_first, plus_second, plus_times

METHODS = "als", "gradient"


class Model(NamedTuple):
    """Factors of users and of items, and the errors of the iterations.

    Attributes
    ----------
    users : Matrix
        FP64, full, number of users x factors.
    items : Matrix
        FP64, full, number of items x factors.
    rmse : list of float
        The root of the mean squared error over the ratings, before the first and after each iteration.
    """

    users: Matrix
    items: Matrix
    rmse: list[float]


def collaborative_filtering(
    R: Matrix,
    factors: int = 16,
    method: str = "als",
    iterations: int = 10,
    penalty: float = 0.05,
    *,
    seed: int = 0,
) -> Model:
    """Factors of users and items whose products are close to the ratings.

    The loss is the sum of squared errors, plus `penalty` times the squares of a row's factors for each of its ratings.
    It never rises.

    Parameters
    ----------
    R : Matrix
        Ratings, users x items.
    factors : int
        The number of factors of each user and item, 1 or more.
    method : str
        "als" (alternating least squares) or "gradient" (gradient descent).
    iterations : int
        1 or more.
    penalty : float
        The weight of the squares of factors, above 0.
    seed : int
        Draws the factors to begin with. Rows without ratings keep these.

    Returns
    -------
    Model
        `users` (FP64, full, R.nrows x factors), `items` (FP64, full, R.ncols x factors) and `rmse`.

    Raises
    ------
    TypeError
        If `R` is no Matrix.
    InvalidValue
        If `method` is another, a number is out of its range, or the sum of the ratings is not finite; by "als" also if
        `penalty` is too small for the ratings.

    References
    ----------
    Koren, Bell, Volinsky, "Matrix Factorization Techniques for Recommender Systems", IEEE Computer 2009. Zhou,
    Wilkinson, Schreiber, Pan, "Large-Scale Parallel Collaborative Filtering for the Netflix Prize", AAIM 2008.
    """
    _check(R, factors, method, iterations, penalty)
    R = R.dup(float, name="R")
    sides = R, R.T.new(name="R")
    random, mean = np.random.default_rng(seed), float(R.reduce_scalar(monoid.plus).new().value or 0.0) / max(R.nvals, 1)
    level = (max(mean, 0.0) / factors) ** 0.5  # products begin near the mean
    U, V = (full(level + 0.1 * random.standard_normal((size, factors))) for size in R.shape)
    update = least_squares if method == "als" else descent
    rmse = [root_mean_square(errors(R, U, V))]
    for _ in range(iterations):
        update(sides[0], U, V, penalty)
        update(sides[1], V, U, penalty)
        rmse.append(root_mean_square(errors(R, U, V)))
    return Model(U, V, rmse)


def predictions(model: Model, pairs: Matrix) -> Matrix:
    """The ratings that a model predicts for pairs of a user and an item.

    Parameters
    ----------
    model : Model
        As of `collaborative_filtering`.
    pairs : Matrix
        An entry, users x items, for each pair. Values are ignored.

    Returns
    -------
    Matrix
        `users @ items.T` at the entries of `pairs` (FP64).
    """
    return _products(pairs, model.users, model.items)


def _products(R: Matrix, U: Matrix, V: Matrix) -> Matrix:
    found = Matrix(float, R.nrows, R.ncols, name="products")
    found(R.S) << plus_times[float](U @ V.T)
    return found


def errors(R: Matrix, U: Matrix, V: Matrix) -> Matrix:
    """The error at each rating: the rating less the product of factors."""
    return binary.minus(R & _products(R, U, V)).new(name="E")


def root_mean_square(E: Matrix) -> float:
    """The root of the mean of the squares of all entries; 0 without entries."""
    squares = binary.times(E & E).new().reduce_scalar(monoid.plus, allow_empty=False).new().value
    return (squares / max(E.nvals, 1)) ** 0.5


def descent(R: Matrix, U: Matrix, V: Matrix, penalty: float) -> None:
    """A step of each row of U against the gradient, over a bound of its second derivatives."""
    E = errors(R, U, V)
    count = row_lengths(R).new(dtype=float, name="count")
    steep = plus_second[float](R @ binary.times(V & V).new().reduce_rowwise(monoid.plus).new()).new(name="steep")
    shrink = count.apply(binary.times, right=penalty).new(name="shrink")
    G = plus_times[float](E @ V).new(name="G")
    G(binary.minus) << plus_times[float](shrink.diag() @ U)
    length = unary.minv(steep + shrink).new(name="length")
    U(binary.plus) << plus_times[float](length.diag() @ G)


def least_squares(R: Matrix, U: Matrix, V: Matrix, penalty: float) -> None:
    """The rows of U that make the loss least.

    A row's factors x solve G x = y. y is the sum of its items' factors, times the ratings. G is the sum of their outer
    products, each with the penalty on its diagonal, as a row of f^2 numbers.
    """
    f, pairs = V.ncols, np.arange(V.ncols**2)
    one, other = (Matrix.from_coo(k, pairs, True, nrows=f, ncols=f * f) for k in (pairs // f, pairs % f))
    outer = binary.times(any_first(V @ one).new() & any_first(V @ other).new()).new(name="outer")
    diagonal = Vector.from_coo(np.arange(f) * (f + 1), 1.0, size=f * f)
    outer(binary.plus) << Vector.from_scalar(penalty, V.nrows).outer(diagonal)
    G = plus_second[float](R @ outer).new(name="G")
    y = plus_times[float](R @ V).new(name="y")
    x = y.ss.map_rows(solutions, G, name="x")
    U(x.S) << x


def solutions(y: Any, G: Any) -> Any:
    """The x of G x = y for each row of y (n x f) and of G (n x f^2), NumPy's or CuPy's.

    Both libraries solve all systems in one call: LAPACK on CPU devices, cuSOLVER's Cholesky factors on GPUs. Raises
    InvalidValue if a system has no solution; CuPy tells of that only if it is asked.
    """
    G = G.reshape(*y.shape, -1)
    try:
        if isinstance(y, np.ndarray):
            return np.linalg.solve(G, y[:, :, None])[:, :, 0]
        with imported("cupyx").errstate(linalg="raise"):
            return imported("cupyx.lapack").posv(G, y)
    except np.linalg.LinAlgError:
        hint = "a larger penalty, or smaller ratings"
        raise InvalidValue(message("factors that ratings and penalty determine", "a singular system", hint)) from None


def full(values: np.ndarray) -> Matrix:
    """A matrix with all its entries."""
    return Matrix.from_dense(values, name="factors")


def _check(R: Any, factors: int, method: str, iterations: int, penalty: float) -> None:
    if not isinstance(R, Matrix):
        raise TypeError(message("a gbgpu Matrix of ratings", type(R).__name__))
    if method not in METHODS:
        raise InvalidValue(message(f"a method among {', '.join(METHODS)}", repr(method)))
    if not iterations >= 1:
        raise InvalidValue(message("iterations of at least 1", iterations))
    if not factors >= 1:
        raise InvalidValue(message("factors of at least 1", factors))
    if not 0 < penalty < inf:
        raise InvalidValue(message("a penalty above 0", penalty))
    total = abs(R.dup(float)).new().reduce_scalar(monoid.plus, allow_empty=False).new().value
    if not total < inf:
        raise InvalidValue(message("ratings with a finite sum", total))


def check_model(R: Matrix, model: Model) -> None:
    """The last error is that of the factors, by NumPy, and no larger than the first."""
    rows, cols, ratings = R.to_coo()
    u, v = model.users.to_dense(0.0), model.items.to_dense(0.0)
    mean = float(np.mean((ratings - np.einsum("kf,kf->k", u[rows], v[cols])) ** 2)) ** 0.5 if rows.size else 0.0
    verify.check(np.array([abs(mean - model.rmse[-1]) <= 1e-9 * (1 + mean)]), f"error: NumPy finds {mean}", _FIRST)
    verify.check(np.array([model.rmse[-1] <= model.rmse[0]]), f"error: rose from {model.rmse[0]}", _FIRST)


_FIRST = np.array([0])

METHOD = Option("method", str, "{}: als or gradient (default: als)", lambda R, asked: asked or METHODS[0])

ALGORITHMS["factors"] = Algorithm(
    run=lambda R, method: collaborative_filtering(R, 8, method, 5),
    verify=lambda R, method, model: check_model(R, model),
    summary=lambda model: {"first_error": model.rmse[0], "last_error": model.rmse[-1]},
    options=(METHOD,),
    rehearse=lambda R: collaborative_filtering(R, 2, "gradient", 2),
)
