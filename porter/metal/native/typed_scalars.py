"""Scalars that kernels take in the type of the elements: as floats, large integers would not be exact.

Source: ATen/native/mps/OperationUtils.h (`getMPSScalar`), ATen/AccumulateType.h (`toAccumulateType`, `MPS_ACC_TYPE`).
"""

from __future__ import annotations

from dataclasses import dataclass

from porter.core.dtypes import DType
from porter.languages.identifiers import contains_identifier
from porter.loops.expressions import Op, walk
from porter.loops.fusion import LoopNest
from porter.loops.host_values import Named, Scalar
from porter.metal.loop_spelling import copies
from porter.metal.native.elements import KEY, Elements
from porter.metal.native.host_values import Names

ACCUMULATE_TYPE = "ATen/AccumulateType.h"


@dataclass(frozen=True)
class TypedScalars:
    """The numbers of a kernel that have the type of its elements; if `is_wide`, that in which these accumulate."""

    numbers: frozenset[Named]
    is_wide: bool

    @property
    def type(self) -> str:
        return f"acc_t<{KEY}>" if self.is_wide else KEY

    def spell_value(self, elements: Elements, dtype: DType) -> str:
        """The type that values are computed in: that of the scalars, where it follows from the elements' too."""
        spelled = elements.value(dtype)
        return self.type if self.is_wide and contains_identifier(spelled, KEY) else spelled


NO_SCALARS = TypedScalars(frozenset(), False)


def find_typed(nest: LoopNest, elements: Elements) -> TypedScalars:
    """The scalars that are elements, or are computed with as elements are; none where all types are floating-point.

    Scalars that are only stored have the type of elements, others that in which they accumulate. Reductions have types
    of their own.
    """
    is_copy = all(map(copies, nest.stores))
    found = [each for store in nest.stores for each in walk(store.place, store.value)]
    if any(each.op is Op.REDUCE for each in found):
        return NO_SCALARS
    alike = {each.attribute for each in found if each.op is Op.NUMBER and each.dtype == elements.key.opmath}
    others = {each.attribute for each in found if each.op is not Op.NUMBER or each.dtype != elements.key.opmath}
    is_right = is_copy or not elements.has_complex
    named = frozenset(each for each in alike - others if isinstance(each, Named) and _is_given(each))
    return TypedScalars(named if is_right and not elements.all_floating else frozenset(), not is_copy)


def _is_given(number: Named) -> bool:
    """Whether a number is a scalar argument that has no default."""
    return isinstance(number.value, Scalar) and number.value.default is None


def write_typed(number: Named, tensor: str, is_wide: bool, names: Names) -> str:
    """A scalar argument in the type of a tensor's elements. Raises PTR371."""
    assert isinstance(number.value, Scalar)
    variable, type_ = names.variable(number.value.name), f"{tensor}.scalar_type()"
    given = f"{variable}.get()" if variable in names.references else variable
    if variable not in names.references and names.types.get(number.value.name, "").endswith("?"):
        given = f"{variable}.value()"
    return f"getMPSScalar({given}, {f'toAccumulateType({type_}, kMPS)' if is_wide else type_})"
