"""The evaluator on every idiom of the embedded fork, as text and against torch."""

import pytest
import torch
from expecttest import assert_expected_inline

from porter import dtypes
from porter.aten.native_functions import NativeFunctions
from porter.checkout import EMBEDDED_FORK, Checkout
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, Scalar
from porter.mpsgraph.printing import graph_lines
from porter.mpsgraph.selectors import by_op
from porter.objcpp.evaluator import read_graph
from porter.objcpp.implementations import find_implementation


def graph_of(row: str, promotes: bool = False):  # type: ignore[no-untyped-def]
    fork = Checkout(EMBEDDED_FORK, "test")
    entry = NativeFunctions.read(fork).by_name[row]
    line = entry.line_for("MPS")
    assert line is not None
    whole = (dtypes.Kind.INTEGRAL, dtypes.Kind.BOOL)
    out = (lambda d: dtypes.FLOAT if d.kind in whole else d) if promotes else (lambda d: d)
    return read_graph(fork, find_implementation(fork, line.kernel), entry.arguments, out)


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


def test_a_helper_that_branches_on_a_string() -> None:
    assert_expected_inline(
        shown("fmod.Tensor_out"),
        """\
float, half, bfloat, float2, half2: subtraction(self, multiplication(truncate(division(self, other)), other))
long: long(subtraction(float(self), multiplication(truncate(division(float(self), float(other))), float(other))))
int: int(subtraction(float(self), multiplication(truncate(division(float(self), float(other))), float(other))))
short: short(subtraction(float(self), multiplication(truncate(division(float(self), float(other))), float(other))))
uchar: uchar(subtraction(float(self), multiplication(truncate(division(float(self), float(other))), float(other))))
char: char(subtraction(float(self), multiplication(truncate(division(float(self), float(other))), float(other))))
bool: bool(subtraction(float(self), multiplication(truncate(division(float(self), float(other))), float(other))))""",
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


def test_a_branch_on_the_dtype() -> None:
    assert_expected_inline(
        shown("signbit.out"),
        """\
float: float(signbit(self))
half: half(signbit(self))
bfloat: bfloat(signbit(self))
long: long(lessThan(self, 0.0))
int: int(signbit(self))
short: short(signbit(self))
uchar: uchar(signbit(self))
char: char(signbit(self))
bool: signbit(self)
float2: float2(signbit(self))
half2: half2(signbit(self))""",
    )


def evaluate(expr: Expr, values: dict[str, torch.Tensor]) -> torch.Tensor:
    match expr:
        case Input(name=name, dtype=dtype):
            return values[name].to(getattr(torch, dtype.torch))
        case Constant(value=value, dtype=dtype):
            return torch.tensor(value, dtype=getattr(torch, dtype.torch))
        case Cast(arg=arg, dtype=dtype):
            return evaluate(arg, values).to(getattr(torch, dtype.torch))
        case Call(op=op, args=args):
            form = by_op()[op].torch.format(*(f"a[{at}]" for at in range(len(args))))
            return eval(form, {"torch": torch, "a": [evaluate(arg, values) for arg in args]})
        case Scalar():
            raise AssertionError("no scalar here")


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
def test_a_graph_computes_what_the_operator_means(row, reference) -> None:  # type: ignore[no-untyped-def]
    (case,) = graph_of(row).of(dtypes.FLOAT)
    values = {"self": torch.linspace(-3, 4, 29), "other": torch.linspace(5.071, -2.3, 29) * 1.013}
    torch.testing.assert_close(evaluate(case.expr, values), reference(values["self"], values["other"]))
