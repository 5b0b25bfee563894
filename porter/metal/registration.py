"""Chooses the REGISTER lines for the dtype pairs that an operator needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from porter.core import dtypes
from porter.core.errors import Place, PorterError
from porter.core.layout import INDEXING
from porter.metal.host import refuse_parameter
from porter.metal.macros import BaseMacro, Instance, MacroBook, MacroFamily


@dataclass(frozen=True)
class Line:
    """A REGISTER line and the instances it expands to."""

    macro: str
    arguments: tuple[str, ...]
    instances: tuple[Instance, ...]

    def __str__(self) -> str:
        return f"{self.macro}({', '.join(self.arguments)});"


@dataclass(frozen=True)
class Need:
    """The instances that an operator needs from one kind of base macro."""

    family: MacroFamily
    instances: tuple[Instance, ...]
    opmath: bool = False
    castout: bool = False


def register_lines(name: str, needs: Iterable[Need], book: MacroBook, used: Collection[str] = ()) -> tuple[Line, ...]:
    """Returns the fewest lines that register exactly the needed instances.

    Macros in `used`, those already in the file, are preferred. Raises PTR090 if the fork has no macro of a family.
    """
    lines: list[Line] = []
    for need in needs:
        lines += _lines(name, need, book, used)
    return tuple(sorted(lines, key=_order))


def _lines(name: str, need: Need, book: MacroBook, used: Collection[str]) -> list[Line]:
    base = find_base_macro(book, need.family, need.opmath, need.castout)
    wanted = dict.fromkeys(need.instances, base)
    lines = []
    by_reach = sorted(book.conveniences, key=lambda c: (c.name not in used, -len(c.instances)))
    for each in by_reach:
        made = {instance: macro for macro, instance in each.instances}
        if len(made) > 1 and all(wanted.get(instance) == macro for instance, macro in made.items()):
            lines.append(Line(each.name, (name,), tuple(made)))
            for instance in made:
                del wanted[instance]
    lines += [Line(base.name, (name, *base.arguments(instance)), (instance,)) for instance in wanted]
    return lines


def find_base_macro(book: MacroBook, family: MacroFamily, opmath: bool, castout: bool = False) -> BaseMacro:
    """Returns the fork's macro of a family, with opmath if asked for and available. Raises PTR090 and PTR095.

    One with `castout` instantiates only the kernels that write outputs of any type.
    """
    plain = [base for base in book.bases.values() if base.family is family and base.castout is castout]
    exact = [base for base in plain if base.opmath is opmath] or plain
    usable = [base for base in exact if not base.unknown]
    hidden = [base for base in book.hidden if base.family is family and base.castout is castout and not base.unknown]
    if hidden and not usable:
        raise PorterError(
            "PTR090",
            f"the kernel file defines {hidden[0].name} otherwise than {INDEXING} does, and so hides it",
            hint="Take the kernel file of the release that the header is of, or rename the macro of the kernel file.",
        )
    if not exact:
        raise PorterError(
            "PTR090",
            f"this fork has no REGISTER macro for {family.value.replace('_', ' ')} kernels",
            hint=f"{INDEXING} predates this family; update it from upstream first.",
        )
    if not usable:
        base = min(exact, key=lambda base: len(base.name))
        raise refuse_parameter(base.name, base.unknown[0], Place(INDEXING))
    return min(usable, key=lambda base: len(base.name))


_TYPE_ORDER = {dtype.metal: at for at, dtype in enumerate(dtypes.ALL)}


def _order(line: Line) -> tuple[int, int]:
    first = min(_TYPE_ORDER.get(instance.input, len(_TYPE_ORDER)) for instance in line.instances)
    return first, -len(line.instances)
