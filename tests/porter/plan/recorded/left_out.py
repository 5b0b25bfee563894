"""A made-up operator some of whose tensors may be left out: one it reads, one it writes, and a result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT, DType
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, ReductionKind, call, intern
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Arguments, Constant, Size, SizeProduct, TensorValue
from porter.loops.optional import allow_left_out
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicNest, SymbolicProgram
from porter.mpsgraph.conditions import Answered, read_question
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

NAME = "centered"
ROW = """
- func: centered(Tensor self, Tensor? weight, Tensor? total, bool training, bool[2] mask) -> (Tensor, Tensor)
  dispatch:
    CPU: centered_cpu
    MPS: centered_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

std::tuple<Tensor, Tensor> centered_mps(const Tensor& self,
                                        const std::optional<Tensor>& weight_opt,
                                        const std::optional<Tensor>& total_opt,
                                        bool training,
                                        std::array<bool, 2> mask) {
  const bool has_weight = (weight_opt.has_value() && weight_opt->defined());
  const bool has_total = (total_opt.has_value() && total_opt->defined());
  TORCH_CHECK(!has_weight || weight_opt->dim() == 1, "centered: weight must be a vector");
  TORCH_CHECK(training || has_total, "centered: without training, total must be given");
  string format_key;
  switch (self.suggest_memory_format()) {
    case at::MemoryFormat::Contiguous:
      format_key = "Contiguous";
      break;
    default:
      assert(0 && "checked before");
  }
  Tensor output = at::empty(self.sizes(), self.options(), MemoryFormat::Contiguous);
  Tensor sums;
  if (mask[1]) {
    sums = at::empty({self.size(0)}, self.options(), MemoryFormat::Contiguous);
  }
  @autoreleasepool {
    string key = "centered:" + format_key + ":" + getTensorsStringKey({self});
    auto cachedGraph = LookUpOrCreateCachedGraph<CenteredCachedGraph>(key, makeGraph);
    Placeholder selfPlaceholder = Placeholder(cachedGraph->inputTensor_, self);
    runMPSGraph(getCurrentMPSStream(), cachedGraph->graph(), feeds, output);
  }
  return std::make_tuple(output, sums);
}

} // namespace at::native
"""
WEIGHT, TOTAL, SUMS = Buffer(2), Buffer(3), Buffer(4)
SHAPES = {"self": (6, 7), "weight": (6,), "total": (6,), "result0": (6, 7), "result1": (6,)}
LEFT_OUT = ("weight", "total", "result1")


def copy_fork(folder: Path) -> Checkout:
    """The embedded fork with the operator."""
    checkout = fork.copy_fork(folder)
    with (checkout.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(ROW)
    (checkout.root / OPERATIONS / "Centered.mm").write_text(HOST)
    return checkout


def _load(buffer: Buffer, place: Expr) -> Expr:
    return intern(Op.LOAD, (place,), FLOAT, buffer)


def _call(dtype: DType, *left_out: str, training: bool = True) -> Arguments:
    tensors = {name: TensorValue(shape, dtype) for name, shape in SHAPES.items() if name not in left_out}
    return Arguments(tensors, {"training": training, "mask": (True, "result1" not in left_out)})


def whole() -> SymbolicProgram:
    """The program of calls that give everything: rows without their mean, times a weight; sums, which are added up."""
    width = fork.named("width", Size("self", Constant(-1)), 7)
    row, column, each = Loop("i0", 6), Loop("j0", 7, width), Loop("r1.0", 7, width)
    start = intern(Op.PRODUCT, (fork.index(row), fork.integer(width)))
    element = fork.read(intern(Op.SUM, (start, fork.index(each))))
    total = intern(Op.REDUCE, (element,), FLOAT, Reduction(ReductionKind.SUM, (each,)))
    mean = call("division", (total, intern(Op.NUMBER, (), FLOAT, width)), FLOAT)
    place = intern(Op.SUM, (start, fork.index(column)))
    value = call("subtraction", (fork.read(place), mean), FLOAT)
    value = call("multiplication", (value, _load(WEIGHT, fork.index(row))), FLOAT)
    added = call("addition", (_load(TOTAL, fork.index(row)), total), FLOAT)
    stores = (
        Store(fork.OUTPUT, FLOAT, 42, (row, column), place, value),
        Store(SUMS, FLOAT, 6, (row,), fork.index(row), total),
        Store(TOTAL, FLOAT, 6, (row,), fork.index(row), added),
    )
    roles: dict[Buffer, Role] = {
        fork.INPUT: ArgumentBuffer("self"), WEIGHT: ArgumentBuffer("weight"), TOTAL: ArgumentBuffer("total"),
        fork.OUTPUT: ResultBuffer(0), SUMS: ResultBuffer(1),
    }  # fmt: skip
    calls = tuple(_call(dtype) for dtype in fork.TYPES)
    nest = SymbolicNest(LoopNest(stores, (row,)), Size("self", Constant(0)))
    return SymbolicProgram(NAME, (), "self", fork.TYPES, (nest,), roles, (width,), calls[0], calls)


def centered() -> Programs:
    """The program of calls with and without each tensor."""
    made = allow_left_out(whole(), LEFT_OUT, {"weight": 1})
    calls = (*made.calls, *(_call(FLOAT, name) for name in LEFT_OUT))
    return Programs(
        NAME, (replace(made, when=(Answered(read_question("training"), True),), calls=calls), _evaluation())
    )


def _evaluation() -> SymbolicProgram:
    """The program of calls without training: less what was added up, times a weight."""
    width = fork.named("width", Size("self", Constant(-1)), 7)
    row, column = Loop("i0", 6), Loop("i1", 7, width)
    place = intern(Op.SUM, (intern(Op.PRODUCT, (fork.index(row), fork.integer(width))), fork.index(column)))
    value = call("subtraction", (fork.read(place), _load(TOTAL, fork.index(row))), FLOAT)
    value = call("multiplication", (value, _load(WEIGHT, fork.index(row))), FLOAT)
    store = Store(fork.OUTPUT, FLOAT, 42, (row, column), place, value)
    roles: dict[Buffer, Role] = {
        fork.INPUT: ArgumentBuffer("self"), WEIGHT: ArgumentBuffer("weight"), TOTAL: ArgumentBuffer("total"),
        fork.OUTPUT: ResultBuffer(0),
    }  # fmt: skip
    calls = tuple(_call(dtype, training=False) for dtype in fork.TYPES)
    nest = SymbolicNest(LoopNest((store,), (row, column)), SizeProduct("self"))
    when = (Answered(read_question("training"), False),)
    made = SymbolicProgram(NAME, when, "self", fork.TYPES, (nest,), roles, (width,), calls[0], calls)
    made = allow_left_out(made, ["weight"], {"weight": 1})
    return replace(made, calls=(*calls, _call(FLOAT, "weight", training=False)), required=("total",))


def summed() -> SymbolicProgram:
    """The program of calls whose second result alone is computed from the weight, which raise without it."""
    program = whole()
    [symbolic] = program.nests
    centered_, sums, total = symbolic.nest.stores
    unweighted = replace(centered_, value=centered_.value.args[0])
    row = sums.loops[0]
    weighted = replace(sums, value=call("multiplication", (sums.value, _load(WEIGHT, fork.index(row))), FLOAT))
    nest = replace(symbolic, nest=replace(symbolic.nest, stores=(unweighted, weighted, total)))
    made = allow_left_out(replace(program, nests=(nest,)), LEFT_OUT, {"weight": 1})
    left = ((), ("total",), ("result1",), ("weight", "result1"))
    return replace(made, calls=tuple(_call(FLOAT, *names) for names in left), required=("weight",))


def port(checkout: Checkout) -> ChangeSet:
    """The changes of its port."""
    plan = plan_operator(checkout, NAME, programs=lambda served: centered())
    assert plan.complete
    return plan.changes
