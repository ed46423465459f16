"""The command `gbgpu bench`: Graph500, GAP, and the rates of kernels."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

import gbgpu as gb
from algos import gap, graph500, kernel_rates, measurements, results
from algos.arguments import QUIET, begin, positive
from algos.progress import Paper, Progress
from algos.training import seed
from gbgpu import errors


def add_bench(commands: Any) -> list[argparse.ArgumentParser]:
    benches = commands.add_parser("bench", help="run a published benchmark, or that of kernels").add_subparsers(
        required=True, metavar="BENCHMARK"
    )
    search = benches.add_parser("graph500", help="Graph500: breadth-first search and shortest paths, each validated")
    search.set_defaults(command=bench_graph500)
    search.add_argument("--scale", type=positive, default=20, metavar="S", help="2^S vertices (default: 20)")
    search.add_argument("--edgefactor", type=positive, default=16, metavar="K", help="edges a vertex (default: 16)")
    suite = benches.add_parser("gap", help="GAP: six kernels on five graphs, each trial verified")
    suite.set_defaults(command=bench_gap, refuse=suite.error)
    suite.add_argument("--scale", type=positive, default=16, metavar="S", help="about 2^S vertices (default: 16)")
    kinds = ", ".join(gap.generators(1))
    suite.add_argument("--graph", action="append", metavar="NAME[=FILE]", help=f"repeatable; among {kinds}")
    suite.add_argument("--kernel", action="append", choices=gap.KERNELS, help="repeatable (default: all)")
    suite.add_argument("--trials", type=positive, metavar="N", help="default: as the suite has it")
    for bench in (search, suite):
        bench.add_argument("--seed", type=seed, default=1, metavar="N", help="default: 1")
        bench.add_argument("--quiet", action="store_true", help=QUIET)
    rates = benches.add_parser("kernels", help="each kernel at a real size, beside the limits of the memory")
    rates.set_defaults(command=bench_kernels)
    rates.add_argument("--scale", type=positive, metavar="S", help="2^S vertices (default: by the measured limits)")
    rates.add_argument("--seconds", type=float, default=1.0, metavar="T", help="of calls of each kernel (default: 1)")
    rates.add_argument("--output", metavar="NAME", help="also write NAME.json and NAME.md")
    rates.add_argument("--quiet", action="store_true", help=QUIET)
    return [search, suite, rates]


def bench_graph500(arguments: argparse.Namespace) -> int:
    begin(arguments)
    with Progress(4, arguments.quiet or bool(gb.rank())) as progress:
        found = graph500.run(arguments.scale, arguments.edgefactor, arguments.seed, step=progress.step)
    print(json.dumps(dict(found)) if arguments.json else graph500.text(found))
    return 0


def bench_gap(arguments: argparse.Namespace) -> int:
    kinds = list(gap.generators(1))
    asked = [name.partition("=")[::2] for name in arguments.graph or kinds]
    if unknown := [name for name, _ in asked if name not in kinds]:
        arguments.refuse(f"--graph is one of {', '.join(kinds)}; came {unknown[0]!r}")
    begin(arguments)
    kernels, files = arguments.kernel or list(gap.KERNELS), {name: file for name, file in asked if file}
    names = list(dict(asked))
    with Progress(len(names) * (1 + len(kernels)), arguments.quiet or bool(gb.rank())) as progress:
        options = arguments.scale, arguments.seed, files, arguments.trials, progress.step
        lines = list(gap.run(names, kernels, *options))
    if arguments.json:
        print(json.dumps([line._asdict() for line in lines]))
        return 0
    table = Table("graph", "kernel", "trials", "average, s", "min, s", "max, s", title="GAP, every trial verified")
    for graph, kernel, seconds, _ in lines:
        figures = (f"{value:.5f}" for value in (sum(seconds) / len(seconds), min(seconds), max(seconds)))
        table.add_row(escape(graph), kernel, str(len(seconds)), *figures)
    Paper().print(table)
    return 0


def bench_kernels(arguments: argparse.Namespace) -> int:
    if not 0 < arguments.seconds < float("inf"):
        raise errors.InvalidValue(errors.message("seconds above 0", arguments.seconds, "--seconds 1"))
    begin(arguments)
    if arguments.output is not None:
        results.check_folder(arguments.output)
    scale = arguments.scale or kernel_rates.default_scale(gb.limits())
    with Progress(quiet=arguments.quiet) as progress:
        limits, found, statement = kernel_rates.run(scale, arguments.seconds, progress.step)
    parts = kernel_rates.tables(arguments.devices, scale, found, limits, statement)
    command = f"gbgpu bench kernels --devices {arguments.devices} --scale {scale} --seconds {arguments.seconds:g}"
    page = kernel_rates.page(command, parts)
    if arguments.output is not None:
        measurements.keep(Path(arguments.output), page)
    if arguments.json:
        print(json.dumps(page, default=asdict))
    else:
        print("\n\n".join(map(measurements.markdown, parts)))
    return 0
