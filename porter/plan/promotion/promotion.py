"""A kernel of a script with all that an operator of it needs, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from porter.core.errors import Place
from porter.loops.host_algebra import apply, negate, select
from porter.loops.host_values import HostSizes, HostTensor, HostValue, Node, Number
from porter.metal.codegen.host_values import Message, write_check
from porter.plan.new_operator.operator import Sample, Schema


class Check(Enum):
    """The error that a failed check raises, as the macro that raises it."""

    VALUE = "TORCH_CHECK_VALUE"
    TYPE = "TORCH_CHECK_TYPE"
    INDEX = "TORCH_CHECK_INDEX"
    OTHER = "TORCH_CHECK"


@dataclass(frozen=True)
class Requirement:
    """What has to hold, or else an error with `message` is raised."""

    condition: HostValue
    message: Message
    check: Check

    def write(self, op: str) -> str:
        """The statement that checks it."""
        first, *rest = self.message or ("",)
        words = (f"{op}: {first}", *rest) if isinstance(first, str) else (f"{op}: ", *self.message)
        return write_check(self.condition, words, macro=self.check.value)


@dataclass(frozen=True)
class OutputTensor:
    """The sizes of an output, and its element type in torch's words."""

    sizes: HostSizes
    dtype: str


@dataclass(frozen=True)
class TemplateValue:
    """A template parameter of the kernel: `typename T` with a torch name, or a number that may depend on sizes."""

    kind: str
    name: str
    value: str | HostValue


@dataclass(frozen=True)
class Launch:
    """The launch of a kernel. `arguments` are its inputs, `kernel_outputs` how large the kernel sees its outputs.

    `returned` has the number of the kernel's output that each of `outputs` is; the others are left behind. `names` are
    those that the script gives to what it computes, in their order.
    """

    arguments: tuple[HostTensor | HostValue, ...]
    argument_dtypes: tuple[str, ...]
    kernel_outputs: tuple[OutputTensor, ...]
    outputs: tuple[OutputTensor, ...]
    returned: tuple[int, ...]
    grid: tuple[HostValue, ...]
    group: tuple[HostValue, ...]
    template: tuple[TemplateValue, ...]
    init_value: Number | None
    names: tuple[tuple[str, Node], ...]
    place: Place


@dataclass(frozen=True)
class Raised:
    """A path that ends in an error."""

    message: Message
    check: Check
    place: Place


@dataclass(frozen=True)
class Branch:
    """A decision that the script takes."""

    condition: HostValue
    yes: Tree
    no: Tree


Tree: TypeAlias = Launch | Raised | Branch


@dataclass(frozen=True)
class Program:
    """What the script requires, then one launch."""

    requirements: tuple[Requirement, ...]
    launch: Launch


class Unlike(Exception):
    """Two paths launch so differently that they are not one launch. Holds what differs."""


def merge(tree: Tree) -> Program | Raised:
    """One launch for all paths, whose values depend on the decisions. Raises Unlike."""
    if isinstance(tree, Launch):
        return Program((), tree)
    if isinstance(tree, Raised):
        return tree
    yes, no = merge(tree.yes), merge(tree.no)
    if isinstance(yes, Raised) and isinstance(no, Raised):
        return yes
    if isinstance(yes, Raised):
        return _require(negate(tree.condition), yes, no)  # type: ignore[arg-type]
    if isinstance(no, Raised):
        return _require(tree.condition, no, yes)
    held = [each for each in yes.requirements if each in no.requirements]
    ours = (_under(negate(tree.condition), each) for each in yes.requirements if each not in held)
    theirs = (_under(tree.condition, each) for each in no.requirements if each not in held)
    return Program((*held, *ours, *theirs), _merge_launches(tree.condition, yes.launch, no.launch))


def _require(condition: HostValue, otherwise: Raised, program: Program) -> Program:
    first = Requirement(condition, otherwise.message, otherwise.check)
    rest = program.requirements
    if rest and (rest[0].message, rest[0].check) == (first.message, first.check):
        first = Requirement(apply("and", condition, rest[0].condition), first.message, first.check)
        rest = rest[1:]
    return Program((first, *rest), program.launch)


def _under(unless: HostValue, requirement: Requirement) -> Requirement:
    return Requirement(apply("or", unless, requirement.condition), requirement.message, requirement.check)


