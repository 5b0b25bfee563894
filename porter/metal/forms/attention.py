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
from porter.metal.codegen.elements import KEY
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.contraction import ARGUMENTS, COMPLEX, Contraction, Operands
from porter.metal.forms.form import (
    CEIL_DIV,
    HEADERS,
    RESULT,
    Form,
    FormCost,
    FormKernels,
    Site,
    count_bytes,
    write_kernel,
)

_WEIGHTS = "result1"
_EXPAND = "ATen/ExpandUtils.h"


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
        more = {"_direct": ((*ARGUMENTS[:-1], _PLACE), _DIRECT), "_softmax": (_ARGUMENTS, _SOFTMAX)}
        texts = (
            write_kernel(f"{name}{ending}", products.elements, arguments, body.splitlines(), style)
            for ending, (arguments, body) in more.items()
        )
        return replace(products, source="\n".join((products.source, *texts)), endings=(*products.endings, *more))

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        names = (self.query, self.key, self.value, self.mask, self.scale, self.causal)
        # An older fork's row has no such flag
        has_flag = self.grouped in site.names.types
        is_grouped = site.variable(self.grouped) if has_flag else "/*is_grouped=*/false"
        passed = ", ".join((f'"{kernels.name}"', *map(site.variable, names), is_grouped))
        launch = Line(f"return run_attention({passed});", helper="run_attention")
        return Launch((launch,), frozenset((*HEADERS, CEIL_DIV, COMPLEX, _EXPAND)))


# Products of few elements would leave most of a tile's threads none.
_PLACE = "uint3 tid [[thread_position_in_grid]]"
_DIRECT = f"""\
const index_t inner = sizes[2], batch = tid.z, row = tid.y, column = tid.x;
const device {KEY}* l = left + batch * index_t(strides[3]) + row * index_t(strides[4]);
const device {KEY}* r = right + batch * index_t(strides[6]) + column * index_t(strides[8]);
float sum = 0;
for (index_t k = 0; k < inner; k++) {{
  sum += l[k * index_t(strides[5])] * r[k * index_t(strides[7])];
}}
store_scaled(output, added, sum, batch, row, column, strides, scales, factors);
"""
# `sizes` are the keys, queries and heads, whether a query sees the keys up to its own place alone, and whether there is
# a mask.
_ARGUMENTS = (
    f"device {KEY}* weights", f"const device {KEY}* mask", "constant long* sizes", "constant long* strides",
    "uint2 tid [[thread_position_in_grid]]",
)  # fmt: skip
_SOFTMAX = f"""\
const index_t keys = sizes[0], queries = sizes[1], heads = sizes[2];
const index_t query = tid.y % queries, head = tid.y / queries % heads, batch = tid.y / queries / heads;
const index_t seen = sizes[3] ? query + 1 : keys;
const index_t first = batch * index_t(strides[0]) + head * index_t(strides[1]) + query * index_t(strides[2]);
device {KEY}* scores = weights + index_t(tid.y) * keys;
float greatest = -INFINITY;
bool is_hidden = true;
for (index_t i = tid.x; i < keys; i += 32) {{
  // Infinity less itself is no number, as on the CPU
  float score = i < seen ? scores[i] : scores[i] - INFINITY;
  if (sizes[4]) {{
    score += mask[first + i * index_t(strides[3])];
  }}
  scores[i] = score;
  greatest = max(greatest, score);
  is_hidden &= score == -INFINITY;
}}
greatest = simd_max(greatest);
float sum = 0;
for (index_t i = tid.x; i < keys; i += 32) {{
  sum += precise::exp(scores[i] - greatest);
}}
const float factor = 1 / simd_sum(sum);
// A query that sees no key has no weights
const bool has_weights = !simd_all(is_hidden);
for (index_t i = tid.x; i < keys; i += 32) {{
  scores[i] = has_weights ? precise::exp(scores[i] - greatest) * factor : 0;
}}
"""
