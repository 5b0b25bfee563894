"""`TorchMetalKernel`: a kernel with a torch definition, called as Core AI's is."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from aten_overlay.device.groups import choose_open
from porter.core.errors import PorterError
from porter.kernels.benchmark import GROUPS, BenchmarkReport, Group, benchmark
from porter.kernels.call import Call, Value, find_interceptor
from porter.kernels.check import FLOATING, CheckReport, check
from porter.kernels.compare import BY_TYPE, Tolerance
from porter.kernels.definition import check_kernel, check_texts
from porter.kernels.kernel import Kernel, MetalParameter
from porter.kernels.launch import find_last_source
from porter.kernels.operator import Vjp, operator, pack, recall, run_operator
from porter.kernels.references import Reference, result_outputs
from porter.kernels.repeated import Repetitions, describe, keep_repetition
from porter.kernels.validation import (
    check_choices,
    check_example,
    check_examples,
    check_functions,
    check_launch,
    checked_inputs,
    output_lengths,
    require_threads,
    sizes,
)

_THREADGROUP = (256, 1, 1)
_LAUNCH = {"threads_per_grid": None, "threads_per_thread_group": None, "result_shapes": None}.keys()


class TorchMetalKernel:
    """A Metal kernel from the text between its braces, with `torch_defn` computing the same.

    `metal_params` are arguments that Metal fills, under names of your own. `template_dtypes` pairs an input with a word
    of `src` that stands for its Metal type. Inputs and results are tensors: `A.get_extent(0)` is the length of the
    innermost dimension, and `A[column, row]` counts from it. `vjp` is that of `MetalKernel`.

    Raises PTR200-PTR204 and PTR284.
    """

    def __init__(
        self,
        name: str,
        input_names: Sequence[str],
        result_names: Sequence[str],
        src: str,
        torch_defn: Reference,
        metal_params: Sequence[MetalParameter] | None = None,
        helper_src: str | None = None,
        template_dtypes: Mapping[str, str] | None = None,
        vjp: Vjp | None = None,
    ) -> None:
        names = {"input_names": input_names, "result_names": result_names}
        check_texts(name, names, {"src": src, "helper_src": helper_src or ""})
        kernel = Kernel(
            name, tuple(input_names), tuple(result_names), src, helper_src or "", _parameters(metal_params),
            _placeholders(name, template_dtypes), tensors=True,
        )  # fmt: skip
        check_kernel(kernel)
        if torch_defn is None:
            raise PorterError(
                "PTR284", f"kernel `{name}` has no `torch_defn`", hint="Give it a torch function of its inputs."
            )
        check_functions(name, {"torch_defn": torch_defn, "vjp": vjp}, input_names)
        self._set(kernel, torch_defn, vjp)

    def _set(self, kernel: Kernel, torch_defn: Reference, vjp: Vjp | None) -> None:
        self._torch_defn = torch_defn
        self._operator = operator(kernel, torch_defn, vjp)
        self._repetitions: Repetitions = {}

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """What copies and pickles hold: not the operator, which they find again, nor what repeats calls."""
        return _restore, (self.kernel, self._torch_defn, self.vjp)

    @property
    def source(self) -> str:
        """The complete Metal source of the last call; "" before the first."""
        return find_last_source(self.kernel).text

    @property
    def kernel(self) -> Kernel:
        """The kernel as a value."""
        return self._operator.kernel

    @property
    def reference(self) -> Reference | None:
        """The torch function that computes the same."""
        return self._operator.reference

    @property
    def vjp(self) -> Vjp | None:
        """The gradient, if it has one."""
        return self._operator.vjp

    def check(
        self,
        inputs: Sequence[Value],
        launch: Callable[..., Mapping[str, Any]] | None = None,
        *,
        dtypes: Collection[torch.dtype] = FLOATING,
        fixed: Collection[int] = (),
        tolerance: Tolerance = BY_TYPE,
    ) -> CheckReport:
        """Compares the kernel with its torch definition over cases made from `inputs`, as `MetalKernel.check` does.

        `launch` gets the inputs and returns the other arguments of a call. What it leaves out is one thread for each
        element of the torch definition's first result, and the shapes of its results. Raises PTR205, PTR207, PTR284 and
        PTR285 for arguments of the wrong kind.
        """
        self._check_launch(launch)
        check_example(self.kernel, inputs)
        check_choices(self.kernel, dtypes, fixed, tolerance)
        self._launch_for(inputs, launch)
        return check(
            self.kernel.name, lambda *values: self._run(None, values, launch), self._torch_defn, inputs,
            dtypes=dtypes, fixed=fixed, tolerance=tolerance, gradients=self._operator.vjp is not None,
            outputs=self.kernel.outputs,
        )  # fmt: skip

    def benchmark(
        self,
        examples: Sequence[Sequence[Value]],
        launch: Callable[..., Mapping[str, Any]] | None = None,
        groups: Sequence[Sequence[int]] | None = None,
    ) -> BenchmarkReport:
        """Times the kernel against its torch definition for each of `examples`, inputs of several sizes.

        `launch` is that of `check`. Tries `groups` of threads; unless given, the usual ones if `launch` leaves
        threads_per_thread_group out, otherwise only what it says. Raises as `check` does, and PTR211 for a group.
        """
        self._check_launch(launch)
        check_examples(self.kernel, examples, groups)
        if groups is None:
            fixed = any("threads_per_thread_group" in self._launch_for(each, launch) for each in examples)
            groups = () if fixed else GROUPS
        run = partial(self._run, launch=launch)
        return benchmark(self.kernel.name, run, self._torch_defn, examples, groups or (None,))

    def call_for(self, inputs: Sequence[Value]) -> Call:
        """A call with these inputs, over a grid of one thread. Raises PTR205 and PTR207."""
        values = checked_inputs(self.kernel, inputs)
        outputs = result_outputs(self.kernel, self._torch_defn, values)
        return Call(values, outputs, (1, 1, 1), (1, 1, 1))

    def _check_launch(self, launch: object) -> None:
        check_functions(self.kernel.name, {"launch": launch}, self.kernel.inputs)

    def _launch_for(self, inputs: Sequence[Value], launch: Callable[..., object] | None) -> Mapping[str, Any]:
        """What `launch` gives for these inputs. Raises PTR258 for anything but arguments of a call."""
        return check_launch(self.kernel.name, launch(*inputs), _LAUNCH) if launch else {}

    def _run(
        self, group: Group, inputs: Sequence[Value], launch: Callable[..., object] | None
    ) -> torch.Tensor | list[torch.Tensor]:
        """A call with what `launch` gives and what it leaves out, in threadgroups of `group` if one is given."""
        arguments: dict[str, Any] = {**self._launch_for(inputs, launch)}
        if "threads_per_thread_group" not in arguments:
            arguments["threads_per_thread_group"] = choose_open(_THREADGROUP)
        if not all(name in arguments for name in _LAUNCH):
            outputs = result_outputs(self.kernel, self._torch_defn, tuple(inputs))
            arguments.setdefault("result_shapes", [each.shape for each in outputs])
            arguments.setdefault("threads_per_grid", (math.prod(outputs[0].shape), 1, 1))
        if group is not None:
            arguments["threads_per_thread_group"] = group
        return self(*inputs, **arguments)

    def __call__(
        self,
        *inputs: Value,
        threads_per_grid: Sequence[int] | None = None,
        threads_per_thread_group: Sequence[int] | None = None,
        result_shapes: Sequence[Sequence[int]] = (),
        verbose: bool = False,
    ) -> torch.Tensor | list[torch.Tensor]:
        """Runs the kernel; its result, or a list of several. Their types are those of `torch_defn`.

        Every call says the threads of the grid and of a group, and the shapes. Raises PTR205-PTR222 and PTR283.
        """
        kernel = self.kernel
        rest = (threads_per_grid, threads_per_thread_group, result_shapes)
        likeness = None if verbose else describe(inputs, rest, True)
        if likeness is not None and (known := self._repetitions.get(likeness)):
            results = known.run(inputs)
            return results[0] if len(results) == 1 else results
        require_threads(kernel, threads_per_grid=threads_per_grid, threads_per_thread_group=threads_per_thread_group)
        if (interceptor := find_interceptor()) is not None:
            taken = interceptor(kernel, {
                "inputs": inputs, "template": {}, "grid": threads_per_grid, "threadgroup": threads_per_thread_group,
                "output_shapes": result_shapes, "output_dtypes": None, "init_value": None,
            })  # fmt: skip
            return taken[0] if len(taken) == 1 else taken
        values = checked_inputs(kernel, inputs)
        _check_placeholders(kernel, values)
        arguments = pack(
            values,
            sizes(kernel, "threads_per_grid", threads_per_grid),
            sizes(kernel, "threads_per_thread_group", threads_per_thread_group),
            output_lengths(kernel, "result_shapes", result_shapes),
        )
        results = run_operator(self._operator, arguments, verbose)
        if likeness is not None and (ran := recall(self._operator, arguments)):
            keep_repetition(self._repetitions, likeness, kernel, inputs, *ran)
        return results[0] if len(results) == 1 else results


def _restore(kernel: Kernel, torch_defn: Reference, vjp: Vjp | None) -> TorchMetalKernel:
    """A kernel as one was when it was copied."""
    restored = TorchMetalKernel.__new__(TorchMetalKernel)
    restored._set(kernel, torch_defn, vjp)
    return restored


def _parameters(given: Any) -> tuple[MetalParameter, ...]:
    """The Metal parameters in a list; `check_kernel` refuses others in it. Raises PTR204 for what is no list."""
    if given is not None and not isinstance(given, (list, tuple)):
        raise PorterError(
            "PTR204", f"`metal_params` is {given!r}, not a list",
            hint='Give a list: [MetalParameter("id", "uint", "thread_position_in_grid")].',
        )  # fmt: skip
    return tuple(given or ())


def _placeholders(name: str, given: Any) -> tuple[tuple[str, str], ...]:
    """Pairs of an input and a word. Raises PTR201 for what is no mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise PorterError(
            "PTR201", f"`template_dtypes` of kernel `{name}` is {given!r}, not a mapping",
            hint='Give a mapping from an input to a word of `src`: {"x": "TYPE"}.',
        )  # fmt: skip
    return tuple((given or {}).items())


def _check_placeholders(kernel: Kernel, values: Sequence[Value]) -> None:
    """Raises PTR207 for a number where the kernel takes an element type from, and for two types that are one word."""
    types: dict[str, tuple[str, torch.dtype]] = {}
    for name, word in kernel.placeholders:
        value = values[kernel.inputs.index(name)]
        if not isinstance(value, torch.Tensor):
            raise PorterError(
                "PTR207", f"input `{name}` of kernel `{kernel.name}` is a number, and `{word}` stands for its type",
                hint="Pass a tensor.",
            )  # fmt: skip
        other, dtype = types.setdefault(word, (name, value.dtype))
        if dtype != value.dtype:
            raise PorterError(
                "PTR207", f"input `{name}` of kernel `{kernel.name}` is {value.dtype} and `{other}` is {dtype}, and "
                f"`{word}` stands for the types of both", hint="Pass tensors of one type, or use two words.",
            )  # fmt: skip
