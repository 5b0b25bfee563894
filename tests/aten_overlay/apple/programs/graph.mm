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

const char* defaults() {
  return tell([](std::ostream& out, MPSGraph*) {
    for (auto distribution : {MPSGraphRandomDistributionUniform, MPSGraphRandomDistributionTruncatedNormal}) {
      MPSGraphRandomOpDescriptor* random = [MPSGraphRandomOpDescriptor descriptorWithDistribution:distribution
                                                                                         dataType:MPSDataTypeFloat32];
      out << random.min << " " << random.max << " " << random.mean << " " << random.standardDeviation << " "
          << random.minInteger << " " << random.maxInteger << "; ";
    }
    MPSGraphConvolution2DOpDescriptor* plane = [[MPSGraphConvolution2DOpDescriptor new] autorelease];
    out << plane.strideInX << plane.strideInY << plane.dilationRateInX << plane.dilationRateInY << plane.paddingLeft;
    MPSGraphConvolution3DOpDescriptor* volume = [[MPSGraphConvolution3DOpDescriptor new] autorelease];
    out << volume.strideInZ << volume.dilationRateInZ << volume.paddingFront;
  });
}

static void negated_into(std::ostream& out, MPSGraph* graph, MPSShape* shape) {
  MPSGraphTensor* x = [graph placeholderWithShape:@[ @2, @3 ] dataType:MPSDataTypeFloat32 name:nil];
  MPSGraphTensor* y = [graph negativeWithTensor:x name:nil];
  MPSGraphTensorDataDictionary* results = @{y : data_of({9, 9, 9, 9, 9, 9, 9, 9}, shape)};
  [graph encodeToCommandBuffer:nil
                         feeds:@{x : data_of({1, 2, 3, 4, 5, 6}, @[ @2, @3 ])}
              targetOperations:nil
             resultsDictionary:results
           executionDescriptor:nil];
  show(out, results, y, 4);
}

const char* cropped() {
  return tell([](std::ostream& out, MPSGraph* graph) { negated_into(out, graph, @[ @2, @2 ]); });
}

const char* outgrown() {
  return tell([](std::ostream& out, MPSGraph* graph) { negated_into(out, graph, @[ @2, @4 ]); });
}

const char* counted() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @4 ] dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* places = [graph nonZeroIndicesOfTensor:x name:nil];
    MPSGraphTensor* turned = [graph transposeTensor:places dimension:0 withDimension:1 name:nil];
    MPSGraphTensor* real = [graph castTensor:turned toType:MPSDataTypeFloat32 name:nil];
    out << ([places shape] == nil) << " " << ([places dataType] == MPSDataTypeInt32) << " ";
    MPSGraphTensorData* target = data_of({9, 9}, @[ @2, @1 ]);
    MPSGraphTensorDataDictionary* results = @{real : target};
    [graph encodeToCommandBuffer:nil
                           feeds:@{x : data_of({0, 5, 0, 7}, @[ @4 ])}
                targetOperations:nil
               resultsDictionary:results
             executionDescriptor:nil];
    show(out, results, real, 2);
  });
}

// Every form of a one-hot tensor, by its elements' types and shapes.
const char* hot() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* at = [graph castTensor:x toType:MPSDataTypeInt32 name:nil];
    MPSGraphTensor* full = [graph oneHotWithIndicesTensor:at
                                                    depth:3
                                                     axis:0
                                                 dataType:MPSDataTypeFloat32
                                                  onValue:5
                                                 offValue:-1
                                                     name:nil];
    MPSGraphTensor* last = [graph oneHotWithIndicesTensor:at
                                                    depth:3
                                                 dataType:MPSDataTypeFloat32
                                                  onValue:5
                                                 offValue:-1
                                                     name:nil];
    MPSGraphTensor* typed = [graph oneHotWithIndicesTensor:at depth:3 axis:0 dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* whole = [graph oneHotWithIndicesTensor:at depth:3 dataType:MPSDataTypeInt32 name:nil];
    MPSGraphTensor* first = [graph oneHotWithIndicesTensor:at depth:3 axis:0 name:nil];
    MPSGraphTensor* plain = [graph oneHotWithIndicesTensor:at depth:3 name:nil];
    NSArray* all = @[ full, last, typed, first, plain ];
    MPSGraphTensorDataDictionary* results = [graph runWithMTLCommandQueue:nil
                                                                    feeds:@{x : data_of({2, 7}, @[ @2 ])}
                                                            targetTensors:all
                                                         targetOperations:nil];
    for (MPSGraphTensor* each in all) {
      show(out, results, each, 6);
      out << [[[each shape] description] UTF8String] << "; ";
    }
    out << ([whole dataType] == MPSDataTypeInt32);
  });
}

