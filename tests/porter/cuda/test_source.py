"""A CUDA file as one compilation for the device sees it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.cuda.loops import evaluate, read_device_source

FILE = """\
#if AT_USE_JITERATOR() && CUDA_VERSION >= 11050
constexpr char bend_name[] = "bend";
const auto bend_string = base_string + jiterator_stringify(
  template <typename T> T bend(T x) { return x + T(1); }
); // bend_string
#else
__device__ float bend(float x) { return x; }
#endif
#ifdef USE_ROCM
not C++ at all (
#endif
"""
PIECES = (
    "#if A\n",
    "#ifdef B\n",
    "#ifndef __CUDACC__\n",
    "#elif 1\n",
    "#else\n",
    "#endif\n",
    "code;\n",
    "/* # */\n",
    "\\\n",
)


def test_one_branch_is_compiled_and_the_string_is_kept_apart() -> None:
    with_it, without = read_device_source(FILE, True), read_device_source(FILE, False)
    assert with_it.text.split() == ["constexpr", "char", "bend_name[]", "=", '"bend";', "//", "bend_string"]
    assert (
        with_it.strings["bend_string"].split("\n")[3].strip()
        == "template <typename T> T bend(T x) { return x + T(1); }"
    )
    assert (with_it.before["bend_string"], with_it.names) == (("base_string",), {"bend_name": "bend"})
    assert without.text.split() == ["float", "bend(float", "x)", "{", "return", "x;", "}"]
    assert not without.strings


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("defined(__CUDACC__)", True),
        ("!defined(USE_ROCM) && AT_USE_JITERATOR()", True),
        ("0 && AT_USE_JITERATOR()", False),
        ("CUDA_VERSION >= 11050 || UNKNOWN", True),
        ("UNKNOWN > 1", False),
        ("what is this", False),
    ],
)
def test_conditions(condition: str, holds: bool) -> None:
    assert evaluate(condition, {"__CUDACC__": 1, "CUDA_VERSION": 12000, "AT_USE_JITERATOR": 1}) is holds


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.booleans())
def test_every_line_and_offset_stays_where_it_was(text: str, jiterator: bool) -> None:
    made = read_device_source(text, jiterator).text
    assert len(made) == len(text)
    assert [at for at, mark in enumerate(made) if mark == "\n"] == [at for at, mark in enumerate(text) if mark == "\n"]
    assert all(new in (old, " ") for new, old in zip(made, text, strict=True))


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert len(read_device_source(text, True).text) == len(text)
