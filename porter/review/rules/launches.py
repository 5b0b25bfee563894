"""What a launch and its kernel agree on: how many threads there are, and which tensor stands behind which argument."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.core.layout import KERNELS, OPERATIONS
from porter.languages.lexer import Token
from porter.languages.source import Function
from porter.metal.lint_checks import Parameter
from porter.review.change import Change, ChangedFile, Remark
from porter.review.metal_facts import Kernel, NamedKernel, find_kernels, find_named_kernels
from porter.review.rule import Case, Severity, host_case, rule
from porter.review.rules.bindings import (
    SET_ARGUMENTS,
    SIZES,
    TENSOR,
    blank_comments,
    count_bytes,
    list_bound,
    pair_launches,
)
from porter.review.rules.kernels import add_made

_GROUPS = re.compile(r"dispatchThreadgroups\s*:")
_ROUNDED_UP = re.compile(r"\bceil_div\b|\bdivup\b|\+\s*(?:\d+|\w+\s*-\s*1)\s*\)\s*/")
_BRANCHES = frozenset({"if", "for", "while", "min", "clamp", "select"})
_TAILED_HOST = """void planted(const Tensor& self, Tensor& out) {
  int64_t count = self.numel();
  auto state = lib.getPipelineStateForFunc("planted");
  mtl_setArgs(encoder, self.contiguous(), out, count);
  [encoder dispatchThreadgroups:MTLSizeMake(at::ceil_div(count, int64_t(256)), 1, 1) threadsPerThreadgroup:group];
}
"""
_TAILED_KERNEL = """kernel void planted(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    constant long& count [[buffer(2)]], uint index [[thread_position_in_grid]]) {
  out[index] = x[index] * 2;
}
"""


@rule(
    Severity.ERROR,
    "Host code rounds a grid up to whole threadgroups, and the kernel accesses memory at each thread's position.",
    bad=(
        host_case(_TAILED_HOST, _TAILED_KERNEL),
        host_case(_TAILED_HOST.replace("at::ceil_div(count, int64_t(256))", "(count + 255) / 256"), _TAILED_KERNEL),
        host_case(
            _TAILED_HOST.replace("at::ceil_div(count, int64_t(256))", "groups").replace(
                "  auto", "  const auto groups = (count + size - 1) / size;\n  auto"
            ),
            _TAILED_KERNEL,
        ),
    ),
    good=(
        host_case(_TAILED_HOST, _TAILED_KERNEL.replace("  out[index] =", "  if (index < count)\n    out[index] =")),
        host_case(
            _TAILED_HOST, _TAILED_KERNEL.replace("  out[index]", "  const long at = index;\n  if (at < count) out[at]")
        ),
        host_case(_TAILED_HOST.replace("dispatchThreadgroups", "dispatchThreads"), _TAILED_KERNEL),
    ),
)
def unguarded_tail(change: Change) -> Iterator[Remark]:
    """Threads of a last, partial threadgroup access what stands behind a tensor unless the kernel asks (180709)."""
    for file, function, kernel in _pair_changed(change):
        launched = _GROUPS.search(file.after, function.body_start, function.body_end)
        rounded = _ROUNDED_UP.search(file.after, function.body_start, function.body_end)
        position = kernel.positions("thread_position_in_grid")
        if launched and rounded and position and not _asks_about(kernel, position):
            what = f"the grid is rounded up to whole threadgroups, and kernel `{kernel.name}` guards no access"
            yield file.remark(
                rounded.start(), what, "Write `dispatchThreads`, or return where the position is past the end."
            )


def _pair_changed(change: Change) -> Iterator[tuple[ChangedFile, Function, Kernel]]:
    """Each host function that launches one kernel, with this kernel, where a line of either is new or different."""
    metal = {file.path: file for file in change.metal}
    for file, function, kernel in pair_launches(change):
        changed = metal.get(kernel.file.path)
        in_kernel = changed is not None and changed.touches(kernel.function.start, kernel.function.end)
        if in_kernel or file.touches(function.start, function.end):
            yield file, function, kernel


def _list_bindings(file: ChangedFile, function: Function, kernel: Kernel) -> Iterator[tuple[Parameter, str, int]]:
    """The buffers of a kernel, each with what host code binds there, and where it says so."""
    for index, argument, start in list_bound(file.after, function):
        if index < len(kernel.buffers):
            yield kernel.buffers[index], argument, start


def _asks_about(kernel: Kernel, names: set[str]) -> bool:
    """Whether a condition of a kernel, or what bounds a value, has one of these names, or what is made of them."""
    texts = [token.text for token in kernel.body]
    names = add_made(texts, names)
    for at, text in enumerate(texts):
        if text == "?" or (text in _BRANCHES and texts[at + 1 : at + 2] == ["("]):
            start = at if text != "?" else max((k for k in range(at) if texts[k] in (";", "{", "}")), default=0)
            if names & set(texts[start : _find_end(texts, at)]):
                return True
    return False


def _find_end(texts: list[str], at: int) -> int:
    """Where the brackets that open behind a place are closed; the place itself for `?`."""
    depth = 0
    for end in range(at + 1, len(texts)):
        depth += (texts[end] == "(") - (texts[end] == ")")
        if depth <= 0:
            return end
    return len(texts)


_DENSE = re.compile(r"\b(?P<copy>\w+)\s*=\s*(?P<tensor>\w+)\.contiguous\(")
_COPIED_BACK = re.compile(r"\b(?P<tensor>\w+)\.copy_\((?P<copy>\w+)\)")
_DIRECT = re.compile(r"(?P<tensor>\w+)\.contiguous\(")
_COPYING_HOST = """void planted(const Tensor& self, Tensor& out) {
  int64_t count = self.numel();
  auto dense = out.contiguous();
  auto state = lib.getPipelineStateForFunc("planted");
  mtl_setArgs(encoder, self.contiguous(), dense, count);
}
"""


_FILLING_HOST = """void planted(const Tensor& self, Tensor& out) {
  Tensor dense = out.contiguous();
  launch(self, dense);
  if (!out.is_contiguous()) {
    out.copy_(dense);
  }
}
"""


@rule(
    Severity.ERROR,
    "A kernel writes a contiguous copy of a result, and nothing copies it back.",
    bad=(
        host_case(_COPYING_HOST, _TAILED_KERNEL),
        host_case(
            _COPYING_HOST.replace("  auto dense = out.contiguous();\n", "").replace("dense", "out.contiguous()"),
            _TAILED_KERNEL,
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": _FILLING_HOST.replace("    out.copy_(dense);\n", "")},
            before={f"{OPERATIONS}/Planted.mm": _FILLING_HOST},
        ),
    ),
    good=(
        host_case(_COPYING_HOST.replace("count);\n}", "count);\n  out.copy_(dense);\n}"), _TAILED_KERNEL),
        host_case(_COPYING_HOST.replace("dense, count", "out, count"), _TAILED_KERNEL),
        host_case(
            _COPYING_HOST.replace("  auto dense", "  TORCH_CHECK(out.is_contiguous());\n  auto dense"), _TAILED_KERNEL
        ),
    ),
)
def lost_result(change: Change) -> Iterator[Remark]:
    """`out.contiguous()` of a strided result is a copy: what a kernel writes there is lost (148350, 184743)."""
    for file, function, kernel in _pair_changed(change):
        text = file.text_of(function)
        copies = {match["copy"]: match["tensor"] for match in _DENSE.finditer(text)}
        for parameter, argument, start in _list_bindings(file, function, kernel):
            direct = _DIRECT.match(argument)
            tensor = direct["tensor"] if direct else copies.get(argument, "")
            if tensor not in TENSOR.findall(function.params):
                continue
            kept = f"{tensor}.copy_(" in text or f"{tensor}.is_contiguous(" in text or f"{tensor}.set_(" in text
            if not (_is_read_only(parameter) or kept) and kernel.writes(parameter.name):
                what = f"kernel `{kernel.name}` writes a copy where `{tensor}` is strided, and nothing copies it back"
                yield file.remark(
                    start, what, f"Copy it back: `{tensor}.copy_(...)`, or pass the strides of `{tensor}`."
                )
    for file in change.host:
        gone = {(match["tensor"], match["copy"]) for line in file.removed for match in _COPIED_BACK.finditer(line)}
        for function in file.functions():
            text = file.text_of(function)
            for match in _DENSE.finditer(text):
                tensor, copy = match["tensor"], match["copy"]
                if (tensor, copy) in gone and f"{tensor}.copy_(" not in text:
                    what = f"nothing copies `{copy}` back to `{tensor}` any more"
                    yield file.remark(function.start + match.start(), what, f"Keep `{tensor}.copy_({copy})`.")


_RESULT = re.compile(
    r"out\w*|result\w*|\w*_out|\w*_result|grad_(?:input|self|weight|bias|other)\w*|ret|dst|values|indices"
)
_SWAPPED = _TAILED_HOST.replace("dispatchThreadgroups", "dispatchThreads").replace(
    "self.contiguous(), out, count", "out, self, count"
)


@rule(
    Severity.ERROR,
    "Host code binds a result where the kernel reads, and an operand where it writes.",
    bad=(
        host_case(_SWAPPED, _TAILED_KERNEL),
        host_case(_SWAPPED.replace("Tensor& out", "const Tensor& out"), _TAILED_KERNEL),
    ),
    good=(
        host_case(_SWAPPED.replace("out, self, count", "self, out, count"), _TAILED_KERNEL),
        host_case(_SWAPPED.replace("out, self, count", "self, self, count"), _TAILED_KERNEL),
    ),
)
def swapped_arguments(change: Change) -> Iterator[Remark]:
    """Tensors are bound in the order of the kernel's buffers: a kernel that writes its operand destroys it (186580)."""
    for file, function, kernel in _pair_changed(change):
        results = {name for name in TENSOR.findall(function.params) if _RESULT.fullmatch(name)}
        operands = {name for name in TENSOR.findall(function.params) if name not in results}
        bound = list(_list_bindings(file, function, kernel))
        read = {name for buffer, name, _ in bound if _is_read_only(buffer)}
        for buffer, name, start in bound:
            if name in operands and read & results and not _is_read_only(buffer) and kernel.writes(buffer.name):
                what = f"kernel `{kernel.name}` writes `{buffer.name}`, where `{name}` is bound, and reads a result"
                yield file.remark(start, what, "Bind the tensors in the order of the kernel's buffers.")
                break


