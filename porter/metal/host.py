"""The host side of a kernel: the static function of a `*Kernel.mm` and its `REGISTER_DISPATCH`, in the looks of that
file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import KERNEL_LIBRARY
from porter.metal.macros import MacroFamily

_EXEC = re.compile(r"\bvoid\s+(exec_\w+_kernel)\s*\(([^;{}]*)\)\s*;")
_PARAM = re.compile(r"(?P<type>.+?)[\s&](?P<name>\w+)\s*(?:=.*)?$", re.S)
_REGISTER = re.compile(
    r"^REGISTER_DISPATCH\(\s*(?P<stub>\w+)_stub\s*,\s*(?P<amp>&?)(?P<space>(?:\w+::)*)(?P<function>\w+)\s*\)(?P<semi>;?)",
    re.M,
)
_STATIC = re.compile(r"^static void (\w+)\(", re.M)


@dataclass(frozen=True)
class Exec:
    """The signature of one `exec_*_kernel` of this fork: its parameter names after the iterator and the kernel's
    name.
    """

    name: str
    params: tuple[str, ...]

    def call(self, kernel: str, **arguments: str) -> str:
        """`lib.exec_binary_kernel(iter, "eq", std::nullopt, ...)` with the arguments in the place this fork gives them.

        Raises PTR092 when this fork's signature lacks one of them.
        """
        missing = [name for name in arguments if name not in self.params]
        if missing:
            raise PorterError(
                "PTR092",
                f"this fork's {self.name} has no parameter {missing[0]}",
                Place(KERNEL_LIBRARY),
                "Update MetalShaderLibrary from upstream first, or port this operator by hand.",
            )
        last = max((self.params.index(name) for name in arguments), default=-1)
        given = [arguments.get(name, "std::nullopt") for name in self.params[: last + 1]]
        passed = ", ".join(["iter", f'"{kernel}"', *given])
        return f"lib.{self.name}({passed});"


@dataclass(frozen=True)
class Dialect:
    """What this fork's `MetalShaderLibrary.h` offers."""

    execs: tuple[Exec, ...]

    @staticmethod
    def read(checkout: Checkout) -> Dialect:
        """Reads the signatures; a fork without the header has none."""
        if not checkout.exists(KERNEL_LIBRARY):
            return Dialect(())
        text = checkout.read(KERNEL_LIBRARY)
        return Dialect(tuple(Exec(name, tuple(_names(params))) for name, params in _EXEC.findall(text)))

    def exec_for(self, family: MacroFamily) -> Exec:
        """The function that launches a family. Raises PTR091 when this fork has none."""
        wanted = f"exec_{family.value.removesuffix('_alpha')}_kernel"
        for each in self.execs:
            if each.name == wanted:
                return each
        raise PorterError(
            "PTR091", f"this fork declares no {wanted}", Place(KERNEL_LIBRARY), "Update it from upstream first."
        )


@dataclass(frozen=True)
class HostStyle:
    """How one `*Kernel.mm` names and orders its kernels, read from the registrations it has."""

    suffix: str
    ampersand: str
    namespace: str
    semicolon: str

    @staticmethod
    def of(text: str) -> HostStyle:
        found = list(_REGISTER.finditer(text))
        suffixes = Counter(m["function"].removeprefix(m["stub"]) for m in found if m["function"].startswith(m["stub"]))
        return HostStyle(
            suffix=suffixes.most_common(1)[0][0] if suffixes else "_mps_kernel",
            ampersand=_most(m["amp"] for m in found),
            namespace=_most(m["space"] for m in found),
            semicolon=_most(m["semi"] for m in found) if found else ";",
        )

    def function(self, stub: str) -> str:
        return f"{stub}{self.suffix}"

    def registration(self, stub: str) -> str:
        return f"REGISTER_DISPATCH({stub}_stub, {self.ampersand}{self.namespace}{self.function(stub)}){self.semicolon}"


def kernel_function(name: str, params: Sequence[tuple[str, str]], body: str) -> str:
    """`static void x_kernel(TensorIteratorBase& iter, ...) { body }`."""
    signature = ", ".join(f"{type_} {param}" for type_, param in params)
    return f"static void {name}({signature}) {{\n  {body}\n}}\n"


def function_anchor(text: str) -> int:
    """Where a new kernel function goes: after the last static kernel before the registrations."""
    first_registration = _REGISTER.search(text)
    limit = first_registration.start() if first_registration else len(text)
    last = max((m.start() for m in _STATIC.finditer(text, 0, limit)), default=-1)
    return _end_of_block(text, last) if last >= 0 else limit


def registration_anchor(text: str, stub: str) -> int:
    """Where a new registration goes: in order in a sorted list, else after the last one."""
    found = list(_REGISTER.finditer(text))
    if not found:
        raise PorterError("PTR093", "no REGISTER_DISPATCH to add this one after", None, "Add the first by hand.")
    run = _last_run(text, found)
    names = [m["stub"] for m in run]
    if len(names) > 2 and names == sorted(names):
        after = [m for m in run if m["stub"] < stub]
        return _line_end(text, after[-1].end()) if after else run[0].start()
    return _line_end(text, run[-1].end())


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return end + 1 if end >= 0 else len(text)


def _last_run(text: str, found: list[re.Match[str]]) -> list[re.Match[str]]:
    """The last stretch of registrations on neighbouring lines."""
    run = [found[-1]]
    for match in reversed(found[:-1]):
        if text[match.end() : run[0].start()].strip():
            break
        run.insert(0, match)
    return run


def _names(params: str) -> Iterator[str]:
    for param in params.split(",")[2:]:
        match = _PARAM.match(param.strip())
        if match:
            yield match["name"]


def _most(values: Iterator[str]) -> str:
    counted = Counter(values).most_common(1)
    return counted[0][0] if counted else ""


def _end_of_block(text: str, start: int) -> int:
    """The offset after the line of the brace that closes the function starting at `start`."""
    end = text.find("\n}", start)
    return text.find("\n", end + 2) + 1 if end >= 0 else len(text)
