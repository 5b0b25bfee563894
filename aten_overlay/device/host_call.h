// One call of an operator's CPU kernel with arguments of the device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace porter {

// Gives the kernel tensors over the device's own bytes, so that what it writes to an argument is written, whether or
// not its schema says so. Tensors that share a storage share it there too: views, overlaps and aliases are the CPU's.
class HostCall {
 public:
  // Runs `op` on the last values of the stack and leaves its results, on the device, in their place.
  static void run(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DispatchKey key);

 private:
  struct Storages {
    c10::Storage device, host;
    const void* bytes;  // what `host` began with
  };
  struct Tensors {
    at::Tensor device, host;
  };

  c10::IValue argument(const c10::IValue& value);
  c10::IValue result(const c10::IValue& value);
  at::Tensor host_of(const at::Tensor& tensor);
  at::Tensor device_of(const at::Tensor& tensor);
  c10::Storage host_of(const c10::Storage& storage);
  c10::Storage device_of(const c10::Storage& storage);
  void take_resizes_over();
  void copy_back(const c10::FunctionSchema& schema, const torch::jit::Stack& arguments);

  c10::Device target_ = c10::Device(c10::DeviceType::MPS, 0);
  std::vector<Storages> storages_;
  std::vector<Tensors> tensors_;
};

// Counts `op` as one that fell back, and runs its kernel for `key`, a key of the CPU's. Raises where that is refused.
void run_counted(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DispatchKey key);

}  // namespace porter
