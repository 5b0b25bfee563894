# Owner(s): ["module: mps"]
"""Each operator of the fork on MPS against the same on the CPU: the forward part of PyTorch's own TestConsistency."""

import copy
import importlib.util
import re
from pathlib import Path

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_dtype import all_types_and_complex_and
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, run_tests
from torch.utils._pytree import tree_map_only

FORK = Path(__file__).resolve().parent.parent
NATIVE_FUNCTIONS = FORK / "aten/src/ATen/native/native_functions.yaml"
MPS_DTYPES = all_types_and_complex_and(torch.half, torch.bfloat16, torch.bool)


def fork_lists():
    """The fork's common_mps.py, in the place of the installed one."""
    path = FORK / "torch/testing/_internal/common_mps.py"
    spec = importlib.util.spec_from_file_location("torch.testing._internal.common_mps", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fork_ops():
    names = set(re.findall(r"^- func: (\w+?)_?[.(]", NATIVE_FUNCTIONS.read_text(), re.MULTILINE))
    return [copy.deepcopy(op) for op in op_db if op.name in names]


class TestConsistency(TestCase):
    @ops(fork_lists().mps_ops_modifier(fork_ops()), allowed_dtypes=MPS_DTYPES)
    def test_output_match(self, device, dtype, op):
        for sample in op.sample_inputs("cpu", dtype):
            args, kwargs = tree_map_only(torch.Tensor, lambda t: t.to(device), (sample.args, sample.kwargs))
            expected = op(sample.input, *sample.args, **sample.kwargs)
            actual = op(tree_map_only(torch.Tensor, lambda t: t.to(device), sample.input), *args, **kwargs)
            self.assertEqual(actual, expected, exact_device=False)


instantiate_device_type_tests(TestConsistency, globals(), only_for="mps", allow_mps=True)

if __name__ == "__main__":
    run_tests()
