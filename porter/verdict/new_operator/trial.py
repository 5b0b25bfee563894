"""A new operator on trial: built with the fork from its plan, tested one call after another, and judged."""

from __future__ import annotations

import importlib
import re
import time
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_utils import TestCase

from porter.core import cache
from porter.core.cache import digest, put_if_changed
from porter.core.change_set import ChangeSet
from porter.core.dtypes import name_torch
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, DERIVATIVES, NATIVE_FUNCTIONS
from porter.core.progress import Progress
from porter.languages.identifiers import find_words
from porter.plan.new_operator.operator import Argument, NewOperator
from porter.verdict.backends import host
from porter.verdict.build import libraries, registration, sources
from porter.verdict.build.libraries import Built
from porter.verdict.build.objects import Recipe
from porter.verdict.build.registration import Registration
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.errors import raising_porter_errors
from porter.verdict.result import BUILD, DEFAULT, HOST, DTypeVerdict, Failure, ForkFinding, Verdict, add_findings

ERRORS = (AssertionError, PorterError, RuntimeError, ValueError, TypeError, IndexError)
_INVOCATIONS = "torch.testing._internal.common_methods_invocations"
_ERROR = re.compile(r"\w+(?:Error|Exception)\b")
_LONGEST = 300  # characters of what is wrong
Test = Callable[[], "str | None"]  # returns what is wrong, or raises it


@dataclass
class _Count:
    """What ran in one element type so far."""

    passed: int = 0
    failed: int = 0
    calls: int = 0


@dataclass
class Trial:
    """The tests of an operator that `changes` add to a fork, and what came of them."""

    operator: NewOperator
    changes: ChangeSet
    arithmetic: str = DEFAULT
    counts: dict[str, _Count] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.operator.schema.name

    @property
    def op(self) -> Any:
        return getattr(torch.ops.aten, self.name)

    def kernel_calls(self) -> int:
        """How often the operator's kernels ran since the start."""
        calls = host.kernel_calls().items()
        return sum(count for kernel, count in calls if kernel == self.name or kernel.startswith(f"{self.name}_"))

    def prove(self, root: Path, tests: Iterable[tuple[str, torch.dtype, Test]], progress: Progress) -> Verdict:
        """The verdict of tests, each with its name and element type, which are listed when the operator is loaded.

        `host.start` has to have run before torch was imported.
        """
        start = time.monotonic()
        findings: tuple[ForkFinding, ...] = ()
        progress("building")
        try:
            findings = self._load(root)
        except PorterError as error:
            self.failures.append(Failure(BUILD, f"{error.code} {error.what}", place=str(error.place or "")))
        else:
            for name, dtype, test in tests:
                self._run(name, name_torch(dtype), test)
        counts = self.counts.values()
        verdict = Verdict(
            op=self.name,
            backend=HOST,
            arithmetic=self.arithmetic,
            passed=sum(count.passed for count in counts),
            failed=sum(count.failed for count in counts) + any(failure.test == BUILD for failure in self.failures),
            skipped=0,
            kernel_calls=sum(count.calls for count in counts),
            max_ulp=None,
            seconds=time.monotonic() - start,
            dtypes=tuple(DTypeVerdict(d, c.passed, c.failed, kernel_calls=c.calls) for d, c in self.counts.items()),
            failures=tuple(self.failures),
        )
        return add_findings(verdict, findings)

    def _load(self, root: Path) -> tuple[ForkFinding, ...]:
        """Builds and loads the operator. Raises what is wrong with its code."""
        op, schema, changes = self.name, self.operator.schema, self.changes
        tree = materialise(root.resolve(), changes.apply(), cache.root())
        files = [path for path in (*changes.created, *changes.files) if path.endswith((".mm", ".cpp"))]
        more = {}
        for kernel in [path for path in files if path.startswith(f"{CPU_KERNELS}/")]:
            more[f"{op}_cpu.cpp"] = write_cpu_dispatch(f"{op}_stub", f"{op}_kernel", kernel)
            files.remove(kernel)
        if self.operator.derivatives and DERIVATIVES in changes.files:
            more[f"{op}_autograd.cpp"] = "".join(_write_autograd(op, schema.arguments, self.operator.derivatives))
        built = build_new_operator(tree, op, list(dict.fromkeys(files)), host.recipe(tree.root), cache.root(), more)
        # A functor's kernels are named OP_TYPES; a script's kernel without template parameters is OP.
        prefixes, checks = [f"{op}_" if self.operator.is_pointwise else op], host.find_checks(True)
        with raising_porter_errors():
            broken = host.load(built.library, tree.root, prefixes, self.arithmetic, checked=True, sanitize=checks)
        return (*built.findings, *host.find_kernel_faults(tree, broken, prefixes, self.arithmetic))

    def _run(self, name: str, dtype: str, test: Test) -> None:
        count, before = self.counts.setdefault(dtype, _Count()), self.kernel_calls()
        try:
            wrong = test()
        except ERRORS as error:
            wrong = f"{type(error).__name__}: {' '.join(str(error).split())[:_LONGEST]}"
        calls = self.kernel_calls() - before
        count.calls += calls
        count.passed += wrong is None
        count.failed += wrong is not None
        if wrong is not None:
            self.failures.append(Failure(name, wrong, dtype, kernel_calls=calls))

    def define_tests(self) -> dict[str, Any]:
        """What the plan adds to the list of OpInfos, as it stands there: all names of that module.

        The OpInfo itself is `info` there, None if the operator has none.
        """
        setattr(torch, self.name, self.op)
        names = vars(importlib.import_module(_INVOCATIONS))
        exec(self.operator.tests.functions, names)
        opinfo = self.operator.tests.opinfo
        return {**names, "info": eval(f"[{opinfo}]", names)[0] if opinfo else None}

    def run_case(self) -> str | None:
        """Runs the test that the plan adds to test_mps.py, and returns the error's own lines of its traceback."""
        names: dict[str, Any] = {"torch": torch, "TestCase": TestCase, "__name__": _INVOCATIONS}
        exec(self.operator.tests.case, names)
        result = unittest.TestResult()
        names[f"Test{self.operator.schema.file}"](f"test_{self.name}").run(result)
        wrong = [*result.errors, *result.failures]
        if not wrong:
            return None
        lines = wrong[0][1].strip().splitlines()
        first = next((at for at, line in enumerate(lines) if _ERROR.match(line)), len(lines) - 1)
        return " ".join(line.strip() for line in lines[first : first + 5] if line.strip())


