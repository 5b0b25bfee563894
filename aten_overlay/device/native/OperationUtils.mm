// What ATen/native/mps/OperationUtils.h and Copy.h declare, for compiled extensions: element types, scalars, shapes, and graphs
// of MPSGraph with their inputs. A fork's host code has its own, and this library is not loaded beside it.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/native/mps/Copy.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "refuse.h"

namespace at::native::mps {
namespace {

struct ElementType {
  ScalarType type;
  MPSDataType data_type;
  const char* metal;
};

constexpr ElementType kTypes[] = {
    {kFloat, MPSDataTypeFloat32, "float"},
    {kHalf, MPSDataTypeFloat16, "half"},
    {kBFloat16, MPSDataTypeBFloat16, "bfloat"},
    {kLong, MPSDataTypeInt64, "long"},
    {kInt, MPSDataTypeInt32, "int"},
    {kShort, MPSDataTypeInt16, "short"},
    {kChar, MPSDataTypeInt8, "char"},
    {kByte, MPSDataTypeUInt8, "uchar"},
    {kBool, MPSDataTypeBool, "bool"},
    {kUInt16, MPSDataTypeUInt16, "ushort"},
    {kUInt32, MPSDataTypeUInt32, "uint"},
    {kUInt64, MPSDataTypeUInt64, "ulong"},
    {kComplexFloat, MPSDataTypeComplexFloat32, "float2"},
    {kComplexHalf, MPSDataTypeComplexFloat16, "half2"},
};

const ElementType& find_type(ScalarType type) {
  const auto* known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.type == type; });
  TORCH_CHECK_TYPE(known != std::end(kTypes), "MPS has no element type ", type);
  return *known;
}

NSMutableArray<NSNumber*>* list_numbers(IntArrayRef values) {
  NSMutableArray<NSNumber*>* numbers = [NSMutableArray arrayWithCapacity:values.size()];
  for (const int64_t value : values) {
    [numbers addObject:[NSNumber numberWithInteger:value]];
  }
  return numbers;
}

std::vector<int64_t> read_numbers(MPSShape* shape) {
  std::vector<int64_t> values;
  for (NSNumber* number in shape) {
    values.push_back([number integerValue]);
  }
  return values;
}

id<MTLBuffer> make_buffer(const void* storage) {
  return __builtin_bit_cast(id<MTLBuffer>, storage);
}

// The bytes of a dense tensor as an array of a graph.
MPSNDArray* wrap_dense(const TensorBase& tensor, MPSShape* shape) {
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:getMPSDataType(tensor) shape:shape];
  descriptor.preferPackedRows = YES;
  const NSUInteger offset = tensor.storage_offset() * tensor.element_size();
  return [[[MPSNDArray alloc] initWithBuffer:getMTLBufferStorage(tensor) offset:offset
                                  descriptor:descriptor] autorelease];
}

}  // namespace

void* get_tensor_gpu_address(const TensorBase& tensor) {
  return reinterpret_cast<void*>([getMTLBufferStorage(tensor) gpuAddress] +
                                 tensor.storage_offset() * tensor.element_size());
}

MPSDataType getMPSDataType(ScalarType type) {
  return find_type(type).data_type;
}

// Metal has no doubles: scalars of that type are floats.
MPSDataType getMPSScalarType(ScalarType type) {
  return find_type(type == kDouble ? kFloat : type == kComplexDouble ? kComplexFloat : type).data_type;
}

std::string getMPSTypeString(ScalarType type, bool short_name) {
  return short_name ? find_type(type).metal : c10::toString(type);
}

std::string scalarToMetalTypeString(const ScalarType& type) {
  return find_type(type).metal;
}

MPSScalar getMPSScalar(const Scalar& scalar, ScalarType type) {
  MPSScalar packed;
  packed.type = type == kDouble ? kFloat : type == kComplexDouble ? kComplexFloat : type;
  packed.size = c10::elementSize(packed.type);
  switch (find_type(packed.type).type) {
    case kFloat:
      packed.value.f = scalar.to<float>();
      break;
    case kHalf:
      packed.value.h = scalar.to<at::Half>();
      break;
    case kBFloat16:
      packed.value.bf16 = scalar.to<at::BFloat16>();
      break;
    case kComplexFloat:
      packed.value.cf = scalar.to<c10::complex<float>>();
      break;
    case kComplexHalf:
      packed.value.ch = scalar.to<c10::complex<at::Half>>();
      break;
    case kBool:
      packed.value.i = scalar.to<bool>();
      break;
    case kUInt16:
    case kUInt32:
    case kUInt64:
      packed.value.u = scalar.to<uint64_t>();
      break;
    default:
      packed.value.i = scalar.to<int64_t>();
  }
  return packed;
}

