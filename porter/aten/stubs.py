"""The dispatch stubs that an implementation shared by CPU and CUDA calls, and their declarations.

Source: ATen/native/DispatchStub.h; `TORCH_IMPL_FUNC` of ATen/TensorMeta.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from porter.aten.branches import Condition, ExecutedStatement, Facts, find_calls, get_expression, list_executed, show
from porter.core.checkout import Checkout
from porter.core.dtypes import ALL, DType
from porter.core.edits import line_of
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE, spell_include
from porter.languages import cpp
from porter.languages.brackets import bounded
from porter.languages.definitions import Definition, find_definitions, parse_definition, split_parameters

_SINGLE_ARGUMENT = re.compile(r"^[A-Z_]+\(\s*(\w+)\s*\)", re.M)


def find_native_definitions(checkout: Checkout, native_function: str) -> list[Definition]:
    """Returns the definitions of a kernel: its TORCH_IMPL_FUNC, else all plain overloads. Raises PTR071."""
    found = next(filter(None, (_find_in(checkout, native_function, ending) for ending in (".cpp", ".h"))), None)
    if found is None:
        raise PorterError(
            "PTR071",
            f"found no implementation of {native_function}",
            Place(NATIVE),
            "It may be generated or defined in a subfolder; register its stub by hand.",
        )
    return found


def _find_in(checkout: Checkout, native_function: str, ending: str) -> list[Definition]:
    """The definitions in files with this ending."""
    pattern = rf"\b{re.escape(native_function)}\s*[(),]"
    folder = checkout.folder(NATIVE, ending)
    paths = folder.files_containing(native_function, pattern, whole=True)
    if paths == folder.unread:
        pasting = folder.files_containing("##")
        paths = tuple(
            path for path in pasting if path in folder.unread or _may_paste(checkout.read(path), native_function)
        )
    unread = [path for path in paths if path in folder.unread]
    for wrapper in ("TORCH_IMPL_FUNC", ""):
        readable = (path for path in paths if path not in unread)
        found = [
            one for path in readable for one in find_definitions(path, checkout.read(path), native_function, wrapper)
        ]
        if found:
            return found
    for path in unread:
        checkout.read(path)
    return []


def _may_paste(text: str, name: str) -> bool:
    """Whether a macro use may paste the name together: `MACRO(eq)` for `eq_Tensor_out`."""
    return any(argument.startswith(name.split("_")[0]) for argument in _list_single_arguments(text))


@lru_cache(maxsize=256)
def _list_single_arguments(text: str) -> tuple[str, ...]:
    """The arguments of the macro uses of a file that have one."""
    return tuple(_SINGLE_ARGUMENT.findall(text))


_ATEN = re.compile(r"\b(?:at|c10)::")
_DECLARE = r"DECLARE_DISPATCH\(\s*([^;]*?),\s*{name}\s*\)"
_TYPEDEF = r"using\s+{name}\s*=\s*void\s*\(\s*\*\s*\)\s*\(([^;]*)\)\s*;"
_SIGNATURE = re.compile(r"void\s*\(\s*\*\s*\)\s*\((.*)\)\Z", re.S)
_DISPATCHED = re.compile(r"\b(\w+)\(\s*(?:\w+(?:\.\w+\(\))*\.)?(?:device\(\)\.type|device_type)\(\)\s*,|\b(\w+_stub)\b")
_NAMED_STUB = re.compile(r"\b\w+_stub\b")
_CALLED = re.compile(r"\b[A-Za-z_]\w*\b(?=\s*[(<,)])")
_PLAINLY_CALLED = re.compile(r"(?:\bnative::|(?<![\w.:>]))([A-Za-z_]\w*)(?=\s*[(<])")
_DEPTH = 6
_File = tuple[str, str]


class NoStub(PorterError):
    """A native function calls no stub (PTR072)."""


class DifferentOverloads(PorterError):
    """The overloads of a native function call different stubs (PTR073)."""


@dataclass(frozen=True)
class Stub:
    """A dispatch stub. `signature` has a (type, name) pair per parameter; unnamed parameters have an empty name.

    `header` declares it, spelled as in an include (`ATen/native/BinaryOps.h`); empty for the loop of a function that
    calls no stub, and stands for one.
    """

    name: str
    signature: tuple[tuple[str, str], ...]
    header: str
    place: Place

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its parameters, without the namespaces at and c10."""
        return tuple(_ATEN.sub("", type_) for type_, _ in self.signature)


@dataclass(frozen=True)
class StubCall:
    """A call of a stub, with `arguments` after the iterator, for these input dtypes, if all of `when` hold.

    `builder` is the function that builds the iterator (`unary_op`, `comparison_op`, ...); it is empty for a structured
    kernel, where the meta function does so. `via` names the functions in between. With `real`, only the real part of a
    complex result is used. `device` is the device that a function for it alone names: `CPU`, `CUDA`.
    """

    stub: Stub
    arguments: tuple[str, ...]
    dtypes: tuple[DType, ...]
    when: tuple[Condition, ...]
    builder: str
    via: tuple[str, ...]
    real: bool
    place: Place
    device: str = ""


