"""`MetalKernel`: a kernel whose body alone is written, called as MLX's `metal_kernel` is."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypedDict, cast, overload

import torch

from aten_overlay.device.groups import choose_open
from porter.core.errors import PorterError
from porter.kernels.benchmark import GROUPS, BenchmarkReport, benchmark
from porter.kernels.call import Call, Number, Output, TemplateValue, Value, find_interceptor, template_arguments
from porter.kernels.check import FLOATING, CheckReport, check
from porter.kernels.compare import BY_TYPE, Tolerance
from porter.kernels.definition import check_kernel, check_texts
from porter.kernels.kernel import Kernel
from porter.kernels.launch import find_last_source
from porter.kernels.operator import Operator, Vjp, operator, pack, recall, run_operator
from porter.kernels.references import Reference, result_outputs
from porter.kernels.repeated import Repetitions, describe, keep_repetition
from porter.kernels.validation import (
    check_choices,
    check_example,
    check_examples,
    check_functions,
    check_keys,
    check_launch,
    check_start,
    checked_inputs,
    listed,
    output_lengths,
    output_types,
    require_threads,
    sizes,
    template_values,
)

_MODES = ("safe", "relaxed", "fast")
_NAME = "math_mode"


def write_options(name: str, options: Any) -> str:
    """The line of source for `{"math_mode": MODE}`, which comes before all others; "" for none. Raises PTR289."""
    if options is None:
        return ""
    if not isinstance(options, Mapping):
        raise PorterError(
            "PTR289", f"`compile_options` of kernel `{name}` is {options!r}, not a mapping",
            hint='Give a mapping: {"math_mode": "safe"}.',
        )  # fmt: skip
    for option, value in options.items():
        if option != _NAME:
            raise PorterError(
                "PTR289", f"`compile_options` of kernel `{name}` has an unknown option `{option}`",
                hint=f"The only one is {_NAME}.",
            )  # fmt: skip
        if value not in _MODES:
            raise PorterError(
                "PTR289", f"`{_NAME}` in `compile_options` of kernel `{name}` is {value!r}",
                hint=f"Use one of {', '.join(_MODES)}.",
            )  # fmt: skip
    return f"#pragma METAL fp math_mode({options[_NAME]})\n" if options else ""


Inputs: TypeAlias = Mapping[str, object] | Sequence[object]  # of tensors and numbers, which a call checks
Shapes: TypeAlias = Mapping[str, Sequence[int]] | Sequence[Sequence[int]]
DTypes: TypeAlias = Mapping[str, torch.dtype] | Sequence[torch.dtype]
Template: TypeAlias = Mapping[str, TemplateValue] | Sequence[tuple[str, TemplateValue]]
_THREADGROUP = (256, 1, 1)
# What a reference implies, and a launch may leave out.
_IMPLIED = {"output_shapes", "output_dtypes", "grid"}


class Launch(TypedDict, total=False):
    """The arguments of a call beside its inputs."""

    grid: Sequence[int]
    threadgroup: Sequence[int]
    output_shapes: Shapes
    output_dtypes: DTypes
    template: Template
    init_value: Number | None


_ARGUMENTS = tuple(Launch.__annotations__)


class MetalKernel:
    """A Metal kernel from the text between its braces.

    The signature is generated: inputs and outputs by name, Metal attributes that `source` names, and `<input>_shape`,
    `_strides`, `_ndim` and `_storage_offset` where it names them. `header` stands before the kernel. Without
    `input_names` and `output_names`, a call names them, in mappings. `ensure_row_contiguous` copies inputs that are
    not; `atomic_outputs` makes every output a pointer to atomics. `compile_options`, `{"math_mode": "safe"}`, become a
    line of the header.

    `reference` computes the same with torch: it runs for inputs on the CPU, and `check` compares with it. `vjp` gets
    the inputs, the gradients of the outputs and the outputs, and returns a gradient for each input;
    `differentiate(reference)` makes one. `launch` gets the inputs and returns the other arguments of a call, for `run`,
    `check` and `benchmark`; what it leaves out is one thread for each element of the reference's first result.

    Raises PTR200-PTR203, PTR284 and PTR289.
    """

    def __init__(
        self,
        name: str,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        source: str = "",
        header: str = "",
        ensure_row_contiguous: bool = True,
        atomic_outputs: bool = False,
        reference: Reference | None = None,
        vjp: Vjp | None = None,
        launch: Callable[..., Launch] | None = None,
        compile_options: Mapping[str, str] | None = None,
    ) -> None:
        names = {"input_names": input_names or (), "output_names": output_names or ()}
        check_texts(name, names, {"source": source, "header": header})
        flags = {"ensure_row_contiguous": ensure_row_contiguous, "atomic_outputs": atomic_outputs}
        check_functions(name, {"reference": reference, "vjp": vjp, "launch": launch}, input_names, flags)
        self._named = input_names is not None and output_names is not None
        self._reference, self._vjp, self._launch = reference, vjp, launch
        self._draft = Kernel(
            name, tuple(input_names or ()), tuple(output_names or ()), source,
            write_options(name, compile_options) + header,
            row_contiguous=ensure_row_contiguous, atomic_outputs=atomic_outputs,
        )  # fmt: skip
        self._best: dict[object, tuple[int, ...]] = {}
        self._repetitions: Repetitions = {}
        self._operator: Operator | None = None
        if self._named:
            check_kernel(self._draft)
            self._operator = operator(self._draft, reference, vjp)

    @classmethod
    def of(cls, kernel: Kernel) -> MetalKernel:
        """The kernel that is `kernel` as a value, without a reference."""
        return cls(
            kernel.name, kernel.inputs, kernel.outputs, kernel.body, kernel.header,
            ensure_row_contiguous=kernel.row_contiguous, atomic_outputs=kernel.atomic_outputs,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not the operator, which they find again, nor what repeats calls."""
        return {**self.__dict__, "_operator": None, "_repetitions": {}}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        if self._named:
            self._operator = operator(self._draft, self._reference, self._vjp)

    @property
    def source(self) -> str:
        """The complete Metal source of the last call; "" before the first."""
        return find_last_source(self.kernel).text

    @property
    def kernel(self) -> Kernel:
        """The kernel as a value; inputs and outputs that only calls name are those of the last call."""
        return self._operator.kernel if self._operator else self._draft

    @overload
    def __call__(
        self,
        inputs: Inputs,
        template: Template | None = ...,
        grid: Sequence[int] = ...,
        threadgroup: Sequence[int] = ...,
        *,
        output_shapes: Mapping[str, Sequence[int]],
        output_dtypes: DTypes = ...,
        init_value: Number | None = ...,
        verbose: bool = ...,
    ) -> dict[str, torch.Tensor]: ...

    @overload
    def __call__(
        self,
        inputs: Inputs,
        template: Template | None = ...,
        grid: Sequence[int] = ...,
        threadgroup: Sequence[int] = ...,
        output_shapes: Sequence[Sequence[int]] = ...,
        output_dtypes: DTypes = ...,
        init_value: Number | None = ...,
        verbose: bool = ...,
    ) -> list[torch.Tensor]: ...

    def __call__(
        self,
        inputs: Inputs,
        template: Template | None = None,
        grid: Sequence[int] | None = None,
        threadgroup: Sequence[int] = _THREADGROUP,
        output_shapes: Shapes = (),
        output_dtypes: DTypes = (),
        init_value: Number | None = None,
        verbose: bool = False,
    ) -> dict[str, torch.Tensor] | list[torch.Tensor]:
        """Runs the kernel over `grid` threads in groups of `threadgroup`; its outputs, by name if shapes were.

        Every call says its `grid`, the shapes and the types of its outputs.
        `template` gives types, whole numbers and bools to template parameters. `init_value` fills outputs before the
        kernel runs. `verbose` prints the source. Raises PTR205-PTR220 and PTR283.
        """
        rest = (template, grid, threadgroup, output_shapes, output_dtypes, init_value)
        repeats = self._named and not verbose
        likeness = describe(inputs, rest, self._reference is not None) if repeats else None
        if likeness is not None and (known := self._repetitions.get(likeness)):
            return _named(self._draft, output_shapes, known.run(inputs))
        found = self._find_operator(inputs, output_shapes)
        kernel = found.kernel
        require_threads(kernel, grid=grid)
        launch = cast(Launch, {
            "grid": () if grid is None else grid, "threadgroup": threadgroup,
            "output_shapes": _ordered(kernel, "output_shapes", output_shapes),
            "output_dtypes": _ordered(kernel, "output_dtypes", output_dtypes),
            "template": template or (), "init_value": init_value,
        })  # fmt: skip
        if (interceptor := find_interceptor()) is not None:
            taken = interceptor(kernel, {**launch, "inputs": inputs, "template": dict(template or ())})
            return _named(kernel, output_shapes, taken)
        arguments = _packed(kernel, _listed(kernel, "inputs", inputs, kernel.inputs), launch)
        results = run_operator(found, arguments, verbose)
        if likeness is not None and (ran := recall(found, arguments)):
            keep_repetition(self._repetitions, likeness, kernel, inputs, *ran)
        return _named(kernel, output_shapes, results)

    @property
    def reference(self) -> Reference | None:
        """The torch function that computes the same, if there is one."""
        return self._reference

    @property
    def vjp(self) -> Vjp | None:
        """The gradient, if it has one."""
        return self._vjp

    def call_for(self, inputs: Sequence[Value]) -> Call:
        """The call that `run` makes for these inputs. Raises PTR205-PTR211 and PTR221."""
        kernel = self.kernel
        values = checked_inputs(kernel, inputs)
        arguments = self._complete(values, self._launch_for(values))
        shapes = output_lengths(kernel, "output_shapes", _ordered(kernel, "output_shapes", arguments["output_shapes"]))
        types = output_types(kernel, _ordered(kernel, "output_dtypes", arguments["output_dtypes"]))
        return Call(
            values,
            tuple(Output(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)),
            sizes(kernel, "grid", arguments["grid"]),
            sizes(kernel, "threadgroup", arguments["threadgroup"]),
            template_arguments(template_values(kernel, arguments.get("template", ()))),
            arguments.get("init_value"),
        )

    def run(self, *inputs: Value) -> torch.Tensor | list[torch.Tensor]:
        """Runs the kernel as its `launch` says; its output, or a list of several. Raises PTR205-PTR222."""
        # An exported program has to run for other lengths than those that a benchmark measured.
        use_best = self._best and not torch.compiler.is_exporting()
        return self._run_in_groups(self._best.get(_types(inputs)) if use_best else None, inputs)

    def check(
        self,
        inputs: Sequence[Value],
        *,
        dtypes: Collection[torch.dtype] = FLOATING,
        fixed: Collection[int] = (),
        tolerance: Tolerance = BY_TYPE,
    ) -> CheckReport:
        """Compares the kernel with its reference over cases made from `inputs`: types, layouts, lengths, large values.

        Lengths of dimensions in `fixed` do not change. Raises PTR221 without a reference, PTR205, PTR207 and PTR285 for
        arguments of the wrong kind.
        """
        reference = self._require_reference("check")
        self._require_names()
        check_example(self._draft, inputs)
        check_choices(self._draft, dtypes, fixed, tolerance)
        self._launch_for(inputs)
        return check(
            self._draft.name, self.run, reference, inputs,
            dtypes=dtypes, fixed=fixed, tolerance=tolerance, gradients=self._vjp is not None,
            outputs=self._draft.outputs,
        )  # fmt: skip

    def benchmark(
        self, examples: Sequence[Sequence[Value]], groups: Sequence[Sequence[int]] | None = None
    ) -> BenchmarkReport:
        """Times the kernel against its reference for each of `examples`, inputs of several sizes.

        Tries `groups` of threads; unless given, the usual ones for a kernel whose `launch` leaves the threadgroup open.
        `run` uses the best from then on for inputs like those of an example. Raises PTR221 without a reference, PTR205,
        PTR207, PTR211 and PTR285 for arguments of the wrong kind.
        """
        reference = self._require_reference("benchmark")
        self._require_names()
        check_examples(self._draft, examples, groups)
        if groups is None:
            fixed = any("threadgroup" in self._launch_for(each) for each in examples)
            groups = () if fixed else GROUPS
        report = benchmark(self._draft.name, self._run_in_groups, reference, examples, groups or (None,))
        for example, measurement in zip(examples, report.measurements, strict=True):
            if measurement.best.group is not None:
                self._best[_types(example)] = measurement.best.group
        return report

    def _run_in_groups(self, group: Sequence[int] | None, inputs: Sequence[Value]) -> torch.Tensor | list[torch.Tensor]:
        """`run` with another threadgroup."""
        arguments: Launch = {**self._launch_for(inputs)}
        if group is not None:
            arguments["threadgroup"] = group
        elif "threadgroup" not in arguments:
            arguments["threadgroup"] = choose_open(_THREADGROUP)
        likeness = describe(inputs, (arguments,), self._reference is not None) if self._named else None
        if likeness is not None and (known := self._repetitions.get(likeness)):
            results = known.run(inputs)
            return results[0] if len(results) == 1 else results
        if not all(name in arguments for name in _IMPLIED):
            self._require_reference("run")
        found = self._find_operator(inputs, arguments.get("output_shapes", ()))
        packed = _packed(found.kernel, checked_inputs(found.kernel, inputs), arguments)
        results = run_operator(found, packed, False)
        if likeness is not None and (ran := recall(found, packed)):
            keep_repetition(self._repetitions, likeness, found.kernel, inputs, *ran)
        return results[0] if len(results) == 1 else results

    def _launch_for(self, inputs: Sequence[Value]) -> Launch:
        """What `launch` gives for these inputs. Raises PTR258 for anything but arguments of a call."""
        given = self._launch(*inputs) if self._launch else {}
        return cast(Launch, check_launch(self._draft.name, given, _ARGUMENTS))

    def _complete(self, inputs: Sequence[Value], given: Launch) -> Launch:
        """A launch with what it leaves out. Raises PTR221 if only a reference could tell."""
        arguments: Launch = {**given}
        if not all(name in arguments for name in _IMPLIED):
            outputs = result_outputs(self._draft, self._require_reference("run"), tuple(inputs))
            arguments.setdefault("output_shapes", [output.shape for output in outputs])
            arguments.setdefault("output_dtypes", [output.dtype for output in outputs])
            arguments.setdefault("grid", (math.prod(outputs[0].shape), 1, 1))
        arguments.setdefault("threadgroup", _THREADGROUP)
        return arguments

    def _require_reference(self, wanted: str) -> Reference:
        if self._reference is None:
            raise PorterError(
                "PTR221", f"kernel `{self._draft.name}` has no reference, which `{wanted}` needs",
                hint="Give the kernel reference=, a torch function of its inputs.",
            )  # fmt: skip
        return self._reference

    def _find_operator(self, inputs: Inputs, output_shapes: Shapes) -> Operator:
        """The operator of this kernel; a call may be the first to name inputs and outputs. Raises PTR201 and PTR205."""
        if self._named and self._operator is not None:
            return self._operator
        draft = self._draft
        if not isinstance(inputs, Mapping) or not isinstance(output_shapes, Mapping):
            raise self._nameless()
        kernel = replace(draft, inputs=draft.inputs or tuple(inputs), outputs=draft.outputs or tuple(output_shapes))
        check_kernel(kernel)
        self._operator = operator(kernel, self._reference, self._vjp)
        return self._operator

    def _require_names(self) -> None:
        if not self._named:
            raise self._nameless()

    def _nameless(self) -> PorterError:
        return PorterError(
            "PTR205", f"kernel `{self._draft.name}` has no names for its inputs and outputs",
            hint="Give input_names and output_names, or pass inputs and output_shapes of a call as mappings.",
        )  # fmt: skip


