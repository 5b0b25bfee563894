"""Objective-C objects as Python values: what the arguments of a recorded message are."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

from aten_overlay.errors import OverlayError

Value = Union["Ref", "Descriptor", "Handle", bool, int, float, str, bytes, list[Any], None]
MAX_RANK = 16


class _Payload(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("u", ctypes.c_uint64), ("d", ctypes.c_double), ("p", ctypes.c_void_p)]


class Argument(ctypes.Structure):
    """`porter_argument` of runtime/porter_runtime.h."""

    _fields_ = [("type", ctypes.c_char), ("value", _Payload), ("memory", ctypes.c_void_p)]


# `porter_message_handler` of runtime/porter_runtime.h.
HANDLER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Argument),
    ctypes.POINTER(Argument),
)  # fmt: skip


class Array(ctypes.Structure):
    """`porter_array` of porter_mpsgraph.h."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("data_type", ctypes.c_uint32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
    ]


@dataclass(frozen=True)
class Ref:
    """A tensor of a graph: one output of a node."""

    node: int
    output: int


@dataclass(frozen=True)
class Handle:
    """An object that only Objective-C knows, such as a block."""

    address: int


class Frameworks:
    """The C interface of the frameworks library, with its types."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        for name, result, arguments in (
            ("porter_kind", text, [pointer]),
            ("porter_class_name", text, [pointer]),
            ("porter_string", text, [pointer]),
            ("porter_number", ctypes.c_int, [pointer, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_double)]),
            ("porter_count", ctypes.c_size_t, [pointer]),
            ("porter_at", pointer, [pointer, ctypes.c_size_t]),
            ("porter_key_at", pointer, [pointer, ctypes.c_size_t]),
            ("porter_value_at", pointer, [pointer, ctypes.c_size_t]),
            ("porter_data", pointer, [pointer, ctypes.POINTER(ctypes.c_size_t)]),
            ("porter_make_array", pointer, [ctypes.POINTER(pointer), ctypes.c_size_t]),
            ("porter_set_error", None, [text]),
            ("porter_tensor_node", ctypes.c_int64, [pointer, ctypes.POINTER(ctypes.c_int64)]),
            ("porter_array_of", None, [pointer, ctypes.POINTER(Array)]),
        ):
            getattr(library, name).restype = result
            getattr(library, name).argtypes = arguments
        library.porter_make_tensor.restype = pointer
        library.porter_make_tensor.argtypes = [
            pointer, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint32, ctypes.POINTER(ctypes.c_int64), ctypes.c_int,
        ]  # fmt: skip
        library.porter_property.argtypes = [
            pointer, text, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_double), ctypes.POINTER(pointer),
        ]  # fmt: skip

    def value(self, argument: Argument) -> Value:
        """A decoded argument as a Python value."""
        code = argument.type
        if code in b"fd":
            return float(argument.value.d)
        if code == b"B":
            return bool(argument.value.u)
        if code in b"@#":
            return self.object(argument.value.p)
        if code in b"?^:*":
            return Handle(argument.value.p or 0)
        # An axis counted from the end may come as an unsigned number: no size is that large.
        return int(argument.value.u if code in b"CSI" else argument.value.i)

    def object(self, address: int | None) -> Value:
        """An object as a Python value: strings, numbers, arrays, data and tensors by value, anything else by handle."""
        if not address:
            return None
        kind = self.library.porter_kind(address).decode()
        if kind == "string":
            return self.library.porter_string(address).decode()
        if kind == "number":
            return self._number(address)
        if kind == "array":
            return [self.object(self.library.porter_at(address, i)) for i in range(self.library.porter_count(address))]
        if kind == "data":
            size = ctypes.c_size_t()
            start = self.library.porter_data(address, ctypes.byref(size))
            return ctypes.string_at(start, size.value)
        if kind == "MPSGraphTensor":
            output = ctypes.c_int64()
            node = self.library.porter_tensor_node(address, ctypes.byref(output))
            return Ref(node, output.value)
        return Descriptor.read(self, address) if kind.endswith("Descriptor") else Handle(address)

    def _number(self, address: int) -> int | float:
        integer, real = ctypes.c_int64(), ctypes.c_double()
        if self.library.porter_number(address, ctypes.byref(integer), ctypes.byref(real)):
            return real.value
        return integer.value

    def property(self, address: int, name: str) -> Value:
        """A descriptor's property by its name; None where it has none."""
        integer, real, value = ctypes.c_int64(), ctypes.c_double(), ctypes.c_void_p()
        kind = self.library.porter_property(
            address, name.encode(), ctypes.byref(integer), ctypes.byref(real), ctypes.byref(value)
        )
        if not kind:
            return None
        return {"f": real.value, "i": integer.value}.get(chr(kind), self.object(value.value))

    def catch_errors(self, act: Callable[[], None]) -> int:
        """Runs `act`; 0, or 1 after an error, which the Objective-C sender gets as an exception."""
        try:
            act()
        except Exception as error:  # whatever it is, it must not unwind through C
            message = str(error) if isinstance(error, OverlayError) else f"PTR134 {type(error).__name__}: {error}"
            self.library.porter_set_error(message.encode())
            return 1
        return 0


@dataclass(frozen=True)
class Descriptor:
    """An operation descriptor: its properties as they were when the message was sent."""

    name: str
    properties: tuple[tuple[str, Any], ...]

    @staticmethod
    def read(frameworks: Frameworks, address: int) -> Descriptor:
        found = ((name, frameworks.property(address, name)) for name in PROPERTIES)
        name = frameworks.library.porter_class_name(address).decode()
        return Descriptor(name, tuple((key, value) for key, value in found if value is not None))

    def __getattr__(self, name: str) -> Any:
        for key, value in self.properties:
            if key == name:
                return value
        raise AttributeError(name)


# The properties of MPSGraphDescriptors.h.
PROPERTIES = (
    "strideInX", "strideInY", "strideInZ", "dilationRateInX", "dilationRateInY", "dilationRateInZ", "paddingLeft",
    "paddingRight", "paddingTop", "paddingBottom", "paddingFront", "paddingBack", "groups", "paddingStyle",
    "dataLayout", "weightsLayout", "strides", "dilationRates", "paddingValues", "channelDimensionIndex", "kernelWidth",
    "kernelHeight", "kernelSizes", "returnIndicesMode", "returnIndicesDataType", "ceilMode",
    "includeZeroPadToAverage",
    "distribution", "dataType", "min", "max", "mean", "standardDeviation", "minInteger", "maxInteger", "inverse",
    "roundToOddHermitean", "scalingMode", "reverse", "bidirectional", "produceCell", "training", "forgetGateLast",
    "inputGateActivation", "forgetGateActivation", "cellGateActivation", "outputGateActivation", "activation",
)  # fmt: skip
