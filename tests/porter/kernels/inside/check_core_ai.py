"""Kernels of scripts written for Core AI: what was written runs, and computes what the stage's reference does."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from expecttest import assert_expected_inline

import porter.kernels
from porter.core.errors import PorterError
from porter.kernels.compare import BY_TYPE, compare
from porter.kernels.export import export, read_back
from porter.kernels.loading import FoundKernel, load_kernels
from porter.kernels.script import Case

pytestmark = pytest.mark.usefixtures("compiled_soon")

TEMPLATES = Path(__file__).parents[4] / "templates"
WRITTEN = [
    ("attention", "attention_simple"), ("attention", "attention"), ("attention_variants", "attention_variant"),
    ("layer_norm", "layer_norm_simple"), ("layer_norm", "layer_norm"), ("matmul", "matmul"), ("quickstart", "axpy"),
    ("rms_norm", "rms_norm"), ("rope", "rope_simple"), ("rope", "rope"), ("silu", "silu_strided"),
    ("silu", "silu_by_four"), ("softmax", "softmax_simple"), ("dequant_matvec", "dequant_matvec_simple"),
    ("grid_sample", "grid_sample"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def core_ai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Core AI's modules, with porter's kernel."""
    for name in ("coreai", "coreai.authoring", "coreai_torch"):
        monkeypatch.setitem(sys.modules, name, porter.kernels)


def load(script: str, name: str) -> FoundKernel:
    return load_kernels(TEMPLATES / f"{script}.py")[name]


def write(found: FoundKernel) -> str:
    (text,) = export(found.kernel, "coreai", call=found.call, use=found.use).values()
    return text


def module(text: str) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    exec(compile(text, "module", "exec"), scope)
    return scope


@pytest.mark.parametrize(("script", "name"), WRITTEN, ids=[name for _, name in WRITTEN])
def test_a_kernel_of_a_script_computes_what_its_stage_does(script: str, name: str) -> None:
    found = load(script, name)
    text = write(found)
    scope = module(text)
    assert read_back(text, "coreai").kernel == scope["kernel"].kernel
    assert found.use is not None
    values, reference = found.use.values, found.use.stage.reference
    got = scope[name](*(values[each] for each in inspect.signature(scope[name]).parameters))
    cpu = [v.cpu() if isinstance(v, torch.Tensor) else v for v in values.values()]
    precise = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in cpu]
    assert got.dtype == reference(*cpu).dtype
    assert compare("out", got.cpu(), reference(*precise), BY_TYPE)[1] is None


def test_sizes_are_read_when_the_kernel_runs() -> None:
    run = module(write(load("layer_norm", "layer_norm")))["layer_norm"]
    case = Case((3, 2, 77), torch.float32)
    x, weight, bias = case.normal(3, 2, 77), case.normal(77), case.normal(77, seed=1)
    expected = torch.nn.functional.layer_norm(x.cpu(), (77,), weight.cpu(), bias.cpu())
    assert torch.allclose(run(x, weight, bias).cpu(), expected, atol=1e-5)


def test_what_the_file_is_not_for_is_refused() -> None:
    silu, norm = (module(write(load(*names))) for names in (("silu", "silu_by_four"), ("layer_norm", "layer_norm")))
    with pytest.raises(ValueError, match=r"export the kernel again: here \(3 if x.shape\[0\] >= 16 else 0\) == 3 has"):
        silu["silu_by_four_reference"](torch.zeros(5))
    with pytest.raises(ValueError, match="x has to be of rank 3"):
        norm["layer_norm_reference"](torch.zeros(5, 4), torch.zeros(4), torch.zeros(4))


@pytest.mark.parametrize(
    ("script", "name", "said"),
    [
        ("quickstart", "fill", "takes no tensor|does not get"),
        ("dequant_matvec", "dequant_matvec", "gets `codes` from its stage in another form"),
        ("counting_sort", "histogram_simple", "atomic outputs or a start value"),
    ],
)
def test_what_core_ai_cannot_hold_is_refused(script: str, name: str, said: str) -> None:
    with pytest.raises(PorterError, match=f"PTR231(.|\n)*({said})"):
        write(load(script, name))


def test_a_type_gets_a_word_that_is_part_of_no_other() -> None:
    kernel = porter.kernels.MetalKernel(
        "twice", ["x"], ["y"], "T TOTAL = x[thread_position_in_grid.x]; y[thread_position_in_grid.x] = T(2) * TOTAL;",
        reference=torch.relu, launch=lambda x: {"template": {"T": x.dtype}},
    )  # fmt: skip
    (text,) = export(kernel, "coreai", [torch.ones(4, device="mps")]).values()
    assert "T_TYPE TOTAL = " in text and "T_TYPE(2) * TOTAL" in text and "{'x': 'T_TYPE'}" in text


def test_the_text() -> None:
    assert_expected_inline(
        write(load("quickstart", "axpy")),
        """\
\"\"\"Kernel `axpy` for Core AI, written by porter.\"\"\"

import torch
from coreai.authoring import MetalParameter
from coreai_torch import TorchMetalKernel

def axpy_reference_of_stage(a, x, y):
    return torch.add(y, x, alpha=a)


def axpy_reference(x, y):
    if x.dim() != 1:
        raise ValueError("x has to be of rank 1")
    if y.dim() != 1:
        raise ValueError("y has to be of rank 1")
    return axpy_reference_of_stage(0.75, x, y)

kernel = TorchMetalKernel(
    "axpy",
    input_names=["x", "y"],
    result_names=["out"],
    src=\"\"\"const float a = 0.75f;
uint i = thread_position_in_grid.x;
out[i] = T(a * float(x[i]) + float(y[i]));
\"\"\",
    torch_defn=axpy_reference,
    metal_params=[
        MetalParameter("thread_position_in_grid", "uint3", "thread_position_in_grid"),
    ],
    helper_src="",
    template_dtypes={'x': 'T'},
)


def axpy(x, y):
    return kernel(
        x, y,
        threads_per_grid=(x.shape[0], 1, 1),
        threads_per_thread_group=(256, 1, 1),
        result_shapes=[[x.shape[0]]],
    )
""",
    )
