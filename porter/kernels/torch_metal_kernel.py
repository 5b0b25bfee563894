"""`TorchMetalKernel`: a kernel with a torch definition, called as Core AI's is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch

from porter.core.errors import PorterError
from porter.kernels.benchmark import GROUPS, BenchmarkReport, Group, benchmark
from porter.kernels.call import Call, Value
from porter.kernels.cases import FLOATING
from porter.kernels.check import CheckReport, check
from porter.kernels.compare import BY_TYPE, Tolerance
from porter.kernels.definition import check_kernel, check_texts
from porter.kernels.intercept import find_interceptor
from porter.kernels.kernel import Kernel, MetalParameter
from porter.kernels.operator import Vjp, last_source, operator, pack, run_operator
from porter.kernels.references import Reference, result_outputs
from porter.kernels.validation import checked_inputs, output_lengths, sizes


class TorchMetalKernel:
    """A Metal kernel from the text between its braces, with `torch_defn` computing the same.

    `metal_params` are arguments that Metal fills, under names of your own. `template_dtypes` pairs an input with a word
    of `src` that stands for its Metal type. Inputs and results are tensors: `A.get_extent(0)` is the length of the
    innermost dimension, and `A[column, row]` counts from it. `vjp` is that of `MetalKernel`.

    Raises PTR200-PTR204.
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
            name, tuple(input_names), tuple(result_names), src, helper_src or "", tuple(metal_params or ()),
            tuple((template_dtypes or {}).items()), tensors=True,
        )  # fmt: skip
        check_kernel(kernel)
        self._torch_defn = torch_defn
        self._operator = operator(kernel, torch_defn, vjp)

    @property
    def source(self) -> str:
        """The complete Metal source of the last call; "" before the first."""
        return last_source(self.kernel)

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
        launch: Callable[..., Mapping[str, Any]],
        *,
        dtypes: Collection[torch.dtype] = FLOATING,
        fixed: Collection[int] = (),
        tolerance: Tolerance = BY_TYPE,
    ) -> CheckReport:
        """Compares the kernel with its torch definition over cases made from `inputs`, as `MetalKernel.check` does.

        `launch` gets the inputs and returns the other arguments of a call.
        """
        return check(
            self.kernel.name, lambda *values: self(*values, **launch(*values)), self._torch_defn, inputs,
            dtypes=dtypes, fixed=fixed, tolerance=tolerance, gradients=self._operator.vjp is not None,
            outputs=self.kernel.outputs,
        )  # fmt: skip

    def benchmark(
        self,
        examples: Sequence[Sequence[Value]],
        launch: Callable[..., Mapping[str, Any]],
        groups: Sequence[Sequence[int]] | None = None,
    ) -> BenchmarkReport:
        """Times the kernel against its torch definition for each of `examples`, inputs of several sizes.

        `launch` is that of `check`. Tries `groups` of threads; unless given, the usual ones if `launch` leaves
        threads_per_thread_group out, otherwise only what it says.
        """

        def run(group: Group, inputs: Sequence[Value]) -> object:
            chosen = {} if group is None else {"threads_per_thread_group": group}
            return self(*inputs, **{**launch(*inputs), **chosen})

        if groups is None:
            fixed = any("threads_per_thread_group" in launch(*each) for each in examples)
            groups = () if fixed else GROUPS
        return benchmark(self.kernel.name, run, self._torch_defn, examples, groups or (None,))

    def call_for(self, inputs: Sequence[Value]) -> Call:
        """A call with these inputs, over a grid of one thread."""
        outputs = result_outputs(self.kernel, self._torch_defn, tuple(inputs))
        return Call(tuple(inputs), outputs, (1, 1, 1), (1, 1, 1))

    def __call__(
        self,
        *inputs: Value,
        threads_per_grid: Sequence[int],
        threads_per_thread_group: Sequence[int],
        result_shapes: Sequence[Sequence[int]],
        verbose: bool = False,
    ) -> torch.Tensor | list[torch.Tensor]:
        """Runs the kernel; its result, or a list of several. Their types are those of `torch_defn`.

        Raises PTR205-PTR222.
        """
        kernel = self.kernel
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
        return results[0] if len(results) == 1 else results


def _check_placeholders(kernel: Kernel, values: Sequence[Value]) -> None:
    """Raises PTR207 for a number where the kernel takes its element type from a tensor."""
    for name, word in kernel.placeholders:
        if not isinstance(values[kernel.inputs.index(name)], torch.Tensor):
            raise PorterError(
                "PTR207", f"input `{name}` of kernel `{kernel.name}` is a number, and `{word}` stands for its type",
                hint="Pass a tensor.",
            )  # fmt: skip
