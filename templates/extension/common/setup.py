"""Builds the extension: the CPU implementations everywhere, the Metal ones where torch has the mps device."""

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

sources = ["csrc/ops.cpp"]
link = []
if torch.backends.mps.is_built():
    sources.append("csrc/ops_mps.mm")
    link = ["-framework", "Metal", "-framework", "Foundation"]

setup(
    ext_modules=[CppExtension("$name._C", sources, depends=["csrc/kernels.h"], extra_link_args=link)],
    cmdclass={"build_ext": BuildExtension},
)
