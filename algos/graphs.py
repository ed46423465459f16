"""Graphs named on a command line: a file of any form, or a generator with its numbers, `rmat:18:16:1:1-255`."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gbgpu as gb
from algos._inputs import square
from gbgpu.errors import GraphblasException, InvalidValue, message


@dataclass(frozen=True)
class Kind:
    """A generator: what it makes, its two numbers with their defaults, and how it is called."""

    what: str
    names: tuple[str, str]
    types: tuple[type, type]
    defaults: tuple[Any, Any]
    make: Callable[..., gb.Matrix]


def _uniform(scale: int, degree: int, **keywords: Any) -> gb.Matrix:
    if not 0 <= scale <= 32:
        raise InvalidValue(message("a scale from 0 to 32", scale))
    return gb.io.uniform(1 << scale, degree, **keywords)


KINDS = {
    "rmat": Kind(
        "few vertices with most edges, as in social networks: 2^scale vertices",
        ("scale", "edge-factor"),
        (int, int),
        (14, 16),
        gb.io.rmat,
    ),
    "uniform": Kind(
        "edges between random pairs of vertices: 2^scale vertices",
        ("scale", "edge-factor"),
        (int, int),
        (14, 16),
        _uniform,
    ),
    "road": Kind(
        "a grid with a share p of its edges, as in road maps: side x side vertices",
        ("side", "p"),
        (int, float),
        (200, 0.7),
        gb.io.grid_road,
    ),
}
SPEC = "KIND[:scale or side[:edge factor or p[:seed[:weights LO-HI]]]]"


def load(graph: str, symmetric: bool = False, dup_op: str | None = None, limit: int | None = None) -> gb.Matrix:
    """The matrix of a file or of a generator's spec. `symmetric`: with the reverse of each arc; where the reverse is
    there and they differ, both have the larger value. `dup_op` combines arcs that a file has twice. `limit`: how many
    bytes a file may have or become.

    Raises as `gb.io.read` and the generators do, InvalidValue for a file with a vector; texts begin with the file."""
    kind = graph.split(":")[0]
    if kind in KINDS and not os.path.exists(graph):
        A = from_spec(graph)
    else:
        A = named(graph, lambda: _read(graph, dup_op, limit))
    return named(graph, lambda: both_ways(A)) if symmetric else A


def named(path: str, work: Callable[[], Any]) -> Any:
    """work(); what is wrong with a file is told with its name."""
    try:
        return work()
    except (ValueError, GraphblasException) as error:
        error.args = (f"{path}: {error}",)
        raise


def _read(path: str, dup_op: str | None, limit: int | None) -> gb.Matrix:
    twice = {} if dup_op is None or gb.io.form_of(path) == "gbgpu" else {"dup_op": dup_op}  # which has nothing twice
    found = gb.io.read(path, name="A", limit=limit, **twice)
    if not isinstance(found, gb.Matrix):
        raise InvalidValue(message("a graph, a matrix", "a vector"))
    return found


def both_ways(A: gb.Matrix) -> gb.Matrix:
    """A with the reverse of each arc; DimensionMismatch if it is not square."""
    square(A)
    return A if A.isequal(A.T) else gb.binary.max(A | A.T).new(name="A")


def store(path: str, A: gb.Matrix, symmetric: bool = False, comment: str = "") -> None:
    """Write a graph by its file's name. `symmetric`: Matrix Market files and edge lists have each edge once; text has
    the comment. Raises as `gb.io.write` does."""
    once: dict[str, dict[str, Any]] = {"mtx": {"symmetry": "symmetric"}, "edgelist": {"directed": False}}
    form = gb.io.form_of(path) or ""
    options = once.get(form, {}) if symmetric else {}
    if form in ("mtx", "edgelist", "dimacs"):
        options = options | {"comment": comment}
    gb.io.write(path, A, **options)


def from_spec(spec: str) -> gb.Matrix:
    """The matrix of `rmat:18:16:1`; numbers left out take their defaults, weights are 1 unless given. InvalidValue if
    malformed.
    """
    name, *fields = spec.split(":")
    kind = KINDS[name]
    try:
        if len(fields) > 4:
            raise ValueError("too many numbers")
        first, second, seed = (
            convert(fields[k]) if k < len(fields) else default
            for k, (convert, default) in enumerate(zip((*kind.types, int), (*kind.defaults, 1), strict=True))
        )
        weights = parse_weights(fields[3]) if len(fields) == 4 else None
    except ValueError as error:
        raise InvalidValue(message(f"a graph as {SPEC}", repr(spec), str(error))) from None
    return kind.make(first, second, seed=seed, weights=weights, name="A")


def parse_weights(text: str) -> tuple[int, int]:
    """(1, 255) of "1-255"; ValueError otherwise."""
    low, dash, high = text.partition("-")
    if not (dash and low.isdigit() and high.isdigit() and int(low) <= int(high)):
        raise ValueError(f"expected weights as LO-HI, whole and LO <= HI; came {text!r}")
    return int(low), int(high)