def _is_read_only(buffer: Parameter) -> bool:
    return buffer.space != "device" or "const" in [token.text for token in buffer.tokens]


_VECTOR = re.compile(
    r"(?:(?P<by_name>reinterpret_cast<)|\()\s*(?=[\w\s]*\bdevice\b)(?:(?:const|device)\s+)+"
    r"(?P<kind>(?:u?(?:char|short|int|long)|half|float|bfloat)(?P<width>[24]))\s*\*\s*[)>]\s*\(?&?(?P<name>\w+)"
)
_WIDE_KERNEL = """kernel void planted(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    constant long& count [[buffer(2)]], uint index [[thread_position_in_grid]]) {
  const float4 four = reinterpret_cast<device const float4*>(x)[index];
  out[index] = four.x + four.y + four.z + four.w;
}
"""
_BY_NAME = "reinterpret_cast<device const float4*>(x)"
_WIDE_HOST = _TAILED_HOST.replace("dispatchThreadgroups", "dispatchThreads")


@rule(
    Severity.WARNING,
    "A kernel reads several elements at once through a cast, and host code never asks whether they are aligned.",
    bad=(
        host_case(_WIDE_HOST, _WIDE_KERNEL),
        host_case(_WIDE_HOST, _WIDE_KERNEL.replace(_BY_NAME, "((device const float4*)x)")),
        host_case(_WIDE_HOST, _WIDE_KERNEL.replace(f"{_BY_NAME}[index]", "*(device const float4*)(x + index)")),
    ),
    good=(
        host_case(
            _WIDE_HOST,
            _WIDE_KERNEL.replace(_BY_NAME, "((device const float4*)x)").replace("const float* x", "const void* x"),
        ),
        host_case(_WIDE_HOST.replace("  auto", "  TORCH_CHECK(self.storage_offset() % 4 == 0);\n  auto"), _WIDE_KERNEL),
        host_case(_WIDE_HOST, _TAILED_KERNEL),
        *(
            host_case(_WIDE_HOST, _WIDE_KERNEL.replace("const float* x", f"const {buffer}* x").replace(_BY_NAME, cast))
            for buffer, cast in (
                ("float", "((device const packed_float4*)x)"),
                ("float4", "((device const uint4*)x)"),
                ("half4", "((device const half2*)x)"),
                ("Block", "((device const Block_q4*)x)"),
                ("float", "((constant int2*)&count)"),
            )
        ),
    ),
)
def unaligned_vector(change: Change) -> Iterator[Remark]:
    """A view may start at any element: a vector that is read there needs its own alignment (183631, 195074)."""
    for file, function, kernel in _pair_changed(change):
        text = file.text_of(function)
        body = kernel.file.after[kernel.function.body_start : kernel.function.body_end]
        sizes = {buffer.name: max(map(_count_aligned, buffer.tokens)) for buffer in kernel.buffers}
        casts = (m for m in _VECTOR.finditer(body) if sizes.get(m["name"], 0) < count_bytes(m["kind"])[0])
        cast = next((m for m in casts if m["by_name"] or sizes.get(m["name"])), None)
        if cast and not re.search(rf"%\s*\(?\w|align|& {int(cast['width']) - 1}\b", text):
            start = kernel.function.body_start + cast.start()
            what = f"kernel `{kernel.name}` reads vectors of {cast['width']}: nothing says that they are aligned"
            hint = "Take the vector path only where the storage offset and the sizes are multiples of the width."
            yield kernel.file.remark(start, what, hint)


