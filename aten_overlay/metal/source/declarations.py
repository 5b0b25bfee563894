"""What a Metal source declares: kernels, their instantiations and arguments, function constants, who calls whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.arguments import Argument, Attribute, attributes, parameters, split_parameters
from aten_overlay.metal.source.expressions import Lookup, NotConstant, evaluate
from aten_overlay.metal.source.lexer import Source, is_attribute, skip_angles
from aten_overlay.metal.source.names import declared_names, references
from aten_overlay.metal.source.syntax import (
    Declaration,
    class_key,
    declarations,
    head_end,
    is_explicit,
    name_start,
    top_level,
)

MAX_THREADS = 1024


@dataclass(frozen=True)
class Kernel:
    """The definition of a kernel function, template or not. Tokens [`opening`, `closing`] are its parameter list."""

    name: str
    scope: tuple[str, ...]
    template: bool
    opening: int
    closing: int
    declaration: Declaration


@dataclass(frozen=True)
class Instance:
    """A kernel with a host name: an explicit instantiation, or a plain kernel itself.

    `function` is the function with its template arguments; `parameters` is the token index of the instantiation's `(`,
    or -1 when its type is the function's own.
    """

    host_name: str
    function: str
    short_name: str
    parameters: int
    declaration: Declaration


@dataclass(frozen=True)
class FunctionConstant:
    """`constant T name [[function_constant(index)]];`"""

    name: str
    type: str
    index: int
    declaration: Declaration


@dataclass(frozen=True)
class Entry:
    """A declaration that is no member: the names it declares (None: kept whether or not it is named) and refers to."""

    declaration: Declaration
    names: frozenset[str] | None
    references: frozenset[str]


@dataclass
class Unit:
    """Everything declared in one source, in order. `references` maps what is declared to the names in it; `values` are
    the tokens of what constants are initialized with; `followers` are the enumerators without an initializer: the one
    before them that has one ("" for none, which is 0), and how many they are after it."""

    source: Source
    declarations: list[Declaration] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    constants: list[FunctionConstant] = field(default_factory=list)
    references: dict[str, set[str]] = field(default_factory=dict)
    values: dict[str, tuple[int, int]] = field(default_factory=dict)
    followers: dict[str, tuple[str, int]] = field(default_factory=dict)

    def lookup(self, name: str) -> int | None:
        """The value of a constant that can be worked out from the source, or None."""
        if name in self.followers:
            base, after = self.followers[name]
            first = self.lookup(base) if base else 0
            return None if first is None else first + after
        start, end = self.values.get(name, (0, 0))
        try:
            return evaluate(self.source.tokens[start:end], self.lookup) if end else None
        except NotConstant:
            return None


def parse(source: Source) -> Unit:
    """Reads the declarations of `source`; kernels' parameters only when they are used. Raises PTR103."""
    try:
        return _parse(source)
    except (IndexError, RecursionError) as error:  # what is looked for is behind the last token, or too deep inside
        place = source.place(len(source.tokens) - 1)
        raise OverlayError("PTR103", "a declaration of this source is not complete", place, "Complete it.") from error


def _parse(source: Source) -> Unit:
    unit = Unit(source, list(declarations(source)))
    for declaration in unit.declarations:
        if declaration.outer >= 0:
            continue
        _record_entry(unit, declaration)
        found = list(attributes(source, declaration.start, head_end(declaration)))
        if _is_kernel(source, declaration, found):
            _record_kernel(unit, declaration, found)
    for entry in unit.entries:
        _record_constant(unit, entry.declaration)
    return unit


def _record_entry(unit: Unit, declaration: Declaration) -> None:
    source = unit.source
    names, referred = declared_names(source, declaration), references(source, declaration)
    unit.entries.append(Entry(declaration, names, frozenset(referred)))
    if is_explicit(source, declaration):
        return
    for name in names or ():
        unit.references.setdefault(name, set()).update(referred)
    if declaration.body < 0 or class_key(source, declaration) == "enum":
        _record_values(unit, declaration)


def _record_values(unit: Unit, declaration: Declaration) -> None:
    """The initializers of variables and enumerators."""
    source, tokens = unit.source, unit.source.tokens
    is_enum = declaration.body >= 0
    start = declaration.body + 1 if is_enum else declaration.start
    end = source.match[declaration.body] if is_enum else declaration.end
    for i in range(start, end):
        if tokens[i] == "=" and source.kinds[i - 1] == "name":
            stop = next((j for j in top_level(source, i + 1, end) if tokens[j] in (",", ";")), end)
            unit.values.setdefault(tokens[i - 1], (i + 1, stop))
    if is_enum:
        _record_followers(unit, start, end)


