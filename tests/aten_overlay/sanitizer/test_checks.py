"""The list of checks, as users write it."""

from __future__ import annotations

import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.sanitizer.checks import CHECKS, NAMES, VARIABLE, mask, parse, select


def test_checks_come_in_the_order_of_the_table_and_each_once() -> None:
    assert parse(" bounds,races , bounds,") == ("races", "bounds")


def test_all_is_every_check_and_none_is_no_check() -> None:
    assert parse("all") == parse("races,all") == NAMES
    assert parse("none") == parse("") == ()


def test_a_check_whose_findings_may_be_meant_is_asked_for_by_its_name() -> None:
    assert "nan" not in NAMES and parse("nan,all") == tuple(check.name for check in CHECKS)


def test_an_unknown_check_is_refused_with_the_known_ones() -> None:
    with pytest.raises(OverlayError, match="no check named `race`") as caught:
        parse("races,race")
    assert caught.value.code == "PTR260"
    assert all(name in caught.value.hint for name in NAMES)


def test_what_is_not_said_is_the_default() -> None:
    assert select(("bounds",), {}) == ("bounds",)
    assert select(("bounds",), {VARIABLE: "races"}) == ("races",)
    assert select(("bounds",), {VARIABLE: "none"}) == ()


def test_every_check_has_a_bit_of_its_own() -> None:
    assert mask(NAMES) == sum(mask([name]) for name in NAMES)
    assert len({check.bit for check in CHECKS}) == len(CHECKS)
