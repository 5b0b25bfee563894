"""The OpInfo of a new operator, its reference and samples, its test in test_mps.py, and its documentation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from porter.languages.brackets import strip_parentheses
from porter.plan.new_operator.expression import needs_positive, write_python
from porter.plan.new_operator.operator import NewOperator
from porter.plan.new_operator.schema import Argument, Schema

_VALUES = {"float": "0.75", "int": "2", "bool": "True"}
_SHAPES = ("()", "(5,)", "(3, 4)", "(2, 0, 3)")


def write_functions(operator: NewOperator) -> str:
    """The functions that compute what the operator should give, and that make samples."""
    schema, low = operator.schema, 0.25 if needs_positive(operator.expression) else -2.0
    math = "    import math\n\n" if "math." in write_python(operator.expression) else ""
    return (
        f"def reference_{schema.name}({_parameters(schema)}):\n{math}"
        f"    return {strip_parentheses(write_python(operator.expression))}\n\n\n"
        f"def sample_inputs_{schema.name}(op_info, device, dtype, requires_grad, **kwargs):\n"
        "    def make_arg(shape):\n"
        "        bounds = {} if dtype is torch.bool else "
        f"{{'low': {low} if dtype.is_floating_point else 1, 'high': 2.0 if dtype.is_floating_point else 5}}\n"
        "        return torch.testing.make_tensor(\n"
        "            shape, device=device, dtype=dtype, requires_grad=requires_grad, **bounds)\n\n"
        f"{''.join(_samples(schema))}"
    )


def _samples(schema: Schema) -> Iterator[str]:
    others = [each for each in schema.arguments[1:] if not each.keyword]
    for shape in _SHAPES:
        yield _sample(schema, others, shape, default=False)
    if any(each.default is not None for each in schema.numbers):
        yield _sample(schema, others, _SHAPES[2], default=True)
    if len(schema.tensors) > 1:
        # Broadcasting: each tensor but the first is a row.
        yield _sample(schema, others, _SHAPES[2], default=False, row="(4,)")


def _sample(schema: Schema, others: list[Argument], shape: str, default: bool, row: str = "") -> str:
    def value(each: Argument) -> str:
        return f"make_arg({row or shape})" if each.is_tensor else _VALUES[each.type]

    given = [value(each) for each in others if each.is_tensor or each.default is None or not default]
    named = {a.name: value(a) for a in schema.arguments if a.keyword and (a.default is None or not default)}
    args = f", args=({', '.join(given)}{',' if len(given) == 1 else ''})" if given else ""
    kwargs = f", kwargs={{{', '.join(f'{name!r}: {text}' for name, text in named.items())}}}" if named else ""
    return f"    yield SampleInput(make_arg({shape}){args}{kwargs})\n"


def _parameters(schema: Schema) -> str:
    texts = [_parameter(each) for each in schema.arguments if not each.keyword]
    named = [_parameter(each) for each in schema.arguments if each.keyword]
    return ", ".join([*texts, *(["*", *named] if named else [])])


def _parameter(argument: Argument) -> str:
    default = argument.default
    if default is None:
        return argument.name
    return f"{argument.name}={default.capitalize() if argument.type == 'bool' else default}"


def write_opinfo(operator: NewOperator) -> str:
    """The entry of `op_db`."""
    op, several = operator.schema.name, len(operator.schema.tensors) > 1
    forward = "" if several or not operator.derivatives else "           supports_forward_ad=True,\n"
    autograd = forward if operator.derivatives else "           supports_autograd=False,\n"
    return (
        f"    OpInfo('{op}',\n"
        f"           ref=lambda *args, **kwargs: reference_{op}(\n"
        "               *(torch.as_tensor(a) for a in args), **kwargs).numpy(),\n"
        "           dtypes=all_types_and(torch.bool, torch.half, torch.bfloat16),\n"
        f"           sample_inputs_func=sample_inputs_{op},\n{autograd}"
        "           ),\n"
    )


def write_test(operator: NewOperator) -> str:
    """A test case that compares the operator on MPS with the reference in double precision."""
    op = operator.schema.name
    return (
        f"class Test{operator.schema.file}(TestCase):\n"
        f"    def test_{op}(self):\n"
        "        from torch.testing._internal.common_methods_invocations import (\n"
        f"            reference_{op},\n            sample_inputs_{op},\n        )\n\n"
        "        def moved(a, **to):\n"
        "            return a.to(**to) if isinstance(a, torch.Tensor) else a\n\n"
        "        for dtype in (torch.float32, torch.float16, torch.bfloat16):\n"
        f"            for sample in sample_inputs_{op}(None, 'cpu', dtype, False):\n"
        "                args = (sample.input, *sample.args)\n"
        f"                expected = reference_{op}(*(moved(a, dtype=torch.double) for a in args), **sample.kwargs)\n"
        f"                actual = torch.{op}(*(moved(a, device='mps') for a in args), **sample.kwargs)\n"
        "                self.assertEqual(actual.cpu(), expected.to(dtype))\n"
    )


def write_docs(operator: NewOperator) -> str:
    """The docstring of the function, as torch/_torch_docs.py has them."""
    schema = operator.schema
    computed = ast.unparse(operator.expression)
    arguments = "".join(f"    {each.name} ({_describe(each)}\n" for each in schema.arguments if not each.keyword)
    named = "".join(f"    {each.name} ({_describe(each)}\n" for each in schema.arguments if each.keyword)
    return (
        f'add_docstr(\n    torch.{schema.name},\n    r"""\n{schema.name}({_parameters(schema)}, out=None) -> Tensor\n\n'
        f"Computes ``{computed}`` element by element. Integers are computed as floats.\n\n"
        f'Args:\n{arguments}\nKeyword args:\n{named}    out (Tensor, optional): the output tensor.\n""",\n)\n'
    )


def _describe(argument: Argument) -> str:
    if argument.is_tensor:
        return f"Tensor): the {'input' if argument.name == 'self' else argument.name} tensor."
    default = "" if argument.default is None else f", optional): default: {argument.default}."
    return f"{argument.type}{default or '): a number.'}"


def write_derivative(operator: NewOperator) -> str:
    """The entry of derivatives.yaml; empty if there are no formulas."""
    if not operator.derivatives:
        return ""
    formulas = "".join(f"  {name}: {formula}\n" for name, formula in operator.derivatives.items())
    forward = "  result: auto_element_wise\n" if len(operator.derivatives) == 1 else ""
    return f"- name: {operator.schema}\n{formulas}{forward}"
