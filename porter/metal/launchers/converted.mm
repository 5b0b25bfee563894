// Launches kernels whose results have the type that the operands are promoted to. An `out=` of another type gets these
// converted: the library of kernels looks for one that writes the type of its output, and there is none.
template <typename Launch>
static void launch_converted(TensorIteratorBase& iter, const Launch& launch) {
  const auto promoted = iter.common_dtype();
  const auto common = promoted == kDouble ? kFloat : promoted == kComplexDouble ? kComplexFloat : promoted;
  const Tensor output = iter.output(0);
  if (output.scalar_type() == common) {
    launch(iter);
    return;
  }
  TORCH_CHECK_TYPE(output.scalar_type() != kDouble, "MPS does not support float64: use float32");
  const Tensor result = output.new_empty(output.sizes(), output.options().dtype(common));
  TensorIteratorConfig config;
  config.add_owned_output(result);
  for (const auto at : c10::irange(iter.ninputs())) {
    config.add_owned_const_input(iter.input(at));
  }
  config.allow_cpu_scalars(true).promote_inputs_to_common_dtype(true).resize_outputs(false);
  auto converted = config.promote_integer_inputs_to_float(isFloatingType(common)).build();
  launch(converted);
  output.copy_(result);
}
