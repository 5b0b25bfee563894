"""Made-up operators that compute of scalars alone: one sets all elements, one numbers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.dtypes import BFLOAT, FLOAT, HALF, INT, LONG, DType
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.expressions import Buffer, Expr, Loop, Op, call, cast, intern
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Apply, Arguments, Named, Scalar, SizeProduct, TensorValue
from porter.loops.program import Programs, ResultBuffer, SymbolicNest, SymbolicProgram
from tests.porter.plan.recorded import fork

ROWS = """
- func: set_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)
  dispatch:
    CPU: set_cpu_
    MPS: set_scalar_mps

- func: set_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)
  dispatch:
    CPU: set_cpu_
    MPS: set_tensor_mps

- func: numbered.out(Scalar start, Scalar step, int count, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: numbered_out_cpu
    MPS: numbered_out_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static Tensor& set_mps_impl(Tensor& self, const Scalar& value) {
  if (self.numel() == 0) {
    return self;
  }
  Tensor output = self;
  bool needs_copy = false;
  if (needsGather(self)) {
    output = at::empty(self.sizes(), self.options());
    needs_copy = true;
  }
  auto cachedGraph = LookUpOrCreateCachedGraph<MPSUnaryCachedGraph>(key, makeGraph);
  Placeholder outputPlaceholder = Placeholder(cachedGraph->outputTensor_, needs_copy ? output : self);
  runMPSGraph(getCurrentMPSStream(), cachedGraph->graph(), feeds, outputPlaceholder);
  if (needs_copy) {
    self.copy_(output);
  }
  return self;
}

Tensor& set_scalar_mps(Tensor& self, const Scalar& value) {
  if (isComplexType(self.scalar_type())) {
    auto real = at::real(self);
    auto imag = at::imag(self);
    set_mps_impl(real, value);
    set_mps_impl(imag, 0);
    return self;
  }
  return set_mps_impl(self, value);
}

Tensor& set_tensor_mps(Tensor& self, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "set_: value must have no dimensions");
  return set_scalar_mps(self, value.item());
}

Tensor& numbered_out_mps(const Scalar& start, const Scalar& step, int64_t count, Tensor& out) {
  AT_DISPATCH_MPS_TYPES(out.scalar_type(), "numbered_mps", [&]() {
    TORCH_CHECK(step.to<scalar_t>() != 0, "numbered: step must not be zero");
    int64_t numel = out.numel();
    if (numel != count) {
      out.resize_({count});
    }
    bool is_whole = !needsGather(out);
    Tensor r = is_whole ? out : at::empty_like(out, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
    auto stream = getCurrentMPSStream();
    @autoreleasepool {
      auto cachedGraph = cache->LookUpAs<MPSUnaryCachedGraph>(key);
      Placeholder outputPlaceholder = Placeholder(cachedGraph->outputTensor_, r);
      runMPSGraph(stream, cachedGraph->graph(), feeds, outputPlaceholder);
    }
    if (!is_whole) {
      out.copy_(r);
    }
  });
  return out;
}

} // namespace at::native
"""
OUTPUT = Buffer(1)
TYPES = (FLOAT, HALF, LONG, INT, BFLOAT)


def copy_fork(folder: Path) -> Checkout:
    """The embedded fork with the operators."""
    checkout = fork.copy_fork(folder)
    with (checkout.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(ROWS)
    (checkout.root / OPERATIONS / "Scalars.mm").write_text(HOST)
    return checkout


def set_all() -> Programs:
    """Every element of a tensor is a scalar."""
    value = Named("value", Scalar("value"), 2.0)
    return _program("set_.Scalar", "self", (value,), lambda _: _number(value))


def numbered() -> Programs:
    """Every element is a scalar, and another one times its index."""
    start, step = Named("start", Scalar("start"), 2.0), Named("step", Scalar("step"), 3.0)

    def value(index: Expr) -> Expr:
        turn = intern(Op.CAST, (intern(Op.INDEX_VALUE, (index,), INT),), FLOAT)
        return call("addition", (_number(start), call("multiplication", (turn, _number(step)), FLOAT)), FLOAT)

    return _program("numbered.out", "result0", (start, step), value)


def spread() -> Programs:
    """Numbers computed in float, whatever type they are stored as: a case of floating-point types, and one of others."""
    start = Named("start", Scalar("start"), 2.0)
    step = Named("step", Apply("-", (Scalar("end"), Scalar("start"))), 3.0)

    def value(index: Expr) -> Expr:
        turn = intern(Op.INDEX_VALUE, (index,), FLOAT)
        return call("addition", (_number(start), call("multiplication", (turn, _number(step)), FLOAT)), FLOAT)

    numbers = (start, step)
    floating = _program("spread.out", "result0", numbers, value, TYPES[:2])
    whole = _program("spread.out", "result0", numbers, lambda index: cast(value(index), LONG), (LONG, INT))
    return Programs("spread.out", (*floating.cases, *whole.cases))


def _number(number: Named) -> Expr:
    return intern(Op.NUMBER, (), FLOAT, number)


def _program(
    name: str, key: str, numbers: tuple[Named, ...], value: Callable[[Expr], Expr], types: Sequence[DType] = TYPES
) -> Programs:
    loop = Loop("i0", 6, Named("numel", SizeProduct(key), 6))
    index = fork.index(loop)
    store = Store(OUTPUT, types[0], 6, (loop,), index, value(index))
    calls = tuple(_call(dtype, key, numbers) for dtype in types)
    nest = SymbolicNest(LoopNest((store,), (loop,)), SizeProduct(key))
    roles = {OUTPUT: ResultBuffer(0)}
    return Programs(name, (SymbolicProgram(name, (), key, tuple(types), (nest,), roles, numbers, calls[0], calls),))


def _call(dtype: DType, key: str, numbers: tuple[Named, ...]) -> Arguments:
    tensors = dict.fromkeys((key, "result0"), TensorValue((6,), dtype))
    return Arguments(tensors, {each.name: each.example for each in numbers})
