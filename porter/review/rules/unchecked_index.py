"""An index that a tensor holds is checked before it addresses a write (PyTorch 189968 to 189972)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from porter.languages.lexer import Token
from porter.metal.lint_checks import is_written
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import Kernel, find_changed_kernels
from porter.review.rule import Rule, metal_case

_INTEGERS = frozenset({"int", "long", "uint", "ulong", "int64_t", "int32_t", "uint32_t", "index_t", "IndexT", "I"})
_CHECKING = frozenset({"<", ">=", "<=", ">", "ERROR_IF_NOT", "TORCH_REPORT_ERROR", "clamp", "min"})


def _check(change: Change) -> Iterator[Remark]:
    for kernel in find_changed_kernels(change):
        tables = {
            p.name for p in kernel.buffers
            if p.space == "device" and "const" in _texts(p.tokens) and _INTEGERS & _texts(p.tokens)
        }  # fmt: skip
        loaded = {name: at for table in tables for name, at in _find_loaded(kernel, table)}
        for name, start in loaded.items():
            checked = any(_is_checked(kernel, at) for at, t in enumerate(kernel.body) if t.text == name)
            written = [at for at in _find_subscripts(kernel, name) if at > start]
            if written and not checked:
                yield kernel.file.remark(
                    kernel.body[written[0]].start,
                    f"kernel `{kernel.name}` writes at `{name}`, which a tensor holds and nothing checks",
                    "Report an index out of range by TORCH_REPORT_ERROR, and write nothing.",
                )


def _texts(tokens: Iterable[Token]) -> set[str]:
    return {token.text for token in tokens}


def _find_loaded(kernel: Kernel, table: str) -> Iterator[tuple[str, int]]:
    """The locals that are loaded from a tensor of integers: `long at = indices[i];`."""
    body = kernel.body
    for at, token in enumerate(body[1:-1], 1):
        if token.text == table and body[at + 1].text == "[" and body[at - 1].text in ("=", ")", "("):
            start = next((k for k in range(at, 0, -1) if body[k].text in (";", "{", "}")), 0)
            equals = next((k for k in range(start, at) if body[k].text == "="), 0)
            if equals:
                yield body[equals - 1].text, at


def _find_subscripts(kernel: Kernel, name: str) -> Iterator[int]:
    """The tokens of tensors that are written at an element whose subscript has `name`."""
    body = kernel.body
    for at, token in enumerate(body[:-2]):
        if body[at + 1].text != "[" or not is_written(body, at) or token.text == name:
            continue
        depth = 0
        for k in range(at + 1, len(body)):
            depth += (body[k].text == "[") - (body[k].text == "]")
            if depth == 0:
                break
            if body[k].text == name:
                yield at
                break


def _is_checked(kernel: Kernel, at: int) -> bool:
    nearby = {token.text for token in kernel.body[max(at - 4, 0) : at + 4]}
    return bool(nearby & _CHECKING)


_BAD = """kernel void put(device float* out [[buffer(0)]], device const long* indices [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  const long target = indices[index];
  out[target] = 1.0f;
}
"""
RULE = Rule(
    "unchecked-index",
    Severity.WARNING,
    "A kernel writes at an index that a tensor holds, and does not check it.",
    _check,
    bad=(metal_case(_BAD),),
    good=(
        metal_case(
            _BAD.replace("  out[target]", "  if (target < 0 || target >= 8) {\n    return;\n  }\n  out[target]")
        ),
        metal_case(_BAD.replace("out[target] = 1.0f", "out[index] = float(target)")),
    ),
)