NSArray<NSNumber*>* getTensorAxes(const TensorBase& tensor) {
  return getTensorAxes(tensor.sizes(), std::nullopt);
}

NSArray<NSNumber*>* getTensorAxes(const IntArrayRef& sizes, OptionalIntArrayRef dims) {
  const auto rank = static_cast<int64_t>(sizes.size());
  std::vector<int64_t> axes;
  if (dims && !dims->empty()) {
    for (const int64_t dim : *dims) {
      axes.push_back(maybe_wrap_dim(dim, rank));
    }
  } else {
    for (int64_t dim = 0; dim < rank; ++dim) {
      axes.push_back(dim);
    }
  }
  return list_numbers(axes);
}

std::string getArrayRefString(const IntArrayRef values) {
  return fmt::format("{}", fmt::join(values, ","));
}

std::string getTensorsStringKey(const TensorList& tensors, bool short_dtype, bool exclude_shape) {
  std::string key;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      key += ":Undefined";
      continue;
    }
    const std::string sizes = exclude_shape ? "-1" : getArrayRefString(tensor.sizes());
    key += fmt::format(":{}[{}]", getMPSTypeString(tensor, short_dtype), tensor.dim() == 0 ? "Scalar" : sizes);
  }
  return key;
}

MPSShape* getMPSShape(const TensorBase& tensor, MemoryFormat format) {
  return getMPSShape(tensor.sizes(), format);
}

MPSShape* getMPSShape(IntArrayRef sizes, MemoryFormat format) {
  if (sizes.empty()) {
    return @[ @1 ];
  }
  if (format == MemoryFormat::ChannelsLast) {
    TORCH_CHECK(sizes.size() == 4, "channels_last is a layout of 4 dimensions, not ", sizes.size());
    return list_numbers({sizes[0], sizes[2], sizes[3], sizes[1]});
  }
  return list_numbers(sizes);
}

// MPSGraph counts the elements of a dimension and the bytes of a tensor with 32 bits.
static bool is_too_large(const Tensor& tensor) {
  const auto is_long = [](int64_t size) { return size > std::numeric_limits<int32_t>::max(); };
  return std::any_of(tensor.sizes().begin(), tensor.sizes().end(), is_long) ||
      compute_storage_numel_distance(tensor) * tensor.element_size() > std::numeric_limits<uint32_t>::max();
}

#ifdef PORTER_LINEAR_OFFSETS
bool isTooLargeForMPSGraph(const Tensor& tensor, bool, bool) {
#else
bool isTooLargeForMPSGraph(const Tensor& tensor, bool) {
#endif
  return is_too_large(tensor);
}

size_t compute_storage_numel_distance(const TensorBase& tensor) {
  if (tensor.numel() == 0) {
    return 0;
  }
  size_t distance = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    distance += static_cast<size_t>((tensor.size(dim) - 1) * tensor.stride(dim));
  }
  return distance;
}

MPSNDArray* getMPSNDArray(const TensorBase& tensor, MPSShape* sizes, MPSShape* strides) {
  MPSNDArray* array = wrap_dense(tensor, sizes ? sizes : getMPSShape(tensor));
  return strides ? [array arrayViewWithShape:sizes strides:strides] : array;
}

MPSNDArray* getMPSNDArray(const TensorBase& tensor, const IntArrayRef& sizes, const IntArrayRef& strides) {
  MPSShape* shape = sizes.empty() ? getMPSShape(tensor) : getMPSShape(sizes);
  return getMPSNDArray(tensor, shape, strides.empty() ? nil : list_numbers(strides));
}

MPSNDArray* getStridedMPSNDArray(const TensorBase& tensor, MPSNDArray* array) {
  return [array arrayViewWithShape:getMPSShape(tensor)
                           strides:tensor.dim() == 0 ? @[ @1 ] : list_numbers(tensor.strides())];
}

Tensor getTensorView(const Tensor& tensor, MPSShape* shape) {
  return tensor.view(read_numbers(shape));
}

