"""What host code binds to kernels: tensors, numbers, structs, and the threads that it launches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from porter.core.layout import OPERATIONS
from porter.languages.lexer import QUOTED, TokenKind
from porter.languages.source import Function, parse_source
from porter.review.change import Change, ChangedFile, Remark
from porter.review.metal_facts import (
    Kernel,
    builds_graph,
    find_kernels,
    find_metal_functions,
    find_named_kernels,
    find_words_in,
    launches_kernel,
)
from porter.review.rule import Case, Severity, host_case, rule

# The bytes of what host code binds and kernels read, by the names that either side has for it.
SIZES: Mapping[str, int] = {
    "bool": 1, "char": 1, "uchar": 1, "int8_t": 1, "uint8_t": 1, "short": 2, "ushort": 2, "int16_t": 2, "uint16_t": 2,
    "half": 2, "bfloat": 2, "int": 4, "uint": 4, "int32_t": 4, "uint32_t": 4, "float": 4, "unsigned": 4,
    "long": 8, "ulong": 8, "int64_t": 8, "uint64_t": 8, "size_t": 8, "double": 8,
}  # fmt: skip
SET_ARGUMENTS = re.compile(r"\bmtl_setArgs(?P<first><\d+>)?\(\s*[\w.\->]+(?:\(\))?\s*,(?P<arguments>[^;]*)\)\s*;")
_TEMPLATE = re.compile(r"(?<=\w)<[\w:*&<>,\s]*>(?=\s*(?:[({]|::))")
_BYTES = re.compile(r"\bmtl_setBytes\(\s*\w+\s*,\s*(?P<name>\w+)\s*,\s*(?P<index>\d+)\s*\)")
_BINDING_HOST = """void planted(const Tensor& self, Tensor& out) {
  int64_t rows = self.size(0);
  auto state = lib.getPipelineStateForFunc("planted");
  mtl_setArgs(encoder, self.contiguous(), out, rows);
}
"""
_VECTOR_KERNEL = """kernel void planted(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    constant uint4& rows [[buffer(2)]], uint index [[thread_position_in_grid]]) {
  out[index] = x[index] * rows.x;
}
"""
_NAMED_HOST = """void planted(const Tensor& self, Tensor& out) {
  int64_t rows = self.size(0);
  const std::string key = "planted_" + scalarToMetalTypeString(self);
  auto state = lib.getPipelineStateForFunc(key);
  mtl_setArgs(encoder, self.contiguous(), out, rows);
}
"""
_BOUND_KERNEL = """kernel void planted(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    constant int& rows [[buffer(2)]], uint index [[thread_position_in_grid]]) {
  out[index] = x[index] * rows;
}
"""


@rule(
    Severity.ERROR,
    "Host code binds a number of another size than the kernel reads.",
    bad=(
        host_case(_BINDING_HOST, _BOUND_KERNEL),
        host_case(_BINDING_HOST.replace("int64_t rows = self.size(0)", "double rows = 1.0"), _BOUND_KERNEL),
        host_case(_BINDING_HOST.replace("out, rows", "out, alpha.toDouble()"), _BOUND_KERNEL),
        host_case(_BINDING_HOST.replace("out, rows", "out, std::max<int64_t>(0, rows)"), _BOUND_KERNEL),
        host_case(_BINDING_HOST.replace("out, rows", "out, self.size(-1)"), _BOUND_KERNEL),
        host_case(_NAMED_HOST, _BOUND_KERNEL),
        host_case(_BINDING_HOST.replace("int64_t rows =", "std::array<int64_t, 4> rows ="), _VECTOR_KERNEL),
    ),
    good=(
        host_case(_BINDING_HOST, _BOUND_KERNEL.replace("constant int&", "constant long&")),
        host_case(_BINDING_HOST.replace("int64_t rows", "int rows"), _BOUND_KERNEL),
        host_case(_BINDING_HOST.replace("out, rows", "out, alpha.to<int>()"), _BOUND_KERNEL),
        host_case(_BINDING_HOST.replace("int64_t rows =", "std::array<uint32_t, 4> rows ="), _VECTOR_KERNEL),
        host_case(_BINDING_HOST.replace("out, rows", "out, static_cast<int>(self.size(-1))"), _BOUND_KERNEL),
        *(
            host_case(_BINDING_HOST.replace("out, rows", f"out, {value}"), _BOUND_KERNEL.replace("int&", "long&"))
            for value in ("static_cast<uint32_t>(1) * self.size(0)", "rows > 0 ? self.size(0) : alpha.to<int>()")
        ),
    ),
)
def argument_width(change: Change) -> Iterator[Remark]:
    """What host code binds has the size of what the kernel reads: no int64_t for `constant int&` (155304)."""
    for file, function, kernel in pair_launches(change):
        yield from _compare_bound(file, function, kernel)


def pair_launches(change: Change) -> Iterator[tuple[ChangedFile, Function, Kernel]]:
    """Each host function that launches one kernel, with this kernel, where a file of either is changed."""
    kernels: dict[str, list[Kernel]] = {}
    paths = {file.path for file in change.files}
    for path, text in change.kernel_texts.items():
        if path.endswith(".metal") and "kernel" in text:
            for kernel in find_kernels(ChangedFile(path, "", text)):
                kernels.setdefault(kernel.name, []).append(kernel)
    for path, text in change.host_texts.items():
        if "mtl_set" not in text:
            continue
        file = change.host_file(path)
        if not file.is_readable:
            continue
        for function in file.source.functions():
            names = {named.prefix.rstrip("_") for named in find_named_kernels(file, function.start, function.end)}
            candidates = [k for name in names for k in kernels.get(name, ())]
            relevant = path in paths or any(k.file.path in paths for k in candidates)
            if len(names) == 1 and len(candidates) == 1 and relevant:
                yield file, function, candidates[0]


def _compare_bound(file: ChangedFile, function: Function, kernel: Kernel) -> Iterator[Remark]:
    for index, name, start in list_bound(file.after, function):
        kind_bound = _find_type(file.text_of(function), name)
        size, element = count_bytes(kind_bound)
        if not size or index >= len(kernel.buffers):
            continue
        parameter = kernel.buffers[index]
        texts = [token.text for token in parameter.tokens]
        kind = next((text for text in texts if count_bytes(text)[0]), "")
        read, element_read = count_bytes(kind)
        fits = element_read == element and read <= size
        if parameter.space == "constant" and "&" in texts and "array" not in texts and kind and not fits:
            what = f"`{name}` is {kind_bound}, and kernel `{kernel.name}` reads it as {kind}"
            yield file.remark(start, what, "Give both sides a type of the same size.")


_TYPED = re.compile(
    r"(?:static_cast|std::max|std::min|at::ceil_div|c10::ceil_div|ceil_div)<(\w+)>\(\)"
    r"|(?:[\w.:]|->|\(\)|\[\])*\.to<(\w+)>\(\)"
)
_READERS = {"toDouble": "double", "toFloat": "float", "toInt": "int", "toLong": "int64_t", "toBool": "bool"}
_READER = re.compile(r"\w+\.(\w+)\(\)")
_COUNTING = re.compile(r"\w+\.(?:numel\(\)|size\([^()]*\)|stride\([^()]*\)|storage_offset\(\))")


_LISTED = re.compile(r"std::array<(?P<element>\w+), (?P<count>\d+)>")
_VECTOR = re.compile(r"(?P<packed>packed_)?(?P<element>u?char|u?short|u?int|u?long|half|float|bool)(?P<count>[234])")


def count_bytes(kind: str) -> tuple[int, int]:
    """The size of a type of either side, and that of an element of it; zeros for one that is not known."""
    several = _LISTED.fullmatch(kind) or _VECTOR.fullmatch(kind)
    if several is None:
        return SIZES.get(kind, 0), SIZES.get(kind, 0)
    element, count = SIZES.get(several["element"], 0), int(several["count"])
    is_padded = several.re is _VECTOR and count == 3 and not several["packed"]
    return element * (4 if is_padded else count), element


def _empty_brackets(text: str) -> str:
    """A text without what is within its brackets: `f<int>(a, g(b)) * c` is `f<int>() * c`."""
    depth, kept = 0, ""
    for letter in text:
        depth -= letter in ")]"
        kept += letter if depth == 0 else ""
        depth += letter in "(["
    return kept


def _find_type(text: str, argument: str) -> str:
    """The type of what a function binds, by its declaration or the call that makes it; nothing where neither says."""
    if argument.isidentifier():
        if listed := re.search(rf"\bstd::array<\w+, \d+>(?=\s+{re.escape(argument)}\b)", text):
            return listed[0]
        declared = re.search(rf"\b(\w+)\s+{re.escape(argument)}\s*(?:=|;|,|\)|\{{)", text)
        return declared[1] if declared else ""
    # The type is that of the whole where a call is all of it
    if typed := _TYPED.fullmatch(_empty_brackets(argument)):
        return typed[1] or typed[2]
    if reader := _READER.fullmatch(argument):
        return _READERS.get(reader[1], "int64_t" if _COUNTING.fullmatch(argument) else "")
    return "int64_t" if _COUNTING.fullmatch(argument) else ""


@lru_cache(maxsize=256)
def blank_comments(text: str) -> str:
    """A text with spaces for its comments: every other character stays where it is."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0]) if match[0].startswith("/") else match[0]

    return re.sub(QUOTED, blank, text, flags=re.S)


