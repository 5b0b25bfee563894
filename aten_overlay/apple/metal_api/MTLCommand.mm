// Command queues, buffers and encoders. A command of torch's default stream runs when it is encoded. One of another stream runs
// when its command buffer is committed, so that nobody sees anything of it before, as on a GPU; one of a program's queue, when
// somebody waits for it, so that who reads its results without waiting reads what was there before.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <stdexcept>

#include "foundation/text.h"
#include "metal_objects.h"
#include "porter_metal.h"
#include "runtime/porter_runtime.h"
#include "runtime/objects.h"
#include "timeline.h"

using porter::metal::Arguments;
using porter::metal::Binding;
using porter::metal::Size;
using porter::metal::Unit;

extern "C" {
void* _Block_copy(const void* block);
void _Block_release(const void* block);
}

@protocol PorterWrapper  // MPSCommandBuffer, which stands before a command buffer
- (id<MTLCommandBuffer>)rootCommandBuffer;
@end

NSString* const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";

static Size size_of(MTLSize size) {
  return {size.width, size.height, size.depth};
}

// An object that a command uses when it runs.
template <class Object>
class Kept {
 public:
  explicit Kept(Object object) : object_([object retain]) {}
  Kept(const Kept& other) : Kept(other.object_) {}
  void operator=(const Kept&) = delete;
  ~Kept() {
    [object_ release];
  }
  Object operator*() const {
    return object_;
  }

 private:
  Object object_;
};

@implementation MTLCommandQueueDescriptor
- (id)init {
  if ((self = [super init])) {
    _maxCommandBufferCount = 64;
  }
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  MTLCommandQueueDescriptor* copied = [MTLCommandQueueDescriptor new];
  copied.maxCommandBufferCount = self.maxCommandBufferCount;
  return copied;
}
@end

@implementation MTLCommandBufferDescriptor
- (id)init {
  if ((self = [super init])) {
    _retainedReferences = YES;
  }
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  MTLCommandBufferDescriptor* copied = [MTLCommandBufferDescriptor new];
  copied.retainedReferences = self.retainedReferences;
  copied.errorOptions = self.errorOptions;
  return copied;
}
@end

@implementation MTLComputePassDescriptor
+ (MTLComputePassDescriptor*)computePassDescriptor {
  return [[self new] autorelease];
}
- (id)copyWithZone:(NSZone*)zone {
  MTLComputePassDescriptor* copied = [MTLComputePassDescriptor new];
  copied.dispatchType = self.dispatchType;
  return copied;
}
@end

@implementation MTLBlitPassDescriptor
+ (MTLBlitPassDescriptor*)blitPassDescriptor {
  return [[self new] autorelease];
}
- (id)copyWithZone:(NSZone*)zone {
  return [MTLBlitPassDescriptor new];
}
@end

static CFTimeInterval seconds_now() {
  return static_cast<double>(clock_gettime_nsec_np(CLOCK_MONOTONIC)) * 1e-9;
}

@class PorterEncoder;

namespace order = porter::metal::order;

// When the commands of a queue run, and where its errors go: a queue that a program makes throws what fails to who waits.
enum class Runs { LateOrThrows, AtCommit, AtOnce };

@interface PorterQueue : NSObject <MTLCommandQueue> {
 @public
  Runs _runs;
  std::shared_ptr<order::Queue> _order;
}
@end

@interface PorterCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  MTLCommandBufferStatus _state;
  std::vector<MTLCommandBufferHandler> _handlers;
  PorterQueue* _queue;
  std::shared_ptr<order::Queue> _order;  // which may be asked for after the queue is gone
  std::unique_ptr<porter::metal::Timeline> _later;  // of a queue that does not run commands at once
  bool _throws;
  bool _signals;  // an event, so that somebody may wait for more than the buffer
  NSError* _error;
  CFTimeInterval _began;
  CFTimeInterval _ended;
  order::Clock _clock;  // once it is complete
  PorterEncoder* _open;  // not retained: each of both tells the other when it goes
  bool _unended;
}
@end

