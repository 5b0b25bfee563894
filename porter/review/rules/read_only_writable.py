"""What a kernel only reads is `constant` or `device const`: the host binds it as such (PyTorch 186580, 181650)."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import find_changed_kernels
from porter.review.rule import Rule, metal_case

_ATOMIC = ("atomic", "Atomic", "ErrorMessages")


def _check(change: Change) -> Iterator[Remark]:
    for kernel in find_changed_kernels(change):
        for parameter in kernel.buffers:
            texts = [token.text for token in parameter.tokens]
            is_open = parameter.space == "device" and not {"const", "volatile"} & set(texts)
            if not is_open or any(text.startswith(_ATOMIC) for text in texts) or not parameter.name:
                continue
            if kernel.writes(parameter.name) or not any(token.text == parameter.name for token in kernel.body):
                continue
            kind = "constant" if "&" in texts else "device const"
            yield kernel.file.remark(
                parameter.tokens[0].start,
                f"`{parameter.name}` of kernel `{kernel.name}` is writable, and is only read",
                f"Declare it `{kind}`.",
            )


_BAD = """kernel void scale(device float* out [[buffer(0)]], device float& alpha [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  out[index] = out[index] * alpha;
}
"""
RULE = Rule(
    "read-only-writable",
    Severity.WARNING,
    "A kernel declares what it only reads as writable: a scalar in `device` memory, a tensor without `const`.",
    _check,
    bad=(
        metal_case(_BAD),
        metal_case(_BAD.replace("device float& alpha", "device float* alpha").replace("* alpha;", "* alpha[0];")),
    ),
    good=(
        metal_case(_BAD.replace("device float& alpha", "constant float& alpha")),
        metal_case(_BAD.replace("* alpha;", "* alpha; alpha = 0;")),
        metal_case(_BAD.replace("out[index] * alpha", "load(alpha)")),
    ),
)
