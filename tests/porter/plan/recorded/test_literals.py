"""Bodies that differ in literals become one, to which names are passed; and are what they were again."""

import pytest
from expecttest import assert_expected_inline

from porter.plan.recorded.literals import OneBody, fill_body, merge_bodies, read_shape

BODY = """
  TORCH_CHECK(dim < 4, "high_out: too many dimensions");
  zero_numel_check_dims(self, dim, "high()");
  auto PSO = lib.getPipelineStateForFunc("high_" + scalarToMetalTypeString(self) + "_" + index_type);
  getMPSProfiler().beginProfileKernel(PSO, "high", {self});
  auto combinePSO = lib.getPipelineStateForFunc("high_combine");
"""


def merge(*bodies: str, taken: tuple[str, ...] = ("self", "dim")) -> OneBody:
    made = merge_bodies(bodies, taken)
    assert made is not None
    for body, passed in zip(bodies, made.arguments, strict=True):
        names = [each.split()[-1].strip("&*") for each in made.parameters]
        assert read_tokens(fill_body(made.text, dict(zip(names, passed, strict=True)))) == read_tokens(body)
    return made


def read_tokens(body: str) -> list[str]:
    return body.split()


def test_kernels_are_named_by_what_their_names_begin_with() -> None:
    made = merge(BODY, BODY.replace("high", "low"))
    assert made.arguments == (('"high"', '"high()"'), ('"low"', '"low()"'))
    assert_expected_inline(
        "\n".join((*made.parameters, made.text)),
        """\
const std::string& kernel_name
const char* func_name

  TORCH_CHECK(dim < 4, kernel_name, "_out: too many dimensions");
  zero_numel_check_dims(self, dim, func_name);
  auto PSO = lib.getPipelineStateForFunc(kernel_name + "_" + scalarToMetalTypeString(self) + "_" + index_type);
  getMPSProfiler().beginProfileKernel(PSO, kernel_name, {self});
  auto combinePSO = lib.getPipelineStateForFunc(kernel_name + "_combine");
""",
    )


def test_a_function_that_messages_name_is_passed_where_kernels_have_other_names() -> None:
    made = merge(
        'TORCH_CHECK(ok, "_high: not ok"); lib.getPipelineStateForFunc("high");',
        'TORCH_CHECK(ok, "low: not ok"); lib.getPipelineStateForFunc("low");',
    )
    assert made.arguments == (('"high"', '"_high"'), ('"low"', '"low"'))
    assert_expected_inline(
        made.text, """TORCH_CHECK(ok, func_name, ": not ok"); lib.getPipelineStateForFunc(kernel_name);"""
    )


def test_a_pointer_to_a_kernels_name_is_that_of_its_string() -> None:
    one = 'check(self, "high"); lib.getPipelineStateForFunc("high");'
    made = merge(one, one.replace("high", "low"))
    assert_expected_inline(made.text, """check(self, kernel_name.c_str()); lib.getPipelineStateForFunc(kernel_name);""")


def test_a_string_is_declared_as_what_is_passed() -> None:
    one = 'const std::string& name = "high_out"; auto PSO = lib.getPipelineStateForFunc("high");'
    made = merge(one, one.replace("high", "low"))
    assert made.text.startswith('const std::string& name = kernel_name + "_out"; auto PSO')


def test_equal_bodies_need_no_parameters() -> None:
    assert merge(BODY, BODY) == OneBody(BODY, (), ((), ()))


def test_names_that_a_body_has_are_not_taken() -> None:
    one = 'auto kernel_name = 1; lib.getPipelineStateForFunc("high");'
    made = merge(one, one.replace("high", "low"), taken=("kernel",))
    assert made.parameters == ("const std::string& shader_name",)


@pytest.mark.parametrize(
    "body",
    [
        'auto name = fmt::format("high_{}", type);',
        'AT_DISPATCH_ALL_TYPES(type, "high", f);',
        'auto name = up ? "high_up" : "x";',
        'auto name = "high" "_up";',
        'auto name = "high";',
        'const char* string_name = "high";',
        'auto name = @"high";',
        'lib.getPipelineStateForFunc("high"); lib.getPipelineStateForFunc("a_high");',
        'check("high()"); check("high_out()"); ',
    ],
)
def test_other_literals_stay(body: str) -> None:
    other = body.replace("high", "low")
    assert merge_bodies((body, other), ()) is None or read_shape(body) != read_shape(other)
