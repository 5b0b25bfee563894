"""Recordings survive being stored, every value of every kind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from porter.aten.branches import Condition
from porter.core import codec, dtypes
from porter.mpsgraph import graph
from porter.mpsgraph.graph import (
    Call,
    CallSummary,
    Case,
    Cast,
    Constant,
    Expr,
    Graph,
    Input,
    Literal,
    NotRecorded,
    Recording,
    Scalar,
    UnknownValue,
)

names = st.text("abcdef_.()[]", min_size=1, max_size=8)
types = st.sampled_from(dtypes.ALL)
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values: st.SearchStrategy[graph.Value] = st.recursive(plain, lambda inner: st.lists(inner, max_size=3).map(tuple))
leaves: st.SearchStrategy[Expr] = (
    st.builds(Input, names, types)
    | st.builds(Scalar, names, types)
    | st.builds(Constant, st.booleans() | st.integers() | st.floats(allow_nan=False), types)
    | st.builds(Literal, values, types)
    | st.builds(UnknownValue, st.lists(values, max_size=3).map(tuple), types)
)
expressions: st.SearchStrategy[Expr] = st.recursive(
    leaves,
    lambda inner: st.builds(Cast, inner, types) | st.builds(Call, names, st.lists(inner, max_size=3).map(tuple), types),
    max_leaves=8,
)
cases = st.builds(Case, types, st.lists(st.builds(Condition, names, st.booleans()), max_size=2).map(tuple), expressions)
recordings = st.builds(
    Recording,
    names,
    st.builds(Graph, st.tuples(names), st.tuples(names), st.lists(cases, max_size=3).map(tuple)),
    st.lists(
        st.builds(CallSummary, types, st.dictionaries(names, values, max_size=3), st.integers(0, 3)), max_size=2
    ).map(tuple),
    st.lists(st.builds(NotRecorded, types, names, names), max_size=2).map(tuple),
    st.tuples(names),
)


@given(recordings)
def test_round_trip(recording: Recording) -> None:
    assert codec.decode(codec.encode(recording, Recording), Recording) == recording
