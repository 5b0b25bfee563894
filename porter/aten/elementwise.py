"""Whether a row is elementwise, by a rule that needs no list of operators.

A row is elementwise if it takes a tensor, and its meta function, or the function that serves the CPU, builds a
TensorIterator that writes one element for each element of its operands: by a builder such as `build_binary_op` or
`unary_op`, itself or through a helper that calls a stub with it, or by a TensorIteratorConfig with an output that
neither fixes the shape nor reduces, goes over slices, reads operands with strides of its own, or may overlap. A row
that only forwards to other operators is not: what it forwards to counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.aten.meta import find_meta_function, is_builder
from porter.aten.native_definitions import find_native_definitions
from porter.aten.native_functions import SHARING_KEYS, NativeFunction
from porter.aten.operator import Operator, is_redispatched
from porter.aten.stubs import find_stubs
from porter.core.checkout import Checkout
from porter.core.errors import PorterError

_BUILDS = re.compile(r"\bbuild_\w*_op\s*\(|\bTensorIterator(?:Base)?::(?!borrowing_nullary_op)\w*_op\s*\(")
_CONFIGURES = re.compile(r"\bTensorIteratorConfig\b")
_WRITES = re.compile(r"\.add_(?:owned_|borrowed_)?output\(|\bset_output_\w+\(")
_OTHER_SHAPES = re.compile(
    r"\bdeclare_static_shape\b|\bmake_reduction|\bresize_reduction|\breduce_op\b|\bunsafe_replace_operand\b"
    r"|\bas_strided\(|\benforce_linear_iteration\b"
)
_OVERLAPS = re.compile(r"\bset_check_mem_overlap\(false\)")


def is_elementwise(checkout: Checkout, operator: Operator, function: NativeFunction) -> bool:
    """Whether a row of an operator is elementwise, as far as its code can be read."""
    if not any(argument.is_tensor for argument in function.inputs):
        return False
    texts = tuple(_read_texts(checkout, operator, function))
    if any(map(_OTHER_SHAPES.search, texts)):
        return False
    return any(map(_builds, texts)) or _builds_in_helper(checkout, function)


def _builds(text: str) -> bool:
    return bool(_BUILDS.search(text) or (_CONFIGURES.search(text) and _WRITES.search(text)))


def _read_texts(checkout: Checkout, operator: Operator, function: NativeFunction) -> Iterator[str]:
    meta = find_meta_function(checkout, operator.functional_name(function))
    if meta:
        yield meta.text
    for kernel in _list_kernels(function):
        try:
            yield from (found.text for found in find_native_definitions(checkout, kernel))
        except PorterError:  # generated, or in a folder of its own: the meta function alone decides
            continue


def _builds_in_helper(checkout: Checkout, function: NativeFunction) -> bool:
    """Whether the function serving the CPU calls a stub on an iterator that a helper builds in a known way."""
    for kernel in _list_kernels(function):
        try:
            calls = find_stubs(checkout, kernel)
        except PorterError:
            continue
        if any(_builds_of_call(call.builder) and not is_redispatched(call) for call in calls):
            return True
    return False


def _builds_of_call(builder: str) -> bool:
    if is_builder(builder):
        return True
    return _builds(builder) and not (_OTHER_SHAPES.search(builder) or _OVERLAPS.search(builder))


def _list_kernels(function: NativeFunction) -> Iterator[str]:
    return (entry.kernel for entry in function.dispatch if any(key in entry.keys for key in SHARING_KEYS))
