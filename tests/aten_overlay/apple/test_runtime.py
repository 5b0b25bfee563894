"""The Objective-C runtime and Foundation of the stand-in, by programs compiled against them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.aten_overlay.apple.objective_c import build_program

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def tell() -> Callable[[str], str]:
    library = ctypes.CDLL(str(build_program("objects", HERE / "programs" / "objects.mm")))

    def run(name: str) -> str:
        function = library[name]
        function.restype = ctypes.c_char_p
        return str(function().decode())

    return run


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("classes", "43 63 1.5 1 7-hi-2.50 1 10 | left 0"),
        ("collections", "1 2.5 x 111 1 3,4 | left 0"),
        ("blocks", "9 5 2 1 | left 0"),
        ("lambdas", "9 9 1 6 1 | left 0"),
        ("released_twice", "1 | left 0"),
        ("nothing", "01 | left 0"),
    ],
)
def test_programs_see_foundation_and_release_everything(tell: Callable[[str], str], name: str, told: str) -> None:
    assert tell(name) == told


def test_a_program_with_automatic_reference_counting_releases_everything() -> None:
    path = build_program("counted", HERE / "programs" / "counted.mm", "-fobjc-arc", "-fobjc-weak")
    function = ctypes.CDLL(str(path))["counted"]
    function.restype = ctypes.c_char_p
    expected = "kept 3 4 | weak 1 0 | caught NSGenericException: bad 7 | 2 files 10 | least 1 most 3 | left 0"
    assert function().decode() == expected


def test_an_out_of_range_array_index_is_an_error(tell: Callable[[str], str]) -> None:
    assert tell("beyond").startswith("! PTR121: index 3 is beyond an array of 1")


def test_a_queue_waiting_on_itself_is_an_error(tell: Callable[[str], str]) -> None:
    assert tell("queues").startswith("9 ! PTR122: dispatch_sync to queue `q` from a block running on it")


def test_a_message_without_a_method_is_decoded_for_its_handler(tell: Callable[[str], str]) -> None:
    decoded, refused = tell("forwarded").split(" / ")
    assert decoded == "message:with:object:flag:size: 5 1.25 -2 array 1 0.5"
    assert refused.startswith("refused! PTR120: -[Derived message:with:object:flag:size:] is not supported")
