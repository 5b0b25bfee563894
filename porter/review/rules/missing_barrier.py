"""What a thread writes to threadgroup memory, others see behind a barrier only."""

from __future__ import annotations

from collections.abc import Iterator

from porter.metal.lint_checks import is_written
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import Kernel, find_changed_kernels
from porter.review.rule import Rule, metal_case

_BARRIERS = frozenset({"threadgroup_barrier"})


def _check(change: Change) -> Iterator[Remark]:
    for kernel in find_changed_kernels(change):
        shared = _find_shared(kernel)
        if not shared:
            continue
        for name in shared:
            yield from _check_array(kernel, name)


def _find_shared(kernel: Kernel) -> list[str]:
    """The arrays that a kernel declares in threadgroup memory, and those that it gets there."""
    declared = [p.name for p in kernel.parameters if p.space == "threadgroup" and p.name]
    for at, token in enumerate(kernel.body[:-3]):
        if token.text == "threadgroup" and kernel.body[at - 1].text in ("{", ";", "}"):
            end = next((k for k in range(at, len(kernel.body)) if kernel.body[k].text in ("[", ";")), at)
            if kernel.body[end].text == "[":
                declared.append(kernel.body[end - 1].text)
    return declared


def _check_array(kernel: Kernel, name: str) -> Iterator[Remark]:
    """The first read of an array behind a write of another element, with no barrier between."""
    body, written = kernel.body, ""
    for at, token in enumerate(body[:-1]):
        if token.text in _BARRIERS:
            written = ""
        if token.text != name or body[at + 1].text != "[" or (at and body[at - 1].text in ("float", "threadgroup")):
            continue
        index = _read_index(kernel, at + 1)
        if is_written(body, at):
            written = written or index
        elif written and written != index:
            yield kernel.file.remark(
                token.start,
                f"kernel `{kernel.name}` reads `{name}[{index}]` behind `{name}[{written}]`, with no barrier between",
                "Put `threadgroup_barrier(mem_flags::mem_threadgroup)` between the write and the read.",
            )
            return


def _read_index(kernel: Kernel, bracket: int) -> str:
    depth, parts = 0, list[str]()
    for token in kernel.body[bracket:]:
        depth += (token.text == "[") - (token.text == "]")
        if depth == 0:
            break
        parts.append(token.text)
    return "".join(parts[1:])


_BAD = """kernel void shift(device float* out [[buffer(0)]], uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float row[256];
  row[lane] = out[lane];
  out[lane] = row[255 - lane];
}
"""
RULE = Rule(
    "missing-barrier",
    Severity.ERROR,
    "A kernel reads threadgroup memory that other threads wrote, with no barrier between.",
    _check,
    bad=(metal_case(_BAD),),
    good=(
        metal_case(_BAD.replace("  out[lane] =", "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  out[lane] =")),
        metal_case(_BAD.replace("row[255 - lane]", "row[lane]")),
    ),
)
