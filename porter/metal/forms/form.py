"""What a form is, and what the kernels and launches of all forms are written with.

Source: ATen/native/mps/OperationUtils.h (`mtl_setArgs`, `mtl_dispatch1DJob`), ATen/mps/MPSProfiler.h.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from string import Template
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.languages.brackets import split_at_commas
from porter.languages.identifiers import rename_identifiers
from porter.loops.host_values import Arguments
from porter.metal.codegen.elements import KEY, Elements, TypeParameter
from porter.metal.codegen.host_code import (
    PROFILER_NOTE,
    Block,
    Encode,
    Launch,
    Line,
    Node,
    as_nodes,
    begin_profile,
    end_profile,
    rewrite,
    run_on_stream,
)
from porter.metal.codegen.host_values import Names, write_fits
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.kernel import KernelStyle, register
from porter.metal.codegen.launch import INDEX_MATH, PROFILER
from porter.metal.codegen.schedule import PLACES, PLAIN, Schedule
from porter.metal.helpers import read_helper

RESULT = "result0"
CONTEXT, CEIL_DIV, GENERATOR = "ATen/Context.h", "ATen/ceil_div.h", "ATen/mps/MPSGeneratorImpl.h"
HEADERS = (PROFILER, INDEX_MATH)  # of all launches
MOST_THREADS = 1024
FEW_THREADS = 256  # of a form's only kernel: with 1,024 a gather took 1.5 times as long, a reflection 1.4
LARGEST_ROWS = "1 << 30"  # the last place of a thread may be beyond the end of its row before it is compared with it
GRID = "uint tid [[thread_position_in_grid]]"
IN_GROUP = (
    "uint group [[threadgroup_position_in_grid]]", "uint tid [[thread_position_in_threadgroup]]",
    "uint group_size [[threads_per_threadgroup]]",
)  # fmt: skip
_USUAL = {"self": "input", RESULT: "output"}
_MEMBERS = {
    "tensor": "", "flag": "", "number": "", "sizes": ".sizes()", "strides": ".strides()", "rank": ".dim()",
    "count": ".numel()",
}  # fmt: skip
SCAN = read_helper("scan_threadgroup.metal")  # what kernels share that rank elements


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel: its text in Metal, what it is, and of which tensor, by its name in the schema."""

    text: str
    kind: str
    tensor: str = ""

    def write(self, variable: str) -> str:
        """What host code passes, for the variable of the tensor."""
        return f"{variable}{_MEMBERS[self.kind]}"


