"""What `repr` and notebooks show: a line of facts, and the values of small objects as a table."""

from html import escape
from typing import Any

import numpy as np

_ENTRIES = 400  # objects with more are not read for their values
_EDGE = 8  # rows and columns shown at either end
_HOW = "\nDo expr.new() or other << expr to calculate the expression."


def facts(x: Any) -> tuple[str, list[str], list[str]]:
    """(kind, names of facts, facts) of a handle or a transpose."""
    kind = "gb." + type(x).__name__
    if x.ndim == 0:
        return kind, ["value", "dtype"], [str(x.value), x.dtype.name]
    if x.ndim == 1:
        return kind, ["nvals", "size", "dtype"], [str(x.nvals), str(x.size), x.dtype.name]
    return kind, ["nvals", "nrows", "ncols", "dtype"], [str(x.nvals), str(x.nrows), str(x.ncols), x.dtype.name]


def unreadable(session: Any, x: Any = None) -> str:
    """Why an object of the session has no values to show; nothing if it has."""
    if session.planned(getattr(x, "matrix", x)):
        return "of a statement that gb.explain() planned and did not run"
    if not session.alive:
        return "of a session that has ended: make it again"
    return "in a loop that is being recorded" if session.recording else ""


def _session_of(expr: Any) -> Any:
    """The session of an expression, also of one that means nothing yet, as `x | y` without an operator."""
    try:
        return expr._node()._session
    except TypeError:
        return next(_session_of(side) for side in (expr.left, expr.right) if hasattr(side, "_node"))


def handle(x: Any) -> str:
    """The facts, then the values of a small object."""
    why = unreadable(x._session, x)
    if why:
        return f"{x.name}: gb.{type(x).__name__} of {x.dtype}, shape {x.shape}, {why}"
    kind, names, values = facts(x)
    text = _aligned([[f'"{x.name}"', *names], [kind, *values]])
    grid = table(x)
    if not grid:
        return text
    return "\n".join([text, "-" * max(map(len, text.split("\n"))), _aligned(grid)])


def handle_html(x: Any) -> str:
    """The same as HTML tables."""
    if unreadable(x._session, x):
        return f"<p>{escape(handle(x))}</p>"
    kind, names, values = facts(x)
    rows = [[kind, *names], [x.name, *values]]
    return f"<div><details open><summary>{_html_table(rows)}</summary>{_html_table(table(x))}</details></div>"


def table(x: Any) -> list[list[str]]:
    """Header and rows of an object's values; nothing for scalars, empty shapes and objects with many entries."""
    if x.ndim == 0 or 0 in x.shape or x.nvals > _ENTRIES:
        return []
    if x.ndim == 1:
        ids, vals = x.to_coo()
        rows, where, shape = np.zeros(len(ids), int), ids, (1, x.size)
    else:
        rows, where, vals = x.to_coo()
        shape = x.shape
    lines, columns = _shown(shape[0]), _shown(shape[1])
    held = {(i, j): v for i, j, v in zip(rows.tolist(), where.tolist(), vals.tolist(), strict=True)}
    header = ["index" if x.ndim == 1 else "", *(_name(j) for j in columns)]
    body = [[_label(x, i), *(_cell(held, i, j) for j in columns)] for i in lines]
    return [header, *body]


def _shown(n: int) -> list[int | None]:
    """Positions that are shown; None for those left out."""
    if n <= 2 * _EDGE:
        return list(range(n))
    return [*range(_EDGE), None, *range(n - _EDGE, n)]


def _name(j: int | None) -> str:
    return "..." if j is None else str(j)


def _label(x: Any, i: int | None) -> str:
    return "value" if x.ndim == 1 else _name(i)


def _cell(held: dict, i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return "..."
    value = held.get((i, j))
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _aligned(rows: list[list[str]]) -> str:
    """Columns of text: the first to the left, the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _html_table(rows: list[list[str]]) -> str:
    lines = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>" if rows else ""


def _described(expr: Any) -> list[tuple[str, str]]:
    kind = ("gb.ScalarExpression", "gb.VectorExpression", "gb.MatrixExpression")[len(expr.shape)]
    found = [("expression", kind)]
    if len(expr.shape) == 1:
        found.append(("size", str(expr.shape[0])))
    if len(expr.shape) == 2:
        found += [("nrows", str(expr.shape[0])), ("ncols", str(expr.shape[1]))]
    return [*found, ("dtype", _dtype(expr))]


def _dtype(expr: Any) -> str:
    try:
        return expr.dtype.name
    except (TypeError, KeyError):
        return "(needs an operator)"


def expression(expr: Any, small: bool) -> str:
    """The expression, its shape and type; its result if that is small; and how to compute it."""
    why = unreadable(_session_of(expr))
    if why:
        return f"{expr.text}, {why}"
    described = _described(expr)
    head = _aligned([[name for name, _ in described], [value for _, value in described]])
    parts = [expr.text, head]
    if small and described[-1][1] != "(needs an operator)":
        parts.append(handle(expr._computed()))
    return "\n".join(parts) + "\n" + _HOW


def expression_html(expr: Any, small: bool) -> str:
    """The same for notebooks."""
    why = unreadable(_session_of(expr))
    if why:
        return f"<p>{escape(f'{expr.text}, {why}')}</p>"
    described = _described(expr)
    head = _html_table([[name for name, _ in described], [value for _, value in described]])
    computable = small and described[-1][1] != "(needs an operator)"
    result = handle_html(expr._computed()) if computable else ""
    return f"<div><b>{escape(expr.text)}</b>{head}{result}<em>{escape(_HOW.strip())}</em></div>"
