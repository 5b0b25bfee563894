"""A stage of a script as a promotion."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from porter.core.errors import Place, PorterError
from porter.core.names import explain_word
from porter.kernels.call import Call
from porter.kernels.kernel import Kernel
from porter.kernels.launch import observing
from porter.kernels.loading import load
from porter.kernels.promotion.kernel_text import is_open, write_kernel_text
from porter.kernels.promotion.size_checks import find_size_checks
from porter.kernels.promotion.test_text import write_reference, write_samples
from porter.kernels.script import Case, Script, Stage, moved, on_cpu
from porter.kernels.tracing.reference import NotCalls, WrittenReference, write_aten_calls
from porter.kernels.tracing.tracer import Traced, trace
from porter.plan.promotion.expressions import Constant, apply
from porter.plan.promotion.program import Check, Launch, OutputTensor, Program, Raised, Requirement, Unlike, merge
from porter.plan.promotion.promotion import Decision, Parameter, Promotion, TestTexts, Wish

_OWNERS = {"torch": torch, "torch.Tensor": torch.Tensor}
_NAME = re.compile(r"_?[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_TYPES = {bool: "bool", int: "int", float: "float"}
_TAKEN = frozenset(("out", "self", "int", "float", "double", "bool", "new", "delete", "default", "register", "lib"))


@dataclass(frozen=True)
class Subject:
    """What is promoted as `op`: a stage of a script, the function that launches its kernel, what gives its inputs."""

    op: str
    script: Script
    stage: Stage
    function: Callable[..., Any]
    inputs: Callable[[Case], Mapping[str, Any]]
    file: str

    @property
    def place(self) -> Place:
        """Where the function begins."""
        code = getattr(self.function, "__code__", None)
        return Place(self.file, code.co_firstlineno if code else 0)


def find_subject(path: Path, wish: Wish) -> Subject:
    """What a wish names of a script, which is run to load it. Raises PTR238, PTR239 and PTR241."""
    script = load(path)
    stage = _find_stage(script, wish.stage, path)
    op = wish.op or stage.name
    why = explain_word(op) or ("" if _NAME.fullmatch(op) else "it is no name of small letters")
    if why:
        what = f"`{op}` cannot be the name of an operator: {why}"
        raise PorterError("PTR241", what, hint="Use small letters, digits and underscores, and no word of a language.")
    return Subject(op, script, stage, _tier(stage, wish.simple, path), _inputs_of(script, stage), str(path))


def check_name(subject: Subject) -> None:
    """Raises PTR347 for the name of an operator that PyTorch has, or of anything else that torch or a tensor has.

    The operator becomes `torch.NAME`, and `Tensor.NAME`: another module or function would be lost.
    """
    op = subject.op
    if torch._C._jit_get_schemas_for_operator(f"aten::{op}"):
        what = f"PyTorch has an operator `{op}` already"
    elif owner := next((name for name, of in _OWNERS.items() if hasattr(of, op)), ""):
        what = f"PyTorch has `{owner}.{op}`, which is no operator"
    else:
        return
    raise PorterError("PTR347", what, Place(subject.file), f"Choose another name: --op {op}_of_mine.")


def read_promotion(subject: Subject, wish: Wish) -> Promotion:
    """The promotion of a stage of a script.

    Raises PTR243 to PTR245 (what surrounds the kernel), PTR246 (schema), PTR247 (template parameters) and PTR248
    (reference).
    """
    script, stage, function, inputs = subject.script, subject.stage, subject.function, subject.inputs
    place, file = subject.place, subject.file
    values = inputs(Case(script.sizes[0], script.dtypes[0], script.layouts[0], "cpu"))
    parameters = _parameters(function, stage, values, place)
    if wish.schema is not None:
        parameters = _follow_schema(wish.schema, subject.op, parameters, len(stage.gives))
    traces, dtypes = _trace_types(script, stage, function, inputs, parameters, file)
    programs = [_merge(traced, place) for traced in traces]
    program = _generalize(programs, dtypes, place)
    sizes = find_size_checks(script, stage, function, inputs, parameters)
    program = replace(program, requirements=(*program.requirements, *sizes.requirements))
    wanted = dict(wish.instantiate)
    _check_instances(program, wanted, place)
    text = write_kernel_text(traces[0].kernel, subject.op, [each.launch for each in programs], wanted)
    samples = write_samples(script, stage, subject.op, place)
    reference = write_reference(stage.reference, f"reference_{subject.op}", place)
    functions = f"{reference}\n\n{samples.functions}" if samples.functions else reference
    unchecked = tuple(Decision(place, f"the operator is wrong with {each}: check that") for each in sizes.left)
    notes = tuple(Decision(where, what) for where, what in dict.fromkeys(n for each in traces for n in each.notes))
    tolerance = script.tolerance.relative, script.tolerance.absolute
    results = ("out",) if len(stage.gives) == 1 else stage.gives
    cpu, why = _write_cpu(stage, parameters, file)
    clash = {each.name for each in parameters} & set(results)
    if clash:
        what = f"`{clash.pop()}` is both an argument and a result"
        raise PorterError("PTR246", what, place, "Rename one of them.")
    return Promotion(
        op=subject.op,
        parameters=parameters,
        results=results,
        program=_with_instances(program, wanted),
        kernel=text,
        dtypes=dtypes,
        tests=TestTexts(samples.samples, functions, f"reference_{subject.op}", tolerance),
        cpu=cpu.results,
        empty=_find_empty_inputs(script, stage, function, inputs),
        cpu_headers=cpu.functions,
        decisions=(*unchecked, *notes, *samples.decisions, *why),
    )


def _find_empty_inputs(
    script: Script, stage: Stage, function: Callable[..., Any], inputs: Callable[[Case], Mapping[str, Any]]
) -> frozenset[int]:
    """The inputs that are empty in some launch of the script's cases."""
    found: set[int] = set()

    def look(_kernel: Kernel, call: Call, _outputs: object) -> None:
        found.update(at for at, v in enumerate(call.inputs) if isinstance(v, torch.Tensor) and v.numel() == 0)

    for size in script.sizes:
        values = inputs(Case(size, script.dtypes[0], script.layouts[0]))
        given = [values[name] for name in stage.takes]
        if any(isinstance(each, torch.Tensor) and each.numel() == 0 for each in given):
            with observing(look):
                function(*given)
    return frozenset(found)


