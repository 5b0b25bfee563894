"""Plans a port: find the operator, read what its old code computes, write the native kernel, remove the old code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from porter.aten.declarations import MPS_KEY
from porter.aten.implementations import Implementation, Language
from porter.aten.native_functions import NativeFunction, NativeFunctions, share_edits
from porter.aten.operator import (
    Blocked,
    Migration,
    Operator,
    ServedFunction,
    find_joining,
    find_migrations,
    find_served,
)
from porter.aten.opinfo import decide_mark, edit_marks, find_opinfos, read_marks
from porter.aten.skip_lists import Change, decide_all, edit_lists, read_lists
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.formatting import format_block
from porter.languages.identifiers import to_snake_case
from porter.languages.inlining import read_parameters
from porter.languages.source import Function, parse_source
from porter.metal.functor import Source
from porter.metal.host import sees_helpers
from porter.metal.insertion import insert_includes
from porter.metal.kernel import FIRST_CANDIDATES, CandidateChoice, Kernel
from porter.metal.kernel_files import find_library, qualify_library
from porter.metal.kernel_spec import RecordedGraph, no_recording, read_spec
from porter.metal.launchers import LAUNCHER_HEADERS
from porter.plan.dialect import require_library
from porter.plan.plan import (
    Draft,
    EntryChange,
    ListChange,
    Plan,
    PlannedFunctor,
    PlannedRegistration,
    PlannedStub,
    RemovedSymbol,
    Served,
    Unported,
)
from porter.plan.recorded.port import FROM_RECORDING, NativePort, ReadPrograms, WrittenKernel, no_programs
from porter.plan.removal import Gone, Removal, Rewrite, delete_empty_files, find_removals, redirect_calls
from porter.plan.routes import PortDraft, Route, Routes, choose_routes


def plan_operator(
    checkout: Checkout,
    op: str,
    choice: CandidateChoice = FIRST_CANDIDATES,
    recorded: RecordedGraph = no_recording,
    source: Source = Source.ANY,
    programs: ReadPrograms = no_programs,
    scaffold: bool = False,
    listed: Collection[str] = (),
    keeps: bool = False,
) -> Plan:
    """Plans the complete port of an operator, with this choice of candidates of a source.

    `recorded` returns the old graph if the source cannot be read, `programs` what the calls of a row compute: rows
    that no stub can serve are ported by those; with `scaffold`, others get a frame to write a kernel in. Entries of the
    test lists stay for the tests `listed`, which fail still. A functor `keeps` dtypes that the old code
    took. Raises PTR434 for one of these that would change nothing, and PorterError if nothing can be ported.
    """
    operator = Operator.read(checkout, op)
    _refuse_nothing_to_do(operator)
    require_library(checkout)
    found = find_migrations(checkout, operator)
    plan = plan_kernels(checkout, operator, found, choice, recorded, source, programs, scaffold, listed, keeps)
    if keeps and plan == plan_kernels(checkout, operator, found, choice, recorded, source, programs, scaffold, listed):
        what = f"the port of {op} drops no integers that the old graph takes"
        raise PorterError("PTR434", what, operator.functions[0].place, "Omit --keep-dtypes.")
    if scaffold and not plan.unported:
        what = f"porter ports all of {op}: there is nothing to write a frame for"
        raise PorterError("PTR434", what, operator.functions[0].place, "Omit --scaffold.")
    return plan


def plan_kernels(
    checkout: Checkout,
    operator: Operator,
    found: Sequence[Migration | Blocked],
    choice: CandidateChoice,
    recorded: RecordedGraph,
    source: Source = Source.ANY,
    programs: ReadPrograms = no_programs,
    scaffold: bool = False,
    listed: Collection[str] = (),
    keeps: bool = False,
    functor: str = "",
) -> Plan:
    """Plans the kernels of functions that join a shared implementation, and what follows from them.

    Functions that cannot join are ported by their recorded programs where there are some. Raises the first function's
    error if none can be ported.
    """
    op = operator.name
    read = partial(read_spec, recorded=recorded, source=source, keeps=keeps, functor=functor)
    routes = choose_routes(checkout, operator, found, read, choice)
    ported = routes.ported
    if source is Source.CUDA and not ported.kernels:
        what = f"{op} takes no functor of a stub, so no CUDA kernel can define it"
        raise PorterError("PTR434", what, operator.functions[0].place, "Omit --from cuda.")
    functions = NativeFunctions.read(checkout)
    migrations = (*ported.migrated, *find_joining(checkout, operator, ported.migrated))
    draft = ported.draft.apply(
        e for migration in migrations for e in share_edits(functions, migration.served.function, migration.target)
    )
    draft, removed = _remove_old_code(draft, functions, migrations, ported)
    native = _port_blocked(draft, operator, routes, programs, scaffold)
    if native.blocked and not ported.kernels and not native.ported and native.draft is draft:
        raise native.blocked[0].error
    draft, removed = native.draft, (*removed, *native.removed)
    emptied = tuple(delete_empty_files(draft.fork, (each.file for each in removed)))
    draft = draft.apply(emptied)
    moved = [migration.served for migration in migrations]
    complete = not any(_find_left_behind(checkout, functions.find_overloads(operator.base), (*moved, *native.ported)))
    dtypes_ported = {dtype.torch for kernel in ported.kernels for dtype in kernel.dtypes} | native.dtypes
    draft, lists = _free_tests(draft, operator.base, dtypes_ported, complete, listed)
    return Plan(
        op=op,
        entries=(
            *(_describe_entry_change(functions, migration) for migration in migrations),
            *map(_describe_kept_entry, native.ported),
        ),
        functors=(
            *(PlannedFunctor(k.kernel_file, k.name, k.source, k.origins) for k in ported.kernels),
            *map(_describe_kernel, native.kernels),
        ),
        registrations=tuple(_list_registrations(ported.kernels)),
        stubs=tuple(
            dict.fromkeys(PlannedStub(k.stub.name, k.function, k.host_file) for k in ported.kernels if k.stub.header)
        ),
        removed=(
            *(RemovedSymbol(each.file, each.symbol) for each in removed),
            *(RemovedSymbol(each.file, "the file, which has only includes") for each in emptied),
        ),
        lists=lists,
        unported=tuple(_describe_blocked(each) for each in native.blocked),
        notes=(
            *_explain_own(routes, native, found),
            *native.notes,
            *(note for kernel in ported.kernels for note in kernel.notes),
        ),
        answered=_list_answered(migrations),
        changes=draft.changes,
        elsewhere=_list_elsewhere(native) if not ported.kernels else (),
    )


def _port_blocked(
    draft: Draft, operator: Operator, routes: Routes, programs: ReadPrograms, scaffold: bool
) -> NativePort:
    """Ports rows by their recorded programs that are to be, where there are some to ask for."""
    own, others = routes.list_blocked(Route.RUNS, Route.LIBRARY), routes.list_blocked(Route.NONE)
    if not own or (programs is no_programs and not scaffold):
        return NativePort(draft, blocked=(*own, *others))
    from porter.plan.recorded.blocked import port_blocked  # its imports take as long as most plans

    port = port_blocked(draft, operator, own, programs, scaffold)
    return replace(port, blocked=(*port.blocked, *others))


def _explain_own(routes: Routes, native: NativePort, found: Sequence[Migration | Blocked]) -> Iterator[str]:
    """Why rows keep their function that have a stub: its kernel cannot be written."""
    with_stub = frozenset(each.served for each in found if isinstance(each, Migration))
    for row in routes.rows:
        if row.route is Route.RUNS and row.served in native.ported and row.served in with_stub and row.error:
            yield f"{row.served.function.name} keeps its function: {row.error.code} {row.error.what}"


def _list_elsewhere(native: NativePort) -> tuple[str, ...]:
    """The complex types that no kernel of the rows takes."""
    made = [each.torch for each in dtypes.ALL if each.kind is dtypes.Kind.COMPLEX] if native.kernels else []
    return tuple(each for each in made if each not in native.dtypes)


def _refuse_nothing_to_do(operator: Operator) -> None:
    if any(served.builds_graph for served in operator.served):
        return
    unknown = next((served.error for served in operator.served if served.error), None)
    if unknown:
        raise unknown
    op, place = operator.name, operator.functions[0].place
    if any(served.language is Language.METAL for served in operator.served):
        raise PorterError("PTR013", f"{op} is already native", place, "There is nothing to migrate.")
    if operator.served:
        what = f"the MPS code of {op} only calls other operators"
        raise PorterError("PTR013", what, place, "There is nothing to migrate: port those that it calls.")
    if operator.is_composite:
        raise PorterError("PTR014", f"{op} is composite: it has no kernels", place, "Migrate the operators it calls.")
    raise PorterError(
        "PTR015", f"{op} has no MPS kernel", place, "There is nothing to migrate: MPS needs a new kernel."
    )


def _remove_old_code(
    draft: Draft, functions: NativeFunctions, migrations: Sequence[Migration], ported: PortDraft
) -> tuple[Draft, tuple[Removal, ...]]:
    """Removes the old implementations, their includes, and helpers that become unused."""
    needed = [each.served.implementation for each in ported.blocked]
    gone = [each for each in migrations if each.body is None and not _is_shared_with_rest(functions, each, migrations)]
    moved = (migration.served.implementation for migration in gone)
    old = [each for each in moved if each and each not in needed]
    declared = {
        migration.served.function.base: _mps_kernels(functions, migration.served.function.base)
        for migration in migrations
    }
    removed = find_removals(draft.fork, old, declared, rewrite_functions(draft.fork, migrations, ported.kernels))
    draft = draft.apply(each.edit for each in removed)
    draft = draft.apply(redirect_calls(draft.fork, _list_gone(gone, old)))
    draft = draft.apply(define_what_bodies_use(draft.fork, migrations, ported.kernels))
    return draft.apply(include_what_bodies_use(draft.fork, migrations, ported.kernels)), removed


def _list_gone(migrations: Sequence[Migration], removed: Collection[Implementation]) -> Iterator[Gone]:
    for migration in migrations:
        found = migration.served.implementation
        if found in removed and found and found.function:
            yield Gone(found.function.name, migration.served.function)


def _is_shared_with_rest(functions: NativeFunctions, migration: Migration, migrations: Sequence[Migration]) -> bool:
    """Whether a row that does not move has the same kernel, of which one overload may call another."""
    moved = {each.served.function.name for each in migrations}
    rest = (each for each in functions.find_overloads(migration.served.function.base) if each.name not in moved)
    return any((entry := each.entry_for(MPS_KEY)) and entry.kernel == migration.served.entry.kernel for each in rest)


def _describe_kernel(kernel: WrittenKernel) -> PlannedFunctor:
    types = tuple(dict.fromkeys(instance[0].torch for instance in kernel.instances))
    return PlannedFunctor(kernel.file, kernel.name, kernel.source, (FROM_RECORDING,), kernel.schedule, types)


def _mps_kernels(functions: NativeFunctions, base: str) -> set[str]:
    """Returns the kernels that the operator's `_native.h` declares for MPS."""
    lines = (entry for function in functions.find_overloads(base) for entry in function.dispatch)
    return {entry.kernel for entry in lines if MPS_KEY in entry.keys}


