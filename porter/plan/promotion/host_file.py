"""The host code: the meta function, and the implementation for MPS that launches the kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from porter.core.checkout import Checkout
from porter.core.dtypes import SCALAR_TYPES
from porter.core.layout import DEVICE, KERNELS, OPERATIONS
from porter.loops.host_algebra import apply, is_tensor, type_of
from porter.loops.host_values import Apply, Constant, HostValue, Method, Node, Scalar, Select
from porter.metal.codegen.host_values import Printer, quote
from porter.metal.host import profiles_streams
from porter.plan.promotion.promotion import Binding, Content, Promotion

_BFLOAT_GUARD = re.compile(rb"^#if __METAL_VERSION__ >= 310\s*$", re.M)


@dataclass(frozen=True)
class Style:
    """Whether kernels may be compiled at run time, calls are profiled, on a stream, and bfloat is guarded."""

    jit: bool = True
    profiler: bool = True
    profiles_stream: bool = False
    bfloat_guard: bool = False


def read_style(checkout: Checkout) -> Style:
    """The style of a fork, by its operations and kernels."""
    hosts = [data for _, data in checkout.folder(OPERATIONS, ".mm").files]
    kernels = [data for _, data in checkout.folder(KERNELS, ".metal").files]
    return Style(
        jit=any(b"#ifndef PYTORCH_JIT_COMPILE_SHADERS" in data for data in hosts),
        profiler=any(b"beginProfileKernel" in data for data in hosts) and checkout.exists(f"{DEVICE}/MPSProfiler.h"),
        profiles_stream=profiles_streams(checkout),
        bfloat_guard=any(_BFLOAT_GUARD.search(data) for data in kernels),
    )


_ATEN = {each.torch: f"k{each.aten}" for each in SCALAR_TYPES}
_NAMES = {each.torch: each.alias or each.torch for each in SCALAR_TYPES}
_RESERVED = frozenset(
    ("out", "lib", "kernel", "stream", "encoder", "pipeline", "int", "float", "new", "default", "auto")
)
_NOTE = "      // this function call is a no-op if MPS Profiler is not enabled\n"
_VALUES = """// A tensor without dimensions has one of size 1: Metal takes no empty argument.
template <typename T>
static std::vector<T> as_argument(IntArrayRef values) {
  return values.empty() ? std::vector<T>{1} : std::vector<T>(values.begin(), values.end());
}

