"""Pages that users read: sentences that are understood at first reading, in the field's words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
WORDS = 35  # of a sentence, at most

# Private words of the engine, which say nothing to those who did not write it.
# fmt: off
PRIVATE = [
    r"thinned", r"dealt", r"dealt out", r"deal(s|ing)? (out|frontiers)", r"turning", r"brought", r"carried", r"united",
    r"blind", r"writing down", r"writes? down", r"goes by itself", r"go by themselves", r"as they see it",
    r"Solo", r"Pace", r"rented", r"first worth it", r"goes without", r"is for good", r"draw generated graphs",
    r"dealing", r"on trial", r"would have paid", r"has paid for", r"turned round", r"lent", r"settled", r"written down",
    r"(rounds?|loops?|goes|go) (round )?by (itself|themselves)", r"thin (frontiers?|rounds?)", r"thief", r"thieves",
    r"meetings? of (all|both|gpus|ranks|blocks)", r"hand(s|ed|ing)? out", r"in vain",
]
# fmt: on
private = re.compile(rf"\b({'|'.join(PRIVATE)})\b", re.IGNORECASE)
dated = re.compile(r"\b20\d\d-\d\d-\d\d\b|\bat [0-9a-f]{7}\b")


def passages(text: str) -> Iterator[str]:
    """Paragraphs, entries of lists and cells of tables, without code; inline code and links count as one word."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^:::.*", "", text, flags=re.MULTILINE)  # docstrings of the reference
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"``.+?``|`[^`]+`", "code", text)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>!]|\d+\. ))", text):
        yield from block.split("|") if block.lstrip().startswith("|") else [block]


def sentences(text: str) -> Iterator[str]:
    for passage in passages(text):
        yield from re.split(r"(?<=[.!?])[)\"*]*\s+", " ".join(passage.split()))


def words(sentence: str) -> int:
    return len(re.findall(r"\w[\w'./-]*", sentence))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_are_short(page):
    long = [sentence for sentence in sentences(page.read_text()) if words(sentence) > WORDS]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "structure"], ids=lambda page: page.name)
def test_words_are_those_of_the_field(page):
    found = [sentence for sentence in sentences(page.read_text()) if private.search(sentence)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_hold_no_dated_measurements(page):
    assert not dated.findall(page.read_text())


def test_what_counts_as_a_sentence():
    text = "One `a b c` [two](x). Three?\n\n```python\nnot. this\n```\n\n- four\n- five six\n\n| a | b c |\n|---|---|\n"
    counts = [words(sentence) for sentence in sentences(text) if words(sentence)]
    assert counts == [3, 1, 1, 2, 1, 2]


def shown(path: Path) -> Iterator[str]:
    """What users see of the engine: names and texts of steps, and what `it.how` says."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            parts = node.args if name in ("emit", "Step", "NotCompiled", "_refuse", "_say") else []
        elif isinstance(node, ast.Assign):
            names = {getattr(target, "attr", getattr(target, "id", "")) for target in node.targets}
            parts = [node.value] if names & {"text", "how", "_how", "lists", "_OTHERS"} else []
        elif isinstance(node, ast.Return) and path.parent.name == "loop":
            parts = [node.value] if node.value is not None else []
        else:
            continue
        texts = [each for part in parts for each in ast.walk(part) if isinstance(each, ast.Constant)]
        yield from (each.value for each in texts if isinstance(each.value, str))


def test_plans_and_how_are_in_words_of_the_field():
    found = [text for path in sorted((ROOT / "gbgpu" / "engine").rglob("*.py")) for text in shown(path)]
    assert "reduce_scatter" in found and "statements, as " in found and " barriers a round" in found
    words = re.compile(rf"{private.pattern}|\b(bring|meet|deal|settle|unite|recall)s?\b", re.IGNORECASE)
    assert not [text for text in found if words.search(text)]