def _merge_launches(condition: HostValue, yes: Launch, no: Launch) -> Launch:
    if (yes.init_value, yes.returned) != (no.init_value, no.returned) or yes.argument_dtypes != no.argument_dtypes:
        raise Unlike("other results, start values or types")

    def nodes(ours: tuple[Node, ...], theirs: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(select(condition, one, other) for one, other in zip(ours, theirs, strict=True))

    def outputs(ours: tuple[OutputTensor, ...], theirs: tuple[OutputTensor, ...]) -> tuple[OutputTensor, ...]:
        if [o.dtype for o in ours] != [o.dtype for o in theirs]:
            raise Unlike("outputs of other types")
        sizes = nodes(tuple(o.sizes for o in ours), tuple(o.sizes for o in theirs))
        return tuple(OutputTensor(each, one.dtype) for each, one in zip(sizes, ours, strict=True))  # type: ignore[arg-type]

    names: Mapping[str, Node] = dict(no.names)
    shared = ((name, select(condition, node, names[name])) for name, node in yes.names if name in names)
    return Launch(
        nodes(yes.arguments, no.arguments),  # type: ignore[arg-type]
        yes.argument_dtypes,
        outputs(yes.kernel_outputs, no.kernel_outputs),
        outputs(yes.outputs, no.outputs),
        yes.returned,
        nodes(yes.grid, no.grid),  # type: ignore[arg-type]
        nodes(yes.group, no.group),  # type: ignore[arg-type]
        tuple(_merge_template(condition, *pair) for pair in zip(yes.template, no.template, strict=True)),
        yes.init_value,
        tuple(shared),
        yes.place,
    )


def _merge_template(condition: HostValue, yes: TemplateValue, no: TemplateValue) -> TemplateValue:
    if yes == no:
        return yes
    if yes.name != no.name or isinstance(yes.value, str) or isinstance(no.value, str):
        raise Unlike(f"another type for the template parameter {yes.name}")
    return TemplateValue(yes.kind, yes.name, select(condition, yes.value, no.value))  # type: ignore[arg-type]


@dataclass(frozen=True)
class ScriptWish:
    """What to promote: the operator's name ("" for that of the stage), the stage if there are several, and its tier.

    `instantiate` has values of template parameters that depend on the call.
    """

    op: str
    stage: str | None = None
    simple: bool = False
    schema: str | None = None
    instantiate: tuple[tuple[str, tuple[int, ...]], ...] = ()


class Content(Enum):
    """What the kernel gets of an argument."""

    DATA = "data"
    SHAPE = "shape"
    STRIDES = "strides"
    RANK = "rank"
    STORAGE_OFFSET = "storage offset"


@dataclass(frozen=True)
class Binding:
    """One buffer of the kernel: the number of its input or, after those, of its output, and what it holds."""

    operand: int
    content: Content


@dataclass(frozen=True)
class TypeName:
    """An element type of the kernel: its torch name in each of the cases, and its word in the kernel, if it varies."""

    dtypes: tuple[str, ...]
    word: str = ""


@dataclass(frozen=True)
class KernelText:
    """The Metal source. `outputs` are the names of what it writes.

    `types` and `numbers` are its template parameters, both in the order of `parameters`; `instances` are their values:
    Metal names of types, then numbers. `in_groups` says that its result depends on how threads are grouped.
    """

    before: str
    definition: str
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    types: tuple[TypeName, ...]
    numbers: tuple[str, ...]
    instances: tuple[tuple[str, ...], ...]
    bindings: tuple[Binding, ...]
    in_groups: bool
    row_contiguous: bool


@dataclass(frozen=True)
class Decision:
    """What the operator leaves to a person, and where in the script."""

    place: Place
    what: str
    code: str = "PTR249"

    def __str__(self) -> str:
        return f"{self.place}: {self.code} {self.what}"


@dataclass(frozen=True)
class TestTexts:
    """What the operator's tests need: calls, and the source of `reference_OP`, which computes the same in torch.

    `tolerance` is relative, then absolute; None is the usual one for a result's type.
    """

    samples: tuple[Sample, ...]
    reference: str
    tolerance: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Promotion:
    """A kernel of a script as an operator. `dtypes` has the element types of each tensor, case by case.

    `cpu` is the reference as C++ for each result, if it could be written so, which needs the headers of `cpu_headers`.
    `empty` are the kernel's inputs that may be empty when it is launched.
    """

    schema: Schema
    program: Program
    kernel: KernelText
    dtypes: Mapping[str, tuple[str, ...]]
    tests: TestTexts
    cpu: tuple[str, ...] = ()
    cpu_headers: tuple[str, ...] = ()
    empty: frozenset[int] = frozenset()
    decisions: tuple[Decision, ...] = ()

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.schema.name

    @property
    def has_opinfo(self) -> bool:
        """Whether OpInfo's tests can call it: they compare with the CPU, and vary the first argument, a tensor."""
        return bool(self.cpu) and self.schema.arguments[0].is_tensor
