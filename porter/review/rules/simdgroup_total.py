"""`simd_sum` adds the values of 32 threads: the total of a wider threadgroup takes a second step."""

from __future__ import annotations

from collections.abc import Iterator

from porter.metal.lint_checks import is_written
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import Kernel, find_changed_kernels
from porter.review.rule import Rule, metal_case

_REDUCTIONS = frozenset({"simd_sum", "simd_product", "simd_max", "simd_min", "simd_and", "simd_or", "simd_xor"})
_IN_GROUP = ("thread_index_in_threadgroup", "thread_position_in_threadgroup")
_IN_SIMDGROUP = ("thread_index_in_simdgroup", "simdgroup_index_in_threadgroup")


def _check(change: Change) -> Iterator[Remark]:
    for kernel in find_changed_kernels(change):
        threads = kernel.positions(*_IN_GROUP)
        reduced = [at for at, token in enumerate(kernel.body) if token.text in _REDUCTIONS]
        if len(reduced) != 1 or not threads or _takes_second_step(kernel):
            continue
        if _stores_by_one(kernel, reduced[0], threads):
            token = kernel.body[reduced[0]]
            yield kernel.file.remark(
                token.start,
                f"one thread of kernel `{kernel.name}` stores what `{token.text}` makes of its simdgroup alone",
                "Let each simdgroup write to threadgroup memory, and reduce that behind a barrier.",
            )


def _takes_second_step(kernel: Kernel) -> bool:
    """Whether the kernel combines simdgroups: by threadgroup memory, an atomic, or one simdgroup a threadgroup."""
    words = {token.text for token in kernel.body} | set(kernel.function.signature.split())
    positions = kernel.positions(*_IN_SIMDGROUP)
    return (
        bool(words & {"threadgroup", "max_total_threads_per_threadgroup"})
        or bool(positions & words)
        or any(word.startswith("atomic_") or "max_total_threads" in word for word in words)
    )


def _stores_by_one(kernel: Kernel, reduction: int, threads: set[str]) -> bool:
    """Whether a store behind the reduction stands under a condition that one thread of the threadgroup meets."""
    body = kernel.body
    for at in range(reduction, len(body) - 4):
        if body[at].text == "if":
            condition = {token.text for token in body[at + 2 : at + 8]}
            if condition & threads and ({"==", "0"} <= condition or "!" in condition):
                return any(is_written(body, k) for k in range(at, len(body) - 1))
    return False


_BAD = """kernel void total(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    uint tid [[thread_index_in_threadgroup]]) {
  float sum = simd_sum(x[tid]);
  if (tid == 0) {
    out[0] = sum;
  }
}
"""
RULE = Rule(
    "simdgroup-total",
    Severity.ERROR,
    "A kernel stores what `simd_sum` gives one thread of a threadgroup, which may be wider than a simdgroup.",
    _check,
    bad=(metal_case(_BAD), metal_case(_BAD.replace("simd_sum", "simd_max"))),
    good=(
        metal_case(_BAD.replace("thread_index_in_threadgroup", "thread_index_in_simdgroup")),
        metal_case(_BAD.replace("  if", "  threadgroup float parts[32]; parts[tid / 32] = sum;\n  if")),
    ),
)
