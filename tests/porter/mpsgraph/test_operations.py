"""The table of operations: every row says only what it knows, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.dtypes import Kind
from porter.metal.candidates import form_body
from porter.mpsgraph import operations as table
from porter.mpsgraph.operations import (
    Operation,
    by_cpp_name,
    by_op,
    by_selector,
    find_headers,
    find_written_form,
    helpers,
    operations,
)

FILES = tuple(Path(table.__file__).with_name("operations").glob("*.yaml"))
ROWS = tuple(operations().values())


def test_no_selector_and_no_cpp_name_has_two_rows() -> None:
    assert len(by_selector()) == len(by_op())
    assert len(by_cpp_name()) == sum(len(row.cpp.names) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op)
def test_a_form_takes_the_arguments_that_the_selector_has(row: Operation) -> None:
    if row.selector:
        slots = {int(place) for place in re.findall(r"\{(\d)\}", row.msl)}
        assert slots == set(range(len(row.selector.split(":"))))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op)
def test_what_a_row_names_is_a_row_with_a_form(row: Operation) -> None:
    named = (*row.sends, *([row.cpp.quiet] if row.cpp.quiet else []))
    assert all(operations()[name].msl for name in named)
    forms = (row.msl, row.complex_msl, row.cpp.floating, row.cpp.integral, row.cpp.complex)
    assert all(form not in operations() for form in forms if form)


def test_no_form_is_spelled_twice_in_the_files() -> None:
    written = [form for path in FILES for form in re.findall(r'\bmetal: "(.*?)"', path.read_text())]
    assert len(written) > 60
    assert len(written) == len(set(written))


def test_helpers_stand_behind_those_they_call() -> None:
    names = list(helpers())
    for at, text in enumerate(helpers().values()):
        called = set(re.findall(r"\b(\w+)\(", text)) & set(names)
        assert called <= set(names[: at + 1])


def test_a_written_meaning_brings_all_that_it_calls() -> None:
    written = find_written_form("logaddexp", Kind.COMPLEX)
    assert written is not None
    assert written.arguments == ("z", "w")
    assert written.helpers == ("complex_log_abs", "complex_log1p", "complex_exp", "complex_logaddexp")
    assert written.path == "porter/mpsgraph/operations/powers.yaml"


def test_a_meaning_is_found_by_the_cpp_name_too() -> None:
    assert find_written_form("abs", Kind.COMPLEX) == find_written_form("absolute", Kind.COMPLEX) is not None
    assert find_written_form("abs", Kind.FLOATING) is None
    assert find_written_form("no such function", Kind.COMPLEX) is None


def test_a_body_of_another_arity_is_none() -> None:
    assert form_body(Kind.COMPLEX, "division", ["a"], "T") is None


def test_a_body_with_statements_names_its_arguments() -> None:
    body = form_body(Kind.COMPLEX, "exponentBase2", ["a"], "T")
    assert body is not None
    assert_expected_inline(
        "\n".join(body.statements),
        """\
const float2 z = float2(a);
const float scale = precise::exp2(z.x);
const float angle = z.y * M_LN2_F;
return T(z.y == 0 ? float2(scale, z.y) : float2(scale * precise::cos(angle), scale * precise::sin(angle)));""",
    )


def test_cpp_forms_stand_behind_using_namespace_metal() -> None:
    assert by_cpp_name()["isnan"].cpp.complex == "metal::any(metal::isnan({0}))"
    assert by_cpp_name()["isnan"] is by_cpp_name()["_isnan"]
    assert by_cpp_name()["conj"].cpp.complex == "c10::metal::conj({0})"


def test_headers_are_those_of_what_a_text_calls() -> None:
    assert find_headers("c10::metal::erfinv(a) + precise::exp(b)") == ("c10/metal/special_math.h",)
    assert find_headers("precise::exp(b)") == ()
