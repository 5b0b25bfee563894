"""The REGISTER macros of a fork and the kernels they instantiate, read from its headers and kernel files.

A base macro has a `host_name` of the form `NAME "_dense_" #OUT "_" #IN` in its body, which gives the roles of its
parameters (c10/metal/indexing.h). A convenience macro only calls base macros with fixed types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from porter.core.errors import PorterError
from porter.languages.directives import Macro


class MacroFamily(Enum):
    """A kernel family of c10/metal/indexing.h, launched by the `exec_*_kernel` of that name."""

    UNARY = "unary"
    UNARY_ALPHA = "unary_alpha"
    BINARY = "binary"
    BINARY_ALPHA = "binary_alpha"
    TERNARY = "ternary"
    TERNARY_ALPHA = "ternary_alpha"


@dataclass(frozen=True)
class Instance:
    """An instantiation: the Metal types of the input, the output and, for alpha families, the scalar."""

    input: str
    output: str
    alpha: str | None = None


@dataclass(frozen=True)
class BaseMacro:
    """A macro that instantiates one dtype pair. `roles` of the parameters after the name are in, out or alpha.

    `unknown` are the parameters without a role, which a newer header may have.
    """

    name: str
    family: MacroFamily
    opmath: bool
    castout: bool
    roles: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    def arguments(self, instance: Instance) -> tuple[str, ...]:
        """Returns the types of an instance in this macro's parameter order."""
        values = {"in": instance.input, "out": instance.output, "alpha": instance.alpha or ""}
        return tuple(values[role] for role in self.roles)

    def instance(self, arguments: tuple[str, ...]) -> Instance:
        """Returns the instance for arguments: the inverse of `arguments`."""
        values = dict(zip(self.roles, arguments, strict=True))
        return Instance(values["in"], values["out"], values.get("alpha"))


@dataclass(frozen=True)
class Convenience:
    """A macro whose only parameter is the operator's name, and the instances it expands to."""

    name: str
    instances: tuple[tuple[BaseMacro, Instance], ...]


@dataclass(frozen=True)
class MacroBook:
    """The registration macros available in a `.metal` file; `hidden` are those of headers that it defines otherwise."""

    bases: Mapping[str, BaseMacro]
    conveniences: tuple[Convenience, ...]
    hidden: tuple[BaseMacro, ...] = ()

    @staticmethod
    def read(macros: Iterable[Macro]) -> MacroBook:
        """Sorts macros (those of headers first, then the kernel file's) into base and convenience macros."""
        return _read_book(tuple(macros))

    def expand(self, name: str, arguments: tuple[str, ...]) -> tuple[tuple[BaseMacro, Instance], ...]:
        """Returns the instances of a line such as `REGISTER_FLOAT_BINARY_OP(atan2)`; none for any other macro."""
        if name in self.bases:
            base = self.bases[name]
            return ((base, base.instance(arguments[1:])),) if len(arguments) == 1 + len(base.roles) else ()
        named = (each.instances for each in self.conveniences if each.name == name and len(arguments) == 1)
        return next(named, ())


def find_unread(macros: Iterable[Macro], family: MacroFamily) -> str | None:
    """The name of a macro that instantiates kernels of a family under names of which none says the types."""
    by_name = {macro.name: macro for macro in macros}
    for name, macro in by_name.items():
        template = _TEMPLATE.search(macro.body) if "host_name" in macro.body else None
        if template and template[1] + (template[2] or "") == family.value and _base(name, by_name) is None:
            return name
    return None


@lru_cache(maxsize=16)
def _read_book(macros: tuple[Macro, ...]) -> MacroBook:
    """Cached: what is written to a kernel file mostly leaves its macros as they are."""
    by_name = {macro.name: macro for macro in macros}
    bases = {name: base for name in by_name if (base := _base(name, by_name))}
    found = (_convenience(macro, by_name, bases) for macro in by_name.values() if macro.name not in bases)
    first = {macro.name: macro for macro in reversed(macros)}
    lost = (_base(name, first) for name in by_name if first[name] != by_name[name])
    return MacroBook(bases, tuple(each for each in found if each), tuple(base for base in lost if base))


