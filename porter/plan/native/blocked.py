"""Ports the rows of an operator that no stub can serve, and leaves no code behind that is there twice or unused."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

from porter.aten.operator import Blocked, Operator
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.languages.identifiers import contains_identifier
from porter.languages.inlining import Parameter, read_parameters
from porter.languages.source import Source, parse_source
from porter.plan.draft import Draft
from porter.plan.native.kernel_names import check_names
from porter.plan.native.planner import port_rows
from porter.plan.native.port import NativePort, ReadPrograms
from porter.plan.native.sharing.bodies import share_bodies
from porter.plan.native.sharing.members import LAUNCHES, list_launching
from porter.plan.native.target import read_body
from porter.plan.removal import find_orphans


def port_blocked(
    draft: Draft, operator: Operator, blocked: Sequence[Blocked], programs: ReadPrograms, scaffold: bool = False
) -> NativePort:
    """Ports rows that no stub can serve by their recorded programs, and removes what is then unused.

    A helper becomes the port of the last rows that call it, unless ports of others have their bodies without it, or it
    would be passed a block for a graph. With `scaffold`, writes the frame of those that cannot be ported. Raises
    PTR490 as `check_names` does.
    """
    read = cache(programs)
    port = _port_own(draft, operator, blocked, read, scaffold)
    helped = any(_is_in_helper(draft.fork, port.draft.fork, file) for file in _list_files(port))
    if helped or _has_idle_block(draft.fork, port):
        with suppress(PorterError):
            apart = _port_own(draft, operator, blocked, read, scaffold, apart=True)
            is_whole = set(apart.ported) == set(port.ported)
            if is_whole and (_count_launches(apart) < _count_launches(port) or _has_idle_block(draft.fork, port)):
                return apart
    return port


def _port_own(
    draft: Draft,
    operator: Operator,
    blocked: Sequence[Blocked],
    programs: ReadPrograms,
    scaffold: bool,
    apart: bool = False,
) -> NativePort:
    port = port_rows(draft, operator, blocked, programs, scaffold, apart)
    if port.kernels:
        check_names(port.draft.fork, port.kernels)
    for file in _list_files(port):
        removed = tuple(find_orphans(port.draft.fork, file, draft.fork.read(file)))
        cleaned = port.draft.apply(each.edit for each in removed)
        shared = cleaned.apply(share_bodies(cleaned.fork, file, draft.fork.read(file)))
        port = replace(port, draft=shared, removed=(*port.removed, *removed))
    return port


def _list_files(port: NativePort) -> list[str]:
    return list(dict.fromkeys(row.implementation.file for row in port.ported if row.implementation))


def _is_in_helper(before: Checkout, after: Checkout, file: str) -> bool:
    """Whether a helper of a file launches kernels that did not, and other functions there did before."""
    known, launched = parse_source(file, before.read(file)), {each.name for each in list_launching(before, file)}
    helpers = (each.name for each in list_launching(after, file) if each.static)
    return bool(launched) and any(name in known.functions_by_name and name not in launched for name in helpers)


def _has_idle_block(before: Checkout, port: NativePort) -> bool:
    """Whether a helper has become native, and callers pass it a block that only builds its graph."""
    after = port.draft.fork
    return any(_list_idle_blocks(after, file) - _list_idle_blocks(before, file) for file in _list_files(port))


def _list_idle_blocks(fork: Checkout, file: str) -> set[tuple[str, str]]:
    """The blocks that static functions which launch kernels are passed and do not name, each with its function."""
    source = parse_source(file, fork.read(file))
    return {
        (each.name, parameter.name)
        for each in list_launching(fork, file)
        for parameter in (read_parameters(each) if each.static else ())
        if _is_block(source, parameter) and not contains_identifier(read_body(source, each), parameter.name)
    }


def _is_block(source: Source, parameter: Parameter) -> bool:
    return f"(^{parameter.type})" in "".join(source.text.split())


def _count_launches(port: NativePort) -> int:
    return sum(port.draft.fork.read(file).count(LAUNCHES) for file in _list_files(port))
