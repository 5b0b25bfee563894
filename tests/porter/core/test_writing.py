import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from porter.core import journal
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.journal import recover, undo
from porter.core.writing import write

BEFORE = {"a.mm": b"one\r\ntwo\r\n", "sub/b.py": b"x = 1", "old.h": b"\xff gone\n", "other": b"read only\n"}
AFTER = {"a.mm": b"one\r\nTWO\r\n", "sub/b.py": b"x = 2", "new/deep/c.h": b"", "other": b"read only\n"}
MUTATORS = ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync", "chmod")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for file, data in BEFORE.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(data)
    (tmp_path / "a.mm").chmod(0o755)
    return tmp_path


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are counted, the disk is not waited for."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def planned(root: Path) -> tuple[Checkout, ChangeSet]:
    checkout = Checkout(root, "a test")
    base = {file: checkout.read(file) for file in BEFORE}
    edits = (Edit("a.mm", 5, 8, "TWO"), Edit("sub/b.py", 4, 5, "2"), Edit("new/deep/c.h", 0, 0, ""))
    return checkout, ChangeSet(base, edits, frozenset(["old.h"]))


def tree(root: Path) -> dict[str, bytes]:
    found = (p for p in root.rglob("*") if p.is_file() and not {".porter", ".git"} & set(p.relative_to(root).parts))
    return {str(p.relative_to(root)): p.read_bytes() for p in found}


def code(act: Callable[[], object]) -> str:
    with pytest.raises(PorterError) as caught:
        act()
    return caught.value.code


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *arguments], cwd=root, check=True)


def test_writing_and_undoing_are_exact(root: Path) -> None:
    checkout, changes = planned(root)
    (root / "old.h").chmod(0o600)
    assert set(write(checkout, changes)) == {"a.mm", "new/deep/c.h", "old.h", "sub/b.py"}
    assert tree(root) == AFTER
    assert (root / "a.mm").stat().st_mode & 0o777 == 0o755
    assert not (root / ".porter").exists()
    undo(checkout)
    assert tree(root) == BEFORE
    assert not (root / "new").exists()
    assert [(root / f).stat().st_mode & 0o777 for f in ("a.mm", "old.h")] == [0o755, 0o600]
    assert code(lambda: undo(checkout)) == "PTR057"


def test_writing_the_same_again_does_nothing(root: Path) -> None:
    checkout, changes = planned(root)
    write(checkout, changes)
    assert write(checkout, changes) == ()
    undo(checkout)
    assert tree(root) == BEFORE


def test_several_undos_walk_back(root: Path) -> None:
    trees = [tree(root)]
    for word in ("2", "3", "4"):
        checkout = Checkout(root, "a test")
        text = checkout.read("sub/b.py")
        write(checkout, ChangeSet({"sub/b.py": text}, (Edit("sub/b.py", 4, 5, word),)))
        trees.append(tree(root))
    for earlier in reversed(trees[:-1]):
        undo(Checkout(root, "a test"))
        assert tree(root) == earlier


@pytest.mark.parametrize("file", ["a.mm", "other", "old.h"])
def test_a_file_that_changed_since_the_plan_stops_the_write(root: Path, file: str) -> None:
    checkout, changes = planned(root)
    (root / file).write_bytes(b"mine")
    found = tree(root)
    assert code(lambda: write(checkout, changes, force=True)) == "PTR054"
    assert tree(root) == found


def test_a_file_that_appeared_since_the_plan_stops_the_write(root: Path) -> None:
    checkout, changes = planned(root)
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/c.h").write_text("mine")
    assert code(lambda: write(checkout, changes)) == "PTR054"


def test_a_file_that_changed_since_the_write_stops_the_undo(root: Path) -> None:
    checkout, changes = planned(root)
    write(checkout, changes)
    (root / "a.mm").write_bytes(b"mine")
    found = tree(root)
    assert code(lambda: undo(checkout)) == "PTR058"
    assert tree(root) == found


