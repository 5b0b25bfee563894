import ast
from pathlib import Path

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from porter.aten.skip_lists import (
    Change,
    Decision,
    ListKind,
    SkipList,
    decide_all,
    edit_lists,
    find_entries,
    read_lists,
)
from porter.core.change_set import ChangeSet
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import TEST_LISTS

SOURCE = """\
def mps_ops_grad_modifier(ops):
    XFAILLIST_GRAD = {
        'hypot': [torch.float16],
    }


def mps_ops_modifier(
    ops,
):
    SUPPORTED_COMPLEX_OPS = {
        '__radd__',
        'abs',
        'exp',
        'zeros',
        'byte',
    }
    SORTED_SUPPORTED_OPS = {"b"}
    UNIMPLEMENTED_XFAILLIST: dict[str, list | None] = {
        # Not there yet
        'hypot': None,
        'gcd': None,

        # The squares overflow
        # in half precision
        'fmod': [torch.half, torch.float64],  # see the issue
        'atan2': [torch.bool, torch.int16,
                  torch.int64, torch.uint8],
        'dot': [torch.int64] if OLD else [],
        # A reason of its own
        'exp': [torch.float32],
    }
    if MACOS_VERSION < 14.0:
        UNIMPLEMENTED_XFAILLIST.update({
            'hypot': None,
        })
    SKIPLIST = {'hypot': [torch.float16]}
    return ops
"""


def fork(tmp_path: Path, source: str = SOURCE) -> Checkout:
    path = tmp_path / TEST_LISTS[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.encode())
    return Checkout(tmp_path, "a test")


def diff(lists: tuple[SkipList, ...], names: set[str], ported: set[str]) -> str:
    changes = ChangeSet({s.file: s.text for s in lists}, edit_lists(decide_all(lists, names, ported)))
    for text in changes.apply().values():
        ast.parse(text)
    return changes.diff(context=1).split("+++", 1)[-1].split("\n", 1)[-1]


def test_lists_are_found_with_their_kind_function_and_condition(tmp_path: Path) -> None:
    found = [(s.name, s.kind.name.lower(), s.function, s.condition, len(s.entries)) for s in read_lists(fork(tmp_path))]
    assert found == [
        ("XFAILLIST_GRAD", "xfail", "mps_ops_grad_modifier", "", 1),
        ("SUPPORTED_COMPLEX_OPS", "allow", "mps_ops_modifier", "", 5),
        ("SORTED_SUPPORTED_OPS", "allow", "mps_ops_modifier", "", 1),
        ("UNIMPLEMENTED_XFAILLIST", "xfail", "mps_ops_modifier", "", 6),
        ("UNIMPLEMENTED_XFAILLIST", "xfail", "mps_ops_modifier", "MACOS_VERSION < 14.0", 1),
        ("SKIPLIST", "skip", "mps_ops_modifier", "", 1),
    ]


def test_an_entry_has_its_dtypes_line_and_comment(tmp_path: Path) -> None:
    [(_, entry)] = find_entries(read_lists(fork(tmp_path)), {"fmod"})
    assert (entry.dtypes, entry.line, entry.readable) == (("float16", "float64"), 25, True)
    [(_, entry)] = find_entries(read_lists(fork(tmp_path)), {"dot"})
    assert (entry.dtypes, entry.line, entry.readable) == (None, 28, False)


def test_an_entry_is_removed_only_with_its_reason(tmp_path: Path) -> None:
    lists = read_lists(fork(tmp_path))
    made = decide_all(lists, {"hypot", "fmod", "dot", "exp"}, {"float16", "int64"})
    assert_expected_inline(
        "\n".join(f"{d.skip_list.name} {d.name}: {d.change.value}, {d.why}" for d in made),
        """\
XFAILLIST_GRAD hypot: kept, the list is for backward tests
SUPPORTED_COMPLEX_OPS exp: kept, complex types stay allowed
UNIMPLEMENTED_XFAILLIST hypot: removed, every dtype of the operator is native now
UNIMPLEMENTED_XFAILLIST fmod: narrowed, float16: native now
UNIMPLEMENTED_XFAILLIST dot: kept, its dtypes are not written out
UNIMPLEMENTED_XFAILLIST exp: kept, float32: not part of the port
UNIMPLEMENTED_XFAILLIST hypot: kept, the list holds only if MACOS_VERSION < 14.0
SKIPLIST hypot: removed, float16: native now""",
    )


def test_an_entry_stays_for_those_of_its_own_tests_that_fail_still(tmp_path: Path) -> None:
    failing = [
        "TestConsistencyMPS.test_output_match_hypot_mps_int8",
        "TestConsistencyMPS.test_output_match_fmod_mps_float16",
        "TestConsistencyMPS.test_output_match_at_an2_mps_int16",
        "TestConsistencyMPS.test_output_match_fmod_mps_float32",
    ]
    made = decide_all(
        read_lists(fork(tmp_path)),
        {"hypot", "fmod", "atan2", "exp"},
        {"float16", "int16", "int64", "float32"},
        failing=failing,
    )
    assert_expected_inline(
        "\n".join(f"{d.skip_list.name} {d.name}: {d.change.value}, {d.why}" for d in made),
        """\
XFAILLIST_GRAD hypot: kept, the list is for backward tests
SUPPORTED_COMPLEX_OPS exp: kept, complex types stay allowed
UNIMPLEMENTED_XFAILLIST hypot: kept, its test fails still
UNIMPLEMENTED_XFAILLIST fmod: kept, float16: its test fails still
UNIMPLEMENTED_XFAILLIST atan2: narrowed, int64: native now
UNIMPLEMENTED_XFAILLIST exp: removed, float32: native now
UNIMPLEMENTED_XFAILLIST hypot: kept, the list holds only if MACOS_VERSION < 14.0
SKIPLIST hypot: removed, float16: native now""",
    )


