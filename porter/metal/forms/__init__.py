"""What an overload computes, as values and as JSON: programs of loops, or a form, which its graph does not decide.

A form is a file here with its value and its launch, kernels in `kernels/` or in that file, and a function in
`porter/recording/forms/` that finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import get_args

from porter.core import codec
from porter.loops.host_values import Arguments
from porter.loops.program import Programs, RequiredSize, UnexplainedCall, register_programs
from porter.metal.forms.categorical import Categorical
from porter.metal.forms.concatenation import Concatenation
from porter.metal.forms.contraction import Attention, Contraction, Inverse, LinearGradients
from porter.metal.forms.convolution import Convolution, Fourier
from porter.metal.forms.form import Form
from porter.metal.forms.index_map import IndexMap
from porter.metal.forms.pooling import Pooling
from porter.metal.forms.recurrent import Recurrent, RecurrentGradients
from porter.metal.forms.resampling import Resampling
from porter.metal.forms.sort import Permutation, Sort
from porter.metal.forms.sums import Bincount
from porter.metal.forms.unique import Nonzero, Unique

# The union is what stored programs are decoded by.
AnyForm = (
    IndexMap
    | Bincount
    | Concatenation
    | Resampling
    | Pooling
    | Sort
    | Nonzero
    | Unique
    | Contraction
    | Convolution
    | LinearGradients
    | Fourier
    | Attention
    | Inverse
    | Categorical
    | Permutation
    | Recurrent
    | RecurrentGradients
)
FORMS: tuple[type[Form], ...] = get_args(AnyForm)


@dataclass(frozen=True)
class FormProgram:
    """The form that computes all recorded calls of an overload. Of calls that are `lost` there is one of each kind.

    Of `sizes`, the CPU requires in all calls what is listed.
    """

    name: str
    form: AnyForm
    calls: tuple[Arguments, ...] = ()
    lost: tuple[UnexplainedCall, ...] = ()
    sizes: tuple[RequiredSize, ...] = ()

    @property
    def named(self) -> frozenset[str]:
        """The arguments that the form computes results by, whatever they are."""
        values = [getattr(self.form, field.name) for field in fields(self.form)]
        listed = (name for value in values for name in (value if isinstance(value, tuple) else (value,)))
        return frozenset(name for name in listed if isinstance(name, str))

    def list_parts(self) -> Iterator[FormProgram]:
        """The program of each result, which is the first one there."""
        return (replace(self, form=each) for each in self.form.list_parts())


Computation = Programs | FormProgram
register_programs()


def encode_computations(computations: Sequence[Computation]) -> str:
    """One line of JSON."""
    return codec.encode(tuple(computations), tuple[Computation, ...])


def decode_computations(text: str | bytes) -> tuple[Computation, ...]:
    """What `encode_computations` wrote. Raises ValueError, KeyError or TypeError for other text."""
    computations: tuple[Computation, ...] = codec.decode(text, tuple[Computation, ...])
    return computations
