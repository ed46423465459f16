"""`gbgpu replay`: recorded rounds through the balance layer's policies, on hosts that need not be here. What it tells
are predictions."""

import argparse
import json
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from rich.table import Table

from algos.progress import Paper
from algos.results import check_outputs, check_picture
from gbgpu.balance import Outcome, Policy, Summary, Topology, constant, replay, rounds, summary, topology
from gbgpu.balance.models import by_direction, shipped
from gbgpu.balance.replay import load

POLICIES: dict[str, Policy | None] = {
    "off": None,
    "steal": Policy(fold=False),
    "fold": Policy(steal=False),
    "auto": Policy(),
}
# Seconds an edge: an H200 scatters one in 40 ps, a V100 has a fifth of its bandwidth. Bytes of an edge that a link
# carries. Seconds that a device adds to a round.
EDGE, BYTES, MEETING = 200e-12, 8.0, 20e-6


def add_replay(commands: Any) -> None:
    """The command's arguments."""
    command = commands.add_parser(
        "replay", help="predict what stealing and folding save on a host, from a trace of CPU devices"
    )
    command.set_defaults(command=replay_trace)
    command.add_argument("trace", metavar="TRACE", help="a trace that gbgpu run --devices cpu:8 --trace FILE wrote")
    host = "sim:dgx1-v100, sim:dgx-h200, sim:pcie-16 or a JSON file (default: sim:dgx1-v100)"
    command.add_argument("--topology", default="sim:dgx1-v100", metavar="T", help=host)
    command.add_argument("--policy", choices=POLICIES, action="append", help="repeatable (default: all)")
    rate = command.add_mutually_exclusive_group()
    rate.add_argument("--edge-seconds", type=cost, default=EDGE, metavar="S", help=f"seconds an edge (default: {EDGE})")
    model = f"a trained model of seconds an edge: the file of train-balance, or one of {', '.join(shipped())}; "
    model += "cpu or h100 choose by the direction of a round"
    rate.add_argument("--model", metavar="FILE", help=model)
    command.add_argument("--bytes-per-edge", type=cost, default=BYTES, metavar="B", help=f"default: {BYTES:g}")
    barrier = f"seconds that the barrier of a round takes for each device (default: {MEETING})"
    command.add_argument("--barrier-seconds", type=cost, default=MEETING, metavar="S", help=barrier)
    command.add_argument("--plot", metavar="FILE", help="draw the last policy beside the rounds without balancing")
    command.add_argument("--json", action="store_true", help="print JSON on stdout, and nothing else")


def cost(text: str) -> float:
    """Seconds, or bytes: a number from 0 on."""
    number = float(text)
    if not 0 <= number < inf:
        raise argparse.ArgumentTypeError(f"{text} is no number from 0 on")
    return number


def replay_trace(arguments: argparse.Namespace) -> int:
    if arguments.plot is not None:
        check_picture(arguments.plot)
    check_outputs({"--plot": arguments.plot}, [("TRACE", arguments.trace), ("--model", arguments.model)])
    recorded, host = load(arguments.trace), topology(arguments.topology)
    given = arguments.model is not None
    model = by_direction(arguments.model) if given else constant(arguments.edge_seconds)
    names = arguments.policy or list(POLICIES)
    found = {
        name: replay(recorded, host, model, POLICIES[name], arguments.bytes_per_edge, arguments.barrier_seconds)
        for name in names
    }
    if arguments.plot:
        plot(found[names[-1]], arguments.plot, f"{arguments.trace} on {host.name}, policy {names[-1]}")
    told = {name: summary(outcomes) for name, outcomes in found.items()}
    if arguments.json:
        fields = {name: one._asdict() for name, one in told.items()}
        print(json.dumps({"topology": host.name, "rounds": len(recorded), "predicted": fields}))
    else:
        Paper().print(table(told, len(recorded), host))
    return 0


def predicted(records: Sequence[Any], host: Topology, policy: Policy | None) -> Summary:
    """What records of CPU devices would have taken on a host, by the constants above. Raises as `rounds`."""
    return summary(replay(rounds(records), host, constant(EDGE), policy, BYTES, MEETING))


def table(told: dict[str, Summary], count: int, host: Topology) -> Table:
    """A row a policy."""
    found = Table("policy", "predicted, ms", "gain", "stalled", "rounds", title=f"{count} rounds on {host.name}")
    for name, one in told.items():
        actions = ", ".join(f"{count} {action}" for action, count in one.actions.items())
        gain = f"{one.alone / one.seconds:.2f}x" if one.seconds else ""
        found.add_row(name, f"{1e3 * one.seconds:.3f}", gain, f"{one.stalled:.1%}", actions)
    return found


def plot(outcomes: Sequence[Outcome], path: str, title: str) -> None:
    """Two panels. Left: the predicted time of each device in the longest round, without balance and as decided. Right:
    the predicted time of every round, and how many devices take part (GUM, figures 8 and 9). Needs matplotlib."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter, MaxNLocator

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    bars, lines = figure.subplots(1, 2, width_ratios=(2, 3))
    longest = max(outcomes, key=lambda outcome: outcome.decision.plain)
    devices = np.arange(len(longest.home))
    action = {"leave": "no balance pays"}.get(longest.decision.action, longest.decision.action)
    bars.bar(devices - 0.2, 1e3 * longest.home, 0.4, color="#c5b08c", label="without balance")
    bars.bar(devices + 0.2, 1e3 * longest.busy, 0.4, color="#c8373f", label=f"as decided: {action}")
    bars.set(xlabel="device", ylabel="predicted time of computing (ms)", xticks=devices)
    bars.set_title(f"the longest round: {longest.decision.round}, a {longest.round.direction}", fontsize=10, loc="left")
    at = [outcome.decision.round for outcome in outcomes]
    lines.plot(at, [1e6 * outcome.decision.plain for outcome in outcomes], color="#c5b08c", label="without balance")
    lines.plot(at, [1e6 * outcome.decision.predicted for outcome in outcomes], color="#c8373f", label="as decided")
    lines.set(xlabel="round", ylabel="predicted time of a round (µs)", yscale="log")
    lines.set_title("all rounds", fontsize=10, loc="left")
    lines.xaxis.set_major_locator(MaxNLocator(integer=True))
    lines.yaxis.set_major_formatter(LogFormatter())  # 200, not 2 x 10^2
    lines.yaxis.set_minor_formatter(LogFormatter())
    count, sizes = lines.twinx(), [len(outcome.decision.devices) for outcome in outcomes]
    count.step(at, sizes, where="mid", color="#2b5c8a", linewidth=1, label="devices that take part (right)")
    count.set_ylim(0, len(devices) + 0.5)
    count.set_ylabel("devices that take part", color="#2b5c8a")
    handles = [lines.get_lines() + count.get_lines(), bars.containers]
    for axes, shown in zip((lines, bars), handles, strict=True):
        axes.legend(handles=shown, frameon=False, fontsize=9, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    for axes in (bars, lines, count):
        axes.spines["top"].set_visible(False)
    about = f"{title}\npredicted from the recorded frontiers; no kernel was timed"
    figure.suptitle(about, x=0.01, ha="left", fontsize=12, fontweight="bold", parse_math=False)
    figure.savefig(path, dpi=150)
