"""Translates the body of a scalar function to Metal statements: locals, branches, loops and returns."""

from __future__ import annotations

import re
from collections.abc import Collection, Set

from porter.aten.branches import show
from porter.core.dtypes import Kind
from porter.cpu.translator import ARRAY, Translator, TypedText
from porter.languages import cpp
from porter.languages.brackets import strip_parentheses
from porter.languages.identifiers import contains_identifier, list_words

CHECKS = frozenset(("TORCH_CHECK",))
_STEPS = frozenset(("++", "--"))


def translate_body(translator: Translator, body: cpp.Block, returns: str) -> tuple[list[str], str]:
    """Returns the statements of a scalar function, and its return type, deduced from the first return if not given."""
    results: list[str] = [returns] if returns else []
    lines = _block(translator, body, results)
    return lines, results[0] if results else "T"


def _block(translator: Translator, body: cpp.Stmt, results: list[str]) -> list[str]:
    lines: list[str] = []
    for statement in body.statements if isinstance(body, cpp.Block) else (body,):
        lines += _statement(translator, statement, results)
        if isinstance(statement, cpp.Return):
            break
    return lines


def _statement(translator: Translator, statement: cpp.Stmt, results: list[str]) -> list[str]:
    if isinstance(statement, cpp.Block):
        return _block(translator, statement, results)
    if isinstance(statement, cpp.Using):
        translator.aliases[statement.name] = translator.type(statement.type, statement.start)
        return []
    if isinstance(statement, cpp.Declaration):
        return translate_declaration(translator, statement)
    if isinstance(statement, cpp.Return) and statement.value is not None:
        return [_return(translator, statement.value, results)]
    if isinstance(statement, cpp.If):
        test = translator.test(statement.test)
        otherwise = statement.otherwise or cpp.Block(())
        if test in ("true", "false"):
            return _block(translator, statement.then if test == "true" else otherwise, results)
        return write_branch(test, _block(translator, statement.then, results), _block(translator, otherwise, results))
    if isinstance(statement, cpp.While):
        inner = _block(translator, statement.body, results)
        return [f"while ({translator.test(statement.test)}) {{", *(f"  {line}" for line in inner), "}"]
    if isinstance(statement, cpp.For):
        return _for(translator, statement, results)
    if isinstance(statement, cpp.ArrayDeclaration):
        # Translates an array of constants, whose size is that of its values
        kind = translator.type(statement.type, statement.start)
        values = [translator.cast(kind, translator.expression(value)).text for value in statement.values]
        translator.names[statement.name] = TypedText(statement.name, f"{kind}{ARRAY}")
        size = "" if statement.size is None else translator.expression(statement.size).text
        plain = [value.removeprefix(f"static_cast<{kind}>(").removesuffix(")") for value in values]
        return [f"constexpr {kind} {statement.name}[{size}] = {{", *(f"  {value}," for value in plain), "};"]
    if isinstance(statement, cpp.ExpressionStatement):
        return _expression_statement(translator, statement)
    raise translator.refuse(f"'{quote_statement(statement)}'", statement.start)


def _for(translator: Translator, statement: cpp.For, results: list[str]) -> list[str]:
    initial = " ".join(_block(translator, statement.initial, results)) or ";"
    test = translator.test(statement.test)
    [step] = _expression_statement(translator, statement.step)
    inner = _block(translator, statement.body, results)
    return [f"for ({initial} {test}; {step.removesuffix(';')}) {{", *(f"  {line}" for line in inner), "}"]


def _expression_statement(translator: Translator, statement: cpp.ExpressionStatement) -> list[str]:
    value = statement.value
    if isinstance(value, cpp.Binary):
        return translate_assignment(translator, value)
    if isinstance(value, cpp.Unary | cpp.Postfix) and value.op in _STEPS:
        return [f"{translator.expression(value.value).text}{value.op};"]
    if isinstance(value, cpp.Call) and isinstance(value.function, cpp.Name) and value.function.last in CHECKS:
        translator.checks.append(translator.test(value.arguments[0]))
        return []
    raise translator.refuse(f"'{show(value)[:60]}'", statement.start)


def _return(translator: Translator, value: cpp.Expr, results: list[str]) -> str:
    if isinstance(value, cpp.Call) and value.function == cpp.Name("", (), value.function.start):
        raise translator.refuse("a braced result", value.start)
    typed = translator.expression(value)
    if not results:
        deduced = (
            "T" if typed.type in ("float", "auto", "int") and translator.dtype.kind.value != "integral" else typed.type
        )
        results.append(deduced)
    return f"return {strip_parentheses(translator.cast(results[0], typed).text)};"


