"""Names that would stand in the way of a language or a program are refused with a reason."""

from __future__ import annotations

import builtins
import keyword
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.errors import PorterError
from porter.core.names import C_WORDS, explain_module, explain_word
from porter.kernels.extension.project import check_name
from porter.plan.new_operator.operator import parse_schema
from porter.workflows.templates import find_templates, write_new
from tests.conftest import ROOT

MODULES = (
    "torch",
    "numpy",
    "pytest",
    "yaml",
    "click",
    "os",
    "json",
    "sitecustomize",
    "usercustomize",
    "conftest",
    "setup",
)


@pytest.mark.parametrize(
    "name", [*MODULES, "class", "template", "threadgroup", "print", "a" * 101, "\u00e4", "a-b", ""]
)
def test_a_module_that_hides_another_or_is_no_name_is_refused(name: str) -> None:
    assert explain_module(name)


@given(st.sampled_from(sorted({*sys.stdlib_module_names, *keyword.kwlist, *dir(builtins), *C_WORDS})))
def test_no_name_of_a_language_or_its_library_is_a_module(name: str) -> None:
    assert explain_module(name)


@pytest.mark.parametrize("name", ["rms_norm", "fused_ops", "a" * 100, *(each.name for each in find_templates())])
def test_names_of_ones_own_are_taken(name: str) -> None:
    assert (explain_module(name), explain_word(name)) == ("", "")


@pytest.mark.parametrize("name", [*MODULES, "class", "n" * 300])
def test_commands_refuse_the_same_names(name: str) -> None:
    for use, code in (
        (lambda: check_name(name), "PTR251"),
        (lambda: write_new("quickstart", name, ROOT / "nowhere"), "PTR237"),
    ):
        with pytest.raises(PorterError) as caught:
            use()
        assert caught.value.code == code
    assert not (ROOT / "nowhere").exists()


@pytest.mark.parametrize("name", ["class", "template", "xor", "main", "n" * 300])
def test_an_operator_is_no_word_of_any_of_its_languages(name: str) -> None:
    with pytest.raises(PorterError) as caught:
        parse_schema(f"{name}(Tensor self) -> Tensor")
    assert caught.value.code == "PTR367"
