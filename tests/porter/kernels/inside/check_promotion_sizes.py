"""The sizes that a script leaves unchecked are checked by its operator: those that the reference or the kernel refuses."""

from __future__ import annotations

from pathlib import Path

from expecttest import assert_expected_inline

from porter.kernels.promotion.reading import read_promotion
from porter.kernels.promotion.subject import find_subject
from porter.plan.promotion.promotion import Promotion, ScriptWish

HEAD = """
import torch
from porter.kernels import MetalKernel
from porter.kernels.script import Kind, Script, Stage, expect
"""
# The kernel reads as many elements of the bias as a row has.
BIAS = """
KERNEL = MetalKernel("k", ["x", "bias"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i] + bias[i % N];")

def run(x, bias):
    return KERNEL(
        inputs={"x": x, "bias": bias}, template={"N": x.shape[-1]}, grid=(x.numel(), 1, 1), threadgroup=(64, 1, 1),
        output_shapes={"out": x.shape}, output_dtypes={"out": x.dtype},
    )["out"]

def reference(x, bias):
    return x + bias

def inputs(case):
    rows, columns = case.size
    return {"x": case.normal(rows, columns), "bias": case.normal(columns)}

TAKES = ("x", "bias")
SIZES = ((2, 3), (5, 4))
"""
# Two codes of 4 bits are one byte; a scale is of 4 codes; what is left over of the scales is not read.
PACKED = """
KERNEL = MetalKernel(
    "k", ["codes", "scales"], ["out"],
    "uint i = thread_position_in_grid.x; uint code = codes[i / 2] >> (4 * (i % 2)) & 15; out[i] = code * scales[i / 4];",
)

def run(codes, scales):
    expect(codes.dim() == 1, "codes has to have one dimension, not {}", codes.dim())
    return KERNEL(
        inputs={"codes": codes, "scales": scales}, grid=(2 * codes.shape[0], 1, 1), threadgroup=(64, 1, 1),
        output_shapes={"out": (2 * codes.shape[0],)}, output_dtypes={"out": scales.dtype},
    )["out"]

def reference(codes, scales):
    split = torch.stack((codes & 15, codes >> 4), -1).flatten().to(scales.dtype)
    return split * scales.repeat_interleave(4)[: split.numel()]

def inputs(case):
    (groups,) = case.size
    return {"codes": case.integers(2 * groups, below=256, dtype=torch.uint8), "scales": case.normal(groups)}

TAKES = ("codes", "scales")
SIZES = ((3,), (8,))
"""
TAIL = """
SCRIPT = Script(
    summary="", kind=Kind.ELEMENTWISE, stages=(Stage("run", run, reference, TAKES),), inputs=inputs, sizes=SIZES,
    benchmark=(), dtypes=(torch.float32,),
)
"""


def read(folder: Path, body: str, **instantiate: tuple[int, ...]) -> Promotion:
    path = folder / "script.py"
    path.write_text(HEAD + body + TAIL)
    wish = ScriptWish("my_op", instantiate=tuple(instantiate.items()))
    return read_promotion(find_subject(path, wish), wish)


def checks(promotion: Promotion) -> str:
    """The checks of the operator in C++."""
    return "".join(f"{each.write(promotion.op)}\n" for each in promotion.program.requirements)


def test_a_bias_has_as_many_elements_as_the_input_has_columns(tmp_path: Path) -> None:
    assert_expected_inline(
        checks(read(tmp_path, BIAS, N=(3, 4))),
        """\
TORCH_CHECK_VALUE(bias.numel() == x.size(-1), "my_op: bias has to have ", x.size(-1), " elements, not ", bias.numel());
TORCH_CHECK_VALUE(x.size(-1) == 3 || x.size(-1) == 4, "my_op: N has to be one of 3, 4, not ", x.size(-1));
""",
    )


def test_parts_and_multiples_of_sizes(tmp_path: Path) -> None:
    assert_expected_inline(
        checks(read(tmp_path, PACKED)),
        """\
TORCH_CHECK_VALUE(codes.dim() == 1, "my_op: codes has to have one dimension, not ", codes.dim());
TORCH_CHECK_VALUE(scales.size(-1) * 2 >= codes.size(0), "my_op: scales has size ", scales.size(-1), " in dimension -1, 2 times which has to be at least ", codes.size(0));
""",
    )
