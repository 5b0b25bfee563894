"""Running git in a checkout whose own configuration is not trusted: no program that it names is run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from porter.core.errors import PorterError

# Turns off what a repository's configuration can use to run a program or a hook, or to name another repository.
_SAFE = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=false", "core.sshCommand=false",
    "core.askPass=", "diff.external=", "status.submoduleSummary=false", "safe.bareRepository=explicit",
)  # fmt: skip
# Only `-C` says where git looks, even if porter runs in a hook.
_PLACES = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_EXTERNAL_DIFF",
)  # fmt: skip
# No locks, no prompts, and no fetching: no transport is allowed.
_SETTINGS = {
    "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none",
}  # fmt: skip
_FILTER = re.compile(r"filter\..+\.(?:clean|smudge|process)", re.S | re.I)


def run_git(root: Path, *arguments: str) -> str:
    """Runs git in the checkout at `root` and returns its output. Raises PTR063 if it fails or is missing."""
    safe = [part for setting in _SAFE for part in ("-c", setting)]
    command = ["git", "--literal-pathspecs", "--no-pager", "-C", str(root), *safe, *arguments]
    kept = {name: value for name, value in os.environ.items() if name not in _PLACES}
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=kept | _SETTINGS, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise PorterError(
            "PTR063", f"cannot run git: {error.strerror}", hint="Pass --force to skip this check."
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise PorterError("PTR063", f"git: {said[0] if said else 'failed'}", hint="Pass --force to skip this check.")
    return done.stdout.decode("utf-8", "surrogateescape")


def without_filters(root: Path) -> list[str]:
    """Returns options that turn off all configured clean and smudge filters.

    Raises PTR063 for a filter whose name cannot be given on the command line, and as `run_git` does.
    """
    names = run_git(root, "config", "--includes", "--name-only", "-z", "--list").split("\0")
    filters = dict.fromkeys(name for name in names if _FILTER.fullmatch(name))
    if odd := [name for name in filters if "=" in name]:
        told = f"git: the repository's configuration names a filter that cannot be turned off: {odd[0]}"
        raise PorterError("PTR063", told, hint="Pass --force to skip this check.")
    drivers = dict.fromkeys(f"{name.rpartition('.')[0]}.required" for name in filters)
    unset = [f"{name}=" for name in filters] + [f"{name}=false" for name in drivers]
    return [part for setting in unset for part in ("-c", setting)]
