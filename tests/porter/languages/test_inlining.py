"""Bodies of functions in the place of their calls, and conditions that are then known."""

import pytest
from expecttest import assert_expected_inline

from porter.languages.inlining import (
    complete_call,
    find_call_site,
    fold,
    inline_call,
    list_given,
    read_parameters,
    simplify,
    specialize,
)
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


def inline(caller: str, helper: str = HELPER, given: tuple[str, ...] = ()) -> str | None:
    source = Source.parse("", helper)
    [function] = source.functions()
    site = find_call_site(caller, function.name)
    assert site is not None
    body = helper[function.body_start + 1 : function.body_end - 1]
    parameters = read_parameters(function)
    completed = complete_call(site, parameters) or site
    return inline_call(caller, completed, body, parameters, MODES, "loss_mps", given)


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


def test_a_lambda_returns_what_it_does() -> None:
    helper = HELPER.replace("input.dim() > 0", "all_of(input.sizes(), [](int64_t size) { return size != 0; })")
    text = inline("\n  loss_template(self, result, reduction, false, std::nullopt, name);\n", helper)
    assert text is not None
    assert text.count("{ return size != 0; }") == text.count("return") == 1


def test_a_parameter_of_a_lambda_stays() -> None:
    helper = HELPER.replace("input.dim() > 0", "any_of(input, [](int64_t reduction) { return reduction > 1; })")
    text = inline("\n  loss_template(self, result, 1, false, std::nullopt, name);\n", helper)
    assert text is not None and "[](int64_t reduction) { return reduction > 1; }" in text


def test_a_variable_that_hides_an_argument_gets_a_name_of_its_own() -> None:
    helper = (
        "void pad(const Tensor& input_, Tensor& output) {\n  Tensor grad, input = input_;\n  run(input, output);\n}\n"
    )
    made = inline("\n  pad(input, result);\n", helper)
    assert made == "\n  Tensor grad, input_c = input;\n  run(input_c, result);\n"


def test_a_variable_that_the_caller_has_too_gets_a_name_of_its_own() -> None:
    helper = "void pad(const Tensor& input) {\n  auto shape = makeShape(input);\n  run(input, shape);\n}\n"
    made = inline("\n  auto shape = self.sizes();\n  pad(self);\n", helper)
    assert made == "\n  auto shape = self.sizes();\n  auto shape_ = makeShape(self);\n  run(self, shape_);\n"


def test_a_variable_that_is_named_as_an_argument_within_a_larger_one_gets_a_name_of_its_own() -> None:
    helper = "void norm(const Tensor& input, const Opt& opt) {\n  auto p = opt.get();\n  run(input, p);\n}\n"
    made = inline("\n  norm(self, Opt(p));\n", helper)
    assert made == "\n  const Opt& opt = Opt(p);\n  auto p_ = opt.get();\n  run(self, p_);\n"


def test_a_call_that_more_follows_stays() -> None:
    assert inline("\n  loss_template(a, b, c, d, e, f);\n  more();\n") is None


def test_a_body_without_returns_goes_anywhere() -> None:
    helper = (
        "void fill(const Tensor& input, Tensor& output) {\n  auto shape = makeShape(input);\n  run(shape, output);\n}\n"
    )
    caller = "\n  @autoreleasepool {\n    mps::fill(self, out);\n  }\n  auto shape = out.sizes();\n  return out;\n"
    made = inline(caller, helper)
    assert made is not None
    assert_expected_inline(
        made,
        """\

  @autoreleasepool {
    auto shape_ = makeShape(self);
  run(shape_, out);
  }
  auto shape = out.sizes();
  return out;
""",
    )


def test_an_optional_that_is_passed_a_value_has_it() -> None:
    helper = (
        "void sum(const Tensor& input, OptionalIntArrayRef opt_dim) {\n  TORCH_CHECK(opt_dim.has_value(), 1);\n"
        "  if (opt_dim.has_value()) {\n    run(input, opt_dim.value());\n  }\n}\n"
    )
    assert inline("\n  sum(self, dim);\n", helper, given=("self", "dim")) == "\n  run(self, dim);\n"
    made = inline("\n  sum(self, dim);\n", helper, given=("self",))
    assert made is not None and "if (dim.has_value()) {" in made


REDUCTION = """static void reduce(const Tensor& input, OptionalIntArrayRef opt_dim, bool keepdim) {
  if (opt_dim.has_value()) {
    check(opt_dim.value());
  }
}
"""