def _count_aligned(token: Token) -> int:
    """The bytes that a value of this type is aligned to; 0 for what is no type of Metal."""
    size, element = count_bytes(token.text)
    return element if token.text.startswith("packed_") else size


_PROFILED = """void planted(const Tensor& self) {
  getMPSProfiler().beginProfileKernel(state, "planted", {self});
  [encoder dispatchThreads:grid threadsPerThreadgroup:group];
  getMPSProfiler().endProfileKernel(state);
}
"""


@rule(
    Severity.WARNING,
    "Host code begins the profile of a kernel, and does not end it.",
    bad=(host_case(_PROFILED.replace("  getMPSProfiler().endProfileKernel(state);\n", "")),),
    good=(host_case(_PROFILED),),
)
def unended_profile(change: Change) -> Iterator[Remark]:
    """Every profile of a kernel that begins ends: else the profiler adds what follows to it."""
    for file in change.host:
        for function in file.functions():
            text = file.text_of(function)
            begun = text.find("beginProfileKernel(")
            if begun >= 0 and text.count("beginProfileKernel(") > text.count("endProfileKernel("):
                yield file.remark(function.start + begun, "the profile of a kernel begins and does not end", "End it.")


_OTHER = """void planted(const Tensor& self, const Tensor& other, Tensor& out) {
  auto state = lib.getPipelineStateForFunc("planted");
  mtl_setArgs(encoder, self.contiguous(), out, other);
}
"""
_OTHER_KERNEL = _TAILED_KERNEL.replace("constant long& count", "device const float* other")
_ASKS_DEVICE = (
    "is_cpu",
    "is_mps",
    "item",
    "TensorIterator",
    "wrapped_number",
    "dim() == 0",
    "numel() == 1",
    "device()",
)


