"""`porter extension check`: builds a package's extension as it is, runs its tests, and says what came of it."""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from aten_overlay.as_mac import VARIABLE as AS_MAC
from porter.core.errors import Place, PorterError
from porter.core.files import create_whole, read_regular
from porter.core.python import own_module
from porter.kernels.extension.build_log import Failure, explain_failure, explain_nothing, explain_overdue
from porter.kernels.extension.hub_project import BUILD, LOADER, read_project, write_loader, write_setup
from porter.report.package import Build, PackageCheck, Tally
from porter.server.ending import Bounds, run_bounded
from porter.workflows.run import MODULE, OVERDUE, Ended, RunSettings, run_program

_ARCHIVES = (".tar.gz", ".tgz", ".zip")
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?<!\.whl)(?<!\.gz)(?<!\.tgz)(?<!\.zip)(?<!\.py)(?:==[A-Za-z0-9.+!]+)?")
_MOST = 1 << 30  # bytes of an archive, unpacked
_LARGEST_LOG = 1 << 28
_OWN, _SOURCES, _COMPILED = ("setup.py", "pyproject.toml"), (".m", ".mm"), (".so", ".dylib")
_TESTS, _BESIDE = ("tests", "test"), ("conftest.py", "pytest.ini")
_NO_TESTS = 5  # what pytest exits with where it finds none
_MISSING = re.compile(r"No matching distribution found for [^\n]*|Could not find a version[^\n(]*")
_UNCOLLECTED, _RAISED = "collection failure", re.compile(r"^E +(\S.*)$", re.MULTILINE)
_FIXTURE = re.compile(r"fixture '\w+' not found")
_MAIN = re.compile(r"^if __name__ == ", re.MULTILINE)
_FAILED = re.compile(r"^.*(?<!\b0 )\bFAIL(?:ED|URE)?\b(?!\w*[:=] *0\b).*$", re.MULTILINE)
_IMPORTS = """import importlib

import pytest


@pytest.mark.parametrize("name", {names})
def test_import(name):
    importlib.import_module(name)
"""


@dataclass(frozen=True)
class CheckSettings:
    """How a package is checked: its files may see a Mac, a step has so many seconds, and `keep` gets what is made."""

    as_mac: bool = False
    seconds: float = 1800
    keep: Path | None = None


@dataclass(frozen=True)
class _Room:
    """The folder that all is done in, and its parts."""

    root: Path
    settings: CheckSettings

    def __post_init__(self) -> None:
        for folder in (self.site, self.tests, self.logs, self.temporary):
            folder.mkdir()

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def site(self) -> Path:
        return self.root / "site"

    @property
    def tests(self) -> Path:
        return self.root / "run"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def temporary(self) -> Path:
        return self.root / "temporary"

    def bounds(self, step: str, **variables: str) -> Bounds:
        """Those of a step, whose output is in a file of its name; what it leaves behind is in this folder too."""
        environment = {
            "TMPDIR": str(self.temporary),
            "TORCH_EXTENSIONS_DIR": str(self.temporary / "torch"),
            **variables,
        }
        if self.settings.as_mac:
            environment[AS_MAC] = str(self.root)
        folder = self.tests if step.startswith("test") else self.root
        return Bounds(folder, self.logs / f"{step}.log", self.settings.seconds, environment)

    def read_log(self, step: str) -> str:
        path = self.logs / f"{step}.log"
        return read_regular(path, _LARGEST_LOG).decode(errors="replace") if path.is_file() else ""

    def pip(self, step: str, *words: str) -> int | None:
        """Runs pip under the overlay, so that setup scripts find a device and Apple's commands."""
        program = own_module("aten_overlay.__main__", MODULE, "pip", *words)
        bounds = self.bounds(step, PIP_DISABLE_PIP_VERSION_CHECK="1")
        return run_bounded(program.command, program.environment, bounds)


