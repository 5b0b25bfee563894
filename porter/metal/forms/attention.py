"""Attention: the weights that a query gives keys, which sum to one, and the sums of their values.

Both products are those of matrices, by their kernels or of few elements directly. A simdgroup makes weights of a row of
scores in their place, with the mask as what is added. All are floats. Where a query sees no key, all weights are zeros,
as the CPU's are.
Source: ATen/native/transformers/attention.cpp (`_scaled_dot_product_attention_math`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from porter.core import dtypes
from porter.core.dtypes import FLOAT, DType, Kind
from porter.loops.host_values import Arguments
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.contraction import COMPLEX, Contraction, Operands
from porter.metal.forms.form import (
    CEIL_DIV,
    HEADERS,
    RESULT,
    Form,
    FormCost,
    FormKernels,
    Site,
    count_bytes,
    read_kernels,
    write_kernel,
)

_WEIGHTS = "result1"
_EXPAND = "ATen/ExpandUtils.h"
_KERNELS = read_kernels("attention")


@dataclass(frozen=True)
class Attention(Form):
    """What queries, keys and values give, and the weights; a call may leave out the mask, and the scale.

    Where the flag `grouped` is set, several heads of queries share one of keys or values.
    """

    TITLE: ClassVar[str] = "attention"
    ANY_RANK: ClassVar[bool] = True
    RETURNS: ClassVar[bool] = True

    query: str
    key: str
    value: str
    mask: str
    causal: str
    scale: str
    grouped: str = ""
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield f"scores[i, j] = {self.scale} * (sum over e of {self.query}[i, e] * {self.key}[j, e]) + {self.mask}[i, j]"
        yield f"result1[i, j] = softmax over j of scores[i, j], of j up to i where {self.causal}"
        yield f"result0[i, e] = sum over j of result1[i, j] * {self.value}[j, e]"
        yield "of the last two dimensions"
        if self.grouped:
            yield f"with as many heads of {self.query} for each of {self.key} and {self.value} where {self.grouped}"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [dtype for dtype in dtypes.ALL if dtype.kind is Kind.FLOATING]

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """As `run_attention` does it, of floats."""
        weights = call.tensors[_WEIGHTS]
        scores = Contraction(Operands.BATCHES, self.query, self.key)
        yield from scores.count_costs(replace(call, tensors={**call.tensors, RESULT: weights}))
        size = count_bytes(call, _WEIGHTS)
        masks = {self.mask: (count_bytes(call, self.mask),)} if self.mask in call.tensors else {}
        yield FormCost(prod(weights.shape[:-1]), prod(weights.shape), {_WEIGHTS: (size,) * 3, **masks}, size)
        yield from Contraction(Operands.BATCHES, _WEIGHTS, self.value).count_costs(call)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        products = Contraction(Operands.BATCHES, self.query, self.key).write_kernels(name, (FLOAT,), style)
        texts = (write_kernel(f"{name}_{each}", products.elements, *_KERNELS[each], style) for each in _KERNELS)
        endings = (*products.endings, *(f"_{each}" for each in _KERNELS))
        return replace(products, source="\n".join((products.source, *texts)), endings=endings)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        names = (self.query, self.key, self.value, self.mask, self.scale, self.causal)
        # An older fork's row has no such flag
        has_flag = self.grouped in site.names.types
        is_grouped = site.variable(self.grouped) if has_flag else "/*is_grouped=*/false"
        passed = ", ".join((f'"{kernels.name}"', *map(site.variable, names), is_grouped))
        launch = Line(f"return run_attention({passed});", helper="run_attention")
        return Launch((launch,), frozenset((*HEADERS, CEIL_DIV, COMPLEX, _EXPAND)))
