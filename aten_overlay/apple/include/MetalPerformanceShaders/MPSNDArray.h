// Source: Apple's documentation of MPSNDArray, its descriptor and its kernels.
#pragma once
#include <MetalPerformanceShaders/MPSTypes.h>

@interface MPSNDArrayDescriptor : NSObject
+ (instancetype)descriptorWithDataType:(MPSDataType)type shape:(MPSShape*)shape;
- (void)reshapeWithShape:(MPSShape*)shape;
- (void)transposeDimension:(NSUInteger)one withDimension:(NSUInteger)other;
- (void)permuteWithDimensionOrder:(NSUInteger*)order;
- (void)sliceDimension:(NSUInteger)dimension withSubrange:(MPSDimensionSlice)subRange;
- (NSUInteger)lengthOfDimension:(NSUInteger)dimension;
@property(readwrite, nonatomic) MPSDataType dataType;
@property(readwrite, nonatomic) NSUInteger numberOfDimensions;
@property(readwrite, nonatomic) BOOL preferPackedRows;
@end

@interface MPSNDArray : NSObject
+ (instancetype)temporaryNDArrayWithCommandBuffer:(id<MTLCommandBuffer>)buffer
                                       descriptor:(MPSNDArrayDescriptor*)descriptor;
- (instancetype)initWithDevice:(id<MTLDevice>)device descriptor:(MPSNDArrayDescriptor*)descriptor;
- (instancetype)initWithDevice:(id<MTLDevice>)device scalar:(double)value;
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSNDArrayDescriptor*)descriptor;
- (MPSNDArrayDescriptor*)descriptor;
- (MPSNDArray*)arrayViewWithDescriptor:(MPSNDArrayDescriptor*)descriptor;
- (MPSNDArray*)arrayViewWithShape:(MPSShape*)shape strides:(MPSShape*)strides;
- (MPSNDArray*)arrayViewWithCommandBuffer:(id<MTLCommandBuffer>)buffer
                               descriptor:(MPSNDArrayDescriptor*)descriptor
                                 aliasing:(MPSAliasingStrategy)aliasing;
- (void)writeBytes:(void*)bytes strideBytes:(NSInteger*)strides;
- (void)readBytes:(void*)bytes strideBytes:(NSInteger*)strides;
- (id<MTLBuffer>)userBuffer;
- (NSUInteger)lengthOfDimension:(NSUInteger)dimension;
@property(readonly, nonatomic) MPSDataType dataType;
@property(readonly, nonatomic) NSUInteger numberOfDimensions;
@property(readonly, nonatomic) NSUInteger dataTypeSize;
@end

@interface MPSNDArrayUnaryKernel : MPSKernel
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)buffer
                  sourceArray:(MPSNDArray*)source
             destinationArray:(MPSNDArray*)destination;
@end

@interface MPSNDArrayIdentity : MPSNDArrayUnaryKernel
- (MPSNDArray*)reshapeWithCommandBuffer:(id<MTLCommandBuffer>)buffer
                            sourceArray:(MPSNDArray*)source
                                  shape:(MPSShape*)shape
                       destinationArray:(MPSNDArray*)destination;
@end

@interface MPSNDArrayMatrixMultiplication : MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device sourceCount:(NSUInteger)count;
- (void)encodeToCommandEncoder:(id<MTLComputeCommandEncoder>)encoder
                 commandBuffer:(id<MTLCommandBuffer>)buffer
                  sourceArrays:(NSArray<MPSNDArray*>*)sources
              destinationArray:(MPSNDArray*)destination;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)buffer
                 sourceArrays:(NSArray<MPSNDArray*>*)sources
             destinationArray:(MPSNDArray*)destination;
@property(readwrite, nonatomic) double alpha;
@property(readwrite, nonatomic) double beta;
@end
