"""Every file that somebody else may have put there is read by one reader, and written whole or not at all."""

from __future__ import annotations

import ast
import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from porter.cli import main
from porter.core import files
from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError
from tests.conftest import ROOT

FORK = ("--checkout", str(EMBEDDED_FORK))
# What reads or writes without the reader: files of porter's own, of the system, and the reader.
OWN = {
    "aten/device_rows.py", "core/cache.py", "core/files.py", "core/formatting.py", "core/git.py",
    "kernels/export/kernel_builder.py", "kernels/extension/project.py", "kernels/signature.py", "metal/forms/form.py",
    "metal/distributions.py", "metal/families/random.py", "metal/launchers/__init__.py",
    "metal/launchers/library.py", "mpsgraph/operations.py", "plan/recorded/files.py", 
    "metal/helpers/__init__.py", "plan/recorded/helpers/__init__.py",
    "server/ending.py", "server/process.py", "verdict/build/objects.py", "verdict/build/tree.py", "verdict/build/libraries.py",
    "verdict/build/registration.py", "verdict/client.py", "verdict/backends/host.py", "verdict/derivatives.py",
    "verdict/own/check.py", "verdict/new_operator/process.py", "verdict/suite/selection.py",
    "workflows/scheduler.py", "workflows/templates.py",
    "witness/benchmark.py", "witness/replay.py",  # run alone on a Mac, where there is no porter
}  # fmt: skip
PLAIN = ("read_text", "read_bytes", "write_text", "write_bytes", "open")


def list_plain_uses(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of_os = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "os"
            if name in PLAIN and not of_os:
                yield f"{path.name}:{node.lineno}: {name}"


def test_no_other_module_opens_files_of_somebody_else() -> None:
    folder = ROOT / "porter"
    uses = {str(path.relative_to(folder)): list(list_plain_uses(path)) for path in folder.rglob("*.py")}
    assert {path: found for path, found in uses.items() if found and path not in OWN} == {}


def make_odd(kind: str, folder: Path) -> Path:
    path = folder / f"{kind}.py"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            return Path("/dev/zero")
        case "folder":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "binary":
            path.write_bytes(b"\xff\xfe\x00")
        case "linked":
            path.symlink_to("/dev/zero")
        case "circle":
            path.symlink_to(path)
        case "long":
            return folder / ("n" * 300)
        case "null":
            return Path("a\0b")
    return path


ODD = ("pipe", "device", "folder", "huge", "binary", "linked", "circle", "long", "null", "missing")


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_text_file_of_a_size_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    path = make_odd(kind, tmp_path)
    with pytest.raises(PorterError) as caught:
        files.read_named(path, "PTR329")
    assert caught.value.code == "PTR329" and caught.value.place is not None
    assert caught.value.what.startswith("cannot read this file: ")


COMMANDS = {
    "report": (["report", "FILE", *FORK], {"PTR329"}),
    "coverage": (["status", "--coverage", "--results", "FILE", *FORK], {"PTR329"}),
    "own kernel": (["migrate", "--from", "FILE", "--function", "f", "--no-verify", *FORK], {"PTR340"}),
    "functor": (["add", "--schema", "f(Tensor self) -> Tensor", "--functor", "FILE", "--no-verify", *FORK], {"PTR319"}),
    "checkout": (["status", "--checkout", "FILE"], {"PTR001"}),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", [kind for kind in ODD if kind != "null"])
def test_a_command_refuses_any_file_that_is_none(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, codes = COMMANDS[command]
    path = str(make_odd(kind, tmp_path))
    assert main([path if each == "FILE" else each for each in arguments]) == 2
    said = capsys.readouterr().err
    assert any(code in said for code in codes), said


def test_a_file_is_replaced_whole_and_keeps_its_permissions(tmp_path: Path) -> None:
    target, link = tmp_path / "t", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    files.write_whole(link, "new")
    assert (target.read_text(), link.is_symlink(), stat.S_IMODE(target.stat().st_mode)) == ("new", True, 0o640)
    assert sorted(tmp_path.iterdir()) == [link, target]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_text("old")

    def refuse(_: object, __: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(OSError, match="Input/output"):
        files.write_whole(tmp_path / "t", "new")
    with pytest.raises(UnicodeEncodeError):
        files.create_whole(tmp_path / "u", "\ud800")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("t", "old")]


def test_a_new_file_is_never_written_over(tmp_path: Path) -> None:
    files.create_whole(tmp_path / "t", "first")
    with pytest.raises(FileExistsError):
        files.create_whole(tmp_path / "t", "second")
    assert (tmp_path / "t").read_text() == "first"


def test_a_pipe_is_written_into_only_where_somebody_reads(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError) as caught:
        files.write_whole(tmp_path / "pipe", "x")
    assert caught.value.errno == errno.ENXIO
    reader, parts = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), list[bytes]()
    os.set_blocking(reader, True)

    def read() -> None:
        while sum(map(len, parts)) < 100_000:
            parts.append(os.read(reader, 100_000))  # nothing, and at once, until there is a writer

    thread = threading.Thread(target=read)
    thread.start()
    files.write_whole(tmp_path / "pipe", "x" * 100_000)
    thread.join()
    os.close(reader)
    assert b"".join(parts) == b"x" * 100_000
