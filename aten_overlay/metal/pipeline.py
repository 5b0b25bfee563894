"""The passes over a module, LLVM IR as text, in the order in which they run.

Clang lowers the C++ of kernels with no pass of its own, and the passes of `Stage.LOWERED` rewrite what it wrote. A
library that shares memory between lanes is then simplified by clang, and rewritten by those of `Stage.SIMPLIFIED`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from aten_overlay.metal.passes.completion import complete_module
from aten_overlay.metal.passes.inlining import inline_all, relax_inlining
from aten_overlay.metal.passes.lines import mark_lines
from aten_overlay.metal.passes.undefined import defined
from aten_overlay.metal.passes.updates import ask_for_lock, tell_of_updates
from aten_overlay.metal.passes.wide import offer_wide_functions
from aten_overlay.metal.sanitizer.copies import copy_values
from aten_overlay.metal.sanitizer.instrument import defer_to_sanitizer, watch_accesses
from aten_overlay.metal.sanitizer.marks import mark_undefined
from aten_overlay.metal.sanitizer.meetings import mark_meetings
from aten_overlay.metal.sanitizer.places import without_places
from aten_overlay.metal.sanitizer.private import watch_undefined
from aten_overlay.metal.sanitizer.values import place_values, watch_values
from aten_overlay.metal.sanitizer.widths import watch_widths

_UNROLLED = re.compile(r'"llvm\.loop\.unroll\.(enable|full)"')


class Stage(Enum):
    """What clang has done to a module."""

    LOWERED = "lowered, with no pass run"
    SIMPLIFIED = "simplified, with its loops as they were"


@dataclass(frozen=True)
class Kind:
    """What a library is compiled for, as far as passes depend on it.

    `sanitized` libraries have checks of the sanitizer, and those that are `watched` report their accesses to it,
    `measured` ones also integers that are too wide, `opened` ones results that Metal leaves open, `weighed` ones NaN
    and infinities.
    `traced` ones report their lines. `quick` ones are compiled soon rather than run fast, `fast` ones are none of
    these nor checked. Lanes of `shared` ones share memory or wait for each other.
    """

    sanitized: bool
    watched: bool
    measured: bool
    opened: bool
    weighed: bool
    traced: bool
    quick: bool
    fast: bool
    shared: bool

    def __post_init__(self) -> None:
        if self.watched and not self.sanitized:
            raise ValueError("only the sanitizer watches accesses")
        if (self.measured or self.opened or self.weighed) and not self.watched:
            raise ValueError("numbers are looked at where accesses are watched")
        if self.fast and (self.sanitized or self.quick):
            raise ValueError("a library that runs fast is neither sanitized nor compiled soon")


@dataclass(frozen=True)
class Pass:
    """One rewriting of a whole module, for libraries of some kinds."""

    name: str
    stage: Stage
    rewrite: Callable[[str], str]
    applies: Callable[[Kind], bool]


def _stop_unrolling(module: str) -> str:
    return _UNROLLED.sub('"llvm.loop.unroll.disable"', module)


PASSES = (
    # Before others mark and move what clang wrote.
    Pass("watch_widths", Stage.LOWERED, watch_widths, lambda kind: kind.measured),
    # The sanitizer needs the source's own accesses: later passes merge and move them.
    Pass("copy_values", Stage.LOWERED, copy_values, lambda kind: kind.watched),
    Pass("inline_all", Stage.LOWERED, inline_all, lambda kind: kind.watched),
    Pass("watch_values", Stage.LOWERED, watch_values, lambda kind: kind.weighed),
    Pass("mark_undefined", Stage.LOWERED, mark_undefined, lambda kind: kind.watched),
    Pass("defer_to_sanitizer", Stage.LOWERED, defer_to_sanitizer, lambda kind: kind.watched),
    Pass("mark_lines", Stage.LOWERED, mark_lines, lambda kind: kind.traced and not kind.sanitized),
    Pass("stop_unrolling", Stage.LOWERED, _stop_unrolling, lambda kind: kind.quick),
    Pass("relax_inlining", Stage.LOWERED, relax_inlining, lambda kind: kind.quick),
    # Before clang optimizes by what C++ leaves undefined.
    Pass("define_operations", Stage.LOWERED, defined, lambda kind: not kind.opened),
    Pass("mark_open_results", Stage.LOWERED, partial(defined, follows=True), lambda kind: kind.opened),
    Pass("offer_wide_functions", Stage.LOWERED, offer_wide_functions, lambda kind: True),
    Pass("tell_of_updates", Stage.LOWERED, tell_of_updates, lambda kind: True),
    # Of a shared library after its completion, which moves updates.
    Pass("ask_for_lock", Stage.LOWERED, ask_for_lock, lambda kind: kind.fast and not kind.shared),
    Pass("place_values", Stage.SIMPLIFIED, place_values, lambda kind: kind.opened or kind.weighed),
    Pass("mark_meetings", Stage.SIMPLIFIED, mark_meetings, lambda kind: kind.sanitized),
    Pass("watch_undefined", Stage.SIMPLIFIED, watch_undefined, lambda kind: kind.watched),
    Pass("watch_accesses", Stage.SIMPLIFIED, watch_accesses, lambda kind: kind.watched),
    Pass("drop_places", Stage.SIMPLIFIED, without_places, lambda kind: kind.sanitized and not kind.watched),
    Pass("complete", Stage.SIMPLIFIED, partial(complete_module, lockstep=False), lambda kind: not kind.fast),
    Pass("complete_in_lockstep", Stage.SIMPLIFIED, partial(complete_module, lockstep=True), lambda kind: kind.fast),
    Pass("ask_for_lock_of_shared", Stage.SIMPLIFIED, ask_for_lock, lambda kind: kind.fast),
)


def run_passes(module: str, stage: Stage, kind: Kind) -> str:
    """A module after the passes of a stage that a library of this kind needs."""
    for one_pass in PASSES:
        if one_pass.stage is stage and one_pass.applies(kind):
            module = one_pass.rewrite(module)
    return module
