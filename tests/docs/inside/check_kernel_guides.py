"""The snippets of docs/kernels on the device, each as a program of its own and with the output that its page shows."""

from __future__ import annotations

import contextlib
import io
import runpy
import traceback
from pathlib import Path

import pytest
import torch

from tests.docs.snippets import Snippet, read_snippets

RUN = [snippet for snippet in read_snippets() if snippet.is_run]


@pytest.mark.parametrize("snippet", [s for s in RUN if s.language == "python"], ids=str)
def test_python(snippet: Snippet, tmp_path: Path) -> None:
    printed = run(snippet, tmp_path)
    if snippet.output is not None:
        assert printed == snippet.output


@pytest.mark.parametrize("snippet", [s for s in RUN if s.language == "metal"], ids=str)
def test_metal(snippet: Snippet) -> None:
    assert dir(torch.mps.compile_shader(snippet.text)), "the source has no kernel"


@pytest.mark.parametrize(
    ("text", "output", "error"),
    [
        ("print(1)", "2\n", AssertionError),
        ("raise ValueError(3)", "ValueError: 4\n", AssertionError),
        ("raise ValueError(3)", None, ValueError),
        ("print(snippet)", None, NameError),
    ],
)
def test_a_snippet_that_does_something_else_fails(
    text: str, output: str | None, error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error):
        test_python(Snippet("page.md", 1, "python", (), text, output), tmp_path)


def run(snippet: Snippet, folder: Path) -> str:
    """What the snippet prints, with the last lines of a traceback if its page shows some."""
    printed = io.StringIO()
    file = folder / f"snippet_{snippet.line}.py"
    file.write_text(snippet.text)
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(str(file), run_name="__main__")
        except Exception as error:
            if snippet.output is None:
                raise
            printed.write("".join(traceback.format_exception_only(error)))
    return printed.getvalue()
