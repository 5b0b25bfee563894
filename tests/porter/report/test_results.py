"""Files of results are read as they were written, and merged only if they belong together."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.errors import PorterError
from porter.report.coverage import Coverage
from porter.report.page import page_html
from porter.report.results import (
    FAIL,
    NOT_PLANNED,
    OUTCOMES,
    PASS,
    VERSION,
    OperatorResult,
    Provenance,
    Results,
    UnportedRow,
    merge,
    read_json,
    write_json,
)
from porter.verdict.behavior import Behavior, PathCount
from porter.verdict.result import DTypeVerdict, Failure, Verdict

WORDS = st.text(max_size=12)
OPERATORS = st.builds(
    OperatorResult,
    op=WORDS,
    family=WORDS,
    outcome=st.sampled_from(OUTCOMES),
    code=WORDS,
    reason=WORDS,
    rows=st.lists(WORDS, max_size=3).map(tuple),
    unported=st.lists(st.builds(UnportedRow, WORDS, WORDS, WORDS), max_size=2).map(tuple),
    lines=st.integers(0, 1000),
)
MADE_BY = Provenance("1.0", "c" * 40, "2.13.0")
VERDICT = Verdict(
    "erf", "host", "default", 7, 1, 0, 96, 1.5, 3.2,
    dtypes=(DTypeVerdict("float32", 7, 0, 0, 90, 1.5, 0.8, 1.25), DTypeVerdict("int64", 0, 1, 0, 6)),
    failures=(Failure("test_output_match_erf_mps_int64", "not close\n1 != 2", "int64"),),
    old_path=Behavior((PathCount("float32", 10, 9, 10),), ("float32: values did not match and now do",)),
)  # fmt: skip


def results(*operators: OperatorResult, shard: str = "", digest: str = "d") -> Results:
    return Results(VERSION, MADE_BY, "fork", digest, shard, operators)


@given(st.lists(OPERATORS, max_size=4).map(tuple), WORDS)
def test_results_are_read_as_they_were_written(operators: tuple[OperatorResult, ...], shard: str) -> None:
    written = results(*operators, shard=shard)
    assert read_json(write_json(written), "r.json") == written


def test_a_verdict_is_read_as_it_was_written() -> None:
    written = results(OperatorResult("erf", "UnaryOps", FAIL, "PTR331", "one fails", verdict=VERDICT))
    assert read_json(write_json(written), "r.json") == written


def test_shares_are_merged_by_name() -> None:
    first = results(OperatorResult("erf", "UnaryOps", PASS), shard="1/2")
    second = results(OperatorResult("atan2", "BinaryOps", NOT_PLANNED, "PTR018", "no"), shard="2/2")
    assert merge([first, second]) == merge([second, first])
    assert [each.op for each in merge([first, second]).operators] == ["atan2", "erf"]


OTHERS = (
    results(shard="2/2", digest="e"),
    results(OperatorResult("erf", "U", PASS)),
    *(
        replace(results(shard="2/2"), made_by=replace(MADE_BY, **{name: "other"}))
        for name in ("porter", "commit", "torch")
    ),
)


@pytest.mark.parametrize("other", OTHERS)
def test_results_that_do_not_belong_together_are_refused(other: Results) -> None:
    with pytest.raises(PorterError, match="PTR328"):
        merge([results(OperatorResult("erf", "UnaryOps", PASS), shard="1/2"), other])


CRAFTED = json.loads(
    write_json(results(OperatorResult("erf", "UnaryOps", FAIL, "PTR331", "one fails", verdict=VERDICT)))
)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [10**400, -1, float("inf"), float("nan"), "\ud800", "\u202e", "x" * 3000, [], {}, [[1]], {"is": "x"}]
    ),
)


@given(st.data())
def test_results_that_somebody_made_up_are_shown_or_refused(data: st.DataObject) -> None:
    made = json.loads(json.dumps(CRAFTED))
    here: Any = made
    while isinstance(here, dict | list) and here:
        places = sorted(here) if isinstance(here, dict) else list(range(len(here)))
        key = data.draw(st.sampled_from(places))
        if not here[key] or not isinstance(here[key], dict | list) or data.draw(st.integers(0, 4)) == 0:
            here[key] = data.draw(ODD)
            break
        here = here[key]
    try:
        found = read_json(json.dumps(made), "r.json")
    except PorterError as error:
        assert error.code == "PTR327"
        return
    merge([found])
    write_json(found)
    page = page_html(found, Coverage(found.fork, found.digest, found.made_by, ()))
    page.encode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"version": 1}', "null", write_json(replace(results(), version=1)), "[" * 200_000,
        '{"version": 1e999}', write_json(results(OperatorResult("erf", "U", FAIL))).replace(FAIL, "FINE"),
        write_json(results()).replace("[]", '[{"op": "x", "family": "f", "outcome": "PASS", "verdict": 5}]'),
        json.dumps(CRAFTED).replace('"seconds": 3.2', f'"seconds": {10**400}'),
    ],
)  # fmt: skip
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(PorterError, match=r"r\.json: PTR327"):
        read_json(text, "r.json")
