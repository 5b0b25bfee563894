"""The kernels and launches of what is found from the results of calls, each by the class of what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from porter.core.dtypes import DType
from porter.loops.concatenation import Concatenation
from porter.loops.coordinates import CoordinateMap, Way
from porter.loops.resampling import Resampling
from porter.loops.windows import Window
from porter.metal.native.concatenation_kernel import list_concatenated_types, write_concatenation_kernel
from porter.metal.native.concatenation_launch import write_concatenation_launch
from porter.metal.native.coordinate_kernel import MapKernel, list_types, write_map_kernel
from porter.metal.native.coordinate_launch import write_map_launch
from porter.metal.native.host_values import Names
from porter.metal.native.kernel import KernelStyle
from porter.metal.native.launch import Launch
from porter.metal.native.resampling_kernel import list_resampled_types, write_resampling_kernel
from porter.metal.native.resampling_launch import write_resampling_launch
from porter.metal.native.window_kernel import find_threads, list_pooled_types, write_window_kernel
from porter.metal.native.window_launch import write_window_launch

Found = CoordinateMap | Concatenation | Resampling | Window


def list_form_types(found: Found, read_atomic: Callable[[], Sequence[str]], refuses_complex: bool) -> list[DType]:
    """The element types of a kernel; `read_atomic` are those that kernels can add to atomically."""
    match found:
        case CoordinateMap():
            return list_types(found, read_atomic() if found.way is Way.ADD else (), refuses_complex)
        case Concatenation():
            return list_concatenated_types(refuses_complex)
        case Resampling():
            return list_resampled_types(found, refuses_complex)
        case Window():
            return list_pooled_types(found, read_atomic() if found.adds else ())


def write_form_kernel(found: Found, name: str, instances: Sequence[DType], style: KernelStyle) -> MapKernel:
    """A kernel for some element types."""
    match found:
        case CoordinateMap():
            return write_map_kernel(found, name, instances, style)
        case Concatenation():
            return write_concatenation_kernel(name, instances, style)
        case Resampling():
            return write_resampling_kernel(found, name, instances, style)
        case Window():
            return write_window_kernel(found, name, instances, style)


def write_form_launch(found: Found, kernel: MapKernel, names: Names, views: Mapping[str, str], body: str) -> Launch:
    """Launches a kernel; `views` are variables that have the elements of a tensor in the shape that is walked."""
    match found:
        case CoordinateMap():
            return write_map_launch(found, kernel, names, views, body)
        case Concatenation():
            return write_concatenation_launch(found, kernel, names, body)
        case Resampling():
            return write_resampling_launch(found, kernel, names, body)
        case Window():
            return write_window_launch(found, kernel, names, body)


def list_walked(found: Found) -> tuple[str, ...]:
    """Returns the tensors, besides the result, with one element for each thread."""
    match found:
        case CoordinateMap() if found.way is not Way.READ:
            return (found.index or found.source,)
        case Window() if found.adds:
            return (find_threads(found),)
    return ()
