"""Makes rows that torchgen registers when a library is loaded wait until they are asked for, operator by operator.

One library then holds the ports of many operators, and a test still runs with the rows of one, as if it were alone.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from porter.aten.declarations import parse_base_name

_DECLARED = "bool porter_add_rows(void (*)(torch::Library&, const std::string&));\n"
SWITCHES = f"""#include <string>
#include <vector>
#include <torch/library.h>

{_DECLARED}
using Rows = void (*)(torch::Library&, const std::string&);

static std::vector<Rows>& rows() {{
  static std::vector<Rows> all;
  return all;
}}

bool porter_add_rows(Rows added) {{
  rows().push_back(added);
  return true;
}}

extern "C" __attribute__((visibility("default"))) void porter_register_rows(const char* base) {{
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::MPS, __FILE__, __LINE__);
  for (auto each : rows()) {{
    each(library, base);
  }}
}}
"""
_BLOCK = re.compile(r"^TORCH_LIBRARY_IMPL\(aten, MPS, m\) \{", re.M)
_ROW = re.compile(r'\bm\.impl\("(?P<name>[\w.]+)"')
_FUNCTIONAL = "_functional"


def add_switches(text: str, bases: Sequence[str]) -> str:
    """A registration source of some operators that registers the rows of a base name when it is asked to."""
    start = text.index("\nnamespace at {") + 1
    head = f"#include <string>\n#include <torch/library.h>\n{_DECLARED}"
    switched = _ROW.sub(lambda row: f'if (base == "{_find_owner(row["name"], bases)}") {row[0]}', text[start:])
    numbers = count()
    return text[:start] + head + _BLOCK.sub(lambda _: _begin_block(next(numbers)), switched)


def register(library: Path, base: str) -> None:
    """Registers the rows of one operator of a library that this process has loaded."""
    ctypes.CDLL(str(library)).porter_register_rows(base.encode())


def _find_owner(row: str, bases: Sequence[str]) -> str:
    """The operator that a row is generated for: that of a functional form with a name of its own, too."""
    base = parse_base_name(row)
    return base if base in bases else base.removesuffix(_FUNCTIONAL)


def _begin_block(number: int) -> str:
    name = f"porter_rows_{number}"
    head = f"void {name}(torch::Library& m, const std::string& base)"
    return f"{head};\nconst bool {name}_added = ::porter_add_rows(&{name});\n{head} {{"
