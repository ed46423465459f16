"""The small language of CPU kernels, translated to LLVM's text.

The language is the part of Python that the bodies in cpu_bodies.py, cpu_mxm.py and replay.py are written in, so that
plain Python runs it too (interpreted.py): functions, assignments, `if`, `while`, `for` over `range`, numbers of NumPy's
types, and one-dimensional arrays whose indices are never negative. Each name has one type in a function, joined from
all that is assigned to it. Whole numbers smaller than 64 bits are computed with in 64, which wrap; those that the text
spells out take the type of what they meet. Signed and unsigned words do not mix, but by a conversion.
"""

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from .llvm_expressions import Expressions
from .llvm_values import (
    LITERAL,
    LLVM,
    UNSIGNED,
    Array,
    Untranslatable,
    Value,
    common,
    joined,
    kind_of,
    type_of,
    widened,
)


def translated(text: str, given: Sequence[str]) -> str:
    """LLVM's text of a module whose function `run` takes arguments of these types (see entry.types_of) from words
    that have their bits, and returns an i32: 0, or 1 if memory lacks. An array is three words: its begin, its size and
    the bytes from one element to the next."""
    return _Module(text).kernel(given)


class _Module:
    def __init__(self, text: str) -> None:
        self.functions: dict[str, ast.FunctionDef] = {}
        self.constants: dict[str, Any] = {}
        self.declared: set[str] = set()
        self._made: dict[tuple, tuple[str, str]] = {}
        self._texts: list[str] = []
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.Assign) and getattr(node.value, "id", None) in self.functions:
                self.functions[node.targets[0].id] = self.functions[node.value.id]  # type: ignore[attr-defined]
            elif isinstance(node, ast.Assign):
                exec(compile(ast.Module([node], []), "<constants>", "exec"), {"np": np}, self.constants)  # our own text

    def kernel(self, given: Sequence[str]) -> str:
        kernel = self.functions["kernel"]
        names = [argument.arg for argument in kernel.args.args]
        if len(names) != len(given):
            raise Untranslatable(f"a kernel of {len(names)} arguments, of which {len(given)} came")
        operands: list[Value | Array] = []
        lines: list[str] = []

        def word(name: str, kind: str) -> str:
            lines.append(f"{name}.at = getelementptr i64, ptr %words, i64 {len(lines) // 2}")
            lines.append(f"{name} = load {kind}, ptr {name}.at")
            return name

        for name, one in zip(names, given, strict=True):
            kind, at = kind_of(one), f"%a.{name}"
            if one[0] in "CA":
                array = Array(kind, word(at, "ptr"), word(f"{at}.size", "i64"), word(f"{at}.stride", "i64"))
                operands.append(array._replace(stride="") if one[0] == "C" else array)
            else:
                operands.append(Value(kind, word(at, LLVM[kind])))
        body, _ = _Function.settled(self, kernel, operands, status=True)
        first = "\n".join(["define i32 @run(ptr %words) nounwind {", "begin:", *lines])
        self._texts.append(f"{first}{body.removeprefix('begin:')}\n}}")
        return "\n".join([*sorted(self.declared), *self._texts, "!0 = !{}"])

    def function(self, node: ast.FunctionDef, operands: Sequence[Value | Array]) -> tuple[str, str]:
        """(name, type of the result, "" if there is none) of a function for operands of these types."""
        kinds = tuple((type(one), one.kind, getattr(one, "stride", "") != "") for one in operands)
        made = self._made.get((id(node), kinds))
        if made is None:
            own: list[Value | Array] = []
            for argument, one in zip(node.args.args, operands, strict=True):
                at = f"%a.{argument.arg}"
                if isinstance(one, Array):
                    own.append(Array(one.kind, at, f"{at}.size", one.stride and f"{at}.stride"))
                else:
                    own.append(Value(one.kind, at))
            body, result = _Function.settled(self, node, own)
            name = f"{node.name}.{len(self._made)}"
            made = self._made[id(node), kinds] = name, result
            head = f"define internal {type_of(result)} @{name}({_parameters(own)}) alwaysinline nounwind"
            self._texts.append(f"{head} {{\n{body}\n}}")
        return made


def _parameters(operands: Sequence[Value | Array]) -> str:
    texts = []
    for one in operands:
        if isinstance(one, Array):
            texts.append(f"ptr {one.data}, i64 {one.size}, i64 {one.data}.stride")
        else:
            texts.append(f"{LLVM[one.kind]} {one.text}")
    return ", ".join(texts)


