// Command queues, buffers and encoders. A command runs when it is encoded: the device has one queue, in order.
#include <algorithm>
#include <cstring>
#include <utility>
#include <stdexcept>

#include "foundation/text.h"
#include "metal_objects.h"
#include "runtime/objects.h"

using porter::metal::Arguments;
using porter::metal::Binding;
using porter::metal::Size;
using porter::metal::Unit;

static Size size_of(MTLSize size) {
  return {size.width, size.height, size.depth};
}

@class PorterEncoder;

@interface PorterCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  MTLCommandBufferStatus _state;
  std::vector<MTLCommandBufferHandler> _handlers;
  id<MTLCommandQueue> _queue;
  PorterEncoder* _open;  // not retained: each of both tells the other when it goes
  bool _unended;
}
@end

@interface PorterEncoder : NSObject <MTLCommandEncoder> {
 @public
  bool _ended;
  bool _refused;
  PorterCommandBuffer* _buffer;
}
@end

@implementation PorterEncoder
@dynamic label;
static void check_open(PorterEncoder* encoder) {
  if (encoder->_ended) {
    porter::objc::fail("PTR124: a command was encoded after endEncoding");
  }
}
static void leave(PorterEncoder* encoder) {
  if (encoder->_buffer) {
    encoder->_buffer->_open = nil;
    encoder->_buffer = nil;
  }
}
- (void)endEncoding {
  check_open(self);
  _ended = true;
  leave(self);
}
- (void)dealloc {
  if (_buffer && !_refused) {
    _buffer->_unended = true;
  }
  leave(self);
  [super dealloc];
}
- (void)pushDebugGroup:(NSString*)name {
}
- (void)popDebugGroup {
}
- (void)insertDebugSignpost:(NSString*)name {
}
- (void)setLabel:(NSString*)label {
}
- (NSString*)label {
  return @"";
}
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
@end

@interface PorterComputeEncoder : PorterEncoder <MTLComputeCommandEncoder> {
 @public
  const pm_kernel* _kernel;
  Arguments _arguments;
  MTLDispatchType _type;
  std::vector<id<MTLBuffer>> _held;  // a command buffer retains what its encoders bind
}
@end

@implementation PorterComputeEncoder
static Binding& binding_at(PorterComputeEncoder* encoder, NSUInteger index) {
  check_open(encoder);
  if (index >= PM_MAX_BUFFERS) {
    encoder->_refused = true;
    const std::string who = encoder->_kernel ? encoder->_kernel->host_name : "(none set)";
    porter::objc::fail("PTR124: kernel `" + who + "`: buffer index " + std::to_string(index) +
                       " is beyond the argument table, which ends at " + std::to_string(PM_MAX_BUFFERS - 1));
  }
  return encoder->_arguments.bindings[index];
}
static void run(PorterComputeEncoder* encoder, Size threads, Size group) {
  check_open(encoder);
  if (!encoder->_kernel) {
    porter::objc::fail("PTR124: a dispatch without a pipeline state");
  }
  try {
    porter::metal::launch(encoder->_kernel, encoder->_arguments, threads, group);
  } catch (...) {
    encoder->_refused = true;  // its owner is gone by an exception: what comes next is not to blame
    throw;
  }
}
- (void)dealloc {
  for (id<MTLBuffer> buffer : _held) {
    [buffer release];
  }
  [super dealloc];
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  check_open(self);
  _kernel = porter::metal::kernel_of(state);
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  Binding& binding = binding_at(self, index);
  _held.push_back([buffer retain]);
  binding = {buffer ? Binding::Kind::kBuffer : Binding::Kind::kNothing, (const void*)buffer, offset, {}, 0};
}
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index {
  binding_at(self, index).offset = offset;
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  std::vector<Unit> copy(length / sizeof(Unit) + 1);  // no bytes at all are something bound too
  std::memcpy(copy.data(), bytes, length);
  binding_at(self, index) = {Binding::Kind::kBytes, nullptr, 0, std::move(copy), length};
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  check_open(self);
  if (index >= PM_MAX_THREADGROUP_ARGS || length % 16) {
    porter::objc::fail("PTR125: threadgroup memory of " + std::to_string(length) + " bytes at index " +
                       std::to_string(index) + ": it must be a multiple of 16, below index " +
                       std::to_string(PM_MAX_THREADGROUP_ARGS));
  }
  _arguments.threadgroup_bytes[index] = static_cast<uint32_t>(length);
}
- (void)useResource:(id<MTLResource>)resource usage:(MTLResourceUsage)usage {
  std::vector<const void*>& resident = _arguments.resident;
  if (std::find(resident.begin(), resident.end(), (const void*)resource) == resident.end()) {
    resident.push_back((const void*)resource);  // for as long as the encoder lasts, which may be many launches
  }
}
- (void)useResources:(const id<MTLResource>[])resources count:(NSUInteger)count usage:(MTLResourceUsage)usage {
  for (NSUInteger i = 0; i < count; i++) {
    [self useResource:resources[i] usage:usage];
  }
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
}
- (void)dispatchThreads:(MTLSize)threads threadsPerThreadgroup:(MTLSize)group {
  run(self, size_of(threads), size_of(group));
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)group {
  run(self, {groups.width * group.width, groups.height * group.height, groups.depth * group.depth}, size_of(group));
}
- (MTLDispatchType)dispatchType {
  return _type;
}
@end

