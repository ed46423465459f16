"""Who may import whom (DESIGN.md, section 2), read from every import in the sources, inner ones too."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent
EVERYONE = {"errors", "settings", "trace", "interrupts", "modes", "host"}  # these import nothing of ours
USER = {"unary", "binary", "monoid", "select", "indexunary", "agg", "op", "dtypes", "exceptions", "ss"}
MACHINERY = {"semiring", *USER, "device", "kernels", "distribute", "balance", "language"}

MAY_IMPORT: dict[str, set[str]] = {
    **{name: set() for name in EVERYONE},
    **{name: {"modes"} for name in ("settings", "trace")},
    "interrupts": {"trace"},  # trace tells how long compilers took
    "semiring": set(),
    **{name: {"semiring"} for name in USER},
    "device": set(),
    "kernels": {"semiring", "device"},
    "distribute": {"device"},
    "balance": set(),
    "language": {"semiring"},
    "agg": {"language"},
    "ss": {"language"},
    "op": {"semiring", "agg"},
    "configuration": {"semiring"},
    "engine": MACHINERY,
    "io": {"public"},
    "sparse": {"public"},
    "core": {"public"},
    "report": set(),
    "timing": {"device"},
    "testing": {"public"},
    # gbgpu/__init__.py puts the face together
    "public": {*MACHINERY, "configuration", "engine", "io", "sparse", "core", "report", "timing"},
    "algos": {"public"},
}
LATE = {"cupy", "cupyx", "mpi4py", "matplotlib", "networkx", "pymetis", "pyscipopt"}


def sources() -> list[Path]:
    return sorted([*ROOT.glob("gbgpu/**/*.py"), *ROOT.glob("algos/**/*.py")])


def package_of(path: Path) -> str:
    """The row of the table that a file belongs to."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "algos":
        return "algos"
    return "public" if parts[1] == "__init__" else parts[1]


def module_of(path: Path) -> list[str]:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def absolute(node: ast.ImportFrom, path: Path) -> str:
    """The module of a `from` import, relative ones resolved."""
    if not node.level:
        return node.module or ""
    package = module_of(path) if path.name == "__init__.py" else module_of(path)[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


@cache
def imports(path: Path) -> list[tuple[str, int, bool]]:
    """(module or module.name, line, inside a function) of every import."""
    return [*found_imports(path)]


def found_imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    tree = ast.parse(path.read_text(), str(path))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    inner = {id(child) for node in ast.walk(tree) if isinstance(node, functions) for child in ast.walk(node)}
    for node in ast.walk(tree):
        late = id(node) in inner
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node, path)
            yield from ((f"{module}.{alias.name}", node.lineno, late) for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in ("import_module", "__import__") and node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value), node.lineno, late


def asked_for(path: Path) -> list[str]:
    """The modules of ours that a file has `imported` when they are needed."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    named = [node.args[0].value for node in calls if isinstance(node.func, ast.Name) and node.func.id == "imported"
             and isinstance(node.args[0], ast.Constant)]
    return [name for name in named if name.startswith("gbgpu.")]


def target_of(name: str) -> str | None:
    """The row of the table that an import reaches; None for what is not ours."""
    parts = name.split(".")
    if parts[0] == "algos":
        return "algos"
    if parts[0] != "gbgpu":
        return None
    if len(parts) > 1 and parts[1] in MAY_IMPORT:
        return parts[1]
    return "public"


def is_public(target: str) -> bool:
    """What a user may name: the face, the user namespaces, handles' names, files; nothing behind them."""
    return target in {"public", "semiring", *USER, "io", "sparse", "balance", "report", "timing", "testing", *EVERYONE}


def allowed(source: str, target: str) -> bool:
    if source == target or (target in EVERYONE and source not in EVERYONE):
        return True
    if "public" in MAY_IMPORT[source] and source != "public":
        return is_public(target)
    return target in MAY_IMPORT[source]


# Files whose functions run as machine code: what reads texts, and the solver of rounds.
LANGUAGE = {"gbgpu.kernels.functions.compiled", "gbgpu.kernels.interpreted.word_of"}
COMPILED = {ROOT / "gbgpu/io/parse.py", ROOT / "gbgpu/balance/simplex.py"}


