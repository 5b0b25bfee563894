// One iterator for each result. An input that shares memory with a result is copied: what computes a result must not
// read what another one has written.
static std::vector<TensorIterator> split_results(TensorIteratorBase& iter) {
  std::vector<Tensor> inputs;
  for (const auto at : c10::irange(iter.ninputs())) {
    inputs.push_back(iter.input(at));
    for (const auto result : c10::irange(iter.noutputs())) {
      if (at::get_overlap_status(iter.output(result), iter.input(at)) != MemOverlapStatus::No) {
        inputs[at] = iter.input(at).clone();
      }
    }
  }
  std::vector<TensorIterator> results;
  for (const auto result : c10::irange(iter.noutputs())) {
    TensorIteratorConfig config;
    config.check_all_same_dtype(false).promote_inputs_to_common_dtype(true).add_owned_output(iter.output(result));
    for (const auto& input : inputs) {
      config.add_owned_const_input(input);
    }
    results.push_back(config.build());
  }
  return results;
}
