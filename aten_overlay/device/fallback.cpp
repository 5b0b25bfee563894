#include "fallback.h"

#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/enum_tag.h>
#include <ATen/mps/MPSGeneratorImpl.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace porter {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, size_t> calls;
};

Counts& counts() {
  static auto* instance = new Counts();
  return *instance;
}

std::atomic<bool> refused{false};

void count(const c10::OperatorHandle& op) {
  std::lock_guard<std::mutex> lock(counts().mutex);
  ++counts().calls[c10::toString(op.operator_name())];
}

// The CPU's own default generator, seeded from the device's while an operator that takes no generator runs.
class BorrowedDefaultGenerator {
 public:
  BorrowedDefaultGenerator() : generator_(at::detail::getDefaultCPUGenerator()), saved_(generator_.get_state()) {
    generator_.set_state(host_generator(at::mps::detail::getDefaultMPSGenerator()).get_state());
  }
  BorrowedDefaultGenerator(const BorrowedDefaultGenerator&) = delete;
  BorrowedDefaultGenerator& operator=(const BorrowedDefaultGenerator&) = delete;
  ~BorrowedDefaultGenerator() {
    generator_.set_state(saved_);
  }

 private:
  at::Generator generator_;
  at::Tensor saved_;
};

bool takes_generator(const c10::Argument& argument) {
  const auto& type = argument.type();
  if (type->kind() == c10::TypeKind::OptionalType) {
    return type->expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::GeneratorType;
  }
  return type->kind() == c10::TypeKind::GeneratorType;
}

// Gives the CPU kernel a CPU generator in place of the device's. Returns whether the operator takes one.
bool replace_generator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto found = std::find_if(arguments.begin(), arguments.end(), takes_generator);
  if (found == arguments.end()) {
    return false;
  }
  c10::IValue& value = (*stack)[stack->size() - arguments.size() + (found - arguments.begin())];
  value = host_generator(value.isNone() ? at::mps::detail::getDefaultMPSGenerator() : value.toGenerator());
  return true;
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(!refused, "The operator '", c10::toString(op.operator_name()),
      "' is not currently implemented for the MPS device.");
  count(op);
  std::optional<BorrowedDefaultGenerator> borrowed;
  if (!replace_generator(op, stack) && op.hasTag(at::Tag::nondeterministic_seeded)) {
    borrowed.emplace();
  }
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, MPS, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

}  // namespace
}  // namespace porter

extern "C" {

size_t porter_fallback_counts(char* text, size_t size) {
  auto& counts = porter::counts();
  std::lock_guard<std::mutex> lock(counts.mutex);
  std::string lines;
  for (const auto& [name, calls] : counts.calls) {
    lines += name + " " + std::to_string(calls) + "\n";
  }
  if (size != 0) {
    const size_t written = std::min(size - 1, lines.size());
    std::memcpy(text, lines.data(), written);
    text[written] = 0;
  }
  return lines.size() + 1;
}

void porter_fallback_reset(void) {
  std::lock_guard<std::mutex> lock(porter::counts().mutex);
  porter::counts().calls.clear();
}

void porter_fallback_refuse(int refuse) {
  porter::refused = refuse != 0;
}

}  // extern "C"
