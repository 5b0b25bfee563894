"""A live progress line: what runs, how much is done, elapsed and remaining time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from porter.core.progress import Step
from porter.report.console import console, is_terminal
from porter.report.escaping import printable

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

# Long enough for every operator of a run to count toward the estimate.
_ESTIMATE_SECONDS = 24 * 3600.0


class LiveLine:
    """Shows the current step on a terminal. Hidden while other output is printed."""

    def __init__(self, stream: TextIO, no_color: bool) -> None:
        self._stream, self._no_color = stream, no_color
        self._shown = is_terminal(stream)
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def show(self, step: Step) -> None:
        """Shows a step and the time since the first one."""
        if not self._shown:
            return
        if self._progress is None or self._task is None:
            self._progress = _progress(self._stream, self._no_color)
            self._task = self._progress.add_task("", total=None)
        self._progress.update(
            self._task, description=printable(step.what), completed=step.done, total=step.total or None
        )
        self._progress.start()

    def hide(self) -> None:
        """Removes the line from the terminal."""
        if self._progress is not None:
            self._progress.stop()


def _progress(stream: TextIO, no_color: bool) -> Progress:
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column
    from rich.text import Text

    class CountColumn(ProgressColumn):
        """The count and the estimated remaining time."""

        def render(self, task: Task) -> Text:
            return Text(count(task.completed, task.total, task.time_remaining))

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        TimeElapsedColumn(),
        CountColumn(),
        console=console(stream, no_color),
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
        speed_estimate_period=_ESTIMATE_SECONDS,
    )


def count(done: float, total: float | None, seconds_left: float | None) -> str:
    """`3 of 40, 2:05 left`, or an empty string without a total."""
    if total is None:
        return ""
    minutes, seconds = divmod(round(seconds_left or 0), 60)
    left = "" if seconds_left is None else f", {minutes}:{seconds:02} left"
    return f"{done:.0f} of {total:.0f}{left}"
