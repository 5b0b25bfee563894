"""One stub's native kernel: functor, registrations, host function, and the edits that put them into the fork."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from porter.aten.implementations import Written, find_registration, written_in
from porter.aten.meta import Promotion, TypeRule, type_rules
from porter.aten.metal_functions import Library
from porter.aten.native_functions import Entry, NativeFunctions
from porter.aten.operator import Move, Row
from porter.aten.reach import parsed
from porter.aten.stubs import Stub, StubCall
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.dtypes import DType, Kind
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
from porter.core.formatting import format_block
from porter.core.layout import INDEXING, KERNELS, OPERATIONS
from porter.cpu.kernels import CpuKernel, cpu_kernel
from porter.metal.candidates import choose
from porter.metal.functor import Functor, Looks, functor_text
from porter.metal.host import Dialect, House, function_anchor, kernel_function, registration_anchor
from porter.metal.macros import Family, Instance, MacroBook
from porter.metal.placing import functor_edit, include_edits, register_edit, used_macros
from porter.metal.registration import Line, Need, base_macro, register_lines
from porter.metal.subject import Subject
from porter.mpsgraph.graph import Graph
from porter.mpsgraph.source_reader.evaluator import read_graph

_ARITIES = (Family.UNARY, Family.BINARY, Family.TERNARY)
_ARITHMETIC = re.compile(r"\b[abc]\w*\)? [-+*/] \(?[abc]")
Step = Callable[[Checkout], Iterator[Edit]]
# Which candidate computes a kind of element in the functor of a name: the first where nothing is said.
Turns = Mapping[tuple[str, Kind], int]
FIRST: Turns = MappingProxyType({})
# The graph that runs of a row's old implementation show, asked for where its source is not read.
Recorded = Callable[[Row], "Graph | None"]


def never(_row: Row) -> Graph | None:
    """Nothing is recorded."""
    return None


@dataclass(frozen=True)
class Port:
    """What the port of one stub adds. `edits` are steps, each over the texts that the one before it left."""

    name: str
    stub: Stub
    functor: Functor
    source: str
    lines: tuple[Line, ...]
    dtypes: tuple[DType, ...]
    kernel_file: str
    host_file: str
    function: str
    notes: tuple[str, ...]
    edits: tuple[Step, ...]


def port_stub(
    checkout: Checkout,
    move: Move,
    call: StubCall,
    family: Sequence[Entry],
    functions: NativeFunctions,
    turns: Turns = FIRST,
    recorded: Recorded = never,
) -> Port | None:
    """The port of the stub that a row's shared implementation calls; None when the stub is native already."""
    registered = find_registration(checkout, call.stub.name)
    if registered and written_in(checkout, registered) is Written.METAL:
        return None
    name = _functor_name(call.stub.name)
    rule = _rule(checkout, move, call, family)
    cpu = cpu_kernel(checkout, call.stub.name, lambda dtype: rule.result(dtype) or dtype)
    inputs, scalars = _parameters(move.row.entry, cpu, call)
    if len(inputs) > 2 and rule.promotion is Promotion.OUTPUT:
        what = f"the elements that {call.stub.name} takes may differ in type, a functor's may not"
        raise PorterError("PTR018", what, call.place, "Port it by hand.")
    family_ = _family(len(inputs), scalars)
    Dialect.read(checkout).exec_for(family_)
    kernel_file, host_file = _files(checkout, _ARITIES[len(inputs) - 1])
    kernels = parsed(kernel_file, checkout.read(kernel_file))
    looks = Looks.of(kernels.text)
    graph, notes = _graph(checkout, move, rule, recorded)
    subject = Subject(
        _known_as(name, move.row.entry.base, call), inputs, scalars, rule, cpu, graph, Library.read(checkout), looks
    )
    functor = choose(subject, {kind: turn for (named, kind), turn in turns.items() if named == name})
    book = _book(checkout, kernel_file)
    needs = tuple(_needs(subject, functor, family_, book))
    lines = register_lines(name, needs, book, used_macros(kernels, book))
    source = format_block(checkout, kernel_file, functor_text(functor, looks))
    house = House.of(checkout.read(host_file))
    return Port(
        name=name,
        stub=call.stub,
        functor=functor,
        source=source,
        lines=lines,
        dtypes=subject.served,
        kernel_file=kernel_file,
        host_file=host_file,
        function=house.function(name),
        notes=(*notes, *(f"{name}: the CPU kernel raises when {each}; a GPU kernel cannot" for each in _checks(cpu))),
        edits=(
            lambda fork: _kernel_edits(fork, kernel_file, functor, source, lines, len(inputs), family_),
            lambda fork: _include_edits(fork, kernel_file, host_file, functor, call.stub, bool(scalars)),
            lambda fork: _host_edits(fork, host_file, name, call.stub, subject, family_),
        ),
    )