const char* entropy() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2, @2 ] dataType:MPSDataTypeFloat32 name:nil];
    float chosen[] = {1, 0, 0, 1};
    MPSGraphTensor* labels = [graph variableWithData:[NSData dataWithBytes:chosen length:sizeof chosen]
                                               shape:@[ @2, @2 ]
                                            dataType:MPSDataTypeFloat32
                                                name:nil];
    labels = [graph readVariable:labels name:nil];
    MPSGraphTensor* one = [graph constantWithScalar:1 dataType:MPSDataTypeFloat32];
    for (auto reduction : {MPSGraphLossReductionTypeSum, MPSGraphLossReductionTypeMean}) {
      MPSGraphTensor* loss = [graph softMaxCrossEntropyWithSourceTensor:x
                                                           labelsTensor:labels
                                                                   axis:-1
                                                          reductionType:reduction
                                                                   name:nil];
      MPSGraphTensor* slope = [graph softMaxCrossEntropyGradientWithIncomingGradientTensor:one
                                                                              sourceTensor:x
                                                                              labelsTensor:labels
                                                                                      axis:-1
                                                                             reductionType:reduction
                                                                                      name:nil];
      MPSGraphTensorDataDictionary* results = [graph runWithMTLCommandQueue:nil
                                                                      feeds:@{x : data_of({3, 3, 1, 1}, @[ @2, @2 ])}
                                                              targetTensors:@[ loss, slope ]
                                                           targetOperations:nil];
      out.precision(3);
      show(out, results, loss, 1);
      show(out, results, slope, 4);
    }
    [graph softMaxCrossEntropyWithSourceTensor:x
                                  labelsTensor:labels
                                          axis:-1
                                 reductionType:MPSGraphLossReductionTypeNone
                                          name:nil];
  });
}

static MPSMatrix* matrix_of(id<MTLBuffer> buffer, NSUInteger offset, NSUInteger columns) {
  MPSMatrixDescriptor* descriptor = [MPSMatrixDescriptor matrixDescriptorWithRows:2
                                                                          columns:columns
                                                                         rowBytes:columns * sizeof(float)
                                                                         dataType:MPSDataTypeFloat32];
  return [[[MPSMatrix alloc] initWithBuffer:buffer offset:offset descriptor:descriptor] autorelease];
}

static void tell_floats(std::ostream& out, id<MTLBuffer> buffer, int count) {
  for (int i = 0; i < count; i++) {
    out << ((float*)[buffer contents])[i] << " ";
  }
}

static id<MTLBuffer> buffer_of(std::initializer_list<float> values) {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  return [[device newBufferWithBytes:values.begin() length:values.size() * sizeof(float) options:0] autorelease];
}

const char* decomposed() {
  return tell([](std::ostream& out, MPSGraph*) {
    id<MTLBuffer> a = buffer_of({99, 1, 2, 4, 2});
    id<MTLBuffer> lu = buffer_of({0, 0, 0, 0});
    id<MTLBuffer> pivots = buffer_of({0, 0});
    id<MTLBuffer> status = buffer_of({1});
    MPSMatrixDescriptor* row = [MPSMatrixDescriptor matrixDescriptorWithRows:1
                                                                     columns:2
                                                                    rowBytes:2 * sizeof(uint32_t)
                                                                    dataType:MPSDataTypeUInt32];
    MPSMatrix* places = [[[MPSMatrix alloc] initWithBuffer:pivots descriptor:row] autorelease];
    MPSMatrixDecompositionLU* filter = [[[MPSMatrixDecompositionLU alloc] initWithDevice:nil rows:2
                                                                                 columns:2] autorelease];
    [filter encodeToCommandBuffer:nil
                     sourceMatrix:matrix_of(a, sizeof(float), 2)
                     resultMatrix:matrix_of(lu, 0, 2)
                     pivotIndices:places
                           status:status];
    tell_floats(out, lu, 4);
    out << ((uint32_t*)[pivots contents])[0] << ((uint32_t*)[pivots contents])[1] << " "
        << ((int*)[status contents])[0] << " ";
    id<MTLBuffer> x = buffer_of({0, 0});
    MPSMatrixSolveLU* solver = [[[MPSMatrixSolveLU alloc] initWithDevice:nil
                                                               transpose:NO
                                                                   order:2
                                                  numberOfRightHandSides:1] autorelease];
    [solver encodeToCommandBuffer:nil
                     sourceMatrix:matrix_of(lu, 0, 2)
              rightHandSideMatrix:matrix_of(buffer_of({3, 6}), 0, 1)
                     pivotIndices:places
                   solutionMatrix:matrix_of(x, 0, 1)];
    tell_floats(out, x, 2);
    [filter encodeToCommandBuffer:nil
                     sourceMatrix:matrix_of(buffer_of({1, 2, 2, 4}), 0, 2)
                     resultMatrix:matrix_of(lu, 0, 2)
                     pivotIndices:places
                           status:status];
    out << ((int*)[status contents])[0];
  });
}