def make_outs(expected: Tensor) -> tuple[Tensor, ...]:
    """Tensors for `out=`: of the right size, dense and with gaps, and an empty one."""
    dense = torch.full(expected.shape, 7, dtype=expected.dtype, device="mps")
    strided = torch.full((*expected.shape, 2), 7, dtype=expected.dtype, device="mps")[..., 0]
    return dense, strided, torch.empty(0, dtype=expected.dtype, device="mps")


# Builds an operator that the installed torch does not have: its schema, its meta function and its kernels


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


def _write_autograd(op: str, parameters: Sequence[Argument], formulas: Mapping[str, str]) -> Iterator[str]:
    types, names = ", ".join(each.cpp for each in parameters), ", ".join(each.name for each in parameters)
    declared = ", ".join(f"{each.cpp} {each.name}" for each in parameters)
    tensors = [each.name for each in parameters if each.is_tensor]
    numbers = [each for each in parameters if not each.is_tensor]
    headers = ("ATen/ScalarOps.h", "ATen/TensorIndexing.h", "ATen/TensorOperators.h", "ATen/core/dispatch/Dispatcher.h",
               "torch/csrc/autograd/custom_function.h", "torch/library.h", "cmath")  # fmt: skip
    yield from (f"#include <{header}>\n" for header in headers)
    # ATen/ATen.h has all functions, which takes seconds to read.
    words = find_words(" ".join(formulas.values()))
    for word in sorted({word for word in words if not word[0].isdecimal()}):
        yield f"#if __has_include(<ATen/ops/{word}.h>)\n#include <ATen/ops/{word}.h>\n#endif\n"
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
