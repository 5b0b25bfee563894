"""Bodies of functions in the place of their calls, and conditions that are then known."""

import pytest
from expecttest import assert_expected_inline

from porter.languages.folding import fold, simplify
from porter.languages.inlining import find_call_site, inline_call, read_parameters
from porter.languages.source import Source

MODES = frozenset(("Mode::Sum", "Mode::Mean"))
HELPER = """static Tensor& loss_template(const Tensor& input, Tensor& output, int64_t reduction, bool is_backward,
                             const std::optional<Tensor>& weight_opt, const string name) {
  const Tensor& weight = *(at::borrow_from_optional_tensor(weight_opt));
  const bool weighted = weight.defined();
  TORCH_CHECK(input.dim() > 0, name + ": no scalars");
  if (is_backward && reduction == Mode::Sum) {
    output.zero_();
    return output;
  } else {
    output.resize_(weighted ? weight.sizes() : input.sizes());
  }
  auto result = run(input, output);
  return output;
}
"""


def inline(caller: str, helper: str = HELPER) -> str | None:
    source = Source.parse("", helper)
    [function] = source.functions()
    site = find_call_site(caller, function.name)
    assert site is not None
    body = helper[function.body_start + 1 : function.body_end - 1]
    return inline_call(caller, site, body, read_parameters(function), MODES, "loss_mps")


def test_arguments_take_the_place_of_parameters_and_branches_fold() -> None:
    made = inline("\n  check(self);\n  return loss_template(self, out, Mode::Mean, false, std::nullopt, __func__);\n")
    assert made is not None
    assert_expected_inline(
        made,
        """\

  check(self);
  TORCH_CHECK(self.dim() > 0, "loss_mps: no scalars");
  out.resize_(self.sizes());
  auto result = run(self, out);
  return out;
""",
    )


def test_a_statement_returns_what_follows_it() -> None:
    made = inline("\n  loss_template(self, const_cast<Tensor&>(result), reduction, true, weight, name);\n  return 1;\n")
    assert made is not None
    assert_expected_inline(
        made,
        """\

  const Tensor& weight_ = *(at::borrow_from_optional_tensor(weight));
  const bool weighted = weight_.defined();
  TORCH_CHECK(self.dim() > 0, name + ": no scalars");
  if (reduction == Mode::Sum) {
    result.zero_();
    return 1;
  } else {
    result.resize_(weighted ? weight_.sizes() : self.sizes());
  }
  auto result_ = run(self, result);

  return 1;
""",
    )


def test_a_call_that_more_follows_stays() -> None:
    assert inline("\n  loss_template(a, b, c, d, e, f);\n  more();\n") is None


@pytest.mark.parametrize(
    ("condition", "known"),
    [
        ("true && x", "x"),
        ("x || !false", "true"),
        ("!(true) || (y)", "y"),
        ("a == b", "a == b"),
        ("Mode::Sum == Mode::Mean", "false"),
        ("Mode::Sum != Mode::Mean && x.defined()", "x.defined()"),
        ('"a" == "a"', "true"),
        ("f(true && x)", "f(true && x)"),
    ],
)
def test_conditions(condition: str, known: str) -> None:
    assert simplify(condition, MODES) == known


def test_choices_nest() -> None:
    assert fold("x = true ? (false ? a : b) : c;") == "x = (b);"
    assert fold("f(x, false ? a : y ? b : c, z);") == "f(x, y ? b : c, z);"
