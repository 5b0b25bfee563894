"""What a verdict is made of: values that know nothing of how it is had."""

from __future__ import annotations

from dataclasses import dataclass

from porter.verdict.behavior import Behavior

AUTO = "auto"
HOST = "host"
KERNELS = "kernels"
MPS = "mps"
DEFAULT = "default"
ALL = "all"
FLUSH = "flush"
ARITHMETICS = (DEFAULT, "fused", FLUSH, "reorder")
BUILD = "build"
NO_TEST = "selection"


@dataclass(frozen=True)
class ListEntry:
    """An entry of a test list: the OpInfo key it names, and its dtypes as torch names (None: all of them)."""

    file: str
    list: str
    entry: str
    dtypes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class VerifyTarget:
    """What is to be verified: an operator, its functors, its stubs, and the dtype pairs (Metal names) they serve.

    `pairs` are (input, output) types; without any, every dtype the tests use has to reach a kernel. `removed` and
    `kept` are the entries of test lists whose going or staying the verdict proves. Host code that is judged `as_is`
    may answer some samples without a kernel.
    """

    base: str
    rows: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    removed: tuple[ListEntry, ...] = ()
    kept: tuple[ListEntry, ...] = ()
    as_is: bool = False


@dataclass(frozen=True)
class Failure:
    """One thing that is wrong: a test or a step (`lint`, `build`), the dtype if it has one, why, and where if known.

    `kernel_calls` are those of the test: without any, what the kernels compute is not what is wrong.
    """

    test: str
    reason: str
    dtype: str = ""
    place: str = ""
    kernel_calls: int = 0


@dataclass(frozen=True)
class DTypeVerdict:
    """The counts of one dtype (torch name). `max_ulp` is the kernel's, `cpu_ulp` that of ATen's CPU kernel."""

    dtype: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    kernel_calls: int = 0
    max_ulp: float | None = None
    cpu_ulp: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What the tests found. `skipped` counts skips and expected failures; `notes` are worth knowing, not failures.

    `old_path` says what the implementation that a port takes out does with the same samples.
    """

    op: str
    backend: str
    arithmetic: str
    passed: int
    failed: int
    skipped: int
    kernel_calls: int
    max_ulp: float | None
    seconds: float
    dtypes: tuple[DTypeVerdict, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    old_path: Behavior | None = None

    @property
    def ok(self) -> bool:
        """Whether something passed and nothing failed."""
        return self.failed == 0 and self.passed > 0

    @property
    def where(self) -> str:
        """The backend, and what has to be known of it."""
        return f"{self.backend} (not yet run on Apple hardware)" if self.backend == MPS else self.backend
