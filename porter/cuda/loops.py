"""The loops of CUDA kernels, and the scalar function of a call of one: a lambda, a functor, or a jiterator string.

Source: aten/src/ATen/native/cuda/Loops.cuh, JitLoops.cuh, CUDAJitLoops.cuh.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from porter.aten.branches import Facts
from porter.core.checkout import Checkout
from porter.core.dtypes import BOOL
from porter.core.layout import CUDA_KERNELS
from porter.cpu.helpers import find_headers
from porter.cpu.loops import Loops, ScalarFunction
from porter.cuda.functors import read_functor
from porter.cuda.source import DeviceSource, read_device_source
from porter.cuda.specialize import specialize
from porter.languages import cpp
from porter.languages.definitions import Definition, find_definitions, parse_definition

_JITTED = frozenset(("jitted_gpu_kernel", "jitted_gpu_kernel_with_scalars", "opmath_jitted_gpu_kernel_with_scalars"))
_OPMATH = frozenset(("opmath_gpu_kernel_with_scalars", "opmath_symmetric_gpu_kernel_with_scalars"))
NAMES = frozenset(("gpu_kernel", "gpu_kernel_with_scalars", "gpu_kernel_nocast")) | _JITTED | _OPMATH
_COPIES = frozenset(("direct_copy_kernel_cuda",))


@dataclass(frozen=True)
class DeviceFiles:
    """A kernel file and the headers it includes, as one compilation for the device sees them."""

    path: str
    checkout: Checkout
    sources: dict[str, DeviceSource]

    @staticmethod
    def read(checkout: Checkout, path: str, jiterator: bool) -> DeviceFiles:
        """Reads a kernel file. Its checkout has the compiled text of each file."""
        paths = (path, *(each for each in find_headers(checkout, path) if each.startswith(CUDA_KERNELS)))
        sources = {each: read_device_source(checkout.read(each), jiterator) for each in paths}
        return DeviceFiles(path, checkout.layer({each: source.text for each, source in sources.items()}), sources)

    @property
    def loops(self) -> Loops:
        """The loops of CUDA, which find functors and strings in these files."""
        return Loops("CUDA", NAMES, _COPIES, self.read_loop, self.is_functor)

    def is_functor(self, type_: str) -> bool:
        """Whether one of the files defines a struct of this name."""
        name = re.escape(type_.partition("<")[0].rpartition("::")[2])
        return any(re.search(rf"\bstruct\s+{name}\b", source.text) for source in self.sources.values())

    def read_loop(self, _found: Definition, call: cpp.Call, facts: Facts) -> ScalarFunction | None:
        """Returns the scalar function of a loop."""
        assert isinstance(call.function, cpp.Name)
        if call.function.last in _JITTED:
            return self._read_string(call, call.function)
        files = [(path, source.text) for path, source in self.sources.items()]
        for value in map(facts.resolve, call.arguments[1:]):
            wide = call.function.last in _OPMATH
            if isinstance(value, cpp.LambdaExpr):
                return ScalarFunction(specialize(value, {}, facts), wide=wide)
            if isinstance(value, cpp.Call):
                return read_functor(files, value, facts)
        return None

    def _read_string(self, call: cpp.Call, loop: cpp.Name) -> ScalarFunction | None:
        """Returns the function of a jiterator string that a loop names, which is computed in opmath type."""
        names = {name: value for source in self.sources.values() for name, value in source.names.items()}
        strings = [value.path for value in call.arguments if isinstance(value, cpp.Name) and self._holder(value.path)]
        if len(loop.arguments) < 3 or not strings or loop.arguments[0] not in names:
            return None
        found = self._define(strings[0], names[loop.arguments[0]])
        if found is None:
            return None
        path, text, definition = found
        function, extra = parse_definition(definition), _read_extra(call.arguments)
        elements = function.parameters[: len(function.parameters) - len(extra)]
        values = (*(cpp.Name(each.name) for each in elements), *extra)
        value = cpp.Call(cpp.Name(function.name), values)
        parameters = tuple(cpp.Parameter(loop.arguments[2], each.name) for each in elements)
        returns = BOOL.cpp if function.returns == BOOL.cpp else loop.arguments[1]
        body = cpp.LambdaExpr(parameters, returns, cpp.Block((cpp.Return(value),)))
        return ScalarFunction(body, definition, {}, (self.checkout.layer({path: text}), path), wide=True)

    def _holder(self, string: str) -> str | None:
        return next((path for path, source in self.sources.items() if string in source.strings), None)

    def _define(self, string: str, name: str) -> tuple[str, str, Definition] | None:
        """Returns the file of a string, the text of all that the string holds, and the function of this name in it."""
        path = self._holder(string)
        if path is None:
            return None
        source = self.sources[path]
        text = source.strings[string]
        for before in source.before.get(string, ()):
            text = _overlay(text, source.strings.get(before, ""))
        found = find_definitions(path, text, name)
        return (path, text, found[0]) if found else None


def _overlay(text: str, other: str) -> str:
    """Returns both texts in one, which have nothing in the same place."""
    return "".join(a if a != " " else b for a, b in zip(text, other, strict=True)) if other else text


def _read_extra(arguments: tuple[cpp.Expr, ...]) -> tuple[cpp.Expr, ...]:
    """Returns the values in the `std::make_tuple(...)` that a loop passes on to its function."""
    tuples = (value for value in arguments if isinstance(value, cpp.Call) and isinstance(value.function, cpp.Name))
    return next((each.arguments for each in tuples if _last(each) == "make_tuple"), ())


def _last(call: cpp.Call) -> str:
    return call.function.last if isinstance(call.function, cpp.Name) else ""
