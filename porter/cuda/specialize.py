"""Puts the values of names into C++ code, and leaves out the branches that these values decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from porter.aten.branches import Facts, decide
from porter.languages import cpp

Code = TypeVar("Code")


def specialize(code: Code, names: Mapping[str, cpp.Expr], facts: Facts) -> Code:
    """Returns the code with names replaced, and with each decided `if` and `?:` replaced by the branch it takes."""
    changed: Any = _replace(code, names, facts)
    return changed  # type: ignore[no-any-return]


def _replace(value: Any, names: Mapping[str, cpp.Expr], facts: Facts) -> Any:
    if isinstance(value, tuple):
        return tuple(_replace(each, names, facts) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if isinstance(value, cpp.Name):
        return names.get(value.path, value)
    made: Any = replace(value, **{f.name: _replace(getattr(value, f.name), names, facts) for f in fields(value)})
    if isinstance(made, cpp.If | cpp.Ternary):
        decided = decide(made.test, facts)
        if decided is not None:
            return _choose(made, decided)
    if isinstance(made, cpp.Block):
        return replace(made, statements=tuple(_flatten(made.statements)))
    return made


def _choose(made: cpp.If | cpp.Ternary, holds: bool) -> Any:
    if isinstance(made, cpp.Ternary):
        return made.yes if holds else made.no
    return made.then if holds else made.otherwise or cpp.Block(())


def _flatten(statements: tuple[cpp.Stmt, ...]) -> list[cpp.Stmt]:
    """Returns the statements with a chosen branch in place of its block, up to the first that returns."""
    found: list[cpp.Stmt] = []
    for statement in statements:
        found += statement.statements if isinstance(statement, cpp.Block) else (statement,)
        if found and isinstance(found[-1], cpp.Return):
            break
    return found
