"""What a CUDA kernel of a person's own computes: its file, as it stands, compiled as C++ and run on the host.

`cuda_as_cpp.h` stands for CUDA and ATen. Floating point is computed in double, or in float to see what that costs.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aten_overlay import toolchain
from aten_overlay.errors import refuse_full_disk
from porter.core.dtypes import DOUBLE, FLOAT, INT, DType, Kind
from porter.core.errors import Place, PorterError
from porter.cuda.own import Form, OwnKernel

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
        raise _refuse_source(path, done.stderr)
    return Program(made, np.dtype(_numpy_name(dtype) if whole else {"float": np.float32}.get(real, np.float64)))


def _numpy_name(dtype: DType) -> str:
    return "int32" if dtype == INT else dtype.torch


def _refuse_source(path: Path, messages: str) -> PorterError:
    found = _ERROR.search(messages)
    what = found[2] if found else messages.strip().split("\n")[-1]
    place = Place(path.name, int(found[1])) if found else Place(path.name)
    hint = "Keep the kernel in a file of its own, or see the functor alone with --no-verify."
    return PorterError("PTR338", f"the file does not compile as C++, so nothing was compared: {what}", place, hint)


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
