"""What all forms have: a place in the registry, a way to be found, stored and printed."""

from __future__ import annotations

import re
from typing import get_type_hints

import pytest

from porter.core.dtypes import FLOAT
from porter.loops.host_values import Arguments, TensorValue
from porter.loops.program import Programs, UnexplainedCall
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms import FORMS, AnyForm, FormProgram, decode_computations, encode_computations
from porter.metal.forms.categorical import Categorical
from porter.metal.forms.concatenation import Concatenation
from porter.metal.forms.contraction import Attention, Contraction, Inverse, LinearGradients, Operands
from porter.metal.forms.convolution import Convolution, Convolved, Fourier
from porter.metal.forms.index_map import AccessMode, IndexMap, IndexRule
from porter.metal.forms.pooling import Pooled, Pooling
from porter.metal.forms.recurrent import Recurrent, RecurrentGradients
from porter.metal.forms.resampling import Resampling, Sampling
from porter.metal.forms.sort import Kept, Permutation, Sort
from porter.metal.forms.sums import Bincount
from porter.metal.forms.unique import Nonzero, Unique
from porter.recording.forms import FINDERS

SAMPLES: tuple[AnyForm, ...] = (
    IndexMap(IndexRule.PADDED, AccessMode.READ, "padding", source="self", dtypes=(FLOAT,)),
    Bincount("self", "weights", (FLOAT,), (FLOAT,)),
    Concatenation("tensors", "dim", (FLOAT,)),
    Resampling(Sampling.LINEAR, "grad_output", ("scales",), "align_corners", True, (FLOAT,)),
    Pooling(Pooled.AVERAGE, "self", "kernel_size", "stride", "padding", dtypes=(FLOAT,)),
    Sort("self", Kept.FIRST, "dim", "largest", "k", dtypes=(FLOAT,)),
    Nonzero("self", (FLOAT,)),
    Unique("self", True, "return_inverse", "return_counts", dtypes=(FLOAT,)),
    Contraction(Operands.MATRICES, "mat1", "mat2", added="self", beta="beta", alpha="alpha", dtypes=(FLOAT,)),
    Convolution("self", "weight", "grad_output", (Convolved.INPUT, Convolved.WEIGHT), dtypes=(FLOAT,)),
    LinearGradients("self", "weight", "grad_output", dtypes=(FLOAT,)),
    Fourier("self", "dim", "normalization", size="last_dim_size", dtypes=(FLOAT,)),
    Attention("query", "key", "value", "attn_mask", "is_causal", "scale", dtypes=(FLOAT,)),
    Inverse("A", "check_errors", dtypes=(FLOAT,)),
    Categorical("self", "generator", dtypes=(FLOAT,)),
    Permutation("generator", dtypes=(FLOAT,)),
    Recurrent(dtypes=(FLOAT,)),
    RecurrentGradients(dtypes=(FLOAT,)),
)


def test_each_form_is_in_the_registry_and_is_found() -> None:
    assert tuple(map(type, SAMPLES)) == FORMS
    assert {form for find in FINDERS for form in FORMS if form.__name__ in str(get_type_hints(find)["return"])} == {
        *FORMS
    }
    assert len(FINDERS) == len(FORMS)


@pytest.mark.parametrize("form", SAMPLES)
def test_a_form_is_stored(form: AnyForm) -> None:
    call = Arguments({"self": TensorValue((2, 3), FLOAT)}, {"flag": True, "times": 2})
    program = FormProgram("op", form, (call,), (UnexplainedCall(call, "it raised"),))
    others = Programs("other", ())
    assert decode_computations(encode_computations([program, others])) == (program, others)


@pytest.mark.parametrize("form", SAMPLES)
def test_a_form_has_kernels_for_its_types_and_a_description(form: AnyForm) -> None:
    types = form.list_types(lambda: ("float",), True)
    kernels = form.write_kernels("tested", types, KernelStyle(True, False))
    assert FLOAT in types and all(instance[0] in types for instance in kernels.elements.instances)
    assert re.search(r"^REGISTER_TESTED\w*\(float", kernels.source, re.M)
    assert all(form.describe())


def test_the_arguments_that_a_form_names() -> None:
    assert FormProgram("op", SAMPLES[3]).named == {"grad_output", "scales", "align_corners"}