def _free_tests(
    draft: Draft, base: str, ported: set[str], complete: bool, failing: Collection[str]
) -> tuple[Draft, tuple[ListChange, ...]]:
    """Removes obsolete test-list entries and OpInfo marks of ported dtypes; none if a function stays on MPSGraph.

    Entries of tests that are `failing` still stay, and the marks of their dtypes.
    """
    calls = find_opinfos(draft.fork, base)
    complex_too = {call.key for call in calls if call.dtypes is None or dtypes.FLOAT2.torch in call.dtypes}
    decisions = decide_all(read_lists(draft.fork), {call.key for call in calls} | {base}, ported, complex_too, failing)
    if not complete:
        why = "other rows of the operator are not ported"
        return draft, tuple(ListChange(d.skip_list.file, d.skip_list.name, d.name, Change.KEPT, why) for d in decisions)
    freed = ported - {test.rpartition("_mps_")[2] for test in failing}
    decided_marks = [decide_mark(mark, freed) for call in calls for mark in read_marks(call)]
    draft = draft.apply((*edit_lists(decisions), *edit_marks(decided_marks)))
    changes = [ListChange(d.skip_list.file, d.skip_list.name, d.name, d.change, d.why) for d in decisions]
    return draft, tuple(changes)


def _describe_entry_change(functions: NativeFunctions, migration: Migration) -> EntryChange:
    keys = migration.target.keys if MPS_KEY in migration.target.keys else functions.add_mps_key(migration.target.keys)
    entry = migration.served.entry
    before, after = Served(entry.keys, entry.kernel), Served(keys, migration.target.kernel)
    return EntryChange(migration.served.function.name, before, after)