_HOST_NAME = re.compile(r'host_name\s*\(\s*#\s*\w+\s*((?:"[^"]*"\s*|#\s*\w+\s*)+)')
_PIECE = re.compile(r'"([^"]*)"|#\s*(\w+)')
_TEMPLATE = re.compile(r"\b(unary|binary|ternary)(_alpha)?_\w+\s*<")
_CALL = re.compile(r"\b(\w+)\s*\(([^()]*)\)")


_Made = tuple[tuple[BaseMacro, Instance], ...]
_MOST_MACROS = 200


def _base(name: str, macros: Mapping[str, Macro]) -> BaseMacro | None:
    macro = macros[name]
    if not macro.params or len(macro.params) < 2:
        return None
    body, opmath = macro.body, "opmath_t" in macro.body
    parameters = dict(zip(macro.params, macro.params, strict=True))
    if "host_name" not in body:
        calls = _CALL.findall(body)
        if len(calls) != 1 or calls[0][0] not in macros:
            return None
        inner = macros[calls[0][0]]
        arguments = _split(calls[0][1])
        if len(arguments) != len(inner.params or ()):
            return None
        body = inner.body
        parameters = dict(zip(inner.params or (), arguments, strict=True))
    template = _TEMPLATE.search(body)
    roles = _roles(body)
    if template is None or roles is None:
        return None
    by_parameter = {value: roles[inner] for inner, value in parameters.items() if inner in roles}
    ordered = tuple(by_parameter[outer] for outer in macro.params[1:] if outer in by_parameter)
    if not {"in", "out"} <= set(ordered):
        return None
    return BaseMacro(
        name=name,
        family=MacroFamily(template[1] + (template[2] or "")),
        opmath=opmath,
        castout="_dense_" not in "".join(_HOST_NAME.findall(body)),
        roles=ordered,
        unknown=tuple(each for each in macro.params[1:] if each not in by_parameter),
    )


def _roles(body: str) -> dict[str, str] | None:
    """Returns the roles of the type parameters, from the first host name with an output and input type."""
    for spelled in _HOST_NAME.findall(body):
        names = [name for _, name in _PIECE.findall(spelled) if name]
        if len(names) >= 2:
            return dict(zip(names, ("out", "in", "alpha"), strict=False))
    return None


def _convenience(macro: Macro, macros: Mapping[str, Macro], bases: Mapping[str, BaseMacro]) -> Convenience | None:
    if len(macro.params or ()) != 1:
        return None
    instances = _expansion(macro, macros, bases, {})
    return Convenience(macro.name, instances) if instances else None


def _expansion(
    macro: Macro, macros: Mapping[str, Macro], bases: Mapping[str, BaseMacro], known: dict[str, _Made]
) -> _Made:
    """What a macro makes, each once; one that is being expanded makes nothing in itself, as in the preprocessor."""
    if macro.name not in known:
        known[macro.name] = ()
        if len(known) > _MOST_MACROS:
            raise PorterError("PTR034", f"the macro {macro.name} calls too many others", hint="Split them up.")
        known[macro.name] = tuple(dict.fromkeys(_made_by(macro, macros, bases, known)))
    return known[macro.name]


def _made_by(
    macro: Macro, macros: Mapping[str, Macro], bases: Mapping[str, BaseMacro], known: dict[str, _Made]
) -> Iterator[tuple[BaseMacro, Instance]]:
    for called, text in _CALL.findall(macro.body):
        arguments = _split(text)
        if not arguments or arguments[0] != (macro.params or ("",))[0]:
            continue
        if called in bases and len(arguments) == 1 + len(bases[called].roles):
            yield bases[called], bases[called].instance(tuple(arguments[1:]))
        elif called in macros and macros[called] is not macro:
            yield from _expansion(macros[called], macros, bases, known)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]
