import unittest
from collections.abc import Sequence

import torch

from .opinfo.core import DecorateInfo, OpInfo


if torch.backends.mps.is_available():

    def mps_ops_modifier(
        ops: Sequence[OpInfo],
        device_type: str = "mps",
        xfail_exclusion: list[str] | None = None,
    ) -> Sequence[OpInfo]:
        if xfail_exclusion is None:
            xfail_exclusion = []

        # Supported complex OPS
        SUPPORTED_COMPLEX_OPS = {
            "exp",
            "neg",
            "sub",
        }

        # Those ops worked on MPS, but fail for these dtypes
        UNIMPLEMENTED_XFAILLIST = {
            # MPS does not support int64 input
            "atan2": [torch.int64],
            "log1p": [torch.int64],
        }

        UNDEFINED_XFAILLIST = {
            # CPU has no kernel for bool, so there is nothing to compare with
            "ceil": [torch.bool],
            "fmod": [torch.bool],
            "remainder": [torch.bool],
            "floor_divide": [torch.bool],
        }

        ON_MPS_XFAILLIST = {
            # The squares overflow in half precision
            "hypot": [torch.float16],
            # log(1 + x) loses small x
            "logaddexp": [torch.float16, torch.bfloat16],
        }

        SKIPLIST = {
            # Not an operator of this fork
            "igamma": None,
        }

        def addDecorator(op: OpInfo, d: DecorateInfo) -> None:
            d.device_type = device_type
            op.decorators = op.decorators + (d,)

        for op in ops:
            key = op.name + op.variant_test_name
            # Metal has no double
            addDecorator(
                op,
                DecorateInfo(
                    unittest.expectedFailure, dtypes=[torch.double, torch.cdouble]
                ),
            )
            if key in SKIPLIST:
                addDecorator(
                    op, DecorateInfo(unittest.skip("Skipped!"), dtypes=SKIPLIST[key])
                )
            for xfaillist in [
                UNIMPLEMENTED_XFAILLIST,
                UNDEFINED_XFAILLIST,
                ON_MPS_XFAILLIST,
            ]:
                if key in xfaillist and key not in xfail_exclusion:
                    addDecorator(
                        op,
                        DecorateInfo(unittest.expectedFailure, dtypes=xfaillist[key]),
                    )

            # If op is not supported for complex types, expect it to fail
            if key not in SUPPORTED_COMPLEX_OPS:
                addDecorator(
                    op,
                    DecorateInfo(
                        unittest.expectedFailure,
                        dtypes=[torch.complex32, torch.complex64],
                    ),
                )

        return ops

    def mps_ops_grad_modifier(ops: Sequence[OpInfo]) -> Sequence[OpInfo]:
        XFAILLIST_GRAD = {
            # CPU has no derivative for floor_divide
            "floor_divide": [torch.float16, torch.float32],
        }

        def addDecorator(op: OpInfo, d: DecorateInfo) -> None:
            op.decorators = op.decorators + (d,)

        for op in ops:
            key = op.name + op.variant_test_name
            if key in XFAILLIST_GRAD:
                addDecorator(
                    op,
                    DecorateInfo(unittest.expectedFailure, dtypes=XFAILLIST_GRAD[key]),
                )

        return ops

    def mps_ops_error_inputs_modifier(ops: Sequence[OpInfo]) -> Sequence[OpInfo]:
        # Error input samples do not take a dtype argument.
        XFAILLIST = {
            # A GPU kernel cannot raise on division by zero
            "__rmod__",
        }

        def addDecorator(op: OpInfo, d: DecorateInfo) -> None:
            op.decorators = op.decorators + (d,)

        for op in ops:
            key = op.name + op.variant_test_name
            if key in XFAILLIST:
                addDecorator(op, DecorateInfo(unittest.expectedFailure))

        return ops
else:

    def mps_ops_modifier(
        ops: Sequence[OpInfo],
        device_type: str = "mps",
        xfail_exclusion: list[str] | None = None,
    ) -> Sequence[OpInfo]:
        return ops
