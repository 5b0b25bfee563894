// Symbols that come before libtorch_cpu's own: load this library with RTLD_GLOBAL before torch.
//
// Linux builds of libtorch compile the MPS case out of the stub look-ups, and builds with CUDA claim an accelerator
// even without a GPU. Both are reached through the PLT, so the definitions here win and hand every other case on.
#define HAVE_AVX2_CPU_DEFINITION
#define HAVE_AVX512_CPU_DEFINITION
#include <ATen/DeviceAccelerator.h>
#include <ATen/native/DispatchStub.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

extern "C" {
// Stub look-ups that came through here: proof that the interposition works.
__attribute__((visibility("default"))) std::atomic<unsigned long> porter_stub_lookups{0};
// Set once the device is registered: until then the library's own answer stands.
__attribute__((visibility("default"))) std::atomic<int> porter_device_ready{0};
}

namespace {

template <class Function>
Function next(const char* symbol) {
  void* library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  void* found = library ? dlsym(library, symbol) : nullptr;
  if (found == nullptr) {
    std::fprintf(stderr, "porter: libtorch_cpu.so does not define %s\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace

namespace at::native {

void* DispatchStubImpl::get_call_ptr(c10::DeviceType device, void* standard, void* avx2, void* avx512) {
  ++porter_stub_lookups;
  if (device == c10::DeviceType::MPS && mps_dispatch_ptr != nullptr) {
    return mps_dispatch_ptr;
  }
  using Function = void* (*)(DispatchStubImpl*, c10::DeviceType, void*, void*, void*);
  static const auto function =
      next<Function>("_ZN2at6native16DispatchStubImpl12get_call_ptrEN3c1010DeviceTypeEPvS4_S4_");
  return function(this, device, standard, avx2, avx512);
}

DispatchResult DispatchStubImpl::try_get_call_ptr(c10::DeviceType device, void* standard, void* avx2, void* avx512) {
  ++porter_stub_lookups;
  if (device == c10::DeviceType::MPS) {
    if (mps_dispatch_ptr != nullptr) {
      return mps_dispatch_ptr;
    }
    return ErrorType::MissingDeviceKernel;
  }
  using Function = DispatchResult (*)(DispatchStubImpl*, c10::DeviceType, void*, void*, void*);
  static const auto function =
      next<Function>("_ZN2at6native16DispatchStubImpl16try_get_call_ptrEN3c1010DeviceTypeEPvS4_S4_");
  return function(this, device, standard, avx2, avx512);
}

}  // namespace at::native

namespace at::accelerator {

std::optional<c10::DeviceType> getAccelerator(bool checked) {
  if (porter_device_ready) {
    return c10::DeviceType::MPS;
  }
  using Function = std::optional<c10::DeviceType> (*)(bool);
  static const auto function = next<Function>("_ZN2at11accelerator14getAcceleratorEb");
  return function(checked);
}

}  // namespace at::accelerator
