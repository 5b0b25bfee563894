"""Names of functions that several call."""

import pytest

from porter.plan.recorded.sharing import list_shared_names


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (("turn1d_out_mps", "turn3d_out_mps"), "turn_out_mps_impl"),
        (("left_turn1d_backward_out_mps", "right_turn1d_backward_out_mps"), "turn1d_backward_out_mps_impl"),
        (("high_mps_out", "low_mps_out"), "high_low_out_mps_impl"),
        (("high_mps", "low_mps", "mean_mps"), "high_low_mean_mps_impl"),
        (("turn_nearest1d_out_mps", "_turn_nearest_exact1d_out_mps"), "turn_nearest1d_out_mps_impl"),
        (("turn_mps", "turn_mps"), "turn_mps_impl"),
    ],
)
def test_a_name_is_what_the_names_have_in_common(names: tuple[str, ...], shared: str) -> None:
    assert list_shared_names(names)[0] == shared


def test_there_is_another_for_a_file_that_has_the_first() -> None:
    assert list_shared_names(("turn1d_mps", "turn2d_mps")) == ("turn_mps_impl", "turn_mps_template")
