"""Wrong uses: each is refused before anything runs, with a code, the name of the argument and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from porter.core.errors import PorterError
from porter.kernels import MetalKernel, MetalParameter, TorchMetalKernel

BODY = "uint i = thread_position_in_grid.x; out[i] = x[i];"
X = torch.zeros(8, device="mps")


def made(
    name: str = "f", inputs: Any = ("x",), outputs: Any = ("out",), source: str = BODY, **rest: Any
) -> MetalKernel:
    return MetalKernel(name, inputs, outputs, source, **rest)


def call(kernel: MetalKernel | None = None, **changes: Any) -> Any:
    arguments = {"inputs": [X], "grid": (8, 1, 1), "threadgroup": (8, 1, 1), "output_shapes": [(8,)],
                 "output_dtypes": [torch.float32], **changes}  # fmt: skip
    return (kernel or made())(**arguments)


def core(**changes: Any) -> Any:
    arguments: dict[str, Any] = {
        "input_names": ["x"], "result_names": ["out"], "src": "out[id] = x[id];", "torch_defn": torch.clone,
        "metal_params": [MetalParameter("id", "uint", "thread_position_in_grid")], **changes,
    }  # fmt: skip
    return TorchMetalKernel("f", **arguments)


def core_call(*inputs: Any, kernel: Any = None, **changes: Any) -> Any:
    arguments = {
        "threads_per_grid": (8, 1, 1),
        "threads_per_thread_group": (8, 1, 1),
        "result_shapes": [[8]],
        **changes,
    }
    return (kernel or core())(*inputs, **arguments)


def atomic() -> MetalKernel:
    return made(source="atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);", atomic_outputs=True)


MANY = [f"x{i}" for i in range(31)]

WRONG: list[tuple[str, Callable[[], Any], str, str]] = [
    ("a name with a dash", lambda: made("my-exp"), "PTR200", "`my-exp`"),
    ("a keyword as name", lambda: made("kernel"), "PTR200", "`kernel`"),
    ("an input with a dash", lambda: made(inputs=("a-b",)), "PTR201", "input `a-b`"),
    ("a keyword as input", lambda: made(inputs=("device",)), "PTR201", "input `device`"),
    ("one name for input and output", lambda: made(outputs=("x",)), "PTR201", "`x` is used as input and as output"),
    ("one name for two inputs", lambda: made(inputs=("x", "x")), "PTR201", "`x` is used as input and as input"),
    ("an output named as an attribute", lambda: made(outputs=("grid_size",)), "PTR201", "output `grid_size`"),
    ("an input named as a shape", lambda: made(inputs=("x", "x_shape"), source="out[0] = x_shape[0];"), "PTR201",
     "`x_shape`"),
    ("a parameter named as an input", lambda: core(metal_params=[MetalParameter("x", "uint", "grid_size")]), "PTR201",
     "`x`"),
    ("template_dtypes of no input", lambda: core(template_dtypes={"A": "TYPE"}), "PTR201", "`A`"),
    ("text as the list of inputs", lambda: made(inputs="x"), "PTR201", "`input_names` of kernel `f` is 'x', not a list"),
    ("text as the list of results", lambda: core(result_names="out"), "PTR201", "`result_names`"),
    ("arguments in another order", lambda: MetalKernel("f", ("x",), ("out",), ["x"]), "PTR202", "`source` of kernel `f`"),  # type: ignore[arg-type]
    ("no output", lambda: made(outputs=()), "PTR202", "`f` has no outputs"),
    ("an empty body", lambda: made(source=" // nothing\n"), "PTR202", "`f` has an empty body"),
    ("a misspelled attribute", lambda: made(source="out[thread_position_in_gird.x] = 1;"), "PTR203",
     "`thread_position_in_gird`"),
    ("a parameter of no attribute", lambda: core(metal_params=[MetalParameter("id", "uint", "thread_id")]), "PTR203",
     "`id` names `thread_id`"),
    ("a parameter of the wrong type", lambda: core(metal_params=[MetalParameter("id", "int", "grid_size")]), "PTR204",
     "`id` is a `int`"),
    ("an index with dimensions", lambda: core(metal_params=[MetalParameter("id", "uint2", "thread_index_in_simdgroup")]),
     "PTR204", "`id` is a `uint2`"),
    ("a missing input", lambda: call(inputs={}), "PTR205", "lacks `x`"),
    ("too many inputs", lambda: call(inputs=[X, X]), "PTR205", "has 2 entries for 1"),
    ("an unknown input", lambda: call(inputs={"x": X, "y": X}), "PTR205", "`y`"),
    ("no names at all", lambda: call(MetalKernel("f", source=BODY)), "PTR205", "has no names"),
    ("a missing result of Core AI's form", lambda: core_call(), "PTR205", "has 0 entries for 1"),
    ("a missing output shape", lambda: call(output_shapes=[]), "PTR206", "`output_shapes`"),
    ("a missing output type", lambda: call(output_dtypes=[]), "PTR206", "`output_dtypes`"),
    ("an unknown output", lambda: call(output_shapes={"out": (8,), "y": (8,)}), "PTR206", "`y`"),
    ("a negative length", lambda: call(output_shapes=[(-8,)]), "PTR206", "output `out`"),
    ("a shape that is no shape", lambda: call(output_shapes=["8"]), "PTR206", "output `out`"),
    ("too few result shapes", lambda: core_call(X, result_shapes=[]), "PTR206", "`result_shapes`"),
    ("a list for an input", lambda: call(inputs=[[1.0, 2.0]]), "PTR207", "input `x`"),
    ("a number whose type is asked for", lambda: core_call(3.0, kernel=core(template_dtypes={"x": "T"})), "PTR207",
     "input `x`"),
    ("an input on the CPU beside one on the device", lambda: call(made(inputs=("x", "y")), inputs=[X, X.cpu()]),
     "PTR208", "input `y`"),
    ("a type that Metal lacks", lambda: call(inputs=[torch.zeros((), dtype=torch.float64)]), "PTR209", "input `x`"),
    ("an output type that Metal lacks", lambda: call(output_dtypes=[torch.float64]), "PTR209", "output `out`"),
    ("an output type that is none", lambda: call(output_dtypes=["float"]), "PTR209", "output `out`"),
    ("a template parameter with a fraction", lambda: call(template={"N": 1.5}), "PTR210", "`N`"),
    ("a template parameter of a type that Metal lacks", lambda: call(template={"T": torch.float64}), "PTR210", "`T`"),
    ("a template parameter named as an input", lambda: call(template={"x": 1}), "PTR210", "`x`"),
    ("a grid of four dimensions", lambda: call(grid=(1, 1, 1, 1)), "PTR211", "`grid`"),
    ("a negative grid", lambda: call(grid=(-1, 1, 1)), "PTR211", "`grid`"),
    ("a grid with a fraction", lambda: call(grid=(1.5, 1, 1)), "PTR211", "`grid`"),
    ("an empty threadgroup", lambda: call(threadgroup=(0, 1, 1)), "PTR211", "`threadgroup`"),
    ("a threadgroup above the limit", lambda: call(grid=(64, 64, 1), threadgroup=(64, 32, 1)), "PTR212", "2048 threads"),
    ("more than 31 buffers", lambda: call(made(inputs=MANY, source="out[0] = x0[0];"), inputs=[X] * 31), "PTR213",
     "takes 32 buffers"),
    ("more than 32 KB of threadgroup memory",
     lambda: call(made(source="threadgroup float t[9000]; t[0] = x[0]; out[0] = t[0];")), "PTR214", "36000 bytes"),
    ("a number that is too wide", lambda: call(made(inputs=("x", "n")), inputs=[X, 3_000_000_000]), "PTR215",
     "input `n`"),
    ("an atomic of half", lambda: call(atomic(), output_dtypes=[torch.float16]), "PTR216", "output `out`"),
    ("a fraction in a whole output", lambda: call(init_value=0.5, output_dtypes=[torch.int32]), "PTR217", "`out`"),
    ("a start value that is too wide", lambda: call(init_value=300, output_dtypes=[torch.uint8]), "PTR217", "`out`"),
    ("strides that the body does not read",
     lambda: call(made(ensure_row_contiguous=False), inputs=[torch.zeros(16, device="mps")[::2]]), "PTR218", "x_strides"),
    ("a sparse input", lambda: call(made(inputs=("x", "y")), inputs=[X, torch.zeros(4, 4).to_sparse()]), "PTR218",
     "input `y`"),
    ("a template parameter without a value", lambda: call(made(source="T y = x[0]; out[0] = y;")), "PTR219",
     'template={"T": torch.float32}'),
    ("a body that does not compile", lambda: call(made(source="\nout[0] = y[0];")), "PTR219", "f body:2"),
    ("a CPU input and no reference", lambda: call(inputs=[X.cpu()]), "PTR221", "input `x`"),
    ("a shape that is not the reference's", lambda: core_call(X, result_shapes=[[4]]), "PTR222", "output `out`"),
    ("a launch with an argument that no call has", lambda: made(launch=lambda x: {"thread_group": (8, 1, 1)}).run(X), "PTR258",
     "`thread_group`"),
    ("a launch that gives nothing", lambda: made(launch=lambda x: None).run(X), "PTR258", "gives a NoneType"),
    ("a check without a reference", lambda: made().check([X]), "PTR221", "`f` has no reference"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "code", "said"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_wrong_use(use: Callable[[], Any], code: str, said: str) -> None:
    with pytest.raises(PorterError) as caught:
        use()
    error = caught.value
    assert error.code == code and said in str(error)
    assert error.hint.endswith((".", "?")) or error.hint.endswith("`.")


def test_words_that_the_body_declares_are_no_attributes() -> None:
    body = "uint thread_index_in_row = thread_position_in_grid.x; out[thread_index_in_row] = x[thread_index_in_row];"
    assert call(made(source=body))[0].tolist() == [0] * 8
