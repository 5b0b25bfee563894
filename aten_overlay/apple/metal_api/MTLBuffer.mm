// Buffers are addresses of the device: `PorterBuffer` has the methods that the runtime finds for such an address.
#include <Metal/Metal.h>

#include <map>
#include <mutex>

#include "memory/memory.h"
#include "metal_objects.h"
#include "runtime/objects.h"

namespace {

struct Buffer {
  int64_t references;
  MTLResourceOptions options;
};

// Buffers that the device made for itself count their references; a tensor's storage belongs to its allocator.
struct Owned {
  std::mutex mutex;
  std::map<void*, Buffer> buffers;
};

Owned& owned() {
  static auto& value = *new Owned;
  return value;
}

constexpr MTLResourceOptions kStorageModes = 0xF0;

// What a buffer was made with. A tensor's storage is shared.
MTLResourceOptions options_of(void* address) {
  std::lock_guard lock(owned().mutex);
  const auto found = owned().buffers.find(address);
  return found == owned().buffers.end() ? MTLResourceStorageModeShared : found->second.options;
}

}  // namespace

static id<MTLBuffer> own(void* address, MTLResourceOptions options) {
  if (!address) {
    return nil;
  }
  if (options & MTLResourceHazardTrackingModeUntracked) {
    porter::metal::order::untrack(address);
  }
  std::lock_guard lock(owned().mutex);
  owned().buffers[address] = {1, options};
  return (id<MTLBuffer>)address;
}

id<MTLBuffer> porter::metal::make_buffer(size_t length, MTLResourceOptions options) {
  return own(porter_device_alloc(length), options);
}

id<MTLBuffer> porter::metal::make_alias(void* bytes, size_t length, MTLResourceOptions options) {
  void* address = porter_device_alias(bytes, length);
  if (address) {
    order::add_alias(address);
  }
  return own(address, options);
}

@interface PorterBuffer : NSObject <MTLBuffer>
@end

@implementation PorterBuffer
@dynamic label;
- (instancetype)retain {
  std::lock_guard lock(owned().mutex);
  const auto found = owned().buffers.find((void*)self);
  if (found != owned().buffers.end()) {
    found->second.references++;
  }
  return self;
}
- (oneway void)release {
  std::lock_guard lock(owned().mutex);
  const auto found = owned().buffers.find((void*)self);
  if (found != owned().buffers.end() && --found->second.references == 0) {
    owned().buffers.erase(found);
    porter_device_free((void*)self);
  }
}
- (NSUInteger)retainCount {
  std::lock_guard lock(owned().mutex);
  const auto found = owned().buffers.find((void*)self);
  return found == owned().buffers.end() ? 1 : (NSUInteger)found->second.references;
}
- (void*)contents {
  if ([self storageMode] == MTLStorageModePrivate) {
    porter::objc::fail(
        "PTR124: the contents of a buffer in private storage were requested, which are nil on a Mac: copy it to a "
        "shared one");
  }
  return porter_host_address((void*)self);
}
- (NSUInteger)length {
  size_t size = 0;
  if (!porter_allocation((void*)self, &size)) {
    porter::objc::fail("PTR124: the length of a freed buffer was requested");
  }
  return size;
}
- (NSUInteger)allocatedSize {
  return [self length];
}
// What a kernel can follow from within another buffer: the host's address of the same bytes.
- (uint64_t)gpuAddress {
  return (uint64_t)porter_host_address((void*)self);
}
- (void)didModifyRange:(NSRange)range {
}
- (void)addDebugMarker:(NSString*)marker range:(NSRange)range {
}
- (void)removeAllDebugMarkers {
}
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state {
  return MTLPurgeableStateNonVolatile;
}
- (void)setLabel:(NSString*)label {
}
- (NSString*)label {
  return @"";
}
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
- (id<MTLHeap>)heap {
  return nil;
}
- (MTLStorageMode)storageMode {
  return MTLStorageMode((options_of((void*)self) & kStorageModes) >> 4);
}
- (MTLCPUCacheMode)cpuCacheMode {
  return MTLCPUCacheMode(options_of((void*)self) & MTLResourceCPUCacheModeWriteCombined);
}
- (MTLHazardTrackingMode)hazardTrackingMode {
  return porter::metal::order::is_untracked((const void*)self) ? MTLHazardTrackingModeUntracked
                                                               : MTLHazardTrackingModeTracked;
}
- (MTLResourceOptions)resourceOptions {
  return options_of((void*)self);
}
@end
