"""Stubs and type rules, read from small ATen sources written for the test."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from porter.aten.branches import show
from porter.aten.meta import TypeRule, read_type_rules
from porter.aten.stubs import StubCall, find_native_definitions, find_stubs
from porter.core.checkout import Checkout
from porter.core.dtypes import ALL
from porter.core.errors import PorterError
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS
from porter.languages import cpp, cpp_parser

HEADER = """
using twist_fn = void(*)(TensorIteratorBase&);
using twist_fn_alpha = void (*)(TensorIteratorBase&, const Scalar& alpha);
DECLARE_DISPATCH(twist_fn, twist_stub)
DECLARE_DISPATCH(twist_fn, turn_stub)
DECLARE_DISPATCH(twist_fn, spin_stub)
DECLARE_DISPATCH(twist_fn_alpha, bend_stub)
DECLARE_DISPATCH(
    void (*)(
        TensorIteratorBase&,
        std::optional<double>,
        int64_t n),
    fold_stub)
inline void bend_check(const Tensor& self) {
  TORCH_CHECK(self.scalar_type() != kBool, "bend wants numbers");
}
using strew_fn = void(*)(const Tensor& self, const Tensor& index);
DECLARE_DISPATCH(strew_fn, strew_stub)
DECLARE_DISPATCH(strew_fn, sow_stub)
"""

SOURCE = """
namespace at::meta {
TORCH_META_FUNC(twist)(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(!self.is_complex(), "no complex twist");
  TORCH_CHECK(maybe_get_output().defined() ? maybe_get_output().dtype() == kBool : true, "never for a fresh output");
  build_borrowing_binary_float_op(maybe_get_output(), self, other);
}
#define CREATE_META(func)                                  \\
  TORCH_META_FUNC(func)(const Tensor& self) {              \\
    build_borrowing_unary_force_boolean_op(maybe_get_output(), self); \\
  }
CREATE_META(spin)
TORCH_META_FUNC2(bend, Tensor_mode)(const Tensor& self, std::optional<std::string_view> mode) {
  native::bend_check(self);
  if (!mode.has_value()) {
    build_binary_float_op(maybe_get_output(), self, self);
  } else {
    build_binary_op(maybe_get_output(), self, self);
  }
}
TORCH_META_FUNC(odd)(const Tensor& self) { set_output(self); }
TORCH_META_FUNC(halve)(const Tensor& self) {
  Tensor half = self.narrow(0, 0, self.size(0) / 2);
  build_borrowing_unary_op(maybe_get_output(), half);
}
TORCH_META_FUNC(below)(const Tensor& self, const Scalar& other) {
  auto wrapped = native::wrapped_scalar_tensor(other);
  const Tensor& result = maybe_get_output();
  build_borrowing_except_last_argument_comparison_op(result, self, wrapped);
}
TORCH_META_FUNC(limit)(const Tensor& self, const Tensor& low) {
#define LIMIT_CONFIG() \\
  TensorIteratorConfig().add_output(maybe_get_output()).promote_inputs_to_common_dtype(true)
  build(LIMIT_CONFIG().add_const_input(self).add_const_input(low));
}
} // namespace at::meta

namespace at::native {
TORCH_IMPL_FUNC(twist_out)(const Tensor& self, const Tensor& other, const Tensor& result) {
  twist_stub(device_type(), *this);
}
#define CREATE_IMPL(func_out, func_stub)                    \\
TORCH_IMPL_FUNC(func_out)(const Tensor& self, const Tensor& result) { \\
  if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/false)) { \\
    result.copy_(self);                                      \\
  } else {                                                   \\
    func_stub(device_type(), *this);                         \\
  }                                                          \\
}
CREATE_IMPL(spin_out, spin_stub)
CREATE_IMPL(lone_out, lone_stub)
#define CREATE_BOTH(func)                                   \\
  TORCH_IMPL_FUNC(func##_Tensor_out)(const Tensor& self) {   \\
    func##_stub(device_type(), *this);                       \\
  }
CREATE_BOTH(turn)

TORCH_IMPL_FUNC(bend_out_mode)(const Tensor& self, std::optional<std::string_view> mode, const Scalar& alpha) {
  if (!mode.has_value()) {
    twist_stub(device_type(), *this);
  } else if (*mode == "down") {
    bend_stub(device_type(), *this, -alpha);
  }
}

