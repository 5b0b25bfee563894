"""Compares the Metal functor of a CUDA kernel with the kernel itself, both compiled for the host, value by value.

The kernel computed in double is the reference. The functor may be off by as much as computing in float explains.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aten_overlay import toolchain
from aten_overlay.errors import refuse_full_disk
from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import LARGEST_LEXED, Checkout
from porter.core.dtypes import BOOL, DOUBLE, FLOAT, INT, DType, Kind
from porter.core.errors import Place, PorterError
from porter.core.files import read_named
from porter.cuda.own import Form, OwnKernel
from porter.metal.own_functor import OwnFunctor
from porter.verdict.errors import raising_porter_errors
from porter.verdict.own.result import SLACK, Comparison, Difference

HEAD = """\
#include <metal_stdlib>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
using namespace metal;
using namespace c10::metal;
"""


def compile_functor(fork: Checkout, own: OwnKernel, functor: OwnFunctor) -> Library:
    """Compiles the kernels. Raises what compiling Metal raises."""
    kernels = [write_kernel(own, functor, dtype, result) for dtype, result in functor.dtypes]
    names = [kernel_name(own, dtype) for dtype, _ in functor.dtypes]
    source = HEAD + functor.text + "".join(kernels)
    return Library(build.compile_kernels(source, names, build.Options(include=(fork.root,))))


def kernel_name(own: OwnKernel, dtype: DType) -> str:
    """Returns the name of the kernel for a type of element."""
    return f"{own.name}_of_{dtype.metal}"


def write_kernel(own: OwnKernel, functor: OwnFunctor, dtype: DType, result: DType) -> str:
    """Returns the kernel that calls the functor with each element, and with its numbers."""
    arrays = "".join(f", constant {dtype.metal}* e{at} [[buffer({at + 2})]]" for at in range(len(own.elements)))
    values = [f"e{at}[i]" for at in range(len(own.elements))]
    wide = dtype.opmath.metal
    numbers = [f"{wide}(numbers[{at}])" for at in range(len(own.scalars))]
    if functor.struct:
        numbers = [f"{functor.struct.name}<{wide}>{{{', '.join(numbers)}}}"]
    return (
        f"kernel void {kernel_name(own, dtype)}(device {result.metal}* out [[buffer(0)]], "
        f"constant float* numbers [[buffer(1)]]{arrays}, uint i [[thread_position_in_grid]]) {{\n"
        f"  out[i] = {own.name}_functor{{}}({', '.join((*values, *numbers))});\n}}\n"
    )


SHIM = Path(__file__).parent / "cuda_as_cpp.h"
_SECONDS = 60
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.M)
_NAMESPACE = re.compile(r"\bnamespace\s+([\w:]+)\s*\{")
_ERROR = re.compile(r"^[^\n:]*:(\d+):\d+: (?:fatal )?error: (.*)$", re.M)
_MAIN = """
#undef float
#undef double
int main(int argc, char** argv) {{
  const long count = std::atol(argv[1]);
  std::vector<ELEMENT> in[{inputs}], out(count);
  for (auto& each : in) {{
    each.resize(count);
    if (std::fread(each.data(), sizeof(ELEMENT), count, stdin) != size_t(count)) {{
      return 2;
    }}
  }}
  {run}
  return std::fwrite(out.data(), sizeof(ELEMENT), count, stdout) != size_t(count);
}}
"""


@dataclass(frozen=True)
class Program:
    """An executable that computes the kernel, and numpy's type of its elements."""

    path: Path
    element: np.dtype[np.generic]

    def run(self, inputs: Sequence[NDArray[np.generic]], scalars: Sequence[float], name: str) -> NDArray[np.generic]:
        """Returns the kernel's results. Raises PTR339 if it ends with a signal, or does not end."""
        given = b"".join(np.ascontiguousarray(each.astype(self.element)).tobytes() for each in inputs)
        command = [str(self.path), str(inputs[0].size), *(repr(float(each)) for each in scalars)]
        try:
            done = subprocess.run(command, input=given, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise _refuse_run(f"{name} did not end in {_SECONDS} s") from None
        if done.returncode != 0:
            raise _refuse_run(f"{name}, compiled for the host, ended with status {done.returncode}")
        return np.frombuffer(done.stdout, self.element)


def _refuse_run(what: str) -> PorterError:
    return PorterError("PTR339", what, hint="Run it with --no-verify to see the functor alone.")


def compile_reference(own: OwnKernel, path: Path, text: str, dtype: DType, real: str, folder: Path) -> Program:
    """Compiles the file with `real` for float and double, and elements of that type or of an integer type.

    Raises PTR338 if it does not compile as plain C++.
    """
    whole = dtype.kind is not Kind.FLOATING
    element = dtype.cpp if whole else real
    source = folder / f"{real}_{dtype.metal}.cpp"
    source.write_text(_write_source(own, path, text, element, real))
    made = source.with_suffix("")
    command = [toolchain.clang(), "-std=gnu++17", "-O1", "-w", "-ffp-contract=off", str(source), "-o", str(made)]
    done = subprocess.run([*command, "-lstdc++", "-lm"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        refuse_full_disk(done.stderr)
        found = _ERROR.search(done.stderr)
        what = found[2] if found else done.stderr.strip().split("\n")[-1]
        place = Place(path.name, int(found[1])) if found else Place(path.name)
        hint = "Keep the kernel in a file of its own, or see the functor alone with --no-verify."
        raise PorterError("PTR338", f"the file does not compile as C++, so nothing was compared: {what}", place, hint)
    return Program(made, np.dtype(_numpy_name(dtype) if whole else {"float": np.float32}.get(real, np.float64)))


def _numpy_name(dtype: DType) -> str:
    return "int32" if dtype == INT else dtype.torch


def _write_source(own: OwnKernel, path: Path, text: str, element: str, real: str) -> str:
    other = DOUBLE.cpp if real == FLOAT.cpp else FLOAT.cpp
    plain = _INCLUDE.sub("", text)
    scopes = "".join(f"using namespace {name};\n" for name in dict.fromkeys(_NAMESPACE.findall(plain)))
    return (
        f'#define REAL {real}\n#define ELEMENT {element}\n#include "{SHIM}"\n#define {other} {real}\n'
        f'#line 1 "{path.name}"\n{plain}\n#line 1 "main"\n{scopes}'
        + _MAIN.format(inputs=len(own.elements), run=_write_run(own))
    )


def _write_run(own: OwnKernel) -> str:
    """Returns the C++ that calls the kernel for all elements."""
    numbers = {each.name: f"std::atof(argv[{at + 2}])" for at, each in enumerate(own.scalars)}
    arrays = {name: f"in[{at}]" for at, name in enumerate(own.elements)}
    template = "" if own.element else "<ELEMENT>"
    if own.form is Form.LOOP:
        values = ", ".join(numbers[each.name] for each in own.parameters if each.name in numbers)
        return f"TensorIteratorBase iter{{in, &out}};\n  {own.name}(iter{', ' if values else ''}{values});"
    if own.form is Form.FUNCTION:
        values = ", ".join(f"{arrays[each.name]}[i]" for each in own.parameters)
        return f"for (long i = 0; i < count; ++i) {{ out[i] = {own.name}{template}({values}); }}"
    start = f"out = {arrays[own.output]};\n  " if own.output in arrays else ""
    given = {**{name: f"{array}.data()" for name, array in arrays.items()}, **numbers, own.output: "out.data()"}
    values = ", ".join(given.get(each.name, "count") for each in own.parameters)
    return f"{start}for (long i = 0; i < count; ++i) {{ blockIdx.x = i; {own.name}{template}({values}); }}"


Array = NDArray[Any]

_RANDOM = 4096
_FLOAT_EPSILON = 2.0**-23
_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.0, 1e-20, -1e-20, 30.0, -80.0, float("inf"), -float("inf"), np.nan)
_NUMBERS = ((0.75, 1.25, 0.5, 2.0), (2.0, -0.5, 3.0, 0.25), (-1.5, 0.125, -2.0, 1.0))
_WHOLE_NUMBERS = ((3, 5, 2, 7), (1, 2, 9, 4))


def compare_functor(fork: Checkout, own: OwnKernel, functor: OwnFunctor, path: Path) -> tuple[Comparison, ...]:
    """Compiles and runs both sides for each type of element. Raises PTR338, PTR339, and what compiling Metal raises."""
    text = read_named(path, "PTR340", most=LARGEST_LEXED)
    with raising_porter_errors(), TemporaryDirectory(prefix="porter-own-") as folder:
        library = compile_functor(fork, own, functor)
        found = []
        for dtype, result in functor.dtypes:
            reals = ("double", "float") if dtype.kind is Kind.FLOATING else ("double",)
            exact, *plain = [compile_reference(own, path, text, dtype, real, Path(folder)) for real in reals]
            found.append(_compare(library, own, dtype, result, exact, plain[0] if plain else exact))
    return tuple(found)


def _compare(
    library: Library, own: OwnKernel, dtype: DType, result: DType, exact: Program, plain: Program
) -> Comparison:
    inputs = _make_inputs(dtype, len(own.elements))
    whole = dtype.kind is not Kind.FLOATING
    choices = (_WHOLE_NUMBERS if whole else _NUMBERS) if own.scalars else ((),)
    largest, values, wrong = 0.0, 0, None
    for numbers in choices:
        scalars = tuple(itertools.islice(itertools.cycle(numbers), len(own.scalars)))
        out = torch.zeros(inputs[0].numel(), dtype=getattr(torch, result.torch))
        given = torch.tensor(scalars or (0.0,), dtype=torch.float32)
        library.run(kernel_name(own, dtype), [out, given, *inputs], [out.numel()])
        arrays = [each.double().numpy() if not whole else each.numpy() for each in inputs]
        meant, rounded = (torch.from_numpy(program.run(arrays, scalars, own.name).copy()) for program in (exact, plain))
        moved = [_move(arrays, at) for at in range(len(arrays))] if not whole else []
        nearby = [torch.from_numpy(exact.run(each, scalars, own.name).copy()) for each in moved]
        errors = measure(out, meant, rounded, nearby)
        values += out.numel()
        worst = int(errors.argmax())
        if float(errors[worst]) > largest:
            largest = float(errors[worst])
            at = tuple(float(each[worst]) for each in inputs)
            wrong = Difference(at, scalars, float(out[worst]), float(meant[worst]), largest)
    return Comparison(dtype, values, largest, wrong if largest > SLACK else None)


def _move(arrays: Sequence[Array], moved: int) -> list[Array]:
    """Returns the inputs with one of them changed by as little as float can tell."""
    return [each * (1 + _FLOAT_EPSILON) if at == moved else each for at, each in enumerate(arrays)]


def measure(out: Tensor, meant: Tensor, rounded: Tensor, nearby: Sequence[Tensor] = ()) -> Tensor:
    """Returns how far each value is off, in units of the spacing of its type, beyond what computing in float explains.

    That is twice what the kernel itself loses in float, and four times what the last bit of each input changes.
    """
    if not out.dtype.is_floating_point or out.dtype == getattr(torch, BOOL.torch):
        return torch.where(out == meant.to(out.dtype), 0.0, float("inf")).double()
    own, loss = (_off(each, meant.to(out.dtype)) for each in (out, rounded.to(out.dtype)))
    same = (out == rounded.to(out.dtype)) | (out.isnan() & rounded.isnan())
    change = sum((_finite(_off(each, meant)) for each in nearby), torch.zeros_like(own))
    change = change * torch.finfo(torch.float64).eps / torch.finfo(out.dtype).eps
    return torch.where(same, 0.0, (own - 2 * _finite(loss) - 4 * change).clamp(min=0.0))


def _finite(values: Tensor) -> Tensor:
    return values.nan_to_num(0.0, 0.0, 0.0)


def _off(found: Tensor, meant: Tensor) -> Tensor:
    """Returns the distance in units of the spacing of the type; infinite where only one of them is finite."""
    info = torch.finfo(meant.dtype)
    size = meant.double().abs().clamp(min=info.tiny)
    spacing = torch.exp2(torch.floor(torch.log2(size))) * info.eps
    far = (found.double() - meant.double()).abs() / spacing
    both = (found.isnan() & meant.isnan()) | (found == meant)
    return torch.where(both, 0.0, torch.where(far.isnan(), float("inf"), far))


def _make_inputs(dtype: DType, arity: int) -> Sequence[Tensor]:
    """Returns edge values in every combination, then random ones; integers leave out 0, by which C++ may not divide."""
    generator = torch.Generator().manual_seed(0)
    kind = getattr(torch, dtype.torch)
    if dtype.kind is not Kind.FLOATING:
        low, high = (0, 2) if dtype == BOOL else (1, 100)
        whole = [torch.randint(low, high, (_RANDOM,), generator=generator) for _ in range(arity)]
        signs = torch.randint(0, 2, (_RANDOM,), generator=generator) * 2 - 1
        return [each.to(kind) for each in ((whole[0] * signs if dtype.is_signed else whole[0]), *whole[1:])]
    grids = torch.meshgrid(*[torch.tensor(_EDGES)] * arity, indexing="ij")
    near = [torch.randn(_RANDOM, generator=generator) * 3 for _ in range(arity)]
    return [torch.cat([grid.flatten(), more]).to(kind).contiguous() for grid, more in zip(grids, near, strict=True)]