def list_bound(text: str, function: Function) -> Iterator[tuple[int, str, int]]:
    """The index, the text and the place of each argument that is bound."""
    text = blank_comments(text)
    for match in SET_ARGUMENTS.finditer(text, function.body_start, function.body_end):
        first = int(match["first"][1:-1]) if match["first"] else 0
        depth, parts = 0, [""]
        # `<` and `>` compare, too, and `->` has one
        types = {at for template in _TEMPLATE.finditer(match["arguments"]) for at in range(*template.span())}
        for at, letter in enumerate(match["arguments"]):
            depth += (letter in "([{") - (letter in ")]}")
            if letter == "," and depth == 0 and at not in types:
                parts.append("")
            else:
                parts[-1] += letter
        for index, argument in enumerate(parts, first):
            yield index, argument.strip(), match.start()
    for match in _BYTES.finditer(text, function.body_start, function.body_end):
        yield int(match["index"]), match["name"], match.start()


_HOST_STRUCT = """struct PlantedParams {
  int32_t rows;
  int64_t stride;
};
void f() {}
"""
_METAL_STRUCT = """struct PlantedParams {
  int32_t rows;
  int64_t stride;
};
"""


@dataclass(frozen=True)
class _Struct:
    path: str
    start: int
    line: int
    fields: tuple[tuple[str, str, str], ...]  # type, name, extent of an array

    def layout(self) -> tuple[tuple[str, int, str], ...]:
        """The name and the size in bytes of each field, and how many there are; 0 for a type that is not known."""
        return tuple((name, SIZES.get(kind, 0), extent) for kind, name, extent in self.fields)


