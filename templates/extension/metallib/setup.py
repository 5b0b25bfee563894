"""Builds the extension: the CPU implementations everywhere, the Metal ones where torch has the mps device.

Where there is `xcrun`, on a Mac with Xcode, the kernels are compiled now and embedded as a Metal library. Elsewhere
their source is compiled when the first of them is called. Not yet run on Apple hardware.
"""

import re
import shutil
import subprocess
from pathlib import Path

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

STANDARD = "metal3.1"  # for macOS 14 and later
FOLDER = Path(__file__).resolve().parent


def embed_library():
    """Compiles the Metal source in csrc/kernels.h, and writes the library as an array into csrc/metallib.h."""
    build = FOLDER / "build"
    build.mkdir(exist_ok=True)
    source, air, library = (str(build / f"kernels.{suffix}") for suffix in ("metal", "air", "metallib"))
    header = (FOLDER / "csrc" / "kernels.h").read_text()
    Path(source).write_text(re.search(r'R"METAL\((.*?)\)METAL"', header, re.DOTALL)[1])
    run_xcrun("metal", f"-std={STANDARD}", "-c", source, "-o", air)
    run_xcrun("metallib", air, "-o", library)
    numbers = ", ".join(map(str, Path(library).read_bytes()))
    text = f"// Made by setup.py from kernels.h.\n#pragma once\nstatic constexpr unsigned char kMetallib[] = {{{numbers}}};\n"
    (FOLDER / "csrc" / "metallib.h").write_text(text)


def run_xcrun(*command):
    subprocess.run(["xcrun", "-sdk", "macosx", *command], check=True)


sources, link, macros = ["csrc/ops.cpp"], [], []
if torch.backends.mps.is_built():
    sources.append("csrc/ops_mps.mm")
    link = ["-framework", "Metal", "-framework", "Foundation"]
if shutil.which("xcrun"):
    embed_library()
    macros = [("EMBEDDED_METALLIB", "1")]

setup(
    ext_modules=[
        CppExtension(
            "$name._C", sources, depends=["csrc/kernels.h"], define_macros=macros, extra_link_args=link
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
