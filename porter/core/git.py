"""Reading commits of a checkout whose repository is not trusted.

git itself decodes refs and objects, but it never sees the repository: it runs in an empty one of porter's own that
borrows the references and the object store. So nothing in the repository's configuration, attributes, excludes, hooks
or index reaches it, whatever a later git invents to put there. What is compared is the bytes of a file with a blob.

`make_commit` alone runs git in the repository itself, with its hooks off: only where a person asks for commits.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from porter.core.errors import Place, PorterError

SECONDS = 30
"""How long one call of git may take: a named pipe in the place of a reference makes it wait for ever."""

_LARGEST = 1 << 20
_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1", "GIT_ALLOW_PROTOCOL": "none", "LC_ALL": "C",
}  # fmt: skip
_LINK = "120000"  # the mode of a symbolic link
_BORROWED = ("refs", "packed-refs", "shallow")
_HASHES = {40: hashlib.sha1, 64: hashlib.sha256}
_SHA256 = re.compile(rb"^[ \t]*objectformat[ \t]*=[ \t]*\"?sha256\b", re.M | re.I)


@dataclass(frozen=True)
class _Repository:
    """Where the parts of a repository are: the top of the work tree, its HEAD, and what work trees share."""

    top: Path
    folder: Path
    shared: Path


@dataclass(frozen=True)
class _Reader:
    """Runs git with the folder of an empty repository that borrows another one's references and objects."""

    folder: Path
    objects: Path

    def run(self, *arguments: str, silent: int = 0) -> bytes:
        """Returns the output of git: nothing if it exits with the status `silent` and says nothing.

        Raises PTR063 if it fails, is missing, or takes longer than `SECONDS`.
        """
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _SETTINGS
        environment |= {"GIT_DIR": str(self.folder), "GIT_OBJECT_DIRECTORY": str(self.objects)}
        environment |= {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}  # for a git before 2.32
        command = ["git", "--no-pager", "--literal-pathspecs", *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, check=False, stdin=subprocess.DEVNULL, cwd=self.folder,
                env=environment, timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise _failed(f"git gave no answer within {SECONDS} seconds") from error
        except OSError as error:
            raise _failed(f"cannot run git: {error.strerror}") from error
        message = done.stderr.decode(errors="replace").strip().splitlines()
        if done.returncode and (done.returncode != silent or message):
            raise _failed(f"git: {message[0] if message else 'failed'}")
        return done.stdout if not done.returncode else b""

    def commit(self, revision: str) -> str | None:
        """Returns the id of a commit, or None if no commit has this name."""
        if revision.startswith("-") or "\0" in revision:
            return None
        answer = self.run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", silent=1)
        return answer.decode().strip() or None

    def entries(self, commit: str, paths: list[str]) -> dict[str, tuple[str, str]]:
        """Returns the kind ("blob", "tree", "commit") and id of each of the paths that the commit has."""
        answer = self.run("ls-tree", "-z", "--full-tree", commit, "--", *paths)
        lines = (line.partition(b"\t") for line in answer.split(b"\0") if line)
        described = {os.fsdecode(path): fields.decode().split() for fields, _, path in lines}
        return {path: (kind, name) for path, (_, kind, name) in described.items()}


def uncommitted(root: Path, contents: Mapping[str, bytes | None]) -> list[str]:
    """Returns the files whose contents (None: there is none) the last commit does not have.

    Only line ends may differ. A file that no commit has counts, unless the checkout itself is not in the commit, as one
    that was unpacked inside another repository. Without a repository nothing counts. Raises PTR063 if git fails.
    """
    repository = _find(root)
    if repository is None or not contents:
        return []
    with _reader(repository) as reader:
        prefix, head = _in_work_tree(repository, root, ""), reader.commit("HEAD")
        if prefix != "." and (head is None or prefix not in reader.entries(head, [prefix])):
            return []
        paths = {file: _in_work_tree(repository, root, file) for file in contents}
        entries = reader.entries(head, sorted(set(paths.values()))) if head else {}
    return [file for file, data in contents.items() if not _is_blob(data, entries.get(paths[file]))]


def read_differing(
    root: Path, revision: str, places: Sequence[str], contents: Mapping[str, bytes]
) -> dict[str, bytes | None]:
    """Returns what a commit has in place of the files of the checkout, where that differs (None: no file).

    `contents` are those of the files at or below `places` now. Only line ends may differ.

    `revision` is what `git rev-parse` takes, without logs of references (`@{1}`). Raises PTR063 if the checkout is in
    no repository, the revision names no commit, or git fails.
    """
    repository = _find(root)
    if repository is None:
        raise PorterError("PTR063", "the checkout is in no git repository", hint="Name a folder instead.")
    with _reader(repository) as reader:
        commit = reader.commit(revision)
        if commit is None:
            raise PorterError(
                "PTR063", f"git knows no commit {revision!r}", hint="Name one that `git log` of the checkout shows."
            )
        prefix = "" if (inside := _in_work_tree(repository, root, "")) == "." else f"{inside}/"
        listed = reader.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *(f"{prefix}{each}" for each in places))
        fields = (line.partition(b"\t")[::2] for line in listed.split(b"\0") if line)
        files = {os.fsdecode(path).removeprefix(prefix): about.decode().split() for about, path in fields}
        blobs = {path: name for path, (mode, kind, name) in files.items() if kind == "blob" and mode != _LINK}
        differing = {path: None for path in contents if path not in blobs} | {
            path: reader.run("cat-file", "blob", name)
            for path, name in blobs.items()
            if not _is_blob(contents.get(path), ("blob", name))
        }
        return differing