def test_only_tests_of_complex_types_join_the_allow_list(tmp_path: Path) -> None:
    made = decide_all(read_lists(fork(tmp_path)), {"hypot", "divfloor", "new"}, {"complex64"}, {"new"})
    assert [(d.skip_list.name, d.name) for d in made if d.change is Change.ADDED] == [("SUPPORTED_COMPLEX_OPS", "new")]


def test_removing_and_narrowing_keep_the_layout(tmp_path: Path) -> None:
    lists = read_lists(fork(tmp_path))
    assert_expected_inline(
        diff(lists, {"hypot", "fmod", "atan2", "exp"}, {"float16", "int16", "int64", "float32"}),
        """\
@@ -19,3 +19,2 @@
         # Not there yet
-        'hypot': None,
         'gcd': None,
@@ -24,8 +23,6 @@
         # in half precision
-        'fmod': [torch.half, torch.float64],  # see the issue
-        'atan2': [torch.bool, torch.int16,
-                  torch.int64, torch.uint8],
+        'fmod': [torch.float64],  # see the issue
+        'atan2': [torch.bool,
+                  torch.uint8],
         'dot': [torch.int64] if OLD else [],
-        # A reason of its own
-        'exp': [torch.float32],
     }
@@ -35,3 +32,3 @@
         })
-    SKIPLIST = {'hypot': [torch.float16]}
+    SKIPLIST = {}
     return ops
""",
    )


def test_complex_support_joins_a_sorted_allow_list_in_order(tmp_path: Path) -> None:
    assert_expected_inline(
        diff(read_lists(fork(tmp_path)), {"gcd", "neg", "hypot"}, {"complex64"}).split("@@\n")[1].split("@@")[0],
        """\
         'exp',
+        'gcd',
+        'hypot',
+        'neg',
         'zeros',
""",
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(data=st.data())
def test_removing_any_entries_leaves_valid_python_and_all_else(newline: str, data: st.DataObject) -> None:
    text = SOURCE.replace("\n", newline)
    checkout = Checkout(Path("/nowhere"), "a test").layer({TEST_LISTS[1]: text})
    lists = read_lists_of(checkout)
    found = data.draw(st.sampled_from([s for s in lists if s.entries]))
    gone = set(data.draw(st.lists(st.sampled_from([e.name for e in found.entries]), unique=True)))
    edits = edit_lists(Decision(found, name, Change.REMOVED, None, "") for name in gone)
    after = ChangeSet({found.file: text}, edits).apply().get(found.file, text)
    start, end = found.expression.start, found.expression.end
    assert after.startswith(text[:start])
    assert after.endswith(text[end:])
    ast.parse(after)
    again = read_lists_of(checkout.layer({found.file: after}))
    at = lists.index(found)
    for i, (one, two) in enumerate(zip(lists, again, strict=True)):
        kept = [(e.name, e.dtypes) for e in one.entries if i != at or e.name not in gone]
        assert [(e.name, e.dtypes) for e in two.entries] == kept


def read_lists_of(checkout: Checkout) -> tuple[SkipList, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkout, "exists", lambda self, path: path in self._texts)
        return read_lists(checkout)


UNSUPPORTED = """\
def mps_ops_modifier(ops):
    UNSUPPORTED_COMPLEX_OPS = {
        'addr',
        'asinh',
        'ormqr',
    }
    return ops
"""


def test_operators_whose_complex_tests_are_expected_to_fail_leave_their_list_and_none_joins_it(tmp_path: Path) -> None:
    lists = read_lists(fork(tmp_path, UNSUPPORTED))
    assert [found.kind for found in lists] == [ListKind.REFUSE]
    failing = ["TestConsistencyMPS.test_output_match_ormqr_mps_complex64"]
    decisions = decide_all(lists, {"addr", "ormqr", "acosh"}, {"float32", "complex64"}, failing=failing)
    decisions += decide_all(lists, {"asinh"}, {"float32"})
    assert_expected_inline(
        "\n".join(f"{d.name}: {d.change.value}, {d.why}" for d in decisions),
        """\
addr: removed, complex types are native now
ormqr: kept, complex64: its test fails still
asinh: kept, complex64: not part of the port""",
    )
    assert_expected_inline(
        diff(lists, {"addr"}, {"complex64"}),
        """\
@@ -2,3 +2,2 @@
     UNSUPPORTED_COMPLEX_OPS = {
-        'addr',
         'asinh',
""",
    )


def test_the_embedded_fork_has_lists_of_every_kind_of_its_release() -> None:
    kinds = {found.kind for found in read_lists(Checkout(EMBEDDED_FORK, "embedded"))}
    assert kinds == set(ListKind) - {ListKind.REFUSE}


def test_a_checkout_without_lists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PorterError) as caught:
        read_lists(fork(tmp_path, "def mps_ops_modifier(ops):\n    return ops\n"))
    assert caught.value.code == "PTR068"