def _named(kernel: Kernel, shapes: Shapes, results: list[torch.Tensor]) -> dict[str, torch.Tensor] | list[torch.Tensor]:
    """The outputs of a call, by name if its shapes were."""
    return dict(zip(kernel.outputs, results, strict=True)) if isinstance(shapes, Mapping) else results


def _packed(kernel: Kernel, inputs: Sequence[Value], given: Launch) -> tuple[object, ...]:
    """The operator's arguments; what a launch leaves out stays empty. Raises PTR206, PTR209-PTR211 and PTR217."""
    shapes, dtypes = given.get("output_shapes"), given.get("output_dtypes")
    check_start(kernel, given.get("init_value"))
    return pack(
        inputs,
        sizes(kernel, "grid", given["grid"]) if "grid" in given else (),
        sizes(kernel, "threadgroup", given["threadgroup"]),
        () if shapes is None else output_lengths(kernel, "output_shapes", _ordered(kernel, "output_shapes", shapes)),
        () if dtypes is None else output_types(kernel, _ordered(kernel, "output_dtypes", dtypes)),
        template_arguments(template_values(kernel, given.get("template", ()))),
        given.get("init_value"),
    )


def _types(inputs: Sequence[Value]) -> object:
    """What the best threadgroup is remembered for: the types and shapes of inputs."""
    return tuple((tuple(v.shape), v.dtype) if isinstance(v, torch.Tensor) else None for v in inputs)


def _listed(kernel: Kernel, what: str, given: Inputs, names: Sequence[str]) -> tuple[Value, ...]:
    """The inputs in the order of their names. Raises PTR205 and PTR207."""
    if isinstance(given, Mapping):
        check_keys(kernel, what, given, names)
        return checked_inputs(kernel, [given[name] for name in names])
    return checked_inputs(kernel, given)


def _ordered(kernel: Kernel, what: str, given: Shapes | DTypes) -> list[object]:
    """What a call gives for the outputs, in the order of their names. Raises PTR206."""
    if isinstance(given, Mapping):
        check_keys(kernel, what, given, kernel.outputs)
        return [given[name] for name in kernel.outputs]
    return list(listed(kernel, what, given, kernel.outputs))


metal_kernel = MetalKernel
