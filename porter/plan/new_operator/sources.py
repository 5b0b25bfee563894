"""The C++ files of a new operator, and its rows: meta function, stub, and the kernel on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from porter.core.layout import CPU_KERNELS, NATIVE
from porter.plan.new_operator.expression import write_cpp
from porter.plan.new_operator.operator import NewOperator
from porter.plan.new_operator.schema import Schema, write_arguments

_BUILDERS = {1: "build_borrowing_unary_float_op", 2: "build_borrowing_binary_float_op"}


def write_rows(schema: Schema) -> str:
    """The functional form, the one in place, and the one that writes to `out=`, whose structured kernel all use."""
    op = schema.name
    shared = "  variants: function, method\n  tags: pointwise\n\n"
    return (
        f"- func: {schema}\n  structured_delegate: {op}.out\n{shared}"
        f"- func: {op}_({write_arguments(schema, 'Tensor(a!)')}) -> Tensor(a!)\n"
        f"  structured_delegate: {op}.out\n{shared}"
        f"- func: {op}.out({write_arguments(schema, out='Tensor(a!) out')}) -> Tensor(a!)\n"
        "  structured: True\n  structured_inherits: TensorIteratorBase\n"
        f"  dispatch:\n    CPU: {op}_out\n  tags: pointwise\n"
    )


def write_files(operator: NewOperator) -> dict[str, str]:
    """The texts of the operator's own C++ files, by path."""
    stem = operator.schema.file
    return {
        f"{NATIVE}/{stem}.h": "".join(_stub(operator.schema)),
        f"{NATIVE}/{stem}.cpp": "".join(_meta(operator.schema)),
        f"{CPU_KERNELS}/{stem}Kernel.cpp": "".join(_kernel(operator)),
    }


def _stub(schema: Schema) -> Iterator[str]:
    types = ", ".join(["TensorIteratorBase&", *(f"{each.cpp} {each.name}" for each in schema.numbers)])
    yield "#pragma once\n\n#include <ATen/native/DispatchStub.h>\n\nnamespace at {\nstruct TensorIteratorBase;\n}\n\n"
    yield f"namespace at::native {{\n\nusing {schema.name}_fn = void (*)({types});\n\n"
    yield f"DECLARE_DISPATCH({schema.name}_fn, {schema.name}_stub)\n\n}} // namespace at::native\n"


def _meta(schema: Schema) -> Iterator[str]:
    op = schema.name
    parameters = ", ".join(f"{each.cpp} {each.name}" for each in schema.arguments)
    given = "".join(f", {each.name}" for each in schema.numbers)
    yield f"#define TORCH_ASSERT_ONLY_METHOD_OPERATORS\n#include <ATen/native/{schema.file}.h>\n"
    yield "#include <ATen/core/Tensor.h>\n#include <ATen/TensorIterator.h>\n\n"
    yield "#ifndef AT_PER_OPERATOR_HEADERS\n#include <ATen/NativeFunctions.h>\n#else\n"
    yield f"#include <ATen/ops/{op}_meta.h>\n#include <ATen/ops/{op}_native.h>\n#endif\n\n"
    yield f"namespace at::meta {{\n\nTORCH_META_FUNC({op})\n({parameters}) {{\n{_build(schema)}}}\n\n"
    yield "} // namespace at::meta\n\n"
    yield f"namespace at::native {{\n\nDEFINE_DISPATCH({op}_stub);\n\n"
    yield f"TORCH_IMPL_FUNC({op}_out)\n({parameters}, const Tensor& result) {{\n"
    yield f"  {op}_stub(device_type(), *this{given});\n}}\n\n}} // namespace at::native\n"


def _build(schema: Schema) -> str:
    tensors = [each.name for each in schema.tensors]
    if len(tensors) in _BUILDERS:
        return f"  {_BUILDERS[len(tensors)]}(maybe_get_output(), {', '.join(tensors)});\n"
    flags = ("promote_inputs_to_common_dtype", "promote_integer_inputs_to_float", "cast_common_dtype_to_outputs",
             "enforce_safe_casting_to_output")  # fmt: skip
    inputs = "".join(f"\n            .add_const_input({name})" for name in tensors)
    settings = "".join(f"\n            .{flag}(true)" for flag in flags)
    return f"  build(TensorIteratorConfig(){settings}\n            .add_output(maybe_get_output()){inputs});\n"


def _kernel(operator: NewOperator) -> Iterator[str]:
    schema, op = operator.schema, operator.schema.name
    parameters = ", ".join(["TensorIteratorBase& iter", *(f"{each.cpp} {each.name}" for each in schema.numbers)])
    elements = ", ".join(f"scalar_t {each.name}" for each in schema.tensors)
    yield f"#define TORCH_ASSERT_NO_OPERATORS\n#include <ATen/native/{schema.file}.h>\n\n"
    yield "#include <ATen/Dispatch.h>\n#include <ATen/OpMathType.h>\n#include <ATen/native/TensorIterator.h>\n"
    yield "#include <ATen/native/cpu/Loops.h>\n#include <c10/util/MathConstants.h>\n\n#include <cmath>\n\n"
    yield f"namespace at::native {{\nnamespace {{\n\nvoid {op}_kernel({parameters}) {{\n"
    yield f'  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, iter.common_dtype(), "{op}_cpu", [&]() {{\n'
    yield "    using opmath_t = at::opmath_type<scalar_t>;\n"
    yield f"    cpu_kernel(iter, [=]({elements}) -> scalar_t {{\n"
    yield f"      return {write_cpp(operator.expression)};\n    }});\n"
    yield f"  }});\n}}\n\n}} // namespace\n\nREGISTER_DISPATCH({op}_stub, &{op}_kernel)\n\n}} // namespace at::native\n"
