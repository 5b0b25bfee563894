"""A barrier waits for every thread of a threadgroup: none may return before it (PyTorch 180709, 191104)."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import Kernel, find_changed_kernels
from porter.review.rule import Rule, metal_case

_POSITIONS = (
    "thread_position_in_grid", "thread_index_in_threadgroup", "thread_position_in_threadgroup",
    "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
)  # fmt: skip
_TOGETHER = frozenset({"threadgroup_barrier", "simdgroup_barrier"})


def _check(change: Change) -> Iterator[Remark]:
    for kernel in find_changed_kernels(change):
        yield from _check_kernel(kernel, kernel.positions(*_POSITIONS))


def _check_kernel(kernel: Kernel, positions: set[str]) -> Iterator[Remark]:
    """A `return` under a condition of the thread's position, with a barrier or a reduction of a simdgroup behind it."""
    body = kernel.body
    for at, token in enumerate(body):
        if token.text != "return" or not any(_is_together(later.text) for later in body[at:]):
            continue
        condition = _find_condition(kernel, at)
        if any(body[k].text in positions for k in condition):
            yield kernel.file.remark(
                token.start,
                f"threads of kernel `{kernel.name}` return before a barrier or a reduction that others wait at",
                "Let every thread reach it: guard the loads and stores instead.",
            )


def _is_together(name: str) -> bool:
    return name in _TOGETHER or name.startswith("simd_")


def _find_condition(kernel: Kernel, at: int) -> range:
    """The tokens of the `if (...)` right around a statement."""
    end = at - 1 if kernel.body[at - 1].text != "{" else at - 2
    if kernel.body[end].text != ")":
        return range(0)
    depth = 0
    for k in range(end, -1, -1):
        depth += (kernel.body[k].text == ")") - (kernel.body[k].text == "(")
        if depth == 0:
            return range(k, end) if k and kernel.body[k - 1].text == "if" else range(0)
    return range(0)


_BAD = """kernel void total(device float* out [[buffer(0)]], constant uint& count [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  if (index >= count) {
    return;
  }
  float sum = simd_sum(out[index]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[index] = sum;
}
"""
RULE = Rule(
    "divergent-barrier",
    Severity.ERROR,
    "Some threads of a kernel return before a barrier or a simdgroup reduction.",
    _check,
    bad=(metal_case(_BAD),),
    good=(
        metal_case(_BAD.replace("  if (index >= count) {\n    return;\n  }\n", "")),
        metal_case(_BAD.replace("if (index >= count)", "if (count == 0)")),
    ),
)
