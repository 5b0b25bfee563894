"""Builds an operator that the installed torch does not have: its schema, its meta function and its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from porter.core.cache import digest, put_if_changed
from porter.core.layout import NATIVE_FUNCTIONS
from porter.plan.new_operator.operator import Argument
from porter.verdict.build import libraries, registration, sources
from porter.verdict.build.libraries import Built
from porter.verdict.build.objects import Recipe
from porter.verdict.build.registration import Registration
from porter.verdict.build.tree import Tree

# mypy: disable-error-code="import-untyped"


_KEYS = ("Meta", "CPU", "MPS")


def build_new_operator(
    tree: Tree,
    op: str,
    files: Sequence[str],
    recipe: Recipe,
    cache: Path,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Built:
    """The library with an operator's registrations and `files`, which define what its rows name.

    `more` are texts of C++ that only this build has, by file name.

    Raises PTR160 (rows that torchgen cannot read), PTR166 (host code that does not compile) or PTR167 (or link).
    """
    found = _generate(tree.read(NATIVE_FUNCTIONS), op, cache / "generated" / digest(tree.root.name, "new", op))
    made = (put_if_changed(found.sources[0].parent / name, text) for name, text in more.items())
    found = replace(found, sources=(*found.sources, *made))
    needed = dict.fromkeys((*sources.library_files(tree), *files))
    return libraries.link(tree, needed, found, recipe, cache, required=files)


def _generate(yaml_text: str, op: str, out: Path) -> Registration:
    """Writes what a PyTorch build would generate for the operator's rows."""
    from torchgen.gen import compute_meta_function_declaration, get_native_function_declarations

    family = registration.rows(yaml_text, [op])
    groups, indices = registration.read_groups(family)
    include = out / "include"
    structured = list(filter(None, map(compute_meta_function_declaration, groups)))
    declarations = get_native_function_declarations(grouped_native_functions=groups, backend_indices=indices)
    headers = {
        "meta": ("NativeMetaFunction.h", {"meta_function_declarations": structured}),
        "native": (
            "NativeFunction.h",
            {
                "extra_includes": [f"#include <ATen/ops/{op}_meta.h>"],
                "native_function_declarations": declarations,
            },
        ),
    }
    for name, (template, values) in headers.items():
        put_if_changed(include / "ATen" / "ops" / f"{op}_{name}.h", registration.fill_template(template, values))
    schemas = [str(each.func) for group in groups for each in group.functions()]
    lines = "".join(f'  m.def("{schema}");\n' for schema in schemas)
    text = f"#include <torch/library.h>\n\nTORCH_LIBRARY_FRAGMENT(aten, m) {{\n{lines}}}\n"
    written = [put_if_changed(out / "RegisterSchema.cpp", text), *_write_registrations(groups, indices, out)]
    return Registration(tuple(written), include, registration.kernels_of(groups, indices, family), ())


def _write_registrations(groups: registration.Grouped, indices: registration.Indices, out: Path) -> Iterator[Path]:
    from torchgen.model import BackendIndex, DispatchKey

    empty = BackendIndex(
        dispatch_key=DispatchKey.Meta, use_out_as_primary=True, external=False, device_guard=False, index={}
    )  # no row names the key: torchgen makes its kernels of the meta functions
    for name in _KEYS:
        key = DispatchKey.parse(name)
        index = empty if name == "Meta" else indices[key]
        if name == "Meta" or any(index.has_kernel(group) for group in groups):
            text = registration.write_key(groups, index, key)
            yield put_if_changed(out / f"Register{name}.cpp", text)


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
