"""The small language of CPU kernels, translated to LLVM's text.

The language is the part of Python that the bodies in cpu_bodies.py, cpu_mxm.py and replay.py are written in, so that
plain Python runs it too (interpreted.py): functions, assignments, `if`, `while`, `for` over `range`, numbers of NumPy's
types, and one-dimensional arrays whose indices are never negative. Each name has one type in a function, joined from
all that is assigned to it. Whole numbers smaller than 64 bits are computed with in 64, which wrap; those that the text
spells out take the type of what they meet. Signed and unsigned words do not mix, but by a conversion.
"""

import ast
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

INT, FLOAT, BOOL, UNSIGNED = "i64", "f64", "b", "u64"
LITERAL = "n"  # the type of a whole number that the text spells out
_LLVM = {"f32": "float", "f64": "double", BOOL: "i1", LITERAL: "i64"} | {
    f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)
}
_ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_BITS = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_RELATIONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_FOLDED: dict[type, Callable[[int, int], int]] = {
    **{ast.Add: lambda x, y: x + y, ast.Sub: lambda x, y: x - y, ast.Mult: lambda x, y: x * y},
    **{ast.LShift: lambda x, y: x << y, ast.RShift: lambda x, y: x >> y, ast.BitOr: lambda x, y: x | y},
    **{ast.BitAnd: lambda x, y: x & y, ast.FloorDiv: lambda x, y: x // y, ast.BitXor: lambda x, y: x ^ y},
}
# Functions of LLVM's, and those of the C library that have another name there; all others have Python's.
_INTRINSIC = {"sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint"}
_INTRINSIC |= {"copysign": "copysign"}
_C_NAMES = {"gamma": "tgamma"}
# What is computed on both sides of a choice, without a branch.
_PLAIN = (ast.Name, ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context)


class Untranslatable(Exception):
    """A text that the language does not have."""


class Value(NamedTuple):
    """A number: its type, and LLVM's text of it."""

    kind: str
    text: str

    @property
    def known(self) -> bool:
        """Whether it is a whole number that the text spells out."""
        return self.kind == LITERAL and self.text[0] != "%"


class Array(NamedTuple):
    """An array: the type of its elements, and LLVM's texts of where it begins, how many it has and the bytes from one
    to the next ("": they lie side by side)."""

    kind: str
    data: str
    size: str
    stride: str


def translated(text: str, given: Sequence[str]) -> str:
    """LLVM's text of a module whose function `run` takes arguments of these types (see entry.types_of) from words
    that have their bits, and returns an i32: 0, or 1 if memory lacks. An array is three words: its begin, its size and
    the bytes from one element to the next."""
    return _Module(text).kernel(given)


def _kind(given: str) -> str:
    named = {"int": INT, "float": FLOAT, "bool": BOOL}
    if given in named:
        return named[given]
    dtype = np.dtype(given.lstrip("CA"))
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or not dtype.isnative or dtype.str[1:] == "f2":
        raise Untranslatable(f"numbers of {dtype}")
    return BOOL if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"


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
        # whether `add` may sum in any order, and products that it sums need not be rounded first
        self.loose = self.constants.pop("LOOSE", False)

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
            kind, at = _kind(one), f"%a.{name}"
            if one[0] in "CA":
                array = Array(kind, word(at, "ptr"), word(f"{at}.size", "i64"), word(f"{at}.stride", "i64"))
                operands.append(array._replace(stride="") if one[0] == "C" else array)
            else:
                operands.append(Value(kind, word(at, _LLVM[kind])))
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
            head = f"define internal {_type(result)} @{name}({_parameters(own)}) alwaysinline nounwind"
            self._texts.append(f"{head} {{\n{body}\n}}")
        return made


def _parameters(operands: Sequence[Value | Array]) -> str:
    texts = []
    for one in operands:
        if isinstance(one, Array):
            texts.append(f"ptr {one.data}, i64 {one.size}, i64 {one.data}.stride")
        else:
            texts.append(f"{_LLVM[one.kind]} {one.text}")
    return ", ".join(texts)


def _type(kind: str) -> str:
    """LLVM's type of a result: of none, of a number, or of several ("i64 f64")."""
    types = [_LLVM[one] for one in kind.split()]
    return f"{{ {', '.join(types)} }}" if len(types) > 1 else types[0] if types else "void"


def _wide(kind: str) -> str:
    """The type in which a whole number is computed with."""
    return UNSIGNED if kind[0] == "u" else INT if kind[0] in "ib" else kind


def _met(one: str, other: str) -> str:
    """The type of what is made of numbers of two types."""
    if one == other and one[0] != "b":
        return _wide(one)
    if "f" in (one[0], other[0]):
        return "f32" if {one, other} == {"f32"} else FLOAT
    if LITERAL in (one, other):
        kind = other if one == LITERAL else one
        return UNSIGNED if kind == UNSIGNED else LITERAL if kind == LITERAL else INT
    if BOOL in (one, other):
        return _wide(other if one == BOOL else one)
    if UNSIGNED in (one, other):
        if _wide(one) != _wide(other):
            raise Untranslatable(f"{one} meets {other}: signed and unsigned words do not mix")
        return UNSIGNED
    return UNSIGNED if one[0] == other[0] == "u" else INT


def _joined(one: str, other: str) -> str:
    """The type of a name, or of a choice, that is both."""
    return one if one == other else _met(one, other)


class _Function:
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

    def __init__(self, module: _Module, node: ast.FunctionDef, given: Sequence[Any], kinds: dict, status: bool = False):
        self._module, self._node, self._kinds, self._status = module, node, kinds, status
        self._functions, self._arrays, self._given = dict(module.functions), {}, []
        self._lines: list[str] = []
        self._first: list[str] = []  # of all, at the begin
        self._held: list[str] = []  # where addresses of memory lie that is freed at the end
        self._loops: list[tuple[str, str]] = []  # labels to go on at, and behind each
        self._count = 0
        self._label = "begin"
        for argument, one in zip(node.args.args, given, strict=True):
            if isinstance(one, Array):
                self._arrays[argument.arg] = one
            else:
                self._given.append((argument.arg, one))

    def written(self) -> str:
        for name, value in self._given:
            self._assign_name(name, value)
        self._all(self._node.body)
        self._leave()
        names = [f"%v.{name} = alloca {_LLVM[kind]}" for name, kind in self._kinds.items() if name != "return"]
        return "\n".join(["begin:", *names, *self._first, *self._lines])

    # --- lines -------------------------------------------------------------------------------------------------------

    def _new(self) -> str:
        self._count += 1
        return str(self._count)

    def _let(self, text: str) -> str:
        name = f"%t{self._new()}"
        self._lines.append(f"{name} = {text}")
        return name

    def _begin(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._label = label

    def _go(self, label: str) -> None:
        self._lines.append(f"br label %{label}")

    def _labels(self, *names: str) -> list[str]:
        number = self._new()
        return [f"{name}{number}" for name in names]

    def _declare(self, text: str) -> None:
        self._module.declared.add(f"declare {text}")

    # --- types -------------------------------------------------------------------------------------------------------

    def _as(self, value: Value, kind: str) -> str:
        """LLVM's text of a value in a type."""
        have, text = value
        if have == kind:
            return text
        if value.known:
            return _constant(int(text), kind)
        if kind == BOOL:
            return self._let(f"{'fcmp une' if have[0] == 'f' else 'icmp ne'} {_LLVM[have]} {text}, {_zero(have)}")
        from_, to = _LLVM[have], _LLVM[kind]
        if from_ == to:
            return text
        if have[0] == "f" and kind[0] == "f":
            return self._let(f"{'fpext' if kind == FLOAT else 'fptrunc'} {from_} {text} to {to}")
        signed = have[0] in "in"
        if have[0] == "f":
            return self._let(f"{'fptosi' if kind[0] in 'in' else 'fptoui'} {from_} {text} to {to}")
        if kind[0] == "f":
            return self._let(f"{'sitofp' if signed else 'uitofp'} {from_} {text} to {to}")
        wider = have == BOOL or int(to[1:]) > int(from_[1:])
        return self._let(f"{('sext' if signed else 'zext') if wider else 'trunc'} {from_} {text} to {to}")

    def _to(self, value: Value, kind: str) -> Value:
        return Value(kind, self._as(value, kind))

    def _index(self, value: Value) -> str:
        return self._as(value, UNSIGNED if value.kind[0] == "u" else INT)

    # --- statements --------------------------------------------------------------------------------------------------

    def _all(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            try:
                getattr(self, f"_do_{type(node).__name__}", self._unknown)(node)
            except Untranslatable as problem:
                if not hasattr(problem, "__notes__"):  # the innermost statement
                    problem.add_note(f"in: {ast.unparse(node)}")
                raise

    def _unknown(self, node: ast.AST) -> Any:
        raise Untranslatable(ast.unparse(node))

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
        kind = self._kinds[name] = _joined(self._kinds.get(name, value.kind), value.kind)
        self._lines.append(f"store {_LLVM[kind]} {self._as(value, kind)}, ptr %v.{name}")

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

    def _looped(self, body: Sequence[ast.stmt], on: str, behind: str) -> None:
        self._loops.append((on, behind))
        self._all(body)
        self._loops.pop()
        self._go(on)
        self._begin(behind)

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
        kind = _wide(_met(first.kind, last.kind))
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
        self._assign(node.target, Value(LITERAL if kind == LITERAL else kind, now))
        self._loops.append((on, behind))
        self._all(node.body)
        self._loops.pop()
        self._go(on)
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
            kinds = [_joined(*pair) for pair in zip(known, kinds, strict=True)]
            self._kinds["return"] = " ".join(kinds)
            texts = [self._as(value, kind) for value, kind in zip(values, kinds, strict=True)]
            self._lines.append(f"ret {_type(self._kinds['return'])} {self._together(kinds, texts)}")
        else:
            self._leave()
        self._begin(self._labels("dead")[0])

    def _together(self, kinds: Sequence[str], texts: Sequence[str]) -> str:
        """Numbers as one value."""
        if len(texts) == 1:
            return texts[0]
        whole, type = "poison", _type(" ".join(kinds))
        for number, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
            whole = self._let(f"insertvalue {type} {whole}, {_LLVM[kind]} {text}, {number}")
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
        return [Value(kind, self._let(f"extractvalue {_type(value.kind)} {value.text}, {i}")) for i, kind in parts]

    def _leave(self, status: int = 0) -> None:
        """Return without a result."""
        for held in self._held:
            self._declare("void @free(ptr)")
            self._lines.append(f"call void @free(ptr {self._let(f'load ptr, ptr {held}')})")
        if self._status:
            self._lines.append(f"ret i32 {status}")
        else:  # the end of a function that has returned already is never reached
            self._lines.append("unreachable" if "return" in self._kinds else "ret void")

    # --- arrays ------------------------------------------------------------------------------------------------------

    def _made_array(self, node: ast.expr) -> Array | None:
        """np.empty(size, type): memory that is freed when the kernel ends."""
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "np.empty"):
            return None
        if not self._status:
            raise Untranslatable("memory outside the kernel")
        kind = _kind(node.args[1].attr)  # type: ignore[attr-defined]
        size = self._as(self._expression(node.args[0]), INT)
        self._declare("ptr @malloc(i64)")
        bytes = self._let(f"mul i64 {size}, {_bytes(kind)}")
        some = self._let(f"or i64 {bytes}, 1")  # memory of no bytes may be null
        data = self._let(f"call ptr @malloc(i64 {some}) nobuiltin")  # LLVM would take it for granted
        held = f"%held{self._new()}"
        self._first += [f"{held} = alloca ptr", f"store ptr null, ptr {held}"]
        failed, on = self._labels("failed", "made")
        self._lines.append(f"br i1 {self._let(f'icmp eq ptr {data}, null')}, label %{failed}, label %{on}")
        self._begin(failed)
        self._leave(1)
        self._begin(on)
        self._lines.append(f"store ptr {data}, ptr {held}")
        self._held.append(held)
        return Array(kind, data, size, "")

    def _array(self, node: ast.expr) -> Array:
        if not isinstance(node, ast.Name) or node.id not in self._arrays:
            raise Untranslatable(f"{ast.unparse(node)} is no array")
        return self._arrays[node.id]

    def _place(self, node: ast.expr) -> tuple[Array, str]:
        """An element: its array, and the address."""
        if not isinstance(node, ast.Subscript):
            return self._unknown(node)
        array, index = self._array(node.value), self._index(self._expression(node.slice))
        return array, self._address(array, index)

    def _address(self, array: Array, index: str) -> str:
        if not array.stride:
            return self._let(f"getelementptr inbounds {_element(array.kind)}, ptr {array.data}, i64 {index}")
        offset = self._let(f"mul i64 {index}, {array.stride}")
        return self._let(f"getelementptr inbounds i8, ptr {array.data}, i64 {offset}")

    def _loaded(self, array: Array, place: str) -> Value:
        value = self._let(f"load {_element(array.kind)}, ptr {place}")
        return Value(BOOL, self._let(f"icmp ne i8 {value}, 0")) if array.kind == BOOL else Value(array.kind, value)

    def _stored(self, array: Array, place: str, value: Value) -> None:
        text = self._as(value, array.kind)
        if array.kind == BOOL:
            text = self._let(f"zext i1 {text} to i8")
        self._lines.append(f"store {_element(array.kind)} {text}, ptr {place}")

    # --- expressions -------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> Value:
        value = getattr(self, f"_of_{type(node).__name__}", self._unknown)(node)
        if value is None:
            raise Untranslatable(f"{ast.unparse(node)} has no value")
        return value

    def _of_Constant(self, node: ast.Constant) -> Value:
        return _spelt(node.value)

    def _of_Name(self, node: ast.Name) -> Value:
        return self._name(node.id)

    def _name(self, name: str) -> Value:
        kind = self._kinds.get(name)
        if kind is not None:
            return Value(kind, self._let(f"load {_LLVM[kind]}, ptr %v.{name}"))
        if name not in self._module.constants:
            raise Untranslatable(f"{name} has no value as yet")
        return _spelt(self._module.constants[name])

    def _of_Attribute(self, node: ast.Attribute) -> Value:
        return _spelt({"inf": np.inf, "nan": np.nan}[node.attr])

    def _of_Subscript(self, node: ast.Subscript) -> Value:
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "math.frexp":
            return self._frexp(self._expression(node.value.args[0]))[node.slice.value]  # type: ignore[attr-defined]
        return self._loaded(*self._place(node))

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(BOOL, self._let(f"xor i1 {self._as(self._expression(node.operand), BOOL)}, true"))
        value = self._expression(node.operand)
        if not isinstance(node.op, ast.USub) and (isinstance(node.op, ast.UAdd) or value.kind[0] in "fb"):
            return self._unknown(node)  # ~ of a BOOL is another thing to Python than to NumPy
        if value.known:
            return Value(LITERAL, str(-int(value.text) if isinstance(node.op, ast.USub) else ~int(value.text)))
        if value.kind[0] == "f":
            return Value(value.kind, self._let(f"fneg {_LLVM[value.kind]} {value.text}"))
        value = self._to(value, _wide(value.kind))
        minus = isinstance(node.op, ast.USub)
        return Value(value.kind, self._let(f"sub i64 0, {value.text}" if minus else f"xor i64 {value.text}, -1"))

    def _of_BinOp(self, node: ast.BinOp) -> Value:
        return self._operation(node.op, self._expression(node.left), self._expression(node.right))

    def _operation(self, op: ast.operator, left: Value, right: Value) -> Value:
        kind = type(op)
        if left.known and right.known and kind in _FOLDED:
            return Value(LITERAL, str(_FOLDED[kind](int(left.text), int(right.text))))
        if kind in _BITS and left.kind == right.kind == BOOL:
            return Value(BOOL, self._let(f"{_BITS[kind]} i1 {left.text}, {right.text}"))
        if kind in (ast.LShift, ast.RShift):
            left = self._to(left, _wide(left.kind))
            name = "shl" if kind is ast.LShift else "lshr" if left.kind == UNSIGNED else "ashr"
            return Value(left.kind, self._let(f"{name} i64 {left.text}, {self._index(right)}"))
        met = _met(left.kind, right.kind)
        if kind is ast.Div and met[0] != "f":
            met = FLOAT
        x, y, own = self._as(left, met), self._as(right, met), _LLVM[met]
        if met[0] == "f":
            names = {**_ARITHMETIC, ast.Div: "div"}
            if kind not in names:
                raise Untranslatable(f"{ast.dump(op)} of floats")
            return Value(met, self._let(f"f{names[kind]} {self._loose(kind)}{own} {x}, {y}"))
        if kind in (ast.FloorDiv, ast.Mod):
            return Value(met, self._divided(kind is ast.Mod, met, x, y))
        return Value(met, self._let(f"{(_ARITHMETIC | _BITS)[kind]} i64 {x}, {y}"))

    def _loose(self, op: type) -> str:
        """What LLVM may do to an operation on floats. Formulas of users stay as they are: x*x - y*y is 0 for x == y."""
        if not self._module.loose:
            return ""
        return "contract reassoc " if self._node.name == "add" else "contract " if op is ast.Mult else ""

    def _divided(self, rest: bool, kind: str, x: str, y: str) -> str:
        """The quotient rounded down, or what is left of x."""
        if kind == UNSIGNED:
            return self._let(f"{'urem' if rest else 'udiv'} i64 {x}, {y}")
        left = self._let(f"srem i64 {x}, {y}")
        some, unlike = self._let(f"icmp ne i64 {left}, 0"), self._let(f"xor i64 {left}, {y}")
        moved = self._let(f"and i1 {some}, {self._let(f'icmp slt i64 {unlike}, 0')}")
        if rest:
            return self._let(f"add i64 {left}, {self._let(f'select i1 {moved}, i64 {y}, i64 0')}")
        quotient = self._let(f"sdiv i64 {x}, {y}")
        return self._let(f"sub i64 {quotient}, {self._let(f'zext i1 {moved} to i64')}")

    def _of_Compare(self, node: ast.Compare) -> Value:
        left, found = self._expression(node.left), ""
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self._expression(other)
            one = self._compared(_RELATIONS[type(op)], left, right)
            found = self._let(f"and i1 {found}, {one}") if found else one
            left = right
        return Value(BOOL, found)

    def _compared(self, relation: str, left: Value, right: Value) -> str:
        kind = BOOL if left.kind == right.kind == BOOL else _met(left.kind, right.kind)
        x, y = self._as(left, kind), self._as(right, kind)
        if kind[0] == "f":
            return self._let(f"fcmp {'une' if relation == 'ne' else 'o' + relation} {_LLVM[kind]} {x}, {y}")
        sign = "" if relation in ("eq", "ne") else "s" if kind in (INT, LITERAL) else "u"
        return self._let(f"icmp {sign}{relation} {_LLVM[kind]} {x}, {y}")

    def _of_BoolOp(self, node: ast.BoolOp) -> Value:
        yes, no, on = self._labels("yes", "no", "both")
        self._branch(node, yes, no)
        self._begin(yes)
        self._go(on)
        self._begin(no)
        self._go(on)
        self._begin(on)
        return Value(BOOL, self._let(f"phi i1 [ true, %{yes} ], [ false, %{no} ]"))

    def _branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go to one label if an expression holds, else to another one."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._branch(node.operand, no, yes)
        if isinstance(node, ast.BoolOp):
            for one in node.values[:-1]:
                (on,) = self._labels("and" if isinstance(node.op, ast.And) else "or")
                self._branch(one, *((on, no) if isinstance(node.op, ast.And) else (yes, on)))
                self._begin(on)
            return self._branch(node.values[-1], yes, no)
        test = self._as(self._expression(node), BOOL)
        self._lines.append(f"br i1 {test}, label %{yes}, label %{no}")

    def _of_IfExp(self, node: ast.IfExp) -> Value:
        if all(isinstance(part, _PLAIN) for arm in (node.body, node.orelse) for part in ast.walk(arm)):
            test = self._as(self._expression(node.test), BOOL)
            one, other = self._expression(node.body), self._expression(node.orelse)
            kind = _joined(one.kind, other.kind)
            x, y = self._as(one, kind), self._as(other, kind)
            return Value(kind, self._let(f"select i1 {test}, {_LLVM[kind]} {x}, {_LLVM[kind]} {y}, !unpredictable !0"))
        yes, no, on = self._labels("yes", "no", "either")
        self._branch(node.test, yes, no)
        self._begin(yes)
        one = self._expression(node.body)
        first, at = self._label, len(self._lines)
        self._begin(no)
        other = self._expression(node.orelse)
        kind = _joined(one.kind, other.kind)
        y, second = self._as(other, kind), self._label
        self._go(on)
        rest, self._lines = self._lines[at:], self._lines[:at]
        x = self._as(one, kind)
        self._go(on)
        self._lines += rest
        self._begin(on)
        return Value(kind, self._let(f"phi {_LLVM[kind]} [ {x}, %{first} ], [ {y}, %{second} ]"))

    # --- calls -------------------------------------------------------------------------------------------------------

    def _of_Call(self, node: ast.Call) -> Value | None:
        return self._call(node)

    def _call(self, node: ast.expr) -> Value | None:
        if not isinstance(node, ast.Call) or node.keywords:
            return self._unknown(node)
        if isinstance(node.func, ast.Attribute):
            return self._library(node, node.func.attr)
        name = node.func.id  # type: ignore[attr-defined]
        if name in self._functions:
            return self._called(self._functions[name], node)
        known = getattr(self, f"_call_{name}", None)
        return self._unknown(node) if known is None else known(*node.args)

    def _called(self, function: ast.FunctionDef, node: ast.Call) -> Value | None:
        operands = [self._operand(one) for one in node.args]
        name, result = self._module.function(function, operands)
        given = []
        for one in operands:
            if isinstance(one, Array):
                given.append(f"ptr {one.data}, i64 {one.size}, i64 {one.stride or _bytes(one.kind)}")
            else:
                given.append(f"{_LLVM[one.kind]} {one.text}")
        call = f"call {_type(result)} @{name}({', '.join(given)})"
        if result:
            return Value(result, self._let(call))
        self._lines.append(call)
        return None

    def _operand(self, node: ast.expr) -> Value | Array:
        if isinstance(node, ast.Name) and node.id in self._arrays:
            return self._arrays[node.id]
        value = self._expression(node)
        return self._to(value, INT) if value.kind == LITERAL else value

    def _library(self, node: ast.Call, name: str) -> Value:
        """A function of `np` or `math`: a conversion, or mathematics."""
        values = [self._expression(one) for one in node.args]
        kind = _CONVERSIONS.get(name)
        if kind is not None:
            return self._to(values[0], kind)
        if name == "divide":
            return self._operation(ast.Div(), *values)
        if name == "ldexp":
            kind = values[0].kind
            self._declare(f"{_LLVM[kind]} @ldexp{'f' * (kind == 'f32')}({_LLVM[kind]}, i32)")
            call = f"call {_LLVM[kind]} @ldexp{'f' * (kind == 'f32')}({_LLVM[kind]} {values[0].text}, i32 "
            return Value(kind, self._let(f"{call}{self._as(values[1], 'i32')})"))
        kind = "f32" if all(value.kind == "f32" for value in values) else FLOAT
        own = _LLVM[kind]
        if name in _INTRINSIC:
            function = f"llvm.{_INTRINSIC[name]}.{kind}"
        else:
            function = _C_NAMES.get(name, name) + "f" * (kind == "f32")
        self._declare(f"{own} @{function}({', '.join([own] * len(values))})")
        given = ", ".join(f"{own} {self._as(value, kind)}" for value in values)
        return Value(kind, self._let(f"call {own} @{function}({given})"))

    def _frexp(self, value: Value) -> tuple[Value, Value]:
        own, name = _LLVM[value.kind], "frexp" + "f" * (value.kind == "f32")
        self._declare(f"{own} @{name}({own}, ptr)")
        at = f"%exponent{self._new()}"
        self._first += [f"{at} = alloca i32", f"store i32 0, ptr {at}"]
        part = self._let(f"call {own} @{name}({own} {value.text}, ptr {at})")
        return Value(value.kind, part), Value("i32", self._let(f"load i32, ptr {at}"))

    def _call_len(self, array: ast.expr) -> Value:
        return Value(INT, self._array(array).size)

    def _call_bool(self, node: ast.expr) -> Value:
        return self._to(self._expression(node), BOOL)

    def _call_float(self, node: ast.expr) -> Value:
        return self._to(self._expression(node), FLOAT)

    def _call_int(self, node: ast.expr) -> Value:
        return self._to(self._expression(node), INT)

    def _call_abs(self, node: ast.expr) -> Value:
        value = self._expression(node)
        if value.kind[0] == "f":
            self._declare(f"{_LLVM[value.kind]} @llvm.fabs.{value.kind}({_LLVM[value.kind]})")
            call = f"call {_LLVM[value.kind]} @llvm.fabs.{value.kind}({_LLVM[value.kind]} {value.text})"
            return Value(value.kind, self._let(call))
        return self._larger(value, self._operation(ast.Sub(), Value(LITERAL, "0"), value), "gt")

    def _call_min(self, *of: ast.expr) -> Value:
        return self._extreme(of, "lt")

    def _call_max(self, *of: ast.expr) -> Value:
        return self._extreme(of, "gt")

    def _extreme(self, of: Sequence[ast.expr], relation: str) -> Value:
        found, *others = map(self._expression, of)
        for other in others:
            found = self._larger(found, other, relation)
        return found

    def _larger(self, one: Value, other: Value, relation: str) -> Value:
        kind = _met(one.kind, other.kind)
        one, other = self._to(one, kind), self._to(other, kind)
        test, own = self._compared(relation, other, one), _LLVM[kind]  # the first one of equals, as Python takes it
        return Value(kind, self._let(f"select i1 {test}, {own} {other.text}, {own} {one.text}"))

    def _call_word_of(self, number: ast.expr) -> Value:
        """The bits of a double."""
        return Value(UNSIGNED, self._let(f"bitcast double {self._as(self._expression(number), FLOAT)} to i64"))

    def _call_popcount(self, word: ast.expr) -> Value:
        return self._counted("llvm.ctpop.i64", word, "")

    def _call_lowest(self, word: ast.expr) -> Value:
        return self._counted("llvm.cttz.i64", word, ", i1 true")

    def _counted(self, function: str, word: ast.expr, more: str) -> Value:
        text = self._index(self._expression(word))
        self._declare(f"i64 @{function}(i64{', i1' if more else ''})")
        return Value(INT, self._let(f"call i64 @{function}(i64 {text}{more})"))

    def _call_fetch(self, array: ast.expr, at: ast.expr) -> None:
        """Bring array[at] near: it will be read soon. Of a place outside nothing comes, and nothing happens."""
        given = self._array(array)
        place = self._address(given, self._index(self._expression(at))).strip()
        self._lines[-1] = self._lines[-1].replace("inbounds ", "")
        self._declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self._lines.append(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")


_CONVERSIONS = {"bool_": BOOL, "intp": INT, "uintp": UNSIGNED} | {
    f"{name}{bits}": f"{name[0]}{bits}" for name, all in (("int", (8, 16, 32, 64)), ("float", (32, 64))) for bits in all
}
_CONVERSIONS |= {f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)}


def _bytes(kind: str) -> int:
    return 1 if kind == BOOL else int(kind[1:]) // 8


def _element(kind: str) -> str:
    """LLVM's type of an element of an array."""
    return "i8" if kind == BOOL else _LLVM[kind]


def _zero(kind: str) -> str:
    return "0.0" if kind[0] == "f" else "0"


def _spelt(value: Any) -> Value:
    """A number that the text spells out, or a constant of a module."""
    if isinstance(value, bool | np.bool_):
        return Value(BOOL, "true" if value else "false")
    if isinstance(value, int):
        return Value(LITERAL, str(value))
    kind = FLOAT if isinstance(value, float) and not isinstance(value, np.generic) else _kind(value.dtype.str)
    return Value(kind, _constant(value, kind))


def _constant(value: Any, kind: str) -> str:
    if kind[0] == "f":
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"
    if kind == BOOL:
        return "true" if value else "false"
    bits = 64 if kind == LITERAL else int(kind[1:])
    wrapped = int(value) & (1 << bits) - 1
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)