def translate_declaration(translator: Translator, statement: cpp.Declaration, constant: bool = False) -> list[str]:
    """Translates a local declaration. A `constant` number is inlined instead."""
    kind = translator.type(statement.type, statement.start)
    if statement.value is None:
        translator.names[statement.name] = TypedText(statement.name, kind)
        return [f"{kind} {statement.name};"]
    plain = translator.expression(statement.value)
    value = translator.cast(kind, plain)
    if constant and value.is_number:
        translator.names[statement.name] = value
        return []
    stored = value.type if kind == "auto" else kind
    translator.names[statement.name] = TypedText(statement.name, stored)
    written = plain if plain.is_number and not translator.is_complex(value) else value
    return [f"{kind} {statement.name} = {written.text};"]


def translate_assignment(translator: Translator, value: cpp.Binary) -> list[str]:
    """Translates `name = value;` or `name += value;`."""
    left, right = translator.expression(value.left), translator.expression(value.right)
    if value.op != "=" and left.type == "T" and translator.dtype.kind is Kind.FLOATING:
        translator.roundings += 1
    if value.op not in ("=", "+=", "-=") and translator.is_complex(left):
        raise translator.refuse(f"'{show(value)}'", value.start)
    right = translator.cast(left.type, right) if value.op == "=" or translator.is_complex(left) else right
    return [f"{left.text} {value.op} {right.text};"] if left != right else []


def write_branch(test: str, then: list[str], other: list[str]) -> list[str]:
    """Returns the lines of an `if`, without `else` after a branch that returns."""
    lines = [f"if ({strip_parentheses(test)}) {{", *(f"  {line}" for line in then), "}"]
    if not other:
        return lines
    if then and then[-1].startswith("return "):
        return [*lines, *other]
    return [*lines[:-1], "} else {", *(f"  {line}" for line in other), "}"]


def is_assigned(body: cpp.Stmt, name: str) -> bool:
    """Whether a statement assigns to a name."""
    if isinstance(body, cpp.Block):
        return any(is_assigned(statement, name) for statement in body.statements)
    if isinstance(body, cpp.If):
        return is_assigned(body.then, name) or (body.otherwise is not None and is_assigned(body.otherwise, name))
    if isinstance(body, cpp.While | cpp.For):
        return is_assigned(body.body, name)
    value = body.value if isinstance(body, cpp.ExpressionStatement) else None
    if isinstance(value, cpp.Call):
        return any(isinstance(a, cpp.LambdaExpr) and is_assigned(a.body, name) for a in value.arguments)
    return isinstance(value, cpp.Binary) and isinstance(value.left, cpp.Name) and value.left.path == name


def only_assigns(body: cpp.Stmt, names: Collection[str]) -> bool:
    """Whether a statement does nothing but assign to these names."""
    if isinstance(body, cpp.Block):
        return all(only_assigns(statement, names) for statement in body.statements)
    if isinstance(body, cpp.If):
        return only_assigns(body.then, names) and (body.otherwise is None or only_assigns(body.otherwise, names))
    value = body.value if isinstance(body, cpp.ExpressionStatement) else None
    return isinstance(value, cpp.Binary) and isinstance(value.left, cpp.Name) and value.left.path in names


def quote_statement(statement: cpp.Stmt) -> str:
    """Returns a statement as quoted in messages."""
    text = (
        statement.text
        if isinstance(statement, cpp.Opaque | cpp.For | cpp.ArrayDeclaration)
        else type(statement).__name__.lower()
    )
    return " ".join(text.split())[:60]


def prune_locals(lines: list[str], written: Set[str] = frozenset()) -> list[str]:
    """Removes the lines of locals that nothing reads, but not those that write to others of these names."""
    while True:
        unused = _find_unused(lines, written)
        if unused is None:
            return lines
        lines = lines[:unused] + lines[unused + 1 :]


def _find_unused(lines: list[str], written: Set[str]) -> int | None:
    for index, line in enumerate(lines):
        match = re.match(r"\s*[\w:<>]+ (\w+)(?: = (.*))?;$", line)
        if match and written & list_words(match.group(2) or ""):
            continue
        if match and match.group(1) and not line.lstrip().startswith("return "):
            name = re.escape(match.group(1))
            again = re.compile(rf"\s*[\w:<>]+ {name} = (?!.*\b{name}\b).*;$")  # in the other branch of an #if
            rest = "\n".join(line for line in lines[:index] + lines[index + 1 :] if not again.match(line))
            if not contains_identifier(rest, match.group(1)):
                return index
    return None
