"""Plans ports that keep the row's function for MPS: kernels of the recorded programs, launched where the graph ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from porter.aten.call_graph import parse_source
from porter.aten.condition import Condition
from porter.aten.native_functions import NativeFunction
from porter.aten.operator import Blocked, Operator, ServedFunction, is_shared
from porter.core.checkout import Checkout
from porter.core.dtypes import DType, Kind
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.formatting import format_block
from porter.languages.statements import name_tokens
from porter.loops.program import Programs, ResultBuffer, SymbolicNest, SymbolicProgram
from porter.metal.functor import Origin
from porter.metal.native.cases import join_cases
from porter.metal.native.host_values import Names
from porter.metal.native.kernel import KernelStyle, NativeKernel, write_kernel
from porter.metal.native.launch import Launch, write_launch
from porter.plan.draft import Draft
from porter.plan.native.body import LAUNCH, replace_graph
from porter.plan.native.files import edit_host_file, edit_kernel_file, find_kernel_file, read_style, sees_helpers
from porter.plan.native.scaffold import write_frame
from porter.plan.native.target import Target, find_target, with_returned
from porter.plan.removal import Removal, find_orphans

FROM_RECORDING = Origin((), "the recorded graph", 0, 1)
UNKNOWN = "unknown condition"
_OF_KIND: Mapping[Kind, str] = {
    Kind.FLOATING: "at::isFloatingType({})", Kind.INTEGRAL: "at::isIntegralType({}, /*includeBool=*/false)",
    Kind.BOOL: "{} == kBool", Kind.COMPLEX: "at::isComplexType({})",
}  # fmt: skip
# The recorded programs of a row; None where nothing is recorded of it.
ReadPrograms = Callable[[ServedFunction], Programs | None]


def no_programs(_served: ServedFunction) -> Programs | None:
    """No recorded programs."""
    return None


@dataclass(frozen=True)
class WrittenKernel:
    """A kernel as written to a file, and the torch dtypes of what it is instantiated for."""

    file: str
    name: str
    source: str
    instances: tuple[tuple[DType, ...], ...]


@dataclass(frozen=True)
class NativePort:
    """The draft with the rows ported so far, and those that could not be, with why."""

    draft: Draft
    ported: tuple[ServedFunction, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    kernels: tuple[WrittenKernel, ...] = ()
    removed: tuple[Removal, ...] = ()

    @property
    def dtypes(self) -> set[str]:
        """The torch names of the types of first operands that there are kernels for."""
        return {instance[0].torch for kernel in self.kernels for instance in kernel.instances}


def port_blocked(
    draft: Draft, operator: Operator, blocked: Sequence[Blocked], programs: ReadPrograms, scaffold: bool = False
) -> NativePort:
    """Ports those rows by their recorded programs that no stub can serve, and removes what is then unused.

    With `scaffold`, writes the frame of those that cannot be ported.
    """
    if programs is no_programs and not scaffold:
        return NativePort(draft, blocked=tuple(blocked))
    rows = [each.served for each in blocked if each.served.builds_graph and not is_shared(each.served.entry)]
    others = tuple(each for each in blocked if each.served not in rows)
    port = port_rows(draft, operator, rows, programs, scaffold)
    port = replace(port, blocked=(*port.blocked, *others))
    for file in dict.fromkeys(row.implementation.file for row in port.ported if row.implementation):
        removed = tuple(find_orphans(port.draft.fork, file, draft.fork.read(file)))
        port = replace(port, draft=port.draft.apply(each.edit for each in removed), removed=(*port.removed, *removed))
    return port


def port_rows(
    draft: Draft, operator: Operator, rows: Sequence[ServedFunction], programs: ReadPrograms, scaffold: bool = False
) -> NativePort:
    """Ports rows that build graphs, each in its function or in the helper that only they call."""
    port = NativePort(draft)
    symbols = frozenset(row.entry.kernel.rsplit("::", 1)[-1] for row in rows)
    done: dict[tuple[str, str], ServedFunction] = {}
    for row in rows:
        try:
            target = with_returned(find_target(port.draft.fork, row, symbols))
            key = (target.file, target.function.signature)
            if key not in done:
                port = _port_row(port, operator, row, target, programs(row))
                done[key] = row
            port = replace(port, ported=(*port.ported, row))
        except PorterError as error:
            port = replace(port, blocked=(*port.blocked, Blocked(row, error)))
            if scaffold:
                port = _add_frame(port, row, symbols, error)
    return port


def _add_frame(port: NativePort, row: ServedFunction, symbols: frozenset[str], error: PorterError) -> NativePort:
    """Adds the frame of a row, where it has a function for one."""
    fork = port.draft.fork
    try:
        edits = tuple(write_frame(fork, row.function, find_target(fork, row, symbols), error))
    except PorterError:
        return port
    return replace(port, draft=port.draft.apply(edits))


def _port_row(
    port: NativePort, operator: Operator, row: ServedFunction, target: Target, programs: Programs | None
) -> NativePort:
    """Writes a row's kernels and its new body. Raises PTR368 to PTR379."""
    if programs is None:
        raise PorterError(
            "PTR375",
            f"nothing is recorded of {row.function.name}",
            row.function.place,
            "Run without --no-verify: porter then runs the old code to learn what it computes.",
        )
    if programs.left:
        raise programs.left[0]
    if not programs.cases:
        raise PorterError("PTR375", f"no call of {row.function.name} ran a graph", row.function.place, "See PTR375.")
    fork = port.draft.fork
    style = read_style(fork)
    names = _read_names(row.function, target)
    programs = replace(programs, cases=join_cases(programs.cases, style))
    cases = [_write_case(each, i, operator, names, style) for i, each in enumerate(programs.cases)]
    body = replace_graph(target.body, target.place, set(names.variables.values()))
    launches = [
        write_launch(program, kernels, [nest.rows for nest in program.nests], names, body)
        for program, kernels in zip(programs.cases, cases, strict=True)
    ]
    kernel_file = find_kernel_file(fork, target.file)
    written = tuple(_format(fork, kernel_file, kernel) for kernels in cases for kernel in kernels)
    draft = port.draft.apply([_edit_function(port.draft, target, body, programs, launches, names)])
    headers = frozenset[str]().union(*(each.headers for each in launches))
    draft = draft.apply(edit_host_file(draft.fork, target.file, kernel_file, headers))
    for kernel in written:
        draft = draft.apply(edit_kernel_file(draft.fork, kernel_file, kernel.source))
    return replace(port, draft=draft, kernels=(*port.kernels, *written))


