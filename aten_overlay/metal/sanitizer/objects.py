"""What the addresses in a function are those of, as its types tell, in LLVM's intermediate representation of clang."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aten_overlay.metal.passes.ir import LOCAL, NotUnderstood, first_type
from aten_overlay.metal.sanitizer.layouts import Layouts, split_types

_ALLOCATED = re.compile(rf"^  ({LOCAL.pattern}) = alloca (.*), align \d+", re.M)
_STEP = re.compile(rf"^  ({LOCAL.pattern}) = getelementptr (?:inbounds |nuw |nusw )*(.*)$", re.M)
_PASSED = re.compile(rf"(?:sret|byval)\(({LOCAL.pattern}|\{{.*?\}})\)[^,]*? ({LOCAL.pattern})(?=[,)])")


@dataclass(frozen=True)
class Object:
    """Byte `offset` of something of a type."""

    kind: str
    offset: int = 0


@dataclass(frozen=True)
class Objects:
    """The variables of a function, and the steps from one address to another, by name."""

    variables: dict[str, Object]
    steps: dict[str, str]
    layouts: Layouts

    @classmethod
    def read(cls, function: str, layouts: Layouts) -> Objects:
        head = function[: function.index("\n")]
        passed = {name: Object(kind) for kind, name in _PASSED.findall(head)}
        own = {name: Object(kind) for name, kind in _ALLOCATED.findall(function)}
        return cls(passed | own, dict(_STEP.findall(function)), layouts)

    def find(self, name: str) -> Object | None:
        """What an address is that of; None where nothing tells. Raises NotUnderstood."""
        if name not in self.steps:
            return self.variables.get(name)
        kind = first_type(self.steps[name])
        indices = self.steps[name][len(kind) :].split(", !")[0].split(", ")[3:]
        found = Object(kind)
        for index in indices:
            members = self.layouts.members(kind)
            if members:
                at, kind = members[int(index.split(" ")[1])]
                found = Object(found.kind, at) if index is indices[-1] else Object(kind)
            else:
                kind = _element(self.layouts.types.get(kind, kind))
                found = Object(kind)
        return found


def _element(kind: str) -> str:
    """Raises NotUnderstood for a type without elements."""
    found = re.match(r"^\[\d+ x (.*)\]$", kind)
    if not found:
        raise NotUnderstood(kind)
    [element] = split_types(found[1])
    return element