template <typename Stub, typename... Args>
static inline Tensor& run_float(Tensor& result, const Tensor& self, Stub& stub, Args... args) {
  auto iter = TensorIterator::unary_float_op(result, self);
  stub(iter.device_type(), iter, args...);
  return result;
}
template <typename Stub>
static inline Tensor& run_real(Tensor& result, const Tensor& self, Stub& stub) {
  if (self.is_complex() && !result.is_complex()) {
    Tensor complex_result = at::empty({0}, self.options());
    auto iter = TensorIterator::unary_op(complex_result, self);
    stub(iter.device_type(), iter);
    result.copy_(at::real(complex_result));
    return result;
  }
  return run_float(result, self, stub);
}
Tensor& fold_out(const Tensor& self, std::optional<double> eps, int64_t n, Tensor& result) {
  return run_float(result, self, fold_stub, eps, n);
}
Tensor& phase_out(const Tensor& self, Tensor& result) { return run_real(result, self, turn_stub); }
Tensor& not_out(const Tensor& self, Tensor& result) {
  TensorIterator iter = TensorIteratorConfig().check_all_same_dtype(false).add_output(result).build();
  turn_stub(iter.device_type(), iter);
  return result;
}
static TensorIterator build_both_iter(Tensor& result, const Tensor& self) {
  TORCH_CHECK(self.dim() == 1);
  auto iter = TensorIteratorConfig().add_output(result).promote_inputs_to_common_dtype(true).build();
  return iter;
}
Tensor& both_out(const Tensor& self, Tensor& result) {
  auto iter = build_both_iter(result, self);
  turn_stub(iter.device_type(), iter);
  return result;
}
static Tensor& unary_op(Tensor& result, const Tensor& self) { return result; }
static Tensor& unary_float_op(Tensor& result, const Tensor& self) { return result; }
Tensor& alias_out(const Tensor& self, Tensor& result) { return at::elsewhere_out(result, self); }
Tensor& two_out(const Tensor& self, Tensor& result) { return run_float(result, self, turn_stub); }
Tensor& two_out(const Scalar& self, Tensor& result) { return run_float(result, self, spin_stub); }
template <typename Stub>
void strew_impl(const Tensor& self, const Tensor& index, Stub& twist_stub) {
  twist_stub(self.device().type(), self, index);
}
Tensor& strew_out(const Tensor& self, const Tensor& index, Tensor& result) {
  if (index.dim() > 1) {
    sow_stub(self.device().type(), self, index);
  } else {
    strew_impl(self, index, strew_stub);
  }
  return result;
}
} // namespace at::native
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    native = tmp_path / NATIVE
    native.mkdir(parents=True)
    (tmp_path / NATIVE_FUNCTIONS).write_text("[]\n")
    (native / "Twist.h").write_text(HEADER)
    (native / "Twist.cpp").write_text(SOURCE)
    return Checkout(tmp_path, "test")


def describe(calls: tuple[StubCall, ...]) -> str:
    lines = []
    for c in calls:
        types = "all" if c.dtypes == ALL else " ".join(map(str, c.dtypes))
        when = " and ".join(map(str, c.when)) or "always"
        call = f"{c.stub.name}({', '.join(c.arguments)})"
        lines.append(f"{call} for {types}, {when}; line {c.place.line}")
        lines.append(f"  built by {c.builder or 'its meta function'}")
    return "\n".join(lines)


def test_each_idiom_of_a_shared_implementation_leads_to_its_stub(checkout: Checkout) -> None:
    names = (
        "twist_out",
        "spin_out",
        "turn_Tensor_out",
        "bend_out_mode",
        "fold_out",
        "phase_out",
        "not_out",
        "both_out",
    )
    found = "\n".join(describe(find_stubs(checkout, name)) for name in names)
    assert_expected_inline(
        found,
        """\
twist_stub() for all, always; line 39
  built by its meta function
spin_stub() for float half bfloat bool float2 half2, always; line 50
  built by its meta function
turn_stub() for all, always; line 56
  built by its meta function
twist_stub() for all, !(mode.has_value()); line 58
  built by its meta function
bend_stub(-alpha) for all, mode.has_value() and *mode == "down"; line 58
  built by its meta function
fold_stub(eps, n) for all, always; line 83
  built by unary_float_op
turn_stub() for float half bfloat long int short uchar char bool, always; line 86
  built by unary_float_op
turn_stub() for float2 half2, always; line 86
  built by unary_op
turn_stub() for all, always; line 87
  built by TensorIteratorConfig().check_all_same_dtype(false).add_output(result).build()
turn_stub() for all, always; line 97
  built by TensorIteratorConfig().add_output(result).promote_inputs_to_common_dtype(true).build()""",
    )


