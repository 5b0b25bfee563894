"""An operator of a fork as one value: its functions, their MPS implementations, and where those on MPSGraph can go."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from porter.aten.declarations import MPS_KEY, DispatchEntry
from porter.aten.device_rows import OwnBody, calls_kept, find_own_body, keep_checks
from porter.aten.implementations import Implementation, Language, find_implementation, find_language, find_registration
from porter.aten.native_functions import (
    SHARING_KEYS,
    NativeFunction,
    NativeFunctions,
    functional_variant,
)
from porter.aten.stubs import DifferentOverloads, NoStub, StubCall, find_native_definitions, find_stub_names, find_stubs
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import OPERATIONS
from porter.languages.definitions import Definition

_NO_STUB = ("PTR071", "PTR072")  # what the code of one device raises: it is not found beside the CPU's, or calls none
_OWN_KERNEL = re.compile(r"[Ss]tub\b|device_type\(\)")
_REDISPATCHED = re.compile(r"(?:::)?at::(?!native::)")
_OPERATOR_CALL = re.compile(r"\bat::(\w+?)(?:_outf?|_)?\(")
_METHOD_CALL = re.compile(r"\.(\w+?)_\(")  # in place
_SCALAR_ON_DEVICE = re.compile(r"\b(?:wrapped_scalar_tensor|scalar_to_tensor)\s*\((?:[^(),;]|\([^();]*\))*,")


class DoubleOnDevice(PorterError):
    """A shared function copies a double to the device, which MPS cannot (PTR425)."""


@dataclass(frozen=True)
class ServedFunction:
    """A native function that MPS serves: its dispatch entry, the code behind it, and what that is written in.

    `error` says why that is unknown.
    """

    function: NativeFunction
    entry: DispatchEntry
    implementation: Implementation | None
    language: Language
    error: PorterError | None = None

    @property
    def builds_graph(self) -> bool:
        """Whether its code builds an MPSGraph, beside Metal kernels or not."""
        return self.language.builds_graph


@dataclass(frozen=True)
class Migration:
    """A function on MPSGraph, the dispatch entry it joins (or its own, if shared), and the stubs that entry calls.

    One that joins no entry keeps its function, whose body becomes `body`.
    """

    served: ServedFunction
    target: DispatchEntry
    stubs: tuple[StubCall, ...]
    body: OwnBody | None = None


@dataclass(frozen=True)
class Blocked:
    """A function that cannot be migrated, and why."""

    served: ServedFunction
    error: PorterError


@dataclass(frozen=True)
class Operator:
    """The native functions of an operator, or of one overload's group, and those of them with an MPS kernel."""

    name: str
    functions: tuple[NativeFunction, ...]
    served: tuple[ServedFunction, ...]

    @staticmethod
    def read(checkout: Checkout, name: str) -> Operator:
        """Reads an operator by its base name or an overload's name. Raises PTR012 if the fork has no such operator."""
        functions = NativeFunctions.read(checkout).find_overloads(name)
        return Operator(name, functions, tuple(found for each in functions if (found := find_served(checkout, each))))

    @property
    def base(self) -> str:
        """The base name: `atan2`, also for `atan2.out`."""
        return self.functions[0].base

    @property
    def is_composite(self) -> bool:
        """Whether no backend has a kernel for it."""
        return all(each.is_composite or not each.dispatch for each in self.functions)

    def functional_name(self, function: NativeFunction) -> str:
        """Returns the name that the function's meta function is declared under: that of its functional variant."""
        found = functional_variant(self.functions, function)
        return found.name if found else function.name.removesuffix(".out")


def find_served(checkout: Checkout, function: NativeFunction) -> ServedFunction | None:
    """What serves MPS for a row; None when nothing does. What keeps its code from being read is its `error`."""
    entry = function.entry_for(MPS_KEY)
    if entry is None:
        return None
    try:
        if is_shared(entry):
            return _find_shared(checkout, function, entry)
        found = find_implementation(checkout, entry.kernel)
        return ServedFunction(function, entry, found, find_language(checkout, found))
    except PorterError as error:
        return ServedFunction(function, entry, None, Language.UNKNOWN, error)


