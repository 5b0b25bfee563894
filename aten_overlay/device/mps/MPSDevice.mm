// at::mps::MPSDevice over the stand-in's Metal device.
#include <ATen/mps/MPSDevice.h>

#include "versions.h"

namespace at::mps {

MPSDevice* MPSDevice::_device = nullptr;

MPSDevice::MPSDevice() : _mtl_device(MTLCreateSystemDefaultDevice()) {}

MPSDevice::~MPSDevice() = default;

MPSDevice* MPSDevice::getInstance() {
  static auto* instance = new MPSDevice();
  return instance;
}

// Every version that the headers name, unless an older one was asked for: the newest wins.
bool MPSDevice::isMacOS13Plus(MacOSVersion version) const {
  return static_cast<uint32_t>(version) <= porter::newest_version();
}

#ifdef PORTER_DEVICE_NAMES
std::string MPSDevice::getName() const {
  return [[_mtl_device name] UTF8String];
}

unsigned MPSDevice::getCoreCount() const {
  return 8;  // as torch._C._mps_get_core_count says in device/bindings.py
}
#endif

bool is_available() {
  return true;
}

#ifdef PORTER_MACOS_AT_LEAST
bool is_macos_at_least(MacOSVersion version) {
  return MPSDevice::getInstance()->isMacOS13Plus(version);
}
#else
bool is_macos_13_or_newer(MacOSVersion version) {
  return MPSDevice::getInstance()->isMacOS13Plus(version);
}
#endif

#ifdef PORTER_GPU_FAMILIES
bool is_apple_family_or_newer(AppleGPUFamily family) {
  return [MPSDevice::getInstance()->device() supportsFamily:static_cast<MTLGPUFamily>(family)];
}
#endif

#ifdef PORTER_LANGUAGE_VERSIONS
MetalLanguageVersion metal_language_version() {
  return MetalLanguageVersion::METAL_3_1;  // what kernels are compiled as here
}
#endif

#ifdef PORTER_MPP
bool has_mpp() {
  return false;  // nothing stands in for MetalPerformancePrimitives
}
#endif

at::Allocator* GetMPSAllocator(bool) {
  return c10::GetAllocator(c10::DeviceType::MPS);
}

at::Allocator* GetMPSAllocator() {
  return GetMPSAllocator(false);
}

}  // namespace at::mps