"""


def write_meta_file(promotion: Promotion) -> str:
    """The text of `native/NAME.cpp`: what the operator requires and gives, and its reference on the CPU."""
    op = promotion.op
    includes = sorted({f"{op}_meta", *([f"{op}_native", *promotion.cpu_headers] if promotion.cpu else [])})
    cpu = "".join(_cpu(promotion)) if promotion.cpu else ""
    functions = "#include <ATen/Functions.h>\n" if promotion.cpu_headers else ""
    listed = "".join(f"#include <ATen/ops/{each}.h>\n" for each in includes)
    assertion = "" if promotion.cpu_headers else "#define TORCH_ASSERT_ONLY_METHOD_OPERATORS\n"
    meta = "".join(_meta(promotion))
    needed = "#include <ATen/ceil_div.h>\n" if "ceil_div" in meta else ""
    needed += "#include <c10/util/generic_math.h>\n" if "div_floor_integer" in meta else ""
    return (
        f"{assertion}#include <ATen/core/Tensor.h>\n{needed}\n"
        f"#ifndef AT_PER_OPERATOR_HEADERS\n{functions}#include <ATen/NativeFunctions.h>\n#else\n{listed}#endif\n\n"
        f"namespace at::meta {{\n\nTORCH_META_FUNC({op})({_parameters(promotion)}) {{\n"
        f"{meta}}}\n\n}} // namespace at::meta\n{cpu}"
    )


def _meta(promotion: Promotion) -> Iterator[str]:
    # Nothing is computed ahead: a later check may ask for a size that an earlier one makes sure is there.
    printer = Printer()
    yield from (f"  {each}\n" for each in _same_types(promotion))
    yield from (f"  {each.write(promotion.op)}\n" for each in promotion.program.requirements)
    for at, output in enumerate(promotion.program.launch.outputs):
        options = _options(promotion, output.dtype)
        yield f"  set_output_contiguous({at}, {printer.listed(output.sizes)}, {options});\n"


def _cpu(promotion: Promotion) -> Iterator[str]:
    outs = ", ".join(f"const Tensor& {name}" for name in promotion.schema.results)
    note = "// The reference as it stands: the operator's own kernel is on MPS\n"
    yield f"\nnamespace at::native {{\n\n{note}TORCH_IMPL_FUNC({promotion.op}_out_cpu)\n"
    yield f"({_parameters(promotion)}, {outs}) {{\n"
    for name, expression in zip(promotion.schema.results, promotion.cpu, strict=True):
        yield f"  {name}.copy_({expression});\n"
    yield "}\n\n} // namespace at::native\n"


def write_host_file(promotion: Promotion, style: Style) -> str:
    """The text of `operations/NAME.mm`."""
    op, stem = promotion.op, promotion.schema.file
    body = "".join(_launch(promotion, style))
    profiler = "#include <ATen/mps/MPSProfiler.h>\n" if style.profiler else ""
    library = "static auto& lib = MetalShaderLibrary::getBundledLibrary();\n"
    if style.jit:
        included = f"#include <ATen/native/mps/{stem}_metallib.h>\n"
        library = f"#ifndef PYTORCH_JIT_COMPILE_SHADERS\n{library}#else\n{included}#endif\n"
    helper = _VALUES if "as_argument<" in body else ""
    extra = "#include <ATen/ceil_div.h>\n" if "ceil_div" in body else ""
    extra += "" if "div_floor_integer" not in body else "#include <c10/util/generic_math.h>\n"
    casts = "#include <c10/util/TypeCast.h>\n" if "checked_convert" in body else ""
    outs = ", ".join(f"const Tensor& {name}" for name in promotion.schema.results)
    functions = "#include <ATen/Functions.h>\n" if "at::empty(" in body else ""
    empty = "#include <ATen/ops/empty.h>\n" if functions else ""
    return (
        f"#define TORCH_ASSERT_ONLY_METHOD_OPERATORS\n{extra}{profiler}#include <ATen/native/mps/OperationUtils.h>\n"
        f"{casts}\n#ifndef AT_PER_OPERATOR_HEADERS\n{functions}#include <ATen/NativeFunctions.h>\n#else\n{empty}"
        f"#include <ATen/ops/{op}_native.h>\n#endif\n\nnamespace at::native {{\n\nusing namespace mps;\n\n{library}\n"
        f"{helper}TORCH_IMPL_FUNC({op}_out_mps)\n({_parameters(promotion)}, {outs}) {{\n{body}}}\n\n"
        "} // namespace at::native\n"
    )


def _launch(promotion: Promotion, style: Style) -> Iterator[str]:
    launch = promotion.program.launch
    printer = _printer(promotion)
    bound = [_bind(promotion, printer, binding) for binding in promotion.kernel.bindings]
    dispatch = _dispatch(promotion, printer)
    name = _kernel_name(promotion, printer)
    empty = " || ".join(f"{printer.print(each, 4)} == 0" for each in launch.grid if not isinstance(each, Constant))
    inputs = [printer.print(_operand(promotion, each)) for each in launch.arguments if is_tensor(each)]
    left = list(_left_behind(promotion, printer))
    yield from (f"  {each}\n" for each in _supported_types(promotion))
    yield from (f"  {each}\n" for each in printer.declarations)
    yield from (f"  {each}\n" for each in left)
    if launch.init_value is not None:
        start = Printer().print(Constant(launch.init_value))
        yield from (f"  {each}.fill_({start});\n" for each in _output_names(promotion))
    if empty:
        yield f"  if ({empty}) {{\n    return;\n  }}\n"
    yield from (f"  {declaration}\n" for declaration, _ in bound if declaration)
    yield f"  const std::string kernel = {name};\n"
    on = ", stream" if style.profiles_stream else ""
    begin = f"\n{_NOTE}      getMPSProfiler().beginProfileKernel(pipeline, kernel, {{{', '.join(inputs)}}}{on});\n\n"
    end = f"\n      getMPSProfiler().endProfileKernel(pipeline{on});\n"
    yield (
        "\n  MPSStream* stream = getCurrentMPSStream();\n  dispatch_sync_with_rethrow(stream->queue(), ^() {\n"
        "    @autoreleasepool {\n      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();\n"
        "      id<MTLComputePipelineState> pipeline = lib.getPipelineStateForFunc(kernel);\n"
        f"{begin if style.profiler else ''}"
        "      [encoder setComputePipelineState:pipeline];\n"
        f"      mtl_setArgs(encoder, {', '.join(text for _, text in bound)});\n      {dispatch}\n"
        f"{end if style.profiler else ''}    }}\n  }});\n"
    )


def _printer(promotion: Promotion) -> Printer:
    """A printer that knows the script's own names for what it computes."""
    taken = {each.name for each in promotion.schema.arguments} | set(promotion.schema.results) | _RESERVED
    names: dict[Node, str] = {}
    for name, node in promotion.program.launch.names:
        if isinstance(node, (Constant, str, Scalar)) or node in names:
            continue
        names[node] = f"{name}_" if name in taken else name
        taken.add(names[node])
    launch = promotion.program.launch
    values = [(each.name.lower(), each.value) for each in launch.template if not isinstance(each.value, str)]
    for name, node in (*values, ("threads", launch.grid[0])):
        if isinstance(node, (Apply, Select)) and node not in names and name not in taken:
            names[node] = name
            taken.add(name)
    if promotion.kernel.row_contiguous:
        for node in map(_made_contiguous, promotion.program.launch.arguments):
            if isinstance(node, Method) and node not in names:
                source = node.tensor
                word = source.name if isinstance(source, Method) else source if isinstance(source, str) else "input"
                inner = names.get(source, word)
                names[node] = f"{inner}_" if f"{inner}_" not in taken else f"{inner}_contiguous"
                taken.add(names[node])
    return Printer(held=names)


