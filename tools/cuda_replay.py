"""Runs kernels of a fork on the host and on an NVIDIA GPU, on the same arguments, and compares.

    python tools/cuda_replay.py record FORK --out CASES     # needs clang: runs on the host, and compiles to PTX
    python tools/cuda_replay.py replay FORK --cases CASES   # needs a GPU; finds the PTX in the cache

The families of kernels that it can call are in tools/replayed/. `replay` compares with what the host computed and,
where torch has the function, with torch's CUDA. One line a family; then each kernel that differs. Ends with 1 where one
does.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from aten_overlay.cuda.compile import compile_family
from aten_overlay.cuda.library import load_library
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from porter.core.layout import KERNELS
from porter.verdict.build.tree import metal_include
from replayed.cases import Case
from replayed.families import FAMILIES, Family

# Of results on two machines, each of which may round in its own way: relative and absolute.
TOLERANCES = {torch.float32: 2e-5, torch.complex64: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@dataclass(frozen=True)
class Recorded:
    """A kernel's arguments before a launch on the host, and all of its buffers after it."""

    kernel: str
    family: str
    case: Case
    after: tuple[torch.Tensor | bytes, ...]


def record(fork: Path) -> list[Recorded]:
    """Runs all kernels of all families on the host, and compiles them to PTX."""
    options = Options(include=metal_include(fork))
    found = []
    for family in FAMILIES:
        source = fork / KERNELS / family.file
        names = [name for name in host_names(source, options) if family.pattern.fullmatch(name)]
        compile_family(source, family.prefix, options)
        library = Library(compile_kernels(source, names, options))
        for name in names:
            found.append(_run_on_host(library, family, name))
        print(f"{family.name}: {len(names)} kernels", flush=True)
    return found


def _run_on_host(library: Library, family: Family, name: str) -> Recorded:
    match = family.pattern.fullmatch(name)
    assert match is not None
    case = family.make(match)
    after = tuple(each.clone() if isinstance(each, torch.Tensor) else each for each in case.args)
    given = [_align(each) if isinstance(each, bytes) else each for each in after]
    library.run(name, given, case.grid, case.group, threads=1)
    return Recorded(name, family.name, case, after)


def _align(data: bytes) -> torch.Tensor:
    """Bytes in memory that is aligned for every type."""
    return torch.empty(len(data), dtype=torch.uint8).copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))


def replay(fork: Path, found: Sequence[Recorded]) -> Iterator[tuple[Recorded, str]]:
    """Every kernel, and how its results differ on the GPU: "" if they do not."""
    options = Options(include=metal_include(fork))
    families, recorded = {family.name: family for family in FAMILIES}, {each.family for each in found}
    libraries = {
        name: load_library(compile_family(fork / KERNELS / each.file, each.prefix, options))
        for name, each in families.items()
        if name in recorded
    }
    for each in found:
        try:
            yield each, _replay_one(getattr(libraries[each.family], each.kernel), each, families[each.family])
        except (OverlayError, RuntimeError) as error:
            yield each, str(error).split("\n")[0][:200]


def _replay_one(kernel: object, recorded: Recorded, family: Family) -> str:
    assert callable(kernel)
    case = recorded.case
    given = [each.cuda() if isinstance(each, torch.Tensor) else each for each in case.args]
    kernel(*given, threads=case.grid, group_size=case.group)
    torch.cuda.synchronize()
    for number, (host, gpu) in enumerate(zip(recorded.after, given, strict=True)):
        if isinstance(host, torch.Tensor) and isinstance(gpu, torch.Tensor):
            wrong = find_difference(gpu.cpu(), host)
            if wrong:
                return f"buffer {number} {wrong} on the host"
    if family.torch is None:
        return ""
    match = family.pattern.fullmatch(recorded.kernel)
    assert match is not None
    inputs = [each.cuda() for each in case.inputs]
    try:
        wanted = family.torch(match, *inputs)
    except (RuntimeError, NotImplementedError):  # torch has no kernel for the type
        return ""
    result = given[case.output]
    assert isinstance(result, torch.Tensor)
    wrong = find_difference(result.cpu(), wanted.to(result.dtype).cpu().reshape(result.shape))
    return f"the result {wrong} by torch's CUDA" if wrong else ""


def find_difference(got: torch.Tensor, wanted: torch.Tensor) -> str:
    """The first element that differs by more than both may round; "" if none does."""
    most = TOLERANCES.get(got.dtype, 0.0)
    if got.dtype in (torch.float16, torch.bfloat16):
        got, wanted = got.float(), wanted.float()
    far = ~torch.isclose(got, wanted, rtol=most, atol=most, equal_nan=True)
    if not far.any():
        return ""
    at = int(far.flatten().nonzero()[0])
    return f"is {got.flatten()[at].item()} at {at}, {wanted.flatten()[at].item()}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "replay"))
    parser.add_argument("fork", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cases", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.action == "record":
        found = record(chosen.fork.resolve())
        torch.save(found, chosen.out)
        print(f"{len(found)} kernels recorded")
        return 0
    agree: Counter[str] = Counter()
    differ: dict[str, str] = {}
    for each, wrong in replay(chosen.fork.resolve(), torch.load(chosen.cases, weights_only=False)):
        agree[each.family] += not wrong
        if wrong:
            differ[each.kernel] = wrong
    print("\n".join(f"{name}: {count} agree" for name, count in agree.items()))
    print("\n".join(f"DIFFERS {name}: {wrong}" for name, wrong in differ.items()))
    print(f"{sum(agree.values())} kernels agree, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
