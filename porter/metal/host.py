"""The host side of a kernel: a static function of a `*Kernel.mm` and its `REGISTER_DISPATCH`, in the file's style."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.core.checkout import Checkout
from porter.core.edits import find_next_line
from porter.core.errors import Place, PorterError
from porter.core.layout import DEVICE, KERNEL_LIBRARY
from porter.languages.source import Source
from porter.metal.macros import MacroFamily

RESULT_TYPE = "natural_output_dtype"  # the parameter of binary kernels whose results have a type of their own
# The parameters of launchers that forks may lack, as they are declared.
_DECLARED = {
    "alpha": "const std::optional<c10::Scalar> alpha = std::nullopt",
    "scalar_arg_type": "const std::optional<c10::ScalarType> scalar_arg_type = std::nullopt",
    RESULT_TYPE: f"const std::optional<c10::ScalarType> {RESULT_TYPE} = std::nullopt",
}
_EXEC = re.compile(r"\bvoid\s+(exec_\w+_kernel(?:_with_params)?)\s*\(([^;{}]*)\)\s*[;{]")
_PASSED = (*_DECLARED, "params", "params_type_name")  # the parameters that porter has arguments for
_PARAM = re.compile(r"(?P<type>.+?)[\s&](?P<name>\w+)\s*(?P<default>=.*)?$", re.S)
_REGISTER = re.compile(
    r"^REGISTER_DISPATCH\(\s*(?P<stub>\w+)_stub\s*,\s*(?P<amp>&?)(?P<space>(?:\w+::)*)(?P<function>\w+)\s*\)(?P<semi>;?)",
    re.M,
)
_NAMESPACE_END = re.compile(r"^\} *// namespace", re.M)
_STATIC = re.compile(r"^static void (\w+)\(", re.M)
_PROFILER = f"{DEVICE}/MPSProfiler.h"
_PROFILED_STREAM = re.compile(r"\bbeginProfileKernel\s*\([^;{}]*\bMPSStream\b")


class NewDialect(PorterError):
    """A header of the fork is newer than what porter knows (PTR095): code against it is not to be written."""


def refuse_parameter(of: str, parameter: str, place: Place) -> NewDialect:
    """PTR095 for a parameter that a newer header of the fork has, and for which porter knows no argument."""
    hint = "Update porter, or pass it as the fork's own kernels do and port this operator by hand."
    return NewDialect("PTR095", f"this fork's {of} has a parameter {parameter} that porter does not know", place, hint)


def profiles_streams(checkout: Checkout) -> bool:
    """Whether the fork's profiler takes the stream of a kernel; without one it profiles the default stream."""
    return checkout.exists(_PROFILER) and _PROFILED_STREAM.search(checkout.read(_PROFILER)) is not None


@dataclass(frozen=True)
class Exec:
    """The signature of an `exec_*_kernel` of this fork: its parameter names after the iterator and the kernel name.

    One that a host file defines itself has no `owner`. `unknown` are those without a default that porter does not know.
    """

    name: str
    params: tuple[str, ...]
    owner: str = "lib."
    unknown: tuple[str, ...] = ()

    def call(self, kernel: str, *rest: str, iterator: str = "iter", **arguments: str) -> str:
        """Returns `lib.exec_binary_kernel(iter, "sub", alpha)`, in this fork's argument order, with the `rest` last.

        Where some are left out, each has its parameter's name in a comment.

        Raises PTR092 if this fork's signature lacks one of the arguments, and PTR095 if it needs one more.
        """
        if self.unknown:
            raise refuse_parameter(self.name, self.unknown[0], Place(KERNEL_LIBRARY))
        for name in arguments:
            self.require(name)
        last = max((self.params.index(name) for name in arguments), default=-1)
        passed_over = not arguments.keys() >= {*self.params[: last + 1]}
        given = [
            f"/*{name}=*/{arguments.get(name, 'std::nullopt')}" if passed_over else arguments[name]
            for name in self.params[: last + 1]
        ]
        passed = ", ".join([iterator, f'"{kernel}"', *given, *rest])
        return f"{self.owner}{self.name}({passed});"

    def require(self, parameter: str) -> None:
        """Raises PTR092 if this fork's signature lacks a parameter, with its declaration."""
        if parameter in self.params:
            return
        what = f"this fork's {self.name} has no parameter {parameter}"
        what += f", `{_DECLARED[parameter]}`" if parameter in _DECLARED else ""
        hint = "Add it to the fork first, or port this operator by hand."
        raise PorterError("PTR092", what, Place(KERNEL_LIBRARY), hint)


@dataclass(frozen=True)
class Dialect:
    """The `exec_*_kernel` functions in this fork's `MetalShaderLibrary.h`."""

    execs: tuple[Exec, ...]

    @staticmethod
    def read(checkout: Checkout) -> Dialect:
        """Reads the signatures. A fork without the header has none."""
        if not checkout.exists(KERNEL_LIBRARY):
            return Dialect(())
        return _read_dialect(checkout.read(KERNEL_LIBRARY))

    def find_exec(self, name: str) -> Exec | None:
        """Returns the function of this name, or None if the fork has none."""
        return next((each for each in self.execs if each.name == name), None)


@lru_cache(maxsize=4)
def _read_dialect(text: str) -> Dialect:
    return Dialect(tuple(_read_exec(name, params) for name, params in _EXEC.findall(text)))


