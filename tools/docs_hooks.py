"""Files of the site from outside of docs/: results of benchmarks, examples, CONTRIBUTING.md, CHANGELOG.md, LICENSE."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
# Links to files of the repository -> where these are in the site.
MOVED = (
    (re.compile(r"\]\((?:\.\./)?bench/results/"), "](results/"),
    (re.compile(r"\]\((?:\.\./)?examples/"), "](examples/"),
    (re.compile(r"\]\((?:\.\./)?README\.md"), "](index.md"),
    (re.compile(r"\]\(docs/"), "]("),
)


def on_files(files: Files, config: Any) -> Files:
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "LICENSE", abs_src_path=str(ROOT / "LICENSE")))
    results = sorted((ROOT / "bench" / "results").iterdir())
    for path in results:
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    for path in sorted((ROOT / "examples").iterdir()):
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, "results/index.md", content=_index(results)))
    return files


def _index(results: list[Path]) -> str:
    """A list of the pages of results, each with the command that made it."""
    lines = ["# Results", "", "Each page names the command, the machine and the commit that gave its figures.", ""]
    for path in results:
        if path.suffix == ".md":
            command = re.search(r"`(python -m [^`]+)`", path.read_text())
            lines.append(f"- [{path.stem}]({path.name})" + (f": `{command[1]}`" if command else ""))
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Any, **others: Any) -> str:
    if not page.file.src_uri.startswith(("results/", "examples/")):
        for pattern, place in MOVED:
            markdown = pattern.sub(place, markdown)
    return markdown
