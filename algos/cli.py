"""The `gbgpu` command: `info`, `run ALGO GRAPH`, `replay TRACE`, `train-balance OUT`, `compile [SCRIPT]`,
`convert IN OUT`, `generate KIND`, `bench graph500|gap|kernels`, `report DIR`.

Exit codes: 0 done, 1 verification failed, 2 usage, 3 bad input (a file, a source, a device, iterations that
do not converge); errors are one line on stderr.
"""

import argparse
import json
import os
import platform
import runpy
import select
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

import gbgpu as gb
from algos import balancing, benches, kernel_rates, measurements, results, runs, training
from algos._iterations import ConvergenceError
from algos.arguments import QUIET, begin, dtype, operator, positive, say, weights
from algos.graphs import KINDS, SPEC, load, store
from algos.progress import Paper, Progress
from algos.verify import VerificationError
from gbgpu import errors, report
from gbgpu.interrupts import imported
from gbgpu.io import checks
from gbgpu.trace import compiling, now

FILE = f"{gb.io.SUFFIXES}, or one of them and .gz, .bz2 or .xz"
GRAPH = f"a file ({FILE}; read only: .csv, .edges, .e, out.NAME) or a generated graph, {SPEC}, KIND {', '.join(KINDS)}"
SYMMETRIC = "the graph is undirected: each arc gets its reverse; if both directions differ, both get the larger value"
ONCE = f"{SYMMETRIC}; a written .mtx or edge list has each edge once"
TWICE = "operator that combines repeated arcs of the file: plus, min, max, first, second, any, ... (default: an error)"
LIMIT = "most bytes that the file may have or become, unpacked (default: 200 times its size, at least 1 GiB)"
PARTITION = f"how rows are divided among the devices: {', '.join(gb.partition.NAMED)} (default: edges)"
BAD_INPUT = (
    OSError,
    ValueError,
    errors.IndexOutOfBound,
    errors.InvalidValue,
    errors.DimensionMismatch,
    errors.DomainMismatch,
    errors.NotImplementedException,
    errors.DeviceError,
    errors.OutOfMemory,
    ConvergenceError,
)


