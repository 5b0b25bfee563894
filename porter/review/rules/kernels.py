"""What the threads of a kernel do with memory, with each other and with indices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from porter.core.layout import KERNELS
from porter.languages.lexer import Token
from porter.metal.lint_checks import is_written
from porter.review.change import Change, Remark
from porter.review.metal_facts import Kernel, find_changed_functions, find_changed_kernels
from porter.review.rule import Case, Severity, metal_case, rule

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


_REUSED = """kernel void shifts(device float* out [[buffer(0)]], constant uint& count [[buffer(1)]],
    uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float row[256];
  for (uint i = 0; i < count; i++) {
    row[lane] = out[i * 256 + lane];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i * 256 + lane] = row[255 - lane];
  }
}
"""


_BY_ONE = """kernel void scale(device float* out [[buffer(0)]], constant uint& count [[buffer(1)]],
    uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float total[1];
  if (lane == 0) {
    total[0] = out[count];
  }
  out[lane] = out[lane] * total[0];
}
"""
_BY_ONE_IN_ORDER = _BY_ONE.replace("  out[lane] =", "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  out[lane] =")


_FILLED = """kernel void fill(device float* out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]]) {
  threadgroup float parts[32];
  if (group == 0) {
    parts[lane] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    out[group] = parts[group];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = parts[lane];
}
"""
_BARRIER = "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
_BY_ONE_TWICE = _FILLED.replace("group == 0", "lane == 0").replace("parts[lane] = 0", "parts[0] = 0")


@rule(
    Severity.ERROR,
    "A kernel reads threadgroup memory that other threads wrote, with no barrier between.",
    bad=(
        Case(
            {f"{KERNELS}/Planted.metal": _FILLED.replace(_BARRIER, "", 1)},
            before={f"{KERNELS}/Planted.metal": _FILLED},
        ),
        metal_case(_UNORDERED),
        metal_case(_REUSED),
        metal_case(_BY_ONE),
        metal_case(_BY_ONE.replace("total[1]", "total").replace("total[0]", "total")),
        Case({f"{KERNELS}/Planted.metal": _BY_ONE}, before={f"{KERNELS}/Planted.metal": _BY_ONE_IN_ORDER}),
    ),
    good=(
        Case(
            {f"{KERNELS}/Planted.metal": _FILLED.replace(_BARRIER + _BARRIER, _BARRIER)},
            before={f"{KERNELS}/Planted.metal": _FILLED},
        ),
        Case(
            {
                f"{KERNELS}/Planted.metal": _FILLED.replace("out[group] = parts[group]", "parts[lane + 1] = 1").replace(
                    _BARRIER, "", 1
                )
            },
            before={f"{KERNELS}/Planted.metal": _FILLED.replace("out[group] = parts[group]", "parts[lane + 1] = 1")},
        ),
        Case(
            {f"{KERNELS}/Planted.metal": _BY_ONE_TWICE.replace(_BARRIER, "", 1)},
            before={f"{KERNELS}/Planted.metal": _BY_ONE_TWICE},
        ),
        Case(
            {f"{KERNELS}/Planted.metal": _FILLED.replace(_BARRIER, "", 1).replace("[group]", "[lane]")},
            before={f"{KERNELS}/Planted.metal": _FILLED.replace("[group]", "[lane]")},
        ),
        metal_case(_BY_ONE_IN_ORDER),
        metal_case(_BY_ONE.replace("if (lane == 0)", "if (count == 0)")),
        metal_case(_BY_ONE.replace("  out[lane] =", "  if (lane == 0) out[lane] =")),
        metal_case(_BY_ONE_IN_ORDER.replace("threadgroup_barrier", "simdgroup_barrier")),
        metal_case(_BY_ONE.replace("  }\n  out[lane] =", "  out[lane] =").replace("total[0];", "total[0];\n  }")),
        metal_case(_REUSED.replace("  }\n}", "    threadgroup_barrier(mem_flags::mem_threadgroup);\n  }\n}")),
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
                scalar = kernel.body[end - 1].text
                if kernel.body[end].text == "[":
                    declared.append(scalar)
                elif scalar.isidentifier():
                    yield from _check_element(kernel, scalar)
        checks = (_check_array, _check_turns, _check_element)
        remarks = [remark for name in declared for check in checks for remark in check(kernel, name)]
        lines = {remark.line for remark in remarks}
        yield from (*remarks, *(remark for remark in _find_joined(kernel, declared) if remark.line not in lines))


def _find_joined(kernel: Kernel, arrays: list[str]) -> Iterator[Remark]:
    """A barrier that is gone from between two parts of a kernel, of which one writes an array and one reads it.

    The parts stay as they were. That the rule has found something else there before the change does not excuse it.
    """
    earlier = kernel.file.earlier.find_again(kernel.function) if kernel.file.earlier.is_readable else None
    if earlier is None:
        return
    code = kernel.file.earlier.code
    before = [token.text for token in code if earlier.body_start <= token.start < earlier.body_end]
    after = [token.text for token in kernel.body]
    branches = list(_find_branches(after, add_made(after, kernel.positions(*_GRID))))
    for start, end in _list_barriers(before):
        if before[:start] + before[end:] != after:
            continue
        around = [(0, 0), *_list_barriers(after), (len(after), len(after))]
        first = max(close for _, close in around if close <= start)
        last = min(begin for begin, _ in around if begin >= start)
        for name in arrays:
            # A type stands before the name where it is declared
            uses = [at for at in range(first, last) if after[at : at + 2] == [name, "["]]
            uses = [at for at in uses if after[at - 1] == "return" or not after[at - 1].isidentifier()]
            # Of two branches one runs
            pairs = [(a, b) for a in uses for b in uses if a < start <= b and "else" not in after[start:b]]
            for one, other in pairs:
                if _are_of_one_thread(branches, one, other):
                    continue
                places = ({t.text for t in kernel.subscript(at + 1)} - {"(", ")"} for at in (one, other))
                if (
                    is_written(kernel.body, one) != is_written(kernel.body, other)
                    and len({*map(frozenset, places)}) > 1
                ):
                    what = f"a barrier is gone between two uses of `{name}` in kernel `{kernel.name}`"
                    hint = "Keep `threadgroup_barrier(mem_flags::mem_threadgroup)` between them."
                    yield kernel.file.remark(kernel.body[other].start, what, hint)
                    break
        return


def _are_of_one_thread(branches: Iterable[tuple[int, int, str]], *places: int) -> bool:
    """Whether statements at all places run where one same condition holds, of one position."""
    guards = ({text for begin, end, text in branches if begin <= at < end} for at in places)
    return any("==" in text for text in set.intersection(*guards))


def _list_barriers(texts: list[str]) -> list[tuple[int, int]]:
    """The tokens of each statement that is a barrier of a threadgroup."""
    starts = [at for at, text in enumerate(texts) if text == "threadgroup_barrier"]
    return [(at, _skip_brackets(texts, at + 1, "(", ")") + 1) for at in starts]


def _check_element(kernel: Kernel, name: str) -> Iterator[Remark]:
    """The first read of what some threads wrote, a variable or an element of a fixed number, behind their `if`."""
    body, texts = kernel.body, [token.text for token in kernel.body]
    positioned = add_made(texts, kernel.positions(*_GRID))
    blocks = list(_find_branches(texts, positioned))
    written: dict[str, tuple[int, set[str]]] = {}  # the element; where the branch that wrote it ends; its conditions
    for at, text in enumerate(texts[:-1]):
        is_ordered = text == "simdgroup_barrier" and "mem_threadgroup" in texts[at : at + 5]
        if text == "threadgroup_barrier" or is_ordered:
            written.clear()
        if text != name or texts[at - 1] in ("threadgroup", "float", "int", "uint", "half", ".", "&"):
            continue
        index = "".join(t.text for t in kernel.subscript(at + 1)) if texts[at + 1] == "[" else ""
        if index and not index.isdigit():
            continue
        if is_written(body, at) or texts[at + 1] == "=":
            around = [(end, condition) for begin, end, condition in blocks if begin <= at < end]
            conditions = {condition for _, condition in around}
            written[index] = min((end for end, _ in around), default=len(texts)), conditions
        elif index in written and at >= written[index][0]:
            if any(begin <= at < end and condition in written[index][1] for begin, end, condition in blocks):
                continue
            what = f"kernel `{kernel.name}` reads `{name}` that one thread wrote, with no barrier between"
            hint = "Put `threadgroup_barrier(mem_flags::mem_threadgroup)` between the write and the read."
            yield kernel.file.remark(body[at].start, what, hint)
            return


def _find_branches(texts: list[str], positioned: set[str]) -> Iterator[tuple[int, int, str]]:
    """The statements that only some threads run, and their condition: of each `if` that asks for their position."""
    for at, text in enumerate(texts[:-1]):
        if text == "if" and texts[at + 1] == "(":
            begin = _skip_brackets(texts, at + 1, "(", ")")
            if positioned & set(texts[at:begin]):
                is_block = texts[begin : begin + 1] == ["{"]
                semicolon = next((k + 1 for k in range(begin, len(texts)) if texts[k] == ";"), len(texts))
                end = _skip_brackets(texts, begin, "{", "}") if is_block else semicolon
                yield begin, end, " ".join(texts[at:begin])


def _check_array(kernel: Kernel, name: str) -> Iterator[Remark]:
    """The first read of an array behind a write of another element, with no barrier between."""
    body, written, writer = kernel.body, "", 0
    texts = [token.text for token in body]
    branches = list(_find_branches(texts, add_made(texts, kernel.positions(*_GRID))))
    for at, token in enumerate(body[:-1]):
        if token.text == "threadgroup_barrier":
            written = ""
        if token.text != name or body[at + 1].text != "[" or (at and body[at - 1].text in ("float", "threadgroup")):
            continue
        index = "".join(later.text for later in kernel.subscript(at + 1))
        if is_written(body, at):
            written, writer = (written, writer) if written else (index, at)
        elif written and written != index and not _are_of_one_thread(branches, writer, at):
            yield kernel.file.remark(
                token.start,
                f"kernel `{kernel.name}` reads `{name}[{index}]` behind `{name}[{written}]`, with no barrier between",
                "Put `threadgroup_barrier(mem_flags::mem_threadgroup)` between the write and the read.",
            )
            return


def _check_turns(kernel: Kernel, name: str) -> Iterator[Remark]:
    """A loop whose next turn writes an array that other threads still read, as no barrier ends a turn."""
    body = kernel.body
    for begin, end in _find_loops(kernel):
        written, is_behind, last_read = "", False, -1
        for at in range(begin, end):
            if body[at].text == "threadgroup_barrier":
                is_behind, last_read = bool(written), -1
            elif body[at].text == name and body[at + 1].text == "[":
                index = "".join(token.text for token in kernel.subscript(at + 1))
                if is_written(body, at):
                    if is_behind:
                        break
                    written = written or index
                elif not written:
                    break
                elif is_behind and index != written:
                    last_read = at
        else:
            if last_read >= 0:
                what = f"the next turn of the loop writes `{name}`, which threads of kernel `{kernel.name}` still read"
                hint = "End the turn with `threadgroup_barrier(mem_flags::mem_threadgroup)`."
                yield kernel.file.remark(body[last_read].start, what, hint)


def _find_loops(kernel: Kernel) -> Iterator[tuple[int, int]]:
    """The tokens of each loop's body, without its brackets."""
    texts = [token.text for token in kernel.body]
    for at, text in enumerate(texts):
        if text not in ("for", "while") or texts[at + 1 : at + 2] != ["("]:
            continue
        begin = _skip_brackets(texts, at + 1, "(", ")")
        if texts[begin : begin + 1] == ["{"]:
            yield begin + 1, _skip_brackets(texts, begin, "{", "}") - 1


def _skip_brackets(texts: list[str], at: int, opening: str, closing: str) -> int:
    depth = 0
    for end in range(at, len(texts)):
        depth += (texts[end] == opening) - (texts[end] == closing)
        if depth == 0:
            return end + 1
    return len(texts)


_REDUCTIONS = frozenset({"simd_sum", "simd_product", "simd_max", "simd_min", "simd_and", "simd_or", "simd_xor"})
_IN_GROUP = ("thread_index_in_threadgroup", "thread_position_in_threadgroup")
_IN_SIMDGROUP = ("thread_index_in_simdgroup", "simdgroup_index_in_threadgroup")
_LIMIT = re.compile(r"\bmax_total_threads_per_threadgroup\s*\(\s*(\d*)")
_SIMD_LANES = 32
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
    bad=(
        metal_case(_HALF_TOTAL),
        metal_case(_HALF_TOTAL.replace("simd_sum", "simd_max")),
        metal_case(f"[[max_total_threads_per_threadgroup(256)]] {_HALF_TOTAL}"),
    ),
    good=(
        metal_case(_HALF_TOTAL.replace("thread_index_in_threadgroup", "thread_index_in_simdgroup")),
        metal_case(f"[[max_total_threads_per_threadgroup(32)]] {_HALF_TOTAL}"),
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
    limit = _LIMIT.search(kernel.function.signature)
    return (
        "threadgroup" in words
        or bool(positions & words)
        or any(word.startswith("atomic_") for word in words)
        # A limit that has a name may be that of a simdgroup
        or (limit is not None and int(limit[1] or 0) <= _SIMD_LANES)
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
_REPORT = "Report an index out of range by TORCH_REPORT_ERROR, and write nothing."
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
    bad=(
        metal_case(_UNCHECKED),
        metal_case(_UNCHECKED.replace("out[target] = 1.0f", "out[indices[index]] = 1.0f")),
        metal_case(
            _UNCHECKED.replace("out[target] = 1.0f", "atomic_fetch_add_explicit(&out[indices[index]], 1, order)")
        ),
        metal_case(_UNCHECKED.replace("out[target] = 1.0f", "atomic_fetch_add_explicit(&out[target], 1, order)")),
    ),
    good=(
        metal_case(_UNCHECKED.replace("out[target] = 1.0f", "out[metal::clamp(indices[index], 0l, 7l)] = 1.0f")),
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
        for at in (at for table in tables for at in _find_subscripts(kernel, table)):
            if not _CHECKING & _texts(kernel.subscript(at + 1)):
                what = f"kernel `{kernel.name}` writes at what a tensor holds, and nothing checks"
                yield kernel.file.remark(kernel.body[at].start, what, _REPORT)
        loaded = {name: at for table in tables for name, at in _find_loaded(kernel, table)}
        for name, start in loaded.items():
            checked = any(_is_checked(kernel, at) for at, t in enumerate(kernel.body) if t.text == name)
            written = [at for at in _find_subscripts(kernel, name) if at > start]
            if written and not checked:
                yield kernel.file.remark(
                    kernel.body[written[0]].start,
                    f"kernel `{kernel.name}` writes at `{name}`, which a tensor holds and nothing checks",
                    _REPORT,
                )


def _is_written_there(body: tuple[Token, ...], at: int) -> bool:
    """Whether a subscript is written, by an atomic operation too."""
    is_atomic = at > 2 and body[at - 1].text == "&" and body[at - 3].text.startswith("atomic_")
    return is_atomic or is_written(body, at)


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
        if body[at + 1].text != "[" or not _is_written_there(body, at) or token.text == name:
            continue
        if name in _texts(kernel.subscript(at + 1)):
            yield at


def _is_checked(kernel: Kernel, at: int) -> bool:
    nearby = {token.text for token in kernel.body[max(at - 4, 0) : at + 4]}
    return bool(nearby & _CHECKING)


_BINNING = """kernel void fill_bins(device const long* x [[buffer(0)]], device float* bins [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  const long bin = x[index] / 2;
  bins[bin] += 1;
}
"""
_NARROW = frozenset({"int", "uint", "int32_t", "uint32_t", "unsigned"})
_WIDE = frozenset({"long", "ulong", "int64_t", "uint64_t", "size_t"}) | {
    f"{kind}{n}" for kind in ("long", "ulong") for n in "234"
}
_INDEX = re.compile(r"ind(?:ex|ices)|idx", re.I)
_NARROW_OFFSET = """kernel void copy(device float* out [[buffer(0)]], device const float* x [[buffer(1)]],
    constant long* strides [[buffer(2)]], uint2 index [[thread_position_in_grid]]) {
  uint offset = index.y * strides[0] + index.x * strides[1];
  out[offset] = x[offset];
}
"""


_NARROW_HELPER = """template <typename T>
T read(constant T* x, constant long* indices, ulong2 strides, uint2 index) {
  uint at = indices[index.y];
  uint offset = index.x * strides.x;
  return x[at + offset];
}
"""
_ROWS = """kernel void rows(device float* out [[buffer(0)]], constant uint& size [[buffer(1)]],
    uint row [[threadgroup_position_in_grid]]) {
  out += row * size_t(size);
  out[0] = 1;
}
"""
_SUMMED = """kernel void put(device float* out [[buffer(0)]], constant void* steps [[buffer(1)]],
    constant uint& count [[buffer(2)]], uint index [[thread_position_in_grid]]) {
  constant long* strides = (constant long*)steps;
  long offset = 0;
  for (uint i = 0; i < count; i++) {
    offset += index * strides[i];
  }
  out[offset] = 1;
}
"""
_UNWIDENED = Case(
    {f"{KERNELS}/Planted.metal": _ROWS.replace("size_t(size)", "size")}, before={f"{KERNELS}/Planted.metal": _ROWS}
)
_WIDENED = re.compile(
    r"\b(?:size_t|u?long|u?int64_t)\s*\((\w+)\)|\bstatic_cast<(?:size_t|u?long|u?int64_t)>\s*\((\w+)\)"
)


@rule(
    Severity.ERROR,
    "A kernel computes an offset of 64-bit strides in 32 bits.",
    bad=(
        metal_case(_NARROW_OFFSET),
        metal_case(
            _NARROW_OFFSET.replace("index.y * strides[0] + index.x * strides[1];", "0; offset += index.x * strides[1];")
        ),
        metal_case(_NARROW_HELPER.replace("uint at =", "long at =")),
        metal_case(_NARROW_HELPER.replace("uint offset", "ulong offset")),
        metal_case(
            _NARROW_HELPER.replace("uint offset", "ulong offset")
            .replace("{\n", "{\n  constant long* index_ = indices;\n", 1)
            .replace("indices[", "index_[")
        ),
        metal_case(
            _NARROW_HELPER.replace("uint offset = index.x * strides.x", "int offset = (strides.x + strides.y) / 2")
        ),
        _UNWIDENED,
        Case(
            {f"{KERNELS}/Planted.metal": _SUMMED.replace("long offset", "int offset")},
            before={f"{KERNELS}/Planted.metal": _SUMMED},
        ),
    ),
    good=(
        Case(
            {f"{KERNELS}/Planted.metal": _SUMMED.replace("long offset", "int offset").replace("out[offset]", "out[0]")},
            before={f"{KERNELS}/Planted.metal": _SUMMED},
        ),
        Case(
            {f"{KERNELS}/Planted.metal": _SUMMED.replace("long offset", "int offset").replace("strides[i]", "(i + 1)")},
            before={f"{KERNELS}/Planted.metal": _SUMMED},
        ),
        Case(
            {f"{KERNELS}/Planted.metal": _SUMMED.replace("  for", "  { int offset = 0; }\n  for")},
            before={f"{KERNELS}/Planted.metal": _SUMMED},
        ),
        Case(
            {
                f"{KERNELS}/Planted.metal": _SUMMED.replace(
                    "  long offset", "  { int offset = 0; offset += 4; }\n  long offset"
                )
            },
            before={
                f"{KERNELS}/Planted.metal": _SUMMED.replace("  long offset", "  { long offset = 0; }\n  long offset")
            },
        ),
        metal_case(_NARROW_OFFSET.replace("uint offset", "ulong offset")),
        metal_case(_NARROW_HELPER.replace("uint offset", "ulong offset").replace("uint at =", "long at =")),
        metal_case(_NARROW_HELPER.replace("uint offset", "ulong offset").replace("indices", "sizes")),
        metal_case(
            _NARROW_HELPER.replace("uint offset", "ulong offset").replace(
                "indices[index.y]", "indices[index.y] < 0 ? indices[index.y] + 8 : indices[index.y]"
            )
        ),
        metal_case(
            _BINNING.replace(
                "const long bin = x[index] / 2;\n  bins[bin] += 1", "int a = x[index] * 2;\n  bins[index] = a"
            )
        ),
        metal_case(
            "inline int extent(long size, long step) {\n  int extent = (size - 1) * step;\n  return extent;\n}\n"
        ),
        Case(
            {
                f"{KERNELS}/Planted.metal": _ROWS.replace("size_t(size)", "size").replace(
                    "constant uint", "constant ulong"
                )
            },
            before={f"{KERNELS}/Planted.metal": _ROWS},
        ),
        Case(
            {f"{KERNELS}/Planted.metal": f"// by size\n{_ROWS}"},
            before={f"{KERNELS}/Planted.metal": f"// by size_t(size)\n{_ROWS}"},
        ),
    ),
)
def index_width(change: Change) -> Iterator[Remark]:
    """Offsets pass 32 bits: a product of an index and a stride is computed in 64 (PyTorch 189960, 194082, 197407)."""
    for kernel in find_changed_functions(change):
        held = {p.name for p in kernel.parameters if _WIDE & {token.text for token in p.tokens} and p.name}
        # What a tensor holds is data; strides are constants
        wide = held - {p.name for p in kernel.parameters if p.space == "device"}
        texts = [token.text for token in kernel.body]
        tables = {
            name for kind, star, name in zip(texts, texts[1:], texts[2:], strict=False) if star == "*" and kind in _WIDE
        }
        for at, token in enumerate(kernel.body):
            if token.text not in _NARROW or kernel.body[at - 1].text in ("<", "("):
                continue
            name, value = _read_declared(kernel, at)
            if not name or not kernel.file.is_added(token.start):
                continue
            if (({"*", "+="} & set(value) and wide & set(value)) or _adds_wide(value, wide)) and _addresses(
                kernel, name
            ):
                yield _remark(kernel, at, f"`{name}` of `{kernel.name}` holds a result of 64-bit numbers in 32")
            elif (
                token.text.startswith("u")
                and value[1:2] == ["["]
                and value[0] in held | tables
                and _INDEX.search(value[0])
                and _skip_brackets(value, 1, "[", "]") == len(value)
                and not any(_is_checked(kernel, k) for k, text in enumerate(texts) if text == name)
            ):
                yield _remark(
                    kernel, at, f"`{name}` of `{kernel.name}` holds an index of 64 bits, which may be negative"
                )
        strides = {
            name for space, kind, star, name in zip(texts, texts[1:], texts[2:], texts[3:], strict=False)
            if space == "constant" and kind in _WIDE and star == "*" and name.isidentifier()
        }  # fmt: skip
        yield from _find_accumulated(kernel, wide | strides)
    for file in change.metal:
        for line, earlier in file.find_rewritten(_WIDENED, r"\1\2"):
            names = {match[1] or match[2] for match in _WIDENED.finditer(earlier.split("//")[0])}
            text = file.text_around(line)
            # In code, and of a number that is not declared in 64 bits now
            names &= {token.text for _, token in file.added_tokens() if file.line_at(token.start) == line}
            if not any(not re.search(rf"\b(?:{'|'.join(_WIDE)})\s*&?\s*{name}\b", text) for name in names):
                continue
            hint = "Keep the cast: an offset passes 32 bits where a tensor has more elements."
            yield Remark(file.path, line, f"`{earlier}` was computed in 64 bits", hint)


def _addresses(kernel: Kernel, name: str) -> bool:
    """Whether a local, or what is made of it, is within a subscript or is added to a pointer."""
    texts = [token.text for token in kernel.body]
    derived = add_made(texts, {name}, through_memory=False)
    pointers = {p.name for p in kernel.parameters if "*" in _texts(p.tokens)}
    pointers |= {b for a, b in pairwise(texts) if a == "*"}
    for at, text in enumerate(texts[:-1]):
        if text == "[" and derived & _texts(kernel.subscript(at)):
            return True
        if text in pointers and texts[at + 1] in ("+", "+="):
            end = next((k for k in range(at, len(texts)) if texts[k] == ";"), len(texts))
            if derived & set(texts[at + 1 : end]):
                return True
    return False


def _adds_wide(value: list[str], wide: set[str]) -> bool:
    """Whether a value is a sum of 64-bit numbers alone, or what is made of one."""
    names = [word for word in value if word.isidentifier() and word not in ("x", "y", "z", "w")]
    return "+" in value and len(names) > 1 and wide.issuperset(names)


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
    scopes = [dict[str, int]()]  # where each block's names were declared
    for at, token in enumerate(body[:-1]):
        if token.text == "{":
            scopes.append(dict(scopes[-1]))
        elif token.text == "}" and len(scopes) > 1:
            scopes.pop()
        declared = scopes[-1]
        if at + 2 < len(body) and token.text in {*_NARROW, *_WIDE} and body[at + 2].text == "=":
            declared[body[at + 1].text] = at
        if token.text in declared and body[at + 1].text == "+=":
            kind = declared[token.text]
            end = next((k for k in range(at, len(body)) if body[k].text == ";"), at)
            value = {later.text for later in body[at:end]}
            is_narrow = body[kind].text in _NARROW and body[kind - 1].text not in ("<", "(")
            is_new = kernel.file.touches(token.start, body[end].start) or kernel.file.is_added(body[kind].start)
            if is_narrow and is_new and "*" in value and wide & value and _addresses(kernel, token.text):
                yield _remark(kernel, kind, f"`{token.text}` of kernel `{kernel.name}` adds up offsets in 32 bits")


def _remark(kernel: Kernel, at: int, what: str) -> Remark:
    hint = "Compute it in `ulong`, or make the type a template parameter that the host chooses by `mtlIdxSuffix`."
    return kernel.file.remark(kernel.body[at].start, what, hint)


_GRID = ("thread_position_in_grid", *_IN_GROUP, *_IN_SIMDGROUP, "threadgroup_position_in_grid")
_ADDING = """kernel void add_up(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    uint index [[thread_position_in_grid]]) {
  out[0] += x[index];
}
"""
_ATOMIC_HINT = "Use an atomic, or let the threads of a group add up first and one of them store."
_COUNTING_UP = """void count(device atomic_uint* bins, uint at) {
  atomic_fetch_add_explicit(bins + at, 1u, memory_order_relaxed);
}
"""
_COUNTING_PLAINLY = """void count(device uint* bins, uint at) {
  bins[at] += 1;
}
"""
_COUNTING_BY_CAST = """void count(device void* bins, uint at) {
  *((device uint*)bins + at) += 1;
}
"""
_COUNTING_LOCALLY = """void count(device uint* bins, uint at) {
  uint parts[4] = {0, 0, 0, 0};
  parts[at % 4] += 1;
  bins[at] = parts[0];
}
"""
_UPDATES = frozenset({"+=", "-=", "*=", "|=", "&=", "^="})


@rule(
    Severity.ERROR,
    "All threads of a kernel update one element of memory, and not atomically.",
    bad=(
        metal_case(_ADDING),
        Case({f"{KERNELS}/Planted.metal": _COUNTING_PLAINLY}, before={f"{KERNELS}/Planted.metal": _COUNTING_UP}),
        Case({f"{KERNELS}/Planted.metal": _COUNTING_BY_CAST}, before={f"{KERNELS}/Planted.metal": _COUNTING_UP}),
        metal_case(_BINNING),
    ),
    good=(
        metal_case(_COUNTING_PLAINLY),
        metal_case(_BINNING.replace("bins[bin]", "bins[index * 8 + bin]")),
        metal_case(_BINNING.replace("  bins[bin]", "  bins += index * 8;\n  bins[bin]")),
        metal_case(_BINNING.replace("  bins[bin]", "  if (index == 0) bins[bin]")),
        Case(
            {
                f"{KERNELS}/Planted.metal": _COUNTING_LOCALLY.replace(
                    "  parts[at % 4] +=", "  if (((device uint*)bins)[at] > 1) parts[at % 4] +="
                )
            },
            before={f"{KERNELS}/Planted.metal": _COUNTING_UP},
        ),
        Case(
            {f"{KERNELS}/Planted.metal": _COUNTING_LOCALLY},
            before={f"{KERNELS}/Planted.metal": _COUNTING_UP},
        ),
        metal_case(_ADDING.replace("out[0] +=", "out[index] +=")),
        metal_case(_ADDING.replace("  out[0]", "  if (index == 0) out[0]")),
        metal_case(_ADDING.replace("  out[0]", "  const uint at = index / 2;\n  out[at]")),
    ),
)
def shared_update(change: Change) -> Iterator[Remark]:
    """Two threads that read an element before either writes it lose one update: memory that they share is atomic."""
    for kernel in find_changed_kernels(change):
        texts = [token.text for token in kernel.body]
        positions = kernel.positions(*_GRID)
        positioned = add_made(texts, positions)
        unique = add_made(texts, positions, through_memory=False)
        loaded = add_made(texts, _find_read(texts, unique))
        buffers = {p.name for p in kernel.buffers if p.space == "device"}
        for at, name in enumerate(texts[:-2]):
            if name not in buffers or texts[at + 1] != "[":
                continue
            close = _skip_brackets(texts, at + 1, "[", "]")
            guarded = any(positioned & set(texts[k : _skip_brackets(texts, k + 1, "(", ")")]) for k in range(at)
                          if texts[k] in ("if", "for", "while") and texts[k + 1] == "(")  # fmt: skip
            is_update = texts[close : close + 1] and texts[close] in _UPDATES
            index = set(texts[at + 2 : close])
            # A pointer may be placed at a row of the thread's own
            is_shared = positions and not guarded and name not in unique and not index & unique
            if is_shared and is_update and index & loaded:
                what = f"threads of kernel `{kernel.name}` update `{name}` at an index that several may have"
                yield kernel.file.remark(kernel.body[at].start, what, _ATOMIC_HINT)
            if positioned and is_update and not guarded and not positioned & set(texts[at + 2 : close]):
                element = "".join(texts[at + 2 : close - 1])
                what = f"all threads of kernel `{kernel.name}` update `{name}[{element}]`"
                yield kernel.file.remark(kernel.body[at].start, what, _ATOMIC_HINT)
    for function in find_changed_functions(change):
        body = function.body
        if "atomic_" not in function.file.text_before(function.function) or any("atomic" in t.text for t in body):
            continue
        for at, token in enumerate(body):
            if token.text not in _UPDATES or not function.file.is_added(token.start):
                continue
            start = next((k + 1 for k in range(at, -1, -1) if body[k].text in (";", "{", "}")), 0)
            if body[start].text in ("if", "for", "while"):
                start = _skip_brackets([t.text for t in body], start + 1, "(", ")")
            words = [t.text for t in body[start:at] if t.text.isidentifier()]
            is_memory = "device" in words or any(
                p.name in words[:1] and p.space == "device" for p in function.parameters
            )
            if is_memory and (body[start].text == "*" or body[at - 1].text == "]"):
                what = f"`{function.name}` updated memory atomically, and does not any more"
                yield function.file.remark(token.start, what, _ATOMIC_HINT)


def _find_read(texts: list[str], unique: set[str]) -> set[str]:
    """The locals that are read from memory at a place of the thread's own."""
    names = set[str]()
    for at, text in enumerate(texts):
        if text == "=" and at and texts[at - 1].isidentifier():
            value = texts[at : next((k for k in range(at, len(texts)) if texts[k] == ";"), len(texts))]
            if "[" in value and unique & set(value[value.index("[") :]):
                names.add(texts[at - 1])
    return names


def add_made(texts: list[str], names: set[str], through_memory: bool = True) -> set[str]:
    """Names, and the locals that are made of them; of what is read from memory too, unless `through_memory` is off."""
    derived = set(names)
    for at, text in enumerate(texts):
        if text in ("=", "+=") and at and texts[at - 1].isidentifier():
            end = next((k for k in range(at, len(texts)) if texts[k] == ";"), len(texts))
            if derived & set(texts[at:end]) and (through_memory or "[" not in texts[at:end]):
                derived.add(texts[at - 1])
    return derived
