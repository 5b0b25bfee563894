"""Results of reductions as ATen allocates them, where the graph's code found their shapes.

Source: ATen/native/ReduceOpsUtils.h (`create_reduction_result`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.languages.assignments import read_assignments
from porter.languages.brackets import split_at_commas
from porter.loops.program import Programs, ResultBuffer
from porter.metal.native.host_values import Names
from porter.metal.native.reduced import find_strided

_KEEP = "keepdim"
_LISTS = re.compile(r"int\[\d*\]\??")


def create_results(body: str, programs: Programs, names: Names) -> str:
    """A body whose results have the shape that a reduction gives them by ATen's helper.

    Only those are changed that are allocated for a shape and an element type of the body's own.
    """
    for case in programs.cases:
        strided = find_strided(case)
        if strided and _KEEP in names.types and _LISTS.fullmatch(names.types.get(strided.dims, "")):
            given = ", ".join(map(names.variable, (strided.name, strided.dims, _KEEP)))
            for role in case.roles.values():
                if isinstance(role, ResultBuffer):
                    body = _create(body, names.variable(f"result{role.index}"), given)
    return body


def _create(body: str, variable: str, given: str) -> str:
    for each in read_assignments(body):
        is_allocated = each.name == variable and each.type == "Tensor" and each.value.startswith("at::empty(")
        dtypes = list(_find_dtypes(each.value[len("at::empty(") : -1])) if is_allocated else []
        if len(dtypes) == 1:
            start, end = each.statement.start, each.statement.end
            return f"{body[:start]}Tensor {variable} = create_reduction_result({given}, {dtypes[0]});{body[end:]}"
    return body


def _find_dtypes(arguments: str) -> Iterator[str]:
    shape, *rest = split_at_commas(arguments)
    if shape.strip().startswith("IntArrayRef("):
        yield from (each.strip() for each in rest if each.strip().endswith(".scalar_type()"))