def _find_shared(checkout: Checkout, function: NativeFunction, entry: DispatchEntry) -> ServedFunction:
    """The kernels registered for the stubs that the shared code calls: its key says nothing about what they do."""
    registered = {stub: find_registration(checkout, stub) for stub in find_shared_stubs(checkout, entry)}
    found = [each for each in registered.values() if each]
    languages = [find_language(checkout, each) for each in found]
    old = next((each for each, how in zip(found, languages, strict=True) if how.builds_graph), None)
    missing = [stub for stub in _called_directly(checkout, entry) if registered[stub] is None]
    if missing and old is None:
        raise PorterError(
            "PTR032",
            f"no file in {OPERATIONS} registers {missing[0]}",
            entry.place,
            "A call on MPS would find no kernel: register one, or take MPS from this line.",
        )
    return ServedFunction(function, entry, old or next(iter(found), None), _join_languages(languages))


def _join_languages(languages: Sequence[Language]) -> Language:
    """What several kernels are written in together; the last two count only where there is nothing else."""
    graph = any(each.builds_graph for each in languages)
    metal = any(each in (Language.METAL, Language.MIXED) for each in languages)
    if graph:
        return Language.MIXED if metal else Language.MPSGRAPH
    return Language.METAL if metal else Language.OTHER


def _called_directly(checkout: Checkout, entry: DispatchEntry) -> tuple[str, ...]:
    """The stubs that a shared function is known to call itself, not through an operator that MPS may serve apart."""
    try:
        calls = find_stubs(checkout, entry.kernel)
    except PorterError:
        return ()
    return tuple(dict.fromkeys(call.stub.name for call in calls if not is_redispatched(call)))


def is_redispatched(call: StubCall) -> bool:
    """Whether the stub is called by an operator that the function calls, which MPS may serve apart."""
    return any(_REDISPATCHED.match(name) for name in call.via)


def find_stubs_behind(checkout: Checkout, served: ServedFunction) -> tuple[str, ...]:
    """Returns the stubs that a shared dispatch entry calls; none if the code of the entry could not be read."""
    return find_shared_stubs(checkout, served.entry) if is_shared(served.entry) and served.error is None else ()


def find_shared_stubs(checkout: Checkout, entry: DispatchEntry) -> tuple[str, ...]:
    """The stubs behind an entry that MPS shares: those it is known to call, else those it names and MPS registers.

    None where its code calls no stub. Raises what else keeps it from being read.
    """
    try:
        return tuple(dict.fromkeys(call.stub.name for call in find_stubs(checkout, entry.kernel)))
    except PorterError as error:
        named = find_stub_names(checkout, entry.kernel)
        found = tuple(name for name in named if find_registration(checkout, name))
        if not found and not isinstance(error, NoStub):
            raise
        return found


def find_migrations(checkout: Checkout, operator: Operator) -> tuple[Migration | Blocked, ...]:
    """Where every row that is on MPSGraph goes; a row is held back by PTR017 (no entry to join), by what the reading
    of its stubs raises, or by what kept its code from being read. A row that only forwards may stay as it is.
    """
    old = [served for served in operator.served if served.builds_graph or served.error or _only_forwards(served)]
    found = _keep_together(checkout, [_find_migration(checkout, operator, served) for served in old])
    kept = {each.served.entry.kernel for each in found if isinstance(each, Migration) and each.body}
    return tuple(each for each in found if not _forwards_rightly(each) and not _calls_kept(checkout, each.served, kept))


def _keep_together(checkout: Checkout, rows: Sequence[Migration | Blocked]) -> tuple[Migration | Blocked, ...]:
    """The rows of an operator; where one has no stub, those whose shared code only calls other operators have none too.

    The graph that all of them run is ported once: it stays anyway for the row that has no other code.
    """
    stays = (row.served.builds_graph and isinstance(row.error, NoStub) for row in rows if isinstance(row, Blocked))
    if not any(stays):
        return tuple(rows)
    return tuple(_without_join(checkout, row) if isinstance(row, Migration) else row for row in rows)


