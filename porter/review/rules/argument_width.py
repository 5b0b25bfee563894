"""What host code binds to a kernel has the size of what the kernel reads: no int64_t for `constant int&` (155304)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.languages.source import Function
from porter.review.change import Change, ChangedFile, Remark
from porter.review.finding import Severity
from porter.review.host_facts import find_named_kernels
from porter.review.metal_facts import Kernel, find_kernels
from porter.review.rule import Rule, host_case

_SIZES = {
    "bool": 1, "char": 1, "uchar": 1, "int8_t": 1, "uint8_t": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4,
    "int32_t": 4, "uint32_t": 4, "float": 4, "unsigned": 4, "long": 8, "ulong": 8, "int64_t": 8, "uint64_t": 8,
    "size_t": 8, "double": 8,
}  # fmt: skip
_SET = re.compile(r"\bmtl_setArgs(?P<first><\d+>)?\(\s*\w+\s*,(?P<arguments>[^;]*)\)\s*;")
_BYTES = re.compile(r"\bmtl_setBytes\(\s*\w+\s*,\s*(?P<name>\w+)\s*,\s*(?P<index>\d+)\s*\)")


def _check(change: Change) -> Iterator[Remark]:
    kernels: dict[str, list[Kernel]] = {}
    paths = {file.path for file in change.files}
    for path, text in change.kernel_texts.items():
        if path.endswith(".metal") and "kernel" in text:
            for kernel in find_kernels(ChangedFile(path, "", text)):
                kernels.setdefault(kernel.name, []).append(kernel)
    for path, text in change.host_texts.items():
        if "mtl_set" not in text:
            continue
        file = ChangedFile(path, "" if path in paths else text, text)
        if not file.is_readable:
            continue
        for function in file.source.functions():
            names = {named.prefix.rstrip("_") for named in find_named_kernels(file, function.start, function.end)}
            candidates = [k for name in names for k in kernels.get(name, ())]
            relevant = path in paths or any(k.file.path in paths for k in candidates)
            if len(names) == 1 and len(candidates) == 1 and relevant:
                yield from _compare(file, function, candidates[0])


def _compare(file: ChangedFile, function: Function, kernel: Kernel) -> Iterator[Remark]:
    for index, name, start in _list_bound(file.after, function):
        declared = re.search(rf"\b(\w+)\s+{re.escape(name)}\s*(?:=|;|,|\)|\{{)", file.text_of(function))
        size = _SIZES.get(declared[1], 0) if declared else 0
        if not size or index >= len(kernel.buffers):
            continue
        parameter = kernel.buffers[index]
        texts = [token.text for token in parameter.tokens]
        kind = next((text for text in texts if text in _SIZES), "")
        if parameter.space == "constant" and "&" in texts and kind and _SIZES[kind] != size:
            assert declared is not None
            what = f"`{name}` is {declared[1]}, and kernel `{kernel.name}` reads it as {kind}"
            yield file.remark(start, what, "Give both sides a type of the same size.")


def _list_bound(text: str, function: Function) -> Iterator[tuple[int, str, int]]:
    """The index, the name and the place of each plain local that is bound."""
    for match in _SET.finditer(text, function.body_start, function.body_end):
        first = int(match["first"][1:-1]) if match["first"] else 0
        arguments = _split(match["arguments"])
        for index, argument in enumerate(arguments, first):
            if argument.strip().isidentifier():
                yield index, argument.strip(), match.start()
    for match in _BYTES.finditer(text, function.body_start, function.body_end):
        yield int(match["index"]), match["name"], match.start()


def _split(text: str) -> list[str]:
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


_HOST = """void planted(const Tensor& self, Tensor& out) {
  int64_t rows = self.size(0);
  auto state = lib.getPipelineStateForFunc("planted");
  mtl_setArgs(encoder, self.contiguous(), out, rows);
}
"""
_KERNEL = """kernel void planted(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    constant int& rows [[buffer(2)]], uint index [[thread_position_in_grid]]) {
  out[index] = x[index] * rows;
}
"""
RULE = Rule(
    "argument-width",
    Severity.ERROR,
    "Host code binds a number of another size than the kernel reads.",
    _check,
    bad=(
        host_case(_HOST, _KERNEL),
        host_case(_HOST.replace("int64_t rows = self.size(0)", "double rows = 1.0"), _KERNEL),
    ),
    good=(
        host_case(_HOST, _KERNEL.replace("constant int&", "constant long&")),
        host_case(_HOST.replace("int64_t rows", "int rows"), _KERNEL),
    ),
)