def _made_contiguous(node: Node) -> Node:
    """What a kernel that needs dense input gets."""
    if isinstance(node, Method) and node.name == "contiguous":
        return node
    if isinstance(node, Method) and node.name == "view" and _made_contiguous(node.tensor) == node.tensor:
        return node
    return Method(node, "contiguous") if is_tensor(node) else node  # type: ignore[arg-type]


def _operand(promotion: Promotion, node: Node) -> Node:
    return _made_contiguous(node) if promotion.kernel.row_contiguous else node


def _bind(promotion: Promotion, printer: Printer, binding: Binding) -> tuple[str, str]:
    """The declaration that a buffer needs, and the argument that binds it."""
    arguments = promotion.program.launch.arguments
    if binding.operand >= len(arguments):
        at = binding.operand - len(arguments)
        name, output = _output_names(promotion)[at], promotion.program.launch.kernel_outputs[at]
        if binding.content is Content.DATA:
            return "", name
        return _describe(name, printer.listed(output.sizes), name, binding.content)
    node = _operand(promotion, arguments[binding.operand])
    text = printer.print(node)
    if binding.content is not Content.DATA:
        label = "".join(c if c.isalnum() else "_" for c in text).strip("_")
        return _describe(label, f"{text}.sizes()", text, binding.content)
    if is_tensor(node):
        return _fill_empty(text) if binding.operand in promotion.empty else ("", text)
    return "", _number(node, text)


