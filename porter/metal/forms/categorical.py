"""Results that are categories, drawn with replacement by the weights of a row.

A threadgroup adds up a row of weights, so that sums never get less from one to the next; a thread finds the category of
a uniform random number among them. Words are those of the fork's Philox, at the generator's offset.
Source: aten/src/ATen/native/cpu/MultinomialKernel.cpp (which categories are drawn).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from porter.core.dtypes import FLOAT, DType
from porter.loops.host_values import Arguments
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import (
    GENERATOR,
    HEADERS,
    RESULT,
    Form,
    FormCost,
    FormKernels,
    Site,
    count_bytes,
    list_elements,
    read_kernels,
    write_kernel,
    write_plain,
)

_KERNELS = read_kernels("categorical", MOST_THREADS=256)


@dataclass(frozen=True)
class Categorical(Form):
    """Places along the last dimension of `weights`, each as probable as its weight has a share of their sum."""

    TITLE: ClassVar[str] = "draws by weights"
    ANY_RANK: ClassVar[bool] = True

    weights: str
    generator: str
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield f"result[n, s] = the first i with sum over j <= i of {self.weights}[n, j] > u * sum over j of all"
        yield f"for a uniform random number u of {self.generator}, another one for each element"

    def list_counted(self) -> tuple[str, ...]:
        return (self.weights,)

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """A search reads as many sums as halves of the row have."""
        weights, drawn = call.tensors[self.weights].shape, prod(call.tensors[RESULT].shape)
        sums = prod(weights) * FLOAT.size
        yield FormCost(prod(weights[:-1]), prod(weights), {self.weights: (count_bytes(call, self.weights),)}, sums)
        turns = drawn * weights[-1].bit_length()
        yield FormCost(drawn, 0, {"sums": (turns * FLOAT.size,)}, count_bytes(call, RESULT))

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(self.weights, instances)
        texts = (
            write_kernel(f"{name}_sums", elements, *_KERNELS["sums"], style),
            write_plain(f"{name}_draw", *_KERNELS["draw"]),
        )
        return FormKernels(name, "\n".join(texts), elements, endings=("_sums",), plain=("_draw",))

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        passed = ", ".join(map(site.variable, (RESULT, self.weights, self.generator)))
        launch = Line(f'draw_categories("{kernels.name}", {passed});', helper="draw_categories")
        return Launch((launch,), frozenset((*HEADERS, GENERATOR)))
