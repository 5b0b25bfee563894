"""ATen's CUDA kernel of a stub: the element types it supports and, for each, its scalar function in Metal.

Source: aten/src/ATen/native/cuda/*.cu, `REGISTER_DISPATCH` of ATen/native/DispatchStub.h.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.core.errors import Place, PorterError
from porter.core.layout import CUDA_KERNELS
from porter.cpu.kernels import CpuKernel, collect_lambdas, find_registered_name, same_type
from porter.cpu.lowering import LoweredKernel, lower
from porter.cuda.loops import DeviceFiles
from porter.languages.definitions import Definition, find_definitions

# The jiterator's strings are what a build with CUDA runs; where they cannot be read, the lambdas beside them can.
_COMPILATIONS = (True, False)


def read_cuda_kernel(checkout: Checkout, stub: str, output: Callable[[DType], DType] = same_type) -> CpuKernel:
    """Returns the kernel that `native/cuda` registers for a stub. `output` maps common types to result types.

    Raises PTR335 if none is registered. Functions that cannot be translated are not errors but in `untranslated`.
    """
    path, name = find_registered_kernel(checkout, stub)
    compiled = tuple(_compile(checkout, path, name))
    if not compiled:
        what = f"the CUDA kernel {name} is not defined here"
        raise PorterError("PTR335", what, Place(path), "Write the functor by hand.")

    def lower_for(dtype: DType) -> LoweredKernel | None:
        error: PorterError | None = None
        for files, definition in compiled:
            try:
                return lower(files.checkout, definition, dtype, output(dtype), files.loops)
            except PorterError as refused:
                error = error or refused
        assert error is not None
        raise error

    return collect_lambdas(stub, compiled[0][1], name, lower_for, compiled[0][0].loops.device)


def find_registered_kernel(checkout: Checkout, stub: str) -> tuple[str, str]:
    """Returns the file and name of the function registered for a stub. Raises PTR335 if there is none."""
    word = re.escape(stub)
    for path in checkout.folder(CUDA_KERNELS, ".cu").files_containing(stub, rf"DISPATCH\(\s*{word}\b", whole=True):
        if name := find_registered_name(checkout.read(path), stub):
            return path, name.rpartition("::")[2]
    raise PorterError(
        "PTR335",
        f"no CUDA kernel is registered for {stub}",
        Place(CUDA_KERNELS),
        "Leave out --from cuda: other sources may define it.",
    )


def _compile(checkout: Checkout, path: str, name: str) -> Iterator[tuple[DeviceFiles, Definition]]:
    """Yields the compilations of a file, and the definition of a function in each."""
    for jiterator in _COMPILATIONS:
        files = DeviceFiles.read(checkout, path, jiterator)
        definitions = find_definitions(path, files.checkout.read(path), name)
        if definitions:
            yield files, definitions[0]