@dataclass(frozen=True)
class FormKernels:
    """The kernels of a form in one text, with the `helpers` that a file has once; one that is alone has `arguments`.

    What is behind the name in those of several kernels, is in `endings`; `plain` ones have no types to choose. Behind
    its types, a name with an ending has that many `numbers`.
    """

    name: str
    source: str
    elements: Elements
    arguments: tuple[Argument, ...] = ()
    helpers: tuple[str, ...] = ()
    endings: tuple[str, ...] = ("",)
    plain: tuple[str, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def entries(self) -> dict[str, int]:
        """The names that host code appends types to, and how many."""
        types = len(self.elements.parameters) + 1
        typed = {f"{self.name}{ending}": types + self.numbers.get(ending, 0) for ending in self.endings}
        return typed | {f"{self.name}{ending}": 0 for ending in self.plain}


@dataclass(frozen=True)
class FormCost:
    """What a kernel of a form does for a call: the bytes that it reads of each tensor, pass by pass, and writes.

    A `turn` is a product that is added. A name that is none of the call's tensors is memory of the launch.
    """

    rows: int
    turns: int
    reads: Mapping[str, tuple[int, ...]]
    written: int


@dataclass(frozen=True)
class Site:
    """Where a launch goes: the names that a function has.

    `views` are variables that have the elements of a tensor in the shape that is walked.
    """

    names: Names
    views: Mapping[str, str] = field(default_factory=dict)

    @property
    def code(self) -> KeptCode:
        """The function around the launch."""
        return self.names.code

    def variable(self, name: str) -> str:
        """The function's variable for an argument or a result. Raises PTR371."""
        return self.names.variable(name)

    def write_stream(self) -> Iterator[str]:
        """A variable for the stream, if the function has none."""
        if self.code.is_free("stream"):
            yield "MPSStream* stream = getCurrentMPSStream();"

    def name_locals(self, lines: Iterable[str | Node], locals_: Collection[str]) -> tuple[Node, ...]:
        """Statements with names for their own variables, which have a `$` before them: others than the function's."""
        names = {name: name if self.names.is_free(name) else f"{name}_" for name in locals_}
        return tuple(rewrite(node, lambda text: Template(text).safe_substitute(names)) for node in as_nodes(lines))


class Form(Protocol):
    """What an overload computes at any sizes, by the names of its arguments: found from the results of its calls.

    A form is a frozen dataclass. Its fields are names of arguments, an empty one is not there; `dtypes` are the element
    types of the recorded calls.
    """

    TITLE: ClassVar[str]  # of `porter explain`
    READS_FED: ClassVar[bool] = False  # whether the launch reads what the graph was fed, instead of the arguments
    ANY_RANK: ClassVar[bool] = False  # whether a kernel is named without the number of dimensions
    ALIKE: ClassVar[bool] = False  # whether all results have as many elements
    WHOLE_BODY: ClassVar[bool] = False  # whether it is all that a structured row does
    SHARED: ClassVar[bool] = False  # whether other rows of a file have the same kernels
    ALL_CALLS: ClassVar[bool] = False  # whether it computes calls too that the function leaves to helpers of its file

    RESIZES: ClassVar[bool] = False  # whether the launch gives results their sizes, and asks for elements itself
    RETURNS: ClassVar[bool] = False  # whether the launch makes the results, and returns them
    BY_RESULT: ClassVar[bool] = False  # whether functions make a result each, and are ported for all that call them

    def describe(self) -> Iterator[str]:
        """Yields what is computed, as `porter explain` prints it."""
        ...

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        """The element types of kernels; `read_atomic` gives those that kernels can add to atomically."""
        return [dtype for dtype in dtypes.ALL if dtype.kind is Kind.FLOATING]

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        """The kernels for some element types."""
        ...

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        """Launches the kernels. Raises PTR371."""
        ...

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """Yields what kernels do for a call; nothing where that is not known."""
        yield from ()

    def choose_names(self, names: Names) -> Names:
        """The names that a launch uses, of those that a function has."""
        return names

    def list_parts(self) -> Iterable[Self]:
        """The form of each result, which is the first one there."""
        return (self,)

    def list_counted(self) -> tuple[str, ...]:
        """The tensors besides the result without whose elements there is nothing to compute."""
        return ()

    def list_moved(self) -> tuple[str, ...]:
        """The tensors whose elements are moved by the places of their dimensions."""
        return ()


F = TypeVar("F", bound=Form)


@dataclass(frozen=True)
class LaunchWriter(Generic[F]):
    """Writes the launch of the kernels of a form at a site."""

    form: F
    kernels: FormKernels
    site: Site

    @property
    def result(self) -> str:
        """The variable of the first result."""
        return self.site.variable(RESULT)


def name_tensor(tensor: str) -> str:
    """What a kernel calls a tensor of the schema."""
    return _USUAL.get(tensor, tensor)


def count_bytes(call: Arguments, name: str) -> int:
    """The bytes of a tensor's elements."""
    tensor = call.tensors[name]
    return prod(tensor.shape) * tensor.dtype.size


def list_real() -> list[DType]:
    """The element types that are not complex."""
    return [dtype for dtype in dtypes.ALL if dtype.kind is not Kind.COMPLEX]


def read_kernels(form: str, **numbers: int | str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The arguments and the statements of a form's kernels, by their names in its Metal file.

    What the file has in capitals is one of the `numbers`.
    """
    text = (Path(__file__).parent / "kernels" / f"{form}.metal").read_text()
    text = rename_identifiers(text, {name: str(number) for name, number in numbers.items()})
    kernels = {}
    for part in text.split("kernel void ")[1:]:
        head, _, body = part.partition(") {\n")
        name, _, arguments = head.partition("(")
        lines = body.partition("\n}\n")[0].split("\n")
        kernels[name] = tuple(split_at_commas(arguments)), tuple(line.removeprefix("  ") for line in lines)
    return kernels


def list_elements(tensor: str, instances: Sequence[DType]) -> Elements:
    """The element types of kernels that have one type parameter, that of a tensor."""
    return Elements((TypeParameter(KEY, tensor),), {}, tuple((dtype,) for dtype in instances), instances[0], False)


def write_kernel(
    name: str,
    elements: Elements,
    arguments: Sequence[str],
    lines: Iterable[str],
    style: KernelStyle,
    schedule: Schedule = PLAIN,
    limit: int = MOST_THREADS,
) -> str:
    """The text of a kernel that computes indices in a type of its own, and what instantiates it.

    A threadgroup has at most as many threads as the `limit`.
    """
    types = ", ".join(f"typename {each.name}" for each in elements.parameters)
    counts = "".join(f", uint {parameter}" for parameter in schedule.parameters)
    limited = f"[[max_total_threads_per_threadgroup({limit})]] " if limit < MOST_THREADS else ""
    head = f"template <{types}, typename index_t{counts}>\n{limited}kernel void {name}({', '.join(arguments)}) {{\n"
    body = "".join(f"  {line}\n" for line in lines)
    return f"{head}{body}}}\n\n{register(name, elements, arguments, style, schedule=schedule)}"


def write_plain(name: str, arguments: Sequence[str], lines: Sequence[str]) -> str:
    """A kernel that has no types to choose."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"kernel void {name}({', '.join(arguments)}) {{\n{body}}}\n"


def write_one_kernel(
    name: str,
    elements: Elements,
    arguments: Iterable[Argument],
    lines: Iterable[str],
    style: KernelStyle,
    schedule: Schedule = PLAIN,
) -> FormKernels:
    """A kernel that is alone, whose threads need nothing of each other."""
    listed = tuple(arguments)
    signature = [*(each.text for each in listed), GRID]
    source = write_kernel(name, elements, signature, lines, style, schedule, FEW_THREADS)
    return FormKernels(name, source, elements, listed, numbers={"": len(schedule.parameters)})


def write_type(tensor: str, fit: Sequence[str], name: str = "type") -> str:
    """The variable for the end of a kernel's name: the type of a tensor, and the width of the indices of some."""
    return f'const auto {name} = scalarToMetalTypeString({tensor}) + ({write_fits(fit, ())} ? "_int" : "_long");'


def encode(pso: str, name: str, inputs: str, lines: Iterable[str], before: Iterable[str] = ()) -> Block:
    """Encodes commands on the stream of a function; those of `lines` are profiled as a kernel."""
    begin, end = begin_profile(pso, f'"{name}"', inputs), end_profile(pso)
    return run_on_stream(as_nodes((*before, PROFILER_NOTE, begin, *lines, end)))


def launch_one(
    kernels: FormKernels,
    threads: str,
    variable: Callable[[str], str],
    write: Callable[[Argument], str] | None = None,
    types: Sequence[str] = (),
    fit: str = "",
    guard: str = "",
    largest: str = "",
    choices: Iterable[str] = (),
    counts: Sequence[str] = (),
) -> Iterator[str | Node]:
    """Launches a kernel that is alone in so many threads, if the condition `guard` holds.

    Tensors have a `variable` each, and arguments are written as Argument does or by `write`. The kernel is named by the
    types of its parameters' tensors, or of those of `types`, and by `counts`, which are variables that the statements
    `choices` declare. Indices have 32 bits if all tensors `fit`, with fewer elements than `largest`, and others.
    """
    read = [argument for argument in kernels.arguments if argument.kind == "tensor"]
    fits = write_fits([variable(argument.tensor) for argument in read], (), largest)
    passed = [write(each) if write else each.write(variable(each.tensor)) for each in kernels.arguments]
    keys = types or [variable(parameter.tensor) for parameter in kernels.elements.parameters]
    numbers = (f"std::to_string({count})" for count in counts)
    ends = (*(f"scalarToMetalTypeString({key})" for key in keys), "index_type", *numbers)
    inputs = [variable(argument.tensor) for argument in read if not argument.text.startswith("device")]
    dispatch = (Line(dispatch_threads("PSO", threads)),)
    kernel = Encode(kernels.name, ends, "PSO", tuple(inputs), tuple(passed), dispatch, is_first=True)
    run = run_on_stream((kernel,))
    yield f'const std::string index_type = {fits}{fit} ? "int" : "long";'
    yield from choices
    yield Block(f"if ({guard}) {{", (run,)) if guard else run


def write_place(index: str) -> str:
    """One of the places of a row that a thread has; beyond the end of the row, the first of them again."""
    return f"const index_t {index} = first + (first + e * turns < columns ? e * turns : 0);"


def count_row_threads(tensor: str, width: str = "") -> str:
    """How many threads a tensor has, of which each has several places of a row, which is as long as `width` says."""
    width = width or f"{tensor}.size(-1)"
    return f"{tensor}.numel() / {width} * (({width} + {PLACES - 1}) / {PLACES})"


def set_arguments(pso: str, arguments: str) -> Iterator[str]:
    """Chooses a kernel, and what it takes."""
    yield f"[computeEncoder setComputePipelineState:{pso}];"
    yield f"mtl_setArgs(computeEncoder, {arguments});"


def dispatch_threads(pso: str, count: str) -> str:
    """Runs a kernel in so many threads."""
    return f"mtl_dispatch1DJob(computeEncoder, {pso}, {count});"


def dispatch_groups(groups: str, size: str = "group_size") -> Iterator[str]:
    """Runs the chosen kernel in so many threadgroups of a size."""
    yield f"[computeEncoder dispatchThreadgroups:MTLSizeMake({groups}, 1, 1)"
    yield f"threadsPerThreadgroup:MTLSizeMake({size}, 1, 1)];"
