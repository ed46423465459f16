"""Small real graphs that every machine with Python and networkx has: how people met, and how modules, classes,
functions, words and characters depend on each other."""

from __future__ import annotations

import ast
import builtins
import encodings.aliases
import importlib.util
import mimetypes
import string
import unicodedata
from collections.abc import Callable, Iterable
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
Arcs = Iterable[tuple[object, object]]


def numbered(arcs: Arcs) -> tuple[int, list[tuple[int, int]]]:
    """(vertices, arcs without loops, none twice), vertices by the order in which arcs name them."""
    numbers: dict[object, int] = {}
    found = dict.fromkeys(tuple(numbers.setdefault(end, len(numbers)) for end in arc) for arc in arcs)
    return len(numbers), [(i, j) for i, j in found if i != j]


def both_ways(arcs: Arcs) -> Arcs:
    return [arc for i, j in arcs for arc in ((i, j), (j, i))]


def parsed(path: Path | str) -> ast.AST:
    return ast.parse(Path(path).read_text(encoding="utf-8"))


def imports(package: str) -> Arcs:
    """(module, one of the same package that it names in an import)."""
    spec = importlib.util.find_spec(package)
    folder = Path(next(iter(spec.submodule_search_locations)))
    names = {path.stem if path.stem != "__init__" else path.parent.name: path for path in folder.rglob("*.py")}
    for name, path in sorted(names.items()):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                told = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                yield from ((name, part) for text in told for part in text.split(".") if part in names)


def calls(module: str) -> Arcs:
    """(function or method, another one of the module whose name stands in it)."""
    tree = parsed(importlib.util.find_spec(module).origin)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    names = {node.name for node in found}
    for node in found:
        for inner in ast.walk(node):
            name = getattr(inner, "id", None) or getattr(inner, "attr", None)
            if name in names:
                yield node.name, name


def subclasses(kind: type) -> Arcs:
    for below in kind.__subclasses__():
        yield kind, below
        yield from subclasses(below)


def words() -> list[str]:
    text = (ROOT / "LICENSE").read_text().lower()
    return "".join(letter if letter in string.ascii_lowercase else " " for letter in text).split()


def decomposed() -> Arcs:
    """(character, what it is composed of)."""
    for letter in map(chr, range(0xC0, 0x130)):
        parts = unicodedata.decomposition(letter).split()
        yield from ((letter, chr(int(part, 16))) for part in parts if "<" not in part)


def required() -> Arcs:
    """(an installed distribution, one that it may require)."""
    names = {found.metadata["Name"].lower(): found for found in metadata.distributions() if found.metadata["Name"]}
    for name, found in names.items():
        for text in found.requires or ():
            other = text[: next((i for i, c in enumerate(text) if not (c.isalnum() or c in "-_.")), len(text))].lower()
            if other in names:
                yield name, other


def bases() -> Arcs:
    """(a class that a builtin one is made from, that one); most are exceptions."""
    return [(base, kind) for kind in vars(builtins).values() if isinstance(kind, type) for base in kind.__bases__]


REAL: dict[str, Callable[[], Arcs]] = {
    "karate club": lambda: both_ways(nx.karate_club_graph().edges),
    "southern women": lambda: both_ways(nx.davis_southern_women_graph().edges),
    "florentine families": lambda: both_ways(nx.florentine_families_graph().edges),
    "les miserables": lambda: both_ways(nx.les_miserables_graph().edges),
    **{f"imports of {name}": lambda name=name: imports(name) for name in ("json", "asyncio", "email", "xml", "algos")},
    **{f"calls in {name}": lambda name=name: calls(name) for name in ("argparse", "inspect", "heapq", "tarfile")},
    "builtin classes": bases,
    "syntax nodes": lambda: subclasses(ast.AST),
    "types of numbers": lambda: subclasses(np.generic),
    "words of the licence": lambda: pairwise(words()[:250]),
    "letters of the licence": lambda: pairwise(" ".join(words())),
    "characters": lambda: both_ways(decomposed()),
    "kinds of files": lambda: both_ways(mimetypes.types_map.items()),
    "encodings": lambda: both_ways(list(encodings.aliases.aliases.items())[:200]),
    "distributions": required,
}
