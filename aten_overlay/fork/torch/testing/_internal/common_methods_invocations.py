# mypy: ignore-errors

import unittest

import torch
from torch.testing._internal.common_dtype import (
    all_types_and,
    all_types_and_complex_and,
    floating_and_complex_types_and,
    floating_types_and,
)
from torch.testing._internal.opinfo.core import (
    BinaryUfuncInfo,
    DecorateInfo,
    OpInfo,
    SampleInput,
    UnaryUfuncInfo,
)


def sample_inputs_lerp(op_info, device, dtype, requires_grad, **kwargs):
    start = torch.linspace(-2, 2, 12, device=device).to(dtype).reshape(3, 4)
    end = start.flip(0).contiguous()
    for weight in (0.25, 0.5, 0.75):
        yield SampleInput(
            start.clone().requires_grad_(requires_grad),
            args=(end.clone().requires_grad_(requires_grad), weight),
        )


op_db = [
    BinaryUfuncInfo('atan2',
                    dtypes=all_types_and(torch.bool, torch.bfloat16, torch.half),
                    promotes_int_to_float=True,
                    supports_forward_ad=True,
                    supports_rhs_python_scalar=False,
                    ),
    UnaryUfuncInfo('ceil',
                   dtypes=all_types_and(torch.half, torch.bfloat16),
                   dtypesIfMPS=all_types_and(torch.half, torch.bfloat16, torch.bool),
                   skips=(
                       DecorateInfo(unittest.expectedFailure, 'TestCommon', 'test_dtypes', device_type='mps'),
                   ),
                   supports_forward_ad=True,
                   ),
    BinaryUfuncInfo('hypot',
                    dtypes=floating_types_and(torch.bfloat16, torch.half),
                    dtypesIfMPS=floating_types_and(torch.half),
                    supports_forward_ad=True,
                    supports_rhs_python_scalar=False,
                    ),
    OpInfo('lerp',
           dtypes=floating_and_complex_types_and(torch.bfloat16, torch.half),
           sample_inputs_func=sample_inputs_lerp,
           supports_forward_ad=True,
           skips=(
               # CPU has no kernel for integers
               DecorateInfo(
                   unittest.expectedFailure, 'TestConsistency', device_type='mps',
                   dtypes=(torch.bool, torch.uint8, torch.int8, torch.int64, torch.int32, torch.int16)
               ),
           )),
    UnaryUfuncInfo('log1p',
                   dtypes=all_types_and_complex_and(torch.bool, torch.half, torch.bfloat16),
                   promotes_int_to_float=True,
                   supports_forward_ad=True,
                   ),
    UnaryUfuncInfo('logit',
                   dtypes=all_types_and(torch.bool, torch.half, torch.bfloat16),
                   domain=(0, 1),
                   promotes_int_to_float=True,
                   supports_forward_ad=True,
                   skips=(
                       # The graph writes its result in the type of the output
                       DecorateInfo(unittest.expectedFailure, 'TestCommon', 'test_out', device_type='mps'),
                   ),
                   ),
]