def _write_cpu(
    stage: Stage, parameters: Sequence[Parameter], file: str
) -> tuple[WrittenReference, tuple[Decision, ...]]:
    """The reference as the implementation for the CPU, or what a person has to decide because it cannot be that."""
    code = getattr(stage.reference, "__code__", None)
    try:
        return write_aten_calls(stage.reference, {each.name: each.type for each in parameters}, file), ()
    except NotCalls as error:
        what = (
            f"the reference is more than calls of ATen ({error}): write an implementation for the CPU and an OpInfo, "
            "or leave the operator to MPS"
        )
        return WrittenReference((), ()), (Decision(Place(file, code.co_firstlineno if code else 0), what),)


def _find_stage(script: Script, name: str | None, path: Path) -> Stage:
    if name is None and len(script.stages) == 1:
        return script.stages[0]
    for stage in script.stages:
        if stage.name == name:
            return stage
    what = "the script has several stages" if name is None else f"the script has no stage {name}"
    names = ", ".join(each.name for each in script.stages)
    raise PorterError("PTR241", what, Place(str(path)), f"Name one with --stage: {names}.")


def _tier(stage: Stage, simple: bool, path: Path) -> Callable[..., Any]:
    if not simple:
        return stage.run
    if stage.simple is None:
        raise PorterError("PTR241", f"stage {stage.name} has no simple tier", Place(str(path)), "Omit --simple.")
    return stage.simple


def _inputs_of(script: Script, stage: Stage) -> Callable[[Case], Mapping[str, Any]]:
    """What gives the values of a case, those of the stages before by their references."""

    def inputs(case: Case) -> Mapping[str, Any]:
        values = script.values(case)
        for each in script.stages:
            if each is stage or all(name in values for name in stage.takes):
                break
            values |= moved(each.results(each.reference, on_cpu(values)), case.device)
        stage.require(values)
        return values

    return inputs


