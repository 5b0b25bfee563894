"""What views a temporary is not declared without it."""

import pytest

from porter.languages.inlining import Owned, own_viewed

OPTIONAL = "OptionalIntArrayRef"


@pytest.mark.parametrize(
    ("type_", "argument", "owned"),
    [
        ("IntArrayRef", "{0, dim}", Owned("const std::array<int64_t, 2>", "{0, dim}", True)),
        ("IntArrayRef", "makeArrayRef<int64_t>(2)", Owned("const std::array<int64_t, 1>", "{2}", True)),
        (OPTIONAL, "IntArrayRef({0, 1})", Owned("const std::array<int64_t, 2>", "{0, 1}", True)),
        (OPTIONAL, "IntArrayRef(dims, 1)", Owned(OPTIONAL, "IntArrayRef(dims, 1)")),
        ("IntArrayRef", "dim.value_or(IntArrayRef{})", Owned("IntArrayRef", "dim.value_or(IntArrayRef{})")),
        ("IntArrayRef", "self.sizes()", Owned("IntArrayRef", "self.sizes()")),
        ("const OptionalScalarRef&", "OptionalScalarRef(p)", Owned("const Scalar", "Scalar(p)", True)),
        (
            OPTIONAL,
            "dim.has_value() ? OptionalIntArrayRef({*dim}) : std::nullopt",
            Owned(OPTIONAL, "dim.has_value() ? OptionalIntArrayRef(*dim) : std::nullopt"),
        ),
        ("const Tensor&", "self.to(kFloat)", Owned("const Tensor&", "self.to(kFloat)")),
    ],
)
def test_what_a_view_is_of_is_kept(type_: str, argument: str, owned: Owned) -> None:
    assert own_viewed(type_, argument) == owned


@pytest.mark.parametrize(
    "argument", ["self.sizes().vec()", "std::vector<int64_t>(2, 1)", "OptionalIntArrayRef(dim + 1)", "a ? b.vec() : c"]
)
def test_a_view_of_what_may_end_with_the_statement_is_not_declared(argument: str) -> None:
    assert own_viewed(OPTIONAL, argument) is None