def _output_names(promotion: Promotion) -> list[str]:
    """What host code calls each output of the kernel: a result, or a tensor of its own."""
    returned = promotion.program.launch.returned
    given = {at: promotion.schema.results[number] for number, at in enumerate(returned)}
    taken = {each.name for each in promotion.schema.arguments} | set(promotion.schema.results) | _RESERVED
    own = (f"{name}_" if name in taken else name for name in promotion.kernel.outputs)
    return [given.get(at, name) for at, name in enumerate(own)]


def _left_behind(promotion: Promotion, printer: Printer) -> Iterator[str]:
    """Declares what the kernel writes for itself alone."""
    launch = promotion.program.launch
    for at, name in enumerate(_output_names(promotion)):
        if at not in launch.returned:
            output = launch.kernel_outputs[at]
            given = f"{printer.listed(output.sizes)}, {_options(promotion, output.dtype)}"
            yield f"const Tensor {name} = at::empty({given});"


def _fill_empty(text: str) -> tuple[str, str]:
    name = f"{text.strip('_')}_buffer"
    made = f"at::empty({{1}}, {text}.options())"
    note = "// Metal wants a buffer for every argument, and an empty tensor has none\n"
    return f"{note}const Tensor {name} = {text}.numel() > 0 ? {text} : {made};", name


def _number(node: Node, text: str) -> str:
    match type_of(node):
        case "float":
            return f"static_cast<float>({text})"
        case "bool":
            return text
    if isinstance(node, Constant):
        return f"static_cast<int32_t>({text})"
    return f'c10::checked_convert<int32_t>({text}, "int32_t")'


def _describe(label: str, sizes: str, text: str, content: Content) -> tuple[str, str]:
    if content is Content.SHAPE:
        return f"const auto {label}_shape = as_argument<int32_t>({sizes});", f"{label}_shape"
    if content is Content.STRIDES:
        return f"const auto {label}_strides = as_argument<int64_t>({text}.strides());", f"{label}_strides"
    if content is Content.RANK:
        return "", f"static_cast<int32_t>({text}.dim())"
    return "", f"{text}.storage_offset()"


def _dispatch(promotion: Promotion, printer: Printer) -> str:
    launch = promotion.program.launch
    one = Constant(1)
    if launch.grid[1:] == (one, one) and not promotion.kernel.in_groups:
        return f"mtl_dispatch1DJob(encoder, pipeline, {printer.print(launch.grid[0])});"
    grid = ", ".join(map(printer.print, launch.grid))
    groups = (_fit(group, size) for group, size in zip(launch.group, launch.grid, strict=True))
    return (
        f"[encoder dispatchThreads:MTLSizeMake({grid})\n"
        f"           threadsPerThreadgroup:MTLSizeMake({', '.join(printer.print(each) for each in groups)})];"
    )


def _fit(group: HostValue, grid: HostValue) -> HostValue:
    """The group, which is never larger than the grid: one that divides the grid is not."""
    divides = group == grid or group == Constant(1)
    if divides or (isinstance(grid, Apply) and grid.function == "*" and group in grid.arguments):
        return group
    return apply("min", group, grid)


def _kernel_name(promotion: Promotion, printer: Printer) -> str:
    parts = []
    for each in promotion.kernel.types:
        tensor = next(name for name, dtypes in promotion.dtypes.items() if dtypes == each.dtypes)
        parts.append(f"scalarToMetalTypeString({tensor})")
    values = {each.name: each.value for each in promotion.program.launch.template}
    for name in promotion.kernel.numbers:
        value = values[name]
        assert not isinstance(value, str)
        text = printer.print(value, 1)
        parts.append(
            f'({text} ? "true" : "false")' if type_of(value) == "bool" else f"std::to_string({printer.print(value)})"
        )
    if not parts:
        return quote(promotion.op)
    return f"{quote(promotion.op + '_')} + " + ' + "_" + '.join(parts)