@interface PorterBlitEncoder : PorterEncoder <MTLBlitCommandEncoder>
@end

@implementation PorterBlitEncoder
- (void)copyFromBuffer:(id<MTLBuffer>)source
          sourceOffset:(NSUInteger)sourceOffset
              toBuffer:(id<MTLBuffer>)destination
     destinationOffset:(NSUInteger)destinationOffset
                  size:(NSUInteger)size {
  check_open(self);
  char* from = porter::metal::bytes_of((const void*)source, sourceOffset, size, "the source of a copy");
  char* to = porter::metal::bytes_of((const void*)destination, destinationOffset, size, "the destination of a copy");
  std::memmove(to, from, size);
}
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  check_open(self);
  std::memset(porter::metal::bytes_of((const void*)buffer, range.location, range.length, "a fill"), value, range.length);
}
@end

extern "C" {
void* _Block_copy(const void* block);
void _Block_release(const void* block);
}

@implementation PorterCommandBuffer
@dynamic label;
static void check_no_encoder(PorterCommandBuffer* buffer, const char* what) {
  if ((buffer->_open && !buffer->_open->_refused) || buffer->_unended) {
    buffer->_unended = false;
    if (buffer->_open) {
      buffer->_open->_refused = true;  // told once
    }
    porter::objc::fail(std::string("PTR124: ") + what + " while an earlier encoder has had no endEncoding");
  }
}
static void begin(PorterCommandBuffer* buffer, PorterEncoder* encoder) {
  if (buffer->_state == MTLCommandBufferStatusCompleted) {
    porter::objc::fail("PTR124: an encoder was made of a command buffer that has been committed");
  }
  check_no_encoder(buffer, "a second encoder was made of a command buffer");
  if (buffer->_open) {
    leave(buffer->_open);
  }
  buffer->_open = encoder;
  encoder->_buffer = buffer;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return [self computeCommandEncoderWithDispatchType:MTLDispatchTypeSerial];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  PorterComputeEncoder* made = [[PorterComputeEncoder new] autorelease];
  made->_type = type;
  begin(self, made);
  return made;
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  PorterBlitEncoder* made = [[PorterBlitEncoder new] autorelease];
  begin(self, made);
  return made;
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  ((id<MTLSharedEvent>)event).signaledValue = value;
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  if (((id<MTLSharedEvent>)event).signaledValue < value) {
    porter::objc::fail("PTR122: a command buffer waits for an event that no earlier command signals");
  }
}
- (void)addScheduledHandler:(MTLCommandBufferHandler)block {
  [self addCompletedHandler:block];
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  _handlers.push_back((MTLCommandBufferHandler)_Block_copy((const void*)block));
}
- (void)enqueue {
}
- (void)commit {
  if (_state == MTLCommandBufferStatusCompleted) {
    porter::objc::fail("PTR124: a command buffer was committed twice");
  }
  check_no_encoder(self, "a command buffer was committed");
  _state = MTLCommandBufferStatusCompleted;
  for (MTLCommandBufferHandler block : std::exchange(_handlers, {})) {
    block(self);
    _Block_release((const void*)block);
  }
}
- (void)dealloc {
  for (MTLCommandBufferHandler block : _handlers) {
    _Block_release((const void*)block);
  }
  if (_open) {
    leave(_open);
  }
  [super dealloc];
}
- (void)waitUntilScheduled {
}
- (void)waitUntilCompleted {
}
- (MTLCommandBufferStatus)status {
  return _state;
}
- (NSError*)error {
  return nil;
}
- (CFTimeInterval)GPUStartTime {
  return 0;
}
- (CFTimeInterval)GPUEndTime {
  return 0;
}
- (CFTimeInterval)kernelStartTime {
  return 0;
}
- (CFTimeInterval)kernelEndTime {
  return 0;
}
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
- (id<MTLCommandQueue>)commandQueue {
  return _queue;
}
- (void)setLabel:(NSString*)label {
}
- (NSString*)label {
  return @"";
}
@end

@interface PorterQueue : NSObject <MTLCommandQueue>
@end

@implementation PorterQueue
@dynamic label;
- (id<MTLCommandBuffer>)commandBuffer {
  PorterCommandBuffer* made = [[PorterCommandBuffer new] autorelease];
  made->_queue = self;
  return made;
}
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences {
  return [self commandBuffer];
}
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
- (void)setLabel:(NSString*)label {
}
- (NSString*)label {
  return @"";
}
@end

id<MTLCommandQueue> porter::metal::make_queue() {
  return [PorterQueue new];
}
