"""A stage of a script as a promotion."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from porter.core.dtypes import name_torch
from porter.core.errors import Place, PorterError
from porter.kernels.call import Call, metal_type
from porter.kernels.kernel import AddressSpace, Kernel, Operand, TemplateArgument
from porter.kernels.launch import observing
from porter.kernels.promotion.size_rules import find_size_checks
from porter.kernels.promotion.subject import Subject
from porter.kernels.promotion.test_text import write_reference, write_samples
from porter.kernels.signature import define, words
from porter.kernels.tracing.reference import NotCalls, WrittenReference, write_aten_calls
from porter.kernels.tracing.tracer import Traced, trace
from porter.loops.host_algebra import apply, type_of
from porter.loops.host_values import Constant, Node, Select
from porter.plan.new_operator.operator import Argument, Schema
from porter.plan.promotion import promotion as values
from porter.plan.promotion.promotion import (
    Binding,
    Check,
    Decision,
    KernelText,
    Launch,
    OutputTensor,
    Program,
    Promotion,
    Raised,
    Requirement,
    ScriptWish,
    TestTexts,
    TypeName,
    Unlike,
    merge,
)

_SPARE = ("T", "U", "V", "W")
# What a kernel that names none of these computes does not depend on how its threads are grouped.
_GROUPED = re.compile(r"threadgroup|simdgroup|quadgroup|simd_|quad_|thread_execution_width|dispatch_")


def write_kernel_text(
    kernel: Kernel, op: str, launches: Sequence[Launch], instantiate: Mapping[str, Sequence[int]]
) -> KernelText:
    """The kernel as a template, from a launch for each choice of element types.

    Raises PTR247 for a template parameter that depends on sizes and has no values in `instantiate`.
    """
    first = launches[0]
    outputs = [tuple(each.kernel_outputs[i].dtype for each in launches) for i in range(len(kernel.outputs))]
    given = [tuple(each.argument_dtypes[i] for each in launches) for i in range(len(kernel.inputs))]
    named = {
        each.name: tuple(str(launch.template[at].value) for launch in launches)
        for at, each in enumerate(first.template) if each.kind == "typename"
    }  # fmt: skip
    types = _name_types([*named.values(), *given, *outputs], named, kernel)
    inputs = [
        Operand(name, types[dtypes] if dtypes[0] else type_of(first.arguments[at]), 1 if dtypes[0] else 0)
        for at, (name, dtypes) in enumerate(zip(kernel.inputs, given, strict=True))
    ]
    results = [Operand(name, types[dtypes], 1) for name, dtypes in zip(kernel.outputs, outputs, strict=True)]
    template = [
        *(TemplateArgument("typename", word, word) for word in dict.fromkeys(types.values()) if _varies(types, word)),
        *(TemplateArgument(each.kind, each.name, "") for each in first.template if each.kind != "typename"),
    ]
    fixed = "".join(f"using {name} = {types[dtypes]};\n" for name, dtypes in named.items() if types[dtypes] != name)
    definition = define(kernel, _passed(inputs), results, template, op)
    text = definition.text.replace(") {\n", f") {{\n{fixed}", 1) if fixed else definition.text
    varying = {word: dtypes for dtypes, word in types.items() if _varies(types, word)}
    numbers = [each for each in first.template if each.kind != "typename"]
    operands = (*kernel.inputs, *kernel.outputs)
    return KernelText(
        before=definition.before,
        definition=text,
        outputs=kernel.outputs,
        parameters=tuple(each.name for each in template),
        types=tuple(TypeName(dtypes, word) for word, dtypes in varying.items()),
        numbers=tuple(each.name for each in numbers),
        instances=tuple(_instances(launches, varying, instantiate)),
        bindings=tuple(Binding(operands.index(b.operand), values.Content[b.content.name]) for b in definition.buffers),
        in_groups=any(map(_GROUPED.search, words(kernel.body) | words(kernel.header))),
        row_contiguous=kernel.row_contiguous,
    )


def _passed(inputs: Sequence[Operand]) -> list[Operand]:
    """Numbers are constants, and tensors lie in device memory however small they are."""
    return [replace(each, space=AddressSpace.CONSTANT) if each.rank == 0 else each for each in inputs]


def _name_types(
    found: Sequence[tuple[str, ...]], named: Mapping[str, tuple[str, ...]], kernel: Kernel
) -> dict[tuple[str, ...], str]:
    """Metal's word for each choice of types: the kernel's own template parameter, a new one, or a type."""
    types: dict[tuple[str, ...], str] = {}
    taken = words(kernel.body) | words(kernel.header) | set(named)
    spare = iter(word for word in _SPARE if word not in taken)
    for name, dtypes in named.items():
        if len(set(dtypes)) > 1:
            types.setdefault(dtypes, name)
    for dtypes in found:
        if dtypes in types or not dtypes[0]:
            continue
        types[dtypes] = _metal(dtypes[0]) if len(set(dtypes)) == 1 else next(spare)
    return types


def _varies(types: Mapping[tuple[str, ...], str], word: str) -> bool:
    return any(len(set(dtypes)) > 1 for dtypes, each in types.items() if each == word)


def _instances(
    launches: Sequence[Launch], varying: Mapping[str, tuple[str, ...]], instantiate: Mapping[str, Sequence[int]]
) -> list[tuple[str, ...]]:
    found: dict[tuple[str, ...], None] = {}
    for at, launch in enumerate(launches):
        types = [_metal(dtypes[at]) for dtypes in varying.values()]
        numbers = []
        for each in launch.template:
            if isinstance(each.value, str):
                continue
            known = _values(each.value)
            if known is None and each.name not in instantiate:
                raise PorterError(
                    "PTR247", f"template parameter {each.name} depends on the call, and kernels are compiled ahead",
                    launch.place, f"Choose its values: --instantiate {each.name}=64,128.",
                )  # fmt: skip
            numbers.append([str(v) for v in instantiate[each.name]] if known is None else known)
        found.update(dict.fromkeys((*types, *chosen) for chosen in itertools.product(*numbers)))
    return list(found)


def _values(node: Node) -> list[str] | None:
    """Every value that a template argument can have; None if it is computed from sizes."""
    match node:
        case Constant(value):
            return [str(value).lower()]
        case Select(_, yes, no):
            parts = _values(yes), _values(no)
            return None if None in parts else list(dict.fromkeys([*(parts[0] or []), *(parts[1] or [])]))
    return ["false", "true"] if type_of(node) == "bool" else None


def is_open(node: Node) -> bool:
    """Whether a template argument is computed from sizes."""
    return _values(node) is None


def _metal(dtype: str) -> str:
    name = metal_type(getattr(torch, dtype))
    assert name is not None, dtype
    return name


_TYPES = {bool: "bool", int: "int", float: "float"}
_TAKEN = frozenset(("out", "self", "int", "float", "double", "bool", "new", "delete", "default", "register", "lib"))


def read_promotion(subject: Subject, wish: ScriptWish) -> Promotion:
    """The promotion of a stage of a script.

    Raises PTR243 to PTR245 (what surrounds the kernel), PTR246 (schema), PTR247 (template parameters) and PTR248
    (reference).
    """
    script, stage, place = subject.script, subject.stage, subject.place
    parameters = _read_parameters(subject)
    if wish.schema is not None:
        parameters = _follow_schema(wish.schema, subject.op, parameters, len(stage.gives))
    traces, dtypes = _trace_types(subject, parameters)
    programs = [_merge(traced, place) for traced in traces]
    program = _generalize(programs, dtypes, place)
    sizes = find_size_checks(subject, parameters)
    program = replace(program, requirements=(*program.requirements, *sizes.requirements))
    wanted = dict(wish.instantiate)
    _check_instances(program, wanted, place)
    text = write_kernel_text(traces[0].kernel, subject.op, [each.launch for each in programs], wanted)
    samples = write_samples(script, stage, subject.op, place)
    reference = write_reference(stage.reference, f"reference_{subject.op}", place)
    functions = f"{reference}\n\n{samples.functions}" if samples.functions else reference
    unchecked = tuple(Decision(place, f"the operator is wrong with {each}: check that") for each in sizes.left)
    notes = tuple(Decision(where, what) for where, what in dict.fromkeys(n for each in traces for n in each.notes))
    schema = Schema(subject.op, parameters, ("out",) if len(stage.gives) == 1 else stage.gives)
    cpu, why = _write_cpu(subject, parameters)
    clash = {argument.name for argument in parameters} & set(schema.results)
    if clash:
        what = f"`{clash.pop()}` is both an argument and a result"
        raise PorterError("PTR246", what, place, "Rename one of them.")
    return Promotion(
        schema,
        program=_with_instances(program, wanted),
        kernel=text,
        dtypes=dtypes,
        tests=TestTexts(samples.samples, functions, (script.tolerance.relative, script.tolerance.absolute)),
        cpu=cpu.results,
        empty=_find_empty_inputs(subject),
        cpu_headers=cpu.functions,
        decisions=(*unchecked, *notes, *samples.decisions, *why),
    )


def _find_empty_inputs(subject: Subject) -> frozenset[int]:
    """The inputs that are empty in some launch of the script's cases."""
    empty: set[int] = set()

    def look(_kernel: Kernel, call: Call, _outputs: object) -> None:
        empty.update(at for at, v in enumerate(call.inputs) if isinstance(v, torch.Tensor) and v.numel() == 0)

    for size in subject.script.sizes:
        arguments = subject.arguments(subject.case(size, device="mps"))
        if any(isinstance(value, torch.Tensor) and value.numel() == 0 for value in arguments):
            with observing(look):
                subject.function(*arguments)
    return frozenset(empty)


