"""Ends and fails writes, undos and recoveries at every system call that changes the disk: all or nothing is left.

    python tools/kill_writes.py --kills 10000

For random changes of a small checkout, a child process is ended before, in the middle of or after each such call, or
the call fails (disk full, read-only, I/O error), once or from there on. What recovery then leaves must be the tree from
before or the one from after, with nothing beside it, and every error must be a coded one. Or somebody else replaces a
file right before such a call, and the child goes on or is ended some calls later: that file must stay as it is.
"""

from __future__ import annotations

import errno
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from porter.core import confined, journal
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.writing import write
from shared.arguments import parser

CALLS = ("open", "write", "mkdir", "rmdir", "unlink", "link", "replace", "rename", "chmod", "fsync")
KILLS = ("before", "middle", "after")
ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO)
KILLED, REFUSED, BROKEN = 9, 3, 4
EDIT = b"somebody else's edit"
ENDED_AFTER = (0, 1, 2, 3)  # calls from an edit to the end of the process; 0: it goes on
NAMES = ("a.mm", "sub/b.py", "sub/deep/c.h", "new/deep/d.metal", "e", "other/f.yaml")

Texts = Mapping[str, bytes]


@dataclass(frozen=True)
class Fault:
    """What happens at the call of a number: the process ends, the call fails (`lasting`: every later one too), or
    somebody replaces a file (`edit`) and the process ends `ended_after` calls later."""

    step: int
    kill: str = ""
    error: int = 0
    lasting: bool = False
    edit: str = ""
    ended_after: int = 0


@dataclass(frozen=True)
class Subject:
    """Files before and after a change."""

    before: Texts
    after: Texts


@dataclass
class Result:
    """What was tried, how it ended, and what went wrong."""

    kills: int = 0
    failures: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: tuple[str, ...] = ()


def make_subject(source: random.Random) -> Subject:
    """A random change: files that are edited, created, removed and left alone, one at least edited."""
    while True:
        before = {name: source.randbytes(source.randrange(40)) for name in NAMES if source.random() < 0.6}
        after = {name: source.randbytes(source.randrange(40)) for name in NAMES if source.random() < 0.6}
        after |= {name: before[name] for name in before if source.random() < 0.3}
        # A change set deletes a file that it leaves empty.
        after = {name: data for name, data in after.items() if data or data == before.get(name)}
        if any(name in after and after[name] != before[name] for name in before):
            return Subject(before, after)


def run(kills: int, seed: int = 0) -> Result:
    """Tries until so many processes have been ended, and stops at the first thing that goes wrong."""
    result, source = Result(), random.Random(seed)
    state, sync = os.environ.get("PORTER_STATE"), os.fsync
    setattr(os, "fsync", lambda _: None)  # noqa: B010 (no machine is switched off here)
    try:
        while result.kills < kills and not result.wrong:
            for _ in _try_subject(make_subject(source), result):
                if result.kills >= kills or result.wrong:
                    break
    finally:
        os.fsync = sync
        os.environ.pop("PORTER_STATE", None)
        if state is not None:
            os.environ["PORTER_STATE"] = state
    return result


