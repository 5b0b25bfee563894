"""The problems that machines answer, and the faults that are planted in their answers: read, not run."""

from __future__ import annotations

import yaml

from problem_faults import PROBLEMS, plant

FAULTS = yaml.safe_load((PROBLEMS / "faults.yaml").read_text())


def test_every_problem_has_an_answer_and_faults() -> None:
    problems, answers = (
        {str(path.relative_to(PROBLEMS / folder).with_suffix("")) for path in (PROBLEMS / folder).rglob("*.py")}
        for folder in ("set", "answers")
    )
    assert problems == answers == FAULTS.keys()
    assert sum(map(len, FAULTS.values())) >= 75


def test_a_fault_changes_the_metal_of_an_answer() -> None:
    for name, faults in FAULTS.items():
        text = (PROBLEMS / "answers" / f"{name}.py").read_text()
        planted = [plant(text, fault["old"], fault["new"]) for fault in faults]
        assert len({text, *planted}) == len(faults) + 1, name
        head = text.index('    """\n')
        assert all(other[:head] == text[:head] for other in planted)