def _describe_kept_entry(served: ServedFunction) -> EntryChange:
    entry = Served(served.entry.keys, served.entry.kernel)
    return EntryChange(served.function.name, entry, entry)


def _list_registrations(kernels: Sequence[Kernel]) -> Iterator[PlannedRegistration]:
    for kernel in kernels:
        for line in kernel.registrations:
            for instance in line.instances:
                yield PlannedRegistration(kernel.name, str(line), instance.input, instance.output)


def _list_answered(migrations: Sequence[Migration]) -> tuple[str, ...]:
    """Returns the dtypes for which no implementation calls a stub, because it copies or fills instead."""
    called = {dtype for migration in migrations for call in migration.stubs for dtype in call.dtypes}
    return tuple(dtype.torch for dtype in dtypes.ALL if called and dtype not in called)


def _describe_blocked(blocked: Blocked) -> Unported:
    error, entry = blocked.error, blocked.served.function
    stays = "stays on MPSGraph" if entry.entry_for(MPS_KEY) else "stays without MPS"
    stays = "stays as it is" if blocked.served.error else stays
    return Unported(error.code, error.place or entry.place, f"{entry.name} {stays}: {error.what}")


def _find_left_behind(
    checkout: Checkout, functions: Sequence[NativeFunction], ported: Sequence[ServedFunction]
) -> Iterator[NativeFunction]:
    """The rows of the base name that stay on MPSGraph, or may, whichever overload was asked for."""
    migrated = {each.function.name for each in ported}
    for entry in functions:
        served = find_served(checkout, entry) if entry.name not in migrated else None
        if served and (served.builds_graph or served.error):
            yield entry


