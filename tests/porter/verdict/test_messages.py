"""What is said on the socket and in the cache arrives as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from porter.core import codec, dtypes
from porter.core.errors import Place, PorterError
from porter.verdict.behavior import Behavior, PathCount, SampleResult, Status
from porter.verdict.errors import Refusal, refusal_in
from porter.verdict.messages import (
    Line,
    PrepareRequest,
    RecordRequest,
    Request,
    SamplesAnswer,
    StepStarted,
    VerdictAnswer,
    VerifyRequest,
    answer_of_error,
    decode_line,
    decode_request,
    encode_line,
    encode_request,
    error_of_answer,
)
from porter.verdict.result import DTypeVerdict, Failure, ListEntry, Verdict, VerifyTarget

text = st.text(max_size=5)
texts = st.lists(text, max_size=2).map(tuple)
number = st.none() | st.floats(allow_nan=False)
entries = st.lists(st.builds(ListEntry, text, text, text, st.none() | texts), max_size=2).map(tuple)
targets = st.builds(
    VerifyTarget, text, texts, texts, texts, st.lists(st.tuples(text, text), max_size=2).map(tuple), entries, entries,
    st.booleans(),
)  # fmt: skip
paths = text.map(lambda name: Path("/", name.replace("\0", "")))
requests: st.SearchStrategy[Request] = (
    st.builds(VerifyRequest, paths, st.dictionaries(text, text), targets, st.none() | text, text, text)
    | st.builds(RecordRequest, paths, targets, text)
    | st.builds(PrepareRequest, paths, text)
)
samples = st.lists(
    st.builds(SampleResult, text, text, st.sampled_from(Status), text, st.booleans(), number), max_size=2
).map(tuple)
behaviors = st.builds(
    Behavior,
    st.lists(st.builds(PathCount, text, st.integers(), st.integers(), st.integers()), max_size=2).map(tuple),
    texts,
)
counts = st.integers(0, 9)
verdicts = st.builds(
    Verdict, text, text, text, counts, counts, counts, counts, number, st.floats(0, 9),
    st.lists(
        st.builds(DTypeVerdict, text, counts, counts, counts, counts, number, number, st.floats(0, 9)), max_size=2
    ).map(tuple),
    st.lists(st.builds(Failure, text, text, text, text, counts), max_size=2).map(tuple),
    texts,
    st.none() | behaviors,
)  # fmt: skip
places = st.none() | st.builds(Place, text, counts)
errors = st.builds(PorterError, text, text, places, text)
lines: st.SearchStrategy[Line] = (
    st.builds(StepStarted, text)
    | st.builds(VerdictAnswer, verdicts, samples)
    | st.builds(SamplesAnswer, samples)
    | errors.map(answer_of_error)
)


@given(requests)
def test_requests_arrive_as_they_were(request: Request) -> None:
    line = encode_request(request)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decode_request(line) == request


@given(lines)
def test_steps_and_answers_arrive_as_they_were(said: Line) -> None:
    line = encode_line(said)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decode_line(line) == said


@given(errors)
def test_an_error_arrives_with_its_code_place_and_hint(error: PorterError) -> None:
    line = encode_line(answer_of_error(error))
    assert str(error_of_answer(decode_line(line))) == str(error)  # type: ignore[arg-type]


def test_a_line_says_what_it_is() -> None:
    assert_expected_inline(
        encode_line(answer_of_error(PorterError("PTR166", "no member", Place("a.mm", 7)))).decode().strip(),
        """{"is": "ErrorAnswer", "code": "PTR166", "what": "no member", "place": {"file": "a.mm", "line": 7}, "hint": ""}""",
    )


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"is": "Path"}', '{"is": "StepStarted"}'])
def test_what_is_no_message_is_refused(line: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        decode_line(line)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_an_element_type_is_the_one_of_the_table(dtype: dtypes.DType) -> None:
    assert codec.decode(codec.encode(dtype, dtypes.DType), dtypes.DType) is dtype


@pytest.mark.parametrize(
    ("told", "refusal"),
    [
        ("PTR120 -[MPSGraph x] is not part of the stand-in", Refusal.NOT_MODELED),
        ("x: PTR139 y", Refusal.NOT_MODELED),
        ("PTR126 too large", Refusal.VALIDATION),
        ("PTR127 no value", Refusal.UNDEFINED),
        ("PTR122 else", Refusal.OTHER),
        ("not for int64", None),
    ],
)
def test_a_refusal_is_told_by_the_code_in_its_text(told: str, refusal: Refusal | None) -> None:
    assert refusal_in(told) is refusal
