#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "memory/memory.h"
#include "foundation/text.h"
#include "metal_objects.h"
#include "runtime/objects.h"
#include "timeline.h"

extern "C" const void* porter_dispatch_data(dispatch_data_t data, size_t* size);

extern "C" {
void* _Block_copy(const void* block);
void _Block_release(const void* block);
}

@interface PorterEvent : NSObject <MTLSharedEvent> {
  std::atomic<uint64_t> _value;
  std::multimap<uint64_t, MTLSharedEventNotificationBlock> _listeners;
}
@end

@implementation PorterEvent
@dynamic label;
- (void)setLabel:(NSString*)label {
}
- (NSString*)label {
  return @"";
}
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
- (uint64_t)signaledValue {
  return _value;
}
- (void)setSignaledValue:(uint64_t)value {
  porter::metal::order::signal(nullptr, (const void*)self);
  _value = value;
  while (!_listeners.empty() && _listeners.begin()->first <= value) {
    MTLSharedEventNotificationBlock block = _listeners.begin()->second;
    _listeners.erase(_listeners.begin());
    block(self, value);
    _Block_release((const void*)block);
  }
  porter::metal::advance();
}
- (void)notifyListener:(MTLSharedEventListener*)listener
               atValue:(uint64_t)value
                 block:(MTLSharedEventNotificationBlock)block {
  if (_value >= value) {
    porter::metal::order::wait(nullptr, (const void*)self);
    block(self, _value);
  } else if (porter::metal::any_waiting()) {
    _listeners.emplace(value, (MTLSharedEventNotificationBlock)_Block_copy((const void*)block));
  } else {
    porter::objc::fail("PTR122: a listener waits for an event that no earlier command signals");
  }
}
- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds {
  if (_value < value) {
    porter::metal::advance();
  }
  if (_value < value) {
    porter::objc::fail("PTR122: the host waits for an event that no committed command signals");
  }
  porter::metal::order::wait(nullptr, (const void*)self);
  return YES;
}
- (void)dealloc {
  for (const auto& [value, block] : _listeners) {
    _Block_release((const void*)block);
  }
  [super dealloc];
}
@end

@implementation MTLSharedEventListener
@end

@implementation MTLHeapDescriptor
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
@end

@implementation MTLCaptureDescriptor
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
@end

@implementation MTLCaptureManager
+ (MTLCaptureManager*)sharedCaptureManager {
  static MTLCaptureManager* value = [MTLCaptureManager new];
  return value;
}
- (BOOL)supportsDestination:(MTLCaptureDestination)destination {
  return NO;
}
- (BOOL)isCapturing {
  return NO;
}
@end

// The lines that define a library's macros; the source after them keeps its own line numbers.
// Whether a library is what porter's own `metallib` wrote (apple/offline.py).
static bool is_source(const std::string& library) {
  return library.starts_with("// A Metal library of porter: source");
}
static std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
static std::string defines(MTLCompileOptions* options) {
  // `safe` is what the overlay computes by itself, and leaves `--arithmetic fast` to the user: it needs no pragma.
  const MTLMathMode mode = options ? options.mathMode : MTLMathModeFast;
  std::string text;
  if (mode != MTLMathModeSafe) {
    text = std::string("#pragma METAL fp math_mode(") + (mode == MTLMathModeFast ? "fast" : "relaxed") + ")\n";
  }
  for (NSString* name in [options.preprocessorMacros allKeys]) {
    const id value = [options.preprocessorMacros objectForKey:name];
    text += "#define " + porter::text(name) + " " + porter::text([value description]) + "\n";
  }
  return text.empty() ? text : text + "#line 1\n";
}

// The newest of Apple's families that the one asked for includes, and whether it has Metal 3 (metal/family.py).
static MTLGPUFamily newest_family() {
  const char* name = std::getenv("PORTER_FAMILY");
  int number = 0;
  if (name == nullptr || std::strcmp(name, "") == 0) return MTLGPUFamilyApple9;
  return static_cast<MTLGPUFamily>(1000 + (std::sscanf(name, "apple%d", &number) == 1 ? number : 5));
}

