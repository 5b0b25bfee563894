"""The stages by which a function that ran a graph becomes its port, in order, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from porter.aten.native_functions import NativeFunction
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.formatting import format_block
from porter.languages.source import parse_source
from porter.loops.program import Programs
from porter.metal.forms.programs import Computation
from porter.metal.native.host_code import Launch
from porter.metal.native.host_values import Names
from porter.plan.native.files import sees_helpers
from porter.plan.native.host_function import Check, HostFunction, print_body
from porter.plan.native.refusals import refuse_stale
from porter.plan.native.returns import fill_of_nothing, keep_unwritten, return_early, start_of_nothing
from porter.plan.native.target import Target
from porter.plan.native.type_checks import check_complex, check_result_type
from porter.plan.native.unseen import Edited, check_ranks, refuse_unseen_types, refuse_unseen_values

_NAMESPACE = "\nusing namespace mps;\n"


@dataclass(frozen=True)
class Launched:
    """A launch by some names, behind the statements that it needs, with what it takes away in words.

    `body` is the text of the function, in which dimensions are those of the tensors so named.
    """

    launch: Launch
    names: Names
    body: str
    setup: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """What stages read of the row that is ported. `write` writes the launch, which reads the function before it.

    Where a tensor that is `counted` has no elements, there are no results. `has_complex` says whether complex elements
    are refused or computed already.
    """

    fork: Checkout
    function: NativeFunction
    target: Target
    programs: Computation
    names: Names
    counted: Collection[str]
    write: Callable[[HostFunction], Launched]
    has_complex: bool = True
    views: Mapping[str, str] = field(default_factory=dict)  # the variables that arguments are expanded to

    @property
    def loops(self) -> Programs:
        """The cases that programs of loops compute, which a form has none of."""
        return self.programs if isinstance(self.programs, Programs) else Programs(self.programs.name, ())

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
    source, function = parse_source(target.file, fork.read(target.file)), target.function
    body = print_body(host)
    says_namespace = any(f"using namespace {each};" in host.code for each in ("mps", "at::native::mps"))
    if not says_namespace and not sees_helpers(source, function.start):
        body = f"{_NAMESPACE}{body}"
    head = source.text[function.start : function.body_start]
    text = format_block(fork, target.file, f"{head}{{\n{body.strip()}\n}}")
    return Edit(target.file, function.start, function.end, text)


def _refuse_stale(host: HostFunction, row: Row) -> HostFunction:
    refuse_stale(host, row.target.place, row.written)
    return host


def _check_result_type(host: HostFunction, row: Row) -> HostFunction:
    return check_result_type(host, row.fork, row.function, row.loops, row.names)


def _check_complex(host: HostFunction, row: Row) -> HostFunction:
    return host if row.has_complex else check_complex(host, row.fork, row.function, row.loops, row.names)


def _fill_of_nothing(host: HostFunction, row: Row) -> HostFunction:
    return fill_of_nothing(host, row.loops, row.names, row.target.before)


def _launch(host: HostFunction, row: Row) -> HostFunction:
    launched = row.write(host)
    edited = Edited(row.target.body, f"{host.code}{launched.launch.computing}")
    host = replace(host, launch=launched.launch, setup=tuple(map(Check, launched.setup)), notes=launched.notes)
    refuse_unseen_values(row.programs, row.function, row.names, edited)
    refuse_unseen_types(row.loops, row.function)
    checks, limits = check_ranks(row.programs, launched.names, launched.body)
    return replace(host, setup=(*host.setup, *map(Check, checks)), notes=(*host.notes, *limits))


def _start_of_nothing(host: HostFunction, row: Row) -> HostFunction:
    return start_of_nothing(host, row.names.variables.get("result0", ""))


def _return_early(host: HostFunction, row: Row) -> HostFunction:
    return return_early(host, row.target, row.names.variables, row.counted)


def _keep_unwritten(host: HostFunction, row: Row) -> HostFunction:
    return keep_unwritten(host, row.names, row.programs)


STAGES = (
    Stage(_refuse_stale, "first, of the old code alone: what copies memory that only its graph wrote has no port"),
    Stage(_check_result_type, "a result that its caller gives has any type where no meta function looks at it"),
    Stage(_check_complex, "the CPU takes complex elements where no kernel does"),
    Stage(_fill_of_nothing, "an operand without elements cannot be launched on, and its results may have some"),
    Stage(_launch, "behind the checks, which it does not repeat; before what returns, which reads how it starts"),
    Stage(_start_of_nothing, "where nothing is written to a result, it has what the launch starts with"),
    Stage(_return_early, "a grid without threads cannot be launched: last, where nothing before has asked for that"),
    Stage(_keep_unwritten, "behind all returns, which it widens: one result has no elements, and others have"),
)
