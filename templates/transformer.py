"""End to end: a kernel in place of `nn.RMSNorm` in a small transformer, trained with and without torch.compile.

The kernel is a torch operator with a gradient, so that autograd and torch.compile take it like any other. Each stage
trains the same model from the same start and gives the loss of every step; the reference is the stock model on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from porter.kernels import MetalKernel
from porter.kernels.script import Case, Kind, Layout, Refusal, Script, Stage, Values, expect, run_script

WORDS, HEADS = 50, 2
EPS = 1e-5

FORWARD = """
    uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup;
    uint n = uint(columns);
    float squares = 0;
    for (uint i = lane; i < n; i += 32) squares += x[row * n + i] * x[row * n + i];
    float scale = rsqrt(simd_sum(squares) / float(n) + eps);
    for (uint i = lane; i < n; i += 32) out[row * n + i] = x[row * n + i] * scale * weight[i];
"""
# With y = x * scale, the gradient of x is scale * (g * weight - y * mean(g * weight * y)), of weight the sum of g * y.
BACKWARD = MetalKernel(
    "rms_norm_gradient",
    input_names=["x", "weight", "gradient", "eps", "columns"],
    output_names=["x_grad", "weight_grad"],
    atomic_outputs=True,
    source="""
    uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup;
    uint n = uint(columns);
    float squares = 0, dots = 0;
    for (uint i = lane; i < n; i += 32) {
      float v = x[row * n + i];
      squares += v * v;
      dots += gradient[row * n + i] * weight[i] * v;
    }
    float scale = rsqrt(simd_sum(squares) / float(n) + eps);
    float mean = simd_sum(dots) * scale / float(n);
    for (uint i = lane; i < n; i += 32) {
      float g = gradient[row * n + i], y = x[row * n + i] * scale;
      atomic_store_explicit(&x_grad[row * n + i], scale * (g * weight[i] - y * mean), memory_order_relaxed);
      atomic_fetch_add_explicit(&weight_grad[i], g * y, memory_order_relaxed);
    }
    """,
)


def reference(x: Tensor, weight: Tensor, eps: float, columns: int) -> Tensor:
    """What the kernel computes, in the order of its inputs."""
    return nn.functional.rms_norm(x, (columns,), weight, eps)


def gradient(primals: Any, cotangent: Tensor, _output: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of the kernel's inputs, by another kernel."""
    x, weight, eps, columns = primals
    outputs = BACKWARD(
        inputs={"x": x, "weight": weight, "gradient": cotangent, "eps": eps, "columns": columns},
        grid=(x.numel() // columns * 32, 1, 1),
        threadgroup=(32, 1, 1),
        output_shapes={"x_grad": x.shape, "weight_grad": weight.shape},
        output_dtypes={"x_grad": x.dtype, "weight_grad": x.dtype},
        init_value=0,
    )
    return outputs["x_grad"], outputs["weight_grad"], None, None


RMS_NORM = MetalKernel(
    "rms_norm_for_training",
    input_names=["x", "weight", "eps", "columns"],
    output_names=["out"],
    source=FORWARD,
    reference=reference,
    vjp=gradient,
)


def rms_norm(x: Tensor, weight: Tensor, eps: float = EPS) -> Tensor:
    """RMSNorm in float, differentiable."""
    expect(x.dtype == torch.float32, f"x has to be float, not {x.dtype}")
    expect(weight.shape == x.shape[-1:], f"weight has to have {x.shape[-1]} elements, not shape {tuple(weight.shape)}")
    outputs = RMS_NORM(
        inputs={"x": x, "weight": weight, "eps": eps, "columns": x.shape[-1]},
        grid=(x.numel() // x.shape[-1] * 32, 1, 1),
        threadgroup=(32, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


class KernelRMSNorm(nn.Module):
    """`nn.RMSNorm` by the kernel, with the same parameter."""

    def __init__(self, norm: nn.RMSNorm) -> None:
        super().__init__()
        self.weight, self.eps = norm.weight, norm.eps

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, EPS if self.eps is None else self.eps)


def patch(model: nn.Module) -> int:
    """Replaces every `nn.RMSNorm` of a model; how many there were."""
    count = 0
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.RMSNorm):
                setattr(module, name, KernelRMSNorm(child))
                count += 1
    return count


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(width, eps=EPS), nn.RMSNorm(width, eps=EPS)])
        self.mix, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.mix(self.norms[0](x)).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        fed: Tensor = self.feed(self.norms[1](x))
        return x + fed


class Transformer(nn.Module):
    """A language model of one block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed, self.block = nn.Embedding(WORDS, width), Block(width)
        self.norm, self.head = nn.RMSNorm(width, eps=EPS), nn.Linear(width, WORDS)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(self.block(self.embed(tokens))))
        return logits


def train(model: Any, parameters: list[nn.Parameter], tokens: Tensor, steps: int) -> Tensor:
    """The loss of every step of plain gradient descent."""
    losses = []
    for _ in range(steps):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        found = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, each in zip(parameters, found, strict=True):
                parameter.sub_(0.1 * each)
        losses.append(loss.detach())
    return torch.stack(losses)


def build(width: int) -> Transformer:
    """The model, always with the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Transformer(width)


def train_stock(tokens: Tensor, width: int, steps: int) -> Tensor:
    """`nn.RMSNorm` as torch has it."""
    model = build(width).to(tokens.device)
    return train(model, list(model.parameters()), tokens, steps)


def train_patched(tokens: Tensor, width: int, steps: int) -> Tensor:
    """The kernels, called one by one."""
    model = build(width).to(tokens.device)
    expect(patch(model) == 3, "model has to have three norms")
    return train(model, list(model.parameters()), tokens, steps)


def train_compiled(tokens: Tensor, width: int, steps: int) -> Tensor:
    """The kernels in one traced graph: `fullgraph` refuses a graph break."""
    model = build(width).to(tokens.device)
    patch(model)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    return train(compiled, list(model.parameters()), tokens, steps)


def make_inputs(case: Case) -> Values:
    batch, length, width, steps = case.size
    tokens = case.integers(batch, length, below=WORDS, dtype=torch.int64)
    return {"tokens": tokens, "width": width, "steps": steps}


TAKES = ("tokens", "width", "steps")
SCRIPT = Script(
    summary="nn.RMSNorm patched in a small transformer, trained with and without torch.compile",
    kind=Kind.MODEL,
    stages=(
        Stage("eager", train_patched, train_stock, TAKES, ("losses",)),
        Stage("compiled", train_compiled, train_stock, TAKES, ("compiled_losses",)),
    ),
    inputs=make_inputs,
    sizes=((2, 9, 36, 3),),
    benchmark=((4, 33, 64, 5),),
    dtypes=(torch.float32,),
    layouts=(Layout.DENSE,),
    refusals=(
        Refusal("x", lambda: rms_norm(torch.zeros(2, 3, dtype=torch.float16), torch.zeros(3))),
        Refusal("weight", lambda: rms_norm(torch.zeros(2, 3), torch.zeros(4))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