def test_uncommitted_changes_stop_the_write_unless_forced(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    (root / "sub/b.py").write_bytes(b"x = 7")
    checkout, changes = planned(root)
    assert code(lambda: write(checkout, changes)) == "PTR055"
    write(checkout, changes, force=True)
    assert (root / "sub/b.py").read_bytes() == b"x = 2"


def test_what_porter_wrote_itself_does_not_count_as_uncommitted(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    write(*planned(root))
    checkout = Checkout(root, "a test")
    again = ChangeSet({"a.mm": checkout.read("a.mm")}, (Edit("a.mm", 0, 3, "ONE"),))
    assert write(checkout, again) == ("a.mm",)
    status = subprocess.run(["git", "status", "-s"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert status == " M a.mm\n D old.h\n M sub/b.py\n?? new/\n"


def test_a_checkout_below_the_work_tree_uses_its_own_paths(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", "sub")
    git(root, "commit", "-qm", "x")
    (root / "sub/b.py").write_bytes(b"x = 7")
    checkout = Checkout(root / "sub", "a test")
    changes = ChangeSet({"b.py": checkout.read("b.py")}, (Edit("b.py", 0, 1, "y"),))
    with pytest.raises(PorterError) as caught:
        write(checkout, changes)
    assert (caught.value.code, str(caught.value.place)) == ("PTR055", "b.py")


def test_a_git_that_fails_stops_the_write(root: Path) -> None:
    (root / ".git").write_text("gitdir: nowhere\n")
    checkout, changes = planned(root)
    assert code(lambda: write(checkout, changes)) == "PTR063"


@pytest.mark.parametrize("file", ["link/x", "../x", "dangling"])
def test_paths_that_lead_out_are_refused(root: Path, tmp_path_factory: pytest.TempPathFactory, file: str) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (root / "link").symlink_to(outside)
    (root / "dangling").symlink_to(outside / "x")
    assert code(lambda: write(Checkout(root, "a test"), ChangeSet({}, (Edit(file, 0, 0, "text"),)))) == "PTR061"
    assert list(outside.iterdir()) == []
    assert not (root / ".porter").exists()


def test_a_link_inside_the_checkout_stays_a_link(root: Path) -> None:
    (root / "link.mm").symlink_to("a.mm")
    checkout = Checkout(root, "a test")
    write(checkout, ChangeSet({"link.mm": checkout.read("link.mm")}, (Edit("link.mm", 0, 3, "1"),)))
    assert (root / "link.mm").is_symlink()
    assert (root / "a.mm").read_bytes() == b"1\r\ntwo\r\n"


def test_two_processes_do_not_write_at_once(root: Path) -> None:
    checkout, changes = planned(root)
    with journal.locked(checkout):
        assert code(lambda: write(checkout, changes)) == "PTR056"
    assert tree(root) == BEFORE
    assert write(checkout, changes)


def killed_at(step: int, act: Callable[[], object], among: tuple[str, ...] = MUTATORS) -> bool:
    """Runs `act` in a child that dies before its `step`-th change of the disk `among` some; whether it died."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    left = [step]

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return real(*args, **kwargs)

        return call

    for name in among:
        setattr(os, name, dying(getattr(os, name)))
    try:
        act()
    finally:
        os._exit(0)


def test_a_process_killed_at_any_step_leaves_all_or_none(root: Path) -> None:
    outcomes, step = set(), 0
    while True:
        checkout, changes = planned(root)
        died = killed_at(step, partial(write, checkout, changes))
        outcomes.add(recover(Checkout(root, "a test")))
        found = tree(root)
        assert found in (BEFORE, AFTER), step
        if found == AFTER:
            undo(Checkout(root, "a test"))
        assert tree(root) == BEFORE
        assert not (root / "new").exists()
        step += 1
        if not died:
            break
    assert outcomes == {"", "rolled back", "finished"}
    assert step > 20


def test_an_undo_killed_at_any_step_leaves_all_or_none(root: Path) -> None:
    outcomes, step = set(), 0
    while True:
        checkout, changes = planned(root)
        write(checkout, changes)
        died = killed_at(step, partial(undo, checkout))
        outcomes.add(recover(Checkout(root, "a test")))
        found = tree(root)
        assert found in (BEFORE, AFTER), step
        if found == AFTER:
            undo(Checkout(root, "a test"))
        assert tree(root) == BEFORE
        assert code(lambda: undo(Checkout(root, "a test"))) == "PTR057"
        step += 1
        if not died:
            break
    assert outcomes == {"", "rolled back", "finished"}


def test_a_recovery_killed_at_any_step_can_be_repeated(root: Path) -> None:
    step = 0
    while True:
        checkout, changes = planned(root)
        assert killed_at(2, partial(write, checkout, changes), ("rename",))
        died = killed_at(step, partial(recover, checkout))
        recover(checkout)
        assert tree(root) == BEFORE
        step += 1
        if not died:
            break
    assert step > 5


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(step=st.integers(0, 40))
def test_a_failed_system_call_leaves_the_checkout_unchanged(root: Path, step: int) -> None:
    checkout, changes = planned(root)
    left = [step]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "fsync", "chmod"):
            real = getattr(os, name)

            def failing(*args: object, _real: Callable[..., object] = real, **kwargs: object) -> object:
                left[0] -= 1
                if left[0] == -1:
                    raise OSError(28, "No space left on device", "a file")
                return _real(*args, **kwargs)

            patch.setattr(os, name, failing)
        try:
            write(checkout, changes)
        except PorterError as error:
            assert error.code == "PTR060"
            assert tree(root) == BEFORE
    if tree(root) != BEFORE:
        assert tree(root) == AFTER
        undo(checkout)
    assert tree(root) == BEFORE
    assert recover(checkout) == ""


def test_a_file_changed_after_an_interrupted_write_is_left_alone(root: Path) -> None:
    checkout, changes = planned(root)
    assert killed_at(2, lambda: write(checkout, changes), ("rename",))
    (root / "a.mm").write_bytes(b"mine")
    found = tree(root)
    assert code(lambda: recover(checkout)) == "PTR059"
    assert tree(root) == {f: data for f, data in found.items() if not f.endswith(".porter")}
    pending = journal.home_of(root) / "pending"
    record = json.loads((pending / "record.json").read_text())
    [blob] = [f["blob"] for f in record["files"] if f["path"] == "a.mm"]
    assert (pending / blob).read_bytes() == BEFORE["a.mm"]


def test_a_damaged_journal_is_reported(root: Path) -> None:
    checkout, changes = planned(root)
    write(checkout, changes)
    entry = journal.home_of(root) / "history/1"
    (entry / "0").write_bytes(b"not what was saved")
    assert code(lambda: undo(checkout)) == "PTR062"
    (entry / "record.json").write_text("{}")
    with pytest.raises(PorterError) as caught:
        undo(checkout)
    assert (caught.value.code, str(caught.value.place)) == ("PTR062", str(entry))
    assert tree(root) == AFTER
