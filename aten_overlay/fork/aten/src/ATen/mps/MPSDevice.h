// The one MPS device, and what operators ask about: the version of macOS, the
// family of the GPU.
#pragma once
#ifdef __OBJC__
#include <Metal/Metal.h>
typedef id<MTLDevice> MTLDevice_t;
#else
typedef void* MTLDevice_t;
#endif

#include <c10/core/Allocator.h>

namespace at::mps {

enum class MacOSVersion : uint32_t {
  MACOS_15_0 = 0,
  MACOS_15_2,
  MACOS_26_0,
  MACOS_26_4
};

// As Metal numbers them.
enum class AppleGPUFamily : uint32_t {
  APPLE_7_PLUS = 1007,
  APPLE_9_PLUS = 1009
};

class MPSDevice {
 public:
  ~MPSDevice();
  static MPSDevice* getInstance();
  bool isMacOS13Plus(MacOSVersion version) const;
  MTLDevice_t device() {
    return _mtl_device;
  }

 private:
  MPSDevice();
  static MPSDevice* _device;
  MTLDevice_t _mtl_device;
};

bool is_available();
bool is_macos_at_least(MacOSVersion version);
bool is_apple_family_or_newer(AppleGPUFamily family);
at::Allocator* GetMPSAllocator();

} // namespace at::mps
