"""The kernels and launches of what no loops tell: sorts, places of elements, distinct values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from porter.loops.distinct import DistinctValues
from porter.loops.orders import RowOrder
from porter.loops.places import NonzeroPlaces
from porter.loops.program import NotLooped
from porter.metal.native.distinct_kernel import write_distinct_kernels
from porter.metal.native.distinct_launch import name_contiguous, write_distinct_launch
from porter.metal.native.elements import Elements
from porter.metal.native.host_values import Names
from porter.metal.native.kernel import KernelStyle
from porter.metal.native.launch import Launch
from porter.metal.native.order_kernel import HELPERS, write_order_kernels
from porter.metal.native.order_launch import write_order_launch
from porter.metal.native.place_kernel import write_place_kernels
from porter.metal.native.place_launch import write_place_launch


@dataclass(frozen=True)
class OwnForm:
    """Kernels in one text, with the `helpers` that a file has once, and what launches them on names in a body.

    There are no results of tensors that are `counted` and have no elements.
    """

    name: str
    source: str
    elements: Elements
    launch: Callable[[Names, str], Launch]
    helpers: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()


def write_own_form(found: NotLooped, name: str, style: KernelStyle) -> OwnForm:
    match found:
        case RowOrder():
            order = write_order_kernels(found, name, style)
            return OwnForm(name, order.source, order.elements, partial(write_order_launch, found, order), (HELPERS,))
        case NonzeroPlaces():
            places = write_place_kernels(found, name, style)
            return OwnForm(name, places.source, places.elements, partial(write_place_launch, found, places))
        case DistinctValues():
            distinct = write_distinct_kernels(found, name, style)
            launch = partial(write_distinct_launch, found, distinct)
            return OwnForm(name, distinct.source, distinct.elements, launch, distinct.helpers, (found.source,))


def name_own(found: NotLooped, names: Names, body: str) -> Names:
    """The names that a launch uses."""
    return name_contiguous(found, names, body) if isinstance(found, DistinctValues) else names