class _Function(Expressions):
    """One function, as text. It is written again until the types of its names are settled."""

    @classmethod
    def settled(cls, module: _Module, node: ast.FunctionDef, given: Sequence[Any], **how: bool) -> tuple[str, str]:
        """(the lines between its braces, the type of its result)."""
        kinds: dict[str, str] = {}
        while True:
            before, function = dict(kinds), cls(module, node, given, kinds, **how)
            text = function.written()
            if kinds == before:
                return text, kinds.get("return", "")

    def written(self) -> str:
        for name, value in self._given:
            self._assign_name(name, value)
        self._all(self._node.body)
        self._leave()
        names = [f"%v.{name} = alloca {LLVM[kind]}" for name, kind in self._kinds.items() if name != "return"]
        return "\n".join(["begin:", *names, *self._first, *self._lines])

    # --- statements --------------------------------------------------------------------------------------------------

    def _all(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            try:
                getattr(self, f"_do_{type(node).__name__}", self._unknown)(node)
            except Untranslatable as problem:
                if not hasattr(problem, "__notes__"):  # the innermost statement
                    problem.add_note(f"in: {ast.unparse(node)}")
                raise

    def _do_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._functions[node.name] = node

    def _do_Pass(self, node: ast.Pass) -> None:
        pass

    def _do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._call(node.value)

    def _do_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            for one, value in zip(target.elts, self._several(node.value), strict=True):
                self._assign(one, value)
            return
        made = self._made_array(node.value)
        if made is not None:
            self._arrays[node.targets[0].id] = made  # type: ignore[attr-defined]
            return
        value = self._expression(node.value)
        for target in node.targets:
            self._assign(target, value)

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            old = self._name(node.target.id)
            return self._assign(node.target, self._operation(node.op, old, self._expression(node.value)))
        array, place = self._place(node.target)
        made = self._operation(node.op, self._loaded(array, place), self._expression(node.value))
        self._stored(array, place, made)

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._assign_name(target.id, value)
        else:
            self._stored(*self._place(target), value)

    def _assign_name(self, name: str, value: Value) -> None:
        if name in self._arrays:
            raise Untranslatable(f"{name} is an array")
        kind = self._kinds[name] = joined(self._kinds.get(name, value.kind), value.kind)
        self._lines.append(f"store {LLVM[kind]} {self._as(value, kind)}, ptr %v.{name}")

    def _do_If(self, node: ast.If) -> None:
        yes, no, on = self._labels("yes", "no", "on")
        self._branch(node.test, yes, no if node.orelse else on)
        self._begin(yes)
        self._all(node.body)
        self._go(on)
        if node.orelse:
            self._begin(no)
            self._all(node.orelse)
            self._go(on)
        self._begin(on)

    def _do_While(self, node: ast.While) -> None:
        head, body, behind = self._labels("while", "body", "behind")
        self._go(head)
        self._begin(head)
        self._branch(node.test, body, behind)
        self._begin(body)
        self._looped(node.body, head, behind)
        self._begin(behind)

    def _looped(self, body: Sequence[ast.stmt], on: str, behind: str) -> None:
        self._loops.append((on, behind))
        self._all(body)
        self._loops.pop()
        self._go(on)

    def _do_For(self, node: ast.For) -> None:
        over = node.iter
        if not (isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range"):
            return self._unknown(node)
        given = [self._expression(one) for one in over.args]
        first, last = (given[0], given[1]) if len(given) > 1 else (Value(LITERAL, "0"), given[0])
        by = given[2] if len(given) > 2 else Value(LITERAL, "1")
        step = int(by.text) if by.known else 0
        if step < 1:  # down, or by what is known when it runs
            return self._unknown(node)
        kind = widened(common(first.kind, last.kind))
        unsigned = kind == UNSIGNED
        begin, end = self._as(first, kind), self._as(last, kind)
        head, body, on, behind = self._labels("for", "body", "next", "behind")
        at = f"%at{self._new()}"
        self._first.append(f"{at} = alloca i64")
        self._lines.append(f"store i64 {begin}, ptr {at}")
        self._go(head)
        self._begin(head)
        now = self._let(f"load i64, ptr {at}")
        goes_on = self._let(f"icmp {'ult' if unsigned else 'slt'} i64 {now}, {end}")
        self._lines.append(f"br i1 {goes_on}, label %{body}, label %{behind}")
        self._begin(body)
        self._assign(node.target, Value(kind, now))
        self._looped(node.body, on, behind)
        self._begin(on)
        following = self._let(f"add {'nuw' if unsigned else 'nsw'} i64 {now}, {step}")
        self._lines.append(f"store i64 {following}, ptr {at}")
        self._go(head)
        self._begin(behind)

    def _do_Break(self, node: ast.Break) -> None:
        self._go(self._loops[-1][1])
        self._begin(self._labels("dead")[0])

    def _do_Continue(self, node: ast.Continue) -> None:
        self._go(self._loops[-1][0])
        self._begin(self._labels("dead")[0])

    def _do_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            values = self._several(node.value)
            kinds = [value.kind for value in values]
            known = self._kinds.get("return", " ".join(kinds)).split()
            kinds = [joined(*pair) for pair in zip(known, kinds, strict=True)]
            self._kinds["return"] = " ".join(kinds)
            texts = [self._as(value, kind) for value, kind in zip(values, kinds, strict=True)]
            self._lines.append(f"ret {type_of(self._kinds['return'])} {self._together(kinds, texts)}")
        else:
            self._leave()
        self._begin(self._labels("dead")[0])

    def _together(self, kinds: Sequence[str], texts: Sequence[str]) -> str:
        """Numbers as one value."""
        if len(texts) == 1:
            return texts[0]
        whole, type = "poison", type_of(" ".join(kinds))
        for number, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
            whole = self._let(f"insertvalue {type} {whole}, {LLVM[kind]} {text}, {number}")
        return whole

    def _several(self, node: ast.expr) -> list[Value]:
        """The numbers of a tuple, or of a call that gives one; of anything else the one that it is."""
        if isinstance(node, ast.Tuple):
            return [self._expression(one) for one in node.elts]
        value = self._expression(node)
        kinds = value.kind.split()
        if len(kinds) == 1:
            return [value]
        parts = enumerate(kinds)
        return [Value(kind, self._let(f"extractvalue {type_of(value.kind)} {value.text}, {i}")) for i, kind in parts]
