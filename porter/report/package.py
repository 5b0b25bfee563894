"""What `porter extension check` says of a package: text, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter.report.run import run_lines, run_object

if TYPE_CHECKING:
    from aten_overlay.runs.reading import Run
    from porter.kernels.extension.build_log import Failure

VERSION = 1
_MOST_FAILURES = 8


@dataclass(frozen=True)
class Build:
    """A package as it was built: its name and version, its compiled modules, or why there is none."""

    name: str
    version: str
    modules: tuple[str, ...]
    failure: Failure | None = None


@dataclass(frozen=True)
class Tally:
    """What a package's tests said, or its imports where it has none; `trouble` is how they ended before their end.

    `scripts` are those that are no tests of pytest's, and ran as programs.
    """

    of_package: bool
    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...]
    scripts: tuple[str, ...]
    trouble: str
    checks: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def is_green(self) -> bool:
        return not self.trouble and not self.failed and self.passed > 0


@dataclass(frozen=True)
class PackageCheck:
    """A package, how it was built, and its tests if it was; `is_hub`: by a setup.py of porter's, from a build.toml."""

    source: str
    is_hub: bool
    as_mac: bool
    build: Build
    tests: Tally | None

    @property
    def ok(self) -> bool:
        """Whether it is built with something of Metal, all tests pass, and there is no finding."""
        if self.tests is None or not self.tests.is_green or any(run.findings for run in self.tests.runs):
            return False
        return bool(self.build.modules) or any(run.compiled for run in self.tests.runs)


def package_lines(check: PackageCheck, keep: Path | None) -> Iterator[str]:
    """Whether it was built, its modules, its tests, its kernels by producer, and the findings."""
    build, tests = check.build, check.tests
    name = " ".join(filter(None, (build.name, build.version))) or check.source
    by_porter = ", by a setup.py of porter's" if check.is_hub else ""
    as_mac = ", its files saw a Mac" if check.as_mac else ""
    yield f"{name}: {'not built' if build.failure else 'built'}{by_porter}{as_mac}"
    if build.failure:
        yield str(build.failure.error)
    else:
        yield f"  compiled modules: {', '.join(build.modules) or 'none'}"
    if tests is not None:
        counts = f"{tests.passed} passed, {tests.failed} failed, {tests.skipped} skipped"
        yield f"  {'tests' if tests.of_package else 'no tests; imports'}: {counts}"
        for script in tests.scripts:
            yield f"  {script} has tests that only its own `__main__` calls: ran as a program"
        yield from (f"  FAILED {line}" for line in tests.failures[:_MOST_FAILURES])
        if len(tests.failures) > _MOST_FAILURES:
            yield f"  and {len(tests.failures) - _MOST_FAILURES} more (--json lists all)"
        if tests.trouble:
            yield f"  {tests.trouble}"
        sources = None if keep is None else keep / "kernels"
        for run in tests.runs:
            yield from (f"  {line}" for line in run_lines(run, tests.checks, sources, title="Metal"))
    if keep is not None:
        yield f"  kept: {keep}"


def package_object(check: PackageCheck) -> dict[str, Any]:
    """The same as JSON."""
    build, tests = check.build, check.tests
    failure = build.failure
    return {
        "version": VERSION,
        "ok": check.ok,
        "source": check.source,
        "package": build.name,
        "package_version": build.version,
        "kernel_builder": check.is_hub,
        "as_mac": check.as_mac,
        "built": failure is None,
        "failure": failure
        and {
            "cause": failure.cause.name.lower(),
            "code": failure.error.code,
            "what": failure.error.what,
            "place": str(failure.error.place or ""),
            "hint": failure.error.hint,
        },
        "modules": list(build.modules),
        "tests": tests
        and {
            "of_package": tests.of_package,
            "passed": tests.passed,
            "failed": tests.failed,
            "skipped": tests.skipped,
            "failures": list(tests.failures),
            "scripts": list(tests.scripts),
            "trouble": tests.trouble,
        },
        "runs": [run_object(run, tests.checks, 0) for run in tests.runs] if tests else [],
    }
