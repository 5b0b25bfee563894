"""What the threads of a kernel do with memory, with each other and with indices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from porter.languages.lexer import Token
from porter.metal.lint_checks import is_written
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import Kernel, find_changed_kernels
from porter.review.rule import metal_case, rule

_POSITIONS = (
    "thread_position_in_grid", "thread_index_in_threadgroup", "thread_position_in_threadgroup",
    "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
)  # fmt: skip
_TOGETHER = frozenset({"threadgroup_barrier", "simdgroup_barrier"})
_DIVERGING = """kernel void total(device float* out [[buffer(0)]], constant uint& count [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  if (index >= count) {
    return;
  }
  float sum = simd_sum(out[index]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[index] = sum;
}
"""


@rule(
    Severity.ERROR,
    "Some threads of a kernel return before a barrier or a simdgroup reduction.",
    bad=(metal_case(_DIVERGING),),
    good=(
        metal_case(_DIVERGING.replace("  if (index >= count) {\n    return;\n  }\n", "")),
        metal_case(_DIVERGING.replace("if (index >= count)", "if (count == 0)")),
    ),
)
def divergent_barrier(change: Change) -> Iterator[Remark]:
    """A barrier waits for every thread of a threadgroup: none may return before it (PyTorch 180709, 191104)."""
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


_UNORDERED = """kernel void shift(device float* out [[buffer(0)]], uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float row[256];
  row[lane] = out[lane];
  out[lane] = row[255 - lane];
}
"""


@rule(
    Severity.ERROR,
    "A kernel reads threadgroup memory that other threads wrote, with no barrier between.",
    bad=(metal_case(_UNORDERED),),
    good=(
        metal_case(
            _UNORDERED.replace("  out[lane] =", "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  out[lane] =")
        ),
        metal_case(_UNORDERED.replace("row[255 - lane]", "row[lane]")),
    ),
)
def missing_barrier(change: Change) -> Iterator[Remark]:
    """What a thread writes to threadgroup memory, others see behind a barrier only."""
    for kernel in find_changed_kernels(change):
        # The arrays that a kernel declares in threadgroup memory, and those that it gets there
        declared = [p.name for p in kernel.parameters if p.space == "threadgroup" and p.name]
        for at, token in enumerate(kernel.body[:-3]):
            if token.text == "threadgroup" and kernel.body[at - 1].text in ("{", ";", "}"):
                end = next((k for k in range(at, len(kernel.body)) if kernel.body[k].text in ("[", ";")), at)
                if kernel.body[end].text == "[":
                    declared.append(kernel.body[end - 1].text)
        for name in declared:
            yield from _check_array(kernel, name)


def _check_array(kernel: Kernel, name: str) -> Iterator[Remark]:
    """The first read of an array behind a write of another element, with no barrier between."""
    body, written = kernel.body, ""
    for at, token in enumerate(body[:-1]):
        if token.text == "threadgroup_barrier":
            written = ""
        if token.text != name or body[at + 1].text != "[" or (at and body[at - 1].text in ("float", "threadgroup")):
            continue
        index = "".join(later.text for later in kernel.subscript(at + 1))
        if is_written(body, at):
            written = written or index
        elif written and written != index:
            yield kernel.file.remark(
                token.start,
                f"kernel `{kernel.name}` reads `{name}[{index}]` behind `{name}[{written}]`, with no barrier between",
                "Put `threadgroup_barrier(mem_flags::mem_threadgroup)` between the write and the read.",
            )
            return


_REDUCTIONS = frozenset({"simd_sum", "simd_product", "simd_max", "simd_min", "simd_and", "simd_or", "simd_xor"})
_IN_GROUP = ("thread_index_in_threadgroup", "thread_position_in_threadgroup")
_IN_SIMDGROUP = ("thread_index_in_simdgroup", "simdgroup_index_in_threadgroup")
_HALF_TOTAL = """kernel void total(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    uint tid [[thread_index_in_threadgroup]]) {
  float sum = simd_sum(x[tid]);
  if (tid == 0) {
    out[0] = sum;
  }
}
"""


@rule(
    Severity.ERROR,
    "A kernel stores what `simd_sum` gives one thread of a threadgroup, which may be wider than a simdgroup.",
    bad=(metal_case(_HALF_TOTAL), metal_case(_HALF_TOTAL.replace("simd_sum", "simd_max"))),
    good=(
        metal_case(_HALF_TOTAL.replace("thread_index_in_threadgroup", "thread_index_in_simdgroup")),
        metal_case(_HALF_TOTAL.replace("  if", "  threadgroup float parts[32]; parts[tid / 32] = sum;\n  if")),
    ),
)
def simdgroup_total(change: Change) -> Iterator[Remark]:
    """`simd_sum` adds the values of 32 threads: the total of a wider threadgroup takes a second step."""
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


_ATOMIC = ("atomic", "Atomic", "ErrorMessages")
_WRITABLE = """kernel void scale(device float* out [[buffer(0)]], device float& alpha [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  out[index] = out[index] * alpha;
}
"""


@rule(
    Severity.WARNING,
    "A kernel declares what it only reads as writable: a scalar in `device` memory, a tensor without `const`.",
    bad=(
        metal_case(_WRITABLE),
        metal_case(_WRITABLE.replace("device float& alpha", "device float* alpha").replace("* alpha;", "* alpha[0];")),
    ),
    good=(
        metal_case(_WRITABLE.replace("device float& alpha", "constant float& alpha")),
        metal_case(_WRITABLE.replace("* alpha;", "* alpha; alpha = 0;")),
        metal_case(_WRITABLE.replace("out[index] * alpha", "load(alpha)")),
    ),
)
def read_only_writable(change: Change) -> Iterator[Remark]:
    """What a kernel only reads is `constant` or `device const`: the host binds it as such (PyTorch 186580, 181650)."""
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


_INTEGERS = frozenset({"int", "long", "uint", "ulong", "int64_t", "int32_t", "uint32_t", "index_t", "IndexT", "I"})
_CHECKING = frozenset({"<", ">=", "<=", ">", "ERROR_IF_NOT", "TORCH_REPORT_ERROR", "clamp", "min"})
_UNCHECKED = """kernel void put(device float* out [[buffer(0)]], device const long* indices [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  const long target = indices[index];
  out[target] = 1.0f;
}
"""


@rule(
    Severity.WARNING,
    "A kernel writes at an index that a tensor holds, and does not check it.",
    bad=(metal_case(_UNCHECKED),),
    good=(
        metal_case(
            _UNCHECKED.replace("  out[target]", "  if (target < 0 || target >= 8) {\n    return;\n  }\n  out[target]")
        ),
        metal_case(_UNCHECKED.replace("out[target] = 1.0f", "out[index] = float(target)")),
    ),
)
def unchecked_index(change: Change) -> Iterator[Remark]:
    """An index that a tensor holds is checked before it addresses a write (PyTorch 189968 to 189972)."""
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
        if name in _texts(kernel.subscript(at + 1)):
            yield at


def _is_checked(kernel: Kernel, at: int) -> bool:
    nearby = {token.text for token in kernel.body[max(at - 4, 0) : at + 4]}
    return bool(nearby & _CHECKING)


_NARROW = frozenset({"int", "uint", "int32_t", "uint32_t", "unsigned"})
_WIDE = frozenset({"long", "ulong", "int64_t", "uint64_t", "size_t"})
_NARROW_OFFSET = """kernel void copy(device float* out [[buffer(0)]], device const float* x [[buffer(1)]],
    constant long* strides [[buffer(2)]], uint2 index [[thread_position_in_grid]]) {
  uint offset = index.y * strides[0] + index.x * strides[1];
  out[offset] = x[offset];
}
"""


@rule(
    Severity.ERROR,
    "A kernel computes an offset of 64-bit strides in 32 bits.",
    bad=(
        metal_case(_NARROW_OFFSET),
        metal_case(
            _NARROW_OFFSET.replace("index.y * strides[0] + index.x * strides[1];", "0; offset += index.x * strides[1];")
        ),
    ),
    good=(metal_case(_NARROW_OFFSET.replace("uint offset", "ulong offset")),),
)
def index_width(change: Change) -> Iterator[Remark]:
    """Offsets pass 32 bits: a product of an index and a stride is computed in 64 (PyTorch 189960, 194082, 197407)."""
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