def _read_names(function: NativeFunction, target: Target) -> Names:
    return Names(target.variables, {each.name: each.type for each in function.arguments}, target.optional)


def _write_case(
    program: SymbolicProgram, at: int, operator: Operator, names: Names, style: KernelStyle
) -> tuple[NativeKernel, ...]:
    outputs = {i: names.variable(f"result{i}") for i in _list_results(program)}
    base = operator.base.strip("_") + (f"_case{at}" if at else "")
    return tuple(
        write_kernel(program, nest, _name_kernel(base, program, nest, outputs), outputs, style)
        for nest in program.nests
    )


def _list_results(program: SymbolicProgram) -> list[int]:
    return sorted(role.index for role in program.roles.values() if isinstance(role, ResultBuffer))


def _name_kernel(base: str, program: SymbolicProgram, nest: SymbolicNest, outputs: Mapping[int, str]) -> str:
    """The operator's name; where several kernels compute it, with the results that this one does."""
    if len(program.nests) == 1:
        return base
    roles = [program.roles[store.buffer] for store in nest.nest.stores]
    results = [outputs[role.index] for role in roles if isinstance(role, ResultBuffer)]
    return "_".join((base, *(results or [f"partial{program.nests.index(nest) or ''}"])))


def _format(fork: Checkout, file: str, kernel: NativeKernel) -> WrittenKernel:
    source = format_block(fork, file, kernel.source)
    return WrittenKernel(file, kernel.name, source, kernel.elements.instances)


def _edit_function(
    draft: Draft, target: Target, body: str, programs: Programs, launches: Sequence[Launch], names: Names
) -> Edit:
    """The edit of the function that ran the graph."""
    source = parse_source(target.file, draft.fork.read(target.file))
    function = target.function
    launch = "\n".join(_join_cases(programs, launches, names))
    made = _return_early(body, target).replace(LAUNCH, f"{launch}\n")
    if not sees_helpers(source, function.start) and "using namespace mps;" not in made:
        made = f"\nusing namespace mps;\n{made}"
    head = source.text[function.start : function.body_start]
    text = format_block(draft.fork, target.file, f"{head}{{\n{made.strip()}\n}}")
    return Edit(target.file, function.start, function.end, text)


def _join_cases(programs: Programs, launches: Sequence[Launch], names: Names) -> Iterator[str]:
    """The launches of all cases, each under its condition but the last."""
    *conditional, last = zip(programs.cases, launches, strict=True)
    if not conditional:
        yield last[1].text
        return
    for i, (case, launch) in enumerate(conditional):
        conditions = (_write_condition(each, names) for each in case.when)
        tests = " && ".join((*_write_types(programs, i, names), *conditions))
        yield f"{'} else ' if i else ''}if ({tests}) {{\n{launch.text}"
    yield f"}} else {{\n{last[1].text}\n}}"


def _write_types(programs: Programs, at: int, names: Names) -> Iterator[str]:
    """The condition on the element type of a case, where later cases are of others."""
    case, later = programs.cases[at], programs.cases[at + 1 :]
    if all(set(case.dtypes) >= set(each.dtypes) for each in later):
        return
    tensor = names.member(case.key)
    kinds = {dtype.kind for dtype in case.dtypes}
    others = {dtype.kind for each in later for dtype in each.dtypes if dtype not in case.dtypes}
    if kinds & others or len(kinds) > 1:
        yield "(" + " || ".join(f"{tensor}scalar_type() == ScalarType::{each.aten}" for each in case.dtypes) + ")"
    else:
        yield _OF_KIND[next(iter(kinds))].format(f"{tensor}scalar_type()")


def _write_condition(condition: Condition, names: Names) -> str:
    """A condition on arguments of the schema, on the variables of the function. Raises PTR376 if it is not known."""
    if condition.text == UNKNOWN:
        what = "the calls of one case have nothing in common that others lack"
        raise PorterError("PTR376", what, hint="See docs/errors/PTR376.md.")
    parts, last = [], 0
    for token in name_tokens(condition.text):
        if token.text in names.types:
            is_plain = condition.text[token.end : token.end + 1] != "."
            converted = ".to<double>()" if is_plain and names.types[token.text].startswith("Scalar") else ""
            parts += [condition.text[last : token.start], names.variable(token.text), converted]
            last = token.end
    text = "".join([*parts, condition.text[last:]])
    return text if condition.holds else f"!({text})"


def _return_early(body: str, target: Target) -> str:
    """A body that returns before it launches kernels for no elements."""
    result = target.variables["result0"]
    if f"{result}.numel() == 0" in body:
        return body
    end = body.rstrip().rpartition("\n")[2].strip()
    leave = end if end.startswith("return") else "return;"
    return body.replace(LAUNCH, f"if ({result}.numel() == 0) {{\n{leave}\n}}\n\n{LAUNCH}")
