"""The table of operators that were added, from what `porter add --json` prints."""

from __future__ import annotations

import json

from expecttest import assert_expected_inline

from added import read_results, write_table


def line(op: str, passed: int, failed: int) -> str:
    dtypes = {"float32": {"cpu_ulp": 0.51}, "float16": {"cpu_ulp": 0.5}, "int8": {"cpu_ulp": 0.0}}
    verdict = {"ok": not failed, "passed": passed, "failed": failed, "max_ulp": 1.26, "dtypes": dtypes}
    return json.dumps({"op": op, "functor": {"origin": "the CPU kernel (a | b)"}, "verdict": verdict})


def test_the_later_of_two_results_counts_and_lines_without_verdict_do_not() -> None:
    lines = [line("gcd", 40, 2), line("lcm", 41, 0), '{"op": "frexp", "verdict": null}', "note", line("gcd", 42, 0)]
    table = write_table(read_results(lines))
    assert_expected_inline(
        table[table.index("2 of") :],
        """\
2 of 2 passed.

| operator | verdict | tests passed | types | ULP | ATen's | functor |
| --- | --- | --- | --- | --- | --- | --- |
| `gcd` | PASS | 42 | 3 | 1.3 | 0.5 | the CPU kernel (a \\| b) |
| `lcm` | PASS | 41 | 3 | 1.3 | 0.5 | the CPU kernel (a \\| b) |
""",
    )


def test_a_verdict_that_failed_says_how_many_tests_failed() -> None:
    assert "| `gcd` | FAIL (2) | 40 |" in write_table(read_results([line("gcd", 40, 2)]))


def test_an_operator_of_integers_has_no_errors() -> None:
    dtypes = {"int32": {"cpu_ulp": None}}
    verdict = {"ok": True, "passed": 5, "failed": 0, "max_ulp": None, "dtypes": dtypes}
    assert "| `gcd` | PASS | 5 | 1 |  |  | none |" in write_table(
        read_results([json.dumps({"op": "gcd", "verdict": verdict})])
    )
