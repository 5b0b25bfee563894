"""What a PyTorch build makes of a new operator beside its registrations: CPU dispatch and the autograd function.

The first stands for compiling `native/cpu` once for each CPU capability, the second for `tools/autograd`, of the
formulas in derivatives.yaml as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from porter.plan.new_operator.schema import Argument

_CAPABILITIES = ("AVX2", "AVX512")
_SAVED = {"double": "toDouble", "int64_t": "toInt", "bool": "toBool"}


def write_cpu_dispatch(stub: str, kernel: str, path: str) -> str:
    """The source of a CPU kernel, compiled for the default capability, which serves the others too."""
    others = "".join(f"REGISTER_ARCH_DISPATCH({stub}, {each}, &{kernel})\n" for each in _CAPABILITIES)
    return (
        "#include <ATen/native/DispatchStub.h>\n#undef REGISTER_DISPATCH\n"
        "#define REGISTER_DISPATCH(name, fn) REGISTER_ARCH_DISPATCH(name, DEFAULT, fn)\n"
        f"#include <{path}>\n\n"
        f"namespace at::native {{\n{others}}} // namespace at::native\n"
    )


def write_autograd(op: str, parameters: Sequence[Argument], formulas: Mapping[str, str]) -> str:
    """The source of an autograd function with these formulas."""
    return "".join(_write_autograd(op, parameters, formulas))


def _write_autograd(op: str, parameters: Sequence[Argument], formulas: Mapping[str, str]) -> Iterator[str]:
    types, names = ", ".join(each.cpp for each in parameters), ", ".join(each.name for each in parameters)
    declared = ", ".join(f"{each.cpp} {each.name}" for each in parameters)
    tensors = [each.name for each in parameters if each.is_tensor]
    numbers = [each for each in parameters if not each.is_tensor]
    headers = ("ATen/ATen.h", "ATen/core/dispatch/Dispatcher.h", "torch/csrc/autograd/custom_function.h")
    yield from (f"#include <{each}>\n" for each in (*headers, "torch/library.h", "cmath"))
    yield "\nnamespace {\nusing namespace at;\n\n"
    yield f"Tensor call({declared}) {{\n  static const auto op = c10::Dispatcher::singleton()\n"
    yield f'      .findSchemaOrThrow("aten::{op}", "").typed<Tensor({types})>();\n  return op.call({names});\n}}\n\n'
    yield "Tensor reduce(const Tensor& grad, const Tensor& like) {\n"
    yield "  return grad.sum_to_size(like.sizes()).to(like.scalar_type());\n}\n\n"
    yield "struct Node : torch::autograd::Function<Node> {\n"
    yield f"  static Tensor forward(torch::autograd::AutogradContext* ctx, {declared}) {{\n"
    yield f"    ctx->save_for_backward({{{', '.join(tensors)}}});\n"
    yield from (f'    ctx->saved_data["{each.name}"] = {each.name};\n' for each in numbers)
    yield f"    AutoDispatchBelowADInplaceOrView below;\n    return call({names});\n  }}\n"
    yield "  static torch::autograd::variable_list backward(\n"
    yield "      torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {\n"
    yield "    const auto saved = ctx->get_saved_variables();\n    const Tensor& grad = grads[0];\n"
    yield from (f"    const Tensor& {name} = saved[{at}];\n" for at, name in enumerate(tensors))
    for each in numbers:
        yield f'    const {each.cpp} {each.name} = ctx->saved_data["{each.name}"].{_SAVED[each.cpp]}();\n'
    results = [f"reduce({formulas[e.name]}, {e.name})" if e.name in formulas else "Tensor()" for e in parameters]
    yield f"    return {{{', '.join(results)}}};\n  }}\n}};\n\n"
    yield f"Tensor differentiable({declared}) {{\n  return Node::apply({names});\n}}\n\n}} // namespace\n\n"
    yield f'TORCH_LIBRARY_IMPL(aten, Autograd, m) {{\n  m.impl("{op}", TORCH_FN(differentiable));\n}}\n'
