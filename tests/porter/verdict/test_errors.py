"""The coded errors of porter and of aten_overlay say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from aten_overlay import errors as overlay
from aten_overlay.errors import OverlayError
from porter.core.errors import Place, PorterError
from porter.verdict.errors import name_in_fork, raising_overlay_errors, raising_porter_errors

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


def test_files_of_a_private_tree_are_named_as_in_the_fork() -> None:
    what = "no member (and 1 more error)\n/cache/trees/a1/aten/k.metal:9: no type"
    named = name_in_fork(
        PorterError("PTR101", what, Place("/cache/trees/a1/aten/k.metal", 3), "Fix it."), Path("/cache/trees/a1")
    )
    assert named.place == Place("aten/k.metal", 3)
    assert (named.what, named.hint) == ("no member (and 1 more error)\naten/k.metal:9: no type", "Fix it.")
    assert name_in_fork(PorterError("PTR100", "no compiler"), Path("/cache")).place is None
