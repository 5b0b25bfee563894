"""Builds an operator that the installed torch does not have: its schema, its meta function and its kernels."""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from porter.core.cache import digest, put_if_changed
from porter.core.layout import NATIVE_FUNCTIONS
from porter.verdict.build import libraries, registration, sources
from porter.verdict.build.libraries import Built
from porter.verdict.build.objects import Recipe
from porter.verdict.build.registration import Registration
from porter.verdict.build.tree import Tree

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
    written = [_write_schemas(groups, out), *_write_registrations(groups, indices, out)]
    return Registration(tuple(written), include, registration.kernels_of(groups, indices, family), ())


def _write_schemas(groups: registration.Grouped, out: Path) -> Path:
    schemas = [str(each.func) for group in groups for each in group.functions()]
    lines = "".join(f'  m.def("{schema}");\n' for schema in schemas)
    text = f"#include <torch/library.h>\n\nTORCH_LIBRARY_FRAGMENT(aten, m) {{\n{lines}}}\n"
    return put_if_changed(out / "RegisterSchema.cpp", text)


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