@rule(
    Severity.ERROR,
    "A struct of host code has other fields than the kernel file's of the same name.",
    bad=(
        host_case(_HOST_STRUCT, _METAL_STRUCT.replace("int64_t", "int32_t")),
        host_case(
            _HOST_STRUCT.replace("int32_t rows;\n  int64_t stride", "int64_t stride;\n  int32_t rows"), _METAL_STRUCT
        ),
        host_case(_HOST_STRUCT.replace("int32_t rows", "bool rows"), _METAL_STRUCT),
    ),
    good=(host_case(_HOST_STRUCT, _METAL_STRUCT.replace("int64_t", "long").replace("int32_t", "int")),),
)
def struct_layout(change: Change) -> Iterator[Remark]:
    """A struct that host and kernel share has the same fields on both sides: sizes, order, alignment (196157)."""
    metal = {path: text for path, text in change.kernel_texts.items() if "struct" in text}
    paths = {file.path for file in change.files}
    for host_path, host in change.host_texts.items():
        if "struct" not in host:
            continue
        structs = _list_structs(host_path, host)
        for path, text in metal.items():
            if paths.isdisjoint((host_path, path)):
                continue
            shared = _list_structs(path, text)
            for name in structs.keys() & shared.keys():
                yield from _compare_structs(name, structs[name], shared[name])


def _compare_structs(name: str, host: _Struct, metal: _Struct) -> Iterator[Remark]:
    ours, theirs = host.layout(), metal.layout()
    if any(size == 0 for _, size, _ in (*ours, *theirs)) or ours == theirs:
        return
    differing = next((a or b for a, b in zip(ours, theirs, strict=False) if a != b), None)
    about = f"field `{differing[0]}`" if differing else "the number of fields"
    what = f"`{name}` has another layout in {metal.path}:{metal.line}: {about} differs"
    yield Remark(host.path, host.line, what, "Give both sides the same fields, or one header that both include.")


