"""`gbgpu train-balance`: seconds an edge, learnt from searches on this machine (GUM, section III-B)."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

import gbgpu as gb
from algos._inputs import square
from algos.bfs import bfs
from algos.components import connected_components
from algos.graphs import load, named
from algos.pagerank import pagerank
from algos.progress import Paper
from algos.results import check_folder, check_outputs
from algos.sssp import sssp
from gbgpu.balance import Polynomial, Tally, constant, features, train

# Generated families and, in the project's folder, its real graphs: to learn from, and those that training does not see.
FAMILIES = (
    *("rmat:12:16:1:1-255", "rmat:13:4:3:1-255", "rmat:13:32:4:1-255", "rmat:15:8:2:1-255"),
    *("uniform:12:32:3:1-255", "uniform:13:16:1:1-255", "uniform:14:3:4:1-255", "uniform:15:6:2:1-255"),
    *("road:80:0.9:3:1-99", "road:150:0.7:1:1-99"),
    *filter(os.path.exists, ["data/PGPgiantcompo.mtx.gz"]),
)
UNSEEN = (
    *("rmat:14:24:7:1-255", "uniform:14:12:7:1-255", "road:250:0.8:7:1-99"),
    *filter(os.path.exists, ["data/luxembourg_osm.mtx.gz"]),
)
RUNS: tuple[Callable[[gb.Matrix, int], Any], ...] = (
    bfs,
    sssp,
    lambda A, source: pagerank(A, max_iterations=5, tol=0.0),
    lambda A, source: connected_components(A),
)
_EDGES, _REPEATS = 500, 10  # of a block from which a time tells anything; of a run, whose least times count


class Samples(NamedTuple):
    """Features (k, 6) and seconds an edge (k,)."""

    features: np.ndarray
    seconds: np.ndarray


def add_train(commands: Any) -> None:
    """The command's arguments."""
    command = commands.add_parser("train-balance", help="train a model of the cost of an edge on CPU devices")
    command.set_defaults(command=train_balance)
    command.add_argument("output", metavar="FILE", help="the model's file (JSON), for gbgpu replay --model")
    command.add_argument("--direction", choices=("push", "pull"), default="push", help="default: push")
    command.add_argument("--devices", default="cpu:2", metavar="D", help="CPU devices (default: cpu:2)")
    families, unseen = (f"default: {', '.join(graphs)}" for graphs in (FAMILIES, UNSEEN))
    command.add_argument("--graph", action="append", metavar="GRAPH", help=f"to train on, repeatable; {families}")
    command.add_argument("--unseen", action="append", metavar="GRAPH", help=f"to check with, repeatable; {unseen}")
    command.add_argument("--seed", type=seed, default=0, help="default: 0")


def seed(text: str) -> int:
    """A whole number from 0 on."""
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def train_balance(arguments: argparse.Namespace) -> int:
    check_model(arguments.output)
    names = arguments.graph or FAMILIES, arguments.unseen or UNSEEN
    read_from = [(called, name) for called, part in zip(("--graph", "--unseen"), names, strict=True) for name in part]
    check_outputs({"FILE": arguments.output}, read_from)
    try:
        gb.init(arguments.devices, balance="off")
    except ImportError as error:
        raise gb.errors.InvalidValue(str(error)) from None
    if any(device["kind"] != "cpu" for device in gb.device_info()):
        raise gb.errors.NotImplementedException(gb.errors.message("CPU devices", arguments.devices))
    read = {name: graph(name) for name in (*names[0], *names[1])}  # all, before a long training
    known, unseen = (sampled(((name, read[name]) for name in part), arguments.direction) for part in names)
    model = train(*known, seed=arguments.seed)
    model.save(arguments.output)
    Paper().print(errors(model, known, unseen, arguments.direction))
    return 0


def errors(model: Polynomial, known: Samples, unseen: Samples, direction: str) -> Table:
    """Of a model, and of one number, the median of what it was trained with."""
    table = Table("model", "samples", "error, seen", "error, unseen", title=f"{direction}, seconds an edge")
    for name, one in (("polynomial", model), ("one number", constant(float(np.median(known.seconds))))):
        found = (f"{one.rmsre(*samples):.3f}" for samples in (known, unseen))
        table.add_row(name, f"{len(known.seconds)}, {len(unseen.seconds)}", *found)
    return table


def check_model(path: str) -> None:
    """OSError, before a long training, where the model's file could not be made."""
    if not path:
        raise FileNotFoundError("no name for the model's file")
    check_folder(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder")
    if not os.access(path if os.path.exists(path) else os.path.dirname(path) or ".", os.W_OK):
        raise PermissionError(f"{path} can not be written")


def graph(name: str) -> gb.Matrix:
    """As `load`; and InvalidValue for a graph without vertices, DimensionMismatch for a matrix that is no graph."""
    A = load(name)
    if not named(name, lambda: square(A)):
        raise gb.errors.InvalidValue(gb.errors.message("a graph with vertices", f"none in {name}"))
    return A


def collect(graphs: Iterable[str], direction: str) -> Samples:
    """`sampled` of graphs by their names."""
    return sampled(((name, graph(name)) for name in graphs), direction)


def sampled(graphs: Iterable[tuple[str, gb.Matrix]], direction: str) -> Samples:
    """What blocks of BFS, SSSP, PageRank and components took, by their frontiers; of several runs the least. Products
    that did not look at all edges are left out (pulls that end early, counts of rows): no frontier tells where they
    end. Raises InvalidValue if no block had edges enough."""
    tallies: list[Tally] = []
    seconds: list[float] = []
    for name, A in graphs:
        source = int(np.diff(A.to_csr()[0]).argmax())
        for run in RUNS:
            run(A, source)  # compiled
            for tally, least in _least([_products(run, A, source, direction) for _ in range(_REPEATS)]):
                tallies.append(tally)
                seconds.append(least / tally.edges)
        print(f"{name}: {len(tallies)} samples", file=sys.stderr)
    if not tallies:
        raise gb.errors.InvalidValue(gb.errors.message(f"blocks of {_EDGES} edges", "none", "larger graphs"))
    return Samples(features(tallies), np.array(seconds))


def _products(run: Any, A: gb.Matrix, source: int, direction: str) -> list[Any]:
    with gb.trace() as records:
        run(A, source)
    return [record for record in records if record.step == direction and record.tally is not None]


def _least(runs: Sequence[list[Any]]) -> Iterable[tuple[Tally, float]]:
    """Each product with the least of its times; products of runs that went other ways are left out."""
    for same in zip(*runs, strict=False):
        tally = same[-1].tally  # the transpose, which has in-degrees, may be made on the way
        alike = all(record.tally.edges == tally.edges for record in same)
        if tally.edges >= _EDGES and alike and same[0].edges >= tally.edges:
            yield tally, min(record.end - record.start for record in same)