Placeholder::Placeholder(MPSGraphTensor* tensor, MPSNDArray* array)
    : _placeholder(tensor), _value([[[MPSGraphTensorData alloc] initWithMPSNDArray:array] autorelease]) {}

// What is not dense is copied first, unless the caller takes care of that.
Placeholder::Placeholder(
    MPSGraphTensor* tensor, const Tensor& source, MPSShape* shape, bool gathers, MPSDataType type, bool)
    : _placeholder(tensor), _value(nil), _tensor(source) {
  TORCH_CHECK(source.is_mps(), "Placeholder storage has not been allocated on MPS device!");
  if (gathers && !source.is_contiguous()) {
    _tensor = source.clone(MemoryFormat::Contiguous);
  }
  MPSNDArrayDescriptor* descriptor =
      [MPSNDArrayDescriptor descriptorWithDataType:type == MPSDataTypeInvalid ? getMPSDataType(_tensor) : type
                                             shape:shape ? shape : getMPSShape(_tensor)];
  descriptor.preferPackedRows = YES;
  const NSUInteger offset = _tensor.storage_offset() * _tensor.element_size();
  MPSNDArray* array = [[[MPSNDArray alloc] initWithBuffer:getMTLBufferStorage(_tensor) offset:offset
                                               descriptor:descriptor] autorelease];
  _value = [[[MPSGraphTensorData alloc] initWithMPSNDArray:array] autorelease];
}

void resize_tensor(Tensor* output) {
  output->resize_(output->sizes());
}

Tensor wrapped_scalar_tensor_mps(const Scalar& scalar, const Device device) {
  const auto type = scalar.isFloatingPoint() ? kFloat : scalar.isComplex() ? kComplexFloat : scalar.type();
  Tensor wrapped = at::scalar_tensor(scalar, TensorOptions().dtype(type).device(device));
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

Tensor randperm_argsort_lowbits_metal(const Tensor&, int, Tensor&) {
  porter::refuse("randperm_argsort_lowbits_metal");
}

MPSGraph* make_mps_graph() {
  return [[MPSGraph new] autorelease];
}

MPSGraphTensor* convertNHWCtoNCHW(MPSGraph* graph, MPSGraphTensor* tensor) {
  return [graph transposeTensor:tensor permutation:@[ @0, @3, @1, @2 ] name:nil];
}

MPSGraphTensor* castMPSTensor(MPSGraph* graph, MPSGraphTensor* tensor, ScalarType type) {
  return castMPSTensor(graph, tensor, getMPSScalarType(type));
}

MPSGraphTensor* castMPSTensor(MPSGraph* graph, MPSGraphTensor* tensor, MPSDataType type) {
  return [tensor dataType] == type ? tensor : [graph castTensor:tensor toType:type name:@"cast"];
}

MPSGraphTensorData* getMPSGraphTensorData(MPSGraph*, MPSStream*, const TensorBase& tensor) {
  return [[[MPSGraphTensorData alloc] initWithMPSNDArray:getMPSNDArray(tensor, IntArrayRef{}, IntArrayRef{})] autorelease];
}

MPSGraphTensorData* getMPSGraphTensorFromScalar(MPSStream*, MPSScalar& scalar) {
  scalar.buffer = getIMPSAllocator()->allocScalarBufferWithValue(&scalar.value, scalar.size);
  return [[[MPSGraphTensorData alloc] initWithMTLBuffer:scalar.getMTLBuffer()
                                                  shape:@[ @1 ]
                                               dataType:getMPSScalarType(scalar.type)] autorelease];
}

MPSGraphTensor* mpsGraphUnrankedPlaceHolder(MPSGraph* graph, MPSDataType type) {
  return [graph placeholderWithShape:nil dataType:type name:nil];
}

MPSGraphTensor* mpsGraphRankedPlaceHolder(MPSGraph* graph, MPSDataType type, MPSShape* shape) {
  return [graph placeholderWithShape:shape dataType:type name:nil];
}

MPSGraphTensor* mpsGraphRankedPlaceHolder(MPSGraph* graph, const TensorBase& tensor) {
  return mpsGraphRankedPlaceHolder(graph, getMPSScalarType(tensor), getMPSShape(tensor));
}

MPSGraphTensor* mpsGraphScalarPlaceHolder(MPSGraph* graph, MPSDataType type) {
  return mpsGraphRankedPlaceHolder(graph, type, @[ @1 ]);
}

MPSGraphTensor* mpsGraphScalarPlaceHolder(MPSGraph* graph, const Scalar& scalar) {
  return mpsGraphScalarPlaceHolder(graph, getMPSScalarType(scalar.type()));
}

std::string get_mem_format_string(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Preserve:
      return "Preserve";
    case MemoryFormat::Contiguous:
      return "Contiguous";
    case MemoryFormat::ChannelsLast:
      return "ChannelsLast";
    default:
      TORCH_CHECK(false, "MPSGraph has no memory format ", format);
  }
}