def find_merge_base(root: Path, revision: str) -> str:
    """Returns the id of the last commit that HEAD and a revision share: where a branch began.

    Raises PTR063 as `read_differing`, and if they share none.
    """
    repository = _find(root)
    if repository is None:
        raise PorterError("PTR063", "the checkout is in no git repository", hint="Name a folder instead.")
    with _reader(repository) as reader:
        commit, head = reader.commit(revision), reader.commit("HEAD")
        if commit is None or head is None:
            raise PorterError(
                "PTR063", f"git knows no commit {revision!r}", hint="Name one that `git log` of the checkout shows."
            )
        base = reader.run("merge-base", head, commit, silent=1).decode().strip()
        if not base:
            what = f"HEAD and {revision!r} share no commit"
            raise PorterError("PTR063", what, hint="Fetch the history of both: a shallow clone lacks it.")
        return base


def require_committer(root: Path) -> None:
    """Raises PTR435 unless git can commit in the checkout: it is in a repository, and git knows who commits."""
    _run_there(root, "var", "GIT_COMMITTER_IDENT")
    _run_there(root, "rev-parse", "--verify", "HEAD")


def make_commit(root: Path, files: Sequence[str], text: str) -> str:
    """Commits files as they are on disk, and nothing else that is staged. Returns the id. Raises PTR435."""
    there = [file for file in files if os.path.lexists(root / file)]
    if there:
        _run_there(root, "add", "--intent-to-add", "--", *there)
    _run_there(root, "commit", "--quiet", "--no-verify", "--cleanup=whitespace", "-F", "-", "--only", "--", *files,
               text=text)  # fmt: skip
    return _run_there(root, "rev-parse", "HEAD").strip()


def _run_there(root: Path, *arguments: str, text: str = "") -> str:
    """Runs git in the repository of a checkout, without hooks. Raises PTR435."""
    settings = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
    command = ["git", "--no-pager", "--literal-pathspecs", *settings, *arguments]
    try:
        done = subprocess.run(
            command, input=text.encode("utf-8", "surrogateescape"), capture_output=True, check=False, cwd=root,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}, timeout=SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _cannot_commit(str(error)) from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise _cannot_commit(
            next((line for line in lines if line.startswith("fatal:")), "".join(lines[:1]) or "failed")
        )
    return done.stdout.decode(errors="replace")


def _cannot_commit(what: str) -> PorterError:
    return PorterError(
        "PTR435", f"git cannot commit here: {what}", hint="Mend it, or omit --ghstack and commit yourself."
    )


def _is_blob(data: bytes | None, entry: tuple[str, str] | None) -> bool:
    if data is None or entry is None:
        return data is None and entry is None
    kind, name = entry
    hashes = _HASHES[len(name)]
    texts = (data, data.replace(b"\r\n", b"\n"))  # as `core.autocrlf` and `eol=crlf` check files out
    return kind == "blob" and any(hashes(b"blob %d\0" % len(text) + text).hexdigest() == name for text in texts)


def _in_work_tree(repository: _Repository, root: Path, path: str) -> str:
    """Returns the path of a file, without links, from the top of the work tree."""
    return (root / path).resolve().relative_to(repository.top).as_posix()


def _find(root: Path) -> _Repository | None:
    """Returns the repository of the nearest folder that has `.git`, or None. Raises PTR063 if that is none."""
    top = next((f for f in (root.resolve(), *root.resolve().parents) if os.path.lexists(f / ".git")), None)
    if top is None:
        return None
    folder = top / ".git"
    if not folder.is_dir():  # a work tree of `git worktree add`, or a submodule
        link = _read(folder)
        if not link.startswith(b"gitdir: "):
            raise _failed(f"{folder} is no git repository")
        folder = top / os.fsdecode(link.removeprefix(b"gitdir: ").rstrip(b"\r\n"))
    pointer = folder / "commondir"
    shared = folder / os.fsdecode(_read(pointer).rstrip(b"\r\n")) if os.path.lexists(pointer) else folder
    if not all((shared / name).is_dir() for name in ("objects", "refs")):
        raise _failed(f"{folder} is no git repository")
    if os.path.lexists(shared / "reftable"):
        raise _failed(f"{folder} keeps its references in a reftable, which porter does not read")
    return _Repository(top, folder, shared.resolve())


@contextmanager
def _reader(repository: _Repository) -> Iterator[_Reader]:
    """Yields a reader whose folder is removed afterwards."""
    head, config = _read(repository.folder / "HEAD"), repository.shared / "config"
    is_sha256 = os.path.lexists(config) and _SHA256.search(_read(config))
    lines = ["[core]", f"repositoryformatversion = {1 if is_sha256 else 0}", "bare = true"]
    lines += ["[extensions]", "objectFormat = sha256"] if is_sha256 else []
    try:
        with tempfile.TemporaryDirectory(prefix="porter-git-") as name:
            folder = Path(name)
            (folder / "HEAD").write_bytes(head)
            (folder / "config").write_text("\n".join([*lines, ""]))
            for part in _BORROWED:
                (folder / part).symlink_to(repository.shared / part)
            yield _Reader(folder, repository.shared / "objects")
    except OSError as error:
        raise _failed(f"cannot make a folder for git: {error.strerror}") from error


def _read(file: Path) -> bytes:
    """Returns a small regular file, opened without waiting. Raises PTR063 for anything else."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise _failed("this is not a regular file", file)
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise _failed(f"cannot read this file: {error.strerror}", file) from error
    if len(data) > _LARGEST:
        raise _failed(f"this file is larger than {_LARGEST // 1024} KiB", file)
    return data


def _failed(what: str, file: Path | None = None) -> PorterError:
    hint = "Mend the repository, or pass --force to skip this check."
    return PorterError("PTR063", what, Place(str(file)) if file else None, hint)
