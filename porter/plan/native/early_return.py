"""Returns before a launch where there are no elements to compute."""

from __future__ import annotations

import re
from collections.abc import Iterable

from porter.languages.statements import DISPATCH, read_statements
from porter.loops.host_values import SizeProduct
from porter.loops.program import Programs
from porter.plan.native.body import LAUNCH
from porter.plan.native.target import Target

_RESULT = re.compile(r"result\d+")


def list_counted(programs: Programs) -> set[str]:
    """The tensors whose number of elements is that of the threads of all kernels."""
    rows = [nest.rows for case in programs.cases for nest in case.nests]
    whole = {each.tensor for each in rows if isinstance(each, SizeProduct) and each.begin is None and each.end is None}
    if len(whole) == 1 and len(rows) == sum(isinstance(each, SizeProduct) for each in rows):
        return whole
    return _list_alike(programs)


def _list_alike(programs: Programs) -> set[str]:
    """The tensor that is alone, if every result has its sizes: nothing is broadcast with it."""
    calls = [call.tensors for case in programs.cases for call in case.calls]
    given = {name for call in calls for name in call if not _RESULT.fullmatch(name)}
    shapes = all(len({value.shape for value in call.values()}) == 1 for call in calls)
    return given if len(given) == 1 and shapes else set()


def return_early(body: str, target: Target, counted: Iterable[str]) -> str:
    """A body that returns before it launches kernels for no elements, of a result or of tensors that are `counted`."""
    result = target.variables["result0"]
    others = [each for name, each in target.variables.items() if _RESULT.fullmatch(name)]
    alike = [each for each in others if target.alternatives or f"{each} = at::empty({result}.sizes()" in body]
    known = [names[tensor] for tensor in counted for names in (target.variables, target.arguments) if tensor in names]
    if any(f"{each}.numel() == 0" in f"{target.before}{body}" for each in (result, *alike, *known)):
        return body
    return body.replace(LAUNCH, f"if ({result}.numel() == 0) {{\n{write_return(body)}\n}}\n\n{LAUNCH}")


def write_return(body: str) -> str:
    """The statement by which a body returns before its launch what it returns after it."""
    end = body.rstrip().rpartition("\n")[2].strip()
    return end if end.startswith("return") and not _is_dispatched(body) else "return;"


def _is_dispatched(body: str) -> bool:
    """Whether the launch is in the lambda of a dispatch, which returns nothing."""
    found = (each for outer in read_statements(body) for each in outer.walk() if each.keyword == DISPATCH)
    return any(LAUNCH in body[each.start : each.end] for each in found)
