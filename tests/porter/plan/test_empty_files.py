"""Files of which a port leaves nothing but includes."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.journal import undo
from porter.core.layout import OPERATIONS
from porter.core.writing import write
from porter.plan.removal import defines_nothing, delete_empty_files

FILE, OTHER = f"{OPERATIONS}/Gone.mm", f"{OPERATIONS}/Stays.mm"
GONE = """\
//  Copyright
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>
#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#endif

namespace at::native {
namespace mps {
// scope the cached graphs to this file
} // namespace mps

} // namespace at::native
"""


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        (GONE, True),
        ("", True),
        (GONE.replace("// scope the", "struct Graph; // the"), False),
        (GONE.replace("Functions.h", "Functions.inc"), False),
        ("namespace a { static int used = 1; }\n", False),
        ("using namespace at::mps;\n", False),
        ("namespace a {\n", False),
    ],
)
def test_what_defines_nothing(text: str, nothing: bool) -> None:
    assert defines_nothing(FILE, text) is nothing


def test_a_file_that_defines_nothing_is_deleted_and_comes_back(tmp_path: Path) -> None:
    for file, text in ((FILE, GONE), (OTHER, GONE + "int kept;\n")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    checkout = Checkout(tmp_path, "test")
    edits = tuple(delete_empty_files(checkout, [FILE, OTHER, FILE]))
    changes = ChangeSet({FILE: GONE}, edits)
    assert [edit.file for edit in edits] == [FILE]
    assert changes.diff().startswith(
        f"diff --git a/{FILE} b/{FILE}\ndeleted file mode 100644\n--- a/{FILE}\n+++ /dev/null\n"
    )
    assert write(checkout, changes) == (FILE,)
    assert not (tmp_path / FILE).exists()
    undo(Checkout(tmp_path, "test"))
    assert (tmp_path / FILE).read_text() == GONE
