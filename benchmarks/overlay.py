"""What a verdict costs, as ratios to importing torch and its OpInfos in the same run.

    python benchmarks/overlay.py

`warm` is a verdict of one binary op over all its dtypes after an edit of its functor, with the server running; `same`
the same again without an edit; `cold` a process of its own with the build cache warm.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS
from porter.verdict import client
from porter.verdict.result import VerifyTarget
from porter.verdict.verify import verify

TARGET = VerifyTarget("copysign", kernels=("copysign",), stubs=("copysign_stub",))
FILE = f"{KERNELS}/BinaryKernel.metal"
IMPORT = "import torch.testing._internal.common_methods_invocations"
ROUNDS = 3


def seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def edited(round_: int) -> dict[str, str]:
    """The functor's file with a change that the compiler has not seen: a constant that nothing depends on."""
    text = (EMBEDDED_FORK / FILE).read_text()
    unseen = f"constant float unseen = {time.time_ns() % 10**9}.{round_}f;\n"
    assert "struct copysign_functor" in text, "an edit that changes nothing would measure the cache"
    return {FILE: text.replace("struct copysign_functor", unseen + "struct copysign_functor")}


def verified(texts: dict[str, str]) -> None:
    found = verify(EMBEDDED_FORK, texts, TARGET)
    assert found.ok, found.failures[:1]


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    unit = seconds(lambda: subprocess.run([sys.executable, "-c", IMPORT], check=True))
    verified({})
    warm = min(seconds(lambda n=n: verified(edited(n))) for n in range(ROUNDS))  # type: ignore[misc]
    same = min(seconds(lambda: verified({})) for _ in range(ROUNDS))
    os.environ[client.NO_SERVER] = "1"
    cold = seconds(lambda: verified({}))
    print(f"import of torch and the OpInfos: {unit:.2f} s")
    for name, taken in (("warm, after an edit", warm), ("warm, same again", same), ("cold process", cold)):
        print(f"{name}: {taken:.2f} s, {taken / unit:.2f} imports")
    return 0


if __name__ == "__main__":
    sys.exit(main())
