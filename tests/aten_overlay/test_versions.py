"""What the installed wheel's `ATen/mps/MPSDevice.h` declares is there to be linked with: newer forks ask for more."""

from __future__ import annotations

import re
from pathlib import Path

from aten_overlay import toolchain
from aten_overlay.apple import build
from aten_overlay.device import libraries

HEADER = toolchain.torch_root() / "include" / "ATen" / "mps" / "MPSDevice.h"


def test_every_device_query_is_answered(tmp_path: Path) -> None:
    declared = re.findall(r"^TORCH_API [\w:*]+ (\w+)\(", HEADER.read_text(), re.M)
    assert {"is_available", "GetMPSAllocator"} <= set(declared)
    asked = "".join(f"void* ask_{name}() {{ return (void*)&at::mps::{name}; }}\n" for name in declared)
    source = tmp_path / "asks.mm"
    source.write_text(f"#include <ATen/mps/MPSDevice.h>\n{asked}")
    answers = (
        flag for made in (libraries.build_mps(None), build.build_frameworks()) for flag in toolchain.link_with(made)
    )
    link = (*toolchain.torch_libraries(), *answers, "-lstdc++")
    toolchain.build("porter_asks", [source], build.general_flags(), [build.INCLUDE], link=link)
