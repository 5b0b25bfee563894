"""The kernels of a stub that takes an enumerator: one for each value that the CPU kernel asks for, one for others."""

from __future__ import annotations

import re
from collections.abc import Callable

from porter.aten.stubs import StubCall
from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.cpu.kernels import CpuKernel, find_registered_kernel, read_cpu_kernel
from porter.languages.definitions import parse_definition
from porter.metal.kernel import KernelCase

_TEST = r"\b{name}\s*==\s*{type}::(\w+)"


def read_cases(checkout: Checkout, call: StubCall, output: Callable[[DType], DType]) -> tuple[KernelCase, ...]:
    """Returns the cases of a stub whose one argument is an enumerator that its CPU kernel asks for; none of another."""
    if len(call.stub.signature) != 2:
        return ()
    type_ = call.stub.signature[1][0]
    try:
        found, _ = find_registered_kernel(checkout, call.stub.name)
    except PorterError:
        return ()
    name = parse_definition(found).parameters[-1].name
    tested = tuple(dict.fromkeys(re.findall(_TEST.format(name=re.escape(name), type=re.escape(type_)), found.text)))
    if not tested:
        return ()
    named = tuple(
        KernelCase(f"{name} == {type_}::{value}", value.lower(), _read(checkout, call, output, name, type_, value))
        for value in tested
    )
    return (*named, KernelCase("", "", _read(checkout, call, output, name, type_, "")))


def _read(
    checkout: Checkout, call: StubCall, output: Callable[[DType], DType], name: str, type_: str, value: str
) -> CpuKernel:
    return read_cpu_kernel(checkout, call.stub.name, output, {name: f"{type_}::{value}"})
