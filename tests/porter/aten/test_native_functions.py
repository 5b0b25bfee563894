from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.aten.declarations import parse_base_name
from porter.aten.native_functions import NativeFunction, NativeFunctions, _latest, _parse, share_edits
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS

ROWS = """\
# a comment that stays
- func: atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  device_check: NoCheck
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA: atan2_out
    MPS: atan2_out_mps   # old
  tags: [ core, pointwise ]

- func: atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)
  structured_delegate: atan2.out

- func: atan2(Tensor self, Tensor other) -> Tensor
  structured_delegate: atan2.out

- func: sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, CUDA, MPS, MTIA: sub_out

- func: pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    SparseCPU, SparseCUDA: pow_out_sparse_scalar
    CPU, CUDA, MTIA: pow_Tensor_Scalar_out
    MPS, XPU: pow_tensor_scalar_out_mps

- func: only(Tensor self, int[2] sizes=[1, 2]) -> Tensor
  dispatch:
    CompositeExplicitAutograd: only
"""


def fork(tmp_path: Path, text: str) -> Checkout:
    path = tmp_path / NATIVE_FUNCTIONS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return Checkout(tmp_path, "test")


def applied(text: str, edits: tuple[Edit, ...]) -> str:
    for edit in sorted(edits, key=lambda e: -e.start):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def test_family_of_a_base_name_and_of_an_overload(tmp_path: Path) -> None:
    functions = NativeFunctions.read(fork(tmp_path, ROWS))
    names = ["atan2.out", "atan2_", "atan2"]
    assert [e.name for e in functions.find_overloads("atan2")] == names
    assert [e.name for e in functions.find_overloads("atan2.out")] == names
    assert [e.name for e in functions.find_overloads("atan2_")] == names


def test_an_unknown_operator_suggests_similar_names(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR012") as caught:
        NativeFunctions.read(fork(tmp_path, ROWS)).find_overloads("atan")
    assert caught.value.hint == "Did you mean atan2?"


def test_unknown_overload_names_its_neighbors(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR012") as caught:
        NativeFunctions.read(fork(tmp_path, ROWS)).find_overloads("atan2.ou")
    assert caught.value.hint == "Did you mean atan2.out?"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("atan2.Tensor", "atan2.out"),
        ("ATAN2", "atan2"),
        ("aten::atan2", "atan2"),
        ("torch.atan2", "atan2"),
        ("torch.nn.functional.atan2", "atan2"),
    ],
)
def test_another_spelling_of_an_operator_leads_to_its_name(tmp_path: Path, name: str, near: str) -> None:
    assert NativeFunctions.read(fork(tmp_path, ROWS)).suggest(name) == (near,)


def test_two_rows_of_one_name_are_refused(tmp_path: Path) -> None:
    at = ROWS.index("- func: atan2.out(")
    twice = f"{ROWS.rstrip()}\n\n{ROWS[at:]}"
    with pytest.raises(PorterError, match=r"PTR500 atan2\.out has a row in line") as caught:
        NativeFunctions.read(fork(tmp_path, twice))
    assert caught.value.place and caught.value.place.line > twice.count("\n", 0, at) + 1


@given(st.text("atn2._subpowlir", max_size=9))
def test_near_names_exist_and_differ(name: str) -> None:
    functions = NativeFunctions.read(Checkout(EMBEDDED_FORK, "test"))
    near = functions.suggest(name)
    assert len(set(near)) == len(near)
    assert all(functions.find_overloads(each) for each in near)


def test_mps_joins_the_shared_entry_and_nothing_else_changes(tmp_path: Path) -> None:
    functions = NativeFunctions.read(fork(tmp_path, ROWS))
    entry = functions.by_name["atan2.out"]
    target = entry.entry_for("CPU")
    assert target is not None
    after = applied(ROWS, share_edits(functions, entry, target))
    expected = ROWS.replace(
        "    CPU, CUDA: atan2_out\n    MPS: atan2_out_mps   # old\n", "    CPU, CUDA, MPS: atan2_out\n"
    )
    assert after == expected


def test_the_key_order_of_the_file_decides(tmp_path: Path) -> None:
    functions = NativeFunctions.read(fork(tmp_path, ROWS))
    entry = functions.by_name["pow.Tensor_Scalar_out"]
    target = entry.entry_for("CUDA")
    assert target is not None
    after = applied(ROWS, share_edits(functions, entry, target))
    assert "    CPU, CUDA, MPS, MTIA: pow_Tensor_Scalar_out\n    XPU: pow_tensor_scalar_out_mps\n" in after


