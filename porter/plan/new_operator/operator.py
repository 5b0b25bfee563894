"""An operator that is new to PyTorch, as a value: its schema, and every text that a fork gets of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from porter.plan.new_operator.schema import Schema, write_arguments
from porter.plan.new_operator.tests import OperatorTests


@dataclass(frozen=True, eq=False)
class NewOperator:
    """`kernels` are its structured kernels by dispatch key, `files` the texts of its own files by path.

    A pointwise one has a form in place, and its meta function is that of TensorIterator. `derivatives` has the formula
    for each tensor that has one. `docs` is what torch/_torch_docs.py gets.
    """

    schema: Schema
    kernels: Mapping[str, str]
    files: Mapping[str, str]
    tests: OperatorTests
    is_pointwise: bool = False
    derivatives: Mapping[str, str] = field(default_factory=dict)
    docs: str = ""

    @property
    def forms(self) -> tuple[str, ...]:
        """The names of its rows."""
        op = self.schema.name
        return (op, f"{op}.out", *([f"{op}_"] if self.is_pointwise else []))

    def write_rows(self) -> str:
        """Its rows in native_functions.yaml: the functional form, one in place, and the one that writes to `out=`."""
        schema, op = self.schema, self.schema.name
        types = [f"Tensor({chr(ord('a') + at)}!)" for at in range(len(schema.results))]
        outputs = ", ".join(f"{type_} {name}" for type_, name in zip(types, schema.results, strict=True))
        returned = types[0] if len(types) == 1 else f"({outputs})"
        delegate, inplace, inherits, tags = f"  structured_delegate: {op}.out\n", "", "", ""
        if self.is_pointwise:
            tags, inherits = "  tags: pointwise\n", "  structured_inherits: TensorIteratorBase\n"
            delegate += f"  variants: function, method\n{tags}"
            inplace = f"- func: {op}_({write_arguments(schema, 'Tensor(a!)')}) -> Tensor(a!)\n{delegate}\n"
        kernels = "".join(f"    {key}: {kernel}\n" for key, kernel in self.kernels.items())
        return (
            f"- func: {schema}\n{delegate}\n{inplace}"
            f"- func: {op}.out({write_arguments(schema, out=outputs)}) -> {returned}\n"
            f"  structured: True\n{inherits}  dispatch:\n{kernels}{tags}"
        )

    def write_derivative(self) -> str:
        """Its entry in derivatives.yaml; empty if there are no formulas."""
        if not self.derivatives:
            return ""
        formulas = "".join(f"  {name}: {formula}\n" for name, formula in self.derivatives.items())
        forward = "  result: auto_element_wise\n" if len(self.derivatives) == 1 else ""
        return f"- name: {self.schema}\n{formulas}{forward}"