def test_every_file_has_a_place_in_the_table():
    assert sources()
    assert {package_of(path) for path in sources()} <= set(MAY_IMPORT)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_table(path):
    source = package_of(path)
    wrong = [f"{path.relative_to(ROOT)}:{line} imports {name} ({source} -> {target})"
             for name, line, _ in imports(path)
             if (target := target_of(name)) is not None and not allowed(source, target)
             and not (path in COMPILED and name in LANGUAGE)]
    assert not wrong, "\n".join(wrong)


def test_no_circle_of_files():
    """Inner imports count: a circle that they hide is one all the same."""
    modules = {".".join(module_of(path)): path for path in sources()}
    graph = nx.DiGraph()
    for name, path in modules.items():
        for target in [*(target for target, _, _ in imports(path)), *asked_for(path)]:
            while target and target not in modules:
                target = target.rpartition(".")[0]
            if target not in ("", name, "gbgpu"):  # the face is put together of all
                graph.add_edge(name, target)
    circles = [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]
    assert not circles, circles


BACKEND = {ROOT / "algos/nx.py", *ROOT.glob("algos/_nx_*.py")}  # imported by NetworkX alone
CUDA = ROOT / "gbgpu/device/cuda.py"  # imports CuPy once, and is itself imported only where GPUs are asked for


def test_the_cuda_device_is_imported_late():  # cuda_devices.py and nccl.py late, peers.py by the first
    beside = [CUDA.with_name(name) for name in ("cuda_devices.py", "peers.py", "nccl.py")]
    early = [str(path) for path in sources() for name, _, late in imports(path)
             if name.startswith("gbgpu.device.cuda") and not late and path not in beside]
    assert not early


def test_optional_packages_are_imported_late_and_in_one_place():
    places = defaultdict(set)
    for path in sources():
        for name, line, late in imports(path):
            top = name.split(".")[0]
            if top in LATE:
                known = path == CUDA or top == "networkx" and path in BACKEND
                assert late or known, f"{path}:{line} imports {name} outside a function"
                if path.is_relative_to(ROOT / "gbgpu"):
                    places["cupy" if top == "cupyx" else top].add(path.relative_to(ROOT))
    crowded = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert not crowded, f"one file each should import: {crowded}"


def test_compilers_only_where_they_belong():
    for path in sources():
        for name, line, _ in imports(path):
            where = f"{path.relative_to(ROOT)}:{line} imports {name}"
            assert name.split(".")[0] != "numba", where
            assert name.split(".")[0] != "llvmlite" or package_of(path) == "kernels", where


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout


def test_import_brings_nothing_heavy():
    heavy = "{'cupy', 'cupyx', 'numba', 'llvmlite', 'matplotlib', 'networkx', 'rich', 'scipy', 'mpi4py', 'pyscipopt'}"
    code = f"import sys, gbgpu, gbgpu.balance; print(sorted({heavy} & {{name.split('.')[0] for name in sys.modules}}))"
    assert run(code).strip() == "[]"


def test_networkx_and_its_backend_are_not_imported_with_each_other():
    """`import algos` brings no NetworkX, and what NetworkX reads of the backend when it is imported no gbgpu."""
    assert run("import sys, algos; print('networkx' in sys.modules)").strip() == "False"
    code = "import sys, _gbgpu_nx; _gbgpu_nx.get_info(); print({'gbgpu', 'algos', 'numpy'} & set(sys.modules))"
    assert run(code).strip() == "set()"


def test_import_is_small():
    """What it brings beside NumPy and itself: how long that takes is for the benchmarks."""
    code = "import sys, numpy; before = set(sys.modules); import gbgpu; print(*set(sys.modules) - before)"
    foreign = [name for name in run(code).split() if not name.startswith(("gbgpu", "numpy.random"))]
    assert len(foreign) <= 50, sorted(foreign)


def test_what_functions_import_is_there_or_comes_on_a_thread_of_its_own():
    """Ctrl-C cuts what the main thread imports: a lock of Python's may be held for ever then. `imported` imports
    elsewhere."""
    there = set(run("import sys, gbgpu; print(*sys.modules)").split())
    late = [
        (f"{path.name}:{line}", name)
        for path in sources()
        if package_of(path) != "algos"
        for name, line, inner in imports(path)
        if inner and name not in there and name.rpartition(".")[0] not in there
    ]
    assert not late, late
