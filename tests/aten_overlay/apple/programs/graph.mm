// Graphs built and run as the MPS backend does.
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <sstream>
#include <stdexcept>
#include <vector>

#include "runtime/porter_runtime.h"

static std::string told;

template <typename Body>
static const char* tell(Body body) {
  (void)MTLCreateSystemDefaultDevice();
  const int64_t before = porter_live_objects(nullptr);
  std::ostringstream out;
  @autoreleasepool {
    try {
      MPSGraph* graph = [[MPSGraph new] autorelease];
      body(out, graph);
    } catch (const std::exception& error) {
      out << "! " << error.what();
    }
  }
  out << " | left " << porter_live_objects(nullptr) - before;
  told = out.str();
  return told.c_str();
}

static MPSGraphTensorData* data_of(std::initializer_list<float> values, MPSShape* shape) {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLBuffer> buffer = [device newBufferWithBytes:values.begin() length:values.size() * sizeof(float) options:0];
  MPSGraphTensorData* data = [[[MPSGraphTensorData alloc] initWithMTLBuffer:buffer
                                                                      shape:shape
                                                                   dataType:MPSDataTypeFloat32] autorelease];
  [buffer release];
  return data;
}

static void show(std::ostream& out, MPSGraphTensorDataDictionary* results, MPSGraphTensor* tensor, int count) {
  MPSNDArray* array = [results[tensor] mpsndarray];
  std::vector<float> values(count);
  [array readBytes:values.data() strideBytes:nil];
  for (float value : values) {
    out << value << " ";
  }
}

extern "C" {

const char* computed() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2, @3 ] dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* half = [graph constantWithScalar:0.5 dataType:MPSDataTypeFloat32];
    MPSGraphTensor* sum = [graph additionWithPrimaryTensor:x secondaryTensor:half name:@"sum"];
    MPSGraphTensor* total = [graph reductionSumWithTensor:sum axes:@[ @1 ] name:nil];
    MPSGraphTensor* whole = [graph castTensor:total toType:MPSDataTypeInt32 name:nil];
    out << [[[total shape] description] UTF8String] << " " << ([whole dataType] == MPSDataTypeInt32) << " ";
    MPSGraphTensorDataDictionary* results =
        [graph runWithMTLCommandQueue:nil
                                feeds:@{x : data_of({1, 2, 3, 4, 5, 6}, @[ @2, @3 ])}
                        targetTensors:@[ total ]
                     targetOperations:nil];
    show(out, results, total, 2);
  });
}

const char* decoded() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @1, @2 ] dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* zero = [graph constantWithScalar:0 shape:@[ @1, @1 ] dataType:MPSDataTypeFloat32];
    MPSGraphTensor* one = [graph constantWithScalar:1 shape:@[ @1, @1 ] dataType:MPSDataTypeFloat32];
    MPSGraphTensor* normal = [graph normalizationWithTensor:x
                                                 meanTensor:zero
                                             varianceTensor:one
                                                gammaTensor:nil
                                                 betaTensor:nil
                                                    epsilon:3.0f
                                                       name:nil];
    MPSGraphTensor* wide = [graph padTensor:normal
                            withPaddingMode:MPSGraphPaddingModeConstant
                                leftPadding:@[ @0, @1 ]
                               rightPadding:@[ @0, @0 ]
                              constantValue:-7.25
                                       name:nil];
    MPSGraphTensor* sorted = [graph sortWithTensor:wide axis:-1 descending:YES name:nil];
    MPSGraphTensorDataDictionary* results = [graph runWithMTLCommandQueue:nil
                                                                    feeds:@{x : data_of({2, 4}, @[ @1, @2 ])}
                                                            targetTensors:@[ sorted ]
                                                         targetOperations:nil];
    show(out, results, sorted, 3);
  });
}

const char* strided() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @3, @2 ] dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* y = [graph negativeWithTensor:x name:nil];
    MPSNDArray* dense = [data_of({1, 2, 3, 4, 5, 6}, @[ @2, @3 ]) mpsndarray];
    MPSNDArrayDescriptor* descriptor = [dense descriptor];
    [descriptor transposeDimension:0 withDimension:1];
    MPSNDArray* turned = [dense arrayViewWithDescriptor:descriptor];
    MPSGraphTensorData* feed = [[[MPSGraphTensorData alloc] initWithMPSNDArray:turned] autorelease];
    MPSGraphTensorDataDictionary* results = [graph runWithMTLCommandQueue:nil
                                                                    feeds:@{x : feed}
                                                            targetTensors:@[ y ]
                                                         targetOperations:nil];
    show(out, results, y, 6);
  });
}

const char* unknown() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];
    [graph nonZeroIndicesOfTensor:x name:nil];
  });
}

const char* misfit() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* y = [graph placeholderWithShape:@[ @3 ] dataType:MPSDataTypeFloat32 name:nil];
    [graph additionWithPrimaryTensor:x secondaryTensor:y name:nil];
  });
}

const char* unfed() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];
    [graph runWithMTLCommandQueue:nil feeds:@{} targetTensors:@[ x ] targetOperations:nil];
  });
}

}  // extern "C"
