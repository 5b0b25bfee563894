#pragma once

#include <ATen/native/DispatchStub.h>
#include <c10/core/Scalar.h>

namespace at {
struct TensorIteratorBase;
}

namespace at::native {

using lerp_fn_scalar =
    void (*)(at::TensorIteratorBase& iter, const Scalar& weight);

DECLARE_DISPATCH(lerp_fn_scalar, lerp_kernel_scalar_weight)

} // namespace at::native