def check_package(
    source: str, settings: CheckSettings, tell: Callable[[str], None] = lambda _what: None
) -> PackageCheck:
    """Builds a folder, an archive or a package of the index, and runs its tests.

    Raises PTR198 for what is none of these, and PTR259 for a kernel-builder project that needs more than is here.
    """
    with _make_room(settings) as room:
        tell(f"{source}: fetching it")
        failed = _fetch(source, room)
        is_hub = not failed and (room.source / BUILD).is_file() and not _is_python(room.source)
        if is_hub:
            project = read_project(room.source)
            write_setup(project, room.source)
            create_whole(room.tests / LOADER, write_loader(project))
        elif not failed and not _is_python(room.source):
            what = f"there is no {' or '.join((*_OWN, BUILD))} in it"
            raise _refuse(source, what, "Name the folder with a package's setup.py or pyproject.toml.")
        tell(f"{source}: building it")
        build = failed or _build(room)
        tell(f"{source}: its tests")
        tests = None if build.failure else _test(room)
        if tests is not None and not build.modules and not any(run.compiled for run in tests.runs):
            build = replace(build, failure=_explain_nothing(room))  # nor was any compiled later, by what was imported
        return PackageCheck(source, is_hub, settings.as_mac, build, tests)


@contextmanager
def _make_room(settings: CheckSettings) -> Iterator[_Room]:
    with tempfile.TemporaryDirectory(prefix="porter-check-") as folder:
        room = _Room(Path(folder).resolve(), settings)
        yield room
        if settings.keep is not None:
            for part in (room.logs, room.site):
                shutil.copytree(part, settings.keep / part.name, dirs_exist_ok=True)


def _is_python(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _OWN)


def _fetch(source: str, room: _Room) -> Build | None:
    """Puts a copy of the source into the room; a package whose own setup stops pip from giving it out is a failure."""
    path = Path(source)
    try:
        if source and path.is_dir():
            shutil.copytree(path, room.source, symlinks=True, ignore=_leave_out(path.resolve()))
        elif path.name.endswith(_ARCHIVES) and path.is_file():
            _unpack(path, room)
        elif path.exists() or not _NAMED.fullmatch(source):
            what = "it is neither a folder, nor a .tar.gz or .zip, nor a package's name"
            raise _refuse(source, what, "Name a folder or an sdist, or a package as NAME or NAME==VERSION.")
        else:
            return _download(source, room)
    except (OSError, shutil.Error, tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError) as error:
        raise _refuse(source, f"it cannot be copied: {error}", "Check the files.") from error
    return None


def _leave_out(root: Path) -> Callable[[str, list[str]], set[str]]:
    """Leaves what an earlier build made in a folder where it is: an object may be older than its source."""

    def choose(folder: str, names: list[str]) -> set[str]:
        old = {name for name in names if name == "__pycache__" or name.endswith(".egg-info")}
        if Path(folder).resolve() == root and any((root / "build").glob("*.*-cpython-*")):
            old.add("build")
        return old

    return choose


def _unpack(path: Path, room: _Room) -> None:
    """Unpacks an archive whose files have one folder, or none, above them."""
    folder = room.root / "archive"
    folder.mkdir()
    data = io.BytesIO(read_regular(path, _MOST))
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(data) as archive:
            _bound(path, (entry.file_size for entry in archive.infolist()))
            archive.extractall(folder)  # a name with `..` or a root stays inside, and no entry becomes a link
    else:
        with tarfile.TarFile.gzopen(path.name, fileobj=data) as archive:
            _bound(path, (entry.size for entry in archive))
            if hasattr(tarfile, "data_filter"):
                archive.extractall(folder, filter="data")
            else:  # Python before 3.10.12 and 3.11.4, as Debian 12 has it
                archive.extractall(folder, list(map(_require_inside, archive)))
    inside = list(folder.iterdir())
    (inside[0] if len(inside) == 1 and inside[0].is_dir() else folder).rename(room.source)


