"""What MPSGraph could not do is no reason for a kernel to refuse it: int64, macOS releases, five dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.host_facts import find_metal_functions, find_words_in
from porter.review.rule import Rule, host_case

_MACRO = "MPS_CHECK_INT64_OP_SUPPORTED"
_LIMIT = re.compile(r"MPS (?:does not|doesn't) support|not supported (?:on|by) MPS|MPSGraph", re.I)
_CONDITION = re.compile(r"k?Long\b|kInt\b|ScalarType::Long|ndimension|\bdim\(\)")


def _check(change: Change) -> Iterator[Remark]:
    for file, function in find_metal_functions(change):
        for token in find_words_in(file, function.start, function.end):
            limit = token.text == _MACRO or (token.text == "TORCH_CHECK" and _states_limit(file.after, token.start))
            if limit:
                what = f"`{function.name}` launches a kernel and keeps a limit of MPSGraph"
                yield file.remark(token.start, what, "Remove it where the kernel has the type, and register the type.")


def _states_limit(text: str, start: int) -> bool:
    statement = text[start : text.find(";", start)]
    return _LIMIT.search(statement) is not None and _CONDITION.search(statement) is not None


_BAD = """static void planted_kernel(TensorIteratorBase& iter) {
  MPS_CHECK_INT64_OP_SUPPORTED(iter.common_dtype(), true, "planted");
  lib.exec_unary_kernel(iter, "exp");
}
"""
_CHECK = """TORCH_CHECK(self.scalar_type() != kLong, "MPS does not support planted with int64 input");"""
RULE = Rule(
    "graph-limit",
    Severity.WARNING,
    "Host code that launches a kernel and builds no graph keeps a limit of MPSGraph.",
    _check,
    bad=(
        host_case(_BAD),
        host_case(_BAD.replace('MPS_CHECK_INT64_OP_SUPPORTED(iter.common_dtype(), true, "planted");', _CHECK)),
    ),
    good=(
        host_case(_BAD.replace('  MPS_CHECK_INT64_OP_SUPPORTED(iter.common_dtype(), true, "planted");\n', "")),
        host_case(_BAD.replace("lib.exec_unary_kernel(iter", "MPSGraphTensor* t; lib.exec_unary_kernel(iter")),
    ),
)
