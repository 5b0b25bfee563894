"""The schema of a new operator, as a value and in the words of native_functions.yaml."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from porter.core.errors import PorterError
from porter.core.names import explain_word
from porter.languages.brackets import split_at_commas
from porter.plan.new_operator.functions import CONSTANTS, FUNCTIONS

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
