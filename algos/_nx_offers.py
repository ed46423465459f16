"""What the NetworkX backend offers: functions under the names by which NetworkX dispatches, with what it is told of
them before it converts a graph."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any

from networkx.utils import create_py_random_state

from algos._nx_graph import as_it_is, convertible

# How much work NetworkX has: "pass", a look at each edge, which a conversion has too; "linear", a few operations for
# each edge; "more", many.
WORK = ("pass", "linear", "more")


@dataclass(frozen=True)
class Offer:
    """`only`: parameters that may have no other value than the default. `parallel`: whether multigraphs are taken.
    `refuses`: a reason, or None, by the other arguments."""

    run: Callable[..., Any]
    work: str
    only: tuple[str, ...]
    parallel: bool
    refuses: Callable[[dict[str, Any]], str | None]
    signature: Signature

    def call(self, *arguments: Any, **keywords: Any) -> Any:
        """What NetworkX calls. The first argument is the graph, or G is."""
        if "G" in keywords:
            keywords["G"] = as_it_is(keywords["G"])
        return self.run(*map(as_it_is, arguments[:1]), *arguments[1:], **keywords)

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


OFFERS: dict[str, Offer] = {}


def offer(
    work: str = "linear",
    *,
    only: tuple[str, ...] = (),
    parallel: bool = False,
    refuses: Callable[[dict[str, Any]], str | None] = lambda given: None,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Offer the function under its name, or another one."""
    assert work in WORK

    def offered(function: Callable[..., Any]) -> Callable[..., Any]:
        OFFERS[name or function.__name__] = Offer(function, work, only, parallel, refuses, signature(function))
        return function

    return offered


def seeded(given: dict[str, Any]) -> str | None:
    """Refuses a `seed`, which names what NetworkX would draw by it. Without one NetworkX hands over Python's own
    generator."""
    none = given.get("seed") in (None, create_py_random_state(None))
    return None if none else "what NetworkX draws by a seed is drawn by it alone"
