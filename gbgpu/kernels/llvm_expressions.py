"""Expressions of the language of llvm.py, as lines of LLVM's text."""

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .llvm_values import (
    BOOL,
    CONVERSIONS,
    FLOAT,
    INT,
    LITERAL,
    LLVM,
    UNSIGNED,
    Array,
    Untranslatable,
    Value,
    bytes_of,
    common,
    constant,
    joined,
    kind_of,
    spelt,
    stored_as,
    type_of,
    widened,
    zero_of,
)

_ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_BITS = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_RELATIONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_FOLDED: dict[type, Callable[[int, int], int]] = {
    **{ast.Add: lambda x, y: x + y, ast.Sub: lambda x, y: x - y, ast.Mult: lambda x, y: x * y},
    **{ast.LShift: lambda x, y: x << y, ast.RShift: lambda x, y: x >> y, ast.BitOr: lambda x, y: x | y},
    **{ast.BitAnd: lambda x, y: x & y, ast.FloorDiv: lambda x, y: x // y, ast.BitXor: lambda x, y: x ^ y},
}
# Functions of LLVM's, and those of the C library that have another name there; all others have Python's.
_INTRINSIC = {"sqrt", "fabs", "floor", "ceil", "trunc", "rint", "copysign"}
_C_NAMES = {"gamma": "tgamma"}
# What is computed on both sides of a choice, without a branch.
_PLAIN = (ast.Name, ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context)


class Expressions:
    """The lines of a function. A subclass has its statements."""

    def __init__(self, module: Any, node: ast.FunctionDef, given: Sequence[Any], kinds: dict, status: bool = False):
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
            return constant(int(text), kind)
        if kind == BOOL:
            return self._let(f"{'fcmp une' if have[0] == 'f' else 'icmp ne'} {LLVM[have]} {text}, {zero_of(have)}")
        from_, to = LLVM[have], LLVM[kind]
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

    def _unknown(self, node: ast.AST) -> Any:
        raise Untranslatable(ast.unparse(node))

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
        kind = kind_of(node.args[1].attr)  # type: ignore[attr-defined]
        size = self._as(self._expression(node.args[0]), INT)
        self._declare("ptr @malloc(i64)")
        bytes = self._let(f"mul i64 {size}, {bytes_of(kind)}")
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
        array = self._array(node.value)
        return array, self._address(array, node.slice)

    def _address(self, array: Array, at: ast.expr, inside: str = "inbounds ") -> str:
        index = self._index(self._expression(at))
        if not array.stride:
            return self._let(f"getelementptr {inside}{stored_as(array.kind)}, ptr {array.data}, i64 {index}")
        offset = self._let(f"mul i64 {index}, {array.stride}")
        return self._let(f"getelementptr {inside}i8, ptr {array.data}, i64 {offset}")

    def _loaded(self, array: Array, place: str) -> Value:
        value = self._let(f"load {stored_as(array.kind)}, ptr {place}")
        return Value(BOOL, self._let(f"icmp ne i8 {value}, 0")) if array.kind == BOOL else Value(array.kind, value)

    def _stored(self, array: Array, place: str, value: Value) -> None:
        text = self._as(value, array.kind)
        if array.kind == BOOL:
            text = self._let(f"zext i1 {text} to i8")
        self._lines.append(f"store {stored_as(array.kind)} {text}, ptr {place}")

    # --- expressions -------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> Value:
        value = getattr(self, f"_of_{type(node).__name__}", self._unknown)(node)
        if value is None:
            raise Untranslatable(f"{ast.unparse(node)} has no value")
        return value

    def _of_Constant(self, node: ast.Constant) -> Value:
        return spelt(node.value)

    def _of_Name(self, node: ast.Name) -> Value:
        return self._name(node.id)

    def _name(self, name: str) -> Value:
        kind = self._kinds.get(name)
        if kind is not None:
            return Value(kind, self._let(f"load {LLVM[kind]}, ptr %v.{name}"))
        if name not in self._module.constants:
            raise Untranslatable(f"{name} has no value as yet")
        return spelt(self._module.constants[name])

    def _of_Attribute(self, node: ast.Attribute) -> Value:
        return spelt({"inf": np.inf, "nan": np.nan}[node.attr])

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
            return Value(value.kind, self._let(f"fneg {LLVM[value.kind]} {value.text}"))
        value = self._to(value, widened(value.kind))
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
            left = self._to(left, widened(left.kind))
            name = "shl" if kind is ast.LShift else "lshr" if left.kind == UNSIGNED else "ashr"
            return Value(left.kind, self._let(f"{name} i64 {left.text}, {self._index(right)}"))
        met = common(left.kind, right.kind)
        if kind is ast.Div and met[0] != "f":
            met = FLOAT
        x, y, own = self._as(left, met), self._as(right, met), LLVM[met]
        if met[0] == "f":
            names = {**_ARITHMETIC, ast.Div: "div"}
            if kind not in names:
                raise Untranslatable(f"{ast.dump(op)} of floats")
            return Value(met, self._let(f"f{names[kind]} {own} {x}, {y}"))
        if kind in (ast.FloorDiv, ast.Mod):
            return Value(met, self._divided(kind is ast.Mod, met, x, y))
        return Value(met, self._let(f"{(_ARITHMETIC | _BITS)[kind]} i64 {x}, {y}"))

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
        kind = BOOL if left.kind == right.kind == BOOL else common(left.kind, right.kind)
        x, y = self._as(left, kind), self._as(right, kind)
        if kind[0] == "f":
            return self._let(f"fcmp {'une' if relation == 'ne' else 'o' + relation} {LLVM[kind]} {x}, {y}")
        sign = "" if relation in ("eq", "ne") else "s" if kind in (INT, LITERAL) else "u"
        return self._let(f"icmp {sign}{relation} {LLVM[kind]} {x}, {y}")

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
            kind = joined(one.kind, other.kind)
            x, y = self._as(one, kind), self._as(other, kind)
            return Value(kind, self._let(f"select i1 {test}, {LLVM[kind]} {x}, {LLVM[kind]} {y}, !unpredictable !0"))
        yes, no, on = self._labels("yes", "no", "either")
        self._branch(node.test, yes, no)
        self._begin(yes)
        one = self._expression(node.body)
        first, at = self._label, len(self._lines)
        self._begin(no)
        other = self._expression(node.orelse)
        kind = joined(one.kind, other.kind)
        y, second = self._as(other, kind), self._label
        self._go(on)
        rest, self._lines = self._lines[at:], self._lines[:at]
        x = self._as(one, kind)
        self._go(on)
        self._lines += rest
        self._begin(on)
        return Value(kind, self._let(f"phi {LLVM[kind]} [ {x}, %{first} ], [ {y}, %{second} ]"))

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
                given.append(f"ptr {one.data}, i64 {one.size}, i64 {one.stride or bytes_of(one.kind)}")
            else:
                given.append(f"{LLVM[one.kind]} {one.text}")
        call = f"call {type_of(result)} @{name}({', '.join(given)})"
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
        kind = CONVERSIONS.get(name)
        if kind is not None:
            return self._to(values[0], kind)
        if name == "divide":
            return self._operation(ast.Div(), *values)
        if name == "ldexp":
            return self._mathematics(name, values[0].kind, [values[0], self._to(values[1], "i32")])
        kind = "f32" if all(value.kind == "f32" for value in values) else FLOAT
        return self._mathematics(name, kind, [self._to(value, kind) for value in values])

    def _mathematics(self, name: str, kind: str, values: Sequence[Value]) -> Value:
        """A function of `math` of LLVM's or of the C library, which gives a number of a type."""
        function = f"llvm.{name}.{kind}" if name in _INTRINSIC else _C_NAMES.get(name, name) + "f" * (kind == "f32")
        self._declare(f"{LLVM[kind]} @{function}({', '.join(LLVM[value.kind] for value in values)})")
        given = ", ".join(f"{LLVM[value.kind]} {value.text}" for value in values)
        return Value(kind, self._let(f"call {LLVM[kind]} @{function}({given})"))

    def _frexp(self, value: Value) -> tuple[Value, Value]:
        own, name = LLVM[value.kind], "frexp" + "f" * (value.kind == "f32")
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
            return self._mathematics("fabs", value.kind, [value])
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
        kind = common(one.kind, other.kind)
        one, other = self._to(one, kind), self._to(other, kind)
        test, own = self._compared(relation, other, one), LLVM[kind]  # the first one of equals, as Python takes it
        return Value(kind, self._let(f"select i1 {test}, {own} {other.text}, {own} {one.text}"))

    def _call_word_of(self, number: ast.expr) -> Value:
        """The bits of a double."""
        return Value(UNSIGNED, self._let(f"bitcast double {self._as(self._expression(number), FLOAT)} to i64"))

    def _call_popcount(self, word: ast.expr) -> Value:
        return self._counted("llvm.ctpop.i64", word, "")

    def _call_lowest(self, word: ast.expr) -> Value:
        return self._counted("llvm.cttz.i64", word, ", i1 true")

    def _call_digits(self, word: ast.expr) -> Value:
        """Binary digits of a word, 0 of 0."""
        leading = self._counted("llvm.ctlz.i64", word, ", i1 false")
        return Value(INT, self._let(f"sub i64 64, {leading.text}"))

    def _counted(self, function: str, word: ast.expr, more: str) -> Value:
        text = self._index(self._expression(word))
        self._declare(f"i64 @{function}(i64{', i1' if more else ''})")
        return Value(INT, self._let(f"call i64 @{function}(i64 {text}{more})"))

    def _call_fetch(self, array: ast.expr, at: ast.expr) -> None:
        """Bring array[at] near: it will be read soon. Of a place outside nothing comes, and nothing happens."""
        place = self._address(self._array(array), at, inside="")
        self._declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self._lines.append(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")