def test_the_declaration_gives_parameters_and_header(checkout: Checkout) -> None:
    stub = find_stubs(checkout, "fold_out")[0].stub
    assert stub.signature == (("TensorIteratorBase&", ""), ("std::optional<double>", ""), ("int64_t", "n"))
    assert stub.header == "ATen/native/Twist.h"
    assert stub.place.line == 8
    bend = find_stubs(checkout, "bend_out_mode")[1].stub
    assert bend.signature == (("TensorIteratorBase&", ""), ("const Scalar&", "alpha"))


def test_an_implementation_may_stand_in_a_header(checkout: Checkout) -> None:
    [found] = find_native_definitions(checkout, "bend_check")
    assert (found.path, found.place.line) == (f"{NATIVE}/Twist.h", 14)


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("missing_out", "PTR071", "missing_out"),
        ("alias_out", "PTR072", "at::elsewhere_out"),
        ("strew_out", "PTR072", "no dispatch stub of an iterator, only of tensors: sow_stub, strew_stub"),
        ("two_out", "PTR073", "overloads"),
        ("lone_out", "PTR074", "lone_stub"),
    ],
)
def test_an_implementation_without_a_single_stub_is_refused(
    checkout: Checkout, name: str, code: str, says: str
) -> None:
    with pytest.raises(PorterError) as caught:
        find_stubs(checkout, name)
    assert caught.value.code == code
    assert says in caught.value.what


def summary(rules: tuple[TypeRule, ...]) -> str:
    lines = []
    for rule in rules:
        lines.append(f"{' and '.join(map(str, rule.when)) or 'always'}:")
        lines.append("  " + " ".join(str(rule.result(dtype)) for dtype in ALL))
    return "\n".join(lines)


def test_type_rules_of_meta_functions_and_plain_ones(checkout: Checkout) -> None:
    rules = [
        read_type_rules(checkout, "twist"),
        read_type_rules(checkout, "spin"),
        read_type_rules(checkout, "bend.Tensor_mode"),
        read_type_rules(checkout, "phase", "phase_out"),
        read_type_rules(checkout, "not", "not_out"),
        read_type_rules(checkout, "limit"),
        read_type_rules(checkout, "below"),
    ]
    assert_expected_inline(
        "\n".join(map(summary, rules)),
        """\
always:
  float half bfloat float float float float float float None None
always:
  bool bool bool bool bool bool bool bool bool bool bool
!(mode.has_value()):
  float half bfloat float float float float float None float2 half2
mode.has_value():
  float half bfloat long int short uchar char None float2 half2
always:
  float half bfloat float float float float float float float half
always:
  bool bool bool bool bool bool bool bool bool bool bool
always:
  float half bfloat long int short uchar char bool float2 half2
always:
  bool bool bool bool bool bool bool bool bool bool bool""",
    )


def test_a_refusal_carries_the_message_and_the_line(checkout: Checkout) -> None:
    refusal = read_type_rules(checkout, "twist")[0].refused[0]
    assert (refusal.message, refusal.place.line) == ("no complex twist", 4)
    helper = read_type_rules(checkout, "bend.Tensor_mode")[0].refused[0]
    assert (helper.message, helper.place.file) == ("bend wants numbers", f"{NATIVE}/Twist.h")


@pytest.mark.parametrize(("name", "code"), [("nothing", "PTR075"), ("odd", "PTR076"), ("halve", "PTR300")])
def test_an_unknown_type_rule_is_refused(checkout: Checkout, name: str, code: str) -> None:
    with pytest.raises(PorterError) as caught:
        read_type_rules(checkout, name)
    assert caught.value.code == code


_LEAF = st.sampled_from(["a", "b", "1.5", "x.y", "f(a, b)", "std::max<T>(a, b)", "T(1)", "-a"])


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    infix = st.tuples(inner, st.sampled_from(["+", "*", "<", "==", "&&", "<<"]), inner)
    choice = st.tuples(inner, inner, inner)
    return infix.map(lambda p: f"({p[0]} {p[1]} {p[2]})") | choice.map(lambda p: f"({p[0]} ? {p[1]} : {p[2]})")


_EXPRESSION = st.recursive(_LEAF, _compound, max_leaves=12)


@given(_EXPRESSION)
def test_an_expression_prints_as_it_was_written(text: str) -> None:
    assert show(cpp_parser.parse_expression("x.cpp", text)) == text


@given(st.text(alphabet="ab01 (){}[];,=<>:?+-*&|!.\"'\n", max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(cpp.ParseError, PorterError):
        function = cpp_parser.parse_function("x.cpp", f"void f(int a) {{ {text} }}")
        assert (function.name, [each.name for each in function.parameters]) == ("f", ["a"])
