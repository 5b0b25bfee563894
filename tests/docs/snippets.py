"""The fenced snippets of the pages of docs/kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "docs" / "kernels"
NOT_RUN = "not-run"
_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """One fenced block of a page: its language, what else its fence says, and the text block right after it, if any."""

    page: str
    line: int
    language: str
    marks: tuple[str, ...]
    text: str
    output: str | None = None

    @property
    def is_run(self) -> bool:
        return NOT_RUN not in self.marks

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_snippets(pages: Path = PAGES) -> list[Snippet]:
    """Every snippet, page by page. A `text` block belongs to the snippet that it follows."""
    return [snippet for path in sorted(pages.glob("*.md")) for snippet in read_page(path)]


def read_page(path: Path) -> list[Snippet]:
    """The snippets of a page."""
    text = path.read_text()
    fences = list(_FENCE.finditer(text))
    found: list[Snippet] = []
    for at, fence in enumerate(fences):
        language, *marks = fence["info"].split() or [""]
        following = fences[at + 1] if at + 1 < len(fences) else None
        joined = following is not None and following["info"] == "text"
        output = (
            following["text"] if following and joined and not text[fence.end() : following.start()].strip() else None
        )
        line = text.count("\n", 0, fence.start()) + 2
        found.append(Snippet(path.name, line, language, tuple(marks), fence["text"], output))
    return found
