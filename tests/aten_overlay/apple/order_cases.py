"""Runs the cases of order.mm that are named, watched for the order of launches, and prints what each ends in."""

import ctypes
import sys
from pathlib import Path

from aten_overlay.apple.build import build_frameworks
from aten_overlay.apple.compiler import Compiler
from aten_overlay.metal.build import Options
from tests.aten_overlay.apple.objective_c import build_program

program = ctypes.CDLL(str(build_program("order", Path(__file__).parent / "programs" / "order.mm")))
frameworks = ctypes.CDLL(str(build_frameworks()), mode=ctypes.RTLD_GLOBAL)
compiler = Compiler(frameworks, Options(sanitize=("races",)))
compiler.install()
frameworks.porter_watch_order()
program.try_order.restype = ctypes.c_char_p
for name in sys.argv[1:]:
    print(name, program.try_order(name.encode()).decode())
