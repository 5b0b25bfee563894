"""A person's own Metal functor for a new operator, in place of the one that is translated from the expression."""

from __future__ import annotations

import re
from dataclasses import replace

from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.formatting import format_block
from porter.languages import cpp
from porter.languages.cpp_parser import parse_expression
from porter.plan.draft import Draft
from porter.plan.new_operator.schema import Schema
from porter.plan.plan import Plan

_ORIGIN = "a person's own functor"
_OPERATOR = re.compile(r"operator\(\)\s*\(([^)]*)\)\s*\{([^}]*)\}")
_NUMBER = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFhH]?")


def read_expression(schema: Schema, text: str) -> str:
    """Returns what a functor computes as an expression of the schema's arguments.

    Raises PTR319 for a functor that is more than `return` and an expression.
    """
    parameters, body = _find_operators(schema, text)[0]
    returned = re.fullmatch(r"\s*return\b([^;]*);\s*", body)
    names = dict(zip(parameters, (each.name for each in (*schema.tensors, *schema.numbers)), strict=True))
    try:
        if returned is not None:
            return _spell(parse_expression("", returned[1]), names)
    except (cpp.ParseError, KeyError):
        pass  # a construct that an expression does not have
    what = f"operator() of {schema.name}_functor is more than `return` and an expression of its parameters"
    raise PorterError("PTR319", what, hint="Say with --expr what the functor computes: the CPU computes that.")


def _spell(node: cpp.Expr, names: dict[str, str]) -> str:
    match node:
        case cpp.Name(path=path):
            return names[path]
        case cpp.Literal(text=text) if number := _NUMBER.fullmatch(text):
            return number[1]
        case cpp.Paren(value=value) | cpp.Cast(value=value):
            return f"({_spell(value, names)})"
        case cpp.Unary(op="-", value=value):
            return f"-({_spell(value, names)})"
        case cpp.Binary(op="+" | "-" | "*" | "/", left=left, right=right):
            return f"{_spell(left, names)} {node.op} {_spell(right, names)}"
        case cpp.Call(function=cpp.Name() as function, arguments=arguments):
            given = ", ".join(_spell(each, names) for each in arguments)
            return f"({given})" if function.path in ("T", "float") else f"{function.last}({given})"
    raise KeyError(type(node).__name__)


def _find_operators(schema: Schema, text: str) -> list[tuple[list[str], str]]:
    """The parameters' names and the body of each operator(). Raises PTR319 if they are not those of the schema."""
    if not re.search(rf"\bstruct\s+{schema.name}_functor\s*\{{", text):
        what = f"the functor file does not define struct {schema.name}_functor"
        raise PorterError("PTR319", what, hint="Its operator() takes the tensors, then the numbers of the schema.")
    found = [(_read_names(match[1]), match[2]) for match in _OPERATOR.finditer(text)]
    takes = len(schema.arguments)
    wrong = next((names for names, _ in found if len(names) != takes), None)
    if wrong is not None or not found:
        what = f"operator() of {schema.name}_functor takes {len(wrong or ())} values, and the schema has {takes}"
        raise PorterError("PTR319", what, hint="Give it the tensors, then the numbers of the schema.")
    return found


def _read_names(parameters: str) -> list[str]:
    return [words[-1] for part in parameters.split(",") if (words := re.findall(r"\w+", part))]


def replace_functor(draft: Draft, plan: Plan, schema: Schema, text: str) -> tuple[Draft, Plan]:
    """Puts a person's functor where the translated one is. Raises PTR319 if they do not fit."""
    _find_operators(schema, text)
    [functor] = plan.functors
    kernels = draft.fork.read(functor.file)
    start = kernels.index(functor.source.strip())
    written = format_block(draft.fork, functor.file, text.strip() + "\n")
    draft = draft.apply([Edit(functor.file, start, start + len(functor.source.strip()), written.strip())])
    origins = tuple(replace(each, source=_ORIGIN, count=1) for each in functor.origins)
    return draft, replace(plan, functors=(replace(functor, source=written, origins=origins),))
