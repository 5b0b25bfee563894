"""Lossless JSON for frozen dataclasses, used by the socket, the workers and the cache.

Values of a union of dataclasses include their class name; an element type is written as its Metal name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from cattrs import Converter
from cattrs.errors import StructureHandlerNotFoundError

from porter.core.dtypes import BY_METAL, DType

T = TypeVar("T")
S = TypeVar("S")
_CLASS = "is"
_PLAIN = (bool, int, float, str, NoneType)


def encode(value: object, kind: Any) -> str:
    """Returns one line of JSON for a value of type `kind`: a dataclass, a union of them, or a collection of these."""
    return json.dumps(_converter.unstructure(value, unstructure_as=kind))


def decode(text: str | bytes, kind: Any) -> Any:
    """Returns the value of type `kind` that `encode` wrote. Raises ValueError for any other text."""
    try:
        return _converter.structure(json.loads(text), kind)
    except ValueError:
        raise
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError, StructureHandlerNotFoundError) as error:
        raise ValueError(f"not what was written: {type(error).__name__}: {error}") from error


def store_as(kind: type[T], stored: Any, store: Callable[[T], S], load: Callable[[S], T]) -> None:
    """Makes values of a class be written as what `store` makes of them, of type `stored`, and read by `load`."""
    _converter.register_unstructure_hook(kind, lambda value: _converter.unstructure(store(value), stored))
    _converter.register_structure_hook(kind, lambda value, _: load(_converter.structure(value, stored)))


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


def _is_union_of_classes(kind: Any) -> bool:
    """Whether values are of several dataclasses, or None or text beside these."""
    classes = [each for each in get_args(kind) if each not in (NoneType, str)]
    return _is_union(kind) and all(map(is_dataclass, classes)) and (len(classes) > 1 or NoneType not in get_args(kind))


def _is_plain_union(kind: Any) -> bool:
    return _is_union(kind) and all(each in _PLAIN or get_origin(each) is tuple for each in get_args(kind))


@lru_cache(maxsize=32)
def _by_name(union: Any) -> Mapping[str, Any]:
    return {each.__name__: each for each in get_args(union) if each not in (NoneType, str)}


def _unstructure_with_class(value: Any) -> dict[str, Any] | str | None:
    if value is None or isinstance(value, str):
        return value
    return {_CLASS: type(value).__name__, **_converter.unstructure(value, type(value))}


def _structure_by_class(value: Mapping[str, Any] | str | None, union: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return _converter.structure(value, _by_name(union)[value[_CLASS]])


def _convert_lists(value: Any, _: Any) -> Any:
    """Returns a plain JSON value with its lists as tuples."""
    return tuple(_convert_lists(each, _) for each in value) if isinstance(value, list) else value


def _is_keyed_by_class(kind: Any) -> bool:
    """Whether a mapping has values as keys that JSON has none of: it is written as pairs."""
    return get_origin(kind) is Mapping and is_dataclass(get_args(kind)[0])


def _list_pairs(kind: Any) -> Any:
    return tuple[tuple[get_args(kind)], ...]  # type: ignore[misc]


def _make_converter() -> Converter:
    converter = Converter(detailed_validation=False)
    converter.register_unstructure_hook_func(_is_union_of_classes, _unstructure_with_class)
    converter.register_structure_hook_func(_is_union_of_classes, _structure_by_class)
    converter.register_unstructure_hook_func(_is_plain_union, lambda value: value)
    converter.register_structure_hook_func(_is_plain_union, _convert_lists)
    converter.register_unstructure_hook_factory(
        _is_keyed_by_class, lambda kind: lambda pairs: converter.unstructure(tuple(pairs.items()), _list_pairs(kind))
    )
    converter.register_structure_hook_func(
        _is_keyed_by_class, lambda pairs, kind: dict(converter.structure(pairs, _list_pairs(kind)))
    )
    converter.register_unstructure_hook(DType, lambda dtype: dtype.metal)
    converter.register_structure_hook(DType, lambda name, _: BY_METAL[name])
    converter.register_unstructure_hook(Path, str)
    converter.register_structure_hook(Path, lambda text, _: Path(text))
    return converter


_converter = _make_converter()
