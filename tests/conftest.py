"""What every test may ask for, and which are quick. No test is about time: a machine that is busy fails none."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import settings

from porter.core.cache import digest
from porter.workflows import candidates
from tests import hung, quick
from tests.device_pool import DevicePool, read_environment

# Of torch's threads, those that have computed their part loop until the others have, which in three workers on two
# processors takes a third of all time. It is read when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "0")
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
_AT_ONCE = 32  # tests that a worker is given: of the hundreds that it takes by default, one had nearly all whole suites
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(50_000, 10, 10)  # at the usual rate, looking for garbage takes a tenth of a worker's time
    hung.watch(config)
    if getattr(config.option, "maxschedchunk", 0) is None:
        config.option.maxschedchunk = _AT_ONCE
    config.addinivalue_line("markers", f"{quick.MARK}: one of the tests that answer in a minute (tests/quick.py)")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Has each worker begin with other folders and files: what one of them has compiled, the others find.

    In a fresh checkout it takes longer to compile all tests, with what their assertions tell, than to read them.
    """
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker is not None and isinstance(collector, pytest.Directory):
        first = len(report.result) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        report.result = report.result[first:] + report.result[:first]
    return report


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves files without a quick test unread where only these are asked for: reading them all takes most of a minute."""
    if config.getoption("markexpr") == quick.MARK and collection_path.suffix == ".py":
        return not quick.is_quick_file(_below(collection_path)) or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is quick. Whole suites come first and what is quick last: no long test runs alone while other workers
    are done.
    """
    for item in items:
        if quick.is_quick(_below(item.path), item.name):
            item.add_marker(quick.MARK)
    items.sort(key=_turn)


def pytest_collection_finish() -> None:
    """Has no test look for garbage among what stays until the end: all tests, and what they import."""
    gc.collect()
    gc.freeze()


def _turn(item: pytest.Item) -> tuple[bool, bool, Path]:
    """By what tests are sorted, the same in every worker."""
    is_suite = "passes_inside" in getattr(item, "fixturenames", ())
    return not is_suite, item.get_closest_marker(quick.MARK) is not None, item.path


def _below(path: Path) -> str:
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No test writes a journal into the state folder of whoever runs it."""
    folder = tmp_path_factory.getbasetemp() / "state"
    monkeypatch.setenv("PORTER_STATE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def own_decisions(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No verdict that a test makes up is remembered for whoever runs it, nor for the next test."""
    folder, test = tmp_path_factory.getbasetemp() / "decisions", request.node.nodeid
    monkeypatch.setattr(candidates, "key", lambda *parts: folder / digest(test, *map(str, parts)))


@contextmanager
def _same_environment() -> Iterator[None]:
    before = read_environment()
    yield
    after = read_environment()
    if after != before:
        for name in after.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Takes out of the environment what a test's imports and threads left there: with another one, the pool of devices
    starts a process for each program of all later tests.
    """
    with _same_environment():
        yield


@pytest.fixture(autouse=True, scope="module")
def environment_of_module() -> Iterator[None]:
    """Takes out of the environment what fixtures of a module left there, as a cluster of processes does."""
    with _same_environment():
        yield


@pytest.fixture(autouse=True)
def seeds() -> None:
    """Random numbers of a test are the same in every run: a bound that one run in a hundred misses fails none."""
    random.seed(0)
    for module, seed in (("numpy", "random.seed"), ("torch", "manual_seed")):
        if module in sys.modules:
            attrgetter(seed)(sys.modules[module])(0)


@pytest.fixture
def python() -> Run:
    """Runs Python with arguments, from the repository's root."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)

    return run


@pytest.fixture(scope="session")
def device_pool() -> Iterator[DevicePool]:
    """The process that holds the device for all tests of a worker."""
    pool = DevicePool()
    yield pool
    pool.close()


@pytest.fixture
def on_device(device_pool: DevicePool) -> Run:
    """Runs a piece of code with the device present, in a process of its own."""

    def run(code: str) -> subprocess.CompletedProcess[str]:
        return device_pool.run("-c", code)

    return run


@pytest.fixture
def compiled_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels take a third of the time to compile, and longer to run: of tests that are not about the code of kernels."""
    from aten_overlay.device import shader
    from aten_overlay.metal.build import QUICK, Options

    monkeypatch.setattr(shader, "Options", partial(Options, optimization=QUICK))


@pytest.fixture
def passes_inside(device_pool: DevicePool) -> Callable[[Path], None]:
    """Runs a suite in a process of its own under the plugin: ordinary tests that use torch's mps device."""

    def run(suite: Path) -> None:
        done = device_pool.run("-m", "pytest", "-p", "aten_overlay.plugin", "-p", "no:cacheprovider", str(suite))
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        summary = done.stdout.splitlines()[-1]  # a test's name may have any of these words
        assert " passed" in summary and " skipped" not in summary

    return run
