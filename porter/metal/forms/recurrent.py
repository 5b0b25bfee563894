"""Layers of long short-term memory, and their gradients.

The products of a layer's input with its weights are those of matrices, for all steps in one launch. A step is one more:
a simdgroup has the recurrent products of the four gates of a cell, and computes the cell and the state. Its gradient is
one too: eight simdgroups share the products of a row of gates' gradients. All is computed in floats; what goes into the
gates, and the cells, is kept for the gradients in the order that the graph had: by layers, steps and rows, with the
directions side by side.
Source: aten/src/ATen/native/RNN.cpp (`LSTMCell`, the order of gates and of parameters).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
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


def _write_kernels(name: str, style: KernelStyle) -> FormKernels:
    """One text serves the layers and their gradients."""
    products = Contraction(Operands.MATRICES, "input", "params").write_kernels(name, (FLOAT,), style)
    texts = (write_kernel(f"{name}_{each}", products.elements, *_KERNELS[each], style) for each in _KERNELS)
    endings = (*products.endings, *(f"_{each}" for each in _KERNELS))
    return replace(products, source="\n".join((products.source, *texts)), endings=endings)


def _write_launch(run: str, name: str, passed: Sequence[str], more: Collection[str] = ()) -> Launch:
    call = Line(f'return {run}("{name}", {", ".join(passed)});', helper=run)
    return Launch((call,), frozenset((*HEADERS, CEIL_DIV, COMPLEX, _IRANGE, *more)))


@dataclass(frozen=True)
class Recurrent(Form):
    """The outputs, last states and last cells of layers, and what their gradients are computed from."""

    TITLE: ClassVar[str] = "long short-term memory"
    ANY_RANK: ClassVar[bool] = True
    SHARED: ClassVar[bool] = True
    RETURNS: ClassVar[bool] = True

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

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [dtype for dtype in dtypes.ALL if dtype.kind is Kind.FLOATING]

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """The products of all layers' inputs, and all steps of all layers; each step reads the recurrent weights."""
        yield from _count_costs(call, 1)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        return _write_kernels(name, style)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        passed = list(map(site.variable, (self.input, self.starts, self.params, *self.flags)))
        return _write_launch("run_lstm", kernels.name, passed, (_DROPOUT, _STACK))


@dataclass(frozen=True)
class RecurrentGradients(Form):
    """The gradients of layers, of what a call gives of those of outputs, last states and last cells."""

    TITLE: ClassVar[str] = "gradients of long short-term memory"
    ANY_RANK: ClassVar[bool] = True
    SHARED: ClassVar[bool] = True
    RETURNS: ClassVar[bool] = True

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
        """The tensors besides lists, in the order of the host code."""
        return self.output, self.states, self.cells, self.gates, self.kept_cells, self.input, self.inputs

    def describe(self) -> Iterator[str]:
        yield f"state'[t] = {self.output}[t] + gates'[t + 1] x weights; of the last step, with {self.states}"
        yield "cell'[t] = staying[t + 1] * cell'[t + 1] + state'[t] * leaving * (1 - tanh(cell)^2)"
        yield f"of the last step, with {self.cells}; gates are {self.gates}, cells {self.kept_cells}"
        yield "gates'[t] = cell' * new, cell' * cell[t - 1], cell' * entering, state' * tanh(cell), by slopes of gates"
        yield f"results = of {self.input}, of {self.starts}, of each of {self.params}"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [dtype for dtype in dtypes.ALL if dtype.kind is Kind.FLOATING]

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """Twice the products of the layers: of their inputs and their weights."""
        yield from _count_costs(call, 2)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        return _write_kernels(name, style)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        names = (*self.operands, self.starts, self.params, *self.flags)
        return _write_launch("run_lstm_gradients", kernels.name, list(map(site.variable, names)))


def _count_costs(call: Arguments, times: int) -> Iterator[FormCost]:
    """The products of the parameters that are matrices, each with all rows of all steps."""
    shapes = {name: each.shape for name, each in call.tensors.items() if name.startswith("params[")}
    steps, rows, _ = call.tensors["input"].shape
    for name, shape in shapes.items():
        if len(shape) == 2:
            written = steps * rows * shape[0] * FLOAT.size
            turns = times * steps * rows * shape[0] * shape[1]
            yield FormCost(steps * rows, turns, {name: (count_bytes(call, name),) * times}, written)
