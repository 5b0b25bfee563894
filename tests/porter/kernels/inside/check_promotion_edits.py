"""What an operator of a template changes in files that are there, as a reviewer reads it."""

from __future__ import annotations

from expecttest import assert_expected_inline

from tests.porter.kernels.inside.plans import plan


def test_edits_of_files_that_are_there() -> None:
    diff = plan("softmax", "softmax_rows", "softmax").changes.diff()
    assert_expected_inline(
        diff[diff.index("diff --git a/aten/src/ATen/native/native_functions.yaml") :],
        """\
diff --git a/aten/src/ATen/native/native_functions.yaml b/aten/src/ATen/native/native_functions.yaml
--- a/aten/src/ATen/native/native_functions.yaml
+++ b/aten/src/ATen/native/native_functions.yaml
@@ -616,3 +616,12 @@
     CPU, CUDA, MPS: remainder
   autogen: remainder.Scalar_Tensor_out
   tags: pointwise
+
+- func: softmax_rows(Tensor x) -> Tensor
+  structured_delegate: softmax_rows.out
+
+- func: softmax_rows.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
+  structured: True
+  dispatch:
+    CPU: softmax_rows_out_cpu
+    MPS: softmax_rows_out_mps
diff --git a/test/test_mps.py b/test/test_mps.py
--- a/test/test_mps.py
+++ b/test/test_mps.py
@@ -42,6 +42,33 @@
             self.assertEqual(actual, expected, exact_device=False)
 
 
+class TestSoftmaxRows(TestCase):
+    def check(self, actual, expected):
+        if not actual.is_floating_point():
+            return self.assertEqual(actual, expected, atol=0, rtol=0)
+        # Rounding errors of sums grow with what is summed, not with the sum
+        largest = expected.abs().max().item() if expected.numel() else 0
+        atol = max(1e-5, 4 * torch.finfo(actual.dtype).eps * largest)
+        rtol = {torch.float32: 1.3e-06, torch.float16: 0.001, torch.bfloat16: 0.016}[actual.dtype]
+        self.assertEqual(actual, expected, atol=atol, rtol=rtol)
+
+    def test_softmax_rows(self):
+        from torch.testing._internal.common_methods_invocations import (
+            reference_softmax_rows,
+            sample_inputs_softmax_rows,
+        )
+
+        def widen(a):
+            return a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
+
+        for dtype in (torch.float32, torch.float16, torch.bfloat16):
+            for sample in sample_inputs_softmax_rows(None, 'cpu', dtype, False):
+                args = (sample.input, *sample.args)
+                expected = reference_softmax_rows(*[widen(a) for a in args])
+                actual = torch.softmax_rows(*[a.to('mps') if isinstance(a, torch.Tensor) else a for a in args])
+                self.check(actual.cpu(), expected.to(actual.dtype))
+
+
 instantiate_device_type_tests(TestConsistency, globals(), only_for="mps", allow_mps=True)
 
 if __name__ == "__main__":
diff --git a/torch/testing/_internal/common_methods_invocations.py b/torch/testing/_internal/common_methods_invocations.py
--- a/torch/testing/_internal/common_methods_invocations.py
+++ b/torch/testing/_internal/common_methods_invocations.py
@@ -28,6 +28,21 @@
         )
 
 
+def sample_inputs_softmax_rows(op_info, device, dtype, requires_grad, **kwargs):
+    def make_arg(shape, dtype=dtype, requires_grad=requires_grad, **bounds):
+        return torch.testing.make_tensor(
+            shape, device=device, dtype=dtype, requires_grad=requires_grad, **bounds)
+
+    yield SampleInput(make_arg((1, 1), low=-60, high=60))
+    yield SampleInput(make_arg((3, 33), low=-60, high=60))
+    yield SampleInput(make_arg((2, 2, 1030), low=-60, high=60))
+    yield SampleInput(make_arg((0, 8), low=-60, high=60))
+
+
+def reference_softmax_rows(x):
+    return torch.softmax(x, -1)
+
+
 op_db = [
     BinaryUfuncInfo('atan2',
                     dtypes=all_types_and(torch.bool, torch.bfloat16, torch.half),
@@ -75,4 +90,11 @@
                        DecorateInfo(unittest.expectedFailure, 'TestCommon', 'test_out', device_type='mps'),
                    ),
                    ),
+    OpInfo('softmax_rows',
+           ref=lambda *args: reference_softmax_rows(
+               *(torch.from_numpy(a) if hasattr(a, 'shape') else a for a in args)).numpy(),
+           dtypes=floating_types_and(torch.half, torch.bfloat16),
+           sample_inputs_func=sample_inputs_softmax_rows,
+           supports_autograd=False,
+           ),
 ]
""",
    )