def _parameters(
    function: Callable[..., Any], stage: Stage, values: Mapping[str, Any], place: Place
) -> tuple[Parameter, ...]:
    signature = list(inspect.signature(function).parameters.values())
    found = []
    for name, declared in zip(stage.takes, signature, strict=False):
        value = values[name]
        if not isinstance(value, (torch.Tensor, bool, int, float)):
            raise PorterError(
                "PTR246", f"argument `{declared.name}` is a {type(value).__name__}, which a schema does not take here",
                place, "Use tensors, whole numbers, floats and bools.",
            )  # fmt: skip
        type_ = "Tensor" if isinstance(value, torch.Tensor) else _TYPES[type(value)]
        default = None
        if type_ != "Tensor" and isinstance(declared.default, (bool, int, float)):
            default = str(declared.default)
        found.append(Parameter(_usable(declared.name, place), type_, default))
    if not any(each.is_tensor for each in found):
        raise PorterError("PTR246", "the stage takes no tensor", place, "Give it one: it says where the operator runs.")
    return tuple(_drop_early_defaults(found))


def _usable(name: str, place: Place) -> str:
    if name in _TAKEN:
        raise PorterError(
            "PTR246", f"`{name}` cannot be the name of an argument", place, "Rename it, or give --schema."
        )
    return name


def _drop_early_defaults(parameters: Sequence[Parameter]) -> list[Parameter]:
    """The parameters without defaults that one without a default follows."""
    last = max((i for i, each in enumerate(parameters) if each.default is None), default=-1)
    return [replace(each, default=None) if i < last else each for i, each in enumerate(parameters)]


def _follow_schema(schema: str, op: str, found: Sequence[Parameter], results: int) -> tuple[Parameter, ...]:
    """The parameters as a schema names them. Raises PTR246 for a schema that the stage does not fit."""
    try:
        parsed = torch._C.parse_schema(schema)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0].rstrip(":")
        what = f"the schema cannot be read: {reason}"
        raise PorterError("PTR246", what, hint="Write NAME(Tensor x) -> Tensor.") from error
    words = {"Tensor": "Tensor", "float": "float", "int": "int", "bool": "bool"}
    types = [words.get(str(each.type), str(each.type)) for each in parsed.arguments]
    wanted = [each.type for each in found]
    if parsed.name != op or types != wanted or len(parsed.returns) != results or parsed.overload_name:
        listed = ", ".join(f"{each.type} {each.name}" for each in found)
        returned = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
        raise PorterError(
            "PTR246", f"the schema does not fit the stage: {schema}", hint=f"It takes {op}({listed}) -> {returned}."
        )
    place = Place("")
    return tuple(
        Parameter(_usable(each.name, place), type_, None if each.default_value is None else str(each.default_value))
        for each, type_ in zip(parsed.arguments, types, strict=True)
    )


def _trace_types(
    script: Script,
    stage: Stage,
    function: Callable[..., Any],
    inputs: Callable[[Case], Mapping[str, Any]],
    parameters: Sequence[Parameter],
    file: str,
) -> tuple[list[Traced], dict[str, tuple[str, ...]]]:
    """A trace for each element type of the script, and the types of each tensor in them."""
    traces, dtypes = [], []
    for dtype in script.dtypes:
        values = inputs(Case(script.sizes[0], dtype, script.layouts[0], "cpu"))
        given = [values[name] for name in stage.takes]
        arguments = {
            each.name: value.dtype if isinstance(value, torch.Tensor) else each.type
            for each, value in zip(parameters, given, strict=True)
        }
        found = {name: _torch_name(kind) for name, kind in arguments.items() if isinstance(kind, torch.dtype)}
        if found in dtypes:
            continue
        traces.append(trace(function, arguments, file))
        dtypes.append(found)
    return traces, {name: tuple(each[name] for each in dtypes) for name in dtypes[0]}


def _torch_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


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
            equal = apply("==", each.value, Constant.of(value))
            condition = equal if condition is None else apply("or", condition, equal)
        assert condition is not None
        listed = ", ".join(map(str, instantiate[each.name]))
        message = (f"{each.name} has to be one of {listed}, not ", each.value)
        added.append(Requirement(condition, message, Check.VALUE))
    return Program((*program.requirements, *added), program.launch)