def _without_join(checkout: Checkout, migration: Migration) -> Migration | Blocked:
    """A row that keeps its graph, where all that it would join is calls of other operators."""
    if migration.stubs or migration.body or not migration.served.builds_graph:
        return migration
    try:
        find_stubs(checkout, migration.target.kernel)
    except NoStub as error:
        return Blocked(migration.served, error)
    return migration


def _calls_kept(checkout: Checkout, served: ServedFunction, kept: Collection[str]) -> bool:
    """Whether a row's own function only calls one of these, of its own name."""
    found = served.implementation
    return found is not None and served.entry.kernel in kept and calls_kept(checkout, served.function, found)


def _forwards_rightly(found: Migration | Blocked) -> bool:
    """Whether a row only forwards to others, and does it in a way that MPS needs."""
    return isinstance(found, Blocked) and isinstance(found.error, DoubleOnDevice) and _only_forwards(found.served)


def find_joining(checkout: Checkout, operator: Operator, migrations: tuple[Migration, ...]) -> tuple[Migration, ...]:
    """Returns the functions that gain an MPS kernel: their shared implementation only calls stubs of `migrations`, or
    operators that MPS has.
    """
    ported = {call.stub for migration in migrations for call in migration.stubs}
    joining = (each for each in find_additions(checkout, operator) if isinstance(each, Migration))
    here = {migration.served.function.name for migration in migrations}
    return tuple(
        each
        for each in joining
        if each.served.function.name not in here and ported.issuperset(call.stub for call in each.stubs)
    )


def find_additions(checkout: Checkout, operator: Operator) -> tuple[Migration | Blocked, ...]:
    """Where MPS joins every row that it lacks: the entry that CPU and CUDA share, with the stubs behind it."""
    found = []
    for function in operator.functions:
        entry = next((entry for entry in function.dispatch if _may_join(function, entry)), None)
        if entry is not None and function.entry_for(MPS_KEY) is None:
            found.append(_find_migration(checkout, operator, ServedFunction(function, entry, None, Language.OTHER)))
    return tuple(found)


def _find_migration(checkout: Checkout, operator: Operator, served: ServedFunction) -> Migration | Blocked:
    if served.error:
        return Blocked(served, served.error)
    try:
        return _find_join(checkout, operator, served)
    except PorterError as error:
        return Blocked(served, error)


def _only_forwards(served: ServedFunction) -> bool:
    """Whether a kernel specific to MPS only forwards to other operators."""
    return served.language is Language.OTHER and served.implementation is not None and not is_shared(served.entry)


def is_shared(entry: DispatchEntry) -> bool:
    """Whether this entry also has the CPU or CUDA key."""
    return any(key in entry.keys for key in SHARING_KEYS)


def _find_join(checkout: Checkout, operator: Operator, served: ServedFunction) -> Migration:
    candidates = [entry for entry in served.function.dispatch if is_shared(entry)]
    if not candidates and (own := _keep_function(checkout, operator, served)):
        return own
    if not candidates:
        raise PorterError(
            "PTR017",
            f"{served.function.name} has no CPU or CUDA entry that MPS can join",
            served.function.place,
            "Its CPU kernel is missing; `porter explain PTR017` says more.",
        )
    if served.implementation and (body := keep_checks(checkout, served.function, served.implementation)):
        return Migration(served, served.entry, (body.call,) if body.call else (), body)
    failure: PorterError | None = None
    for entry in candidates:
        try:
            _refuse_double(checkout, served, entry)
            return Migration(served, entry, find_stubs(checkout, entry.kernel))
        except PorterError as error:
            failure = error
            if isinstance(error, NoStub) and _only_redispatches(checkout, entry):
                return Migration(served, entry, ())
            if isinstance(error, DifferentOverloads):
                return Migration(served, entry, _find_stubs_of_out(checkout, operator, error))
    assert failure is not None
    own = _keep_function(checkout, operator, served)
    if own is None:
        raise _explain_split(served.function, candidates, failure)
    return own