def _list_structs(path: str, text: str) -> dict[str, _Struct]:
    """The structs without functions, templates and bases, by name."""
    source = parse_source(path, text)
    structs: dict[str, _Struct] = {}
    if not source.is_readable:
        return structs
    code = source.code
    for at, token in enumerate(code[:-2]):
        if token.text != "struct" or code[at + 2].text != "{" or (at and code[at - 1].text == ">"):
            continue
        body = code[at + 3 : source.partners[at + 2]]
        if any(t.text in ("(", "{", "using") for t in body):
            continue
        fields = tuple(_read_fields([t.text for t in body]))
        structs[code[at + 1].text] = _Struct(path, token.start, source.place(token.start).line, fields)
    return structs


def _read_fields(tokens: list[str]) -> Iterator[tuple[str, str, str]]:
    """The fields of a struct: type, name, and what stands in the brackets of an array, or "" for one value."""
    statement: list[str] = []
    for text in tokens:
        if text != ";":
            statement.append(text)
            continue
        plain = [word for word in statement if word not in ("const", "unsigned", "alignas", "std", "::", "metal")]
        if "=" in plain:
            plain = plain[: plain.index("=")]
        extent = ""
        if "[" in plain:
            extent = "".join(plain[plain.index("[") + 1 : -1])
            plain = plain[: plain.index("[")]
        if len(plain) >= 2:
            yield plain[0], plain[-1], extent
        statement = []


_BINDING = re.compile(r"\bmtl_setArgs(?:<\w+>)?\(|\bmtl_setBuffer\(|\bsetBuffer:|\bbind_tensors\(")
_STRIDED = re.compile(
    r"stride|TensorIterator|iter\b|is_dense|suggest_memory_format|needsGather|needs_gather|empty_like|clone\("
)
_LAYOUT = re.compile(rf"contiguous|{_STRIDED.pattern}")
TENSOR = re.compile(r"\bTensor\s*&\s*(\w+)")
_DENSE = re.compile(r"\b(\w+)(?:\.value\(\))?(?:\.|->)is_contiguous\(")
_DENSE_HINT = "Pass the strides, or call `contiguous()`; a view, a transposed tensor and `x[::2]` come too."
_STRIDELESS = """void planted_mps(const Tensor& self, Tensor& out) {
  auto state = lib.getPipelineStateForFunc("exp_dense_float_float");
  mtl_setArgs(encoder, self, out);
  mtl_dispatch1DJob(encoder, state, out.numel());
}
"""


_ASKING = """void planted_mps(const Tensor& self) {
  TORCH_CHECK(self.is_contiguous());
  auto out = at::empty_like(self);
  auto state = lib.getPipelineStateForFunc("exp_dense_float_float");
  mtl_setArgs(encoder, self, out);
}
"""


_OPTIONAL = """void planted_mps(const Tensor& self, const std::optional<Tensor>& weight) {
  TORCH_CHECK(weight.value().is_contiguous());
  auto out = at::empty_like(self);
  auto state = lib.getPipelineStateForFunc("exp_dense_float_float");
  mtl_setArgs(encoder, self, weight, out);
}
"""
_LISTED_DENSE = """static void launch(const TensorList& edges) {
  TORCH_INTERNAL_ASSERT(edges[0].is_contiguous());
  auto state = lib.getPipelineStateForFunc("exp_dense_float_float");
  mtl_setArgs(encoder, edges[0]);
}
static void planted(const TensorList& edges) {
  std::vector<Tensor> dense(edges.size());
  for (const auto i : c10::irange(edges.size())) {
    dense[i] = edges[i].contiguous();
  }
  launch(dense);
}
"""
_COPYING_FIRST = """static void launch(const Tensor& x, Tensor& out) {
  auto state = lib.getPipelineStateForFunc("exp_dense");
  mtl_setArgs(encoder, x, out);
}
void planted(const Tensor& self, Tensor& out) {
  auto x = self.contiguous();
  launch(x, out);
}
"""
_COPY = "dense[i] = edges[i].contiguous();"
_LOOPING = _LISTED_DENSE.replace(f"{{\n    {_COPY}\n  }}", _COPY)


def _undo(text: str) -> Case:
    """A change that takes `contiguous()` out of an assignment."""
    path = f"{OPERATIONS}/Planted.mm"
    return Case({path: text.replace(".contiguous();", ";", 1)}, before={path: text})