def test_arguments_keep_types_names_and_defaults(tmp_path: Path) -> None:
    functions = NativeFunctions.read(fork(tmp_path, ROWS))
    assert [(a.type, a.name, a.default) for a in functions.by_name["sub.out"].arguments] == [
        ("Tensor", "self", None),
        ("Tensor", "other", None),
        ("Scalar", "alpha", "1"),
        ("Tensor(a!)", "out", None),
    ]
    assert functions.by_name["only"].arguments[1].default == "[1, 2]"
    assert functions.by_name["only"].is_composite
    assert [a.name for a in functions.by_name["atan2_"].inputs] == ["self", "other"]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("- func: f(Tensor self) -> Tensor\n  dispatch: [\n", "PTR010", 3),
        ("- func: f(Tensor self) -> Tensor\n- variants: method\n", "PTR011", 2),
        ("- func: f(Tensor self) -> Tensor\n  dispatch: CPU\n", "PTR011", 2),
        ("- func: f(Tensor self) -> Tensor\n<<<<<<< ours\n", "PTR005", 2),
    ],
)
def test_bad_yaml_is_refused_with_its_line(tmp_path: Path, text: str, code: str, line: int) -> None:
    with pytest.raises(PorterError) as caught:
        NativeFunctions.read(fork(tmp_path, text))
    assert caught.value.code == code
    assert caught.value.place is not None
    assert caught.value.place.line == line


@given(st.permutations(["CPU", "CUDA", "MTIA", "XPU", "SparseCPU"]), st.integers(1, 5))
def test_adding_mps_keeps_the_others_in_order(keys: list[str], count: int) -> None:
    chosen = keys[:count]
    joined = NativeFunctions(((), (), ()), {}, Counter()).add_mps_key(chosen)
    assert [key for key in joined if key != "MPS"] == chosen
    assert joined.count("MPS") == 1
    if "CUDA" in chosen:
        assert joined.index("MPS") > joined.index("CUDA")


@given(st.integers(0, 3), st.integers(0, 3))
def test_spans_and_lines_follow_an_edit_further_up(comments: int, blanks: int) -> None:
    with_more = "# a comment\n" * comments + "\n" * blanks + ROWS
    fork = Checkout(Path("/nowhere"), "test").layer({NATIVE_FUNCTIONS: with_more})
    lines = with_more.split("\n")
    entries = NativeFunctions.read(fork).all
    assert len(entries) == ROWS.count("- func:") and any(entry.dispatch for entry in entries)
    for entry in entries:
        assert lines[entry.place.line - 1].startswith("- func:")
        for line in entry.dispatch:
            keys = [key.strip() for key in with_more[line.keys_start : line.keys_end].split(",")]
            assert tuple(keys) == line.keys
            assert lines[line.place.line - 1].strip() == with_more[line.start : line.end].strip()


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("atan2_", "atan2"),
        ("atan2.out", "atan2"),
        ("_fused_adam_.tensor_lr", "_fused_adam"),
        ("__and__.Scalar", "__and__"),
        ("__iand__.Scalar", "__and__"),
        ("__ilshift__.Tensor", "__lshift__"),
        ("__inner__", "__inner__"),
    ],
)
def test_a_row_name_gives_its_operator(name: str, base: str) -> None:
    assert parse_base_name(name) == base


@given(
    st.integers(0, ROWS.count("\n")),
    st.integers(0, 3),
    st.sampled_from(["", "  # more\n", "- func: g(Tensor self) -> Tensor\n"]),
)
def test_an_edited_file_is_read_as_one_that_is_new(at: int, gone: int, new: str) -> None:
    lines = ROWS.splitlines(keepends=True)
    edited = "".join([*lines[:at], new, *lines[at + gone :]])

    def read(text: str) -> tuple[NativeFunction, ...] | tuple[str, str, int]:
        try:
            return NativeFunctions.read(Checkout(Path("/nowhere"), "test").layer({NATIVE_FUNCTIONS: text})).all
        except PorterError as error:
            return error.code, error.what, error.place.line if error.place else 0

    read(ROWS)
    after_the_other = read(edited)
    _parse.cache_clear()
    _latest.clear()
    assert after_the_other == read(edited)