def _require_inside(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """A file or folder of an archive. Raises ValueError for a link, a device, and a name that leads outside."""
    name = PurePosixPath(entry.name)
    if name.is_absolute() or ".." in name.parts or not (entry.isreg() or entry.isdir()):
        raise ValueError(f"{entry.name} is no file or folder below the archive's")
    return entry


def _bound(path: Path, sizes: Iterable[int]) -> None:
    if sum(sizes) > _MOST:
        raise _refuse(str(path), f"it holds more than {_MOST >> 20} MiB", "Unpack it and name its folder.")


def _download(source: str, room: _Room) -> Build | None:
    """The sdist of a package, from the index that pip is set to."""
    folder = room.root / "downloaded"
    words = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder), source)
    code = room.pip("download", "download", *words)
    archives = [path for path in folder.glob("*") if path.name.endswith(_ARCHIVES)]
    if archives:
        _unpack(archives[0], room)
        return None
    if code is None:
        return Build(source, "", (), explain_overdue("the download", room.settings.seconds))
    log = room.read_log("download")
    if missing := _MISSING.search(log):
        raise _refuse(source, missing[0], "Check the name; a package that has wheels alone cannot be built.")
    return Build(source, "", (), explain_failure(log, room.settings.as_mac, code))


def _build(room: _Room) -> Build:
    options = ("--no-build-isolation", "--no-deps", "--no-compile", "--no-index", "--use-pep517")
    code = room.pip("build", "install", *options, "--target", str(room.site), str(room.source))
    name, version = _read_name(room.site)
    if code is None:
        return Build(name, version, (), explain_overdue("the build", room.settings.seconds))
    if code:
        return Build(name, version, (), explain_failure(room.read_log("build"), room.settings.as_mac, code))
    modules = tuple(sorted(_list_below(room.site, _COMPILED)))
    is_later = any(_list_below(room.site, _SOURCES))  # torch.utils.cpp_extension.load may compile it
    return Build(name, version, modules, None if modules or is_later else _explain_nothing(room))


def _explain_nothing(room: _Room) -> Failure | None:
    """Why a package has no compiled module; None where it has nothing to compile."""
    sources = tuple(sorted(_list_below(room.source, _SOURCES)))
    return explain_nothing(sources, room.settings.as_mac) if sources else None


def _list_below(folder: Path, suffixes: Sequence[str]) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.suffix in suffixes and path.is_file():
            yield path.relative_to(folder).as_posix()


def _read_name(site: Path) -> tuple[str, str]:
    """The name and the version of what pip installed, by the name of its folder of facts."""
    for path in site.glob("*.dist-info"):
        name, _, version = path.stem.partition("-")
        return name, version
    return "", ""


def _test(room: _Room) -> Tally:
    """Runs the package's tests against what was installed, or imports it where there are none."""
    folder = next((name for name in _TESTS if (room.source / name).is_dir()), "")
    if folder:
        for name in (folder, *_BESIDE):
            _copy(room.source / name, room.tests / name)
        tests = _run_tests(room, folder, of_package=True)
        if tests is not None:
            return tests
    create_whole(room.tests / "test_porter_imports.py", _IMPORTS.format(names=sorted(_list_modules(room.site))))
    tests = _run_tests(room, "test_porter_imports.py", of_package=False)
    assert tests is not None
    return tests


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    elif source.is_file():
        shutil.copyfile(source, target)


def _list_modules(site: Path) -> set[str]:
    """The packages and modules at the top, and all that are compiled."""
    tops = {path.parent.name for path in site.glob("*/__init__.py")} | {path.stem for path in site.glob("*.py")}
    compiled = {path.partition(".")[0].replace("/", ".") for path in _list_below(site, _COMPILED)}
    return {name for name in tops | compiled if all(map(str.isidentifier, name.split(".")))}