def _write_cpu(subject: Subject, parameters: Sequence[Argument]) -> tuple[WrittenReference, tuple[Decision, ...]]:
    """The reference as the implementation for the CPU, or what a person has to decide because it cannot be that."""
    reference, file = subject.stage.reference, subject.file
    code = getattr(reference, "__code__", None)
    try:
        return write_aten_calls(reference, {each.name: each.type for each in parameters}, file), ()
    except NotCalls as error:
        what = (
            f"the reference is more than calls of ATen ({error}): write an implementation for the CPU and an OpInfo, "
            "or leave the operator to MPS"
        )
        return WrittenReference((), ()), (Decision(Place(file, code.co_firstlineno if code else 0), what),)


def _read_parameters(subject: Subject) -> tuple[Argument, ...]:
    """The arguments of the operator. Raises PTR246."""
    place = subject.place
    signature = list(inspect.signature(subject.function).parameters.values())
    values = subject.arguments(subject.case())
    found = []
    for value, declared in zip(values, signature, strict=False):
        if not isinstance(value, (torch.Tensor, bool, int, float)):
            raise PorterError(
                "PTR246", f"argument `{declared.name}` is a {type(value).__name__}, which a schema does not take here",
                place, "Use tensors, whole numbers, floats and bools.",
            )  # fmt: skip
        type_ = "Tensor" if isinstance(value, torch.Tensor) else _TYPES[type(value)]
        default = None
        if type_ != "Tensor" and isinstance(declared.default, (bool, int, float)):
            default = str(declared.default)
        found.append(Argument(type_, _usable(declared.name, place), default))
    if not any(each.is_tensor for each in found):
        raise PorterError("PTR246", "the stage takes no tensor", place, "Give it one: it says where the operator runs.")
    # The parameters without defaults that one without a default follows
    last = max((i for i, each in enumerate(found) if each.default is None), default=-1)
    return tuple([replace(each, default=None) if i < last else each for i, each in enumerate(found)])


