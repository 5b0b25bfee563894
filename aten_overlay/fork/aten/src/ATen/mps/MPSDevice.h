// The one MPS device, and the versions of macOS that operators ask about.
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
  MACOS_VER_14_4_PLUS = 0,
  MACOS_VER_15_0_PLUS,
  MACOS_VER_26_0_PLUS
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
bool is_macos_13_or_newer(MacOSVersion version);
at::Allocator* GetMPSAllocator();

} // namespace at::mps
