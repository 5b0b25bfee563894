"""`porter report`, and the options of other commands that write and read files of results."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.report.results import PASS, OperatorResult, Results, read_json, write_json
from porter.workflows.results import no_results

EMPTY = no_results(Checkout(EMBEDDED_FORK, "test"))
FORK = ("--checkout", str(EMBEDDED_FORK))


def write(folder: Path, name: str, *operators: OperatorResult, shard: str = "") -> str:
    found = Results(EMPTY.version, EMPTY.made_by, EMPTY.fork, EMPTY.digest, shard, operators)
    (folder / name).write_text(write_json(found))
    return str(folder / name)


def test_a_report_merges_shares_and_says_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write(tmp_path, "1.json", OperatorResult("erf", "UnaryOps", PASS, rows=("erf.out",)), shard="1/2")
    wrong = OperatorResult("atan2", "BinaryOps", "FAIL", "PTR331", "2 tests fail")
    second = write(tmp_path, "2.json", wrong, shard="2/2")
    html, merged = tmp_path / "report.html", tmp_path / "all.json"
    assert main(["report", first, second, "--html", str(html), "--merged", str(merged), *FORK]) == 1
    said = capsys.readouterr().out
    assert "2 operators: 1 PASS, 1 FAIL" in said and "atan2: FAIL: PTR331 2 tests fail" in said
    assert [each.op for each in read_json(merged.read_text(), "all.json").operators] == ["atan2", "erf"]
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert main(["report", first, *FORK]) == 0


def test_a_page_that_cannot_be_written_leaves_the_one_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, "1.json", OperatorResult("erf", "UnaryOps", PASS))
    (tmp_path / "r.html").write_text("the old page")

    def fill_disk(_: Path, __: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", fill_disk)
    assert main(["report", file, "--html", str(tmp_path / "r.html"), *FORK]) == 2
    assert "PTR329 cannot write results: No space left on device" in capsys.readouterr().err
    assert (tmp_path / "r.html").read_text() == "the old page"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.json", "r.html"]


def test_a_report_says_that_files_are_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", write(tmp_path, "1.json", OperatorResult("erf", "UnaryOps", PASS)), *FORK])
    assert "these are the files' own words: `porter verify` proves" in capsys.readouterr().err


def test_a_report_as_json_has_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "1.json", OperatorResult("erf", "UnaryOps", PASS, rows=("erf.out",)))
    assert main(["report", file, "--json", *FORK]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["operators"] == {"erf": PASS} and found["counts"][PASS] == 1
    assert {"erf.out", "atan2.out"} <= {row["name"] for row in found["rows"]}


def test_the_shares_of_a_run_have_each_operator_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for share in (1, 2):
        file = str(tmp_path / f"{share}.json")
        main(["migrate", "--all", "--no-verify", "--json", "--shard", f"{share}/2", "--results", file, *FORK])
    planned = [json.loads(line)["op"] for line in capsys.readouterr().out.splitlines()]
    assert main(["report", *(str(tmp_path / f"{share}.json") for share in (1, 2)), "--json", *FORK]) == 1
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["operators"]) == sorted(planned) and len(planned) == len(set(planned)) > 10
    assert set(found["operators"].values()) == {"no verdict"}


def test_pull_requests_of_all_ports_are_those_of_families(capsys: pytest.CaptureFixture[str]) -> None:
    main(["migrate", "--all", "--no-verify", "--pull-request", *FORK])
    said = capsys.readouterr().out
    titles = [line for line in said.splitlines() if line.startswith("[MPS] ")]
    assert {title.split(" of ")[1] for title in titles} == {"UnaryOps to Metal", "BinaryOps to Metal"}
    lines = [
        int(line.rpartition("changes ")[2].split()[0]) for line in said.splitlines() if line.startswith("Authored")
    ]
    assert len(lines) == len(titles) > 1 and max(lines) <= 600
    assert said.count("\n## ") == 17


@pytest.mark.parametrize("option", [("--jobs", "2"), ("--shard", "1/2"), ("--results", "r.json")])
def test_verify_of_one_operator_refuses_the_options_of_all(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "exp", *option, *FORK]) == 2
    assert option[0] in capsys.readouterr().err