@rule(
    Severity.WARNING,
    "Host code binds the second operand of a binary operator, and never asks whether it is a number on the CPU.",
    bad=(host_case(_OTHER, _OTHER_KERNEL),),
    good=(
        host_case(_OTHER.replace("  auto", "  TORCH_CHECK(other.is_mps());\n  auto"), _OTHER_KERNEL),
        host_case(_OTHER.replace("out, other", "out, other.to(self.device())"), _OTHER_KERNEL),
    ),
)
def scalar_on_cpu(change: Change) -> Iterator[Remark]:
    """The number in `tensor + number` is a tensor of the CPU: its buffer is none of the GPU's (187229, 193057)."""
    for file, function, _ in _pair_changed(change):
        if "other" not in TENSOR.findall(function.params) or not file.touches(function.start, function.end):
            continue
        text = file.text_of(function)
        if any(word in text for word in _ASKS_DEVICE) or re.search(r"\bother\s*=|\bother\.to\(", text):
            continue
        for _, argument, start in list_bound(file.after, function):
            if re.match(r"other\b", argument):
                what = f"`other` of `{function.name}` may be a number on the CPU, whose memory the GPU does not have"
                yield file.remark(start, what, "Pass its value, or move it: `other.to(self.device())`.")
                break


_GROUP = re.compile(r"threadsPerThreadgroup\s*:\s*MTLSizeMake\(\s*(?P<x>\d+)\s*,\s*(?P<y>\d+)\s*,\s*(?P<z>\d+)\s*\)")
_MOST, _SAFE = 1024, 256  # threads that any group may have, and that every kernel can run with
_GROUPED_HOST = _TAILED_HOST.replace("dispatchThreadgroups", "dispatchThreads").replace(
    "threadsPerThreadgroup:group", "threadsPerThreadgroup:MTLSizeMake(1024, 1, 1)"
)


