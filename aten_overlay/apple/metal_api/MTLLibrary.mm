#include <cstring>
#include <stdexcept>

#include "memory/memory.h"
#include "foundation/text.h"
#include "metal_objects.h"
#include "runtime/objects.h"

NSString* const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";

using porter::metal::Library;

// What a library is compiled for unless its options say otherwise is fast math, as on a Mac.
@implementation MTLCompileOptions
- (id)init {
  if ((self = [super init])) {
    _mathMode = MTLMathModeFast;
  }
  return self;
}
- (BOOL)fastMathEnabled {
  return _mathMode == MTLMathModeFast;
}
- (void)setFastMathEnabled:(BOOL)enabled {
  _mathMode = enabled ? MTLMathModeFast : MTLMathModeSafe;
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (void)dealloc {
  [_preprocessorMacros release];
  [super dealloc];
}
@end

@implementation MTLFunctionConstantValues {
 @public
  std::string _text;
}
static std::string constant_text(const void* value, MTLDataType type) {
  switch (type) {
    case MTLDataTypeBool:
      return *(const bool*)value ? "1" : "0";
    case MTLDataTypeChar:
      return std::to_string(*(const int8_t*)value);
    case MTLDataTypeUChar:
      return std::to_string(*(const uint8_t*)value);
    case MTLDataTypeShort:
      return std::to_string(*(const int16_t*)value);
    case MTLDataTypeUShort:
      return std::to_string(*(const uint16_t*)value);
    case MTLDataTypeInt:
      return std::to_string(*(const int32_t*)value);
    case MTLDataTypeUInt:
      return std::to_string(*(const uint32_t*)value);
    case MTLDataTypeLong:
      return std::to_string(*(const int64_t*)value);
    case MTLDataTypeULong:
      return std::to_string(*(const uint64_t*)value);
    case MTLDataTypeFloat: {
      char text[40];
      std::snprintf(text, sizeof text, "%.9g", *(const float*)value);
      return std::strpbrk(text, ".en") ? text : std::string(text) + ".0";
    }
    default:
      porter::objc::fail("PTR124: function constants of MTLDataType " + std::to_string((unsigned long)type) +
                         " are not supported");
  }
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index {
  _text += std::to_string(index) + "=" + constant_text(value, type) + "\n";
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type withName:(NSString*)name {
  _text += porter::text(name) + "=" + constant_text(value, type) + "\n";
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
@end

@interface PorterArgumentEncoder : NSObject <MTLArgumentEncoder> {
 @public
  const pm_kernel* _kernel;
  NSUInteger _index;
  char* _target;
  NSUInteger _size;
}
@end

// An argument buffer of addresses, one after the other: index n is the n-th.
@implementation PorterArgumentEncoder
- (NSUInteger)encodedLength {
  for (uint32_t i = 0; i < _kernel->argument_count; i++) {
    const pm_argument& argument = _kernel->arguments[i];
    if (argument.kind != PM_THREADGROUP && argument.index == _index) {
      return argument.element_size;
    }
  }
  porter::objc::fail(std::string("PTR124: kernel `") + _kernel->host_name + "` has no argument at buffer index " +
                     std::to_string(_index));
}
- (void)setArgumentBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset {
  _size = [self encodedLength];
  _target = porter::metal::bytes_of((const void*)buffer, offset, _size, "an argument buffer");
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  if (!_target || (index + 1) * sizeof(void*) > _size) {
    porter::objc::fail(std::string("PTR124: kernel `") + _kernel->host_name + "`: index " + std::to_string(index) +
                       " is not in the argument buffer at buffer index " + std::to_string(_index));
  }
  char* address = porter::metal::bytes_of((const void*)buffer, offset, 0, _kernel->host_name);
  std::memcpy(_target + index * sizeof(void*), &address, sizeof address);
}
@end

@interface PorterFunction : NSObject <MTLFunction> {
 @public
  const pm_kernel* _kernel;
}
@end

@implementation PorterFunction
- (NSString*)name {
  return porter::string(_kernel->host_name);
}
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index {
  PorterArgumentEncoder* made = [PorterArgumentEncoder new];
  made->_kernel = _kernel;
  made->_index = index;
  return made;
}
@end

@interface PorterPipeline : NSObject <MTLComputePipelineState> {
 @public
  const pm_kernel* _kernel;
  NSUInteger _limit;  // that a descriptor asks for; 0 for none
}
@end

@implementation PorterPipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  const NSUInteger most = _kernel->max_threads_per_group;
  return _limit && _limit < most ? _limit : most;
}
- (NSUInteger)threadExecutionWidth {
  return PM_SIMD_WIDTH;
}
- (NSUInteger)staticThreadgroupMemoryLength {
  return _kernel->static_threadgroup_bytes;
}
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
- (NSString*)label {
  return porter::string(_kernel->host_name);
}
@end

@interface PorterLibrary : NSObject <MTLLibrary> {
 @public
  std::unique_ptr<Library> _library;
}
@end

static void set_error(NSError** error, const char* what) {
  if (error) {
    *error = [NSError errorWithDomain:MTLLibraryErrorDomain
                                 code:MTLLibraryErrorCompileFailure
                             userInfo:@{NSLocalizedDescriptionKey : porter::string(what)}];
  }
}

static thread_local std::string missing;

std::string porter::metal::missing_function() {
  return missing.empty() ? "" : "; the library that was asked last has no function `" + missing + "`";
}

@implementation PorterLibrary
@dynamic label;
- (void)setLabel:(NSString*)label {
}
- (NSString*)label {
  return @"";
}
- (id<MTLDevice>)device {
  return MTLCreateSystemDefaultDevice();
}
- (NSArray<NSString*>*)functionNames {
  NSMutableArray* names = [NSMutableArray array];
  for (const std::string& name : _library->names()) {
    [names addObject:porter::string(name)];
  }
  return names;
}
// Nil for a name the library does not have, as on a GPU; a kernel that does not compile here is an exception.
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
  const std::string wanted = porter::text(name);
  missing = _library->has(wanted) ? "" : wanted;
  if (!missing.empty()) {
    return nil;
  }
  const pm_kernel* kernel = _library->kernel(wanted, "");
  PorterFunction* made = [PorterFunction new];
  made->_kernel = kernel;
  return made;
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError**)error {
  const std::string wanted = porter::text(name);
  missing = _library->has(wanted) ? "" : wanted;
  if (!missing.empty()) {
    set_error(error, ("there is no function `" + wanted + "`").c_str());
    return nil;
  }
  try {
    const pm_kernel* kernel = _library->kernel(wanted, values->_text);
    PorterFunction* made = [PorterFunction new];
    made->_kernel = kernel;
    return made;
  } catch (const std::exception& failure) {
    set_error(error, failure.what());
    return nil;
  }
}
@end

id<MTLLibrary> porter::metal::make_library(const std::string& source, bool bundled, NSError** error) {
  try {
    auto library = std::make_unique<Library>(source, bundled);
    PorterLibrary* made = [PorterLibrary new];
    made->_library = std::move(library);
    return made;
  } catch (const std::exception& failure) {
    set_error(error, failure.what());
    return nil;
  }
}

id<MTLComputePipelineState> porter::metal::make_pipeline(id<MTLFunction> function) {
  PorterPipeline* made = [PorterPipeline new];
  made->_kernel = ((PorterFunction*)function)->_kernel;
  return made;
}

void porter::metal::limit_threads(id<MTLComputePipelineState> pipeline, NSUInteger threads) {
  ((PorterPipeline*)pipeline)->_limit = threads;
}

@implementation MTLComputePipelineDescriptor
@synthesize label = _label;
@synthesize computeFunction = _computeFunction;
@synthesize threadGroupSizeIsMultipleOfThreadExecutionWidth = _isMultiple;
@synthesize maxTotalThreadsPerThreadgroup = _most;
@synthesize maxCallStackDepth = _depth;
@synthesize supportIndirectCommandBuffers = _supportsIndirect;
- (void)reset {
  self.label = nil;
  self.computeFunction = nil;
  _isMultiple = _supportsIndirect = NO;
  _most = _depth = 0;
}
- (id)copyWithZone:(NSZone*)zone {
  MTLComputePipelineDescriptor* copied = [MTLComputePipelineDescriptor new];
  copied.label = self.label;
  copied.computeFunction = self.computeFunction;
  copied->_isMultiple = _isMultiple;
  copied->_most = _most;
  copied->_depth = _depth;
  copied->_supportsIndirect = _supportsIndirect;
  return copied;
}
- (void)dealloc {
  [_label release];
  [_computeFunction release];
  [super dealloc];
}
@end

const pm_kernel* porter::metal::kernel_of(id<MTLComputePipelineState> state) {
  return state ? ((PorterPipeline*)state)->_kernel : nullptr;
}
