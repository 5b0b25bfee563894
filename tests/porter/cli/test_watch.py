from collections.abc import Callable
from pathlib import Path

from porter.workflows.verify import changes, watch


def script(*steps: Callable[[], object]) -> Callable[[float], None]:
    """A `sleep` that does the next step instead, and interrupts when there is none."""
    left = list(steps)

    def sleep(_: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    return sleep


def nothing() -> None:
    return None


def test_changes_are_reported_once_the_writer_pauses(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    steps = script(nothing, lambda: two.write_text("new"), lambda: one.write_text("longer"), nothing)
    assert next(changes(lambda: [one, two], steps)) == [one, two]


def test_it_runs_at_once_and_after_every_change(tmp_path: Path) -> None:
    file = tmp_path / "file"
    acted: list[str] = []
    steps = script(lambda: file.write_text("a"), nothing, lambda: file.unlink(), nothing)
    watch(lambda: [file], lambda: acted.append(file.read_text() if file.exists() else "-"), steps)
    assert acted == ["-", "a", "-"]
