"""Returns for one result without elements, while others have still to be written.

A graph's function asks whether there is anything to compute by one of its results. One that is not asked for is an
undefined tensor, which has no elements either: `layer_norm_backward_mps` (ATen/native/mps/operations/Normalization.mm)
returned the gradients of weight and bias unwritten where the input needs none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from porter.languages.brackets import is_balanced
from porter.languages.scopes import bring_declarations
from porter.languages.statements import Statement, name_tokens, read_statements
from porter.loops.empty_rows import compute_without
from porter.loops.host_values import Number
from porter.loops.program import Programs
from porter.metal.native.host_values import Names
from porter.plan.native.body import LAUNCH
from porter.plan.native.body_text import read_returned

_RESULT = re.compile(r"result(\d+)")
_EMPTY = re.compile(r"\(?\s*(\w+)\.numel\(\) == 0\s*\)?")


def keep_unwritten(body: str, names: Names, programs: Programs) -> str:
    """A body that returns before its launch, or goes past it, for one result only where no other is to be written.

    Where it returns as there is nothing to compute them from either, results get what reductions of nothing have, if
    that is known. Results that have as many elements in all recorded calls are one.
    """
    variables = {
        int(match[1]): variable for name, variable in names.variables.items() if (match := _RESULT.fullmatch(name))
    }
    if len(set(variables.values())) < 2 or LAUNCH not in body:
        return body
    return _Returns(body, names, programs, variables).widen()


def find_mask(names: Names) -> str:
    """The argument that has a flag for each of several results, whether it is asked for; nothing if there is none."""
    results = sum(_RESULT.fullmatch(name) is not None for name in names.variables)
    masks = [name for name, type_ in names.types.items() if type_ == f"bool[{results}]"]
    return masks[0] if len(masks) == 1 and results > 1 else ""


def may_lack(body: str, result: str) -> bool:
    """Whether a result may be an undefined tensor: it is not allocated where the body declares it, in any case."""
    return re.search(rf"\b(?:auto|Tensor)\s+{re.escape(result)}\s*=(?!\s*Tensor\(\))[^;?]*;", body) is None


@dataclass(frozen=True)
class _Returns:
    """A body, and the variables of its results by their places."""

    body: str
    names: Names
    programs: Programs
    variables: dict[int, str]

    def widen(self) -> str:
        body, launch = self.body, self.body.index(LAUNCH)
        for statement in reversed([inner for outer in read_statements(body) for inner in outer.walk()]):
            if statement.keyword != "if" or statement.head is None or statement.otherwise or not statement.body:
                continue
            if statement.start < launch < statement.end:
                body = self._enter_for_all(body, statement)
            elif statement.end <= launch and self._text(statement.body[-1]).startswith("return"):
                body = self._leave_for_all(body, statement)
        return body

    def _text(self, statement: Statement) -> str:
        return self.body[statement.start : statement.end]

    def _enter_for_all(self, body: str, statement: Statement) -> str:
        """A body whose launch is not only reached for one result: others may have to be written."""
        assert statement.head is not None
        start, end = statement.head
        test = body[start:end].strip()
        others = self._list_others(test, statement)
        if not others or "||" in test or "&&" in test:
            return body
        return f"{body[:start]}{test} || {' || '.join(f'{each}.numel() > 0' for each in others)}{body[end:]}"

    def _leave_for_all(self, body: str, statement: Statement) -> str:
        """A body that only returns for a result where no other is to be written."""
        assert statement.head is not None
        start, end = statement.head
        tests = self.body[start:end].split("||")
        if not all(map(is_balanced, tests)):
            return body
        if len(statement.body) > 1:  # it writes others as those of nothing are, which is wrong where there is something
            made = " || ".join(map(self._demand, tests))
            return f"{body[:start]}{made}{body[end:]}"
        leave = statement.body[0]
        if not _only_returns(self._text(leave)):
            return body
        others = [self._list_others(test, statement) for test in tests]
        if not any(others):
            return body
        fills = list(dict.fromkeys(fill for each in others for fill in self._write_fills(each)))
        key = self._find_key(statement.start)
        made = " || ".join(
            _join(test.strip(), each, key, alone=len(tests) == 1) for test, each in zip(tests, others, strict=True)
        )
        text = "\n".join((*fills, self._text(leave)))
        text = text if statement.inner or not fills else f"{{\n{text}\n}}"
        return f"{body[:start]}{made}{body[end : leave.start]}{text}{body[leave.end :]}"

    def _list_others(self, test: str, statement: Statement) -> list[str]:
        """The results that a test does not ask for and that may have elements where those have none; none of a test
        that asks for no result, or where there are not all results yet.
        """
        asked = set(self._list_asked(test))
        others = [
            variable
            for i, variable in self.variables.items()
            if i not in asked and not any(self._are_alike(i, j) for j in asked)
        ]
        is_early = bring_declarations(self.body, statement.start, self.variables.values()) != []
        return [] if not asked or is_early else list(dict.fromkeys(others))

    def _list_asked(self, test: str) -> Iterator[int]:
        """The places of the results that a test is about: by their variables, by flags that are set to those, or by
        the elements of a mask.
        """
        text = self._expand(test)
        used = {token.text for token in name_tokens(text)}
        yield from (i for i, variable in self.variables.items() if variable in used)
        if self._mask:
            places = map(int, re.findall(rf"\b{re.escape(self._mask)}\s*\[\s*(\d+)\s*\]", text))
            yield from (i for i in places if i in self.variables)

    def _expand(self, test: str) -> str:
        """A test with what its flags are set to."""
        values = dict(re.findall(r"\b(?:const\s+)?(?:bool|auto)\s+(\w+)\s*=\s*([^;]+);", self.body))
        for _ in values:
            flags = [token.text for token in name_tokens(test) if token.text in values]
            if not flags:
                break
            named = rf"(?<![\w.>])({'|'.join(map(re.escape, flags))})\b"
            test = re.sub(named, lambda flag: f"({values[flag[1]]})", test)
        return test

    @property
    def _mask(self) -> str:
        """The variable of the flags that say which results are asked for; nothing if there is none."""
        return self.names.variables.get(find_mask(self.names), "")

    def _are_alike(self, one: int, other: int) -> bool:
        """Whether two results have as many elements in every call, and there always are both."""
        if self._mask:
            return False
        if self.programs.order or self.variables[one] == self.variables[other]:
            return True
        calls = [call.tensors for call in self.programs.calls]
        pairs = [(call.get(f"result{one}"), call.get(f"result{other}")) for call in calls]
        return bool(pairs) and all(a and b and math.prod(a.shape) == math.prod(b.shape) for a, b in pairs)

    def _demand(self, test: str) -> str:
        """A test for a result without elements, which one that is not there does not meet."""
        match = _EMPTY.fullmatch(test.strip())
        if match is None or match[1] not in self.variables.values() or not self._may_lack(match[1]):
            return test.strip()
        return f"({match[1]}.defined() && {match[1]}.numel() == 0)"

    def _may_lack(self, variable: str) -> bool:
        return bool(self._mask) and may_lack(self.body, variable)

    def _find_key(self, at: int) -> str:
        """The tensor that all kernels read, with the operator before its members, if a place may name it."""
        keys = {case.key for case in self.programs.cases}
        key = next(iter(keys)) if len(keys) == 1 else ""
        if key not in self.names.variables or bring_declarations(self.body, at, {self.names.variables[key]}) != []:
            return ""
        return self.names.member(key)

    def _write_fills(self, variables: Collection[str]) -> Iterator[str]:
        """What gives results what kernels would store of nothing."""
        keys = {case.key for case in self.programs.cases}
        values = compute_without(self.programs, next(iter(keys))) if len(keys) == 1 else {}
        for index, variable in self.variables.items():
            if variable in variables and index in values:
                fill = f"{variable}.{write_fill(values[index])};"
                yield f"if ({variable}.defined()) {{\n{fill}\n}}" if self._may_lack(variable) else fill


def write_fill(value: Number) -> str:
    """The call by which all elements of a tensor become a number."""
    if value == 0:
        return "zero_()"
    return f"fill_({'std::numeric_limits<double>::quiet_NaN()' if math.isnan(value) else f'{value:g}'})"


def _only_returns(text: str) -> bool:
    """Whether a statement returns variables, or nothing: what it calls could write results."""
    return text.rstrip("; ") == "return" or bool(read_returned(text))


def _join(test: str, others: Sequence[str], key: str, alone: bool) -> str:
    """A test that others have no elements either, or that there is nothing to compute them from."""
    if not others:
        return test
    empty = " && ".join(f"{each}.numel() == 0" for each in others)
    if key:
        empty = f"(({empty}) || {key}numel() == 0)" if len(others) > 1 else f"({empty} || {key}numel() == 0)"
    made = f"{test} && {empty}"
    return made if alone else f"({made})"