_PASSED = re.compile(r"\btemplates::\w+<(\w+), Generator>\(")
_STRUCT = r"^struct {name} \{{.*?^\}};"
_STUB_CALL = re.compile(r"\b(\w+_stub)\([\w.]+\(?\)?(?:\.\w+\(\))?, ([^;]*)\);")


@dataclass(frozen=True)
class _Hit:
    stub: str
    arguments: tuple[str, ...]
    when: tuple[Condition, ...]
    builder: str
    via: tuple[str, ...]
    real: bool


def find_stubs(checkout: Checkout, native_function: str) -> tuple[StubCall, ...]:
    """Returns the stubs that a kernel of `native_functions.yaml` (`atan2_out`, `abs_out`, `div_out_mode`) calls.

    Raises PTR071 (no such function), PTR072 (it calls no stub), PTR073 (its overloads differ) or PTR074 (a stub is
    not declared).
    """
    found = find_native_definitions(checkout, native_function)
    outcomes = {hits: one for one in found if (hits := _find_hits_per_type(one, checkout.read(one.path)))}
    if not outcomes:
        if passed := tuple(_find_passed(checkout, found)):
            return passed
        raise _no_stub(checkout, native_function, found[0])
    if len(outcomes) > 1:
        places = ", ".join(str(one.place) for one in outcomes.values())
        raise DifferentOverloads(
            "PTR073",
            f"{native_function} has overloads that call different stubs ({places})",
            found[0].place,
            "Give each overload a kernel name of its own, or port it by hand.",
        )
    hits, definition = next(iter(outcomes.items()))
    return tuple(_make_call(checkout, hit, dtypes, definition) for hit, dtypes in hits)


def _find_passed(checkout: Checkout, found: Sequence[Definition]) -> Iterator[StubCall]:
    """Yields the stubs that functors call which a kernel passes on to a template, as those of random numbers do."""
    seen = set[str]()
    for one in found:
        for functor in _PASSED.findall(one.text):
            struct = re.search(_STRUCT.format(name=functor), checkout.read(one.path), re.S | re.M)
            for name, arguments in _STUB_CALL.findall(struct[0] if struct else ""):
                if name not in seen:
                    seen.add(name)
                    stub = find_stub_declaration(checkout, name, one)
                    given = tuple(each.strip() for each in arguments.split(","))
                    yield StubCall(stub, given, ALL, (), "borrowing_nullary_op", (functor,), False, one.place)


def find_stub_names(checkout: Checkout, native_function: str) -> tuple[str, ...]:
    """Returns the names of all stubs that a kernel, or a function it calls in its file, calls or passes on.

    Raises PTR071 (no such function).
    """
    found = find_native_definitions(checkout, native_function)
    names = (name for one in found for name in _find_dispatched((one.path, checkout.read(one.path)), one.text))
    return tuple(dict.fromkeys(names))


def _find_dispatched(file: _File, text: str) -> Iterator[str]:
    pending, seen = [text], set[str]()
    while pending:
        text = pending.pop()
        parameters = set(_NAMED_STUB.findall(text.partition("{")[0]))  # the caller's stubs under other names
        stubs = (match[1] or match[2] for match in _DISPATCHED.finditer(text))
        yield from (stub for stub in stubs if stub not in parameters)
        named = set(_PLAINLY_CALLED.findall(text)) - seen
        seen |= named
        pending += [found.text for name in sorted(named) for found in _find_callees(file, name, "at")]


@lru_cache(maxsize=4096)
def _find_hits_per_type(found: Definition, text: str) -> tuple[tuple[_Hit, tuple[DType, ...]], ...]:
    """The stub calls of one definition in a file's text, each with the input types it is made for."""
    with bounded(found.place):
        types: dict[_Hit, tuple[DType, ...]] = {}
        file, function = (found.path, text), parse_definition(found)
        for dtype in ALL:
            facts = Facts(dtype, dtype.real)
            hits = tuple(_find_hits(file, function.body, facts, (), ()))
            if not facts.asked:
                return tuple((hit, ALL) for hit in dict.fromkeys(hits))
            for hit in hits:
                types[hit] = (*types.get(hit, ()), dtype)
        return tuple(types.items())


