"""What an overload computes, as values and as JSON: programs of loops, one for each case of its calls, or a form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from porter.core import codec
from porter.loops.host_values import Arguments
from porter.loops.program import Programs, UnexplainedCall
from porter.loops.storage import StoredPrograms, load_programs, store_programs
from porter.metal.forms import AnyForm


@dataclass(frozen=True)
class FormProgram:
    """The form that computes all recorded calls of an overload. Of calls that are `lost` there is one of each kind."""

    name: str
    form: AnyForm
    calls: tuple[Arguments, ...] = ()
    lost: tuple[UnexplainedCall, ...] = ()

    @property
    def named(self) -> frozenset[str]:
        """The arguments that the form computes results by, whatever they are."""
        values = [getattr(self.form, field.name) for field in fields(self.form)]
        listed = (name for value in values for name in (value if isinstance(value, tuple) else (value,)))
        return frozenset(name for name in listed if isinstance(name, str))


Computation = Programs | FormProgram
_Stored = StoredPrograms | FormProgram


def encode_computations(computations: Sequence[Computation]) -> str:
    """One line of JSON."""
    stored = (store_programs(each) if isinstance(each, Programs) else each for each in computations)
    return codec.encode(tuple(stored), tuple[_Stored, ...])


def decode_computations(text: str | bytes) -> tuple[Computation, ...]:
    """What `encode_computations` wrote. Raises ValueError, KeyError or TypeError for other text."""
    stored: tuple[_Stored, ...] = codec.decode(text, tuple[_Stored, ...])
    return tuple(load_programs(each) if isinstance(each, StoredPrograms) else each for each in stored)
