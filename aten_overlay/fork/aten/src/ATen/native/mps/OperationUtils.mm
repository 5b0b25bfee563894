#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/native/mps/OperationUtils.h>
#include <c10/util/irange.h>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mach-o/dyld.h>
#include <mach-o/getsect.h>
#include <mutex>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#else
#include <ATen/ops/scalar_tensor.h>
#endif

namespace at::native::mps {

MPSDataType getMPSDataType(ScalarType scalar_type) {
  switch (scalar_type) {
    case ScalarType::Float:
      return MPSDataTypeFloat32;
    case ScalarType::Half:
      return MPSDataTypeFloat16;
    case ScalarType::BFloat16:
      return MPSDataTypeBFloat16;
    case ScalarType::Long:
      return MPSDataTypeInt64;
    case ScalarType::Int:
      return MPSDataTypeInt32;
    case ScalarType::Short:
      return MPSDataTypeInt16;
    case ScalarType::Char:
      return MPSDataTypeInt8;
    case ScalarType::Byte:
      return MPSDataTypeUInt8;
    case ScalarType::Bool:
      return MPSDataTypeBool;
    case ScalarType::ComplexFloat:
      return MPSDataTypeComplexFloat32;
    case ScalarType::ComplexHalf:
      return MPSDataTypeComplexFloat16;
    default:
      TORCH_CHECK_TYPE(false, "MPS does not support ", scalar_type);
  }
}

MPSDataType getMPSScalarType(ScalarType scalar_type) {
  if (scalar_type == ScalarType::Double) {
    return MPSDataTypeFloat32;
  }
  return getMPSDataType(scalar_type == ScalarType::ComplexDouble ? ScalarType::ComplexFloat : scalar_type);
}

MPSScalar getMPSScalar(const Scalar& scalar, ScalarType type) {
  MPSScalar rc;
  rc.type = type;
  rc.size = c10::elementSize(type);
  switch (type) {
    case ScalarType::Double:
      rc.type = ScalarType::Float;
      rc.size = sizeof(float);
      [[fallthrough]];
    case ScalarType::Float:
      rc.value.f = scalar.to<float>();
      break;
    case ScalarType::Half:
      rc.value.h = scalar.to<at::Half>();
      break;
    case ScalarType::BFloat16:
      rc.value.bf16 = scalar.to<at::BFloat16>();
      break;
    case ScalarType::ComplexDouble:
      rc.type = ScalarType::ComplexFloat;
      rc.size = sizeof(c10::complex<float>);
      [[fallthrough]];
    case ScalarType::ComplexFloat:
      rc.value.cf = scalar.to<c10::complex<float>>();
      break;
    case ScalarType::Bool:
      rc.value.b = scalar.to<bool>();
      break;
    case ScalarType::Long:
    case ScalarType::Int:
    case ScalarType::Short:
    case ScalarType::Char:
    case ScalarType::Byte:
      rc.value.i = scalar.to<int64_t>();
      break;
    default:
      TORCH_CHECK_TYPE(false, "MPS does not support scalars of type ", type);
  }
  return rc;
}

std::string scalarToMetalTypeString(const ScalarType& scalar_type) {
  switch (scalar_type) {
    case ScalarType::Float:
      return "float";
    case ScalarType::Half:
      return "half";
    case ScalarType::BFloat16:
      return "bfloat";
    case ScalarType::Long:
      return "long";
    case ScalarType::Int:
      return "int";
    case ScalarType::Short:
      return "short";
    case ScalarType::Char:
      return "char";
    case ScalarType::Byte:
      return "uchar";
    case ScalarType::Bool:
      return "bool";
    case ScalarType::ComplexFloat:
      return "float2";
    case ScalarType::ComplexHalf:
      return "half2";
    default:
      TORCH_CHECK_TYPE(false, "Metal has no type for ", scalar_type);
  }
}

std::string getMPSTypeString(ScalarType scalar_type) {
  return c10::toString(scalar_type);
}

std::string getTensorsStringKey(const TensorList& tensors) {
  std::string key;
  for (const Tensor& tensor : tensors) {
    key += fmt::format(":{}[{}]", getMPSTypeString(tensor.scalar_type()), fmt::join(tensor.sizes(), ","));
  }
  return key;
}

MPSShape* getMPSShape(const TensorBase& t) {
  if (t.dim() == 0) {
    return @[ @1 ];
  }
  NSMutableArray<NSNumber*>* shape = [NSMutableArray arrayWithCapacity:t.dim()];
  for (const auto size : t.sizes()) {
    [shape addObject:[NSNumber numberWithInteger:size]];
  }
  return shape;
}

bool needsGather(const TensorBase& t) {
  return !t.is_contiguous() || t.storage_offset() != 0;
}

Placeholder::Placeholder(MPSGraphTensor* mpsGraphTensor, const Tensor& src, MPSDataType dataType)
    : _placeholder(mpsGraphTensor), _tensor(needsGather(src) ? src.clone(MemoryFormat::Contiguous) : src) {
  TORCH_CHECK(src.is_mps(), "Placeholder storage has not been allocated on MPS device!");
  if (dataType == MPSDataTypeInvalid) {
    dataType = getMPSDataType(src.scalar_type());
  }
  _value = [[[MPSGraphTensorData alloc] initWithMTLBuffer:getMTLBufferStorage(_tensor)
                                                    shape:getMPSShape(_tensor)
                                                 dataType:dataType] autorelease];
}

MPSGraph* make_mps_graph() {
  return [[MPSGraph new] autorelease];
}

MPSGraphTensor* mpsGraphRankedPlaceHolder(MPSGraph* mpsGraph, MPSDataType dataType, MPSShape* mpsShape) {
  return [mpsGraph placeholderWithShape:mpsShape dataType:dataType name:nil];
}

MPSGraphTensor* mpsGraphRankedPlaceHolder(MPSGraph* mpsGraph, const TensorBase& tensor) {
  return mpsGraphRankedPlaceHolder(mpsGraph, getMPSScalarType(tensor.scalar_type()), getMPSShape(tensor));
}

MPSGraphTensor* castMPSTensor(MPSGraph* mpsGraph, MPSGraphTensor* tensor, MPSDataType toType) {
  if ([tensor dataType] == toType) {
    return tensor;
  }
  return [mpsGraph castTensor:tensor toType:toType name:@"castTensor"];
}

MPSGraphTensor* castMPSTensor(MPSGraph* mpsGraph, MPSGraphTensor* tensor, ScalarType toType) {
  return castMPSTensor(mpsGraph, tensor, getMPSScalarType(toType));
}

MPSGraphTensor* log1p(MPSGraph* mpsGraph, MPSGraphTensor* inputTensor) {
  MPSGraphTensor* oneTensor = [mpsGraph constantWithScalar:1.0 dataType:inputTensor.dataType];
  MPSGraphTensor* addedTensor = [mpsGraph additionWithPrimaryTensor:inputTensor secondaryTensor:oneTensor name:nil];
  return [mpsGraph logarithmWithTensor:addedTensor name:nil];
}

MPSGraphTensorData* getMPSGraphTensorFromScalar(MPSStream* mpsStream, MPSScalar& scalar) {
  scalar.buffer = getIMPSAllocator()->allocScalarBufferWithValue(&scalar.value, scalar.size);
  return [[[MPSGraphTensorData alloc] initWithMTLBuffer:scalar.getMTLBuffer()
                                                  shape:@[ @1 ]
                                               dataType:getMPSScalarType(scalar.type)] autorelease];
}

MPSCachedGraph* lookUpOrBuildGraph(const std::string& key, const GraphBuilder& build) {
  static std::mutex mutex;
  static auto& graphs = *new std::unordered_map<std::string, std::unique_ptr<MPSCachedGraph>>();
  std::lock_guard<std::mutex> guard(mutex);
  auto& entry = graphs[key];
  if (!entry) {
    @autoreleasepool {
      entry = build(make_mps_graph());
    }
  }
  return entry.get();
}

void runMPSGraph(MPSStream* mpsStream, MPSGraph* mpsGraph, NSDictionary* feeds, NSDictionary* results) {
  mpsStream->executeMPSGraph(mpsGraph, feeds, results, SyncType::COMMIT_ADAPTIVE);
}

MetalShaderLibrary::~MetalShaderLibrary() {
  for (const auto& [key, state] : cplMap) {
    [state.first release];
    [state.second release];
  }
}

id<MTLLibrary> MetalShaderLibrary::getLibrary() {
  if (!library) {
    NSError* error = nil;
    MTLCompileOptions* options = [[MTLCompileOptions new] autorelease];
    options.mathMode = MTLMathModeSafe;
    library =
        [MPSDevice::getInstance()->device() newLibraryWithSource:[NSString stringWithUTF8String:shaderSource.c_str()]
                                                         options:options
                                                           error:&error];
    TORCH_CHECK(library, "Failed to create metal library, error: ", [[error description] UTF8String]);
  }
  return library;
}

std::pair<id<MTLComputePipelineState>, id<MTLFunction>> MetalShaderLibrary::getLibraryPipelineState(
    id<MTLLibrary> lib,
    const std::string& fname) {
  const auto found = cplMap.find(fname);
  if (found != cplMap.end()) {
    return found->second;
  }
  NSError* error = nil;
  id<MTLFunction> function = [lib newFunctionWithName:[NSString stringWithUTF8String:fname.c_str()]];
  TORCH_CHECK(function, "Failed to create function state object for: ", fname);
  id<MTLComputePipelineState> state = [[lib device] newComputePipelineStateWithFunction:function error:&error];
  TORCH_CHECK(state, "Failed to create pipeline state object, error: ", [[error description] UTF8String]);
  return cplMap[fname] = std::make_pair(state, function);
}

std::vector<std::string> MetalShaderLibrary::getFunctionNames() {
  std::vector<std::string> rc;
  @autoreleasepool {
    for (NSString* name in [getLibrary() functionNames]) {
      rc.emplace_back([name UTF8String]);
    }
  }
  return rc;
}

namespace {

// The kernels the build compiled ahead of time: a section of the library this code lives in.
class BundledShaderLibrary : public MetalShaderLibrary {
 public:
  BundledShaderLibrary() : MetalShaderLibrary("") {}

 protected:
  id<MTLLibrary> getLibrary() override {
    if (!library) {
      NSError* error = nil;
      library = [MPSDevice::getInstance()->device() newLibraryWithData:sectionData("metal_bfloat") error:&error];
      TORCH_CHECK(library, "Failed to create metal library, error: ", [[error description] UTF8String]);
    }
    return library;
  }

 private:
  static dispatch_data_t sectionData(const char* section) {
    uint32_t image = 0;
    for (const auto i : c10::irange(_dyld_image_count())) {
      if (std::strstr(_dyld_get_image_name(i), "/libtorch_cpu.dylib")) {
        image = i;
        break;
      }
    }
    unsigned long size = 0;
    const auto* header = reinterpret_cast<const struct mach_header_64*>(_dyld_get_image_header(image));
    const auto* data = getsectiondata(header, "__TEXT", section, &size);
    TORCH_CHECK(data, "Can't find metal library section ", section);
    return dispatch_data_create(data,
                                size,
                                dispatch_get_main_queue(),
                                ^{
                                });
  }
};

} // namespace

MetalShaderLibrary& MetalShaderLibrary::getBundledLibrary() {
  static BundledShaderLibrary bundled;
  return bundled;
}

} // namespace at::native::mps