def test_the_list_that_an_argument_views_becomes_a_variable() -> None:
    made = inline("\n  reduce(self, IntArrayRef({0, 1}), true);\n", REDUCTION)
    assert made is not None
    assert_expected_inline(
        made,
        """\

  const std::array<int64_t, 2> opt_dim = {0, 1};
  check(opt_dim);
""",
    )


def test_an_argument_that_may_view_a_temporary_stays() -> None:
    assert inline("\n  reduce(self, self.sizes().vec(), true);\n", REDUCTION) is None


def test_variables_of_a_function_that_are_no_optionals_are_found() -> None:
    caller = "\n  IntArrayRef dims = a;\n  std::optional<int64_t> maybe = b;\n  auto other = c;\n  return d;\n"
    [function] = Source.parse("", f"void f(const Tensor& self, OptionalIntArrayRef opt_dim) {{{caller}}}").functions()
    assert list_given(function, caller) == {"self", "dims"}


def test_a_reference_to_what_an_optional_holds_is_that() -> None:
    made = inline("\n  return loss_template(self, out, Mode::Mean, false, weight, name);\n", given=("weight",))
    assert made is not None
    assert "borrow" not in made and "weighted" not in made
    assert "out.resize_(weight.sizes());" in made


def test_a_literal_is_its_characters() -> None:
    helper = "void op(const std::string& name) {\n  check(name.c_str(), name);\n}\n"
    assert inline('\n  op("any");\n', helper) == '\n  check("any", "any");\n'


def test_what_a_call_leaves_out_is_the_default() -> None:
    helper = "void op(const Tensor& input, bool is_last = false) {\n  run(input, is_last);\n}\n"
    assert inline("\n  op(self);\n", helper) == "\n  run(self, false);\n"
    site = find_call_site("\n  op();\n", "op")
    [function] = Source.parse("", helper).functions()
    assert site is not None and complete_call(site, read_parameters(function)) is None


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


def test_a_constant_is_the_same_with_the_scope_that_it_has_in_another_file() -> None:
    constants = ("mps::SUM_TYPE", "SUM_TYPE", "MEAN_TYPE", "mps::MEAN_TYPE")
    assert simplify("mps::SUM_TYPE == SUM_TYPE", constants) == "true"
    assert simplify("mps::MEAN_TYPE == SUM_TYPE", constants) == "false"
    assert simplify("MEAN_SUM_TYPE == SUM_TYPE", (*constants, "MEAN_SUM_TYPE")) == "false"


def test_choices_nest() -> None:
    assert fold("x = true ? (false ? a : b) : c;") == "x = (b);"
    assert fold("f(x, false ? a : y ? b : c, z);") == "f(x, y ? b : c, z);"


def test_a_switch_on_a_constant_is_the_case_that_it_takes() -> None:
    text = "switch (Mode::Mean) {\n  case Mode::Sum:\n    sum();\n    break;\n  case Mode::Mean:\n  default:\n    mean();\n}"
    assert fold(text, MODES) == "mean();"
    assert fold(text.replace("(Mode::Mean)", "(mode)"), MODES) == text.replace("(Mode::Mean)", "(mode)")


def test_a_branch_that_is_never_taken_takes_its_comment_along() -> None:
    text = "f();\n// when both hold\n// for a reason\nif (false) {\n  g();\n}\n// of h\nh();\n"
    assert fold(text) == "f();\n// of h\nh();\n"


def test_a_parameter_without_a_name_is_read_and_its_call_stays() -> None:
    helper = "static void scale(const Tensor& input, int, const Tensor&) {\n  input.mul_(2);\n}\n"
    [function] = Source.parse("", helper).functions()
    assert [(each.type, each.name) for each in read_parameters(function)] == [
        ("const Tensor&", "input"),
        ("int", ""),
        ("const Tensor&", ""),
    ]
    assert inline("\n  scale(self, 1, other);\n", helper) is None


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ("<int64_t>", None),
        (
            "<int64_t, std::vector<int> >",
            "\n  int64_t least = low();\n  run<int64_t, std::vector<int>>(input, least);\n",
        ),
    ],
)
def test_a_call_names_the_types_of_a_template(types: str, expected: str | None) -> None:
    head = "template <typename T, class U = int>\nvoid op(const Tensor& input, T least)"
    helper = f"{head} {{\n  run<T, U>(input, least);\n}}\n"
    [function] = Source.parse("", helper).functions()
    caller = f"\n  ns::op{types}(input, low());\n"
    site = find_call_site(caller, "op")
    assert site is not None
    special = specialize(function, helper[function.body_start + 1 : function.body_end - 1], site)
    assert (special and inline_call(caller, site, *special, (), "op_mps")) == expected