@rule(
    Severity.WARNING,
    "Host code binds tensors to a kernel, and neither passes strides nor makes the tensors contiguous.",
    bad=(
        host_case(_STRIDELESS),
        Case(
            {f"{OPERATIONS}/Planted.mm": _ASKING.replace("  TORCH_CHECK(self.is_contiguous());\n", "")},
            before={f"{OPERATIONS}/Planted.mm": _ASKING},
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": _OPTIONAL.replace("  TORCH_CHECK(weight.value().is_contiguous());\n", "")},
            before={f"{OPERATIONS}/Planted.mm": _OPTIONAL},
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": _LISTED_DENSE.replace("edges[i].contiguous();", "edges[i];")},
            before={f"{OPERATIONS}/Planted.mm": _LISTED_DENSE},
        ),
        _undo(_COPYING_FIRST),
        _undo(_LOOPING),
        Case(
            {f"{OPERATIONS}/Planted.mm": _LISTED_DENSE.replace(".contiguous();", "; // strides")},
            before={f"{OPERATIONS}/Planted.mm": _LISTED_DENSE.replace(".contiguous();", ".contiguous(); // strides")},
        ),
        *(
            Case(
                {f"{OPERATIONS}/Planted.mm": text.replace(f"  TORCH_CHECK(weight{get}is_contiguous());\n", "")},
                before={f"{OPERATIONS}/Planted.mm": text},
            )
            for get, value in ((".value().", "weight.value()"), ("->", "*weight"))
            for text in (
                _OPTIONAL.replace("weight.value().", f"weight{get}").replace("self, weight,", f"self, {value},"),
            )
        ),
    ),
    good=(
        _undo(_COPYING_FIRST.replace("x, out);\n}\nvoid", "x, out, x.strides(), out.strides());\n}\nvoid")),
        _undo(_COPYING_FIRST.replace("launch(x, out)", "mtl_setArgs(encoder, x, out, x.strides(), out.strides())")),
        _undo(
            _COPYING_FIRST.replace("launch(x, out)", 'lib.exec_unary_kernel(TensorIterator::unary_op(out, x), "exp")')
        ),
        _undo(_COPYING_FIRST.replace("launch(x, out)", "auto y = out.expect_contiguous();\n  mtl_setArgs(encoder, y)")),
        _undo(_COPYING_FIRST.replace("  launch", "  x = x.contiguous();\n  launch")),
        _undo(_COPYING_FIRST.replace("  auto x", "  TORCH_CHECK(self.is_contiguous());\n  auto x")),
        Case(
            {f"{OPERATIONS}/Planted.mm": _COPYING_FIRST.replace("  launch", "  // x = self;\n  launch")},
            before={
                f"{OPERATIONS}/Planted.mm": _COPYING_FIRST.replace("  launch", "  // x = self.contiguous();\n  launch")
            },
        ),
        Case(
            {f"{OPERATIONS}/Planted.mm": _OPTIONAL.replace("auto out", "Tensor out")},
            before={f"{OPERATIONS}/Planted.mm": _OPTIONAL},
        ),
        Case(
            {
                f"{OPERATIONS}/Planted.mm": _LISTED_DENSE.replace("edges[i].contiguous();", "edges[i];").replace(
                    "launch(dense);", "launch(dense, edges[0].strides());"
                )
            },
            before={f"{OPERATIONS}/Planted.mm": _LISTED_DENSE},
        ),
        Case(
            {
                f"{OPERATIONS}/Planted.mm": _LISTED_DENSE.replace("edges[i].contiguous();", "edges[i];").replace(
                    "launch(dense);", "at::cat(dense);"
                )
            },
            before={f"{OPERATIONS}/Planted.mm": _LISTED_DENSE.replace("launch(dense);", "at::cat(dense);")},
        ),
        Case(
            {
                f"{OPERATIONS}/Planted.mm": _ASKING.replace(
                    "TORCH_CHECK(self.is_contiguous())", "auto x = self.contiguous()"
                )
            },
            before={f"{OPERATIONS}/Planted.mm": _ASKING},
        ),
        *(
            Case(
                {f"{OPERATIONS}/Planted.mm": _ASKING.replace("TORCH_CHECK(self.is_contiguous());", text)},
                before={f"{OPERATIONS}/Planted.mm": _ASKING},
            )
            for text in ("auto dense = self.expect_contiguous();", "auto iter = TensorIterator::unary_op(out, self);")
        ),
        host_case(
            _STRIDELESS.replace("mtl_setArgs(encoder, self, out)", "mtl_setArgs(encoder, self, out, self.strides())")
        ),
        host_case(
            _STRIDELESS.replace("mtl_setArgs(encoder, self, out)", "mtl_setArgs(encoder, self.contiguous(), out)")
        ),
    ),
)
def ignored_strides(change: Change) -> Iterator[Remark]:
    """Host code that binds tensors to a kernel of its own passes their strides, or makes them contiguous (183065)."""
    reported: set[tuple[str, int]] = set()
    for file, function in find_metal_functions(change):
        text = file.text_of(function)
        tensors = TENSOR.findall(function.params)
        if "getPipelineStateForFunc" not in text or not tensors or _LAYOUT.search(text):
            continue
        if match := _BINDING.search(text):
            what = f"`{function.name}` binds tensors and never looks at their strides"
            reported.add((file.path, function.start))
            yield file.remark(function.start + match.start(), what, _DENSE_HINT)
    for file, function in find_metal_functions(change):
        text, earlier = file.text_of(function), file.text_before(function)
        layout = Counter(_LAYOUT.findall(text)) - Counter(_LAYOUT.findall(earlier))
        if layout or "expect_contiguous" in text or (file.path, function.start) in reported:
            continue
        bound = {name.removeprefix("*").removesuffix(".value()") for _, name, _ in list_bound(file.after, function)}
        for name in sorted({match[1] for match in _DENSE.finditer(earlier)} & bound):
            if not re.search(
                rf"\b{re.escape(name)}\b(?:\.value\(\))?(?:\.|->)(?:is_contiguous|contiguous|strides?|is_non_overlapping)",
                text,
            ):
                match = _BINDING.search(text)
                what = (
                    f"`{function.name}` no longer asks whether `{name}` is contiguous, and its kernel gets no strides"
                )
                reported.add((file.path, function.start))
                yield file.remark(function.start + (match.start() if match else 0), what, _DENSE_HINT)
    for file in change.host:
        if file.is_readable:
            yield from _find_undone(file, {start for path, start in reported if path == file.path})