@rule(
    Severity.WARNING,
    "Host code launches threadgroups of a fixed size that a kernel may be too large for.",
    bad=(
        host_case(_GROUPED_HOST, _TAILED_KERNEL),
        host_case(_GROUPED_HOST.replace("1024, 1, 1", "64, 32, 1"), _TAILED_KERNEL),
    ),
    good=(
        host_case(_GROUPED_HOST.replace("1024, 1", "256, 1"), _TAILED_KERNEL),
        host_case(
            _GROUPED_HOST.replace("  mtl", "  TORCH_CHECK([state maxTotalThreadsPerThreadgroup] >= 1024);\n  mtl"),
            _TAILED_KERNEL,
        ),
    ),
)
def fixed_group(change: Change) -> Iterator[Remark]:
    """How many threads a group may have is asked of the kernel's pipeline state: registers make it less than 1024."""
    for file in change.host:
        for function in file.functions():
            asks = "maxTotalThreadsPerThreadgroup" in file.text_of(function)
            for match in _GROUP.finditer(file.after, function.body_start, function.body_end):
                threads = int(match["x"]) * int(match["y"]) * int(match["z"])
                if file.is_added(match.start()) and (threads > _MOST or (threads > _SAFE and not asks)):
                    what = f"threadgroups have {threads} threads, and a kernel may run with fewer"
                    hint = "Take the least of it and `[state maxTotalThreadsPerThreadgroup]`."
                    yield file.remark(match.start(), what, hint)


_SHARED = re.compile(r"\bthreadgroup\s+\w+\s+(?P<name>\w+)\s*\[\s*(?P<count>\d+)\s*\]")
_SHARING_KERNEL = """kernel void planted(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    constant long& count [[buffer(2)]], uint index [[thread_position_in_grid]],
    uint thread_id [[thread_index_in_threadgroup]]) {
  threadgroup float row[64];
  row[thread_id] = x[index];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[index] = row[0];
}
"""
_SHARING_HOST = _GROUPED_HOST.replace("1024, 1, 1", "128, 1, 1")


@rule(
    Severity.ERROR,
    "Threadgroups have more threads than the array has elements that each thread has one of.",
    bad=(host_case(_SHARING_HOST, _SHARING_KERNEL),),
    good=(
        host_case(_SHARING_HOST.replace("128, 1, 1", "64, 1, 1"), _SHARING_KERNEL),
        host_case(_SHARING_HOST, _SHARING_KERNEL.replace("row[thread_id]", "row[thread_id % 64]")),
        host_case(_SHARING_HOST, _SHARING_KERNEL.replace("  row[thread", "  if (thread_id < 64)\n    row[thread")),
    ),
)
def short_array(change: Change) -> Iterator[Remark]:
    """An array of threadgroup memory has an element for each thread that writes one."""
    for file, function, kernel in _pair_changed(change):
        group = _GROUP.search(file.after, function.body_start, function.body_end)
        positions = kernel.positions("thread_index_in_threadgroup", "thread_position_in_threadgroup")
        if group is None or not positions or _asks_about(kernel, positions):
            continue
        threads = int(group["x"]) * int(group["y"]) * int(group["z"])
        start, end = kernel.function.body_start, kernel.function.body_end
        for array in _SHARED.finditer(kernel.file.after, start, end):
            places = "|".join(map(re.escape, sorted(positions)))
            per_thread = re.compile(rf"\b{array['name']}\s*\[\s*(?:{places})(?:\.x)?\s*\]")
            if int(array["count"]) < threads and per_thread.search(kernel.file.after, start, end):
                what = (
                    f"`{array['name']}` has {array['count']} elements, and `{function.name}` launches {threads} threads"
                )
                yield kernel.file.remark(array.start(), what, "Give it an element for each thread.")


_LISTS = re.compile(r"\b(?:vector|array|SmallVector)\s*<\s*(?P<kind>\w+)\b[^;(]*>\s+(?P<name>\w+)\s*[=({;]")
_WIDE_LIST = re.compile(r"\.(?:sizes|strides|sym_sizes)\(\)$")
_LISTING_HOST = _TAILED_HOST.replace("dispatchThreadgroups", "dispatchThreads").replace(
    "out, count);", "out, self.strides());"
)
_STEPS_HOST = _LISTING_HOST.replace("self.strides()", "steps")
_LISTING_KERNEL = _TAILED_KERNEL.replace("constant long& count", "constant uint* strides")


