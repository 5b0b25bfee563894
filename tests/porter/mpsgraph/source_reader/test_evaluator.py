"""The evaluator on every idiom of the embedded fork, as text and against torch."""

from collections.abc import Callable

import pytest
import torch
from expecttest import assert_expected_inline

from aten_overlay.apple.mpsgraph import semantics
from porter.aten.implementations import find_implementation
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import find_served
from porter.core import dtypes
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, graph_lines
from porter.mpsgraph.operations import by_op
from porter.mpsgraph.source_reader.read_graph import read_graph


def embedded() -> Checkout:
    return Checkout(EMBEDDED_FORK, "test")


def graph_of(row: str, promotes: bool = False, fork: Checkout | None = None):  # type: ignore[no-untyped-def]
    fork = fork or embedded()
    entry = NativeFunctions.read(fork).by_name[row]
    line = entry.entry_for("MPS")
    assert line is not None
    whole = (dtypes.Kind.INTEGRAL, dtypes.Kind.BOOL)
    out = (lambda d: dtypes.FLOAT if d.kind in whole else d) if promotes else (lambda d: d)
    return read_graph(fork, find_implementation(fork, line.kernel), entry, out)


def shown(row: str, promotes: bool = False) -> str:
    return "\n".join(graph_lines(graph_of(row, promotes)))


def test_a_dtype_that_a_check_refuses() -> None:
    assert_expected_inline(
        shown("atan2.out", promotes=True),
        """\
float, half, bfloat, float2, half2: atan2(self, other)
int, short, uchar, char, bool: atan2(float(self), float(other))
long: refused at aten/src/ATen/native/mps/operations/BinaryOps.mm:175: MPS does not support atan2 op with int64 input""",
    )


def test_every_graph_of_the_embedded_fork_is_read() -> None:
    """What only damaged code can lead to, a value that does not fit its use, would hide a mistake of the evaluator."""
    served = [found for each in NativeFunctions.read(embedded()).all if (found := find_served(embedded(), each))]
    rows = [each.function.name for each in served if each.builds_graph and each.entry.keys == ("MPS",)]
    assert len(rows) > 15
    for row in rows:
        assert graph_of(row).cases


def test_a_helper_that_branches_on_a_string() -> None:
    assert_expected_inline(
        shown("fmod.Tensor_out"),
        """\
float, half, bfloat, float2, half2: subtraction(self, multiplication(truncate(division(self, other)), other))
long, int, short, uchar, char, bool: T(subtraction(float(self), multiplication(truncate(division(float(self), float(other))), float(other))))""",
    )


def test_an_optional_scalar_forks() -> None:
    assert_expected_inline(
        shown("logit.out", promotes=True),
        """\
float, half, bfloat, float2, half2 if eps.has_value(): logarithm(division(clamp(self, eps, subtraction(1.0, eps)), subtraction(1.0, clamp(self, eps, subtraction(1.0, eps)))))
float, half, bfloat, float2, half2 if !(eps.has_value()): logarithm(division(self, subtraction(1.0, self)))
long, int, short, uchar, char, bool if eps.has_value(): logarithm(division(clamp(float(self), eps, subtraction(1.0, eps)), subtraction(1.0, clamp(float(self), eps, subtraction(1.0, eps)))))
long, int, short, uchar, char, bool if !(eps.has_value()): logarithm(division(float(self), subtraction(1.0, float(self))))""",
    )


def test_a_copied_result_is_the_result_of_the_graph() -> None:
    fork = embedded()
    file = f"{OPERATIONS}/UnaryOps.mm"
    body = """TORCH_IMPL_FUNC(erf_out_mps)(const Tensor& self, const Tensor& output) {
  Tensor output_ = at::empty_like(self, self.suggest_memory_format());
  mps::unary_op(self, output_, "erf", ^MPSGraphTensor*(MPSGraph * mpsGraph, MPSGraphTensor * inputTensor) {
    return [mpsGraph erfWithTensor:inputTensor name:nil];
  });
  output.copy_(output_);
}
"""
    line = "CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(erf_out_mps, erf)\n"
    edited = fork.layer({file: fork.read(file).replace(line, body)})
    assert edited.read(file) != fork.read(file)
    assert next(graph_lines(graph_of("erf.out", fork=edited))).endswith(": erf(self)")


def test_a_branch_on_the_dtype() -> None:
    assert_expected_inline(
        shown("signbit.out"),
        """\
float, half, bfloat, int, short, uchar, char, float2, half2: T(signbit(self))
long: T(lessThan(self, 0.0))
bool: signbit(self)""",
    )