def _usable(name: str, place: Place) -> str:
    if name in _TAKEN:
        raise PorterError(
            "PTR246", f"`{name}` cannot be the name of an argument", place, "Rename it, or give --schema."
        )
    return name


def _follow_schema(schema: str, op: str, found: Sequence[Argument], results: int) -> tuple[Argument, ...]:
    """The parameters as a schema names them. Raises PTR246 for a schema that the stage does not fit."""
    try:
        parsed = torch._C.parse_schema(schema)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0].rstrip(":")
        what = f"the schema cannot be read: {reason}"
        raise PorterError("PTR246", what, hint="Write NAME(Tensor x) -> Tensor.") from error
    types = [str(each.type) for each in parsed.arguments]
    wanted = [each.type for each in found]
    if parsed.name != op or types != wanted or len(parsed.returns) != results or parsed.overload_name:
        listed = ", ".join(f"{each.type} {each.name}" for each in found)
        returned = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
        raise PorterError(
            "PTR246", f"the schema does not fit the stage: {schema}", hint=f"It takes {op}({listed}) -> {returned}."
        )
    place = Place("")
    return tuple(
        Argument(type_, _usable(each.name, place), None if each.default_value is None else str(each.default_value))
        for each, type_ in zip(parsed.arguments, types, strict=True)
    )


