"""A count of elements, a stride or an offset that host code cuts to 32 bits without asking whether it fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.host_facts import launches_kernel
from porter.review.rule import Rule, host_case

_TYPE = r"(?:const\s+)?(?:u?int32_t|u?int|unsigned(?:\s+int)?)"
_SIZE = r"[\w.\->()]*(?:\.|->)(?:numel|nbytes|storage_offset|stride)\("
_NARROWED = (
    re.compile(rf"\b{_TYPE}\s+\w+\s*=\s*{_SIZE}"),
    re.compile(rf"\bstatic_cast<\s*{_TYPE}\s*>\(\s*{_SIZE}"),
)
_ASKING = ("canUse32BitIndexMath", "can_use_32bit_indexing", "offsetsFitIn", "mtlDispatchByIndexWidth", "safe_downcast",
           "numeric_limits", "INT_MAX", "UINT32_MAX")  # fmt: skip


def _check(change: Change) -> Iterator[Remark]:
    for file in change.host:
        for function in file.functions():
            text = file.text_of(function)
            if not launches_kernel(text) or any(word in text for word in _ASKING):
                continue
            for pattern in _NARROWED:
                for match in pattern.finditer(file.after, function.body_start, function.body_end):
                    if file.is_added(match.start()):
                        what = f"`{' '.join(match[0].split())}...` cuts 64 bits to 32, and nothing asks if they fit"
                        hint = "Keep 64 bits, or choose the kernel by `offsetsFitIn` or TORCH_CHECK that it fits."
                        yield file.remark(match.start(), what, hint)


_BAD = """void f(const Tensor& self) {
  const uint32_t count = self.numel();
  auto state = lib.getPipelineStateForFunc("exp_dense_float_float");
}
"""
RULE = Rule(
    "narrowed-size",
    Severity.WARNING,
    "Host code cuts a number of elements, a stride or an offset to 32 bits and never asks whether it fits.",
    _check,
    bad=(
        host_case(_BAD),
        host_case(_BAD.replace("const uint32_t count = self.numel()", "auto n = static_cast<int>(self.stride(0))")),
    ),
    good=(
        host_case(_BAD.replace("uint32_t count", "int64_t count")),
        host_case(_BAD.replace("  auto", "  TORCH_CHECK(offsetsFitIn<uint32_t>(self));\n  auto")),
    ),
)