@interface PorterEncoder : NSObject <MTLCommandEncoder> {
 @public
  bool _ended;
  bool _refused;
  PorterCommandBuffer* _buffer;
  order::Place _place;
}
@end

// The encoders that have updated a fence so far; those that wait for it come after them.
@interface PorterFence : NSObject <MTLFence> {
 @public
  std::set<uint64_t> _encoders;
}
@end

@implementation PorterFence
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
@end

id<MTLFence> porter::metal::make_fence() {
  return [PorterFence new];
}

@implementation PorterEncoder
@dynamic label;
static void check_open(PorterEncoder* encoder) {
  if (encoder->_ended) {
    porter::objc::fail("PTR124: a command was encoded after endEncoding");
  }
}
// Where the encoder's commands wait for their commit; null where they run at once.
static porter::metal::Timeline* timeline_of(PorterEncoder* encoder) {
  return encoder->_buffer ? encoder->_buffer->_later.get() : nullptr;
}
// What is compared with commands that would run late has to come after them.
static void run_late_if_watched() {
  const std::string error = order::watched() ? porter::metal::run_late() : "";
  if (!error.empty()) {
    porter::objc::fail(error);
  }
}
static void run_or_defer(PorterEncoder* encoder, const char* name, std::function<void()> command) {
  if (auto* later = timeline_of(encoder)) {
    later->add(std::move(command), name);
  } else {
    run_late_if_watched();
    order::begin(encoder->_place.queue);
    command();
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
- (void)updateFence:(id<MTLFence>)fence {
  auto& encoders = ((PorterFence*)fence)->_encoders;
  encoders.insert(_place.fenced.begin(), _place.fenced.end());
  encoders.insert(_place.encoder);
}
- (void)waitForFence:(id<MTLFence>)fence {
  const auto& encoders = ((PorterFence*)fence)->_encoders;
  _place.fenced.insert(encoders.begin(), encoders.end());
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
  id<MTLComputePipelineState> _pipeline;  // retained
  const pm_kernel* _kernel;
  Arguments _arguments;
  MTLDispatchType _type;
  uint64_t _named_barriers;
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
  Binding& binding = encoder->_arguments.bindings[index];
  binding.block = porter_running_block();
  return binding;
}
static order::Touch touch_of(const char* start, size_t size, const void* buffer, bool writes, const char* what) {
  const auto low = reinterpret_cast<uintptr_t>(start);
  return {low, low + size, !writes, writes, {buffer}, what, low, ""};
}
// `find_threads` says the grid when the kernel runs.
template <typename FindThreads>
static void run(PorterComputeEncoder* encoder, FindThreads find_threads, Size group) {
  check_open(encoder);
  if (!encoder->_kernel) {
    porter::objc::fail("PTR124: a dispatch without a pipeline state");
  }
  porter::metal::announce(encoder->_kernel, group);
  encoder->_arguments.block = porter_running_block();
  if (auto* later = timeline_of(encoder)) {
    later->add([kept = Kept(encoder->_pipeline), kernel = encoder->_kernel, arguments = encoder->_arguments, find_threads,
                group, place = encoder->_place] {
      porter::metal::launch(kernel, arguments, find_threads(place), group, place);
    }, "kernel `" + std::string(encoder->_kernel->host_name) + "`");
    return;
  }
  try {
    run_late_if_watched();
    order::begin(encoder->_place.queue);
    const Size threads = find_threads(encoder->_place);
    porter::metal::launch(encoder->_kernel, encoder->_arguments, threads, group, encoder->_place);
  } catch (...) {
    encoder->_refused = true;  // its owner is gone by an exception: what comes next is not to blame
    throw;
  }
}
- (void)dealloc {
  for (id<MTLBuffer> buffer : _held) {
    [buffer release];
  }
  [_pipeline release];
  [super dealloc];
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  check_open(self);
  if (!state) {
    _refused = true;
    porter::objc::fail("PTR124: setComputePipelineState was given nil" + porter::metal::missing_function());
  }
  _kernel = porter::metal::kernel_of(state);
  [state retain];
  [_pipeline release];
  _pipeline = state;
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  Binding& binding = binding_at(self, index);
  _held.push_back([buffer retain]);
  binding = {buffer ? Binding::Kind::kBuffer : Binding::Kind::kNothing, (const void*)buffer, offset, {}, 0, binding.block};
}
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index {
  binding_at(self, index).offset = offset;
}
- (void)setBuffers:(const id<MTLBuffer>[])buffers offsets:(const NSUInteger[])offsets withRange:(NSRange)range {
  for (NSUInteger i = 0; i < range.length; i++) {
    [self setBuffer:buffers[i] offset:offsets[i] atIndex:range.location + i];
  }
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  constexpr NSUInteger kMost = 4096;
  if (length > kMost) {
    porter::objc::fail("PTR124: setBytes was given " + std::to_string(length) + " bytes at index " +
                       std::to_string(index) + ", and takes " + std::to_string(kMost) + " at most: bind a buffer");
  }
  std::vector<Unit> copy(length / sizeof(Unit) + 1);  // no bytes at all are something bound too
  std::memcpy(copy.data(), bytes, length);
  Binding& binding = binding_at(self, index);
  binding = {Binding::Kind::kBytes, nullptr, 0, std::move(copy), length, binding.block};
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
  check_open(self);
  _place.barriers += (scope & MTLBarrierScopeBuffers) != 0;
}
- (void)memoryBarrierWithResources:(const id<MTLResource>[])resources count:(NSUInteger)count {
  check_open(self);
  _named_barriers++;
  for (NSUInteger i = 0; i < count; i++) {
    _place.resource_barriers[(const void*)resources[i]] = _named_barriers;
  }
}
- (void)dispatchThreads:(MTLSize)threads threadsPerThreadgroup:(MTLSize)group {
  run(self, [grid = size_of(threads)](const order::Place&) { return grid; }, size_of(group));
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)group {
  [self dispatchThreads:MTLSizeMake(groups.width * group.width, groups.height * group.height, groups.depth * group.depth)
      threadsPerThreadgroup:group];
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)buffer
                          indirectBufferOffset:(NSUInteger)offset
                         threadsPerThreadgroup:(MTLSize)group {
  if (!buffer || offset % sizeof(uint32_t) != 0) {
    _refused = true;
    porter::objc::fail("PTR124: an indirect dispatch takes a buffer and an offset that is a multiple of 4; the offset is " +
                       std::to_string(offset) + (buffer ? "" : ", the buffer nil"));
  }
  _held.push_back([buffer retain]);
  const auto read_grid = [address = (const void*)buffer, offset, size = size_of(group)](const order::Place& place) -> Size {
    constexpr size_t kBytes = sizeof(MTLDispatchThreadgroupsIndirectArguments);
    const char* bytes = porter::metal::bytes_of(address, offset, kBytes, "the grid of an indirect dispatch");
    MTLDispatchThreadgroupsIndirectArguments read;
    std::memcpy(&read, bytes, kBytes);
    order::note(place, "an indirect dispatch", {touch_of(bytes, kBytes, address, false, "its grid")});
    const auto& groups = read.threadgroupsPerGrid;
    return {groups[0] * size.x, groups[1] * size.y, groups[2] * size.z};
  };
  run(self, read_grid, size_of(group));
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
  run_or_defer(self, "a copy", [=, source = (const void*)source, destination = (const void*)destination, place = _place] {
    char* from = porter::metal::bytes_of(source, sourceOffset, size, "the source of a copy");
    char* to = porter::metal::bytes_of(destination, destinationOffset, size, "the destination of a copy");
    std::memmove(to, from, size);
    order::note(place, "a copy", {touch_of(from, size, source, false, "its source"),
                                  touch_of(to, size, destination, true, "its destination")});
  });
}
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  check_open(self);
  run_or_defer(self, "a fill", [=, buffer = (const void*)buffer, place = _place] {
    char* to = porter::metal::bytes_of(buffer, range.location, range.length, "a fill");
    std::memset(to, value, range.length);
    order::note(place, "a fill", {touch_of(to, range.length, buffer, true, "its buffer")});
  });
}
// The host and the device see the same bytes here.
- (void)synchronizeResource:(id<MTLResource>)resource {
  check_open(self);
}
@end

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
  if (buffer->_state != MTLCommandBufferStatusNotEnqueued) {
    porter::objc::fail("PTR124: an encoder was made of a command buffer that has been committed");
  }
  check_no_encoder(buffer, "a second encoder was made of a command buffer");
  if (buffer->_open) {
    leave(buffer->_open);
  }
  buffer->_open = encoder;
  encoder->_buffer = buffer;
  encoder->_place.queue = buffer->_order;
  encoder->_place.encoder = order::next_encoder();
  if (buffer->_began == 0) {
    buffer->_began = seconds_now();
  }
}
// Throws what the commands of a program's own queue failed with, once.
static void tell_error(PorterCommandBuffer* buffer) {
  if (buffer->_error && std::exchange(buffer->_throws, false)) {
    porter::objc::fail([[buffer->_error localizedDescription] UTF8String]);
  }
}
static void complete(PorterCommandBuffer* buffer, const std::string& error) {
  if (!error.empty()) {
    NSDictionary* info = @{NSLocalizedDescriptionKey : porter::string(error)};
    buffer->_error = [[NSError errorWithDomain:MTLCommandBufferErrorDomain
                                          code:MTLCommandBufferErrorInternal
                                      userInfo:info] retain];
  }
  buffer->_state = error.empty() ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusError;
  buffer->_ended = seconds_now();
  buffer->_clock = order::completed(buffer->_order);
  if (buffer->_began == 0) {
    buffer->_began = buffer->_ended;
  }
  for (MTLCommandBufferHandler block : std::exchange(buffer->_handlers, {})) {
    block(buffer);
    _Block_release((const void*)block);
  }
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return [self computeCommandEncoderWithDispatchType:MTLDispatchTypeSerial];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  PorterComputeEncoder* made = [[PorterComputeEncoder new] autorelease];
  made->_type = type;
  made->_place.concurrent = type == MTLDispatchTypeConcurrent;
  begin(self, made);
  return made;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:(MTLComputePassDescriptor*)descriptor {
  return [self computeCommandEncoderWithDispatchType:descriptor.dispatchType];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoderWithDescriptor:(MTLBlitPassDescriptor*)descriptor {
  return [self blitCommandEncoder];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  PorterBlitEncoder* made = [[PorterBlitEncoder new] autorelease];
  begin(self, made);
  return made;
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  _signals = true;
  const auto signal_now = [signaled = Kept((id<MTLSharedEvent>)event), value, queue = _order] {
    order::signal(queue, (const void*)*signaled);
    (*signaled).signaledValue = value;
  };
  if (_later) {
    _later->add(signal_now, "an event's signal");
  } else {
    signal_now();
  }
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  const Kept awaited((id<MTLSharedEvent>)event);
  if (_later) {
    _later->add_wait([awaited, value, queue = _order] {
      order::wait(queue, (const void*)*awaited);
      return (*awaited).signaledValue >= value;
    });
    return;
  }
  if ((*awaited).signaledValue < value) {
    porter::metal::advance(/*uncommitted=*/true);  // what comes next runs at once, so what it waits for runs now
  }
  if ((*awaited).signaledValue < value) {
    porter::objc::fail("PTR122: a command buffer waits for an event that no earlier command signals");
  }
  order::wait(_order, (const void*)*awaited);
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
  if (_state != MTLCommandBufferStatusNotEnqueued) {
    porter::objc::fail("PTR124: a command buffer was committed twice");
  }
  check_no_encoder(self, "a command buffer was committed");
  run_late_if_watched();
  order::begin(_order);
  if (!_later) {
    complete(self, "");
    return;
  }
  _state = MTLCommandBufferStatusCommitted;
  // A handler's caller may wait in ways that nobody sees here.
  const bool late = _throws && _handlers.empty() && !_signals;
  _later->commit([buffer = Kept(self)](const std::string& error) { complete(*buffer, error); }, late);
  tell_error(self);
}
- (void)dealloc {
  if (_later && _state == MTLCommandBufferStatusNotEnqueued) {
    _later->warn_of_lost();
  }
  for (MTLCommandBufferHandler block : _handlers) {
    _Block_release((const void*)block);
  }
  if (_open) {
    leave(_open);
  }
  _later.reset();
  [_error release];
  [super dealloc];
}
- (void)waitUntilScheduled {
}
- (void)waitUntilCompleted {
  if (_state == MTLCommandBufferStatusNotEnqueued) {
    porter::objc::fail("PTR124: the host waits for a command buffer that has not been committed, which never ends");
  }
  if (_state == MTLCommandBufferStatusCommitted) {
    _later->hurry();
  }
  if (_state == MTLCommandBufferStatusCommitted) {
    porter::objc::fail("PTR122: a command buffer waits for an event that no committed command signals");
  }
  tell_error(self);
  order::join_host(_clock);
}
- (void)pushDebugGroup:(NSString*)name {
}
- (void)popDebugGroup {
}
- (BOOL)retainedReferences {
  return YES;
}
- (MTLCommandBufferErrorOption)errorOptions {
  return MTLCommandBufferErrorOptionNone;
}
- (MTLCommandBufferStatus)status {
  if (_state == MTLCommandBufferStatusCommitted) {
    _later->hurry();  // who asks again and again waits
  }
  if (_state >= MTLCommandBufferStatusCompleted) {
    order::join_host(_clock);
  }
  return _state;
}
- (NSError*)error {
  return _error;
}
- (CFTimeInterval)GPUStartTime {
  return _began;
}
- (CFTimeInterval)GPUEndTime {
  return _ended;
}
- (CFTimeInterval)kernelStartTime {
  return _began;
}
- (CFTimeInterval)kernelEndTime {
  return _ended;
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

@implementation PorterQueue
@dynamic label;
- (id<MTLCommandBuffer>)commandBuffer {
  PorterCommandBuffer* made = [[PorterCommandBuffer new] autorelease];
  made->_queue = self;
  if (!_order) {
    _order = std::make_shared<order::Queue>();
  }
  made->_order = _order;
  if (_runs != Runs::AtOnce) {
    made->_later = std::make_unique<porter::metal::Timeline>((const void*)self);
    made->_throws = _runs == Runs::LateOrThrows;
  }
  return made;
}
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences {
  return [self commandBuffer];
}
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor*)descriptor {
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

static PorterCommandBuffer* root_of(void* buffer) {
  id commands = (id)buffer;
  return [commands respondsToSelector:@selector(rootCommandBuffer)] ? [commands rootCommandBuffer] : commands;
}

extern "C" {

void porter_keep_errors(void* queue) {
  ((PorterQueue*)queue)->_runs = Runs::AtCommit;
}

void porter_run_at_once(void* queue) {
  ((PorterQueue*)queue)->_runs = Runs::AtOnce;
}

void porter_run_encoded(void* buffer) {
  PorterCommandBuffer* commands = root_of(buffer);
  if (commands && commands->_later) {
    commands->_later->finish();
  }
}

void porter_check_read(void* buffer, const void* address, size_t size) {
  PorterCommandBuffer* commands = root_of(buffer);
  if (commands && order::watched()) {
    run_late_if_watched();
    const auto low = reinterpret_cast<uintptr_t>(address);
    order::check_read(commands->_order, low, low + size);
  }
}

int porter_finish_encoded(void* buffer) {
  try {
    porter_run_encoded(buffer);
    return 0;
  } catch (const std::exception& error) {
    porter_set_error(error.what());
    return 1;
  }
}

void porter_run_late(void) {
  const std::string error = porter::metal::run_late();
  if (!error.empty()) {
    std::fprintf(stderr, "porter: %s\n", error.c_str());
  }
}

}  // extern "C"
