"""The code that stays of a host function, as what launches kernels asks for it: its variables, checks and names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from porter.languages.brackets import find_closing_end, strip_parentheses
from porter.languages.identifiers import rename_identifiers
from porter.languages.lexer import TokenKind
from porter.languages.liveness import list_values, read_assignments
from porter.languages.patterns import Found, find_code, has_code, match_code
from porter.languages.source import Source
from porter.languages.statements import name_tokens
from porter.loops.host_values import Number

_TYPES = ("int64_t", "auto", "bool")
_TENSORS = ("auto", "Tensor")
_OF_FIRST = ("resize_output", "resize_outputs", "resize_reduction_result", "resize_tensor")
_RESIZED = ("$name.resize_(", "$name.resize_as_(", *(f"{function}($name" for function in _OF_FIRST))
_MADE = ("at::empty(", "at::zeros(", "create_reduction_result(")  # contiguous, if no format is given
_CONTIGUOUS = ("CONTIGUOUS", "MemoryFormat::Contiguous")
_STRIDED = ("ChannelsLast", "ChannelsLast3d", "Preserve")
_OF_OTHER = ".suggest_memory_format()"
_LONG = 12  # characters of a message that no other has
_LAST = ("$name,", "$name)")  # the last word of an argument


@dataclass(frozen=True)
class KeptCode:
    """The code of a function around its launch; `before` is what its callers do first, by the names that it has."""

    text: str = ""
    before: str = ""

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that it uses."""
        return frozenset(token.text for token in name_tokens(self.text))

    def is_free(self, name: str) -> bool:
        """Whether a new variable may have a name."""
        return name not in self.names

    def has(self, *patterns: str) -> bool:
        """Whether it has one of some patterns."""
        return has_code(self.text, *patterns)

    def find(self, *patterns: str) -> Iterator[Found]:
        """The places that have one of some patterns."""
        return find_code(self.text, *patterns)

    def find_variable(self, *values: str) -> str:
        """The first variable that is set to what has one of some patterns; nothing if there is none."""
        return next((place["variable"] for place in self.find(*(f"$variable = {value};" for value in values))), "")

    def count(self, variable: str) -> int:
        """How often it reads a variable."""
        return len(self._source.references(variable))

    def raises(self, message: str) -> bool:
        """Whether a check has words of a message."""
        words = (token.text.strip('" ') for token in self._source.code if token.kind is TokenKind.STRING)
        return any(len(word) >= _LONG and word in message for word in words)

    @cached_property
    def _source(self) -> Source:
        return Source.parse("", self.text)

    def asks_empty(self, *tensors: str) -> bool:
        """Whether it, or what is done before it, asks for one of some tensors without elements."""
        code = f"{self.before}{self.text}"
        return any(has_code(code, f"{tensor}.numel() == 0") for tensor in tensors)

    @cached_property
    def locals(self) -> dict[str, str]:
        """The variables that hold what calls compute, by these; without those that a resized tensor makes wrong.

        A value is there as it stands, with calls for the variables in it, and with tensors of the same sizes.
        """
        spelled = {value: name for name, value in reversed(tuple(self._list_locals())) if "(" in value}
        calls = {name: value for value, name in spelled.items() if is_call(value)}
        for value, name in tuple(spelled.items()):
            whole = rename_identifiers(value, calls)
            for text in (whole, *(rename_identifiers(whole, {of: to}) for to, of in self._list_converted())):
                spelled.setdefault(text, name)
        return spelled

    def _list_converted(self) -> Iterator[tuple[str, str]]:
        """Variables that are a tensor, of another type or not, and this tensor."""
        for local in read_assignments(self.text):
            match = match_code(local.value or "", "$tensor.to($$type)", "$$condition ? $tensor.to($$type) : $tensor")
            if match and local.type in _TENSORS and len(list_values(self.text, local.name)) == 1:
                yield local.name, match["tensor"]

    def _list_locals(self) -> Iterator[tuple[str, str]]:
        for local in read_assignments(self.text):
            if local.value and local.type in _TYPES:
                resized = {place["name"] for place in find_code(self.text[local.statement.end :], *_RESIZED)}
                if resized.isdisjoint(token.text for token in name_tokens(local.value)):
                    yield local.name, strip_parentheses(" ".join(local.value.split()))

    def find_scalars(self, value: str) -> Iterator[tuple[str, Number | None]]:
        """The variables that hold the value of a scalar, and what they have instead where that is left out."""
        for name, local in self._list_locals():
            match = match_code(local, value, f"$given.has_value() ? {value} : $$default")
            if match:
                default = match.holes.get("default", "")
                with suppress(ValueError):
                    plain = default.removeprefix("Scalar(").removesuffix(".to<double>()").removesuffix(")")
                    yield name, float(plain) if default else None

    def allocates(self, tensor: str) -> bool:
        """Whether it declares a tensor, and whatever that is set to is allocated without strides of another's."""
        is_declared = any(a.name == tensor and a.type in _TENSORS for a in read_assignments(self.text))
        values = list_values(self.text, tensor)
        return is_declared and bool(values) and all(map(_is_contiguous, values))


def _is_contiguous(value: str) -> bool:
    words = [place["name"] for place in find_code(value, *_LAST)]
    is_strided = any("format" in word.lower() or word in _STRIDED for word in words) or _OF_OTHER in value
    return not is_strided and (value.startswith(_MADE) or any(word in value for word in _CONTIGUOUS))


def is_call(value: str) -> bool:
    """Whether a value is what one call returns."""
    opener = value.find("(")
    return opener > 0 and not set(value[:opener]) & set(" ?-") and find_closing_end(value, opener) == len(value)
