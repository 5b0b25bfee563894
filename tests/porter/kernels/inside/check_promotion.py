"""Stages of scripts as operators: what is written for templates, and what is refused of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.kernels.loading import load
from porter.kernels.promotion.reading import read_promotion
from porter.kernels.promotion.subject import find_subject
from porter.plan.promotion.planner import PromotionPlan, plan_promotion
from porter.plan.promotion.promotion import ScriptWish

pytestmark = pytest.mark.usefixtures("compiled_soon")

ROOT = Path(__file__).resolve().parents[4]
HEAD = """
import math
import torch
from porter.kernels import MetalKernel
from porter.kernels.script import Kind, Script, Stage, expect

KERNEL = MetalKernel("k", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = T(x[i]);")
NEEDS = MetalKernel("n", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = T(x[i]) * N;")

def launch(kernel, x, template=(), **other):
    given = dict(
        inputs={"x": x}, template={"T": x.dtype, **dict(template)}, grid=(x.numel(), 1, 1), threadgroup=(64, 1, 1),
        output_shapes={"out": x.shape}, output_dtypes={"out": x.dtype},
    )
    return kernel(**{**given, **other})["out"]

def reference(x):
    return x.clone()
"""
TAIL = """
SCRIPT = Script(
    summary="", kind=Kind.ELEMENTWISE, stages=(Stage("run", run, reference, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)}, sizes=((2, 3),), benchmark=(),
)
"""


def plan(path: Path, op: str, stage: str | None = None, **wish: Any) -> PromotionPlan:
    asked = ScriptWish(op, stage, **wish)
    return plan_promotion(Checkout(EMBEDDED_FORK, "embedded"), read_promotion(find_subject(path, asked), asked))


def written(template: str, op: str, stage: str | None = None) -> str:
    return plan(ROOT / "templates" / f"{template}.py", op, stage).changes.diff().replace(f"{ROOT}/", "")


def refused(tmp_path: Path, body: str, op: str = "my_op", **wish: Any) -> str:
    """What is said of a script with this function `run`, with the line's text in place of its number."""
    path = tmp_path / "script.py"
    path.write_text(HEAD + body + TAIL)
    with pytest.raises(PorterError) as caught:
        plan(path, op, **wish)
    place = caught.value.place
    line = path.read_text().splitlines()[place.line - 1].strip() if place and place.line else ""
    return f"{caught.value.code} {caught.value.what} [{line}]"


def promoted(tmp_path: Path, body: str, **wish: Any) -> PromotionPlan:
    path = tmp_path / "script.py"
    path.write_text(HEAD + body + TAIL)
    return plan(path, "my_op", **wish)


VALUES: dict[str, dict[str, tuple[int, ...]]] = {
    "attention attention": {"D": (64,)},
    "attention_variants causal": {"D": (64,), "SHARED": (1, 2)},
    "attention_variants sliding_window": {"D": (64,), "SHARED": (1, 2), "WINDOW": (5,)},
    "attention_variants grouped_query": {"D": (64,), "SHARED": (1, 2)},
}
REFUSED = {"grid_sample backward": "PTR244", "transformer eager": "PTR245", "transformer compiled": "PTR245"}


@pytest.mark.parametrize("template", sorted(path.stem for path in (ROOT / "templates").glob("*.py")))
def test_which_stages_of_templates_are_operators(template: str) -> None:
    path = ROOT / "templates" / f"{template}.py"
    for stage in load(path).stages:
        wish = ScriptWish("my_op", stage.name, instantiate=tuple(VALUES.get(f"{template} {stage.name}", {}).items()))
        code = REFUSED.get(f"{template} {stage.name}")
        try:
            read_promotion(find_subject(path, wish), wish)
        except PorterError as error:
            assert error.code == code, f"{stage.name}: {error}"
        else:
            assert code is None, stage.name


@pytest.mark.parametrize(
    ("template", "hint"), [("attention", "Those are D."), ("silu", "Leave --instantiate out: there are none.")]
)
def test_values_of_a_parameter_that_there_is_not(template: str, hint: str) -> None:
    path, wish = ROOT / "templates" / f"{template}.py", ScriptWish("my_op", instantiate=(("Q", (3,)),))
    with pytest.raises(PorterError) as caught:
        read_promotion(find_subject(path, wish), wish)
    error = caught.value
    assert (error.code, error.what, error.hint) == ("PTR247", "no template parameter `Q` depends on the call", hint)


def test_checks_keep_their_order_and_error(tmp_path: Path) -> None:
    found = promoted(tmp_path, """
def run(x):
    if x.dim() != 2 or x.shape[0] > 5 * x.shape[1]:
        raise TypeError(f"x is {tuple(x.shape)}")
    rows, columns = x.shape
    expect(rows % 2 == 0 or columns == 1, f"{rows} and {columns}")
    return launch(KERNEL, x, grid=(rows * columns, 1, 1))
""")  # fmt: skip
    text = found.changes.apply()["aten/src/ATen/native/MyOp.cpp"]
    checks = text[text.index("TORCH_META_FUNC") : text.index("} // namespace at::meta")]
    assert_expected_inline(
        checks,
        """\
TORCH_META_FUNC(my_op)(const Tensor& x) {
  TORCH_CHECK_TYPE(
      x.dim() == 2 && x.size(0) <= 5 * x.size(1), "my_op: x is ", x.sizes());
  TORCH_CHECK_VALUE(
      x.size(0) % 2 == 0 || x.size(1) == 1,
      "my_op: ",
      x.size(0),
      " and ",
      x.size(1));
  set_output_contiguous(0, x.sizes(), x.options());
}

""",
    )


def test_a_stage_among_several_has_to_be_named() -> None:
    with pytest.raises(PorterError, match=r"PTR241 the script has several stages\n.*fill, axpy"):
        written("quickstart", "my_op")
    with pytest.raises(PorterError, match="PTR241 the script has no stage other"):
        written("quickstart", "my_op", "other")
    with pytest.raises(PorterError, match="PTR241 `My-op` cannot be the name"):
        written("silu", "My-op")


def test_a_stage_may_return_the_list_that_its_kernel_returns(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    call = "launch(KERNEL, x, output_shapes=[x.shape], output_dtypes=[x.dtype])"
    path.write_text(HEAD.replace(')["out"]', ")") + f"def run(x):\n    return {call}\n" + TAIL)
    assert "+- func: my_op(Tensor x) -> Tensor" in plan(path, "my_op").changes.diff()


def test_an_operator_or_a_file_that_is_there_stays() -> None:
    with pytest.raises(PorterError, match=r"native_functions.yaml:\d+: PTR242 the fork has the operator exp already"):
        written("silu", "exp")
    with pytest.raises(PorterError, match=r"UnaryKernel.metal: PTR242 the fork has this file already"):
        written("silu", "unary_kernel")


def test_what_cannot_be_carried_is_refused_at_its_line(tmp_path: Path) -> None:
    assert_expected_inline(
        "\n".join(
            refused(tmp_path, body)
            for body in (
                "def run(x):\n    return launch(KERNEL, x, grid=(sum(x.shape[i] for i in range(x.shape[0])), 1, 1))\n",
                "def run(x):\n    rows, columns = x.shape\n    return launch(KERNEL, x)\n",
                "def run(x):\n    return launch(KERNEL, torch.exp(x))\n",
                "def run(x):\n    return launch(KERNEL, x.float())\n",
                "def run(x):\n    return launch(KERNEL, x) + 1\n",
                "def run(x):\n    return launch(KERNEL, x).to(torch.float64)\n",
                "def run(x):\n    launch(KERNEL, x)\n    return launch(KERNEL, x)\n",
                "def run(x):\n    return launch(KERNEL if x.numel() > 3 else NEEDS, x, {} if x.numel() > 3 else {'N': 2})\n",
                "def run(x):\n    return x\n",
                "def run(x):\n    raise ValueError('never')\n",
                "def run(x):\n    return launch(NEEDS, x, {'N': x.shape[0]})\n",
                "def run(x):\n    return launch(KERNEL, x, grid=(4 if x.dtype == torch.float16 else 2, 1, 1))\n",
                "def run(x):\n    n = 0\n    while x.numel() > n:\n        n += 1\n    return launch(KERNEL, x)\n",
                "def run(x):\n    return launch(KERNEL, x)\nreference = lambda x: x\n",
                "def run(x):\n    return launch(KERNEL, x)\ndef reference(x):\n    return launch(KERNEL, x)\n",
            )
        ),
        """\
PTR243 the script needs the value of a size here, which only a call has [return launch(KERNEL, x, grid=(sum(x.shape[i] for i in range(x.shape[0])), 1, 1))]
PTR243 the script needs to know here how many dimensions a tensor has, which it has not checked [rows, columns = x.shape]
PTR244 the script uses torch's `exp` beside its kernel, which host code is not written for [return launch(KERNEL, torch.exp(x))]
PTR244 the script uses a tensor's `float` beside its kernel, which host code is not written for [return launch(KERNEL, x.float())]
PTR244 the script uses arithmetic of a kernel's result, which host code is not written for [return launch(KERNEL, x) + 1]
PTR244 the script converts a result of the kernel from float32 to float64 [return launch(KERNEL, x).to(torch.float64)]
PTR244 the stage launches more than one kernel: k is the second [return kernel(**{**given, **other})["out"]]
PTR244 the stage launches one of several kernels: k, n [return kernel(**{**given, **other})["out"]]
PTR244 the stage returns something else than its kernel's outputs []
PTR245 no call reaches a kernel: never [raise ValueError('never')]
PTR247 template parameter N depends on the call, and kernels are compiled ahead [return kernel(**{**given, **other})["out"]]
PTR244 the script decides by element types how it launches its kernel [def run(x):]
PTR245 the script takes more than 64 decisions on sizes here [while x.numel() > n:]
PTR248 the reference of the stage is not a plain function of the script [def run(x):]
PTR248 the reference of the stage uses `KERNEL` of the script, which the tests would not have [return launch(KERNEL, x)]""",
    )


def test_a_schema_may_name_arguments_but_not_change_them(tmp_path: Path) -> None:
    body = "def run(x):\n    return launch(KERNEL, x)\n"
    found = promoted(tmp_path, body, schema="my_op(Tensor input) -> Tensor")
    assert "- func: my_op(Tensor input) -> Tensor\n" in found.changes.diff().replace("\n+", "\n")
    assert_expected_inline(
        "\n".join(
            refused(tmp_path, body, schema=schema)
            for schema in (
                "my_op(Tensor input, int n) -> Tensor",
                "other(Tensor input) -> Tensor",
                "my_op(int input) -> Tensor",
                "my_op(Tensor input",
            )
        ),
        """\
PTR246 the schema does not fit the stage: my_op(Tensor input, int n) -> Tensor []
PTR246 the schema does not fit the stage: other(Tensor input) -> Tensor []
PTR246 the schema does not fit the stage: my_op(int input) -> Tensor []
PTR246 the schema cannot be read: expected ) but found 'eof' here []""",
    )


def test_chosen_template_values_are_instantiated_and_required(tmp_path: Path) -> None:
    body = "def run(x):\n    return launch(NEEDS, x, {'N': x.shape[-1]})\n"
    texts = promoted(tmp_path, body, instantiate=(("N", (3, 8)),)).changes.apply()
    kernel = texts["aten/src/ATen/native/mps/kernels/MyOp.metal"]
    assert "INSTANTIATE_MY_OP(half, 3)" in kernel
    assert "INSTANTIATE_MY_OP(half, 8)" in kernel
    assert (
        'TORCH_CHECK_VALUE(x.size(-1) == 3 || x.size(-1) == 8, "my_op: N has to be one of 3, 8, not ", x.size(-1));'
        in (" ".join(texts["aten/src/ATen/native/MyOp.cpp"].split()).replace("( ", "("))
    )


def test_what_a_kernel_writes_for_itself_is_a_tensor_of_the_host_code(tmp_path: Path) -> None:
    found = promoted(tmp_path, """
BOTH = MetalKernel("b", ["x"], ["out", "extra"], "uint i = thread_position_in_grid.x; out[i] = x[i]; extra[i] = i;")

def run(x):
    return BOTH(
        inputs={"x": x}, grid=(x.numel(), 1, 1), threadgroup=(64, 1, 1), init_value=1,
        output_shapes={"out": x.shape, "extra": (x.numel(),)},
        output_dtypes={"out": x.dtype, "extra": torch.int32},
    )["out"]
""")  # fmt: skip
    text = found.changes.apply()["aten/src/ATen/native/mps/operations/MyOp.mm"]
    assert "const Tensor extra = at::empty({x.numel()}, x.options().dtype(kInt));" in text
    assert "  out.fill_(1);\n  extra.fill_(1);\n" in text
    assert "mtl_setArgs(encoder, x_, out, extra);" in text


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    found = promoted(tmp_path, """
TABLE = {}

class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return launch(KERNEL, x, threadgroup=(TABLE.get(x.numel(), 64), 1, 1))

def run(x):
    return Run.apply(x)

def reference(x):
    return x[:] * 1
""")  # fmt: skip
    assert_expected_inline(
        "\n".join(str(each).replace(str(tmp_path), "") for each in found.decisions),
        """\
/script.py:29: PTR249 the gradient of Run is left out: give the operator a row in derivatives.yaml
/script.py:26: PTR249 the script looks up a size in a table of its own: the operator has none, as if it were not in it
/script.py:31: PTR249 the reference is more than calls of ATen (/script.py:32: PTR244 the script uses arithmetic of tensors beside its kernel, which host code is not written for): write an implementation for the CPU and an OpInfo, or leave the operator to MPS
/script.py:15: PTR249 there is no gradient: add a formula to derivatives.yaml, or leave the operator without one""",
    )


def test_samples_of_what_earlier_stages_give_are_computed_by_their_references() -> None:
    tests = plan(ROOT / "templates" / "counting_sort.py", "sort", "scatter").promotion.tests
    last = tests.samples[-1]
    assert last.arguments == ("keys", "starts")
    assert_expected_inline(
        "\n".join(last.before),
        """\
keys = make_arg((9001,), low=0, high=256)
counts = reference_sort_histogram(keys)
starts = reference_sort_exclusive_sum(counts)""",
    )
    values: dict[str, Any] = {"torch": torch}
    exec(tests.reference, values)
    keys = torch.tensor([3, 0, 3], dtype=torch.int32)
    starts = values["reference_sort_exclusive_sum"](values["reference_sort_histogram"](keys))
    assert starts[0, :5].tolist() == [0, 1, 1, 1, 3]
    assert values["reference_sort"](keys, starts).tolist() == [0, 3, 3]