def _try_subject(subject: Subject, result: Result) -> Iterator[None]:
    met: list[tuple[Action, Fault]] = []
    for action in (_write, _undo):
        for fault in _faults(subject, action, None, result):
            met.append((action, fault))
            yield
    for earlier in met[:: len(met) // 9 + 1]:  # recoveries are ended too, from some of the states they meet
        if earlier[1].kill:
            for _ in _faults(subject, _recover, earlier, result):
                yield


Action = Callable[[Path, Subject], object]


def _write(root: Path, subject: Subject) -> object:
    checkout = Checkout(root, "the harness")
    texts = {name: data.decode("utf-8", "surrogateescape") for name, data in subject.after.items()}
    base = {name: checkout.read(name) for name in subject.before}
    edits = tuple(
        Edit(name, 0, len(base.get(name, "")), text) for name, text in texts.items() if base.get(name) != text
    )
    return write(checkout, ChangeSet(base, edits, frozenset(base) - frozenset(texts)), force=True)


def _undo(root: Path, _subject: Subject) -> object:
    return journal.undo(Checkout(root, "the harness"))


def _recover(root: Path, _subject: Subject) -> object:
    return journal.recover(Checkout(root, "the harness"))


def _faults(subject: Subject, action: Action, earlier: tuple[Action, Fault] | None, result: Result) -> Iterator[Fault]:
    """Every fault of an action, tried, until the action has no call of that number any more."""
    kinds = [Fault(0, kill=kill) for kill in KILLS]
    kinds += [Fault(0, error=error, lasting=lasting) for error in ERRORS for lasting in (False, True)]
    if earlier is None:
        kinds += [Fault(0, edit=name, ended_after=later) for name in _edited(subject) for later in ENDED_AFTER]
    for kind in kinds:
        step = 0
        while True:
            fault = replace(kind, step=step)
            if not _try(subject, action, earlier, fault, result):
                break
            yield fault
            if result.wrong:
                return
            step += 1


def _edited(subject: Subject) -> list[str]:
    """A file that changes and one that is removed, as far as there are any."""
    changed = [name for name in subject.before if subject.before[name] != subject.after.get(name)]
    removed = [name for name in changed if name not in subject.after]
    return [*[name for name in changed if name in subject.after][:1], *removed[:1]]


def _try(subject: Subject, action: Action, earlier: tuple[Action, Fault] | None, fault: Fault, result: Result) -> bool:
    """One fault from the start to what recovery leaves of it; whether the action came to the call."""
    with tempfile.TemporaryDirectory(prefix="kill-writes-") as folder:
        os.environ["PORTER_STATE"] = f"{folder}/state"
        root = Path(folder, "fork")
        _lay_out(root, subject.before)
        first = earlier[0] if earlier else action
        if first is _undo:
            _write(root, subject)
        if earlier:
            _in_child(lambda: earlier[0](root, subject), earlier[1], root)
        code, met = _in_child(lambda: action(root, subject), fault, root)
        if not met:
            return False
        result.kills += code == KILLED
        result.failures += code != KILLED
        check = _check_edit if fault.edit else _check
        wrong = check(root, replace_file(subject, fault.edit), code, result)
        if wrong:
            where = f"{action.__name__.strip('_')}, {fault}" + (f", after {earlier[1]}" if earlier else "")
            result.wrong = (*result.wrong, f"{where}: {wrong}: {subject}")
    return True


def _check(root: Path, subject: Subject, code: int, result: Result) -> str:
    """What is wrong with what a process left, "" for nothing."""
    if code == BROKEN:
        return "an error without a code"
    left = _read(root)
    try:
        journal.require_settled(Checkout(root, "the harness"))
        if left not in (subject.before, subject.after):
            return "a mixed tree that no journal tells of"
    except PorterError:
        if _read(root) != left:
            return "a question changed the tree"
    outcome = journal.recover(Checkout(root, "the harness"))
    found = _read(root)
    if found not in (subject.before, subject.after):
        return f"a mixed tree after recovery: {found}"
    result.outcomes[outcome or "nothing to do"] += 1
    if found == subject.after:
        journal.undo(Checkout(root, "the harness"))
    if _read(root) != subject.before:
        return "undo does not restore"
    return "" if _folders(root) == _folders_of(subject.before) else "folders are left"


def _check_edit(root: Path, subject: Subject, code: int, result: Result) -> str:
    """What is wrong with what is left of a checkout in which somebody replaced a file meanwhile."""
    if code == BROKEN:
        return "an error without a code"
    try:
        outcome = journal.recover(Checkout(root, "the harness")) or "nothing to do"
    except PorterError as error:
        outcome = error.code
    found = {name: data for name, data in _read(root).items() if data != EDIT}
    result.outcomes[f"edited: {outcome}"] += 1
    if len(found) == len(_read(root)):
        return f"the edit is lost: {found}"
    settled = found in (subject.before, subject.after) or outcome == "PTR059"
    return "" if settled else f"a mixed tree around the edit: {found}"


def replace_file(subject: Subject, edited: str) -> Subject:
    """The subject without a file, or as it is for no name."""
    kept = [{name: data for name, data in texts.items() if name != edited} for texts in (subject.before, subject.after)]
    return Subject(*kept)


def _lay_out(root: Path, texts: Texts) -> None:
    root.mkdir()
    for name, data in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def _read(root: Path) -> dict[str, bytes]:
    """Every file; also those that a write puts beside others while a journal tells of it."""
    pending = (journal.home_of(root) / "pending").is_dir()
    files = (path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in files
        if not (pending and path.name.endswith((".porter", ".ready")))
    }


def _folders(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_dir()}


def _folders_of(texts: Texts) -> set[str]:
    return {parent.as_posix() for name in texts for parent in Path(name).parents} - {"."}


def _in_child(act: Callable[[], object], fault: Fault, root: Path) -> tuple[int, bool]:
    """How a child ends that acts under a fault, and whether the fault was met."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        code = BROKEN
        try:
            tell, leave = os.write, os._exit
            edit = _editor(root / fault.edit)
            _inject(fault, lambda: tell(send, b"."), edit, leave)
            act()
            code = 0
        except PorterError:
            code = REFUSED
        finally:
            leave(code)
    os.close(send)
    with os.fdopen(receive, "rb") as met:
        was_met = bool(met.read())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), was_met


def _editor(path: Path) -> Callable[[], None]:
    """Replaces a file as editors do, by a rename; its calls are not counted."""
    real = {name: getattr(os, name) for name in ("open", "write", "close", "replace")}

    def edit() -> None:
        handle = real["open"](f"{path}.new", os.O_WRONLY | os.O_CREAT, 0o644)
        real["write"](handle, EDIT)
        real["close"](handle)
        real["replace"](f"{path}.new", path)

    return edit


def _inject(fault: Fault, meet: Callable[[], object], edit: Callable[[], object], leave: Callable[[int], Any]) -> None:
    """Replaces what `os` offers to change the disk; `fsync` is counted and not waited for."""
    count = [-1]

    def faulty(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "open" and not args[1] & os.O_CREAT:
                return real(*args, **kwargs)
            count[0] += 1
            if fault.edit:
                if count[0] == fault.step:
                    meet()
                    edit()
                elif fault.ended_after and count[0] == fault.step + fault.ended_after:
                    leave(KILLED)
            elif count[0] == fault.step or (fault.lasting and count[0] > fault.step):
                meet()
                if fault.error:
                    raise OSError(fault.error, os.strerror(fault.error))
                if fault.kill == "middle" and name == "write":
                    real(args[0], args[1][: len(args[1]) // 2])
                elif fault.kill == "after":
                    real(*args, **kwargs)
                leave(KILLED)
            return None if name == "fsync" else real(*args, **kwargs)

        return call

    for name in CALLS:
        setattr(os, name, faulty(name, getattr(os, name)))
    setattr(confined, "exchange_names", faulty("exchange_names", confined.exchange_names))  # noqa: B010


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=1000, help="how many processes are ended")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    result = run(given.kills, given.seed)
    ended = ", ".join(f"{count} {name}" for name, count in sorted(result.outcomes.items()))
    print(f"{result.kills} kills, {result.failures} failed calls: {ended}")
    for wrong in result.wrong:
        print(wrong)
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