_ITERATOR_HEADER = "ATen/TensorIterator.h"
_OPERATOR = re.compile(r"(?<!\w)at::(\w+)\(")
_OTHER_LIBRARY = re.compile(r"\bauto& lib = |_metallib\.h>")
_NAMESPACE = re.compile(r"^namespace at::native \{\n", re.M)


def rewrite_functions(
    fork: Checkout, migrations: Sequence[Migration], kernels: Sequence[Kernel]
) -> Iterator[tuple[str, Rewrite]]:
    """Yields the functions that stay, each with its file and its new body."""
    by_name = {kernel.stub.name: kernel for kernel in kernels}
    for each in migrations:
        found = each.served.implementation
        if each.body is None or found is None or found.function is None:
            continue
        function = parse_source(found.file, fork.read(found.file)).find_again(found.function)
        assert function is not None
        kernel = by_name.get(each.body.call.stub.name) if each.body.call else None
        scope = _name_scope(fork, found.file, kernel) if kernel else ""
        launch = kernel.launch(f"{scope}::" if scope else "") if kernel else ""
        body = each.body.write(tuple(each.name for each in read_parameters(function)), launch)
        text = format_block(fork, found.file, f"{function.signature} {body}\n")
        yield found.file, Rewrite(function, text[text.index("{", len(function.params)) :].rstrip("\n"))


