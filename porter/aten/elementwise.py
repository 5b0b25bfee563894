"""Whether a row is elementwise, by a rule that needs no list of operators.

A row is elementwise if its meta function, or the function that it shares with the CPU, builds a TensorIterator over
operands of one shape: by a builder such as `build_binary_op` or `unary_op`, or by a TensorIteratorConfig that neither
fixes the shape nor reduces. A row that only forwards to other operators is not: what it forwards to counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.aten.meta import find_meta_function
from porter.aten.native_functions import SHARING_KEYS, NativeFunction
from porter.aten.operator import Operator
from porter.aten.stubs import find_native_definitions
from porter.core.checkout import Checkout
from porter.core.errors import PorterError

_BUILDS = re.compile(r"\bbuild_\w*_op\s*\(|\bTensorIterator(?:Base)?::\w*_op\s*\(|\bTensorIteratorConfig\b")
_OTHER_SHAPES = re.compile(r"\bdeclare_static_shape\b|\bmake_reduction|\bresize_reduction|\breduce_op\b")


def is_elementwise(checkout: Checkout, operator: Operator, function: NativeFunction) -> bool:
    """Whether a row of an operator is elementwise, as far as its code can be read."""
    texts = tuple(_read_texts(checkout, operator, function))
    return any(map(_BUILDS.search, texts)) and not any(map(_OTHER_SHAPES.search, texts))


def _read_texts(checkout: Checkout, operator: Operator, function: NativeFunction) -> Iterator[str]:
    meta = find_meta_function(checkout, operator.functional_name(function))
    if meta:
        yield meta.text
    for entry in function.dispatch:
        if any(key in entry.keys for key in SHARING_KEYS):
            try:
                yield from (found.text for found in find_native_definitions(checkout, entry.kernel))
            except PorterError:  # generated, or in a folder of its own: the meta function alone decides
                continue
