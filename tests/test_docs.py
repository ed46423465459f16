"""The documentation runs: the Python blocks of each file in order, in one namespace.

`expression  # -> text` must give that text as repr; a block of ```text after a block of Python is what that printed.
`...` stands for anything, as in doctest. Links to files must lead somewhere."""

from __future__ import annotations

import ast
import doctest
import io
import linecache
import re
import tomllib
from contextlib import redirect_stdout
from pathlib import Path
from types import FunctionType

import pytest
from nx_backend import register

import algos
import gbgpu as gb

ROOT = Path(__file__).resolve().parent.parent
FILES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECK = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(path: Path) -> list[tuple[str, str, int]]:
    """(language, text, line) of each fenced block."""
    text = path.read_text()
    return [(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in FENCE.finditer(text)]


def run(source: str, line: int, path: Path, space: dict) -> str:
    """What the block prints. Expressions with `# ->` are compared."""
    lines, printed, name = source.splitlines(), io.StringIO(), f"<{path.name}, the block at line {line}>"
    linecache.cache[name] = len(source), None, [text + "\n" for text in lines], name  # user operators read their source
    with redirect_stdout(printed):
        for node in ast.parse(source).body:
            if not isinstance(node, ast.Expr):
                exec(compile(ast.Module([node], []), name, "exec"), space)
                continue
            found = eval(compile(ast.Expression(node.value), name, "eval"), space)
            _, arrow, wanted = lines[node.end_lineno - 1].partition("# ->")
            if arrow:
                where = f"{path.name}:{line + node.end_lineno - 1}"
                assert CHECK.check_output(wanted.strip() + "\n", repr(found) + "\n", FLAGS), f"{where}: {found!r}"
    return printed.getvalue()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_python_blocks_run_and_print_what_is_shown(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")
    gb.init("cpu:2")
    register(monkeypatch)  # as if the project were installed
    space: dict = {}
    found = blocks(path)
    for n, (language, source, line) in enumerate(found):
        if language != "python":
            continue
        printed = run(source, line, path, space)
        if n + 1 < len(found) and found[n + 1][0] == "text":
            wanted = found[n + 1][1]
            assert CHECK.check_output(wanted, printed, FLAGS), f"{path.name}:{line} printed\n{printed}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text())))
    assert not [t for t in targets if "://" not in t and not (path.parent / t).exists()]


SOURCES = [path for folder in ("gbgpu", "algos") for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", [path for path in (*FILES, *SOURCES) if "pip install" in path.read_text()],
                         ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_told_to_install_is_this_project(path):
    """The distribution `gbgpu` of PyPI is another one; extras are those that there are."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for words in re.findall(r"pip install ([^`\n]*)", path.read_text()):
        assert not re.search(r"(?<![\w./-])gbgpu(?![\w-])", words.partition("#")[0].partition(";")[0]), words
        for named in re.findall(r"\.\[([\w,]+)\]", words):
            assert set(named.split(",")) <= set(extras), words


def test_the_reference_has_all_algorithms():
    told = set(re.findall(r"^::: (algos\.\S+)$", (ROOT / "docs/api.md").read_text(), re.MULTILINE))
    public = [thing for thing in vars(algos).values() if isinstance(thing, (FunctionType, type))]
    assert public and {f"{thing.__module__}.{thing.__qualname__}" for thing in public} <= told
