"""What a fork's own `test_output_match` says of samples: their tolerances, by its own code, and how they are seeded."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.core.layout import TEST_MPS
from porter.verdict.suite import compare, lists

_CLASS = re.compile(r"^class TestConsistency\b.*?(?=^[^\s#)])", re.M | re.S)
_METHOD, _TEST, _NAMES = "_compute_tolerances", "test_output_match", ["atol", "rtol"]

Tolerances = Callable[[OpInfo, torch.dtype, Mapping[str, Any]], dict[str, float | None]]


def tolerances(text: str) -> Tolerances:
    """What gives `atol` and `rtol` (None: torch.testing's) for an OpInfo, a type and a sample's keyword arguments.

    `text` is a fork's `test/test_mps.py`. One without these functions has its low-precision lists alone. Raises PTR163
    when its code does not run on this torch.
    """
    found = _CLASS.search(text)
    members = _members(ast.parse(found[0])) if found else {}
    if not found or _METHOD not in members or _TEST not in members:
        low_precision = lists.low_precision(text)
        return lambda op, dtype, kwargs: compare.tolerances(low_precision, op.name, dtype)
    own = lists.run(TEST_MPS, _class(members))["Own"]()
    return lambda op, dtype, kwargs: dict(zip(_NAMES, own.asked(op, dtype, kwargs), strict=True))


def _members(module: ast.Module) -> dict[str, ast.stmt]:
    [found] = module.body
    assert isinstance(found, ast.ClassDef)
    plain = (each for each in found.body if isinstance(each, ast.Assign))
    named = {f"value {i}": each for i, each in enumerate(plain)}
    return {**named, **{each.name: each for each in found.body if isinstance(each, ast.FunctionDef)}}


def _class(members: Mapping[str, ast.stmt]) -> str:
    """A class with the fork's lists, its method, and one that goes through what its test does to the result."""
    values = [each for name, each in members.items() if name.startswith("value ") or name == _METHOD]
    asked = [*_settings(members[_TEST]), ast.parse("return atol, rtol").body[0]]
    lines = "\n".join(ast.unparse(each) for each in values)
    steps = "\n".join(ast.unparse(each) for each in asked)
    return f"class Own:\n{_indented(lines)}\n    def asked(self, op, dtype, cpu_kwargs):\n{_indented(steps, 8)}\n"


def _settings(test: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of a test that set the tolerances: the first asks the method, the others adjust them."""
    for node in ast.walk(test):
        block = getattr(node, "body", [])
        starts = [i for i, each in enumerate(block) if _sets(each)] if isinstance(block, list) else []
        if starts:
            rest = block[starts[0] :]
            yield from rest[: next((i for i, each in enumerate(rest) if not _adjusts(each)), len(rest))]
            return


def _sets(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Tuple):
        return False
    return [ast.unparse(each) for each in statement.targets[0].elts] == _NAMES


def _adjusts(statement: ast.stmt) -> bool:
    return _sets(statement) or (isinstance(statement, ast.If) and all(map(_adjusts, statement.body + statement.orelse)))


def _indented(text: str, by: int = 4) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


_BODY = re.compile(r"^    def test_output_match\(.*?(?=^    (?:def|@)|^\S|\Z)", re.M | re.S)


def seeds_each_sample(text: str) -> bool:
    """Whether each sample has a seed of its own, as in torch.testing unless asked otherwise.

    `text` is a fork's `test/test_mps.py`.
    """
    found = _BODY.search(text)
    return not (found and "set_seed=False" in found[0].replace(" ", ""))