def _parameters(promotion: Promotion) -> str:
    return ", ".join(argument.declaration for argument in promotion.schema.arguments)


def _same_types(promotion: Promotion) -> list[str]:
    """The checks that tensors have the element types that belong together."""
    found = []
    first: dict[tuple[str, ...], str] = {}
    for name, dtypes in promotion.dtypes.items():
        if len(set(dtypes)) == 1 and len(dtypes) > 1:
            found.append(_type_check(promotion, name, dtypes[:1]))
        elif dtypes in first:
            other = first[dtypes]
            found.append(
                f"TORCH_CHECK_TYPE({name}.scalar_type() == {other}.scalar_type(), "
                f'"{promotion.op}: {name} has to be ", {other}.scalar_type(), " as {other} is, not ", '
                f"{name}.scalar_type());"
            )
        else:
            first[dtypes] = name
    return found


def _supported_types(promotion: Promotion) -> list[str]:
    """The checks that there is a kernel for the tensors' element types."""
    checked: dict[tuple[str, ...], str] = {}
    for name, dtypes in promotion.dtypes.items():
        if len(set(dtypes)) > 1 or len(dtypes) == 1:
            checked.setdefault(dtypes, name)
    return [_type_check(promotion, name, dtypes) for dtypes, name in checked.items()]


def _type_check(promotion: Promotion, name: str, dtypes: tuple[str, ...]) -> str:
    condition = " || ".join(f"{name}.scalar_type() == {_ATEN[each]}" for each in dtypes)
    names = [_NAMES[each] for each in dtypes]
    listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f'TORCH_CHECK_TYPE({condition}, "{promotion.op}: {name} has to be {listed}, not ", {name}.scalar_type());'


def _options(promotion: Promotion, dtype: str) -> str:
    """The options of an output: `dtype` is the name of a tensor whose type it has, or a torch name."""
    if dtype in promotion.dtypes:
        return f"{dtype}.options()"
    return f"{promotion.schema.tensors[0].name}.options().dtype({_ATEN[dtype]})"


_BFLOAT = "bfloat"


def write_kernel_file(promotion: Promotion, style: Style) -> str:
    """The text of `kernels/NAME.metal`."""
    before = f"{promotion.kernel.before}\n" if promotion.kernel.before else ""
    return (
        "#include <metal_stdlib>\nusing namespace metal;\n\n"
        f"{before}{promotion.kernel.definition}{''.join(_instantiations(promotion, style))}"
    )


def _instantiations(promotion: Promotion, style: Style) -> Iterator[str]:
    kernel, op = promotion.kernel, promotion.op
    if not kernel.parameters:
        return
    words = [*(each.word for each in kernel.types), *kernel.numbers]
    macro = f"INSTANTIATE_{op.upper()}"
    # The macro's own names: one that is a template parameter's too would say the same of two things.
    values = {word: f"{word.upper()}_" if not word.isupper() or len(word) == 1 else f"{word}_" for word in words}
    host_name = ' "_" '.join(f"#{values[word]}" for word in words)
    instance = f"{op}<{', '.join(values[word] for word in kernel.parameters)}>"
    yield (
        f"\n#define {macro}({', '.join(values[word] for word in words)}) \\\n"
        f'  template [[host_name("{op}_" {host_name})]] [[kernel]] decltype({instance}) {instance};\n\n'
    )
    plain = [each for each in kernel.instances if not (style.bfloat_guard and _BFLOAT in each)]
    guarded = [each for each in kernel.instances if each not in plain]
    yield from (f"{macro}({', '.join(each)})\n" for each in plain)
    if guarded:
        yield "#if __METAL_VERSION__ >= 310\n"
        yield from (f"{macro}({', '.join(each)})\n" for each in guarded)
        yield "#endif\n"
