"""`porter kernel list` and `porter kernel new`: the templates, read without running them, and copied."""

from __future__ import annotations

import ast
import difflib
import errno
import io
import os
import tokenize
from pathlib import Path

from porter.core.errors import Place, PorterError, unwritable
from porter.core.files import create_whole
from porter.core.installed import find_installed
from porter.core.names import explain_module
from porter.report.kernel import Template

BLANK = "blank"  # the template of a kernel that is like no other


def find_templates() -> tuple[Template, ...]:
    """Every template by name, from the repository or from the installed package."""
    files = find_installed("templates").items()
    return tuple(_read(path) for name, path in files if name.endswith(".py") and "/" not in name)


def find_template(name: str) -> Template:
    """The template of that name. Raises PTR235."""
    found = {template.name: template for template in find_templates()}
    if name not in found:
        near = difflib.get_close_matches(name, found)
        hint = f"Did you mean {', '.join(near)}?" if near else "`porter kernel list` shows them."
        hint += f" `porter kernel new --blank {name}` starts one of your own." if name.isidentifier() else ""
        raise PorterError("PTR235", f"there is no template named {name}", hint=hint)
    return found[name]


def write_new(name: str, own: str | None, folder: Path) -> Path:
    """Copies a template as `own`.py into a folder, with its functions renamed. Raises PTR235-PTR237."""
    template = find_template(name)
    if own is not None and (why := explain_module(own)):
        hint = "Use letters, digits and _, and no name that another module has."
        raise PorterError("PTR237", f"`{own}` cannot be the name of a module: {why}", hint=hint)
    own = own or template.name
    path = folder / f"{own}.py"
    text = rename(template.path.read_text(), template.name, own)
    create_file(path, text)
    return path


def create_file(path: Path, text: str) -> None:
    """Writes a new file, in a new folder if need be. Raises PTR236 if it exists, PTR353 if it cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        create_whole(path, text)
    except FileExistsError:
        hint = "Choose another name or another --out."
        if not path.parent.is_dir():
            raise unwritable(NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)), path) from None
        raise PorterError("PTR236", "the file exists already", Place(str(path)), hint) from None
    except OSError as error:
        raise unwritable(error, path) from error


def rename(source: str, old: str, new: str) -> str:
    """Python source with names `old` and `old_...` changed, also as whole strings, but not as attributes."""
    lines = source.splitlines(keepends=True)
    before = ""
    edits = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string.strip("\"'") if token.type == tokenize.STRING else token.string
        named = text.isidentifier() and (text == old or text.startswith(f"{old}_"))
        if named and before != "." and token.type in (tokenize.NAME, tokenize.STRING):
            edits.append((token.start, len(token.string), token.string.replace(old, new, 1)))
        before = token.string
    for (row, column), length, text in reversed(edits):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + text + line[column + length :]
    return "".join(lines)


def _read(path: Path) -> Template:
    """What a template says of itself in `SCRIPT = Script(summary=..., kind=Kind...)`."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            given = {each.arg: each.value for each in node.value.keywords}
            summary, kind = given.get("summary"), given.get("kind")
            if isinstance(summary, ast.Constant) and isinstance(kind, ast.Attribute):
                return Template(path.stem, str(summary.value), kind.attr.lower().replace("_", "-"), path)
    raise PorterError("PTR239", "the script has no SCRIPT", Place(str(path)))
