"""The stages by which a function that ran a graph becomes its port, in order, each with its reason."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from porter.aten.meta import find_meta_function
from porter.aten.native_functions import NativeFunction, NativeFunctions, functional_variant
from porter.aten.opinfo import find_opinfos
from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT2
from porter.core.edits import Edit
from porter.core.errors import PorterError, explained
from porter.core.formatting import format_block
from porter.languages.patterns import find_code
from porter.languages.source import parse_source
from porter.loops.program import Programs
from porter.metal.codegen.checks import write_type_check
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.result_types import chooses_type
from porter.metal.forms import Computation, FormProgram
from porter.metal.host import profiles_streams, sees_helpers
from porter.plan.recorded.files import edit_kernel_file, find_kernel_file
from porter.plan.recorded.host_function import HostFunction, print_body, replace_graph
from porter.plan.recorded.returns import fill_of_nothing, keep_unwritten, return_early, start_of_nothing
from porter.plan.recorded.target import Target
from porter.plan.recorded.unsupported_inputs import (
    check_ranks,
    refuse_unseen_types,
    refuse_unseen_values,
    write_size_checks,
)

_NAMESPACE = "\nusing namespace mps;\n"
_WIDTH = 76  # of comments in a frame


@dataclass(frozen=True)
class Launched:
    """A launch by some names, behind the statements that it needs, with what it takes away in words."""

    launch: Launch
    names: Names
    setup: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """What stages read of the row that is ported. `write` writes the launch by names, which have the function's code.

    Where a tensor that is `counted` has no elements, there are no results. `has_complex` says whether complex elements
    are refused or computed already.
    """

    fork: Checkout
    function: NativeFunction
    target: Target
    programs: Computation
    names: Names
    counted: Collection[str]
    write: Callable[[Names], Launched]
    has_complex: bool = True
    views: Mapping[str, str] = field(default_factory=dict)  # the variables that arguments are expanded to

    @property
    def loops(self) -> Programs:
        """The cases that programs of loops compute, which a form has none of."""
        return self.programs if isinstance(self.programs, Programs) else Programs(self.programs.name, ())

    @property
    def resizes(self) -> bool:
        """Whether the launch gives results their sizes, or makes them: before it, nothing is known of them."""
        form = self.programs.form if isinstance(self.programs, FormProgram) else None
        return form is not None and (form.RESIZES or form.RETURNS)

    @property
    def written(self) -> frozenset[str]:
        """The variables that a launch can name."""
        return frozenset((*self.names.variables.values(), *self.views.values()))


@dataclass(frozen=True)
class Stage:
    """What makes one function of another, and why it does so at its place in the order."""

    run: Callable[[HostFunction, Row], HostFunction]
    reason: str


def make_function(host: HostFunction, row: Row) -> HostFunction:
    """The port of a function that the graph was removed from. Raises PTR359, PTR361, PTR371, PTR372, PTR376, PTR418."""
    for stage in STAGES:
        host = stage.run(host, row)
    return host


def edit_function(fork: Checkout, target: Target, host: HostFunction) -> Edit:
    """The edit of the function that ran the graph."""
    source = parse_source(target.file, fork.read(target.file))
    says_namespace = any(f"using namespace {name};" in host.text for name in ("mps", "at::native::mps"))
    is_seen = says_namespace or sees_helpers(source, target.function.start)
    body = print_body(host, profiles_streams(fork))
    return _edit_body(fork, target, body if is_seen else f"{_NAMESPACE}{body}")


def _edit_body(fork: Checkout, target: Target, body: str) -> Edit:
    function = target.function
    head = fork.read(target.file)[function.start : function.body_start]
    text = format_block(fork, target.file, f"{head}{{\n{body.strip()}\n}}")
    return Edit(target.file, function.start, function.end, text)


def _refuse_stale(host: HostFunction, row: Row) -> HostFunction:
    """Raises PTR359 for a result that is copied from memory which no kernel writes, as the graph did."""
    for copied in find_code(host.behind, "$to.copy_($memory)"):
        if copied["to"] in row.written and copied["memory"] not in row.written:
            what = f"the function copies to {copied['to']} from {copied['memory']}, which only its graph wrote"
            raise explained("PTR359", what, row.target.place)
    return host


def _check_result_type(host: HostFunction, row: Row) -> HostFunction:
    """Checks the type of the result before the launch, if nothing else does."""
    functional = functional_variant(NativeFunctions.read(row.fork).all, row.function)
    meta = find_meta_function(row.fork, functional.name) if functional else None
    keys, names = {case.key for case in row.loops.cases}, row.names
    calls = [(call.tensors, case.key) for case in row.loops.cases for call in case.calls]
    if chooses_type(names) or meta is None or "get_result_or_" not in meta.text or len(keys) != 1:
        return host
    if any(tensors["result0"].dtype != tensors[key].dtype for tensors, key in calls):
        return host
    return host.add(write_type_check(keys.pop(), "result0", names))


def _check_complex(host: HostFunction, row: Row) -> HostFunction:
    """Refuses complex elements before the launch, if the operator's OpInfos have them on the CPU.

    The check has the message of ATen/native/LinearAlgebra.cpp.
    """
    base = row.function.base
    takes = (call.dtypes and FLOAT2.torch in call.dtypes for call in find_opinfos(row.fork, base))
    if row.has_complex or not any(takes):
        return host
    chosen = ["result0"] if chooses_type(row.names) else sorted({case.key for case in row.loops.cases})
    message = f'"{base}: complex dtypes are not supported"'
    checks = (f"TORCH_CHECK_NOT_IMPLEMENTED(!{row.names.member(each)}is_complex(), {message});" for each in chosen)
    return host.add(*map(Line, checks))


def _launch(host: HostFunction, row: Row) -> HostFunction:
    launched = row.write(replace(row.names, code=host))
    port = KeptCode(f"{host.text}{launched.launch.computing}")
    refuse_unseen_values(row.programs, row.function, row.names, port)
    refuse_unseen_types(row.loops, row.function)
    checks, limits = check_ranks(row.programs, launched.names)
    if isinstance(row.programs, FormProgram):
        asked = replace(launched.names, variables=row.target.arguments or launched.names.variables)
        checks = (*checks, *write_size_checks(row.programs, row.programs.calls, asked))
    setup = (*map(Line, launched.setup), *checks)
    return replace(host, launch=launched.launch, setup=setup, notes=(*launched.notes, *limits))


STAGES = (
    Stage(_refuse_stale, "first, of the old code alone: what copies memory that only its graph wrote has no port"),
    Stage(_check_result_type, "a result that its caller gives has any type where no meta function looks at it"),
    Stage(_check_complex, "the CPU takes complex elements where no kernel does"),
    Stage(
        lambda host, row: fill_of_nothing(host, row.loops, row.names),
        "an operand without elements cannot be launched on, and its results may have some",
    ),
    Stage(_launch, "behind the checks, which it does not repeat; before what returns, which reads how it starts"),
    Stage(
        lambda host, row: start_of_nothing(host, row.names.variables.get("result0", "")),
        "where nothing is written to a result, it has what the launch starts with",
    ),
    Stage(
        lambda host, row: host if row.resizes else return_early(host, row.target, row.names.variables, row.counted),
        "a grid without threads cannot be launched: last, where nothing before has asked for that",
    ),
    Stage(
        lambda host, row: keep_unwritten(host, row.names, row.programs),
        "behind all returns, which it widens: one result has no elements, and others have",
    ),
)


def write_frame(fork: Checkout, function: NativeFunction, target: Target, error: PorterError) -> Iterator[Edit]:
    """The function without its graph, which raises until it launches a kernel, and the head of that kernel.

    Raises PTR370 unless the function runs one graph.
    """
    host = replace_graph(target.body, target.place, set(target.variables.values()))
    decision = "\n".join([f"// {line}" for line in textwrap.wrap(f"{error.code}: {error.what}", _WIDTH)])
    check = f'TORCH_CHECK_NOT_IMPLEMENTED(false, "{function.name}: its kernel is not written yet");'
    yield _edit_body(fork, target, print_body(host.add(Line(decision), Line(check))))
    kernel_file = find_kernel_file(fork, target.file)
    yield from edit_kernel_file(fork, kernel_file, format_block(fork, kernel_file, _write_kernel(function, decision)))


def _write_kernel(function: NativeFunction, decision: str) -> str:
    """A kernel without statements, of the tensors of a schema."""
    kernel = function.base.strip("_")
    tensors = [
        "input" if argument.name == "self" else argument.name for argument in function.inputs if argument.is_tensor
    ]
    inputs = [f"constant T* {name}" for name in tensors]
    outputs = [f"device T* output{i or ''}" for i in range(function.results)]
    arguments = ", ".join((*outputs, *inputs, "uint tid [[thread_position_in_grid]]"))
    return f"template <typename T>\nkernel void {kernel}({arguments}) {{\n{decision}\n}}\n"
