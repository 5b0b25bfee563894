#include "fallback.h"

#include "device.h"
#include "stream.h"
#include "host_call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/enum_tag.h>
#include <ATen/mps/MPSGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sub.h>
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

// The CPU's own default generator, seeded from the device's while an operator that takes no generator runs. Where it
// draws no number, as attention without dropout, the device's stream stays where it was.
class BorrowedDefaultGenerator {
 public:
  BorrowedDefaultGenerator()
      : generator_(at::detail::getDefaultCPUGenerator()),
        device_(at::mps::detail::getDefaultMPSGenerator()),
        saved_(generator_.get_state()),
        before_(device_.get_state()) {
    generator_.set_state(host_generator(device_).get_state());
    seeded_ = generator_.get_state();
  }
  BorrowedDefaultGenerator(const BorrowedDefaultGenerator&) = delete;
  BorrowedDefaultGenerator& operator=(const BorrowedDefaultGenerator&) = delete;
  ~BorrowedDefaultGenerator() {
    const at::Tensor after = generator_.get_state();
    if (std::memcmp(after.const_data_ptr(), seeded_.const_data_ptr(), seeded_.nbytes()) == 0) {
      device_.set_state(before_);
    }
    generator_.set_state(saved_);
  }

 private:
  at::Generator generator_, device_;
  at::Tensor saved_, before_, seeded_;
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

bool on_host(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && tensor.dim() != 0;
}

// An operator of one tensor on the device and one on the host is refused, as it is where the two do not share memory.
// Lists of optional tensors are indices, which may lie on the host.
void check_devices(const torch::jit::Stack& stack, size_t count) {
  const auto arguments = torch::jit::last(stack, count);
  const bool mixed = std::any_of(arguments.begin(), arguments.end(), [](const c10::IValue& value) {
    if (value.isTensorList()) {
      const auto list = value.toTensorVector();
      return std::any_of(list.begin(), list.end(), on_host);
    }
    return value.isTensor() && on_host(value.toTensor());
  });
  TORCH_CHECK(!mixed, "Expected all tensors to be on the same device, but found at least two devices, mps:0 and cpu!");
}

// A view launches nothing: what it returns is an argument's memory, unchanged.
bool is_view(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return !returns.empty() && std::all_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
    return result.alias_info() && !result.alias_info()->isWrite();
  });
}

// An operator of the host reads all of its arguments but those that it writes.
void check_written_arguments(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  const auto values = torch::jit::last(stack, schema.arguments().size());
  for (size_t i = 0; i < values.size(); i++) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias && alias->isWrite()) {
      continue;
    }
    if (values[i].isTensor()) {
      check_written(values[i].toTensor());
    } else if (values[i].isTensorList()) {
      for (const at::Tensor& tensor : values[i].toTensorVector()) {
        check_written(tensor);
      }
    }
  }
}

// Runs `op` on the CPU with the arguments of `asked`, which is what gets counted.
void run(const c10::OperatorHandle& asked, const c10::OperatorHandle& op, torch::jit::Stack* stack,
    c10::DispatchKey key = c10::DispatchKey::CPU) {
  TORCH_CHECK_NOT_IMPLEMENTED(!refused, "The operator '", c10::toString(asked.operator_name()),
      "' is not currently implemented for the MPS device.");
  check_devices(*stack, op.schema().arguments().size());
  if (!is_view(op.schema())) {
    check_written_arguments(op.schema(), *stack);
  }
  count(asked);
  std::optional<BorrowedDefaultGenerator> borrowed;
  if (!replace_generator(op, stack) && op.hasTag(at::Tag::nondeterministic_seeded)) {
    borrowed.emplace();
  }
  HostCall::run(op, stack, key);
  if (op.hasTag(at::Tag::nondeterministic_seeded)) {  // a graph draws the numbers (Distributions.mm)
    porter_end_encoder();
  } else if (!is_view(op.schema())) {
    porter_open_encoder();
  }
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run(op, op, stack);
}

// Lays out a result as the meta functions of other devices than the CPU say, where the CPU keeps channels last.
void run_contiguous(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run(op, op, stack);
  stack->back() = stack->back().toTensor().contiguous();
}

