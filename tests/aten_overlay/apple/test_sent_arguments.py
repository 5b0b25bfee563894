"""Every declared operation of MPSGraph is sent once, and each of its arguments arrives as Apple's documentation types it.

A number declared as another kind of number decodes silently: 0.1 tells float from double, True tells BOOL from integers.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from aten_overlay import memory as device_memory
from aten_overlay.apple.build import INCLUDE, build_frameworks
from aten_overlay.apple.mpsgraph import recorder
from aten_overlay.apple.mpsgraph.objects import Frameworks, Ref
from tests.aten_overlay.apple.objective_c import build_program

# By the part of the selector. Source: developer.apple.com/documentation/metalperformanceshadersgraph/mpsgraph
FLOAT = {"epsilon", "scale"}
DOUBLE = {
    "alpha", "rate", "constantValue", "onValue", "offValue", "constantWithScalar", "constantWithRealPart",
    "imaginaryPart",
}  # fmt: skip
BOOL = {
    "descending", "exclusive", "reverse", "centerResult", "alignCorners", "normalizeCoordinates",
    "relativeCoordinates", "interleave", "usePixelShuffleOrder",
}  # fmt: skip
SENT = {
    "BOOL": "YES", "NSUInteger": "5", "uint32_t": "5", "NSInteger": "-3", "MPSDataType": "MPSDataTypeInt16",
    "MPSGraphTensor*": "x", "NSArray<MPSGraphTensor*>*": "@[ x, x ]", "NSArray<NSNumber*>*": "@[ @1, @2 ]",
    "MPSShape*": "@[ @1, @2 ]", "NSString*": "nil",
}  # fmt: skip
ARRIVES: dict[str, Any] = {
    "NSInteger": -3, "NSUInteger": 5, "uint32_t": 5, "MPSDataType": 0x20000010, "MPSGraphTensor*": Ref(0, 0),
    "NSArray<MPSGraphTensor*>*": [Ref(0, 0), Ref(0, 0)], "NSArray<NSNumber*>*": [1, 2], "MPSShape*": [1, 2],
}  # fmt: skip

# The parts of a selector and the types of its arguments, the name of the operation among them.
Operation = tuple[tuple[str, str], ...]


def operations() -> Iterator[Operation]:
    for path in sorted((INCLUDE / "MetalPerformanceShadersGraph").glob("MPSGraph*Ops.h")):
        for method in re.findall(r"^- \(MPSGraph.*?;|^- \(NSArray.*?;", path.read_text(), re.M | re.S):
            yield tuple(re.findall(r"(\w+):\(([^()]*)\)", method))


def recorded(operation: Operation) -> str:
    """An operation's selector as it is recorded, without the name."""
    return ":".join(part for part, _ in operation if part != "name")


OPERATIONS = tuple(each for each in operations() if not recorded(each).startswith(recorder.PLACEHOLDER))


def fraction(place: int) -> float:
    return 0.1 + place


def source() -> str:
    """A program that sends every operation, its fractions all different."""

    def argument(place: int, kind: str) -> str:
        if kind in ("float", "double"):
            return repr(fraction(place))
        return SENT.get(kind, "nil" if kind.endswith("*") else f"({kind})1")

    lines = []
    for operation in OPERATIONS:
        sent = " ".join(f"{part}:{argument(i, kind)}" for i, (part, kind) in enumerate(operation))
        lines.append(f"    [graph {sent}];")
    return "\n".join(
        (
            "#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>",
            'extern "C" void send() {',
            "  @autoreleasepool {",
            "    MPSGraph* graph = [[MPSGraph new] autorelease];",
            "    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];",
            *lines,
            "  }\n}\n",
        )
    )


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, ...]]:
    """The arguments that arrive, by selector; what an operation gives is its first operand."""
    told: dict[str, tuple[Any, ...]] = {}

    def infer(name: str, arguments: tuple[Any, ...], _known: object) -> torch.Tensor:
        told[name] = arguments
        return torch.empty(2, device="meta")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "_infer", infer)
        memory = ctypes.CDLL(str(device_memory.build_library()), mode=ctypes.RTLD_GLOBAL)
        loaded = Frameworks(ctypes.CDLL(str(build_frameworks()), mode=ctypes.RTLD_GLOBAL))
        answering = recorder.Recorder(loaded, memory.porter_host_address)
        answering.install()
        path = tmp_path_factory.mktemp("sent") / "sent.mm"
        path.write_text(source())
        ctypes.CDLL(str(build_program("sent", path))).send()
        assert not answering.graphs
    return told


def wanted(part: str, kind: str, place: int) -> Any:
    if part in FLOAT:
        return float(np.float32(fraction(place)))
    if part in DOUBLE:
        return fraction(place)
    if part in BOOL:
        return True
    assert kind not in ("float", "double", "BOOL"), f"{part} is not in the tables above"
    return ARRIVES.get(kind, None if kind.endswith("*") else 1)


@pytest.mark.parametrize("operation", OPERATIONS, ids=recorded)
def test_arguments_are_decoded_as_declared(sent: dict[str, tuple[Any, ...]], operation: Operation) -> None:
    want = [wanted(part, kind, i) for i, (part, kind) in enumerate(operation) if part != "name"]
    got = sent[recorded(operation)]
    assert [(type(each), each) for each in got] == [(type(each), each) for each in want]