_COPIED = re.compile(r"\.contiguous\(\)(?=;)")
_COPYING = re.compile(r"\b(?:expect_)?contiguous\(")
_ASSIGNED = re.compile(r"(\w+)(?:\[\w+\])?\s*=[^=]")


def _find_undone(file: ChangedFile, reported: set[int]) -> Iterator[Remark]:
    """`a = b.contiguous();` that became `a = b;`, where `a` goes to code that launches a kernel without strides."""
    text = blank_comments(file.after)
    launchers = {
        function.name: function
        for function in file.source.functions()
        if launches_kernel(re.sub(r"\bexec_\w+", "", text[function.start : function.end]))
    }
    calls = "|".join(map(re.escape, sorted({*launchers, "mtl_setArgs", "mtl_setBuffer", "bind_tensors"})))
    for line, earlier in file.find_rewritten(_COPIED, ""):
        inside = (f for f in file.functions() if file.line_at(f.start) <= line <= file.line_at(f.end))
        assigned = [match[1] for match in _ASSIGNED.finditer(text.splitlines()[line - 1])]
        function = next(inside, None)
        if not assigned or function is None or function.start in reported:
            continue
        name, code = re.escape(assigned[-1]), text[function.start : function.end]
        rest = "\n".join(text.splitlines()[line : file.line_at(function.end)])
        call = re.search(rf"\b({calls})(?:<[^;()]*>)?\([^;]*\b{name}\b", rest)
        if call is None or builds_graph(code):
            continue
        launcher = launchers.get(call[1])
        callee = text[launcher.start : launcher.end] if launcher else ""
        before = blank_comments(file.text_before(function) + (file.text_before(launcher) if launcher else ""))
        asks, asked = Counter(_LAYOUT.findall(code + callee)), Counter(_LAYOUT.findall(before))
        source = re.search(r"(\w+)(?:\[\w+\])?\.contiguous\(\)", earlier)
        head = "\n".join(text.splitlines()[file.line_at(function.start) - 1 : line - 1])
        is_dense = source and re.search(rf"\b{source[1]}\b[^;]*(?:contiguous|empty|zeros)\w*\(", head)
        # Who copies elsewhere, or gets what is dense already, needs no copy here
        copies = _COPYING.search(callee) or re.search(rf"\b{name}\b[\w.\->\[\]]*{_COPYING.pattern}", rest)
        if not (asks - asked or not asked - asks or _STRIDED.search(code + callee) or copies or is_dense):
            what = f"`{earlier}` made `{assigned[-1]}` contiguous, and the kernel that reads it gets no strides"
            yield Remark(file.path, line, what, _DENSE_HINT)


