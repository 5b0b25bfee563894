"""The type promotion rule of an operator: the result type for each input type, and the types it rejects.

Read from its meta function (`TORCH_META_FUNC`), or for a plain function from the TensorIterator it builds.
Source: the configurations in aten/src/ATen/TensorIterator.cpp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum

from porter.aten.branches import Condition, Facts, decide, find_calls, get_expression, list_executed, show
from porter.aten.stubs import find_stubs, read_builder
from porter.core.checkout import Checkout
from porter.core.dtypes import ALL, BOOL, FLOAT, INT, DType, Kind
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE
from porter.languages import cpp
from porter.languages.definitions import Definition, find_definitions, find_macros, parse_definition
from porter.languages.patterns import replace_code


class Promotion(Enum):
    """How the result type follows from the common type of the inputs."""

    SAME = "same"
    FLOAT = "integers become float"
    BOOL = "bool"
    OUTPUT = "whatever the output tensor has"
    CHOSEN = "that of the elements a condition chooses from"
    INT = "int"


@dataclass(frozen=True)
class Refusal:
    """An input type that a check of the operator rejects, with the check's message."""

    dtype: DType
    message: str
    place: Place


@dataclass(frozen=True)
class TypeRule:
    """The rule that applies when all of `when` hold. With `real`, complex inputs give a real result."""

    promotion: Promotion
    refused: tuple[Refusal, ...] = ()
    when: tuple[Condition, ...] = ()
    place: Place = field(default_factory=lambda: Place(""))
    real: bool = False

    def result(self, dtype: DType) -> DType | None:
        """Returns the result type for an input type, or None if the operator rejects it."""
        if any(refusal.dtype == dtype for refusal in self.refused):
            return None
        if self.promotion in (Promotion.BOOL, Promotion.OUTPUT):
            return BOOL
        if self.promotion is Promotion.INT:
            return INT
        return dtype.real if self.real and dtype.kind is Kind.COMPLEX else self.compute(dtype)

    def compute(self, dtype: DType) -> DType:
        """Returns the type that the kernel computes in: the iterator's `common_dtype()`."""
        whole = dtype.kind in (Kind.INTEGRAL, Kind.BOOL)
        return FLOAT if self.promotion is Promotion.FLOAT and whole else dtype


_BUILDERS = {
    "unary_op": Promotion.SAME,
    "borrowing_unary_op": Promotion.SAME,
    "output_borrowing_argument_owning_unary_op": Promotion.SAME,
    "binary_op": Promotion.SAME,
    "borrowing_binary_op": Promotion.SAME,
    "ternary_op": Promotion.SAME,
    "unary_float_op": Promotion.FLOAT,
    "borrowing_unary_float_op": Promotion.FLOAT,
    "binary_float_op": Promotion.FLOAT,
    "borrowing_binary_float_op": Promotion.FLOAT,
    "comparison_op": Promotion.BOOL,
    "borrowing_comparison_op": Promotion.BOOL,
    "borrowing_except_last_argument_comparison_op": Promotion.BOOL,
    "borrowing_unary_force_boolean_op": Promotion.BOOL,
}
_FLAG = re.compile(r"\.(\w+)\(([^()]*)\)")
_CHECKS = frozenset(("TORCH_CHECK", "TORCH_CHECK_TYPE", "TORCH_CHECK_VALUE", "TORCH_CHECK_NOT_IMPLEMENTED"))


def read_type_rules(checkout: Checkout, operator: str, native_function: str | None = None) -> tuple[TypeRule, ...]:
    """Returns the type rules of an operator: usually one, or one per value of an argument such as `rounding_mode`.

    `operator` is the name of the functional variant (`atan2`, `div.Tensor_mode`). `native_function` is its CPU kernel,
    which is read if there is no meta function. Raises PTR075 if the fork has neither, or PTR076 if the iterator is
    built in an unknown way.
    """
    found = find_meta_function(checkout, operator)
    if found is not None:
        # One rule per condition on other arguments, the same for every element type
        promotions: dict[tuple[Condition, ...], Promotion] = {}
        refused: list[Refusal] = []
        for dtype in ALL:
            refusals, built = _read_for_type(checkout, found, dtype)
            refused += refusals
            for when, promotion in built.items():
                if promotions.setdefault(when, promotion) is not promotion and not refusals:
                    raise _unknown_iterator(found, "its TensorIterator depends on the input's type")
        if not promotions:
            raise _unknown_iterator(found, "it builds no TensorIterator")
        return tuple(TypeRule(p, tuple(refused), when, found.place) for when, p in promotions.items())
    if native_function is None:
        raise PorterError(
            "PTR075", f"{operator} has no meta function", Place(NATIVE), "Pass the native function on its CPU line."
        )
    return _read_plain_rules(checkout, native_function)


def find_meta_function(checkout: Checkout, operator: str) -> Definition | None:
    """The meta function of an operator, named as its functional variant; None if it has none."""
    base, _, overload = operator.partition(".")
    wrapped = [(f"{base}, {overload}", "TORCH_META_FUNC2")] if overload else []
    wrapped.append((f"{base}_{overload}" if overload else base, "TORCH_META_FUNC"))
    folder = checkout.folder(NATIVE, ".cpp")
    for name, use in ((base, rf"[A-Z_]\w*\(\s*{base}\b"), (f"{base}_{overload}", rf"\({base}_{overload}\)")):
        for path in folder.files_containing(name, use, whole=True):
            for meta, wrapper in wrapped:
                found = find_definitions(path, checkout.read(path), meta, wrapper)
                if found:
                    return found[0]
    return None