def main(argv: list[str] | None = None) -> int:
    """Run a command line (default: the process's); returns the exit code."""
    arguments = parser().parse_args(argv)
    try:
        code = arguments.command(arguments)
        return 128 + signal.SIGPIPE if _unread() else int(code)
    except VerificationError as error:
        say(f"gbgpu: {error}")
        return 1
    except BAD_INPUT as error:
        if isinstance(error, BrokenPipeError) and _unread():
            return 128 + signal.SIGPIPE
        reason = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        if "dup_op" in arguments:  # what the reader's keyword is called here
            reason = reason.replace("`dup_op` BinaryOp", "--dup-op OP").replace("limit=", "--limit ")
        print(f"gbgpu: {' '.join(reason.split())}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130


def _unread() -> bool:
    """Whether nobody reads what was printed; then nothing more is written, not at the end of Python either."""
    with suppress(AttributeError, OSError, ValueError):  # there may be no stdout, or one that is no file
        asked = select.poll()
        asked.register(sys.stdout.fileno(), 0)
        with suppress(BrokenPipeError):
            sys.stdout.flush()
            if not any(events & select.POLLERR for _, events in asked.poll(0)):
                return False
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return True
    return False


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="gbgpu", description="Sparse linear algebra and graph algorithms on CPUs and GPUs."
    )
    top.add_argument("--version", action="version", version=f"gbgpu {gb.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="show the devices, and how a graph is divided among them")
    info.add_argument("graph", nargs="?", metavar="GRAPH", help=GRAPH)
    info.add_argument("--symmetric", action="store_true", help=SYMMETRIC)
    info.add_argument("--dup-op", type=operator, metavar="OP", help=TWICE)
    info.add_argument("--limit", type=positive, metavar="BYTES", help=LIMIT)
    info.add_argument("--topology", action="store_true", help="also measure the links between the devices")
    info.add_argument("--limits", action="store_true", help="also measure what the memory of each device gives at most")
    info.set_defaults(command=show_info)
    run = add_run(commands)
    for command in (info, run, *benches.add_bench(commands)):
        command.add_argument(
            "--devices", default="auto", metavar="D", help="auto, cpu:4, cuda:0, cuda:0*3, sim:dgx1-v100, ..."
        )
        command.add_argument("--partition", choices=list(gb.partition.NAMED), metavar="P", help=PARTITION)
        command.add_argument("--json", action="store_true", help="print JSON on stdout, and nothing else")
    balancing.add_replay(commands)
    training.add_train(commands)
    add_compile(commands)
    add_convert(commands)
    add_generate(commands)
    told = commands.add_parser("report", help="make tables and pictures of the JSON files of measurements and traces")
    told.add_argument("folder", metavar="DIR", help="where NAME.json are; NAME.md and pictures are written beside them")
    told.set_defaults(command=make_report)
    return top


def add_run(commands: Any) -> argparse.ArgumentParser:
    run = commands.add_parser("run", help="run an algorithm on a graph")
    run.set_defaults(command=run_algorithm, refuse=run.error)
    names = list(runs.ALGORITHMS)
    help = f"{', '.join(names)}; or a function's name"
    run.add_argument("algorithm", type=lambda x: runs.FUNCTIONS.get(x, x), choices=names, metavar="ALGO", help=help)
    run.add_argument("graph", metavar="GRAPH", help=GRAPH)
    run.add_argument("--symmetric", action="store_true", help=SYMMETRIC)
    run.add_argument("--dup-op", type=operator, metavar="OP", help=TWICE)
    run.add_argument("--limit", type=positive, metavar="BYTES", help=LIMIT)
    for option, takers in runs.options().items():
        kind = {"type": option.type} if option.type else {"action": "store_const", "const": True}
        run.add_argument(f"--{option.name.replace('_', '-')}", **kind, help=option.help.format(", ".join(takers)))
    run.add_argument("--repeat", type=positive, default=1, metavar="N", help="run N times and report every time")
    run.add_argument("--top", type=positive, metavar="N", help=f"print the N largest; {', '.join(runs.with_a('top'))}")
    run.add_argument("--output", metavar="FILE", help=f"write the result, one number for each vertex: {results.NAMES}")
    run.add_argument("--verify", action="store_true", help="verify the result; exit 1 if it is wrong")
    run.add_argument("--trace", metavar="FILE", help="run again with tracing and write Chrome's trace format")
    run.add_argument("--plot", metavar="FILE", help="the same as a picture: a lane a device, and the frontier's size")
    run.add_argument("--rounds", action="store_true", help="trace rounds of loops in place of steps")
    run.add_argument("--quiet", action="store_true", help=QUIET)
    return run


def add_compile(commands: Any) -> None:
    ahead = commands.add_parser(
        "compile", help="compile kernels before their first use, for this CPU or for a GPU, present or not"
    )
    ahead.set_defaults(command=compile_kernels)
    ahead.add_argument(
        "script", nargs="?", metavar="SCRIPT", help="a Python program, run on the CPU (default: all algorithms)"
    )
    ahead.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the program")
    ahead.add_argument("--arch", metavar="A", help="sm_80, sm_90, ... (default: this machine's GPU, else its CPU)")
    ahead.add_argument("--quiet", action="store_true", help=QUIET)


def add_convert(commands: Any) -> None:
    convert = commands.add_parser("convert", help="write a graph in another format, chosen by the file names")
    convert.set_defaults(command=convert_graph)
    convert.add_argument("input", metavar="IN", help=GRAPH)
    convert.add_argument("output", metavar="OUT", help=f"a file: {FILE}")
    convert.add_argument("--symmetric", action="store_true", help=ONCE)
    convert.add_argument("--dup-op", type=operator, metavar="OP", help=TWICE)
    convert.add_argument("--limit", type=positive, metavar="BYTES", help=LIMIT)
    convert.add_argument("--dtype", type=dtype, metavar="TYPE", help="the type of the values, for example FP32")
    convert.add_argument("--quiet", action="store_true", help=QUIET)


def add_generate(commands: Any) -> None:
    generate = commands.add_parser("generate", help="write a generated graph to a file")
    kinds = generate.add_subparsers(required=True, dest="kind", metavar="KIND")
    for name, kind in KINDS.items():
        options = kinds.add_parser(name, help=kind.what)
        options.set_defaults(command=write_graph)
        for option, convert, default in zip(kind.names, kind.types, kind.defaults, strict=True):
            options.add_argument(f"--{option}", type=convert, default=default, help=f"default: {default}")
        options.add_argument("--seed", type=int, default=1, help="default: 1")
        options.add_argument(
            "--weights", type=weights, metavar="LO-HI", help="whole weights, for example 1-255 (default: all 1)"
        )
        options.add_argument("-o", "--output", required=True, metavar="FILE", help=FILE)
        options.add_argument("--quiet", action="store_true", help=QUIET)


def show_info(arguments: argparse.Namespace) -> int:
    begin(arguments)
    devices = gb.device_info()
    versions = {"python": platform.python_version(), "gbgpu": gb.__version__}
    versions |= {name: version(name) for name in ("numpy", "llvmlite")}
    links = gb.topology() if arguments.topology else None
    limits = gb.limits() if arguments.limits else None
    sets = None
    if arguments.graph is not None:
        sets = gb.block_sets(load(arguments.graph, arguments.symmetric, arguments.dup_op, arguments.limit))
    if arguments.json:
        found: dict[str, Any] = {"versions": versions, "devices": devices}
        if links is not None:
            found |= {"bandwidth": links.links.tolist(), "latency": links.latency.tolist()}
        if limits is not None:
            found["limits"] = [
                each._asdict() | {"gather": [[*kind, rate] for kind, rate in each.gather.items()]} for each in limits
            ]
        if sets is not None:
            found["partition"] = sets._asdict() | dict(measures(sets))
        print(json.dumps(found, default=str))
        return 0
    table = Table()
    columns = list(dict.fromkeys(key for device in devices for key in device))
    for column in columns:
        table.add_column(column)
    for device in devices:
        table.add_row(*(shown(column, device.get(column, "")) for column in columns))
    console = Paper()
    console.print(", ".join(f"{name} {number}" for name, number in versions.items()), highlight=False)
    console.print(table)
    if links is not None:
        console.print(links_table(links, [str(device["name"]) for device in devices]))
    if limits is not None:
        console.print(measurements.markdown(kernel_rates.limits_table(limits)), highlight=False, soft_wrap=True)
    if sets is not None:
        console.print(sets_table(sets, [str(device["name"]) for device in devices]))
        for name, value in measures(sets):
            console.print(f"{name.replace('_', ' ')}: {number_text(value)}", highlight=False)
    return 0


def measures(sets: gb.BlockSets) -> list[tuple[str, Any]]:
    """What a partition is judged by; bytes of a round, of values of 8 bytes, and of entries that have none."""
    shares = ("edge_cut", "row_balance", "edge_balance")
    moved = ("pull_bytes", "needed_bytes", "push_bytes")
    found = [(name, getattr(sets, name)) for name in shares] + [(name, getattr(sets, name)()) for name in moved]
    if any(sets.delegates):
        kinds = ("normal_to_normal", "normal_to_delegate", "delegate_to_normal", "delegate_to_delegate")
        found += [
            ("delegates_in_all", sum(sets.delegates)),
            *zip(kinds, map(sum, zip(*sets.kinds, strict=True)), strict=True),
        ]
        found.append(("bytes_an_entry", sets.held_bytes() / sum(sets.entries)))  # an edge list has two ids, 16 bytes
    return found


def sets_table(sets: gb.BlockSets, names: list[str]) -> Table:
    """A row a block."""
    table = Table("block", *sets._fields[:6])
    for name, *counts in zip(names, *sets[:6], strict=False):
        table.add_row(name, *(f"{count:,}" for count in counts))
    return table


def links_table(links: Any, names: list[str]) -> Table:
    """What goes from the device of a row to that of a column."""
    table = Table("from, to", *names, title="GB/s, microseconds")
    for i, name in enumerate(names):
        pairs = zip(links.links[i] / 1e9, links.latency[i] * 1e6, strict=True)
        table.add_row(name, *("" if i == j else f"{speed:.0f}, {delay:.1f}" for j, (speed, delay) in enumerate(pairs)))
    return table


def shown(key: str, value: Any) -> str:
    """A cell; bytes in GiB."""
    return f"{value / 2**30:.1f} GiB" if key in ("free", "total") and isinstance(value, int) else str(value)


def compile_kernels(arguments: argparse.Namespace) -> int:
    def program() -> None:
        if arguments.script is None:
            runs.rehearse()
            if gb.settings.rehearsal is None:  # for CPUs: small objects lie on one device unless several are named
                if find_spec("networkx"):
                    imported("algos.nx").rehearse()
                gb.init("cpu:2")
                runs.rehearse(runs.USUAL)
            return
        sys.argv = [arguments.script, *arguments.arguments]
        try:
            runpy.run_path(arguments.script, run_name="__main__")
        except Exception:  # its own, and no bad input of this command
            traceback.print_exc()
            raise SystemExit(1) from None

    if arguments.script is not None and not os.path.isfile(arguments.script):
        raise errors.InvalidValue(errors.message("a Python script", repr(arguments.script)))
    with Progress(quiet=arguments.quiet) as progress:
        progress.step("compiling")
        count = gb.compile_ahead(program, arguments.arch)
    print(f"{count} kernels compiled", file=sys.stderr)
    return 0


def convert_graph(arguments: argparse.Namespace) -> int:
    check_form(arguments.output)
    results.check_outputs({"OUT": arguments.output}, [("IN", arguments.input)])
    with Progress(quiet=arguments.quiet) as progress:
        progress.step(f"reading {arguments.input}")
        A = load(arguments.input, arguments.symmetric, arguments.dup_op, arguments.limit)
        if arguments.dtype is not None:
            A = fitting(A, gb.dtypes.lookup_dtype(arguments.dtype))
        progress.step("writing")
        store(arguments.output, A, arguments.symmetric, f"gbgpu convert {os.path.basename(arguments.input)}")
    say(f"{arguments.output}: {A.nrows:,} vertices, {A.nvals:,} entries")
    return 0


def make_report(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise errors.InvalidValue(errors.message("a folder", arguments.folder))
    try:
        for file in measurements.report(folder):
            print(file)
    except ImportError as error:
        raise errors.InvalidValue(f"pictures need matplotlib: pip install matplotlib ({error})") from None
    return 0


def check_form(output: str) -> None:
    """Before a long reading, or making."""
    results.check_folder(output)
    if gb.io.form_of(output) is None:
        raise errors.InvalidValue(errors.message(f"a file name with one of {gb.io.SUFFIXES}", repr(output)))


def fitting(A: gb.Matrix, dtype: gb.dtypes.DataType) -> gb.Matrix:
    """A matrix of another type. Raises InvalidValue for values that it has not."""
    if not np.can_cast(A.dtype.np_type, dtype.np_type, "safe"):
        one = A.ss.is_iso and A.nvals
        checks.fitting(np.array([A.ss.iso_value.value]) if one else A.to_coo(rows=False, columns=False)[2], dtype)
    return A.dup(dtype)


def write_graph(arguments: argparse.Namespace) -> int:
    check_form(arguments.output)
    kind = KINDS[arguments.kind]
    first, second = (getattr(arguments, name.replace("-", "_")) for name in kind.names)
    with Progress(quiet=arguments.quiet) as progress:
        progress.step("generating")
        dtype = "INT64" if arguments.weights else "BOOL"  # BOOL, all true, is written as a pattern
        A = kind.make(first, second, seed=arguments.seed, weights=arguments.weights, dtype=dtype)
        progress.step("writing")
        comment = (
            f"gbgpu generate {arguments.kind} {kind.names[0]}={first} {kind.names[1]}={second} seed={arguments.seed}"
        )
        store(arguments.output, A, gb.io.form_of(arguments.output) == "mtx", comment)
    say(f"{arguments.output}: {A.nrows:,} vertices, {A.nvals:,} entries")
    return 0


@dataclass
class Report:
    """What `run` tells."""

    algorithm: str
    graph: str
    devices: list[str]
    vertices: int
    entries: int
    options: dict[str, Any]  # None: of other algorithms
    load_seconds: float  # this and `seconds` are without compiling
    compile_seconds: float = 0.0  # also loading and importing kernels
    seconds: list[float] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    predicted: dict[str, Any] | None = None  # of a simulated host: the run was on CPU devices
    top: list[dict[str, Any]] | None = None
    verified: bool | None = None
    failure: str | None = None


def run_algorithm(arguments: argparse.Namespace) -> int:
    check_options(arguments)
    begin(arguments)
    with Progress(2 + arguments.repeat, arguments.quiet or bool(gb.rank())) as progress:
        told = measure(arguments, progress)
    if arguments.json:
        print(json.dumps(flat(told), default=str, allow_nan=False))
    else:
        show(told)
    if told.failure:
        say(f"gbgpu: {told.failure}")
    return 1 if told.failure else 0


def check_options(arguments: argparse.Namespace) -> None:
    """What can be refused before a long run."""
    takers = {option.name: takers for option, takers in runs.options().items()}
    takers |= {"top": runs.with_a("top"), "output": runs.with_a("result")}
    for name, algorithms in takers.items():
        if getattr(arguments, name) is not None and arguments.algorithm not in algorithms:
            arguments.refuse(f"--{name.replace('_', '-')} is for {', '.join(algorithms)}")
    if arguments.output is not None:
        results.form_of(arguments.output)
    outputs = {f"--{name}": getattr(arguments, name) for name in ("output", "trace", "plot")}
    results.check_outputs(outputs, [("GRAPH", arguments.graph)])
    if arguments.plot is not None:
        results.check_picture(arguments.plot)


def measure(arguments: argparse.Namespace, progress: Progress) -> Report:
    """Read the graph, run, verify, trace: as the arguments ask."""
    progress.step(f"reading {arguments.graph}")
    start = now()
    A = load(arguments.graph, arguments.symmetric, arguments.dup_op, arguments.limit)
    gb.synchronize()
    loading = now() - start - compiling.seconds(start)
    algorithm = runs.ALGORITHMS[arguments.algorithm]
    chosen = algorithm.choose(A, vars(arguments))
    devices = [str(device["name"]) for device in gb.device_info()]
    options = dict.fromkeys(option.name for option in runs.options()) | chosen
    told = Report(arguments.algorithm, arguments.graph, devices, A.nrows, A.nvals, options, loading)
    for k in range(arguments.repeat):
        progress.step(f"{arguments.algorithm} {k + 1}/{arguments.repeat}")
        begun = now()
        outcome, seconds = runs.timed(algorithm, A, *chosen.values())
        told.seconds.append(seconds - compiling.seconds(begun))
    told.compile_seconds = compiling.seconds(start)
    told.result = {key: plain(value) for key, value in algorithm.summary(outcome).items()}
    if arguments.verify:
        progress.step("verifying")
        try:
            algorithm.verify(A, *chosen.values(), outcome)
        except VerificationError as error:
            told.failure = str(error)
        told.verified = told.failure is None
    if arguments.output:
        progress.step("writing")
        results.write(arguments.output, algorithm.result.of(outcome), algorithm.result)
    if arguments.top:
        found = results.largest(algorithm.top.of(outcome), arguments.top)
        told.top = [{algorithm.top.id: id, algorithm.top.value: plain(value)} for id, value in found]
    host, records = gb.settings.session().simulated, None
    if arguments.trace or arguments.plot:
        records = write_trace(arguments, algorithm, A, *chosen.values())
    if host is not None:
        if records is None or arguments.rounds:  # a prediction needs the frontiers of all rounds
            with gb.trace() as records:
                algorithm.run(A, *chosen.values())
        brought = balancing.predicted(records, host, balancing.POLICIES["auto"])
        told.predicted = {"host": host.name, "seconds": brought.seconds, "without_balance": brought.alone}
    return told


def write_trace(arguments: argparse.Namespace, algorithm: runs.Algorithm, A: gb.Matrix, *chosen: Any) -> list[Any]:
    records = runs.traced_warm(lambda: algorithm.run(A, *chosen), rounds=arguments.rounds)
    if arguments.trace:
        with gb.io.atomic_file(arguments.trace) as stream:
            stream.write(json.dumps(report.chrome_trace(records)).encode())
    if arguments.plot and gb.rank() == 0:
        by = "round by round" if arguments.rounds else "statement by statement"
        title = f"{arguments.algorithm} on {os.path.basename(arguments.graph)}, traced {by}"
        report.plot(records, arguments.plot, title=title)
    return records


def flat(told: Report) -> dict[str, Any]:
    """The report for JSON: each option is a key of its own."""
    fields: dict[str, Any] = {}
    for key, value in vars(told).items():
        fields |= value if key == "options" else {key: value}
    return fields


def plain(value: Any) -> Any:
    """A number that JSON has; infinities and NaN as text."""
    value = value.item() if hasattr(value, "item") else value
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def show(told: Report) -> None:
    table = Table(show_header=False)
    table.add_row("vertices", f"{told.vertices:,}")
    table.add_row("entries", f"{told.entries:,}")
    table.add_row("devices", ", ".join(told.devices))
    for name, value in told.options.items():
        if value is not None:
            table.add_row(name.replace("_", " "), str(value))
    table.add_row("load", seconds_text([told.load_seconds]))
    table.add_row("compile", seconds_text([told.compile_seconds]))
    table.add_row("run", seconds_text(told.seconds))
    for key, value in told.result.items():
        table.add_row(key.replace("_", " "), number_text(value))
    if told.predicted is not None:
        host, seconds, alone = told.predicted.values()
        table.add_row(f"predicted, {host}", f"{seconds:.6f} s; {alone:.6f} s without stealing and folding")
    if told.verified is not None:
        table.add_row("check", "[green]verified[/]" if told.verified else f"[red]{escape(told.failure or '')}[/]")
    console = Paper()
    console.print(f"[bold]{told.algorithm}[/] on {escape(told.graph)}", highlight=False)
    console.print(table)
    if told.top:
        listed = Table(*told.top[0])
        for line in told.top:
            id, value = line.values()
            listed.add_row(str(id), number_text(value))
        console.print(listed)


def number_text(value: Any) -> str:
    return f"{value:,}" if type(value) is int else f"{value:.6g}" if type(value) is float else str(value)


def seconds_text(seconds: list[float]) -> str:
    if len(seconds) == 1:
        return f"{seconds[0]:.4f} s"
    ordered = sorted(seconds)
    return f"best {ordered[0]:.4f} s, median {ordered[len(ordered) // 2]:.4f} s, first {seconds[0]:.4f} s"


if __name__ == "__main__":
    sys.exit(main())
