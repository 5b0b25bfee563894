// What operators on MPS share: graphs and their cache, tensors as graph feeds, arguments of Metal kernels.
#pragma once
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/Tensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/CanUse32BitIndexMath.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>

using namespace at::mps;

namespace at::native::mps {

// A scalar in the type a kernel or a graph wants it; `buffer` keeps it alive while a graph reads it.
struct MPSScalar {
  size_t size = 0;
  ScalarType type = ScalarType::Undefined;
  c10::DataPtr buffer;
  union {
    float f;
    at::Half h;
    at::BFloat16 bf16;
    c10::complex<float> cf;
    int64_t i;
    bool b;
  } value{};

  id<MTLBuffer> getMTLBuffer() const {
    return __builtin_bit_cast(id<MTLBuffer>, buffer.get());
  }
};

// Names and codes of element types. The scalar forms take float64 for float32, which MPS has instead.
MPSDataType getMPSDataType(ScalarType scalar_type);
MPSDataType getMPSScalarType(ScalarType scalar_type);
MPSScalar getMPSScalar(const Scalar& scalar, ScalarType type);
std::string getMPSTypeString(ScalarType scalar_type);
std::string scalarToMetalTypeString(const ScalarType& scalar_type);
inline std::string scalarToMetalTypeString(const TensorBase& t) {
  return scalarToMetalTypeString(t.scalar_type());
}

// The part of a graph's cache key that says which types and shapes it was built for.
std::string getTensorsStringKey(const TensorList& tensors);
MPSShape* getMPSShape(const TensorBase& t);

inline id<MTLBuffer> getMTLBufferStorage(const TensorBase& tensor) {
  return __builtin_bit_cast(id<MTLBuffer>, tensor.storage().data());
}

// A tensor bound to an input or the output of a graph. Inputs that are not dense are copied first.
class Placeholder {
 public:
  Placeholder() = default;
  Placeholder(MPSGraphTensor* mpsGraphTensor, const Tensor& src, MPSDataType dataType = MPSDataTypeInvalid);
  MPSGraphTensor* getMPSGraphTensor() {
    return _placeholder;
  }
  MPSGraphTensorData* getMPSGraphTensorData() {
    return _value;
  }

 private:
  MPSGraphTensor* _placeholder = nil;
  MPSGraphTensorData* _value = nil;
  Tensor _tensor;
};

// Whether a graph cannot write to this tensor in place.
bool needsGather(const TensorBase& t);

MPSGraph* make_mps_graph();
MPSGraphTensor* mpsGraphRankedPlaceHolder(MPSGraph* mpsGraph, MPSDataType dataType, MPSShape* mpsShape);
MPSGraphTensor* mpsGraphRankedPlaceHolder(MPSGraph* mpsGraph, const TensorBase& tensor);
MPSGraphTensor* castMPSTensor(MPSGraph* mpsGraph, MPSGraphTensor* tensor, ScalarType toType);
MPSGraphTensor* castMPSTensor(MPSGraph* mpsGraph, MPSGraphTensor* tensor, MPSDataType toType);
MPSGraphTensorData* getMPSGraphTensorFromScalar(MPSStream* mpsStream, MPSScalar& scalar);
MPSGraphTensor* log1p(MPSGraph* mpsGraph, MPSGraphTensor* inputTensor);

// Derived from to keep a graph together with its inputs and output.
struct MPSCachedGraph {
  explicit MPSCachedGraph(MPSGraph* graph) : _graph([graph retain]) {}
  MPSCachedGraph(const MPSCachedGraph&) = delete;
  virtual ~MPSCachedGraph() {
    [_graph release];
  }
  MPSGraph* graph() const {
    return _graph;
  }

