"""A dtype that reaches a kernel that nobody registered: an opaque error of Metal's (188129, 188386, 188026).

The types are those for which ATen's own code calls the stub. Where the host function says itself which types it
refuses, they are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from porter.aten.declarations import MPS_KEY
from porter.aten.meta import read_type_rules
from porter.aten.operator import Operator
from porter.aten.stubs import find_stub_names
from porter.core.dtypes import TESTED, DType
from porter.core.errors import PorterError
from porter.core.layout import KERNELS
from porter.cpu.kernels import read_cpu_kernel
from porter.languages.source import MacroUse
from porter.review.change import Change, ChangedFile, Remark
from porter.review.finding import Severity
from porter.review.host_facts import find_named_kernels
from porter.review.metal_facts import list_instances, list_registered
from porter.review.rule import Case, Rule

_REGISTERING = ("REGISTER_DISPATCH", "REGISTER_MPS_DISPATCH")
_REFUSING = ("TORCH_CHECK", "is_integral", "isIntegralType", "isFloatingType", "isComplexType", "scalar_type()")


def _check(change: Change) -> Iterator[Remark]:
    functors = {i.functor for file in change.metal for i in list_instances(change, file.path)}
    paths = {file.path for file in change.host}
    for path, text in change.host_texts.items():
        if "REGISTER_DISPATCH" not in text and "REGISTER_MPS_DISPATCH" not in text:
            continue
        file = next((each for each in change.host if each.path == path), None) or ChangedFile(path, text, text)
        if not file.is_readable:
            continue
        for use in file.source.macro_uses():
            if use.name in _REGISTERING and len(use.arguments) == 2:
                yield from _check_stub(change, file, use, functors, path in paths)


def _check_stub(
    change: Change, file: ChangedFile, use: MacroUse, functors: set[str], is_changed: bool
) -> Iterator[Remark]:
    """The types for which a stub is called, and its functor has no kernel."""
    stub, name = use.arguments[0], use.arguments[1].lstrip("& ")
    for function in file.source.functions_by_name.get(name, ()):
        text = file.text_of(function)
        named = tuple(find_named_kernels(file, function.start, function.end))
        if len(named) != 1 or not named[0].family or any(word in text for word in _REFUSING):
            continue
        functor = named[0].prefix
        touched = is_changed and (file.touches(function.start, function.end) or file.is_added(use.start))
        if not (touched or functor in functors):
            continue
        registered = {i.input for i in list_registered(change) if i.functor == functor}
        wanted = _find_types(change, stub)
        missing = [dtype for dtype in wanted if dtype.metal not in registered]
        if registered and missing:
            place = named[0].token.start
            names = ", ".join(dtype.torch for dtype in missing)
            what = f"`{stub}` is called for {names}, and `{functor}` has no kernel for it"
            hint = "Register the type, or refuse it in host code by TORCH_CHECK_NOT_IMPLEMENTED."
            yield Remark(file.path, file.line_at(place), what, hint)


def _find_types(change: Change, stub: str) -> list[DType]:
    """The types of inputs for which a row that MPS shares calls a stub, as its CPU kernel and its meta function tell.

    None where one of them cannot be read: then nothing is said.
    """
    for row in change.rows.all:
        entry = row.entry_for(MPS_KEY)
        if entry is None or "CPU" not in entry.keys or stub not in _find_stub_names(change, entry.kernel):
            continue
        try:
            kernel = read_cpu_kernel(change.after, stub)
            operator = Operator.read(change.after, row.base)
            rules = read_type_rules(change.after, operator.functional_name(row), entry.kernel)
        except PorterError:
            continue
        if len(rules) == 1:
            accepted = (dtype for dtype in TESTED if rules[0].result(dtype) is not None)
            return [dtype for dtype in accepted if rules[0].compute(dtype) in kernel.dtypes]
    return []


def _find_stub_names(change: Change, kernel: str) -> tuple[str, ...]:
    try:
        return find_stub_names(change.after, kernel)
    except PorterError:
        return ()


RULE = Rule(
    "missing-dtype",
    Severity.ERROR,
    "A stub is called for a type for which its functor has no kernel, and host code does not refuse it.",
    _check,
    bad=(Case(edits=((f"{KERNELS}/BinaryKernel.metal", "REGISTER_FLOAT_BINARY_OP(copysign);\n", ""),)),),
    good=(
        Case(
            edits=(
                (
                    f"{KERNELS}/BinaryKernel.metal",
                    "REGISTER_FLOAT_BINARY_OP(copysign);\n",
                    "REGISTER_OPMATH_FLOAT_BINARY_OP(copysign);\n",
                ),
            )
        ),
    ),
)
