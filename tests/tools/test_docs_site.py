"""The layout of the pages that the site is built from, and the figures of its first page."""

from __future__ import annotations

from pathlib import Path

import yaml

from docs_site import copy_pages

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_follows_the_first_page_and_linked_files_come_along(tmp_path: Path) -> None:
    copy_pages(ROOT, tmp_path)
    first = (tmp_path / "README.md").read_text()
    assert first.startswith((ROOT / "docs/site/index.md").read_text())
    assert "\n## Try it\n" in first and first.count("\n# ") == 1
    assert "[templates](templates/README.md)" in first
    assert (
        "(softmax.py)" in (tmp_path / "templates/README.md").read_text()
        and (tmp_path / "templates/softmax.py").is_file()
    )


def test_a_folder_with_a_page_keeps_it(tmp_path: Path) -> None:
    root, copy = tmp_path / "root", tmp_path / "copy"
    (root / "docs/site").mkdir(parents=True)
    (root / "docs/site/index.md").write_text("# First\n")
    (root / "README.md").write_text(
        "# Project\n\n## Try it\n\n[pages](docs/errors) [nothing](docs/none) [file](tool.py)\n"
    )
    (root / "CONTRIBUTING.md").write_text("")
    (root / "docs/errors").mkdir()
    (root / "docs/errors/README.md").write_text("# Errors\n")
    (root / "tool.py").write_text("pass\n")
    copy_pages(root, copy)
    page = "# First\n\n## Try it\n\n[pages](docs/errors/README.md) [nothing](docs/none) [file](tool.py)\n"
    assert (copy / "README.md").read_text() == page
    assert (copy / "docs/errors/README.md").read_text() == "# Errors\n"
    assert (copy / "tool.py").is_file()


def test_the_figures_of_the_race_are_those_of_its_page() -> None:
    race = yaml.safe_load((ROOT / "docs/site/race.yaml").read_text())
    page = (ROOT / "docs/against-people.md").read_text()
    assert race
    for operator, (mean, least) in race.items():
        assert f"| {operator} | {mean:.2f} | {least:.2f} |" in page, operator
        assert f"{mean:.2f}" in (ROOT / "docs/site/index.md").read_text(), operator


def test_each_page_has_a_place_in_the_navigation() -> None:
    navigation = (ROOT / "docs/site/mkdocs.yml").read_text()
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    assert pages and {page for page in pages if f" {page}\n" not in navigation} == set()
