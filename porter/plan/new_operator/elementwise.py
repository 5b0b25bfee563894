"""An elementwise operator from a schema and an expression: its C++ files, its tests and its documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, NATIVE
from porter.languages import cpp, cpp_parser
from porter.languages.brackets import strip_parentheses
from porter.languages.identifiers import find_words
from porter.languages.patterns import has_code, match_code
from porter.plan.new_operator.expression import (
    derive,
    find_names,
    needs_positive,
    parse_expression,
    write_cpp,
    write_python,
)
from porter.plan.new_operator.operator import (
    Argument,
    NewOperator,
    OperatorTests,
    Sample,
    Schema,
    parse_schema,
    write_case,
    write_opinfo,
    write_sample_function,
)

_OPERATOR = re.compile(r"operator\(\)\s*\(([^)]*)\)\s*\{([^}]*)\}")
_NUMBER = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFhH]?")


def read_expression(schema: Schema, text: str) -> str:
    """Returns what a functor computes as an expression of the schema's arguments.

    Raises PTR319 for a functor that is more than `return` and an expression.
    """
    parameters, body = _find_operators(schema, text)[0]
    returned = match_code(body, "return $$value;")
    names = dict(zip(parameters, (each.name for each in (*schema.tensors, *schema.numbers)), strict=True))
    try:
        if returned is not None:
            return _spell(cpp_parser.parse_expression("", returned["value"]), names)
    except (cpp.ParseError, KeyError):
        pass  # a construct that an expression does not have
    what = f"operator() of {schema.name}_functor is more than `return` and an expression of its parameters"
    raise PorterError("PTR319", what, hint="Say with --expr what the functor computes: the CPU computes that.")


def _spell(node: cpp.Expr, names: dict[str, str]) -> str:
    match node:
        case cpp.Name(path=path):
            return names[path]
        case cpp.Literal(text=text) if number := _NUMBER.fullmatch(text):
            return number[1]
        case cpp.Paren(value=value) | cpp.Cast(value=value):
            return f"({_spell(value, names)})"
        case cpp.Unary(op="-", value=value):
            return f"-({_spell(value, names)})"
        case cpp.Binary(op="+" | "-" | "*" | "/", left=left, right=right):
            return f"{_spell(left, names)} {node.op} {_spell(right, names)}"
        case cpp.Call(function=cpp.Name() as function, arguments=arguments):
            given = ", ".join(_spell(each, names) for each in arguments)
            return f"({given})" if function.path in ("T", "float") else f"{function.last}({given})"
    raise KeyError(type(node).__name__)


def _find_operators(schema: Schema, text: str) -> list[tuple[list[str], str]]:
    """The parameters' names and the body of each operator(). Raises PTR319 if they are not those of the schema."""
    if not has_code(text, f"struct {schema.name}_functor {{"):
        what = f"the functor file does not define struct {schema.name}_functor"
        raise PorterError("PTR319", what, hint="Its operator() takes the tensors, then the numbers of the schema.")
    found = [(_read_names(match[1]), match[2]) for match in _OPERATOR.finditer(text)]
    takes = len(schema.arguments)
    wrong = next((names for names, _ in found if len(names) != takes), None)
    if wrong is not None or not found:
        what = f"operator() of {schema.name}_functor takes {len(wrong or ())} values, and the schema has {takes}"
        raise PorterError("PTR319", what, hint="Give it the tensors, then the numbers of the schema.")
    return found


def _read_names(parameters: str) -> list[str]:
    return [words[-1] for part in parameters.split(",") if (words := find_words(part))]


_BUILDERS = {1: "build_borrowing_unary_float_op", 2: "build_borrowing_binary_float_op"}
_FLAGS = ("promote_inputs_to_common_dtype", "promote_integer_inputs_to_float", "cast_common_dtype_to_outputs",
          "enforce_safe_casting_to_output")  # fmt: skip
_VALUES = {"float": "0.75", "int": "2", "bool": "True"}
_SHAPES = ("()", "(5,)", "(3, 4)", "(2, 0, 3)")


@dataclass(frozen=True)
class ExpressionWish:
    """What is asked for: a schema, an expression of its arguments, and a Metal functor that computes the same.

    One of the last two may be empty.
    """

    schema: str
    expression: str
    functor: str = ""


