"""The coded errors of porter and of aten_overlay say the same."""

from __future__ import annotations

import pytest

from aten_overlay import errors as overlay
from aten_overlay.errors import OverlayError
from porter.core.errors import Place, PorterError
from porter.verdict.errors import raising_overlay_errors, raising_porter_errors

TEXTS = [
    (("PTR101", "it does not compile", ("k.metal", 3), "Correct it."), "k.metal:3: PTR101 it does not compile\n  Correct it."),
    (("PTR101", "it does not compile", ("k.metal", 0), ""), "k.metal: PTR101 it does not compile"),
    (("PTR100", "there is no compiler", None, ""), "PTR100 there is no compiler"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "text"), TEXTS)
def test_both_print_alike_and_turn_into_each_other(
    parts: tuple[str, str, tuple[str, int] | None, str], text: str
) -> None:
    code, what, place, hint = parts
    theirs = OverlayError(code, what, overlay.Place(*place) if place else None, hint)
    with pytest.raises(PorterError) as mine, raising_porter_errors():
        raise theirs
    with pytest.raises(OverlayError) as back, raising_overlay_errors():
        raise mine.value
    assert str(theirs) == str(mine.value) == str(back.value) == text
    assert (mine.value.code, mine.value.place, mine.value.hint) == (code, Place(*place) if place else None, hint)
    assert mine.value.__cause__ is theirs


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(KeyError), raising_porter_errors(), raising_overlay_errors():
        raise KeyError
