"""pyobjc's `Metal`, `Foundation` and `objc` over the stand-in: programs that a Mac's Python runs as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aten_overlay.device.pyobjc import read_headers, split_types
from tests import conftest

START = '''
import struct
import Foundation, Metal, objc

SOURCE = """
kernel void scale(device float* x [[buffer(0)]], constant float& by [[buffer(1)]], constant uint& n [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) { if (i < n) x[i] *= by; }
"""
device = Metal.MTLCreateSystemDefaultDevice()
queue = device.newCommandQueue()
library, error = device.newLibraryWithSource_options_error_(SOURCE, None, None)
assert error is None
pipeline, error = device.newComputePipelineStateWithFunction_error_(library.newFunctionWithName_("scale"), objc.nil)
assert error is None
data = struct.pack("8f", *range(8))
buffer = device.newBufferWithBytes_length_options_(data, len(data), Metal.MTLResourceStorageModeShared)


def launch(threads, count, wait=True):
    commands = queue.commandBuffer()
    commands.addCompletedHandler_(lambda done: statuses.append(done.status()))
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline)
    encoder.setBuffer_offset_atIndex_(buffer, 0, 0)
    encoder.setBytes_length_atIndex_(struct.pack("f", 2.5), 4, 1)
    encoder.setBytes_length_atIndex_(bytearray(struct.pack("I", count)), 4, 2)
    encoder.dispatchThreads_threadsPerThreadgroup_(Metal.MTLSizeMake(threads, 1, 1), (4, 1, 1))
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()
    return commands, encoder


statuses = []
'''
ANSWERS = """
commands, encoder = launch(8, 8)
assert statuses == [Metal.MTLCommandBufferStatusCompleted] and commands.error() is None, statuses
assert commands.GPUEndTime() >= commands.GPUStartTime() > 0
assert struct.unpack("8f", buffer.contents().as_buffer(32)) == tuple(2.5 * n for n in range(8))
buffer.contents().as_buffer(32)[:4] = struct.pack("f", 7)
assert struct.unpack("f", buffer.contents().as_buffer(4)) == (7,) and buffer.length() == 32

assert device.maxThreadsPerThreadgroup() == Metal.MTLSize(1024, 1024, 1024)
assert device.supportsFamily_(Metal.MTLGPUFamilyApple7) is True and isinstance(device.name(), str)
names = library.functionNames()
assert list(names) == ["scale"] and names.objectAtIndex_(0) == names[-1] == "scale" and names.count() == len(names) == 1
assert library.newFunctionWithName_("nothing") is None

options = Metal.MTLCompileOptions.alloc().init()
options.setPreprocessorMacros_({"N": 3, "M": "4"})
options.setFastMathEnabled_(False)
assert options.mathMode() == Metal.MTLMathModeSafe
assert {name: options.preprocessorMacros()[name] for name in options.preprocessorMacros()} == {"N": 3, "M": "4"}
missing, error = device.newLibraryWithSource_options_error_('#include "nothing.h"', options, None)
assert missing is None and "nothing.h" in str(error), error
assert (error.code(), error.domain()) == (Metal.MTLLibraryErrorCompileFailure, Metal.MTLLibraryErrorDomain)

blit = (commands := queue.commandBuffer()).blitCommandEncoder()
blit.fillBuffer_range_value_(buffer, Foundation.NSMakeRange(4, 8), 0)
blit.endEncoding()
commands.commit()
commands.waitUntilCompleted()
assert struct.unpack("4f", buffer.contents().as_buffer(16)) == (7, 0, 0, 7.5)

import MetalPerformanceShaders

assert device.registryID() and device.isLowPower() is False and device.architecture().name().startswith("applegpu_g")
assert MetalPerformanceShaders.MPSMatrixMultiplication and objc.objc_object(c_void_p=objc.pyobjc_id(buffer)) == buffer
ready = []
device.newLibraryWithSource_options_completionHandler_(SOURCE, None, lambda *both: ready.extend(both))
assert list(ready[0].functionNames()) == ["scale"] and ready[1] is None, ready
assert objc.lookUpClass("NSProcessInfo").processInfo().operatingSystemVersion().majorVersion == 26
assert Foundation.NSURL.fileURLWithPath_("/a b").path() == "/a b"
assert not hasattr(device, "newTextureWithDescriptor_") and not hasattr(Metal, "MTLTextureDescriptor")
for wrong, kind in (
    (lambda: encoder.setBuffer_offset_atIndex_(buffer, 0, 0), objc.error),  # after endEncoding
    (lambda: device.newBufferWithLength_options_(64), TypeError),
    (lambda: device.newBufferWithLength_options_(-1, 0), OverflowError),
    (lambda: queue.setLabel_(object()), TypeError),
):
    try:
        wrong()
    except kind:
        continue
    raise AssertionError(kind)
with objc.autorelease_pool():
    print("done")
"""
PAST_THE_END = "\nlaunch(9, 9)\n"


def run(python: conftest.Run, folder: Path, text: str) -> tuple[int, str, dict[str, Any]]:
    program, report = folder / "program.py", folder / "run.json"
    program.write_text(text)
    done = python("-m", "porter", "run", "--as-mac", "--sanitize", "bounds", "--json", str(report), str(program))
    return done.returncode, done.stdout + done.stderr, json.loads(report.read_text())


def test_a_program_gets_what_pyobjc_returns(python: conftest.Run, tmp_path: Path) -> None:
    code, output, report = run(python, tmp_path, START + ANSWERS)
    assert code == 0 and output.startswith("done\n"), output
    assert report["producers"] == {"Metal of pyobjc": {"kernels": 1, "launches": 1}}


def test_the_program_of_the_page_runs(python: conftest.Run, tmp_path: Path) -> None:
    page = (conftest.ROOT / "docs" / "kernels" / "pyobjc.md").read_text()
    code, output, report = run(python, tmp_path, page.split("```python not-run\n")[1].split("```")[0])
    assert code == 0 and report["producers"] == {"Metal of pyobjc": {"kernels": 1, "launches": 1}}, output


def test_its_launches_are_watched(python: conftest.Run, tmp_path: Path) -> None:
    code, output, report = run(python, tmp_path, START + PAST_THE_END)
    assert code == 1 and report["findings"], output
    (finding,) = report["findings"]
    assert finding["code"] == "PTR264" and finding["made_by"]["producer"] == "Metal of pyobjc"


def test_nothing_is_found_unless_a_mac_is_shown(python: conftest.Run) -> None:
    done = python("-m", "porter", "run", "--quiet", "-c", "import Metal")
    assert done.returncode == 1 and "No module named 'Metal'" in done.stderr


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("v16@0:8", ["v", "@", ":"]),
        ("@40@0:8r^v16Q24Q32", ["@", "@", ":", "^v", "Q", "Q"]),
        ("v64@0:8{?=QQQ}16{MTLSize=QQQ}40", ["v", "@", ":", "{QQQ", "{QQQ"]),
        ('@32@0:8@"NSString"16^@24', ["@", "@", ":", "@", "^@"]),
        ("v24@0:8@?16", ["v", "@", ":", "@?"]),
        ("Vv16@0:8", ["v", "@", ":"]),
        ('{a="x"{b=dd}"y"Q}16@0:8', ["{{dd" + "Q", "@", ":"]),
    ],
)
def test_encodings_are_split(text: str, types: list[str]) -> None:
    assert split_types(text) == types


def test_constants_are_those_of_the_headers() -> None:
    metal, foundation = read_headers("Metal"), read_headers("Foundation")
    assert (metal["MTLResourceStorageModePrivate"], metal["MTLLanguageVersion3_1"]) == (32, 0x30001)
    assert metal["MTLCommandBufferStatusError"] == 5 and metal["MTLResourceHazardTrackingModeUntracked"] == 256
    assert "MTLCompileOptions" in metal and "NSURL" in foundation and foundation["NSUTF8StringEncoding"] == 4
