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
template <typename T>
static std::string numbers(const void* values, NSUInteger count) {
  std::string text;
  for (NSUInteger i = 0; i < count; i++) {
    T value;
    std::memcpy(&value, static_cast<const char*>(values) + i * sizeof value, sizeof value);
    char number[40];
    if constexpr (std::is_integral_v<T>) {
      std::snprintf(number, sizeof number, "%s", std::to_string(value).c_str());
    } else {
      std::snprintf(number, sizeof number, "%.9g", static_cast<double>(value));
      std::strcat(number, std::strpbrk(number, ".en") ? "" : ".0");
    }
    text += (i ? "," : "") + std::string(number);
  }
  return text;
}
// A scalar of a function constant: its type, the bytes of one, and the text of `count` of them, with commas.
struct ConstantType {
  MTLDataType scalar;
  size_t size;
  std::string (*text)(const void* values, NSUInteger count);
  bool has_vectors;  // of 2, 3 and 4, whose types have the numbers after the scalar's
};
static const ConstantType kConstantTypes[] = {
    {MTLDataTypeFloat, 4, numbers<float>, true},      {MTLDataTypeHalf, 2, numbers<_Float16>, true},
    {MTLDataTypeInt, 4, numbers<int32_t>, true},      {MTLDataTypeUInt, 4, numbers<uint32_t>, true},
    {MTLDataTypeShort, 2, numbers<int16_t>, true},    {MTLDataTypeUShort, 2, numbers<uint16_t>, true},
    {MTLDataTypeChar, 1, numbers<int8_t>, true},      {MTLDataTypeUChar, 1, numbers<uint8_t>, true},
    {MTLDataTypeBool, 1, numbers<bool>, true},        {MTLDataTypeLong, 8, numbers<int64_t>, false},
    {MTLDataTypeULong, 8, numbers<uint64_t>, false},  {MTLDataTypeBFloat, 2, numbers<__bf16>, false},
};
// The value's text, and how many bytes there are from one value of this type to the next.
static std::pair<std::string, size_t> read_constant(const void* value, MTLDataType type) {
  for (const ConstantType& constant : kConstantTypes) {
    const NSUInteger count = type - constant.scalar + 1;
    if (count >= 1 && count <= (constant.has_vectors ? 4 : 1)) {
      return {constant.text(value, count), constant.size * (count == 3 ? 4 : count)};
    }
  }
  porter::objc::fail("PTR124: function constants of MTLDataType " + std::to_string((unsigned long)type) +
                     " are not supported");
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index {
  _text += std::to_string(index) + "=" + read_constant(value, type).first + "\n";
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type withName:(NSString*)name {
  _text += porter::text(name) + "=" + read_constant(value, type).first + "\n";
}
- (void)setConstantValues:(const void*)values type:(MTLDataType)type withRange:(NSRange)range {
  const char* value = static_cast<const char*>(values);
  for (NSUInteger i = 0; i < range.length; i++) {
    const auto [text, size] = read_constant(value, type);
    _text += std::to_string(range.location + i) + "=" + text + "\n";
    value += size;
  }
}
- (void)reset {
  _text.clear();
}
- (id)copyWithZone:(NSZone*)zone {
  MTLFunctionConstantValues* copied = [MTLFunctionConstantValues new];
  copied->_text = _text;
  return copied;
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

@implementation MTLFunctionDescriptor
+ (MTLFunctionDescriptor*)functionDescriptor {
  return [[self new] autorelease];
}
- (id)copyWithZone:(NSZone*)zone {
  MTLFunctionDescriptor* copied = [MTLFunctionDescriptor new];
  copied.name = self.name;
  copied.specializedName = self.specializedName;
  copied.constantValues = self.constantValues;
  copied.options = self.options;
  return copied;
}
- (void)dealloc {
  [_name release];
  [_specializedName release];
  [_constantValues release];
  [super dealloc];
}
@end

@interface PorterFunction : NSObject <MTLFunction> {
 @public
  const pm_kernel* _kernel;
}
@end

@implementation PorterFunction
@dynamic label;
- (void)setLabel:(NSString*)label {
}
- (NSString*)label {
  return @"";
}
- (NSString*)name {
  return porter::string(_kernel->host_name);
}
- (MTLFunctionType)functionType {
  return MTLFunctionTypeKernel;
}
- (MTLFunctionOptions)options {
  return MTLFunctionOptionNone;
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
- (BOOL)supportIndirectCommandBuffers {
  return NO;
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
    const pm_kernel* kernel = _library->kernel(wanted, values ? values->_text : "");
    PorterFunction* made = [PorterFunction new];
    made->_kernel = kernel;
    return made;
  } catch (const std::exception& failure) {
    set_error(error, failure.what());
    return nil;
  }
}
- (void)newFunctionWithName:(NSString*)name
             constantValues:(MTLFunctionConstantValues*)values
          completionHandler:(MTLFunctionHandler)handler {
  NSError* error = nil;
  id<MTLFunction> function = [[self newFunctionWithName:name constantValues:values error:&error] autorelease];
  handler(function, error);
}
// The specialized name is for functions that other code calls; a kernel's is its own.
- (id<MTLFunction>)newFunctionWithDescriptor:(MTLFunctionDescriptor*)descriptor error:(NSError**)error {
  if (!descriptor.name.length) {
    porter::objc::fail("PTR124: newFunctionWithDescriptor: takes a descriptor with the name of a function");
  }
  return [self newFunctionWithName:descriptor.name constantValues:descriptor.constantValues error:error];
}
- (MTLLibraryType)type {
  return MTLLibraryTypeExecutable;
}
- (NSString*)installName {
  return nil;
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
