"""Starting programs with the device, and what happens where it cannot be had."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from aten_overlay.device import load
from aten_overlay.errors import OverlayError
from tests.conftest import Run


def test_a_script_gets_its_arguments(python: Run, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import sys, torch\nprint(sys.argv[1:], torch.ones(2, device='mps').sum().item(), __name__)\n")
    done = python("-m", "aten_overlay", str(script), "a", "-b")
    assert (done.returncode, done.stdout) == (0, "['a', '-b'] 2.0 __main__\n")


def test_a_module_runs(python: Run) -> None:
    code = "import torch; print(torch.ones(2, device='mps').sum().item())"
    done = python("-m", "aten_overlay", "-m", "timeit", "-n", "1", "-r", "1", code)
    assert done.returncode == 0 and done.stdout.startswith("2.0\n")


def test_a_script_exit_code_is_kept(on_device: Run) -> None:
    assert on_device("import sys; sys.exit(7)").returncode == 7


def test_missing_program_prints_usage(python: Run) -> None:
    done = python("-m", "aten_overlay")
    assert done.returncode == 2 and done.stderr.startswith("usage:")


@pytest.mark.parametrize("access", ["ctypes.string_at(x.data_ptr(), 1)", "ctypes.memset(x.data_ptr(), 0, 1)"])
def test_touching_device_memory_on_the_host_crashes(on_device: Run, access: str) -> None:
    done = on_device(f"import ctypes, torch; x = torch.ones(3, device='mps'); print('up', flush=True); {access}")
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "up\n")


def test_a_kernel_may_read_before_the_first_tensor(on_device: Run) -> None:
    done = on_device("""
import torch
x = torch.full((4096,), 3.0, device="mps")
library = torch.mps.compile_shader(
    "kernel void f(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {"
    "  float before = x[int(i) - 2000]; y[i] = i < 0x80000000 ? x[i] : before; }"
)
y = torch.empty(8, device="mps")
library.f(x, y)
print(y.sum().item())
""")
    assert (done.returncode, done.stdout) == (0, "24.0\n")


def test_importing_torch_first_is_refused(python: Run) -> None:
    done = python("-c", "import torch, aten_overlay; aten_overlay.start()")
    assert done.returncode == 1 and "PTR140" in done.stderr


def test_starting_twice_returns_the_same_device(on_device: Run) -> None:
    assert on_device("import aten_overlay as a; assert a.start() is a.start()").returncode == 0


def test_a_library_without_the_symbols_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "libtorch_cpu.so"
    library.write_bytes(b"\0" + b"\0".join(s.encode() for s in load.SYMBOLS[1:]) + b"\0")
    with pytest.raises(OverlayError) as error:
        load.check_symbols(library)
    assert error.value.code == "PTR141" and load.SYMBOLS[0] in error.value.what


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(OverlayError) as error:
        load._refuse_wrong_process()
    assert error.value.code == "PTR145"


def test_an_overrun_is_detected(on_device: Run) -> None:
    done = on_device(
        "import ctypes, torch, aten_overlay\n"
        "d = aten_overlay.start(); x = torch.ones(3, device='mps'); assert d.overruns() == 0\n"
        "ctypes.memset(d.host_address(x.data_ptr()) + 12, 0, 1); assert d.overruns() == 1\n"
        "del x; assert d.overruns() == 1\n"
    )
    assert done.returncode == 0, done.stderr


def test_the_device_starts_without_porter(python: Run) -> None:
    done = python(
        "-c",
        "import sys; sys.modules['porter'] = None\n"
        "import aten_overlay; aten_overlay.start(); import torch\n"
        "print(torch.ones(2, device='mps').add(1).cpu().tolist())",
    )
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0]\n"), done.stderr
