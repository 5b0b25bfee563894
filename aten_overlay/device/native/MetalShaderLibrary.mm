// at::native::mps::MetalShaderLibrary and MetalKernelFunction for compiled extensions: kernels from source, and their launches.
// A fork's host code has its own, and this library is not loaded beside it.
#include <ATen/native/mps/OperationUtils.h>
#include <fmt/args.h>
#include <fmt/format.h>

#include <mutex>

#include "refuse.h"

namespace at::native::mps {
namespace {

// Guards the libraries' caches: PyTorch's own lock is in its OperationUtils.mm.
std::recursive_mutex& caches() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

NSString* make_string(const std::string& text) {
  return [NSString stringWithUTF8String:text.c_str()];
}

std::string describe(NSError* error) {
  return error ? [[error localizedDescription] UTF8String] : "unknown";
}

MTLSize make_size(ArrayRef<uint64_t> sizes) {
  return MTLSizeMake(sizes[0], sizes.size() > 1 ? sizes[1] : 1, sizes.size() > 2 ? sizes[2] : 1);
}

}  // namespace

MetalKernelFunction::MetalKernelFunction(MTLComputePipelineState_t pipeline, MTLFunction_t function)
    : cps([pipeline retain]), func([function retain]) {}

MetalKernelFunction::~MetalKernelFunction() {
  [cps release];
  [func release];
}

uint64_t MetalKernelFunction::getMaxThreadsPerThreadgroup() const {
  return [cps maxTotalThreadsPerThreadgroup];
}

uint64_t MetalKernelFunction::getThreadExecutionWidth() const {
  return [cps threadExecutionWidth];
}

uint64_t MetalKernelFunction::getStaticThreadGroupMemoryLength() const {
  return [cps staticThreadgroupMemoryLength];
}

void MetalKernelFunction::runCommandBlock(std::function<void(void)> work) {
  dispatch_sync_with_rethrow(getCurrentMPSStream()->queue(), ^() {
    @autoreleasepool {
      work();
    }
  });
}

void MetalKernelFunction::startEncoding() {
  encoder = getCurrentMPSStream()->commandEncoder();
  [encoder setComputePipelineState:cps];
}

void MetalKernelFunction::setArg(unsigned index, const TensorBase& tensor) {
  mtl_setBuffer(encoder, tensor, index);
}

void MetalKernelFunction::setArg(unsigned index, const void* bytes, uint64_t size) {
  TORCH_CHECK(size > 0, "argument ", index, " of a Metal kernel has no bytes");
  [encoder setBytes:bytes length:size atIndex:index];
}

void MetalKernelFunction::setErrorBufferIndex(unsigned index) {
  [encoder setBuffer:getCurrentMPSStream()->getErrorBuffer() offset:0 atIndex:index];
}

void MetalKernelFunction::dispatch(uint64_t length, std::optional<uint64_t> group) {
  const uint64_t size = group.value_or(std::clamp<uint64_t>(length, 1, getMaxThreadsPerThreadgroup()));
  dispatch(ArrayRef<uint64_t>{length}, c10::OptionalArrayRef<uint64_t>(ArrayRef<uint64_t>(size)));
}

void MetalKernelFunction::dispatch(ArrayRef<uint64_t> length, c10::OptionalArrayRef<uint64_t> group) {
  TORCH_CHECK(!length.empty() && length.size() <= 3, "a grid has 1 to 3 dimensions, not ", length.size());
  std::array<uint64_t, 3> sizes{std::clamp<uint64_t>(length[0], 1, getMaxThreadsPerThreadgroup()), 1, 1};
  if (group) {
    TORCH_CHECK(group->size() == length.size(), "a group has as many dimensions as its grid: ", length.size());
    std::copy(group->begin(), group->end(), sizes.begin());
  }
  const uint64_t threads = sizes[0] * sizes[1] * sizes[2];
  TORCH_CHECK(threads <= getMaxThreadsPerThreadgroup(), "a group of ", threads, " threads is larger than the limit of ",
              getMaxThreadsPerThreadgroup());
  if (c10::multiply_integers(length) != 0) {
    [encoder dispatchThreads:make_size(length) threadsPerThreadgroup:make_size(sizes)];
  }
}

MetalShaderLibrary::~MetalShaderLibrary() {
  for (const auto& [name, state] : cplMap) {
    [state.first release];
    [state.second release];
  }
}

MTLLibrary_t MetalShaderLibrary::compileLibrary(const std::string& source) {
  NSError* error = nil;
  MTLCompileOptions* options = compile_options;
  if (!options) {  // as compileLibrary in OperationUtils.mm has it: Metal's default is fast math, and PyTorch's is not
    options = [[MTLCompileOptions new] autorelease];
    options.mathMode = MTLMathModeSafe;
  }
  MTLLibrary_t compiled = [MPSDevice::getInstance()->device() newLibraryWithSource:make_string(source)
                                                                           options:options
                                                                             error:&error];
  TORCH_CHECK_WITH(SyntaxError, compiled, "Failed to create metal library, error: ", describe(error));
  return compiled;
}

MTLLibrary_t MetalShaderLibrary::getLibrary() {
  std::lock_guard lock(caches());
  TORCH_CHECK(nparams == 0, "the source of this library has ", nparams, " parameters, and none was given");
  if (!library) {
    library = compileLibrary(shaderSource);
  }
  return library;
}

// The source with its parameters written into it, in the format of fmt.
MTLLibrary_t MetalShaderLibrary::getLibrary(const std::initializer_list<std::string>& params) {
  std::lock_guard lock(caches());
  TORCH_CHECK(nparams == params.size(), "the source of this library has ", nparams, " parameters, not ", params.size());
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  std::string key;
  for (const std::string& param : params) {
    values.push_back(param);
    key += param + ':';
  }
  MTLLibrary_t& cached = libMap[key];
  if (!cached) {
    cached = compileLibrary(fmt::vformat(shaderSource, values));
  }
  return cached;
}

std::pair<MTLComputePipelineState_t, MTLFunction_t> MetalShaderLibrary::getLibraryPipelineState(
    MTLLibrary_t compiled, const std::string& name) {
  std::lock_guard lock(caches());
  const auto key = fmt::format("{}:{}", static_cast<const void*>(compiled), name);
  const auto cached = cplMap.find(key);
  if (cached != cplMap.end()) {
    return cached->second;
  }
  NSError* error = nil;
  MTLFunction_t function = [compiled newFunctionWithName:make_string(name)];
  TORCH_CHECK(function, "Failed to create function state object for: ", name);
  MTLComputePipelineState_t pipeline = [[compiled device] newComputePipelineStateWithFunction:function error:&error];
  TORCH_CHECK(pipeline, "Failed to create pipeline state object, error: ", describe(error));
  return cplMap[key] = {pipeline, function};
}

std::vector<std::string> MetalShaderLibrary::getFunctionNames() {
  std::vector<std::string> names;
  @autoreleasepool {
    for (NSString* name in [getLibrary() functionNames]) {
      names.emplace_back([name UTF8String]);
    }
  }
  return names;
}

bool MetalShaderLibrary::hasFunction(const std::string& name) {
  std::lock_guard lock(caches());
  if (!functionNamesPopulated) {
    for (std::string& known : getFunctionNames()) {
      functionNames.insert(std::move(known));
    }
    functionNamesPopulated = true;
  }
  return functionNames.count(name) != 0;
}

std::shared_ptr<MetalKernelFunction> MetalShaderLibrary::getKernelFunction(const std::string& name) {
  const auto [pipeline, function] = getLibraryPipelineState(getLibrary(), name);
  return std::make_shared<MetalKernelFunction>(pipeline, function);
}

MetalKernelFunction* MetalShaderLibrary::getCachedKernelFunctionPtr(const std::string& name) {
  std::lock_guard lock(caches());
  auto& cached = kernelCache[name];
  if (!cached) {
    const auto [pipeline, function] = getLibraryPipelineState(getLibrary(), name);
    cached = std::make_unique<MetalKernelFunction>(pipeline, function);
  }
  return cached.get();
}

DynamicMetalShaderLibrary::~DynamicMetalShaderLibrary() {
  [library release];
}

PrecompiledMetalShaderLibrary::PrecompiledMetalShaderLibrary(std::vector<uint8_t> data) : MetalShaderLibrary("") {
  auto* kept = new std::vector<uint8_t>(std::move(data));  // as long as the process, as the stand-in keeps the data
  dispatch_data_t bytes = dispatch_data_create(kept->data(), kept->size(), nullptr, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
  NSError* error = nil;
  library = [MPSDevice::getInstance()->device() newLibraryWithData:bytes error:&error];
  TORCH_CHECK(library, "Failed to create metal library from data, error: ", describe(error));
}

PrecompiledMetalShaderLibrary::PrecompiledMetalShaderLibrary(const std::string& path) : MetalShaderLibrary("") {
  NSError* error = nil;
  NSURL* url = [NSURL fileURLWithPath:make_string(path)];
  library = [MPSDevice::getInstance()->device() newLibraryWithURL:url error:&error];
  TORCH_CHECK(library, "Failed to create metal library from ", path, ", error: ", describe(error));
}

PrecompiledMetalShaderLibrary::~PrecompiledMetalShaderLibrary() {
  [library release];
}

MetalShaderLibrary& MetalShaderLibrary::getBundledLibrary() {
  porter::refuse("MetalShaderLibrary::getBundledLibrary");
}

using Optional = std::optional<c10::ScalarType>;

void MetalShaderLibrary::exec_unary_kernel(TensorIteratorBase&, const std::string&, const std::optional<c10::Scalar>,
                                           const Optional, const std::optional<uint32_t>) {
  porter::refuse("MetalShaderLibrary::exec_unary_kernel");
}

#ifdef PORTER_RAW_KERNEL_VIEWS
#define PORTER_NAME std::string_view
#else
#define PORTER_NAME const std::string&
#endif
void MetalShaderLibrary::exec_unary_kernel_raw(PORTER_NAME, MTLBuffer_t, uint32_t, c10::ScalarType, MTLBuffer_t, uint32_t,
                                               c10::ScalarType, uint32_t, const std::optional<uint32_t>) {
  porter::refuse("MetalShaderLibrary::exec_unary_kernel_raw");
}

void MetalShaderLibrary::exec_binary_kernel(TensorIteratorBase&, const std::string&, const std::optional<c10::Scalar>,
                                            const Optional, const Optional, const std::optional<uint32_t>) {
  porter::refuse("MetalShaderLibrary::exec_binary_kernel");
}

#ifdef PORTER_TERNARY_PLAIN
void MetalShaderLibrary::exec_ternary_kernel(TensorIteratorBase&, const std::string&) {
#else
void MetalShaderLibrary::exec_ternary_kernel(
    TensorIteratorBase&, const std::string&, const std::optional<c10::Scalar>, const Optional) {
#endif
  porter::refuse("MetalShaderLibrary::exec_ternary_kernel");
}

}  // namespace at::native::mps
