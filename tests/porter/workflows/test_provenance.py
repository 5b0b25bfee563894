"""What results come from is read of the repository that porter runs from, and of what is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from porter import __version__
from porter.workflows import results
from porter.workflows.results import read_provenance

COMMIT = ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "made")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with a commit that has a tag, as the one of porter."""
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1\n")
    git(tmp_path, "add", "code.py")
    git(tmp_path, *COMMIT)
    git(tmp_path, "tag", "v1")
    monkeypatch.setattr(results, "_ROOT", tmp_path)
    read_provenance.cache_clear()
    yield tmp_path
    read_provenance.cache_clear()


def test_the_commit_is_whole_and_says_whether_files_of_it_were_changed(root: Path) -> None:
    commit = git(root, "rev-parse", "HEAD")
    assert (read_provenance().porter, read_provenance().commit) == (__version__, commit)
    assert read_provenance().torch == version("torch")
    (root / "code.py").write_text("2\n")
    read_provenance.cache_clear()
    assert read_provenance().commit == f"{commit}-dirty"


def test_an_installed_porter_has_no_commit_of_a_repository_around_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = root / "site-packages"
    inside.mkdir()
    monkeypatch.setattr(results, "_ROOT", inside)
    assert read_provenance().commit == ""