def _run_tests(room: _Room, target: str, of_package: bool) -> Tally | None:
    """None where pytest finds no test in it."""
    report = room.root / "tests.xml"
    words = ("-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}", target)
    ended = _run(room, "tests", (MODULE, "pytest", *words))
    if ended.code == _NO_TESTS and of_package:
        return None
    outcomes = _read_outcomes(report)
    trouble = _tell_end(ended.code, room.settings.seconds, bool(outcomes))
    scripts = sorted({o.file for o in outcomes if o.lacks_fixture and _is_script(room.tests / o.file)})
    outcomes = [outcome for outcome in outcomes if outcome.file not in scripts]
    runs = [ended.run]
    for script in scripts:
        done = _run(room, f"test-{Path(script).stem}", (script,))
        outcomes.append(_judge_script(script, done.code, room))
        runs.append(done.run)
    failures = tuple(f"{o.name}: {o.message}" if o.message else o.name for o in outcomes if o.kind == "failed")
    counts = Counter(outcome.kind for outcome in outcomes)
    return Tally(
        of_package, counts["passed"], counts["failed"], counts["skipped"], failures, tuple(scripts), trouble,
        ended.checks, tuple(runs),
    )  # fmt: skip


def _run(room: _Room, step: str, words: Sequence[str]) -> Ended:
    keep = room.settings.keep
    paths = [str(room.site), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    bounds = room.bounds(step, PYTHONPATH=os.pathsep.join(map(os.path.abspath, paths)))
    if words[0] != MODULE:
        words = (str(room.tests / words[0]), *words[1:])
    return run_program(words, RunSettings(), None if keep is None else keep / "kernels", bounds)


@dataclass(frozen=True)
class _Outcome:
    """A test, or a script, and what came of it."""

    name: str
    file: str
    kind: str
    message: str = ""
    lacks_fixture: bool = False


def _read_outcomes(report: Path) -> list[_Outcome]:
    """What pytest wrote; nothing where it did not come to that."""
    try:
        root = ElementTree.fromstring(read_regular(report, _LARGEST_LOG))
    except (OSError, ElementTree.ParseError):
        return []
    return [_read_outcome(case) for case in root.iter("testcase")]


def _read_outcome(case: ElementTree.Element) -> _Outcome:
    file = case.get("file", "")
    name = f"{file}::{case.get('name', '')}"
    wrong = [part for kind in ("failure", "error") for part in case.findall(kind)]
    if not wrong:
        return _Outcome(name, file, "passed" if case.find("skipped") is None else "skipped")
    text = "\n".join(part.text or "" for part in wrong)
    message = next(iter(wrong[0].get("message", "").splitlines()), "")
    if message == _UNCOLLECTED and (raised := _RAISED.findall(text)):
        message = raised[-1]
    return _Outcome(name, file, "failed", message, bool(_FIXTURE.search(text)))


def _is_script(path: Path) -> bool:
    """Whether a file calls its tests itself, with arguments that pytest takes for fixtures."""
    try:
        return bool(_MAIN.search(read_regular(path).decode()))
    except (OSError, UnicodeDecodeError):
        return False


def _judge_script(script: str, code: int, room: _Room) -> _Outcome:
    """A script may print that a test of its own failed, and exit with 0 all the same."""
    log = room.read_log(f"test-{Path(script).stem}")
    said = _FAILED.search(log)
    if not code and not said:
        return _Outcome(script, script, "passed")
    message = said[0].strip() if said else (log.strip().splitlines() or [""])[-1]
    return _Outcome(script, script, "failed", f"{message} (exit code {code})")


def _tell_end(code: int, seconds: float, is_whole: bool) -> str:
    if code == OVERDUE:
        return f"the tests were ended after {seconds:g} seconds"
    return "" if is_whole else f"the tests ended before their end: exit code {code}"


def _refuse(source: str, what: str, hint: str) -> PorterError:
    return PorterError("PTR198", f"there is no package to build: {what}", Place(source), hint)
