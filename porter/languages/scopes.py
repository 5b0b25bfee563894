"""Which local variables statements of a body may name, by where they stand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from porter.languages.liveness import list_declared
from porter.languages.statements import Statement, name_tokens, read_statements, walk_statements


def bring_declarations(body: str, at: int, names: Collection[str]) -> list[str] | None:
    """The declarations that a place of a body lacks to use some names, in the order in which they have to stand.

    Nothing is lacking of names that the function declares in no statement: they are parameters, or of the file. None if
    a local cannot be declared there again: it has several declarations, one without a value, or is changed later.
    Raises PTR030 where brackets do not pair.
    """
    statements = read_statements(body)
    simple = (inner for outer in statements for inner in outer.walk() if not inner.keyword)
    local = {name for statement in simple for name in list_declared(body[statement.start : statement.end])}
    lines: list[str] = []
    for name in sorted(local.intersection(names).difference(_walk_visible(body, statements, at))):
        declaration = _find_only_declaration(body, name)
        if declaration is None:
            return None
        value = declaration.partition("=")[2]
        needed = bring_declarations(body, at, {token.text for token in name_tokens(value)} - {name})
        if needed is None:
            return None
        lines += [line for line in (*needed, declaration) if line not in lines]
    return lines


def _walk_visible(body: str, statements: Sequence[Statement], at: int) -> Iterator[str]:
    """The locals that are declared before a place, and whose blocks have not ended there."""
    for statement in statements:
        if statement.start >= at:
            return
        if not statement.keyword:
            if statement.end <= at:
                yield from list_declared(body[statement.start : statement.end])
        elif at < statement.end:
            # What the head of a loop or a condition declares: `for (const auto i : ...)`, `if (auto x = ...; ...)`
            if statement.head is not None:
                head = body[slice(*statement.head)]
                ranged = re.match(r"[^;=?]*?\b(\w+)\s*:(?!:)", head)
                if ranged:
                    yield ranged[1]
                elif "=" in head.partition(";")[0]:
                    yield from list_declared(f"{head.partition(';')[0]};")
            branch = statement.otherwise if _stands_in(statement.otherwise, at) else statement.body
            yield from _walk_visible(body, branch, at)


def _stands_in(statements: Sequence[Statement], at: int) -> bool:
    return bool(statements) and at >= statements[0].start


def _find_only_declaration(body: str, name: str) -> str | None:
    """The statement that declares a local alone, with the only value that it ever has."""
    every = (inner for inner in walk_statements(body) if not inner.keyword)
    texts = [body[statement.start : statement.end] for statement in every]
    declarations = [text for text in texts if name in list_declared(text)]
    values = re.findall(rf"(?<![\w.>]){re.escape(name)}\s*(?:[-+*/|&^%]|<<|>>)?=(?!=)", body)
    if len(declarations) != 1 or len(values) != 1 or list_declared(declarations[0]) != [name]:
        return None
    return declarations[0] if "=" in declarations[0] else None
