"""Which functions of a module have to be inlined, in LLVM's intermediate representation.

The compiler inlines what always has to be before it simplifies anything: a kernel then is large, and slow to compile.
Only where lanes wait a kernel's code has to be one function; the rest is better simplified first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from aten_overlay.metal.passes.ir import GLOBAL, functions
from aten_overlay.metal.passes.regions import BARRIER, BEGIN, WAIT

_GROUP = re.compile(r"^attributes #(\d+) = \{[^\n]*\balwaysinline\b[^\n]*\}$", re.M)
_KEPT_APART = re.compile(r"^(attributes #\d+ = \{(?![^\n]*\boptnone\b)[^\n]*)\bnoinline\b", re.M)
_USED = re.compile(r" #(\d+)(?= [^#\n]*\{$)")


def find_references(module: str, spans: Iterable[tuple[int, int, str]]) -> dict[str, set[str]]:
    """The globals that each function refers to."""
    return {name: set(GLOBAL.findall(module[start:end])) - {name} for start, end, name in spans}


def find_waiting(references: dict[str, set[str]]) -> set[str]:
    """The functions of the module in which a lane may wait."""
    found = {BARRIER, WAIT, BEGIN}
    while more := {name for name, names in references.items() if names & found} - found:
        found |= more
    return found - {BARRIER, WAIT, BEGIN}


def relax_inlining(module: str) -> str:
    """`module`, where only functions in which a lane may wait are always inlined, and others where that pays."""
    spans = list(functions(module))
    attributes = module[spans[-1][1] if spans else 0 :]
    groups = {found[1]: found[0] for found in _GROUP.finditer(attributes)}
    first = 1 + max((int(n) for n in re.findall(r"^attributes #(\d+) = ", attributes, re.M)), default=0)
    relaxed = {old: str(first + i) for i, old in enumerate(groups)}
    waiting = find_waiting(find_references(module, spans))
    pieces, at = [], 0
    for start, _, name in spans:
        end = module.index("\n", start)
        used = _USED.search(module, start, end)
        if used and used[1] in relaxed and name not in waiting:
            pieces += [module[at : used.start()], f" #{relaxed[used[1]]}"]
            at = used.end()
    lines = [
        text.replace(f"#{old} =", f"#{relaxed[old]} =", 1).replace("alwaysinline", "inlinehint")
        for old, text in groups.items()
    ]
    return "".join([*pieces, module[at:], "\n", *(f"{line}\n" for line in lines)])


def inline_all(module: str) -> str:
    """`module`, where functions that the source keeps apart are inlined, as what follows private variables needs."""
    return _KEPT_APART.sub(r"\1alwaysinline", module)
