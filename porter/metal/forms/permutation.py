"""Results that are the numbers below their size, in random order.

Each number gets a random word of 64 bits, and is written where its word comes in the order of all: so seldom are two
words alike that every order is as probable. Words are those of the fork's Philox, at the generator's offset.
Source: aten/src/ATen/native/TensorFactories.cpp (which types are filled).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from porter.core import dtypes
from porter.core.dtypes import LONG, DType, Kind
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import (
    CEIL_DIV,
    GENERATOR,
    HEADERS,
    RESULT,
    Form,
    FormKernels,
    Site,
    list_elements,
    read_kernels,
    write_kernel,
    write_plain,
)
from porter.metal.forms.sort import HELPERS, write_stages

_KERNELS = read_kernels("permutation")


@dataclass(frozen=True)
class Permutation(Form):
    """The numbers from 0 on, as many as the result has elements, in an order by random words of `generator`."""

    TITLE: ClassVar[str] = "random order"
    ANY_RANK: ClassVar[bool] = True

    generator: str
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield "result = where the smallest of the words u is, the next, and so on"
        yield f"for a random word u of {self.generator} for each element"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [dtype for dtype in dtypes.ALL if dtype.kind in (Kind.FLOATING, Kind.INTEGRAL)]

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(RESULT, instances)
        texts = (
            write_plain(f"{name}_draw", *_KERNELS["draw"]),
            *write_stages(name, list_elements(self.generator, (LONG,)), style),
            write_kernel(name, elements, *_KERNELS["places"], style),
        )
        endings = ("_blocks", "_merge", "")
        return FormKernels(name, "\n".join(texts), elements, helpers=(HELPERS,), endings=endings, plain=("_draw",))

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        passed = ", ".join(map(site.variable, (RESULT, self.generator)))
        launch = Line(f'draw_permutation("{kernels.name}", {passed});', helper="draw_permutation")
        return Launch((launch,), frozenset((*HEADERS, CEIL_DIV, GENERATOR)))