def _find_hits(
    file: _File, body: cpp.Block, facts: Facts, when: tuple[Condition, ...], via: tuple[str, ...]
) -> Iterator[_Hit]:
    steps = [
        (step, call) for step in list_executed(body, facts, when) for call in find_calls(get_expression(step.statement))
    ]
    real = any(show(call.function) == "at::real" for _, call in steps)
    for step, call in steps:
        if _is_dispatch(call):
            stub = step.facts.resolve(call.function)
            iterator = _follow_builder(file, step.facts.resolve(call.arguments[1]), step.facts)
            arguments = tuple(show(a) for written in call.arguments[2:] for a in _unpack(written, step.facts))
            yield _Hit(show(stub), arguments, step.when, read_builder(iterator), via, real)
        elif isinstance(call.function, cpp.Name) and len(via) < _DEPTH:
            yield from _follow_call(file, call, step, via)


def _is_dispatch(call: cpp.Call) -> bool:
    """Whether this is `some_stub(device_type(), iterator, ...)`."""
    first = call.arguments[0] if call.arguments else None
    if not isinstance(first, cpp.Call) or len(call.arguments) < 2:
        return False
    asked = first.function
    return isinstance(asked, cpp.Name | cpp.Member) and show(asked).split(".")[-1] == "device_type"


def _follow_builder(file: _File, iterator: cpp.Expr, facts: Facts) -> cpp.Expr:
    """The iterator that a function of the same file builds and returns, or the expression itself."""
    if not isinstance(iterator, cpp.Call) or not isinstance(iterator.function, cpp.Name):
        return iterator
    name = iterator.function
    for found in (
        _find_callees(file, name.last, "") if name.path == name.last else ()
    ):  # TensorIterator's own have a scope
        function = parse_definition(found)
        if not function.returns.endswith("TensorIterator"):
            continue
        steps = list_executed(function.body, replace(facts, names={}))
        returned = [
            each.facts.resolve(each.statement.value)
            for each in steps
            if isinstance(each.statement, cpp.Return) and each.statement.value is not None
        ]
        if len(returned) == 1:
            return returned[0]
    return iterator


def _unpack(argument: cpp.Expr, facts: Facts) -> tuple[cpp.Expr, ...]:
    """Returns the argument itself or, for a pack expansion, the arguments bound to the pack."""
    if not isinstance(argument, cpp.Postfix):
        return (facts.resolve(argument),)
    pack = facts.resolve(argument.value)
    return pack.arguments if isinstance(pack, cpp.Call) else ()


def read_builder(iterator: cpp.Expr) -> str:
    """Returns `unary_op` for `TensorIterator::unary_op(...)`, a `TensorIteratorConfig` chain, or "" for `*this`."""
    text = show(iterator)
    if "TensorIteratorConfig" in text:
        return text
    named = isinstance(iterator, cpp.Call) and isinstance(iterator.function, cpp.Name)
    return iterator.function.last if named else ""  # type: ignore[union-attr]


def _follow_call(file: _File, call: cpp.Call, step: ExecutedStatement, via: tuple[str, ...]) -> Iterator[_Hit]:
    """Yields the stub calls of a function in the same file, called directly or redispatched to through `at::`."""
    assert isinstance(call.function, cpp.Name)
    callee = step.facts.resolve(call.function)
    if not isinstance(callee, cpp.Name) or not callee.path or callee.last in via or via.count(callee.path) > 1:
        return
    scope = callee.path.rpartition("::")[0]
    if scope not in ("", "at", "native", "at::native"):
        return
    if not any(_may_dispatch(file, name) for name in (callee.last, *_list_names(call.arguments, step.facts))):
        return
    for found in _find_callees(file, callee.last, scope):
        function = parse_definition(found)
        if found.expanded or function.returns == "TORCH_IMPL_FUNC":
            inner = replace(step.facts, names={})
        elif _accepts(function, call):
            inner = _bind_arguments(function, call, step.facts)
        else:
            continue
        hits = tuple(_find_hits(file, function.body, inner, step.when, (*via, callee.path)))
        yield from hits
        if hits:
            return


def _list_names(values: tuple[cpp.Expr, ...], facts: Facts) -> Iterator[str]:
    """Yields the plain names among some values, which may name functions."""
    for value in map(facts.resolve, values):
        if isinstance(value, cpp.Name) and value.path:
            yield value.last


@lru_cache(maxsize=32768)
def _may_dispatch(file: _File, name: str) -> bool:
    """Whether a function may call a stub, directly or through another function of the file."""
    pending, seen = [name], {name}
    while pending:
        for found in _find_callees(file, pending.pop(), "at"):
            if "device_type" in found.text:
                return True
            named = set(_CALLED.findall(found.text)) - seen
            seen |= named
            pending += named
    return False


def _find_callees(file: _File, name: str, scope: str) -> tuple[Definition, ...]:
    path, text = file
    wrapped = find_definitions(path, text, name, "TORCH_IMPL_FUNC") if scope else ()
    return wrapped or find_definitions(path, text, name)


def _is_pack(parameter: cpp.Parameter) -> bool:
    return "..." in parameter.type


