"""How long a test and a verdict may take, and how a process that takes longer is asked what it is doing."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from porter.verdict.errors import NoVerdict
from porter.verdict.result import Failure

TEST_SECONDS = "PORTER_TEST_SECONDS"
VERDICT_SECONDS = "PORTER_VERDICT_SECONDS"
# A process of the host backend that gets this signal prints the kernel that it runs.
PRINT_KERNEL = signal.SIGUSR1
SAMPLES_OF = "samples of"
_LIMITED = ("test_", SAMPLES_OF)


@dataclass(frozen=True)
class Limits:
    """The seconds that one test may take, of a processor while others keep it from one, and all of one request."""

    test: float = 60.0
    verdict: float = 600.0

    def of_step(self, step: str) -> float:
        """The seconds for one step: a build or a recording may take what the whole may."""
        return self.test if step.startswith(_LIMITED) else math.inf


def read_limits(environment: Mapping[str, str]) -> Limits:
    """The limits that `$PORTER_TEST_SECONDS` and `$PORTER_VERDICT_SECONDS` set. Raises PTR176 for what is no time."""
    usual = Limits()
    return Limits(
        _seconds(environment, TEST_SECONDS, usual.test), _seconds(environment, VERDICT_SECONDS, usual.verdict)
    )


def out_of_time(step: str, limits: Limits, seconds: float, kernel: str = "") -> Failure:
    """What is wrong with a step that ran when a limit was hit; `kernel` is what the process said of the one it ran."""
    of_verdict = seconds >= limits.verdict
    what = f"the verdict, in {step}," if of_verdict else step
    limit = limits.verdict if of_verdict else limits.of_step(step)
    told = f": {kernel}" if kernel else ""
    return Failure(step, f"PTR175 {what} took longer than {limit:g} s and was ended{told}")


def _seconds(environment: Mapping[str, str], name: str, usual: float) -> float:
    text = environment.get(name)
    if not text:
        return usual
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise NoVerdict(
            "PTR176", f"${name} is {text}, not a number of seconds", hint="Set a number above 0, or unset it."
        )
    return seconds


# Names; one that ends in `_` stands for all that begin with it.
PLACES = ("HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "TMPDIR")
READ_AT_START = (
    "ATEN_", "CC", "CXX", "MKL_", "OMP_", "PORTER_CACHE", "PORTER_CACHE_SIZE", "PORTER_CLANG", "PYTORCH_", "TORCH_",
)  # fmt: skip
# By Python, and by what torch is linked with.
READ_BY_LIBRARIES = (
    "ASAN_", "CUDA_", "DNNL_", "GLIBC_", "GOMP_", "KMP_", "LANG", "LC_", "LD_", "MALLOC_", "NUMEXPR_", "ONEDNN_",
    "OPENBLAS_", "PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONINTMAXSTRDIGITS",
    "PYTHONIOENCODING", "PYTHONMALLOC", "PYTHONNOUSERSITE", "PYTHONOPTIMIZE", "PYTHONPATH", "PYTHONSAFEPATH",
    "PYTHONUNBUFFERED", "PYTHONUSERBASE", "PYTHONUTF8", "PYTHONWARNINGS", "TORCHDYNAMO_", "TORCHINDUCTOR_", "TRITON_",
    "TZ", "VIRTUAL_ENV",
)  # fmt: skip
READ_WHEN_RUN = ("METAL_", "MTL_", "PORTER_FAMILY", "PORTER_METAL", "PORTER_SANITIZE", "PORTER_SHUFFLE")
LIMITS = (TEST_SECONDS, VERDICT_SECONDS)
SENT = (*READ_WHEN_RUN, *LIMITS)


def select(table: Iterable[str], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a table that are set in this process's environment, or in another, in the order of names."""
    given = os.environ if environment is None else environment
    exact = {name for name in table if not name.endswith("_")}
    begin = tuple(name for name in table if name.endswith("_"))
    return {name: given[name] for name in sorted(given) if name in exact or name.startswith(begin)}


def take_over(sent: Mapping[str, str]) -> None:
    """Makes this process's environment, which its C code sees as well, that of a client as far as it was sent."""
    for name in select(SENT):
        if name not in sent:
            del os.environ[name]
    os.environ.update(select(SENT, sent))
