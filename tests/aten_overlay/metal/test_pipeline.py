"""Which passes run over a module of each kind of library, and in which order."""

from __future__ import annotations

import pytest

from aten_overlay.metal.pipeline import PASSES, Kind, Stage


def list_passes(stage: Stage, *properties: str) -> list[str]:
    names = ("sanitized", "watched", "measured", "opened", "weighed", "traced", "quick", "fast", "shared")
    kind = Kind(**{name: name in properties for name in names})
    return [each.name for each in PASSES if each.stage is stage and each.applies(kind)]


ALWAYS = ["define_operations", "offer_wide_functions", "tell_of_updates"]


@pytest.mark.parametrize(
    ("properties", "lowered", "simplified"),
    [
        (("fast",), [*ALWAYS, "ask_for_lock"], None),
        (("fast", "shared"), ALWAYS, ["complete_in_lockstep", "ask_for_lock_of_shared"]),
        (("quick", "shared"), ["stop_unrolling", "relax_inlining", *ALWAYS], ["complete"]),
        (("traced", "shared"), ["mark_lines", *ALWAYS], ["complete"]),
        (("sanitized", "traced", "shared"), ALWAYS, ["mark_meetings", "drop_places", "complete"]),
        (
            ("sanitized", "watched", "shared"),
            ["copy_values", "inline_all", "mark_undefined", "defer_to_sanitizer", *ALWAYS],
            ["mark_meetings", "watch_undefined", "watch_accesses", "complete"],
        ),
        (
            ("sanitized", "watched", "measured"),
            ["watch_widths", "copy_values", "inline_all", "mark_undefined", "defer_to_sanitizer", *ALWAYS],
            None,
        ),
        (
            ("sanitized", "watched", "opened"),
            [
                "copy_values", "inline_all", "mark_undefined", "defer_to_sanitizer", "mark_open_results",
                "offer_wide_functions", "tell_of_updates",
            ],
            ["place_values", "mark_meetings", "watch_undefined", "watch_accesses", "complete"],
        ),
        (
            ("sanitized", "watched", "weighed"),
            ["copy_values", "inline_all", "watch_values", "mark_undefined", "defer_to_sanitizer", *ALWAYS],
            ["place_values", "mark_meetings", "watch_undefined", "watch_accesses", "complete"],
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_each_kind_of_library_has_its_passes_in_order(
    properties: tuple[str, ...], lowered: list[str], simplified: list[str] | None
) -> None:
    assert list_passes(Stage.LOWERED, *properties) == lowered
    if simplified is not None:
        assert list_passes(Stage.SIMPLIFIED, *properties) == simplified


def test_every_pass_has_a_name_of_its_own() -> None:
    assert len({each.name for each in PASSES}) == len(PASSES)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (("watched",), "watches"), (("sanitized", "fast"), "runs fast"), (("sanitized", "measured"), "numbers are looked at"),
        (("sanitized", "weighed"), "numbers are looked at"), (("sanitized", "opened"), "numbers are looked at"),
    ],
)  # fmt: skip
def test_a_kind_that_contradicts_itself_is_refused(properties: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list_passes(Stage.LOWERED, *properties)
