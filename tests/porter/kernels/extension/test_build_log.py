"""Why a package is not built, from what pip prints."""

from __future__ import annotations

import pytest

from porter.core.errors import Place
from porter.kernels.extension.build_log import Cause, explain_failure

FRAME = """Processing ./toy
  error: subprocess-exited-with-error

  × Building wheel for toy (pyproject.toml) did not run successfully.
  │ exit code: 1
  ╰─> [3 lines of output]
      {}
      [end of output]

  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for toy
ERROR: Could not build wheels for toy, which is required to install pyproject.toml-based projects
"""
COMPILE = """clang++ {standard} -c csrc/toy.mm
      In file included from csrc/toy.mm:3:
      {file}:52:14: error: no template named 'type_identity' in namespace 'std'
      1 error generated.
      error: command '/usr/bin/g++' failed with exit code 1"""


@pytest.mark.parametrize(
    ("text", "cause", "what", "hint"),
    [
        ("ModuleNotFoundError: No module named 'skbuild.x'", Cause.REQUIREMENT, "needs scikit-build", "pip install"),
        ("BackendUnavailable: Cannot import 'scikit_build_core.build'", Cause.REQUIREMENT, "scikit-build-core", "pip"),
        ("error: command 'cmake' failed: No such file or directory", Cause.REQUIREMENT, "runs cmake", "cmake"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'xcodebuild'", Cause.REQUIREMENT, "xcodebuild", ""),
        ("RuntimeError: toy runs on Apple Silicon only", Cause.PLATFORM, "Apple Silicon", "--as-mac"),
        ("toy.cpp: undefined reference to `f()'\nerror: ld failed", Cause.LINK, "reference to `f()'", ""),
        ("AttributeError: python: undefined symbol: _dyld", Cause.OTHER, "undefined symbol: _dyld", "--keep"),
        ("ValueError: no\nat all", Cause.OTHER, "ValueError: no", "--keep"),
    ],
)
def test_a_failure_has_a_cause(text: str, cause: Cause, what: str, hint: str) -> None:
    failure = explain_failure(FRAME.format(text.replace("\n", "\n      ")), as_mac=False)
    assert (failure.cause, failure.error.code) == (cause, "PTR199")
    assert what in failure.error.what and hint in failure.error.hint


def test_a_system_that_is_shown_already_is_not_advised() -> None:
    assert explain_failure("RuntimeError: macOS only", as_mac=True).error.hint == ""


@pytest.mark.parametrize(
    ("file", "standard", "hint"),
    [
        ("site/torch/include/ATen/native/mps/OperationUtils.h", "-std=c++17", "no Mac compiles it either"),
        ("site/torch/include/ATen/native/mps/OperationUtils.h", "-std=c++20", "extensions.md"),
        ("csrc/toy.mm", "-std=c++17", "extensions.md"),
    ],
)
def test_a_compiler_s_error_has_its_line(file: str, standard: str, hint: str) -> None:
    failure = explain_failure(FRAME.format(COMPILE.format(file=file, standard=standard)), as_mac=False)
    assert failure.cause is Cause.COMPILE and failure.error.place == Place(file, 52)
    assert "no template named 'type_identity'" in failure.error.what and hint in failure.error.hint


def test_a_log_without_a_frame_ends_with_its_error() -> None:
    log = "Processing ./toy\nERROR: Package 'toy' requires a different Python: 3.11 not in '>=3.14'\n"
    assert "requires a different Python" in explain_failure(log, as_mac=False).error.what
    assert "pip says nothing" in explain_failure("", as_mac=False).error.what


def test_a_pip_that_a_signal_ended_says_so() -> None:
    assert "pip was ended by signal 9" in explain_failure("Processing ./toy\n", as_mac=False, code=-9).error.what