@rule(
    Severity.ERROR,
    "Host code binds a list whose numbers have another size than those that the kernel reads.",
    bad=(
        host_case(_LISTING_HOST, _LISTING_KERNEL),
        host_case(_STEPS_HOST.replace("  int64_t", "  std::vector<int64_t> steps = f();\n  int64_t"), _LISTING_KERNEL),
    ),
    good=(
        host_case(_LISTING_HOST, _LISTING_KERNEL.replace("uint*", "long*")),
        host_case(_STEPS_HOST.replace("  int64_t", "  std::array<uint32_t, 2> steps{};\n  int64_t"), _LISTING_KERNEL),
    ),
)
def list_width(change: Change) -> Iterator[Remark]:
    """Sizes and strides are 64-bit numbers: a kernel that reads them as `uint` takes every half of one for another."""
    for file, function, kernel in _pair_changed(change):
        lists = {match["name"]: match["kind"] for match in _LISTS.finditer(file.text_of(function))}
        for buffer, argument, start in _list_bindings(file, function, kernel):
            host_kind = "int64_t" if _WIDE_LIST.search(argument) else lists.get(argument, "")
            if host_kind not in SIZES:
                continue
            words = [token.text for token in buffer.tokens]
            read = next((word for word in words if word in SIZES), "")
            if buffer.space == "constant" and "*" in words and read and SIZES[read] != SIZES[host_kind]:
                what = f"`{argument}` holds {host_kind}, and kernel `{kernel.name}` reads {read}"
                yield file.remark(start, what, "Give both sides numbers of the same size.")


_BIND_HINT = "Bind every buffer of the kernel, in its order."
_INDEXED = re.compile(
    r"\bmtl_set(?:Buffer|Bytes)\([^;]*,\s*(\d+)\s*\)\s*;|\bsetB\w+\s*:[^;]*?\batIndex\s*:\s*(\d+)\s*\]"
)
_SETTING = re.compile(r"\b(?:mtl_set\w+\s*[(<]|setB\w+\s*[:(])")
_ENCODERS = re.compile(r"\bmtl_set\w+(?:<\w+>)?\(\s*(\w+)\s*,|\[\s*(\w+)\s+set")
_CALLED = re.compile(r"\b(?!mtl_set)(\w+)\s*(?:<[^;(){}]*>)?\(")
_HELPED = re.compile(r"bind_\w+\(|\.\.\.")
_WEIGHTED = _TAILED_HOST.replace("out, count);", "out);\n  if (self.defined())\n    mtl_setBuffer(encoder, self, 2);")
_UNWEIGHTED = _WEIGHTED.replace("\n  if (self.defined())\n    mtl_setBuffer(encoder, self, 2);", "")
_BY_HAND = "mtl_setBuffer(encoder, self, 0);\n  mtl_setBuffer(encoder, out, 1);\n  mtl_setBytes(encoder, count, 2);"
_BOUND = "mtl_setArgs(encoder, self.contiguous(), out, count);"
_KERNEL_FILE = {f"{KERNELS}/Planted.metal": _TAILED_KERNEL}


