"""The documentation as a site with a search, and the pictures of its first page.

    python tools/docs_site.py FOLDER     build the site into FOLDER; a link that leads nowhere is an error
    python tools/docs_site.py --pictures make the pictures again, from what the commands print today

Needs `mkdocs-material`, and `matplotlib` for the pictures. Pages link to each other as they lie in the repository, so
the site is built from a copy of its layout. `docs/site/index.md` stands above the README, and a folder that a page
links to gets a list of its files.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import yaml
from rich.console import Console
from rich.text import Text

from shared.arguments import parser

ROOT = Path(__file__).resolve().parents[1]
LINKED = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
WIDTH = 110  # columns of a picture


def copy_pages(root: Path, folder: Path) -> None:
    """Lays the pages of the repository `root` out in `folder`, with each file of the repository that one links to."""
    shutil.copytree(root / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.yml", "*.yaml"))
    shutil.copy(root / "CONTRIBUTING.md", folder)
    # mkdocs makes README.md the first page, which is where links to it lead.
    first = (folder / "docs/site/index.md").read_text()
    _, heading, rest = (root / "README.md").read_text().partition("\n## Try it\n")
    (folder / "README.md").write_text(first + heading + rest)
    (folder / "docs/site/index.md").unlink()
    for page in list(folder.rglob("*.md")):
        text = page.read_text()
        for link in set(LINKED.findall(text)):
            target = Path(os.path.normpath(root / page.relative_to(folder).parent / link))
            if not target.is_relative_to(root) or not target.exists():
                continue  # mkdocs names the page and the link
            if target.is_dir():
                text = text.replace(f"]({link})", f"]({link}/README.md)")
                _list_files(target, folder / target.relative_to(root))
            else:
                copy = folder / target.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.exists() or shutil.copy(target, copy)
        page.write_text(text)


def _list_files(source: Path, folder: Path) -> None:
    """Copies the files of a folder that has no page of its own, and writes a list of them."""
    if (folder / "README.md").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(path.name for path in source.iterdir() if path.is_file())
    for name in names:
        shutil.copy(source / name, folder)
    (folder / "README.md").write_text(f"# {source.name}\n\n" + "".join(f"- [{name}]({name})\n" for name in names))


def build(root: Path, site: Path) -> None:
    """Builds the site. Raises mkdocs' Abort, after its warnings, where a link or the navigation leads nowhere."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config
    from pymdownx.slugs import slugify

    guides = LINKED.findall((root / "docs/kernels/README.md").read_text())
    order = dict.fromkeys(["README.md", *(name for name in guides if "/" not in name and name.endswith(".md"))])
    with tempfile.TemporaryDirectory() as scratch:
        copy_pages(root, Path(scratch))
        config = load_config(
            str(root / "docs/site/mkdocs.yml"), docs_dir=scratch, site_dir=str(site.resolve()), strict=True
        )
        config.mdx_configs["toc"] = {
            "permalink": True,
            "slugify": slugify(case="lower"),
        }  # anchors as GitHub makes them
        for section in config.nav or ():
            if isinstance(section, dict) and "Kernels" in section:
                section["Kernels"] = [f"docs/kernels/{name}" for name in order]
        build_site(config)


def draw_pictures(root: Path) -> None:
    """Writes the pictures of the first page: what two commands print, and the figures of the race."""
    _draw_output(root / "docs/migrate-atan2.svg", "porter migrate atan2 --checkout embedded", "stdout")
    _draw_output(
        root / "docs/site/finding.svg",
        "porter run --sanitize bounds docs/site/scale.py",
        "stderr",
        "docs/site/scale.py",
    )
    _draw_race(yaml.safe_load((root / "docs/site/race.yaml").read_text()), root / "docs/site/race.svg")


def _draw_output(picture: Path, command: str, stream: str, file: str = "") -> None:
    """Draws what a command prints to one of its streams on a terminal, in color, below a file that it reads."""
    reader, terminal = pty.openpty()
    env = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    stdout, stderr = [terminal if stream == name else subprocess.DEVNULL for name in ("stdout", "stderr")]
    words = [sys.executable, "-P", "-m", *command.split()]
    process = subprocess.Popen(words, cwd=ROOT, env=env, stdout=stdout, stderr=stderr)
    with process, os.fdopen(reader, "rb") as output:
        os.close(terminal)
        shown = _read_terminal(output).replace("\r\n", "\n")
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    shell = command.removesuffix(" --checkout embedded")
    if file:
        console.print(Text(f"$ cat {file}"), Text((ROOT / file).read_text()), sep="\n")
    console.print(Text(f"$ {shell}"), Text.from_ansi(shown), sep="\n")
    picture.write_text(console.export_svg(title=shell, unique_id=picture.stem))


def _read_terminal(output: io.BufferedReader) -> str:
    """Everything that is printed until the last process that has the terminal ends, which Linux reports as an error."""
    parts = []
    with suppress(OSError):
        while part := output.read1():
            parts.append(part)
    return b"".join(parts).decode()


def _draw_race(race: dict[str, list[float]], picture: Path) -> None:
    """Bars of the geometric means, with a mark at the least of the calls."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "race"  # the same bytes each time
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 2.6))
    axes.barh(list(race), [mean for mean, _ in race.values()], color="#4051b5", height=0.55)
    axes.plot([least for _, least in race.values()], list(race), "|", color="#e91e63", markersize=16, markeredgewidth=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.invert_yaxis()
    axes.set_xlabel("speed of the port over the person's kernel: mean (bar), least (mark)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    arguments = parser(__doc__)
    action = arguments.add_mutually_exclusive_group(required=True)
    action.add_argument("folder", nargs="?", type=Path, help="where the site goes")
    action.add_argument("--pictures", action="store_true", help="make the pictures again")
    chosen = arguments.parse_args()
    if chosen.pictures:
        draw_pictures(ROOT)
    else:
        build(ROOT, chosen.folder)