const char* triangular() {
  return tell([](std::ostream& out, MPSGraph*) {
    id<MTLBuffer> x = buffer_of({0, 0});
    MPSMatrixSolveTriangular* solver = [[[MPSMatrixSolveTriangular alloc] initWithDevice:nil
                                                                                   right:NO
                                                                                   upper:YES
                                                                               transpose:YES
                                                                                    unit:NO
                                                                                   order:2
                                                                  numberOfRightHandSides:1
                                                                                   alpha:2.0] autorelease];
    [solver encodeToCommandBuffer:nil
                     sourceMatrix:matrix_of(buffer_of({2, 4, 77, 5}), 0, 2)
              rightHandSideMatrix:matrix_of(buffer_of({3, 11}), 0, 1)
                   solutionMatrix:matrix_of(x, 0, 1)];
    tell_floats(out, x, 2);
  });
}

const char* matrices() {
  return tell([](std::ostream& out, MPSGraph*) {
    id<MTLBuffer> target = buffer_of({100, 200});
    MPSMatrixMultiplication* product = [[[MPSMatrixMultiplication alloc] initWithDevice:nil
                                                                          transposeLeft:YES
                                                                         transposeRight:NO
                                                                             resultRows:2
                                                                          resultColumns:1
                                                                        interiorColumns:1
                                                                                  alpha:2.0
                                                                                   beta:0.5] autorelease];
    [product encodeToCommandBuffer:nil
                        leftMatrix:matrix_of(buffer_of({2, 4, 77, 5}), 0, 2)
                       rightMatrix:matrix_of(buffer_of({3, 11}), 0, 1)
                      resultMatrix:matrix_of(target, 0, 1)];
    tell_floats(out, target, 2);
  });
}

const char* multiplied() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSNDArrayMatrixMultiplication* product =
        [[[MPSNDArrayMatrixMultiplication alloc] initWithDevice:nil sourceCount:2] autorelease];
    product.alpha = 2;
    product.beta = 10;
    id<MTLBuffer> target = buffer_of({1, 2});
    MPSGraphTensorData* result = [[[MPSGraphTensorData alloc] initWithMTLBuffer:target
                                                                          shape:@[ @1, @2, @1 ]
                                                                       dataType:MPSDataTypeFloat32] autorelease];
    NSArray* sources = @[
      [data_of({1, 2, 3, 4}, @[ @1, @2, @2 ]) mpsndarray], [data_of({5, 6}, @[ @1, @2, @1 ]) mpsndarray]
    ];
    [product encodeToCommandBuffer:nil sourceArrays:sources destinationArray:[result mpsndarray]];
    tell_floats(out, target, 2);
  });
}

const char* unencodable() {
  return tell([](std::ostream& out, MPSGraph*) {
    MPSNDArrayUnaryKernel* kernel = [[[MPSNDArrayUnaryKernel alloc] initWithDevice:nil] autorelease];
    MPSNDArray* array = [data_of({1}, @[ @1 ]) mpsndarray];
    [kernel encodeToCommandBuffer:nil sourceArray:array destinationArray:array];
  });
}

const char* unknown() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];
    [graph assignVariable:x withValueOfTensor:x name:nil];
  });
}

const char* undeclared() {
  return tell([](std::ostream& out, MPSGraph* graph) {
    MPSGraphTensor* x = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];
    [graph squareRootsWithTensor:x name:nil];
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