def read_operator(wish: ExpressionWish) -> NewOperator:
    """Reads a wish. Raises PTR314 to PTR317 and PTR319 for what cannot be used."""
    schema = parse_schema(wish.schema)
    names, tensors = [arg.name for arg in schema.arguments], [tensor.name for tensor in schema.tensors]
    tree = parse_expression(wish.expression or read_expression(schema, wish.functor), names)
    unused = [name for name in tensors if name not in find_names(tree)]
    if unused:
        what = f"the expression does not use {unused[0]}, a tensor of the schema"
        raise PorterError("PTR317", what, hint="Use each Tensor, or take it from the schema.")
    if wish.functor:
        _find_operators(schema, wish.functor)
    derivatives = derive(tree, tensors, names) or {}
    files = {
        f"{NATIVE}/{schema.file}.h": "".join(_write_stub(schema)),
        f"{NATIVE}/{schema.file}.cpp": "".join(_write_meta(schema)),
        f"{CPU_KERNELS}/{schema.file}Kernel.cpp": "".join(_write_kernel(schema, tree)),
    }
    return NewOperator(
        schema, {"CPU": f"{schema.name}_out"}, files, _write_tests(schema, tree, bool(derivatives)),
        is_pointwise=True, derivatives=derivatives, docs=_write_docs(schema, tree),
    )  # fmt: skip


def _write_stub(schema: Schema) -> Iterator[str]:
    types = ", ".join(["TensorIteratorBase&", *(number.declaration for number in schema.numbers)])
    yield "#pragma once\n\n#include <ATen/native/DispatchStub.h>\n\nnamespace at {\nstruct TensorIteratorBase;\n}\n\n"
    yield f"namespace at::native {{\n\nusing {schema.name}_fn = void (*)({types});\n\n"
    yield f"DECLARE_DISPATCH({schema.name}_fn, {schema.name}_stub)\n\n}} // namespace at::native\n"


def _write_meta(schema: Schema) -> Iterator[str]:
    op = schema.name
    parameters = ", ".join(argument.declaration for argument in schema.arguments)
    numbers = "".join(f", {number.name}" for number in schema.numbers)
    yield f"#define TORCH_ASSERT_ONLY_METHOD_OPERATORS\n#include <ATen/native/{schema.file}.h>\n"
    yield "#include <ATen/core/Tensor.h>\n#include <ATen/TensorIterator.h>\n\n"
    yield "#ifndef AT_PER_OPERATOR_HEADERS\n#include <ATen/NativeFunctions.h>\n#else\n"
    yield f"#include <ATen/ops/{op}_meta.h>\n#include <ATen/ops/{op}_native.h>\n#endif\n\n"
    yield f"namespace at::meta {{\n\nTORCH_META_FUNC({op})\n({parameters}) {{\n{_build(schema)}}}\n\n"
    yield "} // namespace at::meta\n\n"
    yield f"namespace at::native {{\n\nDEFINE_DISPATCH({op}_stub);\n\n"
    yield f"TORCH_IMPL_FUNC({op}_out)\n({parameters}, const Tensor& result) {{\n"
    yield f"  {op}_stub(device_type(), *this{numbers});\n}}\n\n}} // namespace at::native\n"


def _build(schema: Schema) -> str:
    tensors = [tensor.name for tensor in schema.tensors]
    if len(tensors) in _BUILDERS:
        return f"  {_BUILDERS[len(tensors)]}(maybe_get_output(), {', '.join(tensors)});\n"
    inputs = "".join(f"\n            .add_const_input({name})" for name in tensors)
    settings = "".join(f"\n            .{flag}(true)" for flag in _FLAGS)
    return f"  build(TensorIteratorConfig(){settings}\n            .add_output(maybe_get_output()){inputs});\n"


def _write_kernel(schema: Schema, tree: ast.expr) -> Iterator[str]:
    op = schema.name
    parameters = ", ".join(["TensorIteratorBase& iter", *(number.declaration for number in schema.numbers)])
    elements = ", ".join(f"scalar_t {tensor.name}" for tensor in schema.tensors)
    yield f"#define TORCH_ASSERT_NO_OPERATORS\n#include <ATen/native/{schema.file}.h>\n\n"
    yield "#include <ATen/Dispatch.h>\n#include <ATen/OpMathType.h>\n#include <ATen/native/TensorIterator.h>\n"
    yield "#include <ATen/native/cpu/Loops.h>\n#include <c10/util/MathConstants.h>\n\n#include <cmath>\n\n"
    yield f"namespace at::native {{\nnamespace {{\n\nvoid {op}_kernel({parameters}) {{\n"
    yield f'  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, iter.common_dtype(), "{op}_cpu", [&]() {{\n'
    yield "    using opmath_t = at::opmath_type<scalar_t>;\n"
    yield f"    cpu_kernel(iter, [=]({elements}) -> scalar_t {{\n"
    yield f"      return {write_cpp(tree)};\n    }});\n"
    yield f"  }});\n}}\n\n}} // namespace\n\nREGISTER_DISPATCH({op}_stub, &{op}_kernel)\n\n}} // namespace at::native\n"