def _read_exec(name: str, params: str) -> Exec:
    declared = {found["name"]: found["default"] for found in _list_parameters(params)}
    unknown = tuple(each for each, default in declared.items() if default is None and each not in _PASSED)
    return Exec(name, tuple(declared), unknown=unknown)


def name_exec(family: MacroFamily, with_params: bool = False) -> str:
    """Returns the name of the function that launches a family, with a struct of scalars if asked for."""
    return f"exec_{family.value.removesuffix('_alpha')}_kernel" + ("_with_params" if with_params else "")


def declare_exec(name: str) -> str:
    """Returns the declaration of a function that a fork may lack."""
    iterator = "TensorIteratorBase& iter, const std::string& name"
    if name.endswith("_with_params"):
        return f"template <typename T> void {name}({iterator}, T params, const std::string& params_type_name)"
    return f"void {name}({iterator})"


@dataclass(frozen=True)
class HostStyle:
    """How a `*Kernel.mm` names and orders its kernels, read from its registrations; names of functions are `used`."""

    suffix: str
    ampersand: str
    namespace: str
    semicolon: str
    used: frozenset[str] = frozenset()

    @staticmethod
    def of(text: str) -> HostStyle:
        found = list(_REGISTER.finditer(text))
        suffixes = Counter(m["function"].removeprefix(m["stub"]) for m in found if m["function"].startswith(m["stub"]))
        return HostStyle(
            suffix=suffixes.most_common(1)[0][0] if suffixes else "_mps_kernel",
            ampersand=_find_most_common(m["amp"] for m in found),
            namespace=_find_most_common(m["space"] for m in found),
            semicolon=_find_most_common(m["semi"] for m in found) if found else ";",
        )

    def function(self, stub: str) -> str:
        """The name of a stub's new kernel: what has the usual one may be the graph that goes."""
        usual = f"{stub}{self.suffix}"
        return usual if usual not in self.used else f"{stub}_metal{self.suffix}"

    def registration(self, name: str, stub: str) -> str:
        return f"REGISTER_DISPATCH({stub}, {self.ampersand}{self.namespace}{self.function(name)}){self.semicolon}"


def list_kernels(text: str) -> frozenset[str]:
    """The names of the static functions of a host file that return nothing."""
    return frozenset(_STATIC.findall(text))


def has_registrations(text: str) -> bool:
    """Whether a host file registers kernels."""
    return _REGISTER.search(text) is not None


def write_kernel_function(name: str, params: Sequence[tuple[str, str]], body: str) -> str:
    """Returns the text of `static void x_kernel(TensorIteratorBase& iter, ...) { body }`."""
    signature = ", ".join(f"{type_} {param}" for type_, param in params)
    return f"static void {name}({signature}) {{\n  {body}\n}}\n"


def sees_helpers(source: Source, offset: int) -> bool:
    """Whether the helpers of `namespace mps` are named without it at a place of a host file."""
    named = any(f"\nusing namespace {each};" in source.text[:offset] for each in ("mps", "at::native::mps"))
    return named or "mps" in source.list_scopes(offset)


def find_function_anchor(text: str) -> int:
    """Returns the offset for a new kernel function: after the last static kernel before the registrations."""
    first_registration = _REGISTER.search(text)
    limit = first_registration.start() if first_registration else len(text)
    last = max((m.start() for m in _STATIC.finditer(text, 0, limit)), default=-1)
    return _find_block_end(text, last) if last >= 0 else min(limit, _find_namespace_end(text))


def find_registration_anchor(text: str, stub: str) -> int:
    """Returns the offset for a new registration: in order if the list is sorted, else at its end.

    The first one of a file goes to the end of its namespace. Raises PTR093 for a file without one.
    """
    found = list(_REGISTER.finditer(text))
    if not found:
        return _find_namespace_end(text)
    run = _find_last_run(text, found)
    names = [m["stub"] for m in run]
    if len(names) > 2 and names == sorted(names):
        after = [m for m in run if m["stub"] < stub]
        return find_next_line(text, after[-1].end()) if after else run[0].start()
    return find_next_line(text, run[-1].end())


def _find_namespace_end(text: str) -> int:
    closing = list(_NAMESPACE_END.finditer(text))
    if not closing:
        raise PorterError("PTR093", "no REGISTER_DISPATCH to add this one after", None, "Add the first by hand.")
    return closing[-1].start()


def _find_last_run(text: str, found: list[re.Match[str]]) -> list[re.Match[str]]:
    """Returns the last run of registrations on adjacent lines."""
    run = [found[-1]]
    for match in reversed(found[:-1]):
        if text[match.end() : run[0].start()].strip():
            break
        run.insert(0, match)
    return run


def _list_parameters(params: str) -> Iterator[re.Match[str]]:
    """The parameters after the iterator and the kernel name; a comma within a type starts no parameter."""
    for param in params.split(",")[2:]:
        if match := _PARAM.match(param.strip()):
            yield match


def _find_most_common(values: Iterator[str]) -> str:
    counted = Counter(values).most_common(1)
    return counted[0][0] if counted else ""


def _find_block_end(text: str, start: int) -> int:
    """Returns the offset after the line of the closing brace of the function at `start`."""
    end = text.find("\n}", start)
    return text.find("\n", end + 2) + 1 if end >= 0 else len(text)
