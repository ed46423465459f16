"""Small functions of a generated module put in place of their calls, as it is compiled or interpreted: numba compiles
each function apart, and one that is left costs more time than the kernel that calls it."""

import ast
from collections import Counter
from copy import deepcopy
from functools import lru_cache


@lru_cache(maxsize=1024)  # each session asks for the texts of its kernels
def inlined(text: str) -> str:
    """The module with calls of its one-line functions replaced, where no argument but a plain name is read twice; and
    without the functions that nothing calls any more."""
    tree = ast.parse(text)
    inliner = _Inliner()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            inliner.visit(node)
            inliner.learn(node)
    called = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef) or _stays(node, called)]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _stays(node: ast.FunctionDef, called: Counter) -> bool:
    return node.name == "kernel" or called[node.name] > 0


class _Inliner(ast.NodeTransformer):
    def __init__(self) -> None:
        self.known: dict[str, tuple[list[str], ast.expr | ast.stmt, Counter]] = {}

    def learn(self, node: ast.FunctionDef) -> None:
        """Remember a function whose body is one expression or one assignment."""
        if len(node.body) != 1:
            return
        body = node.body[0]
        found = body.value if isinstance(body, ast.Return) else body if isinstance(body, ast.Assign) else None
        if found is not None:
            reads = Counter(n.id for n in ast.walk(found) if isinstance(n, ast.Name))
            self.known[node.name] = [a.arg for a in node.args.args], found, reads

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return self._put(node, ast.expr) or node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        return (self._put(node.value, ast.stmt) if isinstance(node.value, ast.Call) else None) or node

    def _put(self, call: ast.Call, kind: type) -> ast.AST | None:
        if not isinstance(call.func, ast.Name) or call.func.id not in self.known:
            return None
        params, body, reads = self.known[call.func.id]
        if not isinstance(body, kind) or call.keywords or len(call.args) != len(params):
            return None
        given = dict(zip(params, call.args, strict=True))
        if any(reads[p] > 1 and not isinstance(a, ast.Name | ast.Constant) for p, a in given.items()):
            return None
        return _Substitute(given).visit(deepcopy(body))


class _Substitute(ast.NodeTransformer):
    def __init__(self, given: dict[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return deepcopy(self.given[node.id]) if node.id in self.given else node
