import subprocess
from pathlib import Path

import pytest
from expecttest import assert_expected_inline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from porter.core.change_set import ChangeSet
from porter.core.edits import Edit
from porter.core.errors import PorterError

TEXT = st.text(st.sampled_from("ab \n\n\r\t-+\\é\x0c\u2028"), max_size=60)


@st.composite
def edited(draw: st.DrawFn, file: str) -> tuple[str, list[Edit]]:
    """A text and edits of it that do not overlap, in any order."""
    text = draw(TEXT)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits = [Edit(file, start, end, draw(TEXT)) for start, end in spans]
    inserts_first = [e for e in edits if e.start == e.end] + [e for e in edits if e.start != e.end]
    return text, inserts_first


@st.composite
def change_sets(draw: st.DrawFn) -> ChangeSet:
    base: dict[str, str] = {}
    edits: list[Edit] = []
    for file in draw(st.lists(st.sampled_from(["a.mm", "x/b.py", "x/with space.h"]), unique=True)):
        base[file], some = draw(edited(file))
        edits += some
    if draw(st.booleans()):
        edits.append(Edit("new/file.txt", 0, 0, draw(TEXT)))
    deleted = frozenset(["gone"]) if draw(st.booleans()) else frozenset[str]()
    if deleted:
        base["gone"] = draw(TEXT)
    return ChangeSet(base, tuple(edits), deleted)


@st.composite
def change_sets_of(draw: st.DrawFn, texts: dict[str, str]) -> ChangeSet:
    """Edits, deletions and new files on top of these texts."""
    edits: list[Edit] = []
    for file, text in texts.items():
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
        edits += [Edit(file, start, end, draw(TEXT)) for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    edits += [Edit(file, 0, 0, draw(TEXT)) for file in ("gone", "other") if file not in texts and draw(st.booleans())]
    edited_files = {edit.file for edit in edits}
    deleted = {file for file in texts if file not in edited_files and draw(st.booleans())}
    return ChangeSet(texts, tuple(edits), frozenset(deleted))


def after(changes: ChangeSet) -> dict[str, str]:
    return {f: t for f, t in {**changes.base, **changes.apply()}.items() if f not in changes.deleted}


@given(change_sets(), st.integers(0, 4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_git_applies_the_diff_and_gets_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, changes: ChangeSet, context: int
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for file, text in changes.base.items():
        put(root / file, text)
    diff = changes.diff(context).encode()
    if diff:
        flags = ["--unidiff-zero"] if context == 0 else []
        subprocess.run(["git", "apply", "--whitespace=nowarn", *flags], cwd=root, input=diff, check=True)
    found = {str(p.relative_to(root)): p.read_bytes().decode() for p in root.rglob("*") if p.is_file()}
    # Those that edits leave empty are deleted.
    assert found == {f: text for f, text in after(changes).items() if text or not changes.base.get(f)}


@given(st.data())
def test_two_steps_combine_into_what_they_leave_one_after_the_other(data: st.DataObject) -> None:
    first = data.draw(change_sets())
    left = {**first.base, **first.apply()}
    for file in first.deleted:
        del left[file]
    second = data.draw(change_sets_of(left))
    combined = first.combine(second)
    assert after(combined) == after(second)
    assert all(combined.base[file] == text for file, text in first.base.items())


def test_an_edit_of_inserted_text_stays_one_edit_of_the_base() -> None:
    first = ChangeSet({"f": "ad"}, (Edit("f", 1, 1, "bXc"),))
    second = ChangeSet({"f": "abXcd"}, (Edit("f", 2, 3, ""), Edit("f", 5, 5, "e")))
    assert first.combine(second).edits == (Edit("f", 1, 1, "bc"), Edit("f", 2, 2, "e"))


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))


def test_insertions_stand_in_order_before_a_replacement() -> None:
    edits = (Edit("f", 1, 1, "X"), Edit("f", 1, 2, "B"), Edit("f", 1, 1, "Y"))
    assert ChangeSet({"f": "abc"}, edits).apply() == {"f": "aXYBc"}


def test_overlap_is_refused_at_its_line() -> None:
    with pytest.raises(PorterError, match="same text") as caught:
        ChangeSet({"f": "one\ntwo\n"}, (Edit("f", 0, 6, ""), Edit("f", 5, 7, "")))
    assert (caught.value.code, str(caught.value.place)) == ("PTR050", "f:2")


@pytest.mark.parametrize(
    ("code", "edits", "deleted"),
    [
        ("PTR051", (Edit("f", 0, 9, ""),), frozenset()),
        ("PTR051", (Edit("new", 1, 1, ""),), frozenset()),
        ("PTR052", (Edit("f", 0, 1, ""),), frozenset(["f"])),
        ("PTR052", (), frozenset(["absent"])),
    ],
)
def test_impossible_edits_are_refused(code: str, edits: tuple[Edit, ...], deleted: frozenset[str]) -> None:
    with pytest.raises(PorterError) as caught:
        ChangeSet({"f": "abc"}, edits, deleted)
    assert caught.value.code == code


def test_steps_planned_on_other_texts_do_not_combine() -> None:
    with pytest.raises(PorterError) as caught:
        ChangeSet({"f": "a"}, ()).combine(ChangeSet({"f": "b"}, ()))
    assert caught.value.code == "PTR053"


def test_the_diff_reads_as_git_prints_it() -> None:
    changes = ChangeSet(
        {"k.mm": "one\r\ntwo\r\nthree", "old.h": "gone\n", "same": "text\n"},
        (Edit("k.mm", 5, 8, "TWO"), Edit("new.h", 0, 0, "here\n"), Edit("same", 0, 4, "text")),
        frozenset(["old.h"]),
    )
    assert_expected_inline(
        changes.diff(context=1).replace("\r", "<CR>"),
        """\
diff --git a/k.mm b/k.mm
--- a/k.mm
+++ b/k.mm
@@ -1,3 +1,3 @@
 one<CR>
-two<CR>
+TWO<CR>
 three
\\ No newline at end of file
diff --git a/new.h b/new.h
new file mode 100644
--- /dev/null
+++ b/new.h
@@ -0,0 +1,1 @@
+here
diff --git a/old.h b/old.h
deleted file mode 100644
--- a/old.h
+++ /dev/null
@@ -1,1 +0,0 @@
-gone
""",
    )
