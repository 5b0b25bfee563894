// A row for host code of MPS that only C++ compiled into the wheel would call: without a weight it is one of ones.
#include <ATen/native/mps/operations/RMSNorm.h>
#include <ATen/ops/ones.h>
#include <limits>

namespace at::native {

Tensor rms_norm_on_mps_symint(
    const Tensor& input,
    c10::SymIntArrayRef normalized_shape,
    const std::optional<Tensor>& weight,
    std::optional<double> eps) {
  const Tensor scale = weight.has_value() ? *weight : at::ones_symint(normalized_shape, input.options());
  return mps::rms_norm_mps_kernel(
      input.contiguous(), normalized_shape, scale.contiguous(), eps.value_or(std::numeric_limits<double>::epsilon()));
}

} // namespace at::native
