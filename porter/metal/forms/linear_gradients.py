"""The gradients of a linear layer: of its input, and of its weights with its bias, which a function makes together.

Each is a product of rows of any dimensions, by the kernels of products; a bias has the sums of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from porter.core.dtypes import DType
from porter.loops.host_values import Arguments
from porter.metal.codegen.host_code import Block, Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.contraction import Contraction, Operands
from porter.metal.forms.form import RESULT, Form, FormCost, FormKernels, Site

_BIAS = "result1"  # of the function of weights


@dataclass(frozen=True)
class LinearGradients(Form):
    """What the gradient of an output gives; of a part, one of both functions."""

    TITLE: ClassVar[str] = "gradients of a linear layer"
    ANY_RANK: ClassVar[bool] = True
    SHARED: ClassVar[bool] = True
    BY_RESULT: ClassVar[bool] = True

    input: str
    weight: str
    output: str
    of_input: bool = True
    of_weight: bool = True
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield f"result0[n, i] = sum over o of {self.output}[n, o] * {self.weight}[o, i]"
        yield f"result1[o, i] = sum over n of {self.output}[n, o] * {self.input}[n, i]"
        yield f"result2[o] = sum over n of {self.output}[n, o]"
        yield "of rows n of any dimensions"

    def list_parts(self) -> Iterator[Self]:
        yield replace(self, of_weight=False)
        yield replace(self, of_input=False)

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return self._product.list_types(read_atomic, refuses_complex)

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        for place, part in enumerate(self.list_parts()):
            if result := call.tensors.get(f"result{place}"):
                yield from part._product.count_costs(replace(call, tensors={**call.tensors, RESULT: result}))

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        return self._product.write_kernels(name, instances, style)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        launch = self._product.write_launch(kernels, site)
        if self.of_input:
            return launch
        output = site.variable(self.output)
        rows = f"{output}.reshape({{-1, {output}.size(-1)}})"
        bias = Line(f"{site.variable(_BIAS)}.copy_({rows}.sum(0));")
        # Without features of the input, a bias has gradients alone.
        product = Block(f"if ({site.variable(RESULT)}.numel() > 0) {{", launch.nodes)
        return replace(launch, nodes=(bias, product))

    @property
    def _product(self) -> Contraction:
        if self.of_input:
            return Contraction(Operands.ROWS, self.output, self.weight)
        return Contraction(Operands.FLAT, self.output, self.input, is_left_transposed=True)