_BOUND = re.compile(
    r"setBuffer\s*:\s*(?:mps::)?getMTLBufferStorage\(\s*(?P<tensor>[\w.()]+?)\s*\)\s*offset\s*:\s*0\s+atIndex", re.S
)
_OFFSETLESS = """void f(const Tensor& self) {
  [encoder setBuffer:getMTLBufferStorage(self) offset:0 atIndex:0];
}
"""


@rule(
    Severity.ERROR,
    "Host code binds a tensor's buffer at offset 0, which drops its storage offset.",
    bad=(host_case(_OFFSETLESS),),
    good=(
        host_case(_OFFSETLESS.replace("offset:0", "offset:self.storage_offset() * self.element_size()")),
        host_case(
            _OFFSETLESS.replace(
                "[encoder setBuffer:getMTLBufferStorage(self) offset:0 atIndex:0]", "mtl_setBuffer(encoder, self, 0)"
            )
        ),
    ),
)
def storage_offset(change: Change) -> Iterator[Remark]:
    """A view starts somewhere in its buffer: a tensor that is bound at offset 0 reads another's elements (187229)."""
    for file in change.host:
        for match in file.find_new(_BOUND):
            tensor = match["tensor"]
            what = f"`{tensor}` is bound at offset 0: a view of it starts elsewhere"
            hint = f"Write `mtl_setArgs`, or `offset:{tensor}.storage_offset() * {tensor}.element_size()`."
            yield file.remark(match.start(), what, hint)


_TYPE = r"(?:const\s+)?(?:u?int32_t|u?int|unsigned(?:\s+int)?)"
_SIZE = r"[\w.\->()]*(?:\.|->)(?:numel|nbytes|storage_offset|stride)\("
_NARROWED = (
    re.compile(rf"\b{_TYPE}\s+\w+\s*=\s*{_SIZE}"),
    re.compile(rf"\bstatic_cast<\s*{_TYPE}\s*>\(\s*{_SIZE}"),
)
_ASKING_WIDTH = (
    "canUse32BitIndexMath", "can_use_32bit_indexing", "offsetsFitIn", "mtlDispatchByIndexWidth", "safe_downcast",
    "numeric_limits", "INT_MAX", "UINT32_MAX",
)  # fmt: skip
_NARROWING = """void f(const Tensor& self) {
  const uint32_t count = self.numel();
  auto state = lib.getPipelineStateForFunc("exp_dense_float_float");
}
"""


_NARROWING_ASKED = _NARROWING.replace("  auto", "  TORCH_CHECK(offsetsFitIn<uint32_t>(self));\n  auto")


@rule(
    Severity.WARNING,
    "Host code cuts a number of elements, a stride or an offset to 32 bits and never asks whether it fits.",
    bad=(
        host_case(_NARROWING),
        host_case(
            _NARROWING.replace("const uint32_t count = self.numel()", "auto n = static_cast<int>(self.stride(0))")
        ),
        Case({f"{OPERATIONS}/Planted.mm": _NARROWING}, before={f"{OPERATIONS}/Planted.mm": _NARROWING_ASKED}),
    ),
    good=(
        host_case(_NARROWING.replace("uint32_t count", "int64_t count")),
        host_case(_NARROWING_ASKED),
    ),
)
def narrowed_size(change: Change) -> Iterator[Remark]:
    """A count of elements, a stride or an offset that host code cuts to 32 bits without asking whether it fits."""
    for file in change.host:
        for function in file.functions():
            text, earlier = file.text_of(function), file.text_before(function)
            if not launches_kernel(text) or any(word in text for word in _ASKING_WIDTH):
                continue
            asked = any(word in earlier for word in _ASKING_WIDTH)
            for pattern in _NARROWED:
                for match in pattern.finditer(file.after, function.body_start, function.body_end):
                    if asked or file.is_added(match.start()):
                        what = f"`{' '.join(match[0].split())}...` cuts 64 bits to 32, and nothing asks if they fit"
                        hint = "Keep 64 bits, or choose the kernel by `offsetsFitIn` or TORCH_CHECK that it fits."
                        yield file.remark(match.start(), what, hint)