def _accepts(function: cpp.Function, call: cpp.Call) -> bool:
    given, taken = len(call.arguments), len(function.parameters)
    packed = any(map(_is_pack, function.parameters))
    return given == taken or (packed and given >= taken - 1)


def _bind_arguments(function: cpp.Function, call: cpp.Call, facts: Facts) -> Facts:
    names: dict[str, cpp.Expr] = {}
    if function.parameters and _is_pack(function.parameters[-1]):
        rest = tuple(facts.resolve(a) for a in call.arguments[len(function.parameters) - 1 :])
        names[function.parameters[-1].name] = cpp.Call(cpp.Name(""), rest)
    for parameter, argument in zip(function.parameters, call.arguments, strict=False):
        value = facts.resolve(argument)
        if not _is_pack(parameter) and not (isinstance(value, cpp.Name) and value.path == parameter.name):
            names[parameter.name] = value
    return replace(facts, names=names)


def _make_call(checkout: Checkout, hit: _Hit, dtypes: tuple[DType, ...], found: Definition) -> StubCall:
    stub = find_stub_declaration(checkout, hit.stub, found)
    return StubCall(stub, hit.arguments, dtypes, hit.when, hit.builder, hit.via, hit.real, found.place)


def find_stub_declaration(checkout: Checkout, name: str, found: Definition | None = None) -> Stub:
    """Returns the declaration of a stub. Raises PTR074 if no header declares it."""
    if declared := _find_declared(checkout, name):
        return declared
    raise PorterError(
        "PTR074",
        f"no header in {NATIVE} declares the stub {name}",
        found.place if found else Place(NATIVE),
        "A generated stub, or one private to its file, cannot be registered for another device.",
    )


def _find_declared(checkout: Checkout, name: str) -> Stub | None:
    paths = checkout.folder(NATIVE, ".h").files_containing(name, rf"\b{re.escape(name)}\s*\)", whole=True)
    return next((stub for path in paths if (stub := _find_declaration(path, checkout.read(path), name))), None)


@lru_cache(maxsize=1024)
def _find_declaration(path: str, text: str, name: str) -> Stub | None:
    """The declaration of a stub in a header, which is asked for as often as operators call it."""
    match = re.search(_DECLARE.format(name=re.escape(name)), text)
    if match is None:
        return None
    place = Place(path, line_of(text, text.rindex("DECLARE_DISPATCH", 0, match.end())))
    kind = match.group(1).rpartition("DECLARE_DISPATCH(")[2].strip()
    return Stub(name, _read_signature(text, kind, place), spell_include(path), place)


def _read_signature(text: str, kind: str, place: Place) -> tuple[tuple[str, str], ...]:
    """Reads the parameters of `void(*)(TensorIteratorBase&, const Scalar& alpha)`, or of the typedef of that name."""
    spelled = _SIGNATURE.search(kind)
    inside = spelled.group(1) if spelled else _find_typedef(text, kind)
    if inside is None:
        raise PorterError("PTR074", f"the function type {kind} is not declared here", place, "Port it by hand.")
    return tuple(_read_parameter(part) for part in split_parameters(inside) if part)


def _find_typedef(text: str, name: str) -> str | None:
    match = re.search(_TYPEDEF.format(name=re.escape(name)), text)
    return match.group(1) if match else None


def _read_parameter(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.*[&*>\s])(\w+)", text)
    if not match or match.group(1).strip() in ("const", "unsigned", ""):
        return text, ""
    return match.group(1).strip(), match.group(2)


def _no_stub(checkout: Checkout, native_function: str, found: Definition) -> PorterError:
    if tensors := _list_without_iterator(checkout, native_function):
        what = f"{native_function} calls no dispatch stub of an iterator, only of tensors: {', '.join(tensors)}"
        hint = "Give the row a function of its own for MPS, with the graph: it is ported from recorded runs."
        return NoStub("PTR072", what, found.place, hint)
    calls = [
        call
        for step in list_executed(parse_definition(found).body, Facts(ALL[0], ALL[0]))
        for call in find_calls(get_expression(step.statement))
    ]
    other = next((show(c.function) for c in calls if "TORCH_" not in show(c.function)), "")
    what = f"{native_function} calls no dispatch stub" + (f": it calls {other}" if other else "")
    return NoStub("PTR072", what, found.place, "Port the operator it forwards to, or add a stub first.")


def _list_without_iterator(checkout: Checkout, native_function: str) -> tuple[str, ...]:
    """The stubs that a kernel calls or passes on, if headers declare none of them with an iterator."""
    names = find_stub_names(checkout, native_function)
    stubs = [stub for name in names if (stub := _find_declared(checkout, name))]
    is_elementwise = any("TensorIterator" in each for stub in stubs for each in stub.types)
    return () if is_elementwise else tuple(stub.name for stub in stubs)
