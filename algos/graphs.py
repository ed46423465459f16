"""Graphs named on a command line: a file of any form, or a generator with its numbers, `rmat:18:16:1:1-255`."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gbgpu as gb
from gbgpu.errors import InvalidValue, message


@dataclass(frozen=True)
class Kind:
    """A generator: its two numbers with their defaults, and how it is called."""

    names: tuple[str, str]
    types: tuple[type, type]
    defaults: tuple[Any, Any]
    make: Callable[..., gb.Matrix]


def _uniform(scale: int, degree: int, **keywords: Any) -> gb.Matrix:
    if not 0 <= scale <= 32:
        raise InvalidValue(message("a scale from 0 to 32", scale))
    return gb.io.uniform(1 << scale, degree, **keywords)


KINDS = {
    "rmat": Kind(("scale", "edge-factor"), (int, int), (14, 16), gb.io.rmat),
    "uniform": Kind(("scale", "edge-factor"), (int, int), (14, 16), _uniform),
    "road": Kind(("side", "p"), (int, float), (200, 0.7), gb.io.grid_road),
}
SPEC = "KIND[:scale or side[:edge factor or p[:seed[:weights LO-HI]]]]"


def load(graph: str, symmetric: bool = False) -> gb.Matrix:
    """The matrix of a file or of a generator's spec; `symmetric`: an edge list has each edge once. Raises as
    `gb.io.read` and the generators do, InvalidValue for a file with a vector."""
    kind = graph.split(":")[0]
    if kind in KINDS and not os.path.exists(graph):
        return from_spec(graph)
    undirected = symmetric and gb.io.form_of(graph) == "edgelist"
    found = gb.io.read(graph, name="A", **({"directed": False} if undirected else {}))
    if not isinstance(found, gb.Matrix):
        raise InvalidValue(message("a graph, a matrix", f"a vector in {graph}"))
    return found


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