def _record_followers(unit: Unit, start: int, end: int) -> None:
    """The enumerators without an initializer, each of which follows the one before it."""
    source, tokens = unit.source, unit.source.tokens
    base, after, i = "", 0, start
    while i < end:
        if source.kinds[i] != "name":
            break
        name = tokens[i]
        comma = next((j for j in top_level(source, i, end) if tokens[j] == ","), end)
        if "=" in tokens[i:comma]:
            base, after = name, 0
        else:
            unit.followers.setdefault(name, (base, after))
        after += 1
        i = comma + 1


def _is_kernel(source: Source, declaration: Declaration, found: list[Attribute]) -> bool:
    head = head_end(declaration)
    return any(a.name == "kernel" for a in found) or any(
        source.tokens[i] == "kernel" for i in top_level(source, declaration.start, head)
    )


def _record_kernel(unit: Unit, declaration: Declaration, found: list[Attribute]) -> None:
    source = unit.source
    host_name = _host_name(source, found)
    if is_explicit(source, declaration):
        if host_name:
            unit.instances.append(_instance(source, declaration, host_name))
        return
    if declaration.body < 0:
        return
    template = source.tokens[declaration.start] == "template"
    kernel = _kernel(source, declaration, template)
    unit.kernels.append(kernel)
    if not template:
        qualified = "::".join((*kernel.scope, kernel.name))
        # From its namespace, or its name may be a library function's as well.
        unit.instances.append(Instance(host_name or qualified, f"::{qualified}", kernel.name, -1, declaration))


def _host_name(source: Source, found: list[Attribute]) -> str:
    for attribute in found:
        if attribute.name == "host_name":
            parts = [source.tokens[i] for i in range(attribute.start, attribute.end) if source.kinds[i] == "string"]
            return "".join(p[1:-1] for p in parts)
    return ""


def _function(source: Source, declaration: Declaration) -> tuple[int, int, int]:
    """Tokens of the function's name with its template arguments, and the index of its `(` (-1: `decltype` form)."""
    end, parameters = declaration.end - 1, -1
    i = declaration.start
    while i < head_end(declaration):
        token = source.tokens[i]
        if token == "template" and source.tokens[i + 1] == "<":
            i = skip_angles(source, i + 1, declaration.end)
        elif token in ("decltype", "alignas", "__attribute__"):
            i = source.match[i + 1] + 1
        elif token == "(":
            end = parameters = i
            break
        elif token == "<":
            i = max(skip_angles(source, i, declaration.end), i + 1)
        else:
            i = source.match[i] + 1 if token == "[" else i + 1
    while source.tokens[end - 1] == "]" and is_attribute(source, source.match[end - 1]):
        end = source.match[end - 1]  # attributes may follow the name
    start = name_start(source, end)
    if start == end:
        raise OverlayError(
            "PTR103", "cannot parse this kernel declaration", source.place(declaration.start), "Simplify it."
        )
    return start, end, parameters


def find_name(source: Source, declaration: Declaration) -> tuple[int, int]:
    """The token of a function's name, and that of its `(`. Raises PTR103."""
    start, end, opening = _function(source, declaration)
    name = next((i for i in reversed(list(_outside_angles(source, start, end))) if source.kinds[i] == "name"), start)
    return name, opening


def _instance(source: Source, declaration: Declaration, host_name: str) -> Instance:
    start, end, parameters = _function(source, declaration)
    names = [i for i in _outside_angles(source, start, end) if source.kinds[i] == "name"]
    return Instance(host_name, source.joined(start, end), source.tokens[names[-1]], parameters, declaration)


def _outside_angles(source: Source, start: int, end: int) -> Iterator[int]:
    i = start
    while i < end:
        if source.tokens[i] == "<":
            i = max(skip_angles(source, i, end), i + 1)
            continue
        yield i
        i += 1


def _kernel(source: Source, declaration: Declaration, template: bool) -> Kernel:
    _, end, opening = _function(source, declaration)
    if opening < 0:
        what = "this kernel has no parameter list"
        raise OverlayError("PTR103", what, source.place(declaration.start), "Declare its parameters.")
    return Kernel(source.tokens[end - 1], declaration.scope, template, opening, source.match[opening], declaration)


def _record_constant(unit: Unit, declaration: Declaration) -> None:
    """Records a function constant, `constant T name [[function_constant(n)]];`."""
    source = unit.source
    if declaration.body >= 0 or source.tokens[declaration.end - 1] != ";":
        return
    found = attributes(source, declaration.start, declaration.end)
    attribute = next((a for a in found if a.name == "function_constant"), None)
    if attribute is None or any(source.tokens[i] == "(" for i in top_level(source, declaration.start, declaration.end)):
        return
    at = next(i for i in range(declaration.start, declaration.end) if is_attribute(source, i))
    words = (
        t for t in source.tokens[declaration.start : at - 1] if t not in ("constant", "const", "static", "constexpr")
    )
    index = integer(source, attribute, unit.lookup)
    unit.constants.append(FunctionConstant(source.tokens[at - 1], " ".join(words), index, declaration))


