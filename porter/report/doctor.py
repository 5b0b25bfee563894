"""What of porter is on a machine, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from porter.report.console import align, printable

_HEADINGS = ("part", "version", "tried", "for")


@dataclass(frozen=True)
class Part:
    """What porter uses. `version` is empty where it is missing, `command` installs it, `tried` are those that worked.

    A version of `tried` stands for all that begin with it; none stands for any. `needed` is for verdicts.
    """

    name: str
    purpose: str
    needed: bool
    command: str
    tried: tuple[str, ...]
    version: str

    @property
    def is_tried(self) -> bool:
        """Whether the version is one that was tried, or any will do."""
        release = self.version.partition("+")[0]
        return not self.tried or any(release == each or release.startswith(f"{each}.") for each in self.tried)


def is_complete(parts: Sequence[Part]) -> bool:
    """Whether all is there that verdicts need."""
    return all(part.version or not part.needed for part in parts)


def parts_lines(parts: Sequence[Part]) -> Iterator[str]:
    """A line for each part, then a command for each that is missing, those for verdicts first."""
    rows = [_HEADINGS, *((part.name, _describe(part), ", ".join(part.tried), part.purpose) for part in parts)]
    yield from map(printable, align(rows))
    missing = [part for part in parts if not part.version]
    for title, needed in (("verdicts need", True), ("optional", False)):
        commands = dict.fromkeys(part.command for part in missing if part.needed is needed)
        for command in commands:
            names = ", ".join(part.name for part in missing if part.command == command)
            yield f"{title}: {names}: {command}"
    if is_complete(parts):
        yield "all that verdicts need is installed"


def _describe(part: Part) -> str:
    if not part.version:
        return "missing"
    return part.version if part.is_tried else f"{part.version} (not tried)"


def parts_object(parts: Sequence[Part]) -> dict[str, Any]:
    """The same as one JSON object."""
    listed = [{**asdict(part), "tried": list(part.tried), "is_tried": part.is_tried} for part in parts]
    return {"complete": is_complete(parts), "parts": listed}
