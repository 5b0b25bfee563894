"""What is said of a package: built or not, its tests, and when all is well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from aten_overlay.runs.origin import Origin
from aten_overlay.runs.reading import Finding, Kernel, Run
from porter.kernels.extension.build_log import explain_failure
from porter.report.package import Build, PackageCheck, Tally, package_lines, package_object

MADE = Origin("extension _c.so")
RUN = Run(1, 1, (Kernel("blend", MADE, "source-1.metal", "", 3),), ())
TESTS = Tally(True, 5, 0, 1, (), (), "", ("bounds",), (RUN,))
CHECK = PackageCheck("ops-0.2.tar.gz", False, True, Build("ops", "0.2", ("ops/_c.so",)), TESTS)
FINDING = Finding("PTR264", "kernel `blend` reads 4 bytes", "blend", (), Origin("", "ops.py:9"), MADE, "", 1)


def test_a_built_package_tells_its_modules_tests_and_kernels() -> None:
    failed = replace(
        TESTS, failed=9, failures=tuple(f"tests/a.py::t{n}: no" for n in range(9)), scripts=("tests/b.py",)
    )
    assert_expected_inline(
        "\n".join(package_lines(replace(CHECK, tests=failed), Path("kept"))),
        """\
ops 0.2: built, its files saw a Mac
  compiled modules: ops/_c.so
  tests: 5 passed, 9 failed, 1 skipped
  tests/b.py has tests that only its own `__main__` calls: ran as a program
  FAILED tests/a.py::t0: no
  FAILED tests/a.py::t1: no
  FAILED tests/a.py::t2: no
  FAILED tests/a.py::t3: no
  FAILED tests/a.py::t4: no
  FAILED tests/a.py::t5: no
  FAILED tests/a.py::t6: no
  FAILED tests/a.py::t7: no
  and 1 more (--json lists all)
  Metal: 1 kernel compiled, 3 launches (sanitizer: bounds)
    extension _c.so: 1 kernel, 3 launches
      blend: 3 launches
    sources: kept/kernels
  kept: kept""",
    )


def test_a_package_that_is_not_built_tells_why() -> None:
    failure = explain_failure("RuntimeError: ops needs macOS", as_mac=False)
    check = PackageCheck("ops-0.2.tar.gz", True, False, Build("", "", (), failure), None)
    assert_expected_inline(
        "\n".join(package_lines(check, None)),
        """\
ops-0.2.tar.gz: not built, by a setup.py of porter's
PTR199 the package refuses this system: RuntimeError: ops needs macOS
  Try --as-mac, which lets the package's own files see macOS.""",
    )
    record = package_object(check)
    assert (record["ok"], record["built"], record["tests"], record["runs"]) == (False, False, None, [])
    assert " ".join(record["failure"]) == "cause code what place hint" and record["failure"]["cause"] == "platform"


@pytest.mark.parametrize(
    ("check", "ok"),
    [
        (CHECK, True),
        (replace(CHECK, build=Build("ops", "0.2", ())), True),  # kernels of Python
        (replace(CHECK, build=Build("ops", "0.2", ()), tests=replace(TESTS, runs=(Run(1, 0, (), ()),))), False),
        (replace(CHECK, tests=replace(TESTS, failed=1)), False),
        (replace(CHECK, tests=replace(TESTS, passed=0)), False),
        (replace(CHECK, tests=replace(TESTS, trouble="ended")), False),
        (replace(CHECK, tests=replace(TESTS, runs=(RUN, replace(RUN, findings=(FINDING,))))), False),
    ],
)
def test_all_is_well_with_metal_green_tests_and_no_finding(check: PackageCheck, ok: bool) -> None:
    assert check.ok is ok