def define_what_bodies_use(
    fork: Checkout, migrations: Sequence[Migration], kernels: Sequence[Kernel]
) -> Iterator[Edit]:
    """Yields the definitions that bodies with a kernel of their own need: libraries and launchers at the start of the
    namespace, where bodies that are ported later see them too, helpers before the first function of each file."""
    by_name = {kernel.stub.name: kernel for kernel in kernels}
    needed: dict[str, tuple[Function, dict[str, None], dict[str, None]]] = {}
    for each in migrations:
        found = each.served.implementation
        if each.body is None or not each.body.loops or each.body.call is None or found is None or not found.function:
            continue
        kernel = by_name[each.body.call.stub.name]
        function = parse_source(found.file, fork.read(found.file)).find_again(found.function)
        assert function is not None
        first, launching, helpers = needed.setdefault(found.file, (function, {}, {}))
        needed[found.file] = (min(first, function, key=lambda one: one.start), launching, helpers)
        scope = _name_scope(fork, found.file, kernel)
        for text in (find_library(fork, kernel.host_file), kernel.launcher):
            inside = f"namespace {scope} {{\n{text.strip()}\n}} // namespace {scope}" if scope and text else text
            launching.setdefault(inside)
        helpers.update(dict.fromkeys(textwrap.dedent(text) for text in each.body.helpers))
    for file, (function, launching, helpers) in needed.items():
        text = fork.read(file)
        opened = _NAMESPACE.search(text, 0, function.leading)
        at = opened.end() if opened else function.leading
        if not sees_helpers(parse_source(file, text), at):
            launching = dict.fromkeys(map(qualify_library, launching))
        if added := _write_missing(fork, file, launching):
            after = "\n" if text.startswith("\n", at) else "\n\n"
            yield Edit(file, at, at, f"\n{added.rstrip()}{after}" if opened else added)
        yield Edit(file, function.leading, function.leading, _write_missing(fork, file, helpers))


def _write_missing(fork: Checkout, file: str, blocks: Collection[str]) -> str:
    text = fork.read(file)
    missing = (format_block(fork, file, block.strip() + "\n") for block in blocks if block and block not in text)
    return "".join(f"{block}\n" for block in missing)


def _name_scope(fork: Checkout, file: str, kernel: Kernel) -> str:
    """A namespace for the library of a kernel's own file, where the file that launches it has another; else "".

    LossOps.mm has one in `mps`, which its functions name without it.
    """
    library = find_library(fork, kernel.host_file)
    if not _OTHER_LIBRARY.search(fork.read(file).replace(library, "")):
        return ""
    return to_snake_case(PurePosixPath(kernel.host_file).stem) + "_metal"


def include_what_bodies_use(
    fork: Checkout, migrations: Sequence[Migration], kernels: Sequence[Kernel]
) -> Iterator[Edit]:
    """Yields the includes that the new bodies need."""
    launchers = frozenset(kernel.stub.name for kernel in kernels if kernel.launcher)
    needed: dict[str, dict[str, None]] = {}
    for each in migrations:
        if each.body and each.served.implementation:
            needed.setdefault(each.served.implementation.file, {}).update(dict.fromkeys(_list_headers(each, launchers)))
    for file, wanted in needed.items():
        yield from insert_includes(file, fork.read(file), tuple(sorted(wanted)))


def _list_headers(migration: Migration, launchers: Collection[str]) -> Iterator[str]:
    body = migration.body
    if body is None or body.call is None:
        return
    if body.call.stub.header:
        yield body.call.stub.header
    if body.call.builder:
        yield _ITERATOR_HEADER
    if body.call.stub.name in launchers:
        yield from LAUNCHER_HEADERS
    if body.loops:
        yield from (f"ATen/ops/{name}.h" for name in _OPERATOR.findall(body.text))
