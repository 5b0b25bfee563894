"""Offsets pass 32 bits: a product of an index and a stride is computed in 64 (PyTorch 189960, 194082, 197407)."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import Kernel, find_changed_kernels
from porter.review.rule import Rule, metal_case

_NARROW = frozenset({"int", "uint", "int32_t", "uint32_t", "unsigned"})
_WIDE = frozenset({"long", "ulong", "int64_t", "uint64_t", "size_t"})


def _check(change: Change) -> Iterator[Remark]:
    for kernel in find_changed_kernels(change):
        wide = {
            p.name for p in kernel.buffers
            if p.space == "constant" and _WIDE & {token.text for token in p.tokens} and p.name
        }  # fmt: skip
        for at, token in enumerate(kernel.body):
            if token.text not in _NARROW or kernel.body[at - 1].text in ("<", "("):
                continue
            name, value = _read_declared(kernel, at)
            if name and {"*", "+="} & set(value) and wide & set(value) and kernel.file.is_added(token.start):
                yield _remark(kernel, at, f"`{name}` of kernel `{kernel.name}` holds a product of 64-bit numbers in 32")
        yield from _find_accumulated(kernel, wide)


def _read_declared(kernel: Kernel, at: int) -> tuple[str, list[str]]:
    """The name and the value of a declaration `uint name = value;`."""
    body = kernel.body
    if at + 2 >= len(body) or body[at + 2].text != "=":
        return "", []
    end = next((k for k in range(at, len(body)) if body[k].text == ";"), at)
    return body[at + 1].text, [token.text for token in body[at + 3 : end]]


def _find_accumulated(kernel: Kernel, wide: set[str]) -> Iterator[Remark]:
    """A 32-bit local to which products with 64-bit numbers are added: `offset += pos * strides[d]`."""
    body = kernel.body
    narrow = {
        body[at + 1].text: at for at, token in enumerate(body[:-2])
        if token.text in _NARROW and body[at + 2].text == "=" and body[at - 1].text not in ("<", "(")
    }  # fmt: skip
    for at, token in enumerate(body[:-1]):
        if token.text in narrow and body[at + 1].text == "+=":
            end = next((k for k in range(at, len(body)) if body[k].text == ";"), at)
            value = {later.text for later in body[at:end]}
            if "*" in value and wide & value and kernel.file.touches(token.start, body[end].start):
                yield _remark(
                    kernel, narrow[token.text], f"`{token.text}` of kernel `{kernel.name}` adds up offsets in 32 bits"
                )


def _remark(kernel: Kernel, at: int, what: str) -> Remark:
    hint = "Compute it in `ulong`, or make the type a template parameter that the host chooses by `mtlIdxSuffix`."
    return kernel.file.remark(kernel.body[at].start, what, hint)


_BAD = """kernel void copy(device float* out [[buffer(0)]], device const float* x [[buffer(1)]],
    constant long* strides [[buffer(2)]], uint2 index [[thread_position_in_grid]]) {
  uint offset = index.y * strides[0] + index.x * strides[1];
  out[offset] = x[offset];
}
"""
RULE = Rule(
    "index-width",
    Severity.ERROR,
    "A kernel computes an offset of 64-bit strides in 32 bits.",
    _check,
    bad=(
        metal_case(_BAD),
        metal_case(_BAD.replace("index.y * strides[0] + index.x * strides[1];", "0; offset += index.x * strides[1];")),
    ),
    good=(metal_case(_BAD.replace("uint offset", "ulong offset")),),
)
