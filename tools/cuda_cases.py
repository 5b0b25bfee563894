"""Runs the cases of tests/aten_overlay/cuda/ on an NVIDIA GPU, each in every form that its kernel's entry has.

    python tools/cuda_cases.py [--compile]

One line a file of cases, then what differs. `--compile` only compiles the kernels to PTX, into the cache. Ends with 1
where a case differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from aten_overlay.cuda.compile import PLAIN, compile_kernels
from aten_overlay.cuda.library import CudaLibrary, load_library
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options
from shared.arguments import parser
from tests.aten_overlay.cuda.cases import Case, all_cases, find_difference

FORMS = (("grid",), ("grid", "flat"), ("grid", "flat", "several"))


def load_file(cases: Sequence[Case], forms: Sequence[str], *, only_compile: bool) -> CudaLibrary | None:
    """The kernels of a file's cases with some forms; None where only their PTX is asked for."""
    values = {index: value for case in cases for index, value in case.values}
    names = list(dict.fromkeys(case.kernel for case in cases))
    options = Options(constants=tuple(values.items()))
    module = compile_kernels(cases[0].path, names, options, replace(PLAIN, forms=tuple(forms)))
    return None if only_compile else load_library(module)


def run(library: CudaLibrary, case: Case) -> Iterator[str]:
    """How a case differs on the GPU."""
    kernel = getattr(library, case.kernel)
    given = [_bind(kernel.takes_value(index), each) for index, each in enumerate(case.buffers)]
    lengths = [case.threadgroup_bytes.get(i, 0) for i in range(1 + max(case.threadgroup_bytes, default=-1))]
    if not any(isinstance(each, torch.Tensor) for each in given):
        return
    kernel(*given, threads=list(case.grid), group_size=list(case.group), threadgroup_bytes=lengths)
    torch.cuda.synchronize()
    for index in case.expected:
        written = given[index]
        bytes_ = written if isinstance(written, bytes) else written.cpu().numpy().tobytes()
        expected = case.buffers[index]
        found = find_difference(case, index, np.frombuffer(bytes_, expected.dtype).reshape(expected.shape))
        if found:
            yield f"{case.name}: {found}"


def _bind(by_value: bool, array: np.ndarray) -> torch.Tensor | bytes:
    data = array.tobytes()
    return data if by_value else torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda()


def main() -> int:
    given = parser(__doc__)
    given.add_argument("--compile", action="store_true", help="only compile to PTX")
    only_compile = given.parse_args().compile
    failed: list[str] = []
    count = 0
    for file, group in groupby(all_cases(), key=lambda case: case.file):
        cases = list(group)
        for forms in FORMS:
            library = load_file(cases, forms, only_compile=only_compile)
            if library is None:
                continue
            before = len(failed)
            for case in cases:
                count += 1
                try:
                    failed += run(library, case)
                except (OverlayError, RuntimeError, ValueError) as error:
                    failed.append(f"{case.name}: {str(error).splitlines()[0][:200]}")
            print(f"{file} {'+'.join(forms)}: {len(cases)} cases, {len(failed) - before} differ", flush=True)
    print("\n".join(failed[:40]))
    print(f"{count} launches, {len(failed)} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
