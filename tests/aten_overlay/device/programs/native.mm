// An extension that uses what ATen/native/mps declares: kernels from source, and a graph.
#include <ATen/native/mps/Copy.h>
#include <ATen/native/mps/OperationUtils.h>
#include <torch/library.h>

namespace {

using namespace at::native::mps;
using at::Tensor;

Tensor scale(const Tensor& x, double factor) {
  static auto& library = *new DynamicMetalShaderLibrary(R"(
#include <metal_stdlib>
kernel void scale(device float* out, constant float* x, constant float& factor, uint i [[thread_position_in_grid]]) {
  out[i] = factor * x[i];
}
kernel void sum_rows(device float* out, constant float* x, constant uint2& shape, uint2 i [[thread_position_in_grid]]) {
  if (i.y == 0) {
    float sum = 0;
    for (uint row = 0; row < shape.y; ++row) sum += x[row * shape.x + i.x];
    out[i.x] = sum;
  }
}
)");
  TORCH_CHECK(library.hasFunction("scale") && !library.hasFunction("other") && library.getFunctionNames().size() == 2);
  Tensor out = at::empty_like(x);
  auto kernel = library.getKernelFunction("scale");
  kernel->runCommandBlock([&] {
    kernel->startEncoding();
    kernel->setArg(0, out);
    kernel->setArg(1, x);
    kernel->setArg(2, static_cast<float>(factor));
    kernel->dispatch(x.numel());
  });
  Tensor sums = at::empty({x.size(1)}, x.options());
  auto* rows = library.getCachedKernelFunctionPtr("sum_rows");
  TORCH_CHECK(rows == library.getCachedKernelFunctionPtr("sum_rows") && rows->getThreadExecutionWidth() == 32);
  rows->runCommandBlock([&] {
    rows->startEncoding();
    rows->setArg(0, sums);
    rows->setArg(1, out);
    rows->setArg(2, std::array<uint32_t, 2>{static_cast<uint32_t>(x.size(1)), static_cast<uint32_t>(x.size(0))});
    rows->dispatch({static_cast<uint64_t>(x.size(1)), 2}, c10::OptionalArrayRef<uint64_t>({1, 2}));
  });
  return sums;
}

Tensor fill_with_parameter(const Tensor& x, const std::string& value) {
  static auto& library = *new MetalShaderLibrary(
      "kernel void fill(device float* out, uint i [[thread_position_in_grid]]) {{ out[i] = {0}; }}", 1);
  Tensor out = at::empty_like(x);
  dispatch_sync_with_rethrow(getCurrentMPSStream()->queue(), ^{
    auto pipeline = library.getPipelineStateForFunc("fill", {value});
    auto encoder = getCurrentMPSStream()->commandEncoder();
    [encoder setComputePipelineState:pipeline];
    mtl_setArgs(encoder, out);
    mtl_dispatch1DJob(encoder, pipeline, out.numel());
  });
  return out;
}

struct AddGraph : MPSCachedGraph {
  AddGraph(MPSGraph* graph) : MPSCachedGraph(graph) {}
  MPSGraphTensor* x = nil;
  MPSGraphTensor* scalar = nil;
  MPSGraphTensor* out = nil;
};

Tensor add_by_graph(const Tensor& x, const at::Scalar& other) {
  Tensor out = at::empty(x.sizes(), x.options());
  MPSScalar scalar = getMPSScalar(other, x.scalar_type());
  @autoreleasepool {
    auto* cached = LookUpOrCreateCachedGraph<AddGraph>("add" + getTensorsStringKey({x}), [&](auto* graph, auto* entry) {
      entry->x = mpsGraphRankedPlaceHolder(graph, x);
      entry->scalar = mpsGraphScalarPlaceHolder(graph, getMPSScalarType(x.scalar_type()));
      entry->out = [graph additionWithPrimaryTensor:entry->x secondaryTensor:entry->scalar name:nil];
    });
    Placeholder input(cached->x, x);
    Placeholder output(cached->out, out);
    auto* stream = getCurrentMPSStream();
    NSDictionary* feeds = @{
      input.getMPSGraphTensor() : input.getMPSGraphTensorData(),
      cached->scalar : getMPSGraphTensorFromScalar(stream, scalar)
    };
    runMPSGraph(stream, cached->graph(), feeds, output);
  }
  return out;
}

std::vector<std::string> describe(const Tensor& x) {
  const auto join = [](NSArray<NSNumber*>* numbers) {
    std::string text;
    for (NSNumber* number in numbers) {
      text += std::to_string([number integerValue]) + ' ';
    }
    return text;
  };
  return {scalarToMetalTypeString(x), getArrayRefString(x.sizes()), join(getMPSShape(x)),
          join(getMPSShape(x, at::MemoryFormat::ChannelsLast)), join(getTensorAxes(x)),
          std::to_string(compute_storage_numel_distance(x)), is_dense_in_storage(x) ? "dense" : "sparse"};
}

void uses_bundled() {
  MetalShaderLibrary::getBundledLibrary();
}

}  // namespace

TORCH_LIBRARY(native_test, m) {
  m.def("scale(Tensor x, float factor) -> Tensor", &scale);
  m.def("fill_with_parameter(Tensor x, str value) -> Tensor", &fill_with_parameter);
  m.def("add_by_graph(Tensor x, Scalar other) -> Tensor", &add_by_graph);
  m.def("describe(Tensor x) -> str[]", &describe);
  m.def("uses_bundled() -> ()", &uses_bundled);
}
