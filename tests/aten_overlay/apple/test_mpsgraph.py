"""MPSGraph's stand-in: messages are recorded with their arguments as sent, and graphs compute what they mean."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from aten_overlay import memory as device_memory
from aten_overlay.apple.build import INCLUDE, build_frameworks
from aten_overlay.apple.mpsgraph import semantics
from aten_overlay.apple.mpsgraph.objects import Frameworks
from aten_overlay.apple.mpsgraph.recorder import Recorder
from aten_overlay.errors import OverlayError
from tests.aten_overlay.apple.objective_c import build_program

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def tell() -> Callable[[str], str]:
    memory = ctypes.CDLL(str(device_memory.build_library()), mode=ctypes.RTLD_GLOBAL)
    memory.porter_host_address.restype = ctypes.c_void_p
    memory.porter_host_address.argtypes = [ctypes.c_void_p]
    library = ctypes.CDLL(str(build_program("graph", HERE / "programs" / "graph.mm")))
    recorder = Recorder(
        Frameworks(ctypes.CDLL(str(build_frameworks()), mode=ctypes.RTLD_GLOBAL)), memory.porter_host_address
    )
    recorder.install()

    def run(name: str) -> str:
        function = library[name]
        function.restype = ctypes.c_char_p
        told = str(function().decode())
        assert not recorder.graphs, "a graph is kept that nobody has any more"
        return told

    return run


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("computed", "(2, 1) 1 7.5 16.5  | left 0"),
        ("decoded", "2 1 -7.25  | left 0"),
        ("strided", "-1 -4 -2 -5 -3 -6  | left 0"),
        ("cropped", "-1 -2 -4 -5  | left 0"),
        ("counted", "1 1 1 3  | left 0"),
    ],
)
def test_a_graph_computes_its_operations(tell: Callable[[str], str], name: str, told: str) -> None:
    assert tell(name) == told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("unknown", "! PTR131 MPSGraph's `assignVariable:withValueOfTensor` is not supported"),
        (
            "undeclared",
            "! PTR120 -[MPSGraph squareRootsWithTensor:name:] is not supported (did you mean `squareRootWithTensor`?)",
        ),
        ("unencodable", "! PTR131 -[MPSNDArrayUnaryKernel encodeToCommandBuffer:sourceArray:destinationArray:] is not"),
        ("misfit", "! PTR133 cannot infer the shape of `additionWithPrimaryTensor:secondaryTensor`"),
        ("outgrown", "! PTR134 RuntimeError: The size of tensor a (4) must match the size of tensor b (3)"),
        ("unfed", "! PTR134 a placeholder of the graph is not fed"),
    ],
)
def test_unsupported_graphs_raise_coded_errors(tell: Callable[[str], str], name: str, told: str) -> None:
    assert tell(name).startswith(told)


def test_descriptors_start_with_the_documented_values(tell: Callable[[str], str]) -> None:
    """Of uniform and of truncated normal numbers; strides, dilations and paddings of convolutions."""
    assert tell("defaults") == "0 1 0 0 0 2147483647; -2 2 0 1 0 0; 11110110 | left 0"


def test_every_form_of_a_one_hot_tensor_takes_its_arguments_in_order(tell: Callable[[str], str]) -> None:
    """Of the indices 2 and 7: the second is nowhere."""
    assert tell("hot").split("; ") == [
        "-1 -1 -1 -1 5 -1 (3, 2)",
        "-1 -1 5 -1 -1 -1 (2, 3)",
        "0 0 0 0 1 0 (3, 2)",
        "0 0 0 0 1 0 (3, 2)",
        "0 0 1 0 0 0 (2, 3)",
        "1 | left 0",
    ]


def test_a_cross_entropy_is_reduced_to_a_scalar_or_refused(tell: Callable[[str], str]) -> None:
    """Of even odds in two rows each: the logarithm of 2, and half of what is too much."""
    made, refused = tell("entropy").split("! ")
    assert made == "1.39 -0.5 0.5 0.5 -0.5 0.693 -0.25 0.25 0.25 -0.25 "
    assert refused.startswith("PTR131 MPSGraphLossReductionType 0, whose result has no documented shape")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("decomposed", "4 2 0.25 1.5 11 0 1 1 -2 | left 0"),
        ("triangular", "3 2  | left 0"),
        ("matrices", "62 124  | left 0"),
        ("multiplied", "44 98  | left 0"),
    ],
)
def test_kernels_beside_a_graph_compute_when_they_are_encoded(tell: Callable[[str], str], name: str, told: str) -> None:
    """[1 2; 4 2] x = [3; 6] by its decomposition, a singular matrix, [2 0; 4 5] x = 2 [3; 11], and 2 A B + 10 D."""
    assert tell(name) == told


def declared() -> set[str]:
    """The selectors that the headers declare, without `name:`."""
    found = set()
    for path in (INCLUDE / "MetalPerformanceShadersGraph").glob("*.h"):
        for method in re.findall(r"^- \([^;]*?;", path.read_text(), re.M | re.S):
            selector = "".join(re.findall(r"(\w+:)\(", method)) or method.split(")")[1].strip("; \n")
            found.add(selector.removesuffix("name:").rstrip(":"))
    return found


def test_every_implemented_selector_is_declared() -> None:
    assert set(semantics.list_selectors()) <= declared()
    assert len(semantics.list_selectors()) > 150


def test_an_unknown_selector_is_named_with_the_nearest() -> None:
    with pytest.raises(OverlayError, match="did you mean `additionWithPrimaryTensor:secondaryTensor`") as refused:
        semantics.find("additionWithPrimary:secondary")
    assert refused.value.code == "PTR131"


def of(selector: str, *arguments: object) -> torch.Tensor:
    made = semantics.find(selector)(*arguments)
    assert isinstance(made, torch.Tensor)
    return made


def test_integers_are_divided_towards_zero() -> None:
    a, b = torch.tensor([7, -7, 5], dtype=torch.int32), torch.tensor([2, 2, 0], dtype=torch.int32)
    assert of("divisionWithPrimaryTensor:secondaryTensor", a, b).tolist() == [3, -3, 0]


def test_maximum_propagates_nan_only_on_request() -> None:
    x = torch.tensor([[1.0, float("nan")], [float("nan"), float("nan")]])
    plain = of("reductionMaximumWithTensor:axis", x, 1)
    assert plain[0].item() == 1 and plain[1].isnan().item()
    assert of("reductionMaximumPropagateNaNWithTensor:axis", x, 1).isnan().all()


def test_slices_have_masks_and_negative_strides() -> None:
    x = torch.arange(12).reshape(3, 4)
    back = of("sliceTensor:starts:ends:strides", x, [0, 3], [3, -5], [1, -1])
    assert torch.equal(back, x.flip(1))
    row = of("sliceTensor:starts:ends:strides:startMask:endMask:squeezeMask", x, [1, 9], [2, 9], [1, 2], 2, 2, 1)
    assert row.tolist() == [4, 6]


@pytest.mark.parametrize(("mode", "wanted"), [(0, [3, 0, 10]), (6, [2, 0, 10])])
def test_scatters_add_or_set(mode: int, wanted: list[int]) -> None:
    indices, updates = torch.tensor([0, 0, 2]), torch.tensor([1.0, 2.0, 10.0])
    assert of(
        "scatterAlongAxis:withUpdatesTensor:indicesTensor:shape:mode", 0, updates, indices, [3], mode
    ).tolist() == (wanted)


def test_reflections_do_not_repeat_the_edge() -> None:
    x = torch.arange(4.0)
    assert of("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue", x, 1, [2], [1], 0.0).tolist() == (
        [2, 1, 0, 1, 2, 3, 2]
    )
