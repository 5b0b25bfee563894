// Runs what AOTInductor compiled for mps (`torch._inductor.aoti_load_package`): a Linux wheel has no runner for it. What a
// package calls (torch/csrc/inductor/aoti_torch/c/shim_mps.h) is built when the first one is loaded.

#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

#include <string>

namespace {

// Loads what packages call; returns why it could not, or null.
using Prepare = const char* (*)();
Prepare prepare = nullptr;

struct Runner final : torch::inductor::AOTIModelContainerRunner {
  Runner(const std::string& library, size_t models, bool run_single_threaded)
      : AOTIModelContainerRunner(library, models, "mps", "", run_single_threaded) {}
};

std::unique_ptr<torch::inductor::AOTIModelContainerRunner> make_runner(
    const std::string& library,
    size_t models,
    const std::string& device,
    const std::string& /*cubins*/,
    const bool run_single_threaded) {
  TORCH_CHECK(device == "mps" || device == "mps:0", "there is no device ", device);
  const char* reason = prepare();
  TORCH_CHECK(reason == nullptr, reason);
  return std::make_unique<Runner>(library, models, run_single_threaded);
}

} // namespace

extern "C" __attribute__((visibility("default"))) void porter_serve_packages(Prepare function) {
  prepare = function;
  torch::inductor::getAOTIModelRunnerRegistry()["mps"] = make_runner;
}
