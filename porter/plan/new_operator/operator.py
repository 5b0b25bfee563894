"""An operator that is new to PyTorch, as a value: its schema, and every text that a fork gets of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from porter.core.errors import PorterError
from porter.core.names import explain_word
from porter.languages.brackets import split_at_commas
from porter.plan.new_operator.expression import CONSTANTS, FUNCTIONS

_SCHEMA = re.compile(r"(?P<name>[a-z]\w*)\((?P<arguments>.*)\)\s*->\s*(?P<results>\S.*)", re.S)
_ARGUMENT = re.compile(r"(?P<type>\S+)\s+(?P<name>[A-Za-z]\w*)(?:\s*=\s*(?P<default>\S+))?")
_CPP = {"Tensor": "const Tensor&", "float": "double", "int": "int64_t", "bool": "bool"}
_MOST_TENSORS = 3
_HINT = "Write it as in native_functions.yaml: my_op(Tensor self, *, float alpha=1) -> Tensor."
_RESERVED = frozenset(("out", "iter", "result", "grad", "T", "scalar_t", "opmath_t"))
_LANGUAGE_OF_FORMULAS = frozenset((*FUNCTIONS, *CONSTANTS, "E"))
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_INT64 = 2**63
_FITS: Mapping[str, Callable[[str], bool]] = {
    "float": lambda text: bool(_NUMBER.fullmatch(text)) and math.isfinite(float(text)),
    "int": lambda text: bool(_WHOLE.fullmatch(text)) and -_INT64 <= int(text) < _INT64,
    "bool": lambda text: text in ("True", "False"),
}


@dataclass(frozen=True)
class Argument:
    """An argument: `Tensor`, `float`, `int` or `bool`, its default in a schema's words, and if it is keyword-only."""

    type: str
    name: str
    default: str | None = None
    keyword: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.type == "Tensor"

    @property
    def cpp(self) -> str:
        """Its type as a parameter in C++."""
        return _CPP[self.type]

    @property
    def declaration(self) -> str:
        """It as a parameter in C++."""
        return f"{self.cpp} {self.name}"

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + ("" if self.default is None else f"={self.default}")


@dataclass(frozen=True)
class Schema:
    """A functional schema. `results` are the names of its tensors; the only one of an operator is `out`."""

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[str, ...] = ("out",)

    @property
    def tensors(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if argument.is_tensor)

    @property
    def numbers(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if not argument.is_tensor)

    @property
    def file(self) -> str:
        """The stem of its files, as the fork's own are named."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    def __str__(self) -> str:
        several = f"({', '.join(f'Tensor {result}' for result in self.results)})"
        return f"{self.name}({write_arguments(self)}) -> {'Tensor' if len(self.results) == 1 else several}"


def write_arguments(schema: Schema, first: str = "", out: str = "") -> str:
    """Returns the arguments in a schema's words, the first one of another type if given, and `out` as the last."""
    texts = [str(argument) for argument in schema.arguments if not argument.keyword]
    if first:
        texts[0] = f"{first} {schema.arguments[0].name}"
    named = [*(str(argument) for argument in schema.arguments if argument.keyword), *([out] if out else [])]
    return ", ".join([*texts, *(["*", *named] if named else [])])


def parse_schema(text: str) -> Schema:
    """Parses a schema. Raises PTR314 if it is none, PTR315 if it is not one of an elementwise operator, PTR367 for a
    name that it cannot have, and PTR399 for a default value that does not fit.
    """
    match = _SCHEMA.fullmatch(text.strip())
    if match is None:
        raise PorterError("PTR314", f"the schema {text!r} cannot be parsed", hint=_HINT)
    arguments: list[Argument] = []
    keyword = False
    for part in split_at_commas(match["arguments"], "()[]"):
        written = part.strip()
        if written == "*" and not keyword:
            keyword = True
            continue
        found = _ARGUMENT.fullmatch(written)
        if found is None:
            raise PorterError("PTR314", f"the argument {written!r} of {match['name']} cannot be parsed", hint=_HINT)
        arguments.append(Argument(found["type"], found["name"], found["default"], keyword))
    schema = Schema(match["name"], tuple(arguments))
    _refuse_others(schema, match["results"])
    _refuse_names(schema)
    _refuse_defaults(schema)
    return schema


def _refuse_others(schema: Schema, results: str) -> None:
    """Raises PTR315 for a schema that is not that of an elementwise operator."""
    names = [each.name for each in schema.arguments]
    types = [each.type for each in schema.arguments if each.type not in _CPP]
    if results != "Tensor":
        what = f"it gives {results}, not one Tensor"
    elif types:
        what = f"it takes a {types[0]}, not Tensor, float, int or bool"
    elif not schema.arguments or not schema.arguments[0].is_tensor:
        what = "its first argument is no Tensor"
    elif names[0] != "self":
        what = f"its first argument is named {names[0]}, and only one named self has a form in place"
    elif len(schema.tensors) > _MOST_TENSORS:
        what = f"it takes {len(schema.tensors)} tensors, and kernels take at most {_MOST_TENSORS}"
    elif any(each.default or each.keyword for each in schema.tensors):
        what = "a Tensor of it is keyword-only or has a default"
    elif len(set(names)) < len(names) or _RESERVED & set(names):
        what = f"an argument's name is used twice, or is one of {', '.join(sorted(_RESERVED))}"
    else:
        return
    raise PorterError("PTR315", f"{schema.name} is not elementwise: {what}", hint=_HINT)


def _refuse_names(schema: Schema) -> None:
    """Raises PTR367 for names that the files of the operator cannot have."""
    whys = {name: explain_word(name) for name in (schema.name, *(argument.name for argument in schema.arguments))}
    if schema.name.endswith("_"):
        whys[schema.name] = "the name of a functional form does not end with an underscore: the form in place does"
    for argument in schema.arguments:
        if argument.name in _LANGUAGE_OF_FORMULAS:
            whys[argument.name] = f"{argument.name} is a function or a constant of expressions"
    for name, why in whys.items():
        if why:
            raise PorterError("PTR367", f"{name} cannot be a name here: {why}", hint="Choose another name.")


def _refuse_defaults(schema: Schema) -> None:
    """Raises PTR399 for a default value of another type, or before an argument without one."""
    before = ""
    for each in schema.arguments:
        if each.default is not None and not _FITS[each.type](each.default):
            what = f"{each.default} is no value of {each.type} {each.name}"
            raise PorterError("PTR399", what, hint="Give a finite number, a whole one for int, True or False for bool.")
        if each.default is None and before and not each.keyword:
            what = f"{each.name} has no default, but {before} before it has one"
            raise PorterError("PTR399", what, hint="Give it a default too, or put it first.")
        before = each.name if each.default is not None else before


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