void runMPSGraph(MPSStream* stream, MPSGraph* graph, NSDictionary* feeds, NSDictionary* results) {
  stream->executeMPSGraph(graph, feeds, results, SyncType::COMMIT_ADAPTIVE);
}

MPSGraphCache* MPSGraphCache::_instance_cache = nullptr;
MPSKernelCache* MPSKernelCache::_instance_cache = nullptr;

void MPSGraphCache::profileCachedGraph(const CacheEntry&) const {}  // nothing is profiled

Tensor& mps_copy_(Tensor& output, const Tensor& source, bool non_blocking) {
  return output.copy_(source, non_blocking);
}

void copy_blit_mps(void* output, const void* source, size_t size) {
  getCurrentMPSStream()->copy(make_buffer(source), make_buffer(output), size, 0, 0, 0, SyncType::COMMIT_ADAPTIVE);
}

#ifdef PORTER_CAST_COPIES
void copy_cast_kernel_mps(Tensor& output, const Tensor& source) {
  output.copy_(source);
}
#endif

#ifdef PORTER_SCATTER_COPIES
void inner_contiguous_scatter_mps(
    const Tensor& input, const Tensor& output, uint64_t slice_bytes, uint64_t out_stride_bytes, uint64_t off_bytes) {
  TORCH_CHECK(input.is_contiguous() && slice_bytes != 0, "only a contiguous tensor is scattered in slices");
  const uint64_t input_start = input.storage_offset() * input.element_size();
  const uint64_t output_start = output.storage_offset() * output.element_size() + off_bytes;
  for (uint64_t slice = 0; slice * slice_bytes < input.nbytes(); ++slice) {
    getCurrentMPSStream()->copy(getMTLBufferStorage(input), getMTLBufferStorage(output), slice_bytes,
                                input_start + slice * slice_bytes, output_start + slice * out_stride_bytes, 0);
  }
}
#endif

#ifdef PORTER_VIEW_COPIES
std::string getMPSShapeString(MPSShape* shape) {
  return getArrayRefString(read_numbers(shape));
}

std::string to_hex_key(float value) {
  return fmt::format("{:a}", value);
}

// A tensor without storage where the source is no view.
Tensor gatherViewTensor(const Tensor& source, Tensor& output) {
  if (source.is_contiguous() && source.storage_offset() == 0) {
    return {};
  }
  return output.defined() ? output.copy_(source) : source.clone(MemoryFormat::Contiguous);
}

Tensor& scatterViewTensor(const Tensor& source, Tensor& output) {
  return output.copy_(source);
}

MPSGraphTensor* castToIHFTypes(MPSGraph* graph, MPSGraphTensor* tensor, const TensorBase& input) {
  const auto type = getMPSDataType(input);
  const bool kept = type == MPSDataTypeInt32 || type == MPSDataTypeFloat16 || type == MPSDataTypeFloat32;
  return kept ? tensor : castMPSTensor(graph, tensor, input.is_floating_point() ? MPSDataTypeFloat32 : MPSDataTypeInt32);
}

MPSGraphTensor* castFromIHFTypes(MPSGraph* graph, MPSGraphTensor* tensor, const TensorBase& input) {
  return castMPSTensor(graph, tensor, getMPSDataType(input));
}

MPSGraphTensor* log1p(MPSGraph* graph, MPSGraphTensor* tensor) {
  MPSGraphTensor* one = [graph constantWithScalar:1.0 dataType:tensor.dataType];
  MPSGraphTensor* sum = [graph additionWithPrimaryTensor:tensor secondaryTensor:one name:nil];
  return [graph logarithmWithTensor:sum name:nil];
}

id<MTLBuffer> generateKernelDataOffsets(id<MTLComputeCommandEncoder>, const TensorIteratorBase&, bool) {
  porter::refuse("generateKernelDataOffsets");
}
#endif

}  // namespace at::native::mps