@rule(
    Severity.ERROR,
    "A kernel has more buffers than host code binds.",
    bad=(
        host_case(_WIDE_HOST.replace("out, count", "out"), _TAILED_KERNEL),
        Case(
            {f"{OPERATIONS}/Planted.mm": _UNWEIGHTED + "// [encoder setBytes:]"},
            before={f"{OPERATIONS}/Planted.mm": _WEIGHTED, **_KERNEL_FILE},
        ),
        *(
            Case(
                {
                    f"{OPERATIONS}/Planted.mm": _WIDE_HOST.replace(
                        _BOUND, _BY_HAND.replace("mtl_setBytes", "// ... mtl_setBytes")
                    ),
                    **kernels,
                },
                before={f"{OPERATIONS}/Planted.mm": _WIDE_HOST.replace(_BOUND, _BY_HAND), **_KERNEL_FILE},
            )
            for kernels in ({}, {f"{KERNELS}/Planted.metal": _TAILED_KERNEL + "// dense"})
        ),
    ),
    good=(
        *(
            Case(
                {f"{OPERATIONS}/Planted.mm": _WIDE_HOST.replace(_BOUND, binding)},
                before={f"{OPERATIONS}/Planted.mm": _WIDE_HOST.replace(_BOUND, _BY_HAND), **_KERNEL_FILE},
            )
            for binding in (
                _BY_HAND.replace("count, 2", "self.numel(), 2"),
                _BY_HAND.replace("count, 2", "params.count, 2"),
                _BY_HAND.replace("count, 2", "count, kCount"),
                "unsigned at = 0;\n  for (const auto& t : {self, out}) {\n    mtl_setBuffer(encoder, t, at++);\n  }\n"
                "  mtl_setBytes(encoder, count, 2);",
                "set_arguments(encoder, self, out, count);",
                "set_arguments(self.numel(), stream->commandEncoder(), self, out);",
                "mtl_setArgs(stream->commandEncoder(), self, out, count);",
                "mtl_setArgs(encoder, self_->tensor(), out, count);",
                "mtl_setArgs(encoder, count > 4 ? self : other, out, count);",
                "mtl_setArgs(encoder, self, out);\n  mtl_setBytes(encoder, self.numel(), 2);",
            )
        ),
        *(
            Case(
                {f"{OPERATIONS}/Planted.mm": _WIDE_HOST.replace(_BOUND, "mtl_setArgs(encoder, self, out);")},
                before={
                    f"{OPERATIONS}/Planted.mm": _WIDE_HOST,
                    f"{KERNELS}/Planted.metal": _TAILED_KERNEL.replace("constant long& count [[buffer(2)]], ", "")
                    + _TAILED_KERNEL.replace("planted", name),
                },
            )
            for name in ("planted_strided", "plantedness")
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": _WEIGHTED.replace("self, 2);", "self, 2);\n  // dense")},
            before={
                f"{OPERATIONS}/Planted.mm": _WEIGHTED.replace("self, 2)", "self, 2);\n    mtl_setBuffer(e, out, 3)"),
                **_KERNEL_FILE,
            },
        ),
        Case(
            {
                f"{OPERATIONS}/Planted.mm": _UNWEIGHTED.replace(
                    "  [encoder", "  bind_weight(encoder, self);\n  [encoder"
                )
            },
            before={f"{OPERATIONS}/Planted.mm": _WEIGHTED, **_KERNEL_FILE},
        ),
        host_case(_WIDE_HOST, _TAILED_KERNEL),
        host_case(_WIDE_HOST.replace("out, count);", "out);\n  mtl_setBytes(encoder, count, 2);"), _TAILED_KERNEL),
    ),
)
def unbound_buffer(change: Change) -> Iterator[Remark]:
    """A buffer that nothing binds is what the launch before it bound there."""
    for file, function, kernel in _pair_changed(change):
        text = blank_comments(file.after)[function.start : function.end]
        bound = _list_indices(file.after, function)
        calls = list(re.finditer(r"\bmtl_setArgs\b", text))
        by_hand = re.search(r"setBuffer|setBytes\s*:", text) or not _says_all(text)
        if len(calls) == 1 and not by_hand and bound and max(bound) + 1 < len(kernel.buffers):
            missing = kernel.buffers[max(bound) + 1].name
            what = f"nothing binds `{missing}` of kernel `{kernel.name}`, which has {len(kernel.buffers)} buffers"
            yield file.remark(function.start + calls[0].start(), what, _BIND_HINT)
    for file in change.host:
        if file.is_readable and file.earlier.is_readable:
            yield from _find_unbound(change, file)


def _says_all(code: str) -> bool:
    """Whether every index that code without comments binds is read from it: none is computed or a helper's."""
    if _HELPED.search(code) or len(_SETTING.findall(code)) > len(
        [*_INDEXED.finditer(code), *SET_ARGUMENTS.finditer(code)]
    ):
        return False
    names = {name for pair in _ENCODERS.findall(code) for name in pair if name} | {r"[\w.\->]*(?:[eE]ncoder|stream)"}
    encoder = rf"\s*[&*]?(?:{'|'.join(sorted(names))})(?:\(\))?\s*[,)]"
    ours = re.findall(rf"\bmtl_(?:set|dispatch)\w+(?:<\w+>)?\({encoder}", code)
    return len(re.findall(rf"[(,]{encoder}", code)) <= len(ours)