def integer(source: Source, attribute: Attribute, lookup: Lookup) -> int:
    """The value of an attribute's argument. Raises PTR103."""
    try:
        return evaluate(source.tokens[attribute.start : attribute.end], lookup)
    except NotConstant:
        text = source.joined(attribute.start, attribute.end)
        raise OverlayError(
            "PTR103",
            f"the argument of [[{attribute.name}({text})]] is not an integer constant",
            source.place(attribute.start),
            "Use an integer, a macro or a constant that is given its value in this source.",
        ) from None


def find_candidates(unit: Unit, instance: Instance) -> list[Kernel]:
    """The definitions with an instance's name, of its namespace alone where the name begins at the outermost one."""
    named = [k for k in unit.kernels if k.name == instance.short_name]
    path = instance.function.partition("<")[0].replace(" ", "")
    scope = tuple(path.split("::")[1:-1])
    return [k for k in named if path.startswith("::") and k.scope == scope] or named


def find_definition(unit: Unit, instance: Instance) -> Kernel:
    """The definition an instance was made from. Raises PTR103 when there is none or overloads leave it open."""
    source = unit.source
    found = find_candidates(unit, instance)
    if instance.parameters < 0:
        found = [k for k in found if k.declaration is instance.declaration] or found
    elif len(found) > 1:
        count = len(split_parameters(source, instance.parameters + 1, source.match[instance.parameters]))
        found = [k for k in found if len(split_parameters(source, k.opening + 1, k.closing)) == count]
    shapes = {tuple((a.kind, a.index) for a in kernel_arguments(unit, k)) for k in found} if len(found) > 1 else {()}
    if not found or len(shapes) != 1:
        why = "has no definition" if not found else "has several definitions whose arguments differ"
        place = source.place(instance.declaration.start)
        raise OverlayError("PTR103", f"kernel `{instance.short_name}` {why}", place, "Define it once.")
    return found[0]


def kernel_arguments(unit: Unit, kernel: Kernel) -> tuple[Argument, ...]:
    """A kernel's parameters. Raises PTR103 for one that is not understood, PTR109 for one that is not supported."""
    return parameters(unit.source, kernel.opening + 1, kernel.closing, lambda a: integer(unit.source, a, unit.lookup))


def thread_limit(unit: Unit, kernel: Kernel, instance: Instance) -> int:
    """The threads a threadgroup may have. Raises PTR103 where the attribute's argument cannot be worked out."""
    source = unit.source
    for attribute in attributes(source, kernel.declaration.start, head_end(kernel.declaration)):
        if attribute.name == "max_total_threads_per_threadgroup":
            lookup = partial(_look_up_in_template, unit, _template_arguments(unit, kernel, instance))
            return min(max(integer(source, attribute, lookup), 1), MAX_THREADS)
    return MAX_THREADS


def _look_up_in_template(unit: Unit, bound: Mapping[str, list[str]], name: str) -> int | None:
    """The value of a template parameter, or else of a constant."""
    if name not in bound:
        return unit.lookup(name)
    try:
        return evaluate(bound[name], unit.lookup)
    except NotConstant:
        return None


def _template_arguments(unit: Unit, kernel: Kernel, instance: Instance) -> dict[str, list[str]]:
    """The tokens given to each template parameter, or its default's."""
    source, start = unit.source, kernel.declaration.start
    if not kernel.template or source.tokens[start + 1] != "<":
        return {}
    given = _split_angles(instance.function.split(" "))
    names = source.tokens[start + 1 : skip_angles(source, start + 1, kernel.declaration.end)]
    bound: dict[str, list[str]] = {}
    for number, parameter in enumerate(_split_angles(names)):
        head, default = parameter, []
        if "=" in parameter:
            at = parameter.index("=")
            head, default = parameter[:at], parameter[at + 1 :]
        if head:
            bound[head[-1]] = given[number] if number < len(given) else default
    return bound


def _split_angles(tokens: list[str]) -> list[list[str]]:
    """What stands between the commas of the last `<...>` of some tokens."""
    parts: list[list[str]] = []
    depth = 0
    for token in tokens:
        if token in (")", "]", "}", ">"):
            depth -= 1
        if depth == 1 and token == ",":
            parts.append([])
        elif depth >= 1:
            parts[-1].append(token)
        if token in ("(", "[", "{", "<"):
            depth += 1
            if depth == 1 and token == "<":
                parts = [[]]
    return parts
