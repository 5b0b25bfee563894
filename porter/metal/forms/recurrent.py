"""Layers of long short-term memory, and their gradients.

The products of a layer's input with its weights are those of matrices, for all steps in one launch. A step is one more:
a simdgroup has the recurrent products of the four gates of a cell, and computes the cell and the state. Its gradient is
one too: eight simdgroups share the products of a row of gates' gradients. All is computed in floats; what goes into the
gates, and the cells, is kept for the gradients in the order that the graph had: by layers, steps and rows, with the
directions side by side.
Source: aten/src/ATen/native/RNN.cpp (`LSTMCell`, the order of gates and of parameters).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from porter.core.dtypes import FLOAT, DType
from porter.loops.host_values import Arguments
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.contraction import COMPLEX, Contraction, Operands
from porter.metal.forms.form import (
    CEIL_DIV,
    HEADERS,
    Form,
    FormCost,
    FormKernels,
    Site,
    count_bytes,
    read_kernels,
    write_kernel,
)

_IRANGE, _DROPOUT, _STACK = "c10/util/irange.h", "ATen/ops/dropout.h", "ATen/ops/stack.h"
_KERNELS = read_kernels("recurrent", ADDENDS=256)
GATES = 4
FLAGS = ("has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")


@dataclass(frozen=True)
class _Layers(Form):
    """What layers and their gradients have in common: one text of kernels, and a launch that returns what it makes."""

    ANY_RANK: ClassVar[bool] = True
    SHARED: ClassVar[bool] = True
    RETURNS: ClassVar[bool] = True
    RUN: ClassVar[str]  # the helper of host code
    PRODUCTS: ClassVar[int]  # with each matrix of weights, of all rows and steps
    INCLUDED: ClassVar[tuple[str, ...]] = ()

    @property
    def operands(self) -> tuple[str, ...]:
        """The arguments of the helper in its order."""
        raise NotImplementedError

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """The products of the parameters that are matrices, each with all rows of all steps."""
        shapes = {name: each.shape for name, each in call.tensors.items() if name.startswith("params[")}
        steps, rows, _ = call.tensors["input"].shape
        for name, shape in shapes.items():
            if len(shape) == 2:
                written = steps * rows * shape[0] * FLOAT.size
                turns = self.PRODUCTS * steps * rows * shape[0] * shape[1]
                yield FormCost(steps * rows, turns, {name: (count_bytes(call, name),) * self.PRODUCTS}, written)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        products = Contraction(Operands.MATRICES, "input", "params").write_kernels(name, (FLOAT,), style)
        texts = (write_kernel(f"{name}_{each}", products.elements, *_KERNELS[each], style) for each in _KERNELS)
        endings = (*products.endings, *(f"_{each}" for each in _KERNELS))
        return replace(products, source="\n".join((products.source, *texts)), endings=endings)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        passed = ", ".join(map(site.variable, self.operands))
        call = Line(f'return {self.RUN}("{kernels.name}", {passed});', helper=self.RUN)
        return Launch((call,), frozenset((*HEADERS, CEIL_DIV, COMPLEX, _IRANGE, *self.INCLUDED)))


@dataclass(frozen=True)
class Recurrent(_Layers):
    """The outputs, last states and last cells of layers, and what their gradients are computed from."""

    TITLE: ClassVar[str] = "long short-term memory"
    RUN: ClassVar[str] = "run_lstm"
    PRODUCTS: ClassVar[int] = 1
    INCLUDED: ClassVar[tuple[str, ...]] = (_DROPOUT, _STACK)

    input: str = "input"
    starts: str = "hx"
    params: str = "params"
    flags: tuple[str, ...] = FLAGS
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        weights = (f"{self.params}[{each}]" for each in range(GATES))
        from_input, from_state, bias, recurrent_bias = weights
        yield f"gates[t] = {self.input}[t] x {from_input} + state[t - 1] x {from_state} + {bias} + {recurrent_bias}"
        yield "entering, staying, new, leaving = sigmoid, sigmoid, tanh, sigmoid of gates[t]"
        yield "cell[t] = staying * cell[t - 1] + entering * new"
        yield "state[t] = leaving * tanh(cell[t])"
        yield f"from {self.starts}, in each layer and direction"
        yield "results = states, last states, last cells; gates, cells, and inputs of all layers but the first"

    @property
    def operands(self) -> tuple[str, ...]:
        return self.input, self.starts, self.params, *self.flags


@dataclass(frozen=True)
class RecurrentGradients(_Layers):
    """The gradients of layers, of what a call gives of those of outputs, last states and last cells."""

    TITLE: ClassVar[str] = "gradients of long short-term memory"
    RUN: ClassVar[str] = "run_lstm_gradients"
    PRODUCTS: ClassVar[int] = 2

    output: str = "grad_y"
    states: str = "grad_hy"
    cells: str = "grad_cy"
    gates: str = "z_state"
    kept_cells: str = "cell_state_fwd"
    input: str = "input"
    inputs: str = "layersOutputs"
    starts: str = "hx"
    params: str = "params"
    flags: tuple[str, ...] = FLAGS
    dtypes: tuple[DType, ...] = ()

    @property
    def operands(self) -> tuple[str, ...]:
        tensors = (self.output, self.states, self.cells, self.gates, self.kept_cells, self.input, self.inputs)
        return *tensors, self.starts, self.params, *self.flags

    def describe(self) -> Iterator[str]:
        yield f"state'[t] = {self.output}[t] + gates'[t + 1] x weights; of the last step, with {self.states}"
        yield "cell'[t] = staying[t + 1] * cell'[t + 1] + state'[t] * leaving * (1 - tanh(cell)^2)"
        yield f"of the last step, with {self.cells}; gates are {self.gates}, cells {self.kept_cells}"
        yield "gates'[t] = cell' * new, cell' * cell[t - 1], cell' * entering, state' * tanh(cell), by slopes of gates"
        yield f"results = of {self.input}, of {self.starts}, of each of {self.params}"