def _read_for_type(
    checkout: Checkout, found: Definition, dtype: DType
) -> tuple[list[Refusal], dict[tuple[Condition, ...], Promotion]]:
    refusals: list[Refusal] = []
    built: dict[tuple[Condition, ...], Promotion] = {}
    for step in list_executed(parse_definition(found).body, Facts(dtype, dtype)):
        for call in find_calls(get_expression(step.statement)):
            if not isinstance(call.function, cpp.Name):
                continue
            name = call.function.last
            if name in _CHECKS and not step.when:
                refusals += _make_refusal(call, step.facts, dtype, found)
            elif name.startswith("build"):
                _refuse_borrowed_locals(call, step.facts, found)
                built[step.when] = _read_call_promotion(call, found)
            elif name.endswith("_check"):
                refusals += _follow_check(checkout, found, call, step.facts, dtype)
    return refusals, built


def _refuse_borrowed_locals(call: cpp.Call, facts: Facts, found: Definition) -> None:
    """Raises PTR300 for an iterator that borrows a tensor which ends with the function.

    CPU and CUDA kernels read the data alone, which the iterator keeps the address of; MPS kernels need the tensor.
    """
    builder = show(call.function)
    inputs = call.arguments[1:]
    borrowed = inputs[:-1] if "except_last_argument" in builder else inputs
    local = next((a.path for a in borrowed if isinstance(a, cpp.Name) and a.path in facts.names), None)
    if local and builder.startswith("build_borrowing"):
        owning = builder.replace("borrowing_", "", 1)
        raise PorterError(
            "PTR300",
            f"the iterator borrows {local}, which ends with the meta function",
            found.line_of(call.start),
            f"An MPS kernel would read a dead tensor: call {owning} there, build PyTorch, then port.",
        )


def _make_refusal(call: cpp.Call, facts: Facts, dtype: DType, found: Definition) -> list[Refusal]:
    if decide(call.arguments[0], facts) is not False:
        return []
    texts = [a.text.replace('""', "").strip('"') for a in call.arguments[1:] if isinstance(a, cpp.Literal)]
    return [Refusal(dtype, "".join(texts), found.line_of(call.start))]


def _follow_check(checkout: Checkout, found: Definition, call: cpp.Call, facts: Facts, dtype: DType) -> list[Refusal]:
    """Returns the types rejected by a check function of the same file, or of the header named after it."""
    assert isinstance(call.function, cpp.Name)
    header = found.path.removesuffix(".cpp") + ".h"
    for path in (found.path, header):
        if not checkout.exists(path):
            continue
        for one in find_definitions(path, checkout.read(path), call.function.last):
            function = parse_definition(one)
            tensors = all(p.type != "Scalar&" for p in function.parameters)
            if tensors and len(function.parameters) == len(call.arguments):
                steps = list_executed(function.body, replace(facts, names={}))
                calls = [c for step in steps for c in find_calls(get_expression(step.statement))]
                checks = [c for c in calls if isinstance(c.function, cpp.Name) and c.function.last in _CHECKS]
                return [refusal for check in checks for refusal in _make_refusal(check, facts, dtype, one)][:1]
    return []


def _read_call_promotion(call: cpp.Call, found: Definition) -> Promotion:
    assert isinstance(call.function, cpp.Name)
    name = call.function.last.removeprefix("build_")
    if name == "build" and call.arguments:
        return read_promotion(_expand_macros(read_builder(call.arguments[0]) or show(call.arguments[0]), found), found)
    return read_promotion(name, found)


def _expand_macros(builder: str, found: Definition) -> str:
    """Replaces the uses of macros without parameters that the function defines."""
    for name, macro in find_macros(found.text).items():
        if macro.params == ():
            builder = replace_code(builder, " ".join(macro.body.split()), f"{name}()")
    return builder


def read_promotion(builder: str, found: Definition) -> Promotion:
    """Returns the promotion of a TensorIterator builder or TensorIteratorConfig chain. Raises PTR076."""
    if builder in _BUILDERS:
        return _BUILDERS[builder]
    if "TensorIteratorConfig" not in builder:
        raise _unknown_iterator(found, f"{builder or 'its iterator'} is not a known way to build a TensorIterator")
    flags = dict(_FLAG.findall(builder))
    static = flags.get("declare_static_dtype", "")
    if static.endswith(("kBool", "Bool")):
        return Promotion.BOOL
    if flags.get("promote_integer_inputs_to_float") == "true":
        return Promotion.FLOAT
    promotes = flags.get("promote_inputs_to_common_dtype") not in (None, "false")
    same = flags.get("check_all_same_dtype", "true") == "true"
    return Promotion.SAME if promotes or same else Promotion.OUTPUT


def is_builder(name: str) -> bool:
    """Whether this is a builder of TensorIterators over operands of one shape."""
    return name in _BUILDERS


def _read_plain_rules(checkout: Checkout, native_function: str) -> tuple[TypeRule, ...]:
    """Reads the rules of a plain function from the iterators it passes to its stubs."""
    calls = find_stubs(checkout, native_function)
    real = any(call.real for call in calls)
    rules: dict[tuple[tuple[Condition, ...], Promotion], TypeRule] = {}
    for call in calls:
        at = Definition(call.place.file, "", call.place)
        if any(d.kind is not Kind.COMPLEX for d in call.dtypes):
            promotion = read_promotion(call.builder, at)
            rules.setdefault((call.when, promotion), TypeRule(promotion, (), call.when, call.place, real))
    return tuple(rules.values())


def _unknown_iterator(found: Definition, why: str) -> PorterError:
    return PorterError(
        "PTR076",
        f"cannot determine the type rule: {why}",
        found.place,
        "Port the operator by hand, or add the builder to porter's table.",
    )