@implementation MTLArchitecture
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
// As Apple names them: generation 13 is family 7, M1, and so on; there is no family of generation 16 alone.
- (NSString*)name {
  const int family = static_cast<int>(newest_family() - MTLGPUFamilyApple1) + 1;
  return porter::string("applegpu_g" + std::to_string(family + (family < 10 ? 6 : 7)) + "s");
}
@end

@interface PorterDevice : NSObject <MTLDevice>
@end

@implementation PorterDevice
- (NSString*)name {
  return @"porter stand-in";
}
- (BOOL)hasUnifiedMemory {
  return YES;
}
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  const MTLGPUFamily newest = newest_family();
  if (family >= MTLGPUFamilyMetal3) return newest >= MTLGPUFamilyApple7;
  return family <= newest || family >= MTLGPUFamilyMac1;
}
- (MTLArchitecture*)architecture {
  return [[MTLArchitecture new] autorelease];
}
// Any number but 0, which stays the same.
- (uint64_t)registryID {
  return 0x100000001;
}
// The GPU of Apple silicon is built in, has no display of its own to lack, and no peers.
- (MTLDeviceLocation)location {
  return MTLDeviceLocationBuiltIn;
}
- (NSUInteger)locationNumber {
  return 0;
}
- (uint64_t)maxTransferRate {
  return 0;
}
- (uint64_t)peerGroupID {
  return 0;
}
- (uint32_t)peerIndex {
  return 0;
}
- (uint32_t)peerCount {
  return 0;
}
- (BOOL)isLowPower {
  return NO;
}
- (BOOL)isHeadless {
  return NO;
}
- (BOOL)isRemovable {
  return NO;
}
- (MTLArgumentBuffersTier)argumentBuffersSupport {
  return MTLArgumentBuffersTier2;
}
// There are no textures here, nor what the three below ask for: a program takes its other path.
- (MTLReadWriteTextureTier)readWriteTextureSupport {
  return MTLReadWriteTextureTierNone;
}
- (BOOL)supportsDynamicLibraries {
  return NO;
}
- (BOOL)supportsFunctionPointers {
  return NO;
}
- (BOOL)supportsRaytracing {
  return NO;
}
- (void)sampleTimestamps:(MTLTimestamp*)cpuTimestamp gpuTimestamp:(MTLTimestamp*)gpuTimestamp {
  for (MTLTimestamp* timestamp : {cpuTimestamp, gpuTimestamp}) {
    if (timestamp) *timestamp = clock_gettime_nsec_np(CLOCK_MONOTONIC);
  }
}
- (NSUInteger)maxBufferLength {
  return porter_memory_use().capacity;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return porter_memory_use().limit;
}
- (NSUInteger)currentAllocatedSize {
  return porter_memory_use().allocated;
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return porter::metal::kThreadgroupMemory;
}
- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(PM_MAX_THREADS_PER_GROUP, PM_MAX_THREADS_PER_GROUP, PM_MAX_THREADS_PER_GROUP);
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error {
  return porter::metal::make_library(defines(options) + porter::text(source), false, error);
}
- (void)newLibraryWithSource:(NSString*)source
                     options:(MTLCompileOptions*)options
           completionHandler:(MTLNewLibraryCompletionHandler)handler {
  NSError* error = nil;
  id<MTLLibrary> library = [[self newLibraryWithSource:source options:options error:&error] autorelease];
  handler(library, error);
}
- (id<MTLLibrary>)newLibraryWithData:(dispatch_data_t)data error:(NSError**)error {
  size_t size = 0;
  const auto* bytes = static_cast<const char*>(porter_dispatch_data(data, &size));
  const std::string text(bytes, size);
  return porter::metal::make_library(text, !is_source(text), error);
}
- (id<MTLLibrary>)newLibraryWithFile:(NSString*)path error:(NSError**)error {
  return [self newLibraryWithURL:[NSURL fileURLWithPath:path] error:error];
}
- (id<MTLLibrary>)newLibraryWithURL:(NSURL*)url error:(NSError**)error {
  const std::filesystem::path path = porter::text([url path]);
  const std::string text = read_file(path);
  if (is_source(text)) {
    return porter::metal::make_library(text, false, error);
  }
  const std::filesystem::path source = std::filesystem::path(path).replace_extension(".metal");
  if (std::filesystem::exists(source)) {  // what it was made from lies beside it
    return porter::metal::make_library("#include \"" + source.string() + "\"\n", false, error);
  }
  return porter::metal::make_library(path.string(), true, error);
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function error:(NSError**)error {
  if (!function) {
    porter::objc::fail("PTR124: newComputePipelineStateWithFunction was given nil" + porter::metal::missing_function());
  }
  return porter::metal::make_pipeline(function);
}
- (void)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                          completionHandler:(MTLNewComputePipelineStateCompletionHandler)handler {
  handler([[self newComputePipelineStateWithFunction:function error:nil] autorelease], nil);
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                           options:(MTLPipelineOption)options
                                                        reflection:(MTLAutoreleasedComputePipelineReflection*)reflection
                                                             error:(NSError**)error {
  if (reflection) {
    *reflection = nil;
  }
  return [self newComputePipelineStateWithFunction:function error:error];
}
- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLAutoreleasedComputePipelineReflection*)reflection
                                    error:(NSError**)error {
  if ([descriptor supportIndirectCommandBuffers]) {
    porter::objc::fail("PTR124: a pipeline was asked for that indirect command buffers can use, which are not here");
  }
  id<MTLComputePipelineState> pipeline = [self newComputePipelineStateWithFunction:[descriptor computeFunction]
                                                                           options:options
                                                                        reflection:reflection
                                                                             error:error];
  porter::metal::limit_threads(pipeline, [descriptor maxTotalThreadsPerThreadgroup]);
  return pipeline;
}
// No bundle has a library.
- (id<MTLLibrary>)newDefaultLibrary {
  return nil;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  return porter::metal::make_buffer(length, options);
}
- (id<MTLBuffer>)newBufferWithBytes:(const void*)bytes length:(NSUInteger)length options:(MTLResourceOptions)options {
  if (porter_is_device(bytes)) {
    porter::objc::fail(
        "PTR124: newBufferWithBytes was given an address of the device: the data pointer of an mps tensor is its "
        "MTLBuffer, not its bytes; bind that buffer instead");
  }
  id<MTLBuffer> made = porter::metal::make_buffer(length, options);
  if (made) {
    std::memcpy([made contents], bytes, length);
  }
  return made;
}
// Host memory cannot become device memory here: only bytes that the device itself gave out can be wrapped. Metal does not
// know that they are another buffer's too (executorch#22956).
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)bytes
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void*, NSUInteger))deallocator {
  return porter::metal::make_alias(bytes, length, options);
}
- (id<MTLFence>)newFence {
  return porter::metal::make_fence();
}
- (id<MTLCommandQueue>)newCommandQueue {
  return porter::metal::make_queue();
}
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)count {
  return [self newCommandQueue];
}
- (id<MTLCommandQueue>)newCommandQueueWithDescriptor:(MTLCommandQueueDescriptor*)descriptor {
  return [self newCommandQueue];
}
- (id<MTLEvent>)newEvent {
  return [PorterEvent new];
}
- (id<MTLSharedEvent>)newSharedEvent {
  return [PorterEvent new];
}
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  static PorterDevice* device = [PorterDevice new];
  return device;
}

NSArray<id<MTLDevice>>* MTLCopyAllDevices(void) {
  return [@[ MTLCreateSystemDefaultDevice() ] copy];
}
