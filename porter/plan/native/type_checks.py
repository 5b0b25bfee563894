"""Checks of types that a row does not make: of a result, where its meta function takes results of any type; and that no
elements are complex, where the CPU takes these and no kernel does.

Source: ATen/native/ReduceOpsUtils.h (`get_result_or_self_value_dtype`), ATen/native/LinearAlgebra.cpp, whose message
this check has.
"""

from __future__ import annotations

from porter.aten.meta import find_meta_function
from porter.aten.native_functions import NativeFunction, NativeFunctions, functional_variant
from porter.aten.opinfo import find_opinfos
from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT2
from porter.loops.program import Programs
from porter.metal.native.host_values import Names
from porter.plan.native.host_function import Check, HostFunction

_CHOICE = "dtype"  # what the argument is called that says the result's type


def check_result_type(
    host: HostFunction, checkout: Checkout, function: NativeFunction, programs: Programs, names: Names
) -> HostFunction:
    """Checks the type of the result before the launch, if nothing else does."""
    if _CHOICE in names.types or not _takes_any_result(checkout, function):
        return host
    keys = {case.key for case in programs.cases}
    calls = [(call, case.key) for case in programs.cases for call in case.calls]
    if len(keys) != 1 or any(call.tensors["result0"].dtype != call.tensors[key].dtype for call, key in calls):
        return host
    result, operand = f"{names.variable('result0')}.scalar_type()", f"{names.member(keys.pop())}scalar_type()"
    message = f'"Expected out tensor to have dtype ", {operand}, ", but got ", {result}, " instead"'
    return host.add(Check(f"TORCH_CHECK({result} == {operand}, {message});"))


def check_complex(
    host: HostFunction, checkout: Checkout, function: NativeFunction, programs: Programs, names: Names
) -> HostFunction:
    """Refuses complex elements before the launch, if the operator's OpInfos have them on the CPU."""
    calls = find_opinfos(checkout, function.base)
    if not any(call.dtypes and FLOAT2.torch in call.dtypes for call in calls):
        return host
    chosen = ["result0"] if _CHOICE in names.types else sorted({case.key for case in programs.cases})
    message = f'"{function.base}: complex dtypes are not supported"'
    checks = (f"TORCH_CHECK_NOT_IMPLEMENTED(!{names.member(each)}is_complex(), {message});" for each in chosen)
    return host.add(*map(Check, checks))


def _takes_any_result(checkout: Checkout, function: NativeFunction) -> bool:
    functional = functional_variant(NativeFunctions.read(checkout).all, function)
    found = find_meta_function(checkout, functional.name) if functional else None
    return found is not None and "get_result_or_" in found.text
