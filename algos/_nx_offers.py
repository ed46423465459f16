"""What the NetworkX backend offers: functions under the names by which NetworkX dispatches, with what it is told of
them before it converts a graph."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any

from networkx import Graph
from networkx.utils import create_py_random_state

from _gbgpu_nx_costs import noted, program, ran
from algos._nx_graph import as_it_is, convertible
from gbgpu import settings
from gbgpu.trace import counters


@dataclass(frozen=True)
class Offer:
    """`only`: parameters that may have no other value than the default. `parallel`: whether multigraphs are taken.
    `refuses`: a reason, or None, by the other arguments."""

    name: str
    run: Callable[..., Any]
    only: tuple[str, ...]
    parallel: bool
    refuses: Callable[[dict[str, Any]], str | None]
    signature: Signature

    def call(self, *arguments: Any, **keywords: Any) -> Any:
        """What NetworkX calls. The first argument is the graph, or G is."""
        if "G" in keywords:
            keywords["G"] = as_it_is(keywords["G"])
        arguments = *map(as_it_is, arguments[:1]), *arguments[1:]
        if isinstance(graph := keywords.get("G", next(iter(arguments), None)), Graph):
            return Watch(program(self.name, graph)).over(lambda: self.run(*arguments, **keywords))
        return self.run(*arguments, **keywords)

    def can(self, arguments: tuple, keywords: dict[str, Any]) -> bool | str:
        """True, or why not."""
        try:
            bound = self.signature.bind(*arguments, **keywords)
        except TypeError as error:
            return str(error)
        given = bound.arguments
        for name in self.only:
            if name in given and given[name] != self.signature.parameters[name].default:
                return f"{name} is left to NetworkX"
        graph = given.get("G")
        if "G" in given:
            if not convertible(graph):
                return f"{type(graph).__name__} is no graph that its dictionaries describe"
            if graph.is_multigraph() and not self.parallel:
                return "multigraphs are left to NetworkX"
        return self.refuses(given) or True


class Watch:
    """Notes of a call that ran that its kernels are compiled: predictions of later calls ask for it."""

    def __init__(self, program: str):
        self._program, self._before = program, counters.statements

    def over(self, call: Callable[[], Any]) -> Any:
        """call(), and what it gives; an iterator is watched to its end."""
        if self._program in ran:
            return call()
        found = call()
        if isinstance(found, Iterator):
            return self._through(found)
        self._end()
        return found

    def _through(self, found: Iterator) -> Iterator:
        yield from found
        self._end()

    def _end(self) -> None:
        if counters.statements > self._before and not settings.interpret:
            ran.add(self._program)
            settings.session().note_compiled(noted(self._program))


OFFERS: dict[str, Offer] = {}


def offer(
    *,
    only: tuple[str, ...] = (),
    parallel: bool = False,
    refuses: Callable[[dict[str, Any]], str | None] = lambda given: None,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Offer the function under its name, or another one."""

    def offered(function: Callable[..., Any]) -> Callable[..., Any]:
        named = name or function.__name__
        OFFERS[named] = Offer(named, function, only, parallel, refuses, signature(function))
        return function

    return offered


def seeded(given: dict[str, Any]) -> str | None:
    """Refuses a `seed`, which names what NetworkX would draw by it. Without one NetworkX hands over Python's own
    generator."""
    none = given.get("seed") in (None, create_py_random_state(None))
    return None if none else "what NetworkX draws by a seed is drawn by it alone"