BOUNDED = """
static void bounded_out_mps(const Tensor& self, const OptionalTensorRef low, const OptionalTensorRef high, const Tensor& out) {
  using namespace mps;
  Tensor spare;
  auto cachedGraph = LookUpOrCreateCachedGraph<MPSUnaryCachedGraph>("bounded", [&](auto mpsGraph, auto newCachedGraph) {
    newCachedGraph->inputTensor_ = mpsGraphRankedPlaceHolder(mpsGraph, self);
    auto limit = [mpsGraph constantWithScalar:low.has_value() ? 0 : -std::numeric_limits<float>::infinity()
                                     dataType:getMPSScalarType(*high)];
    auto bounded = [mpsGraph maximumWithPrimaryTensor:newCachedGraph->inputTensor_ secondaryTensor:limit name:nil];
    newCachedGraph->outputTensor_ = high.has_value() ? mps::doubled(mpsGraph, bounded) : bounded;
  });
  Placeholder selfPlaceholder = Placeholder(cachedGraph->inputTensor_, self);
  Placeholder outputPlaceholder = Placeholder(cachedGraph->outputTensor_, spare.has_storage() ? spare : out);
  runMPSGraph(getCurrentMPSStream(), cachedGraph->graph(), dictionaryFromPlaceholders(selfPlaceholder), outputPlaceholder);
}

TORCH_IMPL_FUNC(renamed_out_mps)(const Tensor& self, const Tensor& other, const Tensor& output) {
  bounded_out_mps(self, at::OptionalTensorRef(), at::OptionalTensorRef(other), output);
}
"""
SHARED = """
namespace at::native::mps {
MPSGraphTensor* doubled(MPSGraph* mpsGraph, MPSGraphTensor* tensor) {
  return [mpsGraph additionWithPrimaryTensor:tensor secondaryTensor:tensor name:nil];
}
}
"""


def with_bounds(shared: str) -> Checkout:
    binary, unary = f"{OPERATIONS}/BinaryOps.mm", f"{OPERATIONS}/UnaryOps.mm"
    fork = embedded()
    rows = fork.read(NATIVE_FUNCTIONS).replace("hypot_out_mps", "renamed_out_mps")
    texts = {binary: fork.read(binary) + BOUNDED, unary: fork.read(unary) + shared}
    return fork.layer({NATIVE_FUNCTIONS: rows, **texts})


def test_optional_references_limits_and_helpers_of_other_files() -> None:
    [case] = graph_of("hypot.out", fork=with_bounds(SHARED)).of(dtypes.FLOAT)
    inner = Call("maximum", (Input("self", dtypes.FLOAT), Constant(float("-inf"), dtypes.FLOAT)), dtypes.FLOAT)
    assert case.expr == Call("addition", (inner, inner), dtypes.FLOAT)


def test_a_helper_that_is_private_to_another_file_is_not_called() -> None:
    with pytest.raises(PorterError, match="a call to doubled"):
        graph_of(
            "hypot.out", fork=with_bounds(SHARED.replace("MPSGraphTensor* doubled", "static MPSGraphTensor* doubled"))
        )


LOOPED = """#if defined(NOTHING_OF_A_CERTAIN_LENGTH)
#endif
TORCH_IMPL_FUNC(erf_out_mps)(const Tensor& self, const Tensor& output) {
#if defined(SOMETHING_OF_A_CERTAIN_LENGTH)
#endif
  mps::unary_op(self, output, "erf", ^MPSGraphTensor*(MPSGraph * mpsGraph, MPSGraphTensor * inputTensor) {
    while (inputTensor != nil) {
    }
    return [mpsGraph erfWithTensor:inputTensor name:nil];
  });
}
"""


def test_a_loop_in_a_block_called_elsewhere_is_located() -> None:
    fork, file = embedded(), f"{OPERATIONS}/UnaryOps.mm"
    line = "CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(erf_out_mps, erf)\n"
    text = fork.read(file).replace(line, LOOPED)
    with pytest.raises(PorterError, match="a loop, `while \\(inputTensor != nil\\)`") as refused:
        graph_of("erf.out", fork=fork.layer({file: text}))
    assert refused.value.place is not None
    assert text.splitlines()[refused.value.place.line - 1].strip() == "while (inputTensor != nil) {"