def _write_tests(schema: Schema, tree: ast.expr, has_gradient: bool) -> OperatorTests:
    op, low = schema.name, 0.25 if needs_positive(tree) else -2.0
    value = strip_parentheses(write_python(tree, [tensor.name for tensor in schema.tensors]))
    math = "    import math\n\n" if "math." in value else ""
    bounds = (
        "        bounds = {} if dtype is torch.bool else "
        f"{{'low': {low} if dtype.is_floating_point else 1, 'high': 2.0 if dtype.is_floating_point else 5}}\n"
    )
    forward = "" if len(schema.tensors) > 1 or not has_gradient else "           supports_forward_ad=True,\n"
    statements = (
        f"expected = reference_{op}(*(moved(a, dtype=torch.double) for a in args), **sample.kwargs)",
        f"actual = torch.{op}(*(moved(a, device='mps') for a in args), **sample.kwargs)",
        "self.assertEqual(actual.cpu(), expected.to(dtype))",
    )
    helper = (
        "        def moved(a, **to):\n"
        "            return a.to(**to) if isinstance(a, torch.Tensor) else a\n"
    )  # fmt: skip
    return OperatorTests(
        functions=f"def reference_{op}({_write_parameters(schema)}):\n{math}    return {value}\n\n\n"
        f"{write_sample_function(op, _list_samples(schema), '', bounds)}",
        opinfo=write_opinfo(
            op, "*args, **kwargs", "torch.as_tensor(a)", "all_types_and(torch.bool, torch.half, torch.bfloat16)",
            forward if has_gradient else "           supports_autograd=False,\n",
        ),
        case=write_case(schema, "", helper, "(torch.float32, torch.float16, torch.bfloat16)", statements),
    )  # fmt: skip


def _list_samples(schema: Schema) -> Iterator[Sample]:
    yield from (_make_sample(schema, shape) for shape in _SHAPES)
    if any(number.default is not None for number in schema.numbers):
        yield _make_sample(schema, _SHAPES[2], leaves_defaults=True)
    if len(schema.tensors) > 1:
        # Broadcasting: each tensor but the first is a row.
        yield _make_sample(schema, _SHAPES[2], row="(4,)")


def _make_sample(schema: Schema, shape: str, leaves_defaults: bool = False, row: str = "") -> Sample:
    def write_value(argument: Argument) -> str:
        return f"make_arg({row or shape})" if argument.is_tensor else _VALUES[argument.type]

    passed = [arg for arg in schema.arguments[1:] if arg.default is None or not leaves_defaults]
    return Sample(
        (f"make_arg({shape})", *(write_value(arg) for arg in passed if not arg.keyword)),
        keywords={arg.name: write_value(arg) for arg in passed if arg.keyword},
    )


def _write_parameters(schema: Schema) -> str:
    texts = [_write_parameter(argument) for argument in schema.arguments if not argument.keyword]
    named = [_write_parameter(argument) for argument in schema.arguments if argument.keyword]
    return ", ".join([*texts, *(["*", *named] if named else [])])


def _write_parameter(argument: Argument) -> str:
    default = argument.default
    if default is None:
        return argument.name
    return f"{argument.name}={default.capitalize() if argument.type == 'bool' else default}"


def _write_docs(schema: Schema, tree: ast.expr) -> str:
    """The docstring of the function, as torch/_torch_docs.py has them."""
    lines = {keyword: "".join(_describe(schema, keyword)) for keyword in (False, True)}
    return (
        f'add_docstr(\n    torch.{schema.name},\n    r"""\n'
        f"{schema.name}({_write_parameters(schema)}, out=None) -> Tensor\n\n"
        f"Computes ``{ast.unparse(tree)}`` element by element. Integers are computed as floats.\n\n"
        f"Args:\n{lines[False]}\nKeyword args:\n{lines[True]}"
        '    out (Tensor, optional): the output tensor.\n""",\n)\n'
    )


def _describe(schema: Schema, keyword: bool) -> Iterator[str]:
    for argument in schema.arguments:
        if argument.keyword is not keyword:
            continue
        text = f"Tensor): the {'input' if argument.name == 'self' else argument.name} tensor."
        if not argument.is_tensor:
            default = "" if argument.default is None else f", optional): default: {argument.default}."
            text = f"{argument.type}{default or '): a number.'}"
        yield f"    {argument.name} ({text}\n"