// The bag of each index, which the CPU does not return where it needs none, no maxima where none are asked for, and a size
// for each offset: so says the meta function of other devices (meta_embedding_bag in torch/_meta_registrations.py).
void run_embedding_bag(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const at::Tensor indices = arguments[1].toTensor(), offsets = arguments[2].toTensor();
  constexpr int64_t kMax = 2;
  const int64_t mode = arguments[4].toInt();
  run(op, op, stack);
  c10::IValue& maxima = stack->back();
  c10::IValue& sizes = (*stack)[stack->size() - 2];
  c10::IValue& bags = (*stack)[stack->size() - 3];
  if (mode != kMax) {
    maxima = indices.new_empty({0});
  }
  if (const int64_t missing = offsets.numel() - sizes.toTensor().numel()) {
    sizes = at::constant_pad_nd(sizes.toTensor(), {0, missing});
  }
  if (bags.toTensor().numel() == 0 && indices.numel() != 0) {
    const at::Tensor places = at::arange(indices.numel(), offsets.options());
    const at::Tensor bag = at::searchsorted(offsets, places, /*out_int32=*/false, /*right=*/true).sub(1);
    bags = bag.to(bags.toTensor().scalar_type());
  }
}

// Operators that ATen chooses for the device alone, and what the CPU calls them.
struct Twin {
  const char* device;
  const char* host;
};
constexpr Twin kTwins[] = {
    {"convolution_overrideable", "convolution"},
    {"convolution_backward_overrideable", "convolution_backward"},
    {"_scaled_dot_product_attention_math_for_mps", "_scaled_dot_product_attention_math"},
};

c10::OperatorHandle twin_of(const c10::OperatorHandle& op) {
  const std::string prefix = "aten::";
  const auto found = std::find_if(std::begin(kTwins), std::end(kTwins),
      [&](const Twin& twin) { return op.schema().name() == prefix + twin.device; });
  TORCH_INTERNAL_ASSERT(found != std::end(kTwins));
  return c10::Dispatcher::singleton().findSchemaOrThrow((prefix + found->host).c_str(), "");
}

// The arguments again in the order of another schema, matched by name: what it alone has gets its default.
torch::jit::Stack rearranged(
    const c10::FunctionSchema& from, const c10::FunctionSchema& to, const torch::jit::Stack& stack) {
  const size_t first = stack.size() - from.arguments().size();
  torch::jit::Stack result;
  for (const c10::Argument& argument : to.arguments()) {
    const auto index = from.argumentIndexWithName(argument.name());
    result.push_back(index ? stack[first + *index] : argument.default_value().value_or(c10::IValue()));
  }
  return result;
}

void run_twin(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (run_own_convolution(op, stack)) {
    return;
  }
  if (const char* own = own_convolution(op, *stack)) {
    count(c10::Dispatcher::singleton().findSchemaOrThrow(own, ""));  // which a fork's code would run
  }
  const auto twin = twin_of(op);
  auto arguments = rearranged(op.schema(), twin.schema(), *stack);
  torch::jit::drop(*stack, op.schema().arguments().size());
  run(op, twin, &arguments);
  stack->insert(stack->end(), arguments.begin(), arguments.end());
}

}  // namespace

void run_counted(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DispatchKey key) {
  run(op, op, stack, key);
}

namespace {

TORCH_LIBRARY_IMPL(_, MPS, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

// Operators that Apple and the CPU have kernels for and ATen also composes of others, which round 16-bit types on the
// way: the CPU's kernel is closer to Apple's. tests/aten_overlay/device/inside/check_composed.py reads them from the rows.
constexpr const char* kNotComposed[] = {
    "addr", "addr.out", "mish_backward", "native_group_norm", "native_layer_norm", "silu_backward"};

// Those whose results are laid out as the meta functions of other devices say.
// tests/aten_overlay/device/inside/check_meta_functions.py compares them.
constexpr const char* kContiguous[] = {"max_unpool2d"};
constexpr const char* kBags[] = {"_embedding_bag", "_embedding_bag_forward_only"};

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  for (const char* name : kNotComposed) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  }
  for (const char* name : kContiguous) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_contiguous>());
  }
  for (const char* name : kBags) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_embedding_bag>());
  }
  for (const Twin& twin : kTwins) {
    m.impl(twin.device, torch::CppFunction::makeFromBoxedFunction<&run_twin>());
  }
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
