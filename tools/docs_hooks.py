"""Pages of the site that lie outside of docs/: results of benchmarks, examples, CONTRIBUTING, CHANGELOG, LICENSE."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
LINKED = InclusionLevel.NOT_IN_NAV  # pages that others link to; the navigation names none of them
# Links to files of the repository -> where these are in the site.
MOVED = (
    (re.compile(r"\]\((?:\.\./)?bench/results/"), "](results/"),
    (re.compile(r"\]\((?:\.\./)?examples/"), "](examples/"),
    (re.compile(r"\]\((?:\.\./)?README\.md"), "](index.md"),
    (re.compile(r"\]\(docs/"), "]("),
    (re.compile(r"\]\(LICENSE\)"), "](license.md)"),
)


def on_files(files: Files, config: Any) -> Files:
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text()))
    license = "# License\n\n```text\n" + (ROOT / "LICENSE").read_text() + "```\n"
    files.append(File.generated(config, "license.md", content=license, inclusion=LINKED))
    results = sorted((ROOT / "bench" / "results").iterdir())
    for path in results:
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path), inclusion=LINKED))
    for path in sorted((ROOT / "examples").iterdir()):
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path), inclusion=LINKED))
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
