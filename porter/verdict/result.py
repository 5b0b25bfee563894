"""What a verdict is made of: values that know nothing of how it is had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from porter.verdict.behavior import Behaviour

AUTO = "auto"
HOST = "host"
KERNELS = "kernels"
MPS = "mps"
BACKENDS = (HOST, KERNELS, MPS)
DEFAULT = "default"
ALL = "all"
FLUSH = "flush"
ARITHMETICS = (DEFAULT, "fused", FLUSH, "reorder")
BUILD = "build"
NO_TEST = "selection"
# What says nothing about the port: the machine or the backend is at fault.
NO_VERDICT = ("PTR100", "PTR170", "PTR171", "PTR172")


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
    old_path: Behaviour | None = None

    @property
    def ok(self) -> bool:
        """Whether something passed and nothing failed."""
        return self.failed == 0 and self.passed > 0

    @property
    def where(self) -> str:
        """The backend, and what has to be known of it."""
        return f"{self.backend} (not yet run on Apple hardware)" if self.backend == MPS else self.backend

    def to_json(self) -> dict[str, Any]:
        """Plain values, `dtypes` keyed by torch name."""
        values = {**asdict(self), "where": self.where}
        values["dtypes"] = {d.dtype: {k: v for k, v in asdict(d).items() if k != "dtype"} for d in self.dtypes}
        return {"ok": self.ok, **values}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Verdict:
        """The inverse of `to_json`."""
        plain = {k: v for k, v in values.items() if k not in ("ok", "where")}
        plain["dtypes"] = tuple(DTypeVerdict(dtype, **counts) for dtype, counts in values["dtypes"].items())
        plain["failures"] = tuple(Failure(**f) for f in values["failures"])
        plain["notes"] = tuple(values["notes"])
        plain["old_path"] = values["old_path"] and Behaviour.from_json(values["old_path"])
        return Verdict(**plain)
