"""The steps of the reusable workflow, run here on a fork that a change has broken or has not.

    python tools/workflow.py PORTER [--index URL] [--no-verify] [--cache DIR] [--fork DIR] [--patch FILE]

PORTER is what pip installs porter from: `git+https://...`, or `file:///...` of a wheel. Runs each step of
`.github/workflows/review.yml` that is a script, in its order, in an empty folder with a fresh environment of Python and
no variable of this one's but those of pip: on the fork with the patch as its last commit, then once more, as after a
second push. `gh` is a stand-in that keeps comments in files. Prints what each step prints and how long it takes, and at
the end the comments. Without a patch, the fork is the embedded one, and the change makes a kernel wrong.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from shared.arguments import parser

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "review.yml"
FORK = ROOT / "aten_overlay" / "fork"
NUMBER, REPOSITORY = "7", "somebody/fork"
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_VERIFY = "inputs.verify && ' ' || '--no-verify'"
# A comment is a file; `gh api` lists them, posts one, or writes over one.
GH = r"""#!/bin/bash
case "$*" in
  *"--method POST"*) file="comments/$(($(ls comments | wc -l) + 1))"; echo posted >> gh.log ;;
  *"--method PATCH"*) file=$(grep -o 'comments/[0-9]*' <<< "$*"); echo patched >> gh.log ;;
  *) grep -l '^<!-- porter review -->' comments/* 2> /dev/null | head -n 1 | cut -d/ -f2; exit 0 ;;
esac
cp review.md "$file"
"""


@dataclass(frozen=True)
class Ran:
    """What a step ended with, what it printed, and how long it took."""

    name: str
    code: int
    printed: str
    seconds: float


def run_steps(workspace: Path, path: str, values: Mapping[str, str], cache: str = "") -> list[Ran]:
    """Runs the scripts of the workflow in a folder with `fork`, up to the first that fails, as GitHub does.

    `path` is the PATH of the steps, `values` what its expressions mean.
    """
    workflow: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text())
    (job,) = workflow["jobs"].values()
    (workspace / "comments").mkdir(exist_ok=True)
    outputs, summary = workspace / "outputs", workspace / "summary.md"
    fixed = {"PATH": path, "HOME": str(workspace), "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}
    fixed |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}  # where packages are
    ran = list[Ran]()
    for step in job["steps"]:
        if "run" not in step:
            continue
        known_values = dict(values)
        if outputs.exists():
            pairs = (line.partition("=") for line in outputs.read_text().splitlines())
            known_values |= {f"steps.review.outputs.{name}": value for name, _, value in pairs}
        texts = {**job["env"], **step.get("env", {})}
        environment = {name: _fill(str(text), known_values) for name, text in texts.items()} | fixed
        environment |= {"PORTER_CACHE": cache} if cache else {}
        start = time.monotonic()
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        ran.append(Ran(step["name"], done.returncode, done.stdout + done.stderr, time.monotonic() - start))
        if done.returncode:
            break
    return ran


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda match: values[match[1]], text)


def make_fork(workspace: Path, fork: Path, patch: str) -> str:
    """A repository of the fork with a change as its last commit. Returns the id of the commit before."""
    root = shutil.copytree(fork, workspace / "fork", ignore=shutil.ignore_patterns(".git"))

    def git(*words: str, text: str | None = None) -> str:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com", *words]
        return subprocess.run(command, cwd=root, input=text, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "before")
    base = git("rev-parse", "HEAD")
    if patch:
        git("apply", "-", text=patch)
    else:
        break_kernel(root)
    git("commit", "-q", "-a", "-m", "a change")
    return base


def break_kernel(root: Path) -> None:
    """Makes a functor of the fork compute something else, with a function that is NaN for large numbers."""
    path = root / "aten/src/ATen/native/mps/kernels/UnaryKernel.metal"
    text, right = path.read_text(), "precise::exp(static_cast<float>(x))"
    assert right in text
    path.write_text(text.replace(right, "tanh(static_cast<float>(x))", 1))


def list_values(porter: str, index: str, verify: bool, workspace: Path, base: str) -> dict[str, str]:
    """What the workflow's expressions mean here."""
    return {
        "github.workspace": str(workspace), "github.event.pull_request.base.sha": base, "inputs.porter": porter,
        "inputs.torch": "2.13.0", "inputs.index": index, "github.token": "none", "github.repository": REPOSITORY,
        "github.event.pull_request.number": NUMBER, _VERIFY: " " if verify else "--no-verify",
    }  # fmt: skip


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("porter", help="what pip installs porter from")
    arguments.add_argument("--index", default="https://download.pytorch.org/whl/cpu", help="where torch comes from")
    arguments.add_argument("--no-verify", action="store_true", help="run no verdicts")
    arguments.add_argument("--cache", default="", help="what an earlier run left in porter's cache")
    arguments.add_argument("--fork", type=Path, default=FORK, help="the fork before the change")
    arguments.add_argument("--patch", type=Path, help="the change, as git applies it")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        workspace = Path(name)
        base = make_fork(workspace, options.fork, options.patch.read_text() if options.patch else "")
        subprocess.run([sys.executable, "-m", "venv", workspace / "environment"], check=True)
        write_gh(workspace / "environment" / "bin")
        path = f"{workspace}/environment/bin:/usr/local/bin:/usr/bin:/bin"
        values = list_values(options.porter, options.index, not options.no_verify, workspace, base)
        for _ in range(2):
            for step in run_steps(workspace, path, values, options.cache):
                print(f"== {step.name}: {step.code}, {step.seconds:.0f} s\n{step.printed}", flush=True)
        comments = {path.name: path.read_text() for path in sorted((workspace / "comments").iterdir())}
        print((workspace / "gh.log").read_text() if comments else "no comment")
        print(json.dumps(comments, indent=1))


def write_gh(folder: Path) -> None:
    """Puts the stand-in of `gh` into a folder of the path."""
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)


if __name__ == "__main__":
    main()