def _explain_split(function: NativeFunction, candidates: Sequence[DispatchEntry], failure: PorterError) -> PorterError:
    """PTR501 where CPU and CUDA each have a function without a stub; otherwise why the last could not be joined."""
    if failure.code not in _NO_STUB or len({entry.kernel for entry in candidates}) == 1:
        return failure
    on = [(entry.kernel, " and ".join(key for key in entry.keys if key in SHARING_KEYS)) for entry in candidates]
    runs = ", ".join(f"{kernel} on {devices}" for kernel, devices in on)
    hint = "Without a stub to join, its port comes from runs of its old code: docs/recorded.md."
    return PorterError("PTR501", f"{function.name} is {runs}: no code that MPS can share", function.place, hint)


def _refuse_double(checkout: Checkout, served: ServedFunction, entry: DispatchEntry) -> None:
    """Raises PTR425 if a shared function makes a tensor of the device out of a scalar: that of a float is a double."""
    for found in find_native_definitions(checkout, entry.kernel):
        if _SCALAR_ON_DEVICE.search(found.text):
            raise DoubleOnDevice(
                "PTR425",
                f"{entry.kernel} copies a scalar of {served.function.name} to the device as a double, which MPS lacks",
                found.place,
                "Keep a function for MPS that copies it in the type of the result.",
            )


def _keep_function(checkout: Checkout, operator: Operator, served: ServedFunction) -> Migration | None:
    """The function that MPS keeps, which does what another device's function does with its own kernel, or None."""
    found = served.implementation
    if found is None or found.function is None or is_shared(served.entry):
        return None
    functions = NativeFunctions.read(checkout).find_overloads(operator.base)
    body = find_own_body(checkout, functions, served.function)
    return Migration(served, served.entry, (body.call,) if body.call else (), body) if body else None


def _find_stubs_of_out(checkout: Checkout, operator: Operator, error: PorterError) -> tuple[StubCall, ...]:
    """Returns the stubs of the out= variant, for a kernel name with several C++ overloads."""
    for function in operator.functions:
        entry = function.entry_for("CPU") if function.name.endswith("out") else None
        if entry:
            return find_stubs(checkout, entry.kernel)
    raise error


def _only_redispatches(checkout: Checkout, entry: DispatchEntry) -> bool:
    """Whether a function shared by CPU and CUDA only calls operators that MPS has."""
    if not _is_shared_by_all(entry):
        return False
    functions = NativeFunctions.read(checkout)
    return all(_only_calls(found.text, functions) for found in find_native_definitions(checkout, entry.kernel))


def find_called_operators(checkout: Checkout, operator: Operator) -> tuple[str, ...]:
    """The base names of the operators that MPS serves and that the shared code of an operator's rows calls."""
    functions = NativeFunctions.read(checkout)
    entries = [each for function in operator.functions for each in function.dispatch if is_shared(each)]
    texts = [found.text for each in entries for found in _find_definitions(checkout, each)]
    called = [name for text in texts for pattern in (_OPERATOR_CALL, _METHOD_CALL) for name in pattern.findall(text)]
    served = [name for name in dict.fromkeys(called) if functions.has(name) and name != operator.base]
    return tuple(name for name in served if any(each.entry_for(MPS_KEY) for each in functions.find_overloads(name)))


def _find_definitions(checkout: Checkout, entry: DispatchEntry) -> Sequence[Definition]:
    try:
        return find_native_definitions(checkout, entry.kernel)
    except PorterError:
        return ()


def _only_calls(text: str, functions: NativeFunctions) -> bool:
    if "at::" not in text or _OWN_KERNEL.search(text):
        return False
    called = {name for name in _OPERATOR_CALL.findall(text) if functions.has(name)}
    return all(any(function.entry_for(MPS_KEY) for function in functions.find_overloads(name)) for name in called)


def _may_join(function: NativeFunction, entry: DispatchEntry) -> bool:
    """Whether an entry is of code for any device: CPU and CUDA share it, or it is a structured kernel of CPU alone."""
    alone = function.structured and is_shared(entry) and not all(map(function.entry_for, SHARING_KEYS))
    return _is_shared_by_all(entry) or alone


def _is_shared_by_all(entry: DispatchEntry) -> bool:
    return all(key in entry.keys for key in SHARING_KEYS)
