"""Puts the coverage of one more tree at the end of a page that `porter status --coverage` printed.

    python tools/coverage_page.py [--about TEXT] PAGE TITLE TREE RESULTS...

The section is called TITLE; one of that name is replaced. What stands before it stays, but for a line below the page's
heading that names the section. RESULTS are files of `porter migrate --results` on TREE, of one porter and one torch.
TEXT says what the tree is made of, which no file of it does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.report.coverage import coverage_text
from porter.workflows.coverage import find_coverage
from porter.workflows.results import read_results
from shared.arguments import parser

_HEADING = re.compile(r"^(#+) ", re.MULTILINE)
_ALSO = "Also on this page: "


def put_section(page: str, title: str, coverage: str, about: str = "") -> str:
    """The page with the coverage of another tree, whose headings go one level down, as its last section."""
    begins = f"## {title}\n\n{about}" if about else f"## {title}"
    section = _HEADING.sub(lambda heading: f"#{heading[1]} ", coverage).replace("## Coverage", begins, 1)
    kept = re.sub(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", "", page, flags=re.MULTILINE | re.DOTALL)
    return f"{_name_section(kept, title).rstrip()}\n\n{section}"


def _name_section(page: str, title: str) -> str:
    anchor = re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
    link = f"[{title}](#{anchor})"
    if link in page:
        return page
    heading, _, rest = page.partition("\n\n")
    if rest.startswith(_ALSO):
        line, _, rest = rest.partition("\n\n")
        return f"{heading}\n\n{line.removesuffix('.')}, {link}.\n\n{rest}"
    return f"{heading}\n\n{_ALSO}{link}.\n\n{rest}"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("page", type=Path, help="the Markdown file to write")
    options.add_argument("title", help="what the section is called")
    options.add_argument("tree", type=Path, help="the root of the tree that the results are of")
    options.add_argument("results", type=Path, nargs="+", help="files of results")
    options.add_argument("--about", default="", metavar="TEXT", help="a paragraph below the section's heading")
    chosen = options.parse_args()
    try:
        coverage = find_coverage(Checkout(chosen.tree, "named"), read_results(chosen.results))
    except PorterError as error:
        sys.exit(f"{error.place or ''} {error.code} {error.what}")
    text = coverage_text(coverage, "python tools/coverage_page.py PAGE TITLE TREE RESULTS")
    chosen.page.write_text(put_section(chosen.page.read_text(), chosen.title, text, chosen.about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