def _functor_name(stub: str) -> str:
    """What a stub's functor is called: `atan2` of `atan2_stub`, `lerp_scalar_weight` of `lerp_kernel_scalar_weight`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stub).lower()
    return "_".join(word for word in words.removesuffix("_stub").split("_") if word != "kernel")


def _known_as(name: str, base: str, call: StubCall) -> tuple[str, ...]:
    """The names to look a function up by: the operator's own only where this stub is what it means by itself."""
    chosen_by_name = any('"' in condition.text for condition in call.when)
    turned = any("-" in argument for argument in call.arguments)
    return (name,) if base == name or chosen_by_name or turned else (name, base)


def _checks(cpu: CpuKernel) -> tuple[str, ...]:
    return tuple(dict.fromkeys(check for found in cpu.lambdas for check in found.checks))


def _rule(checkout: Checkout, move: Move, call: StubCall, family: Sequence[Entry]) -> TypeRule:
    """The row's type rule for the arguments under which it calls this stub."""
    head = move.row.entry
    names = [e.name for e in family if e.delegate == head.name and not e.name.split(".")[0].endswith("_")]
    rules = type_rules(checkout, names[0] if names else head.name.removesuffix(".out"), move.target.kernel)
    return next((rule for rule in rules if rule.when == call.when), rules[0])


def _parameters(entry: Entry, cpu: CpuKernel, call: StubCall) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The schema's names of the elements and of the scalars that the kernel takes."""
    if entry.results > 1:
        what = f"{call.stub.name} gives {entry.results} results, a functor one"
        raise PorterError("PTR018", what, call.place, "Port it by hand.")
    arity = len(cpu.lambdas[0].params) if cpu.lambdas else sum(a.is_tensor for a in entry.inputs)
    if not 1 <= arity <= len(_ARITIES):
        raise PorterError("PTR018", f"{call.stub.name} takes {arity} elements", call.place, "Port it by hand.")
    names = tuple(a.name for a in entry.inputs if a.type in ("Tensor", "Tensor(a!)", "Scalar"))[:arity]
    if len(names) != arity:
        raise PorterError(
            "PTR018",
            f"{call.stub.name} takes {arity} elements, the row names {len(names)}",
            call.place,
            "Port it by hand.",
        )
    others = [a.name for a in entry.inputs if a.name not in names]
    return names, tuple(_scalar_names(others, call)[: _extra(call)])


def _scalar_names(names: Sequence[str], call: StubCall) -> list[str]:
    """The arguments that are no elements, those that the call of the stub speaks of first."""
    given = " ".join(call.arguments)
    return sorted(names, key=lambda name: re.search(rf"\b{name}\b", given) is None)


def _extra(call: StubCall) -> int:
    """How many arguments the kernel takes behind its iterator: those of the functor dialect take one at most."""
    extra = len(call.stub.signature) - 1
    if extra > 1:
        what = f"{call.stub.name} takes {extra} more arguments, a functor's kernel one"
        raise PorterError("PTR018", what, call.place, "Port it by hand.")
    return extra


def foresee(checkout: Checkout, move: Move, family: Sequence[Entry]) -> None:
    """Raises what is certain to stop the port of a row, without reading any kernel: PTR018, PTR075, PTR076."""
    for call in move.stubs:
        _rule(checkout, move, call, family)
        _extra(call)


def _family(arity: int, scalars: tuple[str, ...]) -> Family:
    plain = _ARITIES[arity - 1]
    return Family(f"{plain.value}_alpha") if scalars else plain


def _files(checkout: Checkout, family: Family) -> tuple[str, str]:
    """The kernel file and the host file of a family: those named after it, else those that launch its kernels."""
    usual = f"{family.value.capitalize()}Kernel"
    named = [(f"{KERNELS}/{usual}.metal", f"{OPERATIONS}/{usual}.mm")]
    others = [(path, f"{OPERATIONS}/{PurePosixPath(path).stem}.mm") for path in checkout.list(KERNELS, ".metal")]
    for kernels, host in named + others:
        if checkout.exists(kernels) and checkout.exists(host):
            launches = f"exec_{family.value}_kernel" in checkout.read(host)
            if launches or (kernels, host) in named:
                return kernels, host
    raise PorterError(
        "PTR093", f"there is no file to put {family.value} kernels in", Place(named[0][0]), "Add the first by hand."
    )