PARTED = """
std::tuple<Tensor&, Tensor&> parted_out_mps(const Tensor& self, Tensor& low, Tensor& high) {
  using namespace mps;
  auto cachedGraph = LookUpOrCreateCachedGraph<MPSUnaryCachedGraph>("parted", [&](auto mpsGraph, auto newCachedGraph) {
    newCachedGraph->inputTensor_ = mpsGraphRankedPlaceHolder(mpsGraph, self);
    newCachedGraph->floorTensor_ = [mpsGraph floorWithTensor:newCachedGraph->inputTensor_ name:nil];
    newCachedGraph->ceilTensor_ = [mpsGraph ceilWithTensor:newCachedGraph->inputTensor_ name:nil];
  });
  Placeholder selfPlaceholder = Placeholder(cachedGraph->inputTensor_, self);
  Placeholder highPlaceholder = Placeholder(cachedGraph->ceilTensor_, high);
  Placeholder lowPlaceholder = Placeholder(cachedGraph->floorTensor_, low);
  auto feeds = dictionaryFromPlaceholders(selfPlaceholder);
  runMPSGraph(getCurrentMPSStream(), cachedGraph->graph(), feeds, dictionaryFromPlaceholders(highPlaceholder, lowPlaceholder));
  return std::tuple<Tensor&, Tensor&>{low, high};
}
"""
MADE = PARTED.replace(
    "parted_out_mps(const Tensor& self, Tensor& low, Tensor& high) {",
    "parted_mps(const Tensor& self) {\n  Tensor low = at::empty_like(self), high = at::empty_like(self);",
).replace("Tensor&, Tensor&>", "Tensor, Tensor>")
PARTED_ROWS = """
- func: parted.out(Tensor self, *, Tensor(a!) low, Tensor(b!) high) -> (Tensor(a!), Tensor(b!))
  dispatch:
    MPS: parted_out_mps

- func: parted(Tensor self) -> (Tensor, Tensor)
  dispatch:
    MPS: parted_mps
"""


def with_parts(code: str) -> Checkout:
    fork, unary = embedded(), f"{OPERATIONS}/UnaryOps.mm"
    return fork.layer({NATIVE_FUNCTIONS: fork.read(NATIVE_FUNCTIONS) + PARTED_ROWS, unary: fork.read(unary) + code})


def test_every_result_of_a_row_in_its_order() -> None:
    [line, *_] = graph_lines(graph_of("parted.out", fork=with_parts(PARTED)))
    assert line.endswith(": results(floor(self), ceil(self))")


@pytest.mark.parametrize(
    ("row", "code", "told"),
    [
        ("parted.out", PARTED.replace(", lowPlaceholder)", ")"), "the result `low`, which no graph writes"),
        ("parted", MADE, "which of 2 results each graph writes"),
    ],
)
def test_an_unknown_result_refuses_the_whole_graph(row: str, code: str, told: str) -> None:
    with pytest.raises(PorterError, match=told) as refused:
        graph_of(row, fork=with_parts(code))
    assert refused.value.code == "PTR033"
    assert refused.value.place is not None and refused.value.place.line > 1


def evaluate(expr: Expr, values: dict[str, torch.Tensor]) -> torch.Tensor:
    match expr:
        case Input(name=name, dtype=dtype):
            return values[name].to(getattr(torch, dtype.torch))
        case Constant(value=value, dtype=dtype):
            return torch.tensor(value, dtype=getattr(torch, dtype.torch))
        case Cast(arg=arg, dtype=dtype):
            return evaluate(arg, values).to(getattr(torch, dtype.torch))
        case Call(op=op, args=args):
            computed: torch.Tensor = semantics.find(by_op()[op].selector)(*(evaluate(arg, values) for arg in args))
            return computed
        case _:
            raise AssertionError(f"no {type(expr).__name__} here")


@pytest.mark.parametrize(
    ("row", "reference"),
    [
        ("atan2.out", torch.atan2),
        ("hypot.out", torch.hypot),
        ("remainder.Tensor_out", torch.remainder),
        ("fmod.Tensor_out", torch.fmod),
        ("logaddexp.out", torch.logaddexp),
    ],
)
def test_a_graph_computes_what_the_operator_means(row: str, reference: Callable[..., torch.Tensor]) -> None:
    (case,) = graph_of(row).of(dtypes.FLOAT)
    values = {"self": torch.linspace(-3, 4, 29), "other": torch.linspace(5.071, -2.3, 29) * 1.013}
    torch.testing.assert_close(evaluate(case.expr, values), reference(values["self"], values["other"]))