def _trace_types(subject: Subject, parameters: Sequence[Argument]) -> tuple[list[Traced], dict[str, tuple[str, ...]]]:
    """A trace for each element type of the script, and the types of each tensor in them."""
    traces, dtypes = [], []
    for dtype in subject.script.dtypes:
        given = subject.arguments(subject.case(dtype=dtype))
        arguments = {
            each.name: value.dtype if isinstance(value, torch.Tensor) else each.type
            for each, value in zip(parameters, given, strict=True)
        }
        found = {name: name_torch(kind) for name, kind in arguments.items() if isinstance(kind, torch.dtype)}
        if found in dtypes:
            continue
        traces.append(trace(subject.function, arguments, subject.file))
        dtypes.append(found)
    return traces, {name: tuple(each[name] for each in dtypes) for name in dtypes[0]}


def _merge(traced: Traced, place: Place) -> Program:
    try:
        merged = merge(traced.tree)
    except Unlike as error:
        raise PorterError(
            "PTR244", f"the script launches its kernel in two ways that are not one: {error}", place,
            "Promote a stage that always launches alike.",
        ) from error  # fmt: skip
    if isinstance(merged, Raised):
        raise PorterError("PTR245", "no call reaches a kernel", merged.place, "Promote a stage that launches a kernel.")
    return merged


def _generalize(programs: Sequence[Program], dtypes: Mapping[str, tuple[str, ...]], place: Place) -> Program:
    """One program for every element type. Raises PTR244 if they differ in more than the types."""
    first = programs[0]
    launches = [each.launch for each in programs]
    outputs = _generalize_outputs([each.outputs for each in launches], dtypes, place)
    left = _generalize_outputs([each.kernel_outputs for each in launches], dtypes, place)
    for other in programs[1:]:
        if other.requirements != first.requirements or _shape(other.launch) != _shape(first.launch):
            raise PorterError(
                "PTR244", "the script decides by element types how it launches its kernel", place,
                "Promote a stage that launches alike for every type.",
            )  # fmt: skip
    return Program(first.requirements, replace(first.launch, outputs=outputs, kernel_outputs=left))


def _generalize_outputs(
    found: Sequence[Sequence[OutputTensor]], dtypes: Mapping[str, tuple[str, ...]], place: Place
) -> tuple[OutputTensor, ...]:
    """Outputs whose types are the names of arguments that have the same types, or types that never change."""
    outputs = []
    for alike in zip(*found, strict=True):
        output, column = alike[0], tuple(each.dtype for each in alike)
        name = next((name for name, found in dtypes.items() if found == column), None)
        if name is None and len(set(column)) > 1:
            raise PorterError(
                "PTR244", "the element type of a result is not that of an argument, and is not always the same", place,
                "Give it the type of an argument, or one type.",
            )  # fmt: skip
        outputs.append(OutputTensor(output.sizes, name or column[0]))
    return tuple(outputs)


def _shape(launch: Launch) -> object:
    """A launch without its element types."""
    sizes = [each.sizes for each in (*launch.kernel_outputs, *launch.outputs)]
    template = [(each.name, each.value) for each in launch.template if each.kind != "typename"]
    return launch.arguments, sizes, launch.grid, launch.group, template, launch.init_value


def _check_instances(program: Program, instantiate: Mapping[str, tuple[int, ...]], place: Place) -> None:
    """Raises PTR247 for values of something else than a template parameter that depends on the call."""
    open_ = [each.name for each in program.launch.template if not isinstance(each.value, str) and is_open(each.value)]
    for name in instantiate:
        if name not in open_:
            hint = f"Those are {', '.join(open_)}." if open_ else "Leave --instantiate out: there are none."
            raise PorterError("PTR247", f"no template parameter `{name}` depends on the call", place, hint)


def _with_instances(program: Program, instantiate: Mapping[str, tuple[int, ...]]) -> Program:
    """The program with the requirement that template parameters have one of the values that were chosen."""
    added = []
    for each in program.launch.template:
        if isinstance(each.value, str) or not is_open(each.value):
            continue
        condition = None
        for value in instantiate[each.name]:
            equal = apply("==", each.value, Constant(value))
            condition = equal if condition is None else apply("or", condition, equal)
        assert condition is not None
        listed = ", ".join(map(str, instantiate[each.name]))
        message = (f"{each.name} has to be one of {listed}, not ", each.value)
        added.append(Requirement(condition, message, Check.VALUE))
    return Program((*program.requirements, *added), program.launch)
