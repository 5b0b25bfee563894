"""Words that no test's name has are refused before anything runs, and no word that one has."""

from __future__ import annotations

import pytest

from porter.cli import main
from porter.core.errors import PorterError
from porter.verdict.test_names import require_names


@pytest.mark.parametrize(
    "expr", ["nosuch", "error_inputs and nosuch", "test_output_matsh", "(nosuch or nosuch2)", "a b"]
)
def test_a_word_of_no_name_is_refused(expr: str) -> None:
    with pytest.raises(PorterError, match="PTR430"):
        require_names(expr)


@pytest.mark.parametrize(
    "expr",
    [
        "TestConsistencyMPS and float16",
        "softmax_with_dtype_mps_float32",
        "nn_functional_gelu",
        "nosuch or error_inputs",
        "not nosuch",
        "oftma",
    ],
)
def test_what_may_be_in_a_name_is_left_to_the_verdict(expr: str) -> None:
    require_names(expr)


def test_an_operator_that_is_named_has_tests_of_its_name() -> None:
    require_names("softcupp", "softcupp")
    with pytest.raises(PorterError, match="softcupp"):
        require_names("softcupp")


@pytest.mark.parametrize("command", ["migrate", "verify"])
def test_nothing_is_planned_for_it(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("a checkout was opened")

    monkeypatch.setattr("porter.cli.output.Output.open_checkout", refuse)
    assert main([command, "atan2", "-k", "nosuch"]) == 2
    said = capsys.readouterr()
    assert "PTR430" in said.err and said.out == ""