def _graph(checkout: Checkout, move: Move, rule: TypeRule, recorded: Recorded) -> tuple[Graph | None, tuple[str, ...]]:
    """The old graph, as far as it is read; a reading that stops is said, and the runs or the other sources answer."""
    if move.row.implementation is None or move.row.written is not Written.MPSGRAPH:
        return None, ()
    try:
        out = lambda dtype: rule.result(dtype) or dtype  # noqa: E731
        return read_graph(checkout, move.row.implementation, move.row.entry, out), ()
    except PorterError as error:
        graph = recorded(move.row)
        how = "the graph is that of its runs" if graph else "its runs are not recorded"
        return graph, (f"the source was not read as a graph, {how}: {error.place}: {error.code} {error.what}",)


def _book(checkout: Checkout, kernel_file: str) -> MacroBook:
    files = (INDEXING, kernel_file)
    return MacroBook.read(m for path in files for m in parsed(path, checkout.read(path)).macros())


def _needs(subject: Subject, functor: Functor, family: Family, book: MacroBook) -> Iterator[Need]:
    """Every served dtype with its result; float arithmetic of two halves asks for opmath where the fork has it."""
    plain: list[Instance] = []
    opmath: list[Instance] = []
    several = family in (Family.BINARY, Family.TERNARY)
    raw = _raw_kinds(functor) if several and base_macro(book, family, True).opmath else set()
    for dtype in subject.served:
        result = subject.result(dtype)
        assert result is not None
        made = Instance(dtype.metal, result.metal, _alpha(dtype, result) if subject.scalars else None)
        whole = dtype is dtypes.FLOAT2 and Kind.FLOATING not in raw
        (opmath if dtype.kind in raw and not whole else plain).append(made)
    if plain:
        yield Need(family, tuple(plain))
    if opmath:
        yield Need(family, tuple(opmath), opmath=True)


def _raw_kinds(functor: Functor) -> set[Kind]:
    """The kinds whose elements are combined in their own type, so that halves would round between operations."""
    own = [(o.kinds, o.body.statements) for o in functor.overloads if o.body.result == "T"]
    floating = any(_ARITHMETIC.search(line) for kinds, lines in own if Kind.FLOATING in kinds for line in lines)
    if floating:
        return {Kind.FLOATING, Kind.COMPLEX}
    as_they_are = [
        lines for kinds, lines in own if Kind.COMPLEX in kinds and f"{dtypes.FLOAT2.metal}(" not in "".join(lines)
    ]
    return {Kind.COMPLEX} if as_they_are else set()


def _alpha(dtype: DType, result: DType) -> str:
    """The type of a scalar: what `at::toOpMathType` of the computing type is."""
    if result.kind is Kind.COMPLEX:
        return dtypes.FLOAT2.metal
    return dtypes.FLOAT.metal if result.kind is Kind.FLOATING else dtype.metal


def _kernel_edits(
    fork: Checkout, file: str, functor: Functor, source: str, lines: Sequence[Line], arity: int, family: Family
) -> Iterator[Edit]:
    kernels = parsed(file, fork.read(file))
    there = kernels.functions_by_name.keys()
    helpers = [each for each in functor.helpers if not there & parsed(file, each).functions_by_name.keys()]
    text = "".join(f"{format_block(fork, file, helper)}\n\n" for helper in dict.fromkeys(helpers)) + source
    yield functor_edit(kernels, text, arity)
    yield register_edit(kernels, "".join(f"{line}\n" for line in lines), family, _book(fork, file))


def _include_edits(
    fork: Checkout, kernel_file: str, host_file: str, functor: Functor, stub: Stub, alpha: bool
) -> Iterator[Edit]:
    if functor.headers:
        yield from include_edits(parsed(kernel_file, fork.read(kernel_file)), functor.headers)
    headers = (stub.header, "ATen/OpMathType.h") if alpha else (stub.header,)
    yield from include_edits(parsed(host_file, fork.read(host_file)), headers)


def _host_edits(fork: Checkout, file: str, name: str, stub: Stub, subject: Subject, family: Family) -> Iterator[Edit]:
    text = fork.read(file)
    house = House.of(text)
    arguments = {}
    if subject.scalars:
        arguments = {"alpha": subject.scalars[0], "scalar_arg_type": "at::toOpMathType(iter.common_dtype())"}
    if all(subject.result(dtype) is dtypes.BOOL for dtype in subject.served) and family is Family.BINARY:
        arguments["natural_output_dtype"] = "kBool"
    body = Dialect.read(fork).exec_for(family).call(name, **arguments)
    names = ("iter", *subject.scalars)
    params = [(type_.removeprefix("at::"), given) for (type_, _), given in zip(stub.signature, names, strict=False)]
    at = function_anchor(text)
    block = format_block(fork, file, kernel_function(house.function(name), params, body))
    yield Edit(file, at, at, "\n" + block)
    at = registration_anchor(text, name)
    registration = house.registration(name).replace(f"{name}_stub", stub.name, 1)
    yield Edit(file, at, at, registration + "\n")