def _find_unbound(change: Change, file: ChangedFile) -> Iterator[Remark]:
    """Functions that no longer bind an index which a kernel that they launch as before has a buffer for."""
    old_file = ChangedFile(file.path, "", file.before)
    changed = {metal.path for metal in change.metal}
    for function in file.functions():
        earlier = file.earlier.find_again(function)
        if earlier is None:
            continue
        code = blank_comments(file.after)[function.start : function.end]
        old_code = blank_comments(file.before)[earlier.start : earlier.end]
        lost = _list_indices(file.before, earlier) - _list_indices(file.after, function)
        if not lost or not _says_all(code) or {*_CALLED.findall(code)} - {*_CALLED.findall(old_code)}:
            continue
        launched = list(find_named_kernels(file, function.start, function.end))
        names = {named.prefix for named in launched if named.prefix}
        if names != {named.prefix for named in find_named_kernels(old_file, earlier.start, earlier.end)}:
            continue
        texts = {path: t for path, t in change.kernel_texts.items() if any(n.rstrip("_") in t for n in names)}
        kernels = [kernel for path, text in texts.items() for kernel in find_kernels(ChangedFile(path, "", text))
                   if _is_launched(kernel, launched)]  # fmt: skip
        signatures = {
            kernel.function.signature
            for metal in change.metal
            for kernel in find_kernels(ChangedFile(metal.path, "", metal.before))
        }
        if any(k.file.path in changed and k.function.signature not in signatures for k in kernels):
            continue
        if kernels and all(min(lost) < len(kernel.buffers) for kernel in kernels):
            buffer = kernels[0].buffers[min(lost)].name
            what = f"nothing binds `{buffer}` of kernel `{kernels[0].name}` any more"
            yield file.remark(function.name_start, what, _BIND_HINT)


def _is_launched(kernel: Kernel, launched: list[NamedKernel]) -> bool:
    """Whether one of the names that host code has is a kernel's: all of it, or what it begins with."""
    return any(
        kernel.name == named.prefix
        or (named.prefix and not named.is_whole and f"{kernel.name}_".startswith(named.prefix))
        for named in launched
    )


def _list_indices(text: str, function: Function) -> set[int]:
    """The indices that a function binds, by calls and by hand."""
    by_hand = _INDEXED.finditer(blank_comments(text), function.body_start, function.body_end)
    return {index for index, _, _ in list_bound(text, function)} | {int(match[1] or match[2]) for match in by_hand}


_QUEUES = frozenset({"dispatch_sync", "dispatch_sync_with_rethrow"})
_QUEUED = """void planted(const Tensor& self) {
  auto state = lib.getPipelineStateForFunc("planted");
  dispatch_sync(stream->queue(), ^() {
    auto encoder = stream->commandEncoder();
    [encoder setComputePipelineState:state];
  });
}
"""
_UNQUEUED = _QUEUED.replace("    auto encoder = stream->commandEncoder();\n", "").replace(
    "  dispatch_sync(", "  auto encoder = stream->commandEncoder();\n  dispatch_sync("
)


@rule(
    Severity.ERROR,
    "Host code takes the stream's encoder outside of the stream's queue.",
    bad=(host_case(_UNQUEUED),),
    good=(
        host_case(_QUEUED),
        host_case(
            _UNQUEUED.replace(
                "auto encoder = stream->commandEncoder();", "auto f = [&]() { use(stream->commandEncoder()); };"
            )
        ),
        host_case("void f(MPSStream* stream) {\n  use(stream->commandEncoder());\n}\n"),
    ),
)
def encoder_off_queue(change: Change) -> Iterator[Remark]:
    """Another thread may end an encoder that was taken before the block of `dispatch_sync` (197805, 197836, 198039)."""
    for file in change.host:
        code = file.source.code
        for function in file.functions():
            places = [
                at for at, token in enumerate(code[:-1]) if function.body_start <= token.start < function.body_end
            ]
            blocks = [(at + 1, file.source.partners[at + 1]) for at in places
                      if code[at].text in _QUEUES and code[at + 1].text == "("]  # fmt: skip
            partners = file.source.partners
            # A lambda runs where it is called, which may be within the block
            heads = {at: partners[at - 1] - 1 if code[at - 1].text == ")" else at - 1
                     for at in places if at and code[at].text == "{"}  # fmt: skip
            lambdas = [(at, partners[at]) for at, head in heads.items() if code[head].text == "]"
                       and not any(at < begin < partners[at] for begin, _ in blocks)]  # fmt: skip
            for at in places:
                is_call = code[at].text == "commandEncoder" and code[at + 1].text == "("
                if is_call and blocks and not any(begin < at < end for begin, end in (*blocks, *lambdas)):
                    what = f"`{function.name}` takes the stream's encoder outside of its queue"
                    yield file.remark(
                        code[at].start, what, "Call `commandEncoder` within the block of `dispatch_sync`."
                    )
