"""Finds the forms of `porter/metal/forms/`: one that computes all recorded calls of an overload."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from porter.metal.forms import AnyForm
from porter.recording.forms.algebra import (
    find_attention,
    find_contraction,
    find_convolution,
    find_fourier,
    find_inverse,
    find_linear_gradients,
    find_recurrent,
    find_recurrent_gradients,
)
from porter.recording.forms.index_map import find_bincount, find_index_map
from porter.recording.forms.order import (
    find_categorical,
    find_concatenation,
    find_nonzero,
    find_permutation,
    find_sort,
    find_unique,
)
from porter.recording.forms.windows import find_pooling, find_resampling
from porter.recording.runs import RecordedRun

# In the order in which they are tried: one for each of FORMS.
FINDERS: tuple[Callable[[Sequence[RecordedRun]], AnyForm | None], ...] = (
    find_index_map,
    find_bincount,
    find_concatenation,
    find_resampling,
    find_pooling,
    find_sort,
    find_nonzero,
    find_unique,
    find_contraction,
    find_convolution,
    find_linear_gradients,
    find_fourier,
    find_attention,
    find_inverse,
    find_categorical,
    find_permutation,
    find_recurrent,
    find_recurrent_gradients,
)


def find_form(runs: Sequence[RecordedRun]) -> AnyForm | None:
    """The first form that computes all calls; None if none does."""
    return next((form for find in FINDERS if (form := find(runs))), None)
