"""Cases that a scalar chooses: how host code asks for it, and what the launches of cases share."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.dtypes import BFLOAT, FLOAT, HALF
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.expressions import Op, ReductionKind, call, intern
from porter.loops.host_values import Arguments, Named, Scalar
from porter.loops.program import Programs, SymbolicProgram
from porter.metal.codegen.canonicalize import prepare
from porter.metal.codegen.cases import join_cases
from porter.metal.codegen.kernel import KernelStyle
from porter.mpsgraph.conditions import Answered, read_question
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

INFINITE, ZERO = Answered(read_question("p == inf"), True), Answered(read_question("p == 0.0"), True)
STYLE = KernelStyle(threadgroup_reductions=True, guards_bfloat=True)


def chosen(kind: ReductionKind, value: float, *when: Answered) -> tuple[SymbolicProgram, ...]:
    """The cases of a reduction, of calls with a scalar of some value."""
    cases = fork.largest(kind).cases
    return tuple(
        replace(
            case,
            when=(*when, *case.when),
            calls=tuple(with_scalar(each, value) for each in case.calls),
            example=with_scalar(case.example, value),
        )
        for case in cases
    )


def with_scalar(given: Arguments, value: float) -> Arguments:
    return replace(given, others={**given.others, "p": value})


def scaled(case: SymbolicProgram) -> SymbolicProgram:
    """A case whose results are a power by the scalar."""
    [symbolic] = case.nests
    [store] = symbolic.nest.stores
    power = intern(Op.NUMBER, (), FLOAT, Named("p", Scalar("p"), 2.5))
    stored = replace(store, value=call("power", (store.value, power), FLOAT))
    return replace(case, nests=(replace(symbolic, nest=replace(symbolic.nest, stores=(stored,))),))


def cases() -> tuple[SymbolicProgram, ...]:
    others = replace(INFINITE, holds=False)
    return (
        *map(scaled, chosen(ReductionKind.SUM, 2.5, others)),
        *chosen(ReductionKind.MAX_NAN, float("inf"), INFINITE),
        *chosen(ReductionKind.MIN_NAN, 0.0, ZERO),
    )


def host_lines(folder: Path, local: str) -> str:
    """What a port adds to the host code of a function that takes a scalar, with a variable of its own for it."""
    checkout = fork.copy_fork(folder)
    table, host = checkout.root / NATIVE_FUNCTIONS, checkout.root / OPERATIONS / "Turns.mm"
    table.write_text(table.read_text().replace("largest.out(Tensor self,", "largest.out(Tensor self, Scalar? p,"))
    text = host.read_text().replace("(const Tensor& self, OptionalInt", "(const Tensor& self, const S& p, OptionalInt")
    host.write_text(text.replace('"largest: no elements");\n', f'"largest: no elements");\n{local}', 1))
    made = plan_operator(checkout, "largest", programs=lambda served: Programs("largest.out", cases()))
    assert made.complete
    lines = made.changes.diff().partition(f"+++ b/{OPERATIONS}")[2].splitlines()
    added = (line[1:] for line in lines if line[:1] == "+")
    return "\n".join(added).partition("return out;\n  }\n")[2]


def test_launches_share_what_they_begin_and_end_with(tmp_path: Path) -> None:
    local = '  auto power = p.has_value() ? p->to<double>() : 2.0;\n  TORCH_CHECK(power == power, "largest: NaN");\n'
    assert_expected_inline(
        host_lines(tmp_path, local),
        """\

  const auto out_contiguous = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  const auto mask = make_dim_mask(dim, self.dim());
  const auto kept = merge_dims(self, ~mask);
  const auto reduced = merge_dims(self, mask);
  const std::array<uint32_t, 2> ndim = {static_cast<uint32_t>(kept.sizes.size()),
                                        static_cast<uint32_t>(reduced.sizes.size())};
  const int64_t reduced_size = c10::multiply_integers(reduced.sizes);
  const auto threads = share_rows(
      out.numel(), reduced_size, /*are_adjacent=*/kept.sizes[0] >= 32 && kept.strides[0] < reduced.strides[0]);
  const auto partials = threads.slices > 1
      ? at::empty({out.numel(), threads.slices}, out_contiguous.options().dtype(kFloat))
      : out_contiguous;
  MPSStream* stream = getCurrentMPSStream();
  const std::string index_type =
      canUse32BitIndexMath(out, kLargestRowIndex) && canUse32BitIndexMath(self, kLargestRowIndex) ? "int" : "long";
  const auto count = index_type == "int" ? count_neighbors(self, kept, reduced) : 0;
  if (power == std::numeric_limits<double>::infinity() || power == 0.0) {
    const std::string kernel = power == std::numeric_limits<double>::infinity() ? "largest_inf" : "largest_zero";
    dispatch_sync_with_rethrow(stream->queue(), ^() {
      @autoreleasepool {
        auto computeEncoder = stream->commandEncoder();
        auto PSO = lib.getPipelineStateForFunc(kernel + "_" + scalarToMetalTypeString(self) + "_" + index_type + "_" +
                                               std::to_string(count));
        // this function call is a no-op if MPS Profiler is not enabled
        getMPSProfiler().beginProfileKernel(PSO, kernel, {self}, stream);
        [computeEncoder setComputePipelineState:PSO];
        mtl_setArgs(computeEncoder,
                    out_contiguous,
                    partials,
                    self,
                    kept.sizes,
                    kept.strides,
                    reduced.sizes,
                    reduced.strides,
                    ndim,
                    reduced_size,
                    threads.slices);
        dispatch_rows(computeEncoder, PSO, out.numel(), threads);
        getMPSProfiler().endProfileKernel(PSO, stream);
        if (threads.slices > 1) {
          auto combinePSO = lib.getPipelineStateForFunc(kernel + "_combine_" + scalarToMetalTypeString(self));
          getMPSProfiler().beginProfileKernel(combinePSO, kernel + "_combine", {partials}, stream);
          [computeEncoder setComputePipelineState:combinePSO];
          mtl_setArgs(computeEncoder, out_contiguous, partials, threads.slices);
          [computeEncoder dispatchThreadgroups:MTLSizeMake(out.numel(), 1, 1)
                         threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
          getMPSProfiler().endProfileKernel(combinePSO, stream);
        }
      }
    });
  } else {
    const float p_value = power;
    dispatch_sync_with_rethrow(stream->queue(), ^() {
      @autoreleasepool {
        auto computeEncoder = stream->commandEncoder();
        auto PSO = lib.getPipelineStateForFunc("largest_" + scalarToMetalTypeString(self) + "_" + index_type + "_" +
                                               std::to_string(count));
        // this function call is a no-op if MPS Profiler is not enabled
        getMPSProfiler().beginProfileKernel(PSO, "largest", {self}, stream);
        [computeEncoder setComputePipelineState:PSO];
        mtl_setArgs(computeEncoder,
                    out_contiguous,
                    partials,
                    self,
                    kept.sizes,
                    kept.strides,
                    reduced.sizes,
                    reduced.strides,
                    ndim,
                    reduced_size,
                    p_value,
                    threads.slices);
        dispatch_rows(computeEncoder, PSO, out.numel(), threads);
        getMPSProfiler().endProfileKernel(PSO, stream);
        if (threads.slices > 1) {
          auto combinePSO = lib.getPipelineStateForFunc("largest_combine_" + scalarToMetalTypeString(self));
          getMPSProfiler().beginProfileKernel(combinePSO, "largest_combine", {partials}, stream);
          [computeEncoder setComputePipelineState:combinePSO];
          mtl_setArgs(computeEncoder, out_contiguous, partials, p_value, threads.slices);
          [computeEncoder dispatchThreadgroups:MTLSizeMake(out.numel(), 1, 1)
                         threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
          getMPSProfiler().endProfileKernel(combinePSO, stream);
        }
      }
    });
  }
  if (!out_contiguous.is_same(out)) {
    out.copy_(out_contiguous);
  }
""",
    )


def test_a_scalar_that_is_left_out_is_no_number(tmp_path: Path) -> None:
    made = host_lines(tmp_path, "")
    zero = "(p.has_value() && p->to<double>() == 0.0)"
    infinite = "(p.has_value() && p->to<double>() == std::numeric_limits<double>::infinity())"
    tests = re.findall(r"\(p\.has_value\(\) && [^&|?]*\)(?= \|\||\) \{)", " ".join(made.split()))
    assert set(tests) == {zero, infinite}


def test_a_case_of_few_types_has_those_of_the_others() -> None:
    zero = chosen(ReductionKind.MIN_NAN, 0.0, ZERO)
    few = tuple(replace(each, dtypes=(FLOAT,), calls=each.calls[:1]) for each in zero)
    made = join_cases(prepare(Programs("largest.out", (*cases()[:2], *few))).cases, STYLE)
    assert [each.dtypes for each in made] == [(FLOAT, HALF, BFLOAT)] * 2
    assert {call.tensors["self"].dtype for call in made[0].calls} == {FLOAT, HALF, BFLOAT}


@pytest.mark.parametrize("value", [2.5, 0.0])
def test_cases_that_nothing_separates_stay_apart(value: float) -> None:
    one, other = chosen(ReductionKind.SUM, value), chosen(ReductionKind.MIN_NAN, 0.0, ZERO)
    made = join_cases(prepare(Programs("largest.out", (*one, *other))).cases, STYLE)
    assert len(made) == (2 if value else 4)


def test_cases_of_other_conditions_are_separated_by_what_all_their_calls_have() -> None:
    """The types of one case were separated by p, those of the other by chance."""
    float_, half = chosen(ReductionKind.MAX_NAN, float("inf"), INFINITE)
    half = replace(half, when=(Answered(read_question("keepdim"), False),), dtypes=(HALF, BFLOAT))
    made = join_cases(
        prepare(Programs("largest.out", (*map(scaled, chosen(ReductionKind.SUM, 2.5)), float_, half))).cases, STYLE
    )
    assert [each.when for each in made] == [(INFINITE,), ()]
    assert [each.dtypes for each in made] == [(FLOAT, HALF, BFLOAT)] * 2
