"""Host code that binds tensors to a kernel of its own passes their strides, or makes them contiguous (183065)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.host_facts import find_metal_functions
from porter.review.rule import Rule, host_case

_BINDING = re.compile(r"\bmtl_setArgs(?:<\w+>)?\(|\bmtl_setBuffer\(|\bsetBuffer:|\bbind_tensors\(")
_LAYOUT = re.compile(
    r"stride|contiguous|TensorIterator|iter\b|is_dense|suggest_memory_format|needsGather|needs_gather|empty_like|clone\("
)
_TENSOR = re.compile(r"\bTensor\s*&\s*(\w+)")


def _check(change: Change) -> Iterator[Remark]:
    for file, function in find_metal_functions(change):
        text = file.text_of(function)
        tensors = _TENSOR.findall(function.params)
        if "getPipelineStateForFunc" not in text or not tensors or _LAYOUT.search(text):
            continue
        if match := _BINDING.search(text):
            what = f"`{function.name}` binds tensors and never looks at their strides"
            hint = "Pass the strides, or call `contiguous()`; a view, a transposed tensor and `x[::2]` come too."
            yield file.remark(function.start + match.start(), what, hint)


_BAD = """void planted_mps(const Tensor& self, Tensor& out) {
  auto state = lib.getPipelineStateForFunc("exp_dense_float_float");
  mtl_setArgs(encoder, self, out);
  mtl_dispatch1DJob(encoder, state, out.numel());
}
"""
RULE = Rule(
    "ignored-strides",
    Severity.WARNING,
    "Host code binds tensors to a kernel, and neither passes strides nor makes the tensors contiguous.",
    _check,
    bad=(host_case(_BAD),),
    good=(
        host_case(_BAD.replace("mtl_setArgs(encoder, self, out)", "mtl_setArgs(encoder, self, out, self.strides())")),
        host_case(_BAD.replace("mtl_setArgs(encoder, self, out)", "mtl_setArgs(encoder, self.contiguous(), out)")),
    ),
)
