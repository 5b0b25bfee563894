"""What the test files gain of a new operator: the functions of its OpInfo, the OpInfo, and a test in test_mps.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from porter.plan.new_operator.schema import Schema


@dataclass(frozen=True)
class Sample:
    """A call that the tests make: Python expressions of the arguments, with `make_arg` and `dtype`.

    `before` are statements that set the names in these expressions.
    """

    arguments: tuple[str, ...]
    before: tuple[str, ...] = ()
    keywords: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        first, *rest = self.arguments
        args = f", args=({', '.join(rest)}{',' if len(rest) == 1 else ''})" if rest else ""
        named = ", ".join(f"{name!r}: {text}" for name, text in self.keywords.items())
        kwargs = f", kwargs={{{named}}}" if named else ""
        before = "".join(f"    {line}\n" for line in self.before)
        return f"{before}    yield SampleInput({first}{args}{kwargs})\n"


@dataclass(frozen=True)
class OperatorTests:
    """`functions` make samples and compute what the operator should give (`sample_inputs_OP`, `reference_OP`).

    `opinfo` is the entry of `op_db`, empty for none, and `case` a test case that compares MPS with the reference.
    """

    functions: str
    opinfo: str
    case: str


def write_sample_function(op: str, samples: Iterable[Sample], parameters: str, bounds: str = "") -> str:
    """The function that makes samples. `parameters` are those of its `make_arg`, after the shape.

    `bounds` is a statement in `make_arg` that sets `bounds`, if this is not one of its parameters.
    """
    return (
        f"def sample_inputs_{op}(op_info, device, dtype, requires_grad, **kwargs):\n"
        f"    def make_arg(shape{parameters}):\n{bounds}"
        "        return torch.testing.make_tensor(\n"
        "            shape, device=device, dtype=dtype, requires_grad=requires_grad, **bounds)\n\n"
        f"{''.join(map(str, samples))}"
    )


def write_opinfo(op: str, parameters: str, tensors: str, dtypes: str, autograd: str) -> str:
    """The entry of `op_db`. `tensors` makes what the reference takes of the arguments, for its `parameters`."""
    call = ", **kwargs" if "**kwargs" in parameters else ""
    return (
        f"    OpInfo('{op}',\n"
        f"           ref=lambda {parameters}: reference_{op}(\n"
        f"               *({tensors} for a in args){call}).numpy(),\n"
        f"           dtypes={dtypes},\n"
        f"           sample_inputs_func=sample_inputs_{op},\n{autograd}"
        "           ),\n"
    )


def write_case(schema: Schema, methods: str, helper: str, dtypes: str, statements: Iterable[str]) -> str:
    """A test case: its other `methods`, a function that moves an argument, what is done with the `args` of a sample."""
    op = schema.name
    body = "".join(f"                {line}\n" for line in statements)
    return (
        f"class Test{schema.file}(TestCase):\n{methods}"
        f"    def test_{op}(self):\n"
        "        from torch.testing._internal.common_methods_invocations import (\n"
        f"            reference_{op},\n            sample_inputs_{op},\n        )\n\n"
        f"{helper}\n"
        f"        for dtype in {dtypes}:\n"
        f"            for sample in sample_inputs_{op}(None, 'cpu', dtype, False):\n"
        "                args = (sample.input, *sample.args)\n"
        f"{body}"
    )
