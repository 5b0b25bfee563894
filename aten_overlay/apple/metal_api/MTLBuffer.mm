// Buffers are addresses of the device: `PorterBuffer` has the methods that the runtime finds for such an address.
#include <Metal/Metal.h>

#include <map>
#include <mutex>

#include "memory/memory.h"
#include "metal_objects.h"
#include "runtime/objects.h"

namespace {

// Buffers that the device made for itself count their references; a tensor's storage belongs to its allocator.
struct Owned {
  std::mutex mutex;
  std::map<void*, int64_t> references;
};

Owned& owned() {
  static auto& value = *new Owned;
  return value;
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
  owned().references[address] = 1;
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
  const auto found = owned().references.find((void*)self);
  if (found != owned().references.end()) {
    found->second++;
  }
  return self;
}
- (oneway void)release {
  std::lock_guard lock(owned().mutex);
  const auto found = owned().references.find((void*)self);
  if (found != owned().references.end() && --found->second == 0) {
    owned().references.erase(found);
    porter_device_free((void*)self);
  }
}
- (NSUInteger)retainCount {
  std::lock_guard lock(owned().mutex);
  const auto found = owned().references.find((void*)self);
  return found == owned().references.end() ? 1 : (NSUInteger)found->second;
}
- (void*)contents {
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
  return MTLStorageModeShared;
}
- (MTLHazardTrackingMode)hazardTrackingMode {
  return porter::metal::order::is_untracked((const void*)self) ? MTLHazardTrackingModeUntracked
                                                               : MTLHazardTrackingModeTracked;
}
- (MTLResourceOptions)resourceOptions {
  return MTLResourceStorageModeShared;
}
@end
