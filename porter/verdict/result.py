"""The values that make up a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from porter.core.errors import PorterError
from porter.verdict.behavior import Behavior
from porter.witness.witnessed import name_with_limits

AUTO = "auto"
HOST = "host"
KERNELS = "kernels"
MPS = "mps"
CUDA = "cuda"
DEFAULT = "default"
ALL = "all"
FUSED = "fused"
FLUSH = "flush"
FAST = "fast"  # torch asks Apple's compiler for safe math, so that `all` of a verdict leaves it out
ARITHMETICS = (DEFAULT, FUSED, FLUSH, "reorder")
BUILD = "build"
NO_TEST = "selection"
MOST_TOLD = 3  # what a note names of many


@dataclass(frozen=True)
class ListEntry:
    """An entry of a test list: the OpInfo key it names, and its dtypes as torch names (None: all of them)."""

    file: str
    list: str
    entry: str
    dtypes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class VerifyTarget:
    """What to verify: an operator, its functors, its stubs, and the dtype pairs (Metal names) they support.

    `pairs` are (input, output) types; if empty, every dtype the tests use has to reach a kernel. `removed` and `kept`
    are test list entries whose removal or presence the verdict checks. Host code verified `as_is` may compute some
    samples without a kernel, and all of the types (torch names) that are computed `elsewhere`. The fork's code for the
    operators of `through` runs too, which shared code or a gradient calls. One that `registers` its pairs fails for
    one that nothing calls: the fork's natives have some that their host code refuses, as div_floor's of two bools.
    """

    base: str
    rows: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    removed: tuple[ListEntry, ...] = ()
    kept: tuple[ListEntry, ...] = ()
    as_is: bool = False
    through: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    registers: bool = True

    def old(self) -> VerifyTarget:
        """What to run of the fork as it was, where nothing is known of kernels."""
        return VerifyTarget(self.base, stubs=self.stubs, through=self.through)


@dataclass(frozen=True)
class Finding:
    """One thing that a test found wrong, and how many calls of kernels under test computed it.

    `sample` is the number of what was compared, or negative if the test broke before it compared. `is_type` says that
    values agree, and only the type that host code gives a result is another, which `type_error` says without the
    sample; `is_nearer` that they are beyond upstream's tolerance of the CPU's, and match float64 where these do not;
    `is_as_near` that they are beyond all tolerances, and within the bound that the CPU's own error sets;
    `is_inner` that the sample is a call which other operators make, and may have results that none of them reads;
    `is_refusal` that the fork's code raised an error for it which says that it is not implemented.
    """

    what: str
    kernel_calls: int
    sample: int = -1
    is_type: bool = False
    is_nearer: bool = False
    is_as_near: bool = False
    is_inner: bool = False
    type_error: str = ""
    is_refusal: bool = False


@dataclass(frozen=True)
class Failure:
    """A failed test or step (`lint`, `build`): its dtype, the reason, and the place if known.

    `kernel_calls` are those of the test; if zero, the values that kernels compute are not the cause. `before` is the
    status of the same test on the fork before the port: `failed`, `passed`, ..., `not run`, or `""` without a port.
    `code` says what is wrong with the fork's own code or lists, if that explains all that the test finds.
    """

    test: str
    reason: str
    dtype: str = ""
    place: str = ""
    kernel_calls: int = 0
    before: str = ""
    code: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class ForkFinding:
    """A fault of the fork in what the port does not touch: what is wrong, and where in the fork (`file:line`)."""

    what: str
    place: str = ""


@dataclass(frozen=True)
class DTypeVerdict:
    """The counts for one dtype (torch name). `max_ulp` is the kernel's error, `cpu_ulp` that of ATen's CPU kernel."""

    dtype: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    kernel_calls: int = 0
    max_ulp: float | None = None
    cpu_ulp: float | None = None
    seconds: float = 0.0
    failed_before: int = 0


@dataclass(frozen=True)
class Beside:
    """A GPU's results of one dtype beside those of `other`: the same kernels on the host, or torch's own on the GPU.

    Of `calls`, `equal` agree in every bit, `close` as far as both may round, `different` do not. `max_ulp` is the
    largest distance of those that agree, `first` a value of the first that does not. `left_out` calls have nothing to
    stand beside; `reason` is why of the first of them.
    """

    other: str
    dtype: str
    calls: int = 0
    equal: int = 0
    close: int = 0
    different: int = 0
    max_ulp: float | None = None
    first: str = ""
    left_out: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Skip:
    """Why so many `tests` were skipped, or failed as expected."""

    reason: str
    tests: int


@dataclass(frozen=True)
class Verdict:
    """The result of verification. `skipped` counts skips and expected failures, `skips` why; `notes` are not failures.

    `old_path` compares the port with the implementation it removes, on the same samples. `failed_before` are failures
    that the fork had before the port, in values that the port does not compute; they are not among `failures`. `beside`
    compares what a GPU computed with others' results, which the CPU's decide about. `fork_findings` are faults of the
    fork that the port does not touch.
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
    failed_before: tuple[Failure, ...] = ()
    beside: tuple[Beside, ...] = ()
    skips: tuple[Skip, ...] = ()
    fork_findings: tuple[ForkFinding, ...] = ()

    @property
    def builds(self) -> bool:
        """Whether the fork builds with the port."""
        return all(failure.test != BUILD for failure in self.failures)

    @property
    def ok(self) -> bool:
        """Whether at least one test passed and none failed."""
        return self.failed == 0 and self.passed > 0

    @property
    def where(self) -> str:
        """The backend and its limits."""
        return name_with_limits(self.backend) if self.backend == MPS else self.backend


@dataclass(frozen=True)
class Proof:
    """How to verify: a pytest -k expression that selects tests, a backend and an arithmetic; on `large` tensors too.

    A `thorough` verdict has the variations of samples that cost more than others, too; None leaves that to what asks. A
    `strict` one fails for faults of the fork that the port does not touch.
    """

    expr: str | None = None
    backend: str = AUTO
    arithmetic: str = DEFAULT
    large: bool = False
    thorough: bool | None = None
    strict: bool = False

    @property
    def selects(self) -> bool:
        """Whether a person chose some of the tests: such a verdict decides nothing about a port."""
        return bool(self.expr)

    @property
    def whole(self) -> Proof:
        """The same with all tests."""
        return replace(self, expr=None)


STEP = "fork"


def finding_of_error(error: PorterError) -> ForkFinding:
    """The finding that an error of the fork's own code is."""
    return ForkFinding(f"{error.code} {error.what}", str(error.place or ""))


def add_findings(verdict: Verdict, findings: Iterable[ForkFinding]) -> Verdict:
    """The verdict with more findings about the fork, each once."""
    return replace(verdict, fork_findings=tuple(dict.fromkeys((*verdict.fork_findings, *findings))))


def place_findings(verdict: Verdict, place: str) -> Verdict:
    """The verdict whose findings that name no place are at this one."""
    findings = (replace(finding, place=finding.place or place) for finding in verdict.fork_findings)
    return replace(verdict, fork_findings=tuple(dict.fromkeys(findings)))


def fail_for_findings(verdict: Verdict) -> Verdict:
    """A strict verdict: each fault of the fork that it found is a failure."""
    return add_failures(verdict, [Failure(STEP, each.what, place=each.place) for each in verdict.fork_findings])


def add_failures(verdict: Verdict, failures: Sequence[Failure]) -> Verdict:
    """The verdict with more tests that failed."""
    return replace(verdict, failed=verdict.failed + len(failures), failures=(*verdict.failures, *failures))
