"""Finds the call that makes a kernel in a Python file, without running the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from porter.core.errors import Place, PorterError
from porter.core.files import LARGEST
from porter.kernels.kernel import MetalParameter

_MOST_STEPS = 4_000  # expressions that an argument is read from
_OF_PARAMETERS = ("name", "dtype", "attribute")
_SHOWN = 5  # lines in a message


@dataclass(frozen=True)
class FoundCall:
    """A call: its arguments by name, and the expressions of those that are no literals but names of functions."""

    arguments: Mapping[str, Any]
    functions: Mapping[str, ast.expr]
    module: ast.Module


def find_call(
    text: str,
    callees: Sequence[str],
    parameters: Sequence[str],
    functions: Sequence[str] = (),
    required: Sequence[str] = (),
) -> FoundCall:
    """The one call of a function whose name ends in one of `callees`, its arguments literals or constants of the file.

    Raises PTR229 for no such call or several, or one without what is `required`, PTR230 for an argument that only
    running the file could tell.
    """
    try:
        module = ast.parse(text)
        call = _find_one(module, callees)
        constants = dict(_constants(module, call))
        arguments: dict[str, Any] = {}
        named: dict[str, ast.expr] = {}
        for name, value in _given(call, parameters):
            if name in functions:
                named[name] = value
            elif name in parameters:
                arguments[name] = _Argument(name, constants).read(value)
            else:
                raise PorterError(
                    "PTR230", f"{callees[0]} gets `{name}`, which a kernel here has not", Place("", value.lineno),
                    f"Leave it out. Read are {', '.join(parameters)}.",
                )  # fmt: skip
    except (SyntaxError, ValueError) as error:
        what, line = (error.msg, error.lineno) if isinstance(error, SyntaxError) else (str(error), 0)
        raise PorterError("PTR229", f"the file is not Python: {what}", Place("", line or 0)) from error
    except (RecursionError, MemoryError) as error:  # Python's parser says either of what nests too deep
        hint = "Write each argument as one literal."
        raise PorterError("PTR229", "the file nests too deep to be read", hint=hint) from error
    if missing := [name for name in required if name not in arguments]:
        what = f"the call of {callees[0]} has no {', '.join(missing)}"
        raise PorterError("PTR229", what, Place("", call.lineno), "Import a file that makes one kernel.")
    return FoundCall(arguments, named, module)


def _find_one(module: ast.Module, callees: Sequence[str]) -> ast.Call:
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and _name(node.func) in callees]
    if len(calls) != 1:
        lines = ", ".join(str(call.lineno) for call in calls[:_SHOWN]) + (", ..." if calls[_SHOWN:] else "")
        found = f"{len(calls)} calls of {callees[0]} (lines {lines})" if calls else f"no call of {callees[0]}"
        raise PorterError("PTR229", f"the file has {found}", hint="Import a file that makes one kernel.")
    return calls[0]


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


class _Argument:
    """Reads one argument, of a bounded size: a constant may be made of others, and so stand for any amount of text."""

    def __init__(self, name: str, constants: Mapping[str, ast.expr]) -> None:
        self.name, self._constants, self._steps = name, constants, 0

    def read(self, value: ast.expr) -> Any:
        """The value of an expression. Raises PTR230 for one that only running the file could tell."""
        return self._evaluate(value, frozenset())

    def _evaluate(self, value: ast.expr, inside: frozenset[str]) -> Any:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise self._refuse(value, f"is made of more than {_MOST_STEPS} parts")
        match value:
            case ast.Name(id=constant) if constant in self._constants and constant not in inside:
                return self._evaluate(self._constants[constant], inside | {constant})
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self._evaluate(left, inside), self._evaluate(right, inside)
                if isinstance(first, str) and isinstance(second, str):
                    return self._check_size(value, first + second)
                if isinstance(first, list) and isinstance(second, list):
                    return self._check_size(value, [*first, *second])
                raise self._refuse(value, "adds what are neither texts nor lists")
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._evaluate(item, inside) for item in items]
            case ast.JoinedStr(values=parts):
                return self._check_size(value, "".join(str(self._evaluate(part, inside)) for part in parts))
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self._evaluate(inner, inside)
            case ast.Call(func=function) if _name(function) == "MetalParameter":
                found = {key: self._evaluate(each, inside) for key, each in _given(value, _OF_PARAMETERS)}
                if found.keys() != set(_OF_PARAMETERS):
                    raise self._refuse(value, f"has a MetalParameter of other than {', '.join(_OF_PARAMETERS)}")
                return MetalParameter(**found)
        try:
            # Half of a surrogate pair can be written in Python, but in no file.
            literal = ast.literal_eval(value)
            if isinstance(literal, str) and any("\ud800" <= character <= "\udfff" for character in literal):
                raise self._refuse(value, "has half of a surrogate pair, which no file can hold")
            return literal
        except (ValueError, TypeError, SyntaxError):
            what = f"is `{ast.unparse(value)[:60]}`, which only running the file could tell"
            raise self._refuse(value, what) from None

    def _check_size(self, value: ast.expr, made: str | list[Any]) -> str | list[Any]:
        if len(made) > LARGEST:
            raise self._refuse(value, f"is longer than {LARGEST // 1024} KiB")
        return made

    def _refuse(self, value: ast.expr, what: str) -> PorterError:
        hint = f"Write `{self.name}` as a literal, or as a constant of the file."
        return PorterError("PTR230", f"`{self.name}` {what}", Place("", value.lineno), hint)
