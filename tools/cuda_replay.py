"""Runs kernels of a fork on the host and on an NVIDIA GPU, on the same arguments, and compares.

    python tools/cuda_replay.py record FORK --out CASES     # needs clang: runs on the host, and compiles to PTX
    python tools/cuda_replay.py replay FORK --cases CASES   # needs a GPU; finds the PTX in the cache

The families of kernels that it can call are in tools/replayed/. `replay` compares with what the host computed and,
where torch has the function, with torch's CUDA. One line a family; then each kernel that differs. Ends with 1 where one
does.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from aten_overlay.cuda.compile import PLAIN, compile_family
from aten_overlay.cuda.kernel import CudaKernel
from aten_overlay.cuda.library import CudaLibrary, load_library
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.cuda.module import PtxModule
from aten_overlay.metal.launch import Library
from porter.core.layout import KERNELS
from porter.verdict.backends.cuda_shaders import NoResult, compute, refusing_full_memory
from porter.verdict.build.tree import metal_include
from replayed.cases import Case, Table
from replayed.families import FAMILIES
from replayed.family import Family

# Of results on two machines, each of which may round in its own way: relative and absolute.
TOLERANCES = {torch.float32: 2e-5, torch.complex64: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@dataclass(frozen=True)
class Recorded:
    """A kernel's arguments before a launch on the host, and all of its memory after it."""

    kernel: str
    family: str
    case: Case
    after: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Outcome:
    """How a kernel's results differ on the GPU ("": they do not), and why torch's CUDA says nothing of them."""

    recorded: Recorded
    wrong: str = ""
    without: str = ""


def record(fork: Path) -> list[Recorded]:
    """Runs all kernels of all families on the host, and compiles them to PTX."""
    options = Options(include=metal_include(fork))

    def compile_all(family: Family) -> tuple[list[str], Library]:
        source = fork / KERNELS / family.file
        names = [name for name in host_names(source, options) if family.pattern.fullmatch(name)]
        compile_on_gpu(fork, family, options)
        return names, Library(compile_kernels(source, names, options))

    found = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for family, (names, library) in zip(FAMILIES, pool.map(compile_all, FAMILIES), strict=True):
            found += [_run_on_host(library, family, name) for name in names]
            print(f"{family.name}: {len(names)} kernels", flush=True)
    return found


def compile_on_gpu(fork: Path, family: Family, options: Options) -> PtxModule:
    """A family's kernels as PTX; they take tables as addresses, also where the source has references."""
    passing = tuple((index, 0) for index in family.tables)
    return compile_family(fork / KERNELS / family.file, family.prefix, options, replace(PLAIN, passing=passing))


def _run_on_host(library: Library, family: Family, name: str) -> Recorded:
    match = family.pattern.fullmatch(name)
    assert match is not None
    case = family.make(match)
    given, memory = bind(case, lambda tensor: tensor.clone(), lambda _index, data: _align(data))
    library.run(name, given, case.grid, case.group, threads=1, threadgroup_bytes=_shared(case))
    return Recorded(name, family.name, case, tuple(memory))


def bind(
    case: Case, place: Callable[[torch.Tensor], torch.Tensor], give: Callable[[int, bytes], torch.Tensor | bytes]
) -> tuple[list[torch.Tensor | bytes], list[torch.Tensor]]:
    """A case's arguments where they run, and all tensors among them, those of tables too.

    `place` copies a tensor there; `give` gets an argument's index and bytes.
    """
    given: list[torch.Tensor | bytes] = []
    memory: list[torch.Tensor] = []
    for index, argument in enumerate(case.args):
        if isinstance(argument, Table):
            placed = [place(tensor) for tensor in argument.tensors]
            memory += placed
            given.append(give(index, argument.pack(placed)))
        elif isinstance(argument, torch.Tensor):
            memory.append(place(argument))
            given.append(memory[-1])
        else:
            given.append(give(index, argument))
    return given, memory


def _shared(case: Case) -> list[int]:
    return [case.shared] if case.shared else []


def _align(data: bytes) -> torch.Tensor:
    """Bytes in memory that is aligned for every type."""
    return torch.empty(len(data), dtype=torch.uint8).copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))


def replay(fork: Path, found: Sequence[Recorded]) -> Iterator[Outcome]:
    """Every kernel's outcome on the GPU, families side by side. Raises PTR378 where its memory is full."""
    options = Options(include=metal_include(fork))

    def replay_family(family: Family) -> list[Outcome]:
        mine = [each for each in found if each.family == family.name]
        if not mine:
            return []
        library = load_library(compile_on_gpu(fork, family, options))
        return [_try_one(library, each, family) for each in mine]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for outcomes in pool.map(replay_family, FAMILIES):
            yield from outcomes


def _try_one(library: CudaLibrary, recorded: Recorded, family: Family) -> Outcome:
    try:
        with refusing_full_memory():
            return _replay_one(getattr(library, recorded.kernel), recorded, family)
    except OverlayError as error:
        return Outcome(recorded, str(error).split("\n")[0][:200])


def _replay_one(kernel: CudaKernel, recorded: Recorded, family: Family) -> Outcome:
    case = recorded.case

    def give(index: int, data: bytes) -> torch.Tensor | bytes:
        return _align(data).cuda() if isinstance(case.args[index], Table) else data

    given, memory = bind(case, lambda tensor: tensor.cuda(), give)
    kernel(*given, threads=case.grid, group_size=case.group, threadgroup_bytes=_shared(case))
    torch.cuda.synchronize()
    for number, (host, gpu) in enumerate(zip(recorded.after, memory, strict=True)):
        wrong = find_difference(gpu.cpu(), host)
        if wrong:
            return Outcome(recorded, f"buffer {number} {wrong} on the host")
    if family.torch is None:
        return Outcome(recorded, without="no function of torch is the same")
    match = family.pattern.fullmatch(recorded.kernel)
    assert match is not None
    try:
        wanted = compute(partial(family.torch, match), case.inputs, {})
    except NoResult as error:
        return Outcome(recorded, without=str(error))
    result = given[case.output]
    assert isinstance(result, torch.Tensor)
    wrong = find_difference(result.cpu(), wanted.to(result.dtype).cpu().reshape(result.shape))
    return Outcome(recorded, f"the result {wrong} by torch's CUDA" if wrong else "")


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


def _summary(outcomes: Sequence[Outcome]) -> str:
    """How many kernels of each family agree with the host, and of these with torch's CUDA."""
    lines = []
    for name in dict.fromkeys(each.recorded.family for each in outcomes):
        right = [each for each in outcomes if each.recorded.family == name and not each.wrong]
        lines.append(f"{name}: {len(right)} agree, {sum(not each.without for each in right)} with torch's CUDA too")
    return "\n".join(lines)


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
    torch.cuda.init()
    outcomes = list(replay(chosen.fork.resolve(), torch.load(chosen.cases, weights_only=False)))
    differ = [each for each in outcomes if each.wrong]
    print(_summary(outcomes))
    print("\n".join(f"DIFFERS {each.recorded.kernel}: {each.wrong}" for each in differ))
    without = Counter(each.without for each in outcomes if each.without)
    print("\n".join(f"{count} beside the host's alone: {why}" for why, count in without.most_common()))
    print(f"{len(outcomes) - len(differ)} kernels agree, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
