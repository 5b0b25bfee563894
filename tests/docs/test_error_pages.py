"""The pages of docs/errors against the codes and messages in the sources, in both directions."""

from __future__ import annotations

import fcntl
import os
import pickle
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import error_pages  # noqa: E402

PAGES = {path.stem: path.read_text() for path in (ROOT / error_pages.PAGES).glob("PTR*.md")}
PAGE = re.compile(r"# PTR\d{3}: [^\n]+[^.\n]\n\n(?P<means>.+)\n\n## Example\n\n```\n(?P<example>.+)\n```\n\n"
                  r"## What to do\n\n(?P<next>.+)\n", re.DOTALL)  # fmt: skip
MARKDOWN = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@dataclass(frozen=True)
class Named:
    """What the sources raise, by code, and the codes that their docstrings name, by place."""

    raised: dict[str, list[error_pages.Message]]
    in_docstrings: dict[str, set[str]]


def read_named() -> Named:
    messages: dict[str, list[error_pages.Message]] = {}
    for message in error_pages.raised(ROOT):
        messages.setdefault(message.code, []).append(message)
    return Named(messages, error_pages.docstring_codes(ROOT))


@pytest.fixture(scope="session")
def named(tmp_path_factory: pytest.TempPathFactory) -> Named:
    """Of all sources, which take seconds to read: by the first worker that asks, for the others too."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return read_named()
    kept = tmp_path_factory.getbasetemp().parent / "named_codes"
    with kept.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if data := file.read():
            return cast(Named, pickle.loads(data))
        read = read_named()
        file.write(pickle.dumps(read))
        return read


def test_every_code_that_is_raised_has_a_page_and_every_page_is_raised(named: Named) -> None:
    assert set(named.raised) == set(PAGES)


def test_the_index_is_that_of_the_titles() -> None:
    written = (ROOT / error_pages.INDEX).read_text()
    assert written == error_pages.index(error_pages.titles(ROOT)), "run python tools/error_pages.py"


@pytest.mark.parametrize("code", sorted(PAGES))
def test_a_page_says_what_it_means_shows_a_message_and_what_to_do(code: str) -> None:
    page = PAGE.fullmatch(PAGES[code])
    assert page, "the sections are those of the other pages"
    assert not any("## " in part for part in page.groups())


@pytest.mark.parametrize("code", sorted(PAGES))
def test_the_example_on_a_page_is_a_message_that_the_code_raises(code: str, named: Named) -> None:
    page = PAGE.fullmatch(PAGES[code])
    assert page
    messages = named.raised.get(code, [])
    assert any(printed(message).fullmatch(page["example"]) for message in messages), "no message reads like this"


def printed(message: error_pages.Message) -> re.Pattern[str]:
    """What may be printed for a message: a place, the code, what is wrong, and the hint on a line of its own."""
    hint = f"\n  {message.hint}" if message.hint != error_pages.UNKNOWN else "(\n  .+)?"
    return re.compile(rf"[^\n]*{message.code}:? {message.what}{hint if message.hint else ''}", re.DOTALL)


def test_what_is_wrong_with_a_checkout_or_its_journal_comes_with_what_to_do(named: Named) -> None:
    internal = {"PTR050", "PTR051", "PTR052", "PTR053", "PTR065"}  # a bug of porter, or what clang-format says
    rooms = ("porter/core/", "porter/aten/", "porter/cli/")
    messages = [message for code, listed in named.raised.items() if code not in internal for message in listed]
    found = [message for message in messages if message.file.startswith(rooms)]
    assert len(found) > 60 and [message for message in found if not message.hint] == []


def test_docstrings_name_only_codes_that_have_a_page(named: Named) -> None:
    wrong = {where: codes - set(PAGES) for where, codes in named.in_docstrings.items()}
    assert {where: codes for where, codes in wrong.items() if codes} == {}


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_documents_name_only_codes_that_have_a_page(path: Path) -> None:
    assert set(error_pages.CODE.findall(path.read_text())) <= set(PAGES)


def sources(root: Path, python: str = "", cpp: str = "") -> Path:
    (root / "porter").mkdir()
    (root / "aten_overlay").mkdir()
    (root / "porter" / "module.py").write_text(python)
    (root / "aten_overlay" / "host.mm").write_text(cpp)
    return root


def codes(root: Path) -> list[str]:
    return [message.code for message in error_pages.raised(root)]


@pytest.mark.parametrize(
    "python",
    [
        'raise PorterError("PTR901", "what")',
        'raise OverlayError("PTR901", "what")',
        'CODE = "PTR901"\ndef f(): raise PorterError(CODE, "what")',
        'CODES = {3: "PTR901"}\ndef f(at): raise PorterError(CODES[at], "what")',
        'class Missing(PorterError):\n    code = "PTR901"',
        'answer = {"code": "PTR901"}\nsend(answer)',
        'text = f"PTR901 {error}"\nsend(text)',
    ],
)
def test_a_code_in_an_expression_is_raised(tmp_path: Path, python: str) -> None:
    assert codes(sources(tmp_path, python)) == ["PTR901"]


@pytest.mark.parametrize(
    "python",
    [
        '"""Raises PTR901."""',
        '"""PTR901"""',
        "# PTR901",
        'if error.code == "PTR901": pass',
        'CODE = "PTR901"\nif error.code == CODE: pass',
        'CODES = ("PTR901",)\nif text.startswith(CODES): pass',
        'send("`porter explain PTR901` says more.")',
        'match code:\n    case "PTR901": pass',
    ],
)
def test_a_code_that_is_only_mentioned_or_compared_with_is_not_raised(tmp_path: Path, python: str) -> None:
    assert codes(sources(tmp_path, python)) == []


@pytest.mark.parametrize(
    ("cpp", "wanted"),
    [
        ('fail("PTR901: what");', ["PTR901"]),
        ('fail(R"(PTR901: what)");', ["PTR901"]),
        ('fail(std::string("PTR901: ") + what);  // "PTR902: not this"', ["PTR901"]),
        ('// PTR901: what\n/* "PTR902: what" */ char quote = \'"\';', []),
        ('fail("see PTR901");', []),
    ],
)
def test_in_cpp_a_string_that_begins_with_a_code_is_raised(tmp_path: Path, cpp: str, wanted: list[str]) -> None:
    assert codes(sources(tmp_path, cpp=cpp)) == wanted


def test_the_code_of_the_embedded_fork_does_not_count(tmp_path: Path) -> None:
    fork = sources(tmp_path) / "aten_overlay" / "fork"
    fork.mkdir()
    (fork / "host.mm").write_text('fail("PTR901: what");')
    assert codes(tmp_path) == []


def test_the_texts_of_a_message_are_known_where_they_are_written_out(tmp_path: Path) -> None:
    python = 'raise PorterError("PTR901", f"no {name} (yet)", place, "Wait.")'
    (message,) = error_pages.raised(sources(tmp_path, python))
    assert (message.file, message.line) == ("porter/module.py", 1)
    assert printed(message).fullmatch("a/b.cpp:7: PTR901 no atan2 (yet)\n  Wait.")
    assert not printed(message).fullmatch("PTR901 no atan2 (yet)\n  Hurry.")
    assert not printed(message).fullmatch("PTR901 no atan2 (yet)")
    assert not printed(message).fullmatch("PTR901 some atan2 (yet)\n  Wait.")


def test_a_page_without_a_title_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / error_pages.PAGES
    folder.mkdir(parents=True)
    (folder / "PTR901.md").write_text("# PTR902: another\n")
    with pytest.raises(ValueError, match=r"PTR901\.md does not begin"):
        error_pages.titles(tmp_path)


def test_the_index_groups_codes_by_area() -> None:
    text = error_pages.index({"PTR010": "malformed", "PTR001": "missing"})
    assert re.findall(r"^(?:## |- ).*", text, re.M) == [
        "## The checkout",
        "- [PTR001](PTR001.md): missing",
        "## Operators and their rows",
        "- [PTR010](PTR010.md): malformed",
    ]