 private:
  MPSGraph* _graph;
};

struct MPSUnaryCachedGraph : public MPSCachedGraph {
  MPSUnaryCachedGraph(MPSGraph* graph) : MPSCachedGraph(graph) {}
  MPSGraphTensor* inputTensor_ = nil;
  MPSGraphTensor* outputTensor_ = nil;
};

using GraphBuilder = std::function<std::unique_ptr<MPSCachedGraph>(MPSGraph*)>;
MPSCachedGraph* lookUpOrBuildGraph(const std::string& key, const GraphBuilder& build);

template <typename T>
T* LookUpOrCreateCachedGraph(const std::string& key, const std::function<void(MPSGraph*, T*)>& instantiate) {
  return static_cast<T*>(lookUpOrBuildGraph(key, [&](MPSGraph* graph) {
    auto cached = std::make_unique<T>(graph);
    instantiate(graph, cached.get());
    return cached;
  }));
}

void runMPSGraph(MPSStream* mpsStream, MPSGraph* mpsGraph, NSDictionary* feeds, NSDictionary* results);

inline NSDictionary* dictionaryFromPlaceholders(Placeholder& p) {
  return @{p.getMPSGraphTensor() : p.getMPSGraphTensorData()};
}

inline void runMPSGraph(MPSStream* stream, MPSGraph* graph, NSDictionary* feeds, Placeholder& result) {
  runMPSGraph(stream, graph, feeds, dictionaryFromPlaceholders(result));
}

// A tensor argument; a CPU scalar is passed by value.
inline void mtl_setBuffer(id<MTLComputeCommandEncoder> encoder, const TensorBase& t, unsigned idx) {
  if (t.device().type() == kCPU) {
    TORCH_CHECK(t.dim() == 0, "Passed CPU tensor to MPS op");
    [encoder setBytes:t.const_data_ptr() length:t.element_size() atIndex:idx];
    return;
  }
  [encoder setBuffer:getMTLBufferStorage(t) offset:t.storage_offset() * t.element_size() atIndex:idx];
}

template <typename T>
inline void mtl_setBytes(id<MTLComputeCommandEncoder> encoder, const T& val, unsigned idx) {
  if constexpr (requires { typename T::size_type; }) {
    [encoder setBytes:val.data() length:sizeof(typename T::value_type) * val.size() atIndex:idx];
  } else {
    [encoder setBytes:&val length:sizeof(T) atIndex:idx];
  }
}

inline void mtl_setBytes(id<MTLComputeCommandEncoder> encoder, const MPSScalar& s, unsigned idx) {
  [encoder setBytes:&s.value length:s.size atIndex:idx];
}

namespace detail {

template <typename T>
inline void mtl_setArg(id<MTLComputeCommandEncoder> encoder, const T& arg, unsigned idx) {
  if constexpr (std::is_base_of_v<TensorBase, T>) {
    mtl_setBuffer(encoder, arg, idx);
  } else if constexpr (std::is_same_v<T, double>) {
    mtl_setBytes(encoder, static_cast<float>(arg), idx);
  } else {
    mtl_setBytes(encoder, arg, idx);
  }
}

// Such as the buffer that a stream's kernels report errors in.
inline void mtl_setArg(id<MTLComputeCommandEncoder> encoder, id<MTLBuffer> buffer, unsigned idx) {
  [encoder setBuffer:buffer offset:0 atIndex:idx];
}

// A tensor that is not there unbinds what a launch before this one bound.
inline void mtl_setArg(id<MTLComputeCommandEncoder> encoder, const std::optional<Tensor>& t, unsigned idx) {
  if (t.has_value()) {
    mtl_setBuffer(encoder, *t, idx);
  } else {
    [encoder setBuffer:nil offset:0 atIndex:idx];
  }
}

} // namespace detail

// Binds each argument to the next index: tensors as buffers, anything else by value, a double as a float.
template <unsigned idx = 0, typename... Args>
inline void mtl_setArgs(id<MTLComputeCommandEncoder> encoder, const Args&... args) {
  unsigned next = idx;
  (detail::mtl_setArg(encoder, args, next++), ...);
}

// Whether every element of these tensors is at an index that a 32-bit type holds.
template <typename Index, typename... Tensors>
inline bool offsetsFitIn(const Tensors&... tensors) {
  return (canUse32BitIndexMath(tensors, std::numeric_limits<Index>::max()) && ...);
}

// How the names of kernels end that are registered for indices of either width.
inline std::string_view mtlIdxSuffix(bool use32) {
  return use32 ? "_u32" : "_u64";
}

// Calls `fn` with the index type to launch with, in a std::type_identity.
template <typename Narrow, typename Wide, typename Fn>
inline void mtlDispatchByIndexWidth(bool use32, Fn&& fn) {
  if (use32) {
    fn(std::type_identity<Narrow>{});
    return;
  }
  fn(std::type_identity<Wide>{});
}

inline void mtl_dispatch1DJob(id<MTLComputeCommandEncoder> encoder,
                              id<MTLComputePipelineState> cplState,
                              NSUInteger length) {
  const auto groupSize = std::min<NSUInteger>(length, [cplState maxTotalThreadsPerThreadgroup]);
  [encoder dispatchThreads:MTLSizeMake(length, 1, 1) threadsPerThreadgroup:MTLSizeMake(groupSize, 1, 1)];
}

} // namespace at::native::mps
