"""Reads what the kernel of a stub has to compute, from the function that migrates and its call of the stub."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from porter.aten.meta import Promotion, TypeRule, read_promotion, read_type_rules
from porter.aten.native_functions import NativeFunction
from porter.aten.operator import Migration, Operator, ServedFunction
from porter.aten.stubs import StubCall
from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.cpu.kernels import (
    CpuKernel,
    find_registered_kernel,
    read_cpu_kernel,
    read_generated_kernel,
    read_inline_kernel,
)
from porter.languages.definitions import Definition, parse_definition
from porter.metal.distributions import distributions, draws_numbers
from porter.metal.functor import Source
from porter.metal.kernel import KernelCase, KernelSpec, read_results
from porter.mpsgraph.graph import Graph
from porter.mpsgraph.source_reader.read_graph import read_graph

# Returns the recorded graph of a function's old implementation; called if its source cannot be read.
RecordedGraph = Callable[[ServedFunction], Graph | None]


def no_recording(_served: ServedFunction) -> Graph | None:
    """Returns no graph."""
    return None


def read_spec(
    checkout: Checkout,
    operator: Operator,
    migration: Migration,
    call: StubCall,
    recorded: RecordedGraph,
    source: Source = Source.ANY,
    keeps: bool = False,
    functor: str = "",
) -> KernelSpec:
    """Returns the kernel's specification. Raises any error from reading the meta function and the kernels."""
    if draws_numbers(call.stub):
        found, function = find_registered_kernel(checkout, call.stub.name)
        known = distributions().get(call.stub.name)
        cpu = CpuKernel(call.stub.name, function, (), known.dtypes if known else (), (), (), found.place)
        return KernelSpec(migration.served.function, call, TypeRule(Promotion.SAME), cpu, None, ())
    rule = find_type_rule(checkout, operator, migration, call)
    if rule.promotion is Promotion.OUTPUT and _chooses_type(checkout, call.stub.name):
        rule = replace(rule, promotion=Promotion.CHOSEN)
    if migration.served.function.results > 1:
        results = read_results(checkout, migration.served.function, call, rule)
        return KernelSpec(migration.served.function, call, rule, results[0].cpu, None, (), results=results)
    cases = read_cases(checkout, call, lambda dtype: rule.result(dtype) or dtype)
    if cases:
        return KernelSpec(migration.served.function, call, rule, cases[-1].cpu, None, (), cases=cases)
    cpu, cuda = _read_kernels(
        checkout, call, migration.served.function, lambda dtype: rule.result(dtype) or dtype, source
    )
    graph, notes = _read_old_graph(checkout, migration.served, rule, recorded)
    return KernelSpec(
        migration.served.function, call, rule, cpu, graph, notes, cuda, source, keeps=keeps, functor=functor
    )


def _chooses_type(checkout: Checkout, stub: str) -> bool:
    """Whether the CPU kernel chooses the type that it computes in; not if only CUDA has a kernel."""
    try:
        return any(each.chooses for each in read_cpu_kernel(checkout, stub).lambdas)
    except PorterError:
        return False


def _read_kernels(
    checkout: Checkout, call: StubCall, function: NativeFunction, output: Callable[[DType], DType], source: Source
) -> tuple[CpuKernel, CpuKernel | None]:
    """Returns the CPU kernel, and the one of CUDA if it is asked for or the CPU's is not wholly translated.

    Where only CUDA has a kernel, or MPS calls the stub as CUDA's function does, it stands for both. Raises PTR077 or
    PTR335.
    """
    stub = call.stub.name
    if function.loops:
        return read_generated_kernel(checkout, stub, call.arguments, output), None
    if not call.stub.header:
        return read_inline_kernel(checkout, stub, call.via[0], output), None
    if call.device == "CUDA":
        cuda = _read_cuda_kernel(checkout, stub, output)
        return cuda, cuda
    cpu: CpuKernel | PorterError
    try:
        cpu = read_cpu_kernel(checkout, stub, output)
    except PorterError as error:
        cpu = error
    if source is Source.ANY and isinstance(cpu, CpuKernel) and not cpu.untranslated:
        return cpu, None
    try:
        cuda = _read_cuda_kernel(checkout, stub, output)
    except PorterError:
        if source is Source.CUDA:
            raise
        if isinstance(cpu, PorterError):
            raise cpu from None
        return cpu, None
    return (cuda if isinstance(cpu, PorterError) else cpu), cuda


def _read_cuda_kernel(checkout: Checkout, stub: str, output: Callable[[DType], DType]) -> CpuKernel:
    from porter.cuda.loops import read_cuda_kernel  # few plans ask for it

    return read_cuda_kernel(checkout, stub, output)


def find_type_rule(checkout: Checkout, operator: Operator, migration: Migration, call: StubCall) -> TypeRule:
    """Returns the type rule for the arguments with which the function calls this stub. Raises PTR075 or PTR076."""
    if call.device and call.builder:
        return TypeRule(read_promotion(call.builder, Definition(call.place.file, "", call.place)), place=call.place)
    rules = read_type_rules(checkout, operator.functional_name(migration.served.function), migration.target.kernel)
    return next((rule for rule in rules if rule.when == call.when), rules[0])


def _read_old_graph(
    checkout: Checkout, served: ServedFunction, rule: TypeRule, recorded: RecordedGraph
) -> tuple[Graph | None, tuple[str, ...]]:
    """The old graph, as far as it is read, and a note where its source is not: then its runs may have it."""
    if served.implementation is None or not served.builds_graph:
        return None, ()
    try:
        return read_graph(
            checkout, served.implementation, served.function, lambda dtype: rule.result(dtype) or dtype
        ), ()
    except PorterError as error:
        graph = recorded(served)
        how = "the graph is that of its runs" if graph else "its runs are not recorded"
        return graph, (f"the source was not read as a graph, {how}: {error.place}: {error.code} {error.what}",)


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