_READING = re.compile(r"\bconst\s+(?:c10::|at::)?Scalar\s*&\s*(\w+)")
_INTEGERS = frozenset({"int", "int32_t", "int64_t", "long", "uint32_t", "short"})
_ASKING_TYPE = ("isIntegral", "isFloatingPoint", "isFloatingType", "isIntegralType", "kLong", "AT_DISPATCH")
_TRUNCATING = """static void planted(const Tensor& self, const Scalar& exponent) {
  const auto power = exponent.to<int>();
}
"""


@rule(
    Severity.WARNING,
    "Host code reads a Scalar as an integer without asking whether it is one.",
    bad=(host_case(_TRUNCATING), host_case(_TRUNCATING.replace("to<int>()", "toLong()"))),
    good=(
        host_case(_TRUNCATING.replace("to<int>", "to<float>")),
        host_case(_TRUNCATING.replace("  const", "  if (exponent.isIntegral(false))\n    const")),
    ),
)
def truncated_scalar(change: Change) -> Iterator[Remark]:
    """A Scalar that may be fractional is not read as an integer (170077)."""
    for file in change.host:
        for function in file.functions():
            scalars = set(_READING.findall(function.params))
            text = file.text_of(function)
            if not scalars or any(word in text for word in _ASKING_TYPE):
                continue
            tokens = find_words_in(file, function.body_start, function.body_end)
            for at, token in enumerate(tokens[:-3]):
                if token.kind is not TokenKind.IDENTIFIER or token.text not in scalars or tokens[at + 1].text != ".":
                    continue
                reads = tokens[at + 2].text
                is_cut = reads in ("toInt", "toLong") or (reads == "to" and tokens[at + 4].text in _INTEGERS)
                if is_cut and file.is_added(token.start):
                    what = f"`{token.text}` is read as an integer: a fraction is cut off"
                    yield file.remark(token.start, what, "Read it in the type that the kernel computes in.")


_ROUNDED = re.compile(r"\(?\s*[\w.()\->]+\s*/\s*(?P<size>\w+)\s*\+\s*1\s*\)?\s*\*\s*(?P=size)\b")
_CEILED = re.compile(
    r"\(([\w.]+) \+ (\w+) - 1\) / \2\b|\b(?:at::|c10::)?ceil_div(?:<\w+>)?\(([\w.]+(?:\(\))?), (\w+)\)"
)
_FLOORED = re.compile(r"MTLSizeMake\(\s*[\w.()\->]*(?:numel|count|size|length|num_\w+|\bn)\w*(?:\(\))?\s*/\s*\w+\s*,")


@rule(
    Severity.WARNING,
    "A number of threads or groups is rounded wrongly: one too many, or the last part of a group dropped.",
    bad=(
        host_case("void f() {\n  auto threads = (count / 32 + 1) * 32;\n}\n"),
        host_case("void f() {\n  auto groups = MTLSizeMake(numel / 256, 1, 1);\n}\n"),
        Case(
            {f"{OPERATIONS}/Planted.mm": "void f() {\n  auto parts = n / PART;\n}\n"},
            before={f"{OPERATIONS}/Planted.mm": "void f() {\n  auto parts = (n + PART - 1) / PART;\n}\n"},
        ),
    ),
    good=(
        host_case("void f() {\n  auto threads = at::ceil_div(count, 32) * 32;\n}\n"),
        host_case("void f() {\n  auto groups = MTLSizeMake((numel + 255) / 256, 1, 1);\n}\n"),
    ),
)
def group_rounding(change: Change) -> Iterator[Remark]:
    """`(n / 32 + 1) * 32` is a group too many where 32 divides n, and rounds nothing where it is a maximum."""
    for file in change.host:
        for match in file.find_new(_ROUNDED):
            what = f"`{match[0].strip()}` is a group too many where {match['size']} divides the number"
            yield file.remark(match.start(), what, "Write `at::ceil_div`, times the size of a group.")
        for match in file.find_new(_FLOORED):
            what = f"`{match[0].rstrip(', ')}` drops the last part of a group"
            yield file.remark(match.start(), what, "Write `at::ceil_div`, and guard the loads and stores.")
        for line, earlier in file.find_rewritten(_CEILED, r"\1\3/\2\4"):
            what = f"`{earlier}` was rounded up"
            yield Remark(file.path, line, what, "Keep `at::ceil_div`: the last part of a group counts too.")
