"""Templates are found, listed without being run, and copied under another name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core import installed
from porter.core.errors import Place, PorterError
from porter.report.kernel import Template
from porter.workflows.templates import find_template, find_templates, rename, write_new

ROOT = Path(__file__).resolve().parents[3]


def test_every_script_of_the_folder_is_a_template() -> None:
    assert {each.path for each in find_templates()} == set((ROOT / "templates").glob("*.py"))
    assert all(each.summary and each.kind for each in find_templates())


def test_templates_are_also_found_where_a_package_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Installed:
        suffix = ".py"

        def as_posix(self) -> str:
            return "../../../share/porter/templates/softmax.py"

        def locate(self) -> Path:
            return ROOT / "templates" / "softmax.py"

    monkeypatch.setattr(installed, "_REPOSITORY", tmp_path / "none")
    monkeypatch.setattr("importlib.metadata.files", lambda _: [Installed()])
    assert [each.name for each in find_templates()] == ["softmax"]


def test_a_misspelled_template_is_told_its_neighbor() -> None:
    with pytest.raises(PorterError, match="there is no template named softmx") as caught:
        find_template("softmx")
    offered = "`porter kernel new --blank {}` starts one of your own."
    hint = f"Did you mean softmax? {offered.format('softmx')}"
    assert (caught.value.code, caught.value.hint) == ("PTR235", hint)
    with pytest.raises(PorterError) as caught:
        find_template("qqqq")
    assert caught.value.hint == f"`porter kernel list` shows them. {offered.format('qqqq')}"
    with pytest.raises(PorterError) as caught:
        find_template("qq-q")
    assert caught.value.hint == "`porter kernel list` shows them."


def test_a_script_without_a_summary_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "empty.py").write_text("x = 1\n")
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(installed, "_REPOSITORY", tmp_path)
    with pytest.raises(PorterError) as caught:
        find_templates()
    assert caught.value.code == "PTR239"


def test_a_copy_is_the_template(tmp_path: Path) -> None:
    path = write_new("softmax", None, tmp_path / "new")
    assert path == tmp_path / "new" / "softmax.py"
    assert path.read_text() == find_template("softmax").path.read_text()


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text("mine")
    with pytest.raises(PorterError, match="the file exists already") as caught:
        write_new("softmax", None, tmp_path)
    assert caught.value.code == "PTR236"
    assert (tmp_path / "softmax.py").read_text() == "mine"


@pytest.mark.parametrize("folder", ["file", "file/below", "file/" + 300 * "x"])
def test_a_folder_that_cannot_be_made_is_refused(folder: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(PorterError) as caught:
        write_new("softmax", None, tmp_path / folder)
    assert caught.value.code == "PTR353" and caught.value.place == Place(str(tmp_path / folder / "softmax.py"))
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["my-norm", "class", "3d"])
def test_a_name_that_python_has_not_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(PorterError) as caught:
        write_new("softmax", name, tmp_path)
    assert caught.value.code == "PTR237"
    assert not list(tmp_path.iterdir())


def test_functions_and_kernels_get_the_new_name_but_not_torchs() -> None:
    source = '''\
"""norm: one row."""
K = MetalKernel("norm_rows", source="float norm = 1;")
def norm(x): return torch.norm(x), norm_rows(x), my_norm(x), "norm"
'''
    assert_expected_inline(
        rename(source, "norm", "scale"),
        '''\
"""norm: one row."""
K = MetalKernel("scale_rows", source="float norm = 1;")
def scale(x): return torch.norm(x), scale_rows(x), my_norm(x), "scale"
''',
    )


@pytest.mark.parametrize("template", find_templates(), ids=lambda each: each.name)
def test_every_template_can_be_renamed(template: Template) -> None:
    ast.parse(rename(template.path.read_text(), template.name, "mine"))
