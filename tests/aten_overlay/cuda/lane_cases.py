"""Cases of functions across simdgroups and quadgroups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.aten_overlay.cuda.case import Array, Case

LANES = 32

# Functions across a simdgroup: the result of an active lane, given all values, the active lanes and its own number.
Across = Callable[[Array, "list[int]", int], Any]


def _reduce(f: Callable[[Any, Any], Any], width: int = LANES) -> Across:
    def result(v: Array, active: list[int], lane: int) -> Any:
        chosen = [v[k] for k in active if k // width == lane // width]
        total = chosen[0]
        for each in chosen[1:]:
            total = f(total, each)
        return total

    return result


def _prefix(f: Callable[[Any, Any], Any], start: int, inclusive: bool, width: int = LANES) -> Across:
    def result(v: Array, active: list[int], lane: int) -> Any:
        total = v.dtype.type(start)
        for k in active:
            if k // width == lane // width and (k < lane or (inclusive and k == lane)):
                total = f(total, v[k])
        return total

    return result


def _fetch(source: Callable[[int], int], own: bool) -> Across:
    """The value of another lane; without it the lane's own, or zero."""

    def result(v: Array, active: list[int], lane: int) -> Any:
        return v[source(lane)] if source(lane) in active else v[lane] if own else v.dtype.type(0)

    return result


def _fill(v: Array, active: list[int], lane: int, at: int) -> Any:
    if 0 <= at < LANES:
        return v[at] if at in active else v.dtype.type(0)
    return v[at % LANES if at % LANES in active else lane] + v.dtype.type(1)


def _add(a: Any, b: Any) -> Any:
    return a + b


def _multiply(a: Any, b: Any) -> Any:
    return a * b


def _bits(votes: list[bool]) -> np.uint32:
    return np.uint32(sum(1 << k for k, vote in enumerate(votes) if vote))


_SIGNS = ("product", "inclusive_product", "exclusive_product")
_NUMBERS: dict[str, Across] = {
    "sum": _reduce(_add),
    "product": _reduce(_multiply),
    "least": _reduce(min),
    "greatest": _reduce(max),
    "inclusive_sum": _prefix(_add, 0, True),
    "exclusive_sum": _prefix(_add, 0, False),
    "inclusive_product": _prefix(_multiply, 1, True),
    "exclusive_product": _prefix(_multiply, 1, False),
    "broadcast": _fetch(lambda lane: 7, False),
    "first": lambda v, active, lane: v[active[0]],
    "reversed": _fetch(lambda lane: 31 - lane, False),
    "exclusive_or": _fetch(lambda lane: lane ^ 5, False),
    "down": _fetch(lambda lane: lane + 3, True),
    "up": _fetch(lambda lane: lane - 3, True),
    "rotate_down": _fetch(lambda lane: (lane + 4) % LANES, False),
    "rotate_up": _fetch(lambda lane: (lane - 4) % LANES, False),
    "fill_down": lambda v, active, lane: _fill(v, active, lane, lane + 3),
    "fill_up": lambda v, active, lane: _fill(v, active, lane, lane - 3),
    "quad_total": _reduce(_add, 4),
    "quad_least": _reduce(min, 4),
    "quad_swap": _fetch(lambda lane: lane ^ 1, False),
    "quad_first": _fetch(lambda lane: lane & ~3, False),
    "quad_down": _fetch(lambda lane: lane + 1 if lane % 4 < 3 else -1, True),
    "quad_up": _fetch(lambda lane: lane - 1 if lane % 4 else -1, True),
    "quad_inclusive_sum": _prefix(_add, 0, True, 4),
    "quad_exclusive_sum": _prefix(_add, 0, False, 4),
}
_BITS: dict[str, Across] = {
    "every_bit": _reduce(lambda a, b: a & b),
    "any_bit": _reduce(lambda a, b: a | b),
    "odd_bits": _reduce(lambda a, b: a ^ b),
    "quad_any_bit": _reduce(lambda a, b: a | b, 4),
}
_VOTES: dict[str, Across] = {
    "ballot": lambda v, active, lane: _bits([k in active and bool(v[k] & 1) for k in range(LANES)]),
    "every": lambda v, active, lane: np.uint32(all(v[k] < 1000 for k in active)),
    "some": lambda v, active, lane: np.uint32(any(v[k] & 4 for k in active)),
    "elected": lambda v, active, lane: np.uint32(lane == active[0]),
    "active": lambda v, active, lane: _bits([k in active for k in range(LANES)]),
    "quad_votes": lambda v, active, lane: _bits(
        [(lane & ~3) + k in active and bool(v[(lane & ~3) + k] & 1) for k in range(4)]
    ),
}
_PART: tuple[Callable[[int], bool], ...] = (
    lambda lane: True,
    lambda lane: lane < 10,
    lambda lane: lane % 2 == 1,
    lambda lane: lane != 7,
)
TYPES = {
    "int": np.int32,
    "uint": np.uint32,
    "float": np.float32,
    "half": np.float16,
    "short": np.int16,
    "char": np.int8,
}
_THREADS = 50  # in two simdgroups, the second of which is not full


def _across(f: Across, x: Array, mode: int) -> Array:
    out = np.zeros_like(x)
    for start in range(0, len(x), LANES):
        v = x[start : start + LANES]
        active = [k for k in range(len(v)) if _PART[mode](k)]
        for lane in active:
            with np.errstate(over="ignore"):
                out[start + lane] = f(v, active, lane)
    return out


def lane_cases() -> Iterator[Case]:
    generator = np.random.default_rng(1)
    plan = [
        *product(_NUMBERS.items(), ("int", "float", "half", "short", "char")),
        *product(_BITS.items(), ("int", "short", "uint")),
        *product(_VOTES.items(), ("uint",)),
    ]
    for ((name, f), metal), mode in product(plan, range(len(_PART))):
        x = generator.integers(0 if metal == "uint" else -20, 21, _THREADS).astype(TYPES[metal])
        given = np.where(x < 0, -1, 1).astype(x.dtype) if name in _SIGNS else x
        buffers = (x, np.zeros_like(x), np.array([mode], np.uint32))
        expected = {1: _across(f, given, mode)}
        yield Case(
            f"{name} of {metal}, lanes {mode}", "lanes.metal", f"{name}_{metal}", buffers, expected, (_THREADS,), (64,)
        )
    yield _rounds(generator)
    x = generator.integers(-20, 21, 64).astype(np.float32)
    sums = np.repeat(x.reshape(2, LANES).sum(1), LANES)
    other = x.reshape(2, LANES)[:, np.arange(LANES) ^ 16].reshape(-1)
    expected = {1: np.stack([k * sums + other for k in (1, 2, 3, 4)], 1).astype(np.float32).reshape(-1)}
    yield Case("vectors", "lanes.metal", "vectors", (x, np.zeros(256, np.float32)), expected, (64,), (64,))


def _rounds(generator: np.random.Generator) -> Case:
    x = generator.integers(1, 40, 64).astype(np.uint32)
    total = 0
    for v in x[:LANES]:
        total += sum(int((x[:LANES] > k).sum()) for k in range(int(v)))
    sums = [sum(int((half > k).sum()) for v in half for k in range(int(v))) for half in x.reshape(2, LANES)]
    return Case(
        "rounds",
        "lanes.metal",
        "rounds",
        (x, np.zeros_like(x)),
        {1: np.repeat(np.array(sums, np.uint32), LANES)},
        (64,),
        (64,),
    )
