"""Finds the call that makes a kernel in a Python file, without running the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from porter.core.errors import Place, PorterError
from porter.kernels.kernel import MetalParameter


@dataclass(frozen=True)
class FoundCall:
    """A call: its arguments by name, and the expressions of those that are no literals but names of functions."""

    arguments: Mapping[str, Any]
    functions: Mapping[str, ast.expr]
    module: ast.Module


def find_call(text: str, callees: Sequence[str], parameters: Sequence[str], functions: Sequence[str] = ()) -> FoundCall:
    """The one call of a function whose name ends in one of `callees`, its arguments literals or constants of the file.

    Raises PTR229 for no such call or several, PTR230 for an argument that only running the file could tell.
    """
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        what, line = (error.msg, error.lineno) if isinstance(error, SyntaxError) else (str(error), 0)
        raise PorterError("PTR229", f"the file is not Python: {what}", Place("", line or 0)) from error
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and _name(node.func) in callees]
    if len(calls) != 1:
        lines = ", ".join(str(call.lineno) for call in calls)
        found = f"{len(calls)} calls of {callees[0]} (lines {lines})" if calls else f"no call of {callees[0]}"
        raise PorterError("PTR229", f"the file has {found}", hint="Import a file that makes one kernel.")
    constants = dict(_constants(module, calls[0]))
    arguments: dict[str, Any] = {}
    named: dict[str, ast.expr] = {}
    for name, value in _given(calls[0], parameters):
        if name in functions:
            named[name] = value
        elif name in parameters:
            arguments[name] = _evaluate(value, constants, name)
        else:
            raise PorterError(
                "PTR230", f"{callees[0]} gets `{name}`, which a kernel here has not", Place("", value.lineno),
                f"Leave it out. Read are {', '.join(parameters)}.",
            )  # fmt: skip
    return FoundCall(arguments, named, module)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _given(call: ast.Call, parameters: Sequence[str]) -> Iterator[tuple[str, ast.expr]]:
    yield from zip(parameters, call.args, strict=False)
    yield from (("*", each) for each in call.args[len(parameters) :])
    yield from ((k.arg or f"**{ast.unparse(k.value)}", k.value) for k in call.keywords)


def _constants(module: ast.Module, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What names are assigned, those of the function around the call last."""
    around = [n for n in ast.walk(module) if isinstance(n, ast.FunctionDef) and call in ast.walk(n)]
    for scope in (module, *around):
        for statement in ast.walk(scope) if scope is not module else module.body:
            if isinstance(statement, ast.Assign) and statement.lineno <= call.lineno:
                yield from ((t.id, statement.value) for t in statement.targets if isinstance(t, ast.Name))


def _evaluate(value: ast.expr, constants: Mapping[str, ast.expr], name: str) -> Any:
    match value:
        case ast.Name(id=constant) if constant in constants:
            rest = {key: each for key, each in constants.items() if key != constant}
            return _evaluate(constants[constant], rest, name)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _evaluate(left, constants, name) + _evaluate(right, constants, name)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_evaluate(item, constants, name) for item in items]
        case ast.JoinedStr(values=parts):
            return "".join(str(_evaluate(part, constants, name)) for part in parts)
        case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
            return _evaluate(inner, constants, name)
        case ast.Call(func=function) if _name(function) == "MetalParameter":
            found = {
                key: _evaluate(each, constants, name) for key, each in _given(value, ("name", "dtype", "attribute"))
            }
            return MetalParameter(**found)
    try:
        return ast.literal_eval(value)
    except ValueError:
        raise PorterError(
            "PTR230", f"`{name}` is `{ast.unparse(value)[:60]}`, which only running the file could tell",
            Place("", value.lineno), f"Write `{name}` as a literal, or as a constant of the file.",
        ) from None  # fmt: skip