SWITCHED_ROW = """
- func: scaled.out(Tensor self, int mode, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    MPS: scaled_out_mps
"""
SWITCHED = """
static std::string mode_name(int64_t mode) {
  switch (mode) {
    case Mode::Twice:
      return "twice";
    default:
      return "once";
  }
}

static MPSGraphTensor* scale(MPSGraph* mpsGraph, MPSGraphTensor* tensor, int64_t mode) {
  SWITCH
  return tensor;
}

TORCH_IMPL_FUNC(scaled_out_mps)(const Tensor& self, int64_t mode, const Tensor& output) {
  using namespace mps;
  auto key = "scaled:" + mode_name(mode);
  auto cachedGraph = LookUpOrCreateCachedGraph<MPSUnaryCachedGraph>(key, [&](auto mpsGraph, auto newCachedGraph) {
    newCachedGraph->inputTensor_ = mpsGraphRankedPlaceHolder(mpsGraph, self);
    newCachedGraph->outputTensor_ = scale(mpsGraph, newCachedGraph->inputTensor_, mode);
  });
  Placeholder selfPlaceholder = Placeholder(cachedGraph->inputTensor_, self);
  Placeholder outputPlaceholder = Placeholder(cachedGraph->outputTensor_, output);
  runMPSGraph(getCurrentMPSStream(), cachedGraph->graph(), dictionaryFromPlaceholders(selfPlaceholder), outputPlaceholder);
}
"""
NEGATIVE, ROOT = (f"[mpsGraph {each}WithTensor:tensor name:nil]" for each in ("negative", "squareRoot"))


def switched(switch: str) -> str:
    """The graph of a made-up operator whose host code switches on an argument."""
    unary = f"{OPERATIONS}/UnaryOps.mm"
    fork = embedded()
    texts = {
        unary: fork.read(unary) + SWITCHED.replace("SWITCH", switch),
        NATIVE_FUNCTIONS: fork.read(NATIVE_FUNCTIONS) + SWITCHED_ROW,
    }
    return "\n".join(graph_lines(graph_of("scaled.out", fork=fork.layer(texts))))


def test_a_switch_on_an_argument_forks_label_by_label() -> None:
    """`switch (reduction)` of LossOps.mm: two labels return, the last one leaves the tensor as it is."""
    switch = f"""switch (mode) {{
    case Mode::Negated: {{
      tensor = {NEGATIVE};
      break;
    }}
    case Mode::Root:
      return {ROOT};
    default:
      assert(mode == Mode::Once);
  }}"""
    assert_expected_inline(
        switched(switch),
        """\
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if mode == Mode::Twice: self
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if !(mode == Mode::Twice) and mode == Mode::Negated: negative(self)
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if !(mode == Mode::Twice) and !(mode == Mode::Negated) and mode == Mode::Root: squareRoot(self)
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if !(mode == Mode::Twice) and !(mode == Mode::Negated) and !(mode == Mode::Root): self""",
    )


def test_a_label_without_a_break_runs_what_follows() -> None:
    switch = f"""switch (mode) {{
    case 1:
    case 2:
      tensor = {NEGATIVE};
    case 3:
      tensor = {ROOT};
      break;
  }}"""
    assert_expected_inline(
        switched(switch),
        """\
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if mode == Mode::Twice: self
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if !(mode == Mode::Twice) and mode == 1: squareRoot(negative(self))
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if !(mode == Mode::Twice) and !(mode == 1) and mode == 2: squareRoot(negative(self))
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if !(mode == Mode::Twice) and !(mode == 1) and !(mode == 2) and mode == 3: squareRoot(self)
float, half, bfloat, long, int, short, uchar, char, bool, float2, half2 if !(mode == Mode::Twice) and !(mode == 1) and !(mode == 2) and !(mode == 3): self""",
    )


def test_a_switch_on_the_type_takes_the_label_of_each() -> None:
    switch = f"""switch (tensor.dataType) {{
    case kHalf:
      return {NEGATIVE};
    default:
      break;
  }}"""
    assert_expected_inline(
        switched(switch),
        """\
float, bfloat, long, int, short, uchar, char, bool, float2, half2 if mode == Mode::Twice: self
float, bfloat, long, int, short, uchar, char, bool, float2, half2 if !(mode == Mode::Twice): self
half if mode == Mode::Twice: negative(self)
half if !(mode == Mode::Twice): negative(self)""",
    )


def test_a_switch_on_what_is_not_known_is_not_guessed() -> None:
    with pytest.raises(PorterError) as raised:
        switched("switch (unheard_of()) { case 1: return tensor; default: break; }")
    assert raised.value.code == "PTR033" and "a switch, `switch (unheard_of())`" in raised.value.what
