// Source: Apple's documentation of MPSMatrix and its decompositions and solvers.
#pragma once
#include <MetalPerformanceShaders/MPSTypes.h>

@interface MPSMatrixDescriptor : NSObject
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)type;
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                matrices:(NSUInteger)matrices
                                rowBytes:(NSUInteger)rowBytes
                             matrixBytes:(NSUInteger)matrixBytes
                                dataType:(MPSDataType)type;
@property(readwrite, nonatomic) NSUInteger rows, columns, rowBytes;
@property(readonly, nonatomic) NSUInteger matrices, matrixBytes;
@property(readwrite, nonatomic) MPSDataType dataType;
@end

@interface MPSMatrix : NSObject
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer descriptor:(MPSMatrixDescriptor*)descriptor;
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor*)descriptor;
@property(readonly, nonatomic) NSUInteger rows, columns, offset;
@property(readonly, nonatomic) MPSDataType dataType;
@property(readonly, nonatomic) id<MTLBuffer> data;
@end

// What a decomposition writes as its status.
typedef NS_ENUM(int, MPSMatrixDecompositionStatus){MPSMatrixDecompositionStatusSuccess = 0,
                                                   MPSMatrixDecompositionStatusFailure = -1,
                                                   MPSMatrixDecompositionStatusSingular = -2,
                                                   MPSMatrixDecompositionStatusNonPositiveDefinite = -3};

@interface MPSMatrixDecompositionLU : MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device rows:(NSUInteger)rows columns:(NSUInteger)columns;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)buffer
                 sourceMatrix:(MPSMatrix*)source
                 resultMatrix:(MPSMatrix*)result
                 pivotIndices:(MPSMatrix*)pivots
                       status:(id<MTLBuffer>)status;
@end

@interface MPSMatrixMultiplication : MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)rows
                 resultColumns:(NSUInteger)columns
               interiorColumns:(NSUInteger)interior
                         alpha:(double)alpha
                          beta:(double)beta;
- (instancetype)initWithDevice:(id<MTLDevice>)device
                    resultRows:(NSUInteger)rows
                 resultColumns:(NSUInteger)columns
               interiorColumns:(NSUInteger)interior;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)buffer
                   leftMatrix:(MPSMatrix*)left
                  rightMatrix:(MPSMatrix*)right
                 resultMatrix:(MPSMatrix*)result;
@end

@interface MPSMatrixSolveLU : MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device
                     transpose:(BOOL)transpose
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)count;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)buffer
                 sourceMatrix:(MPSMatrix*)source
          rightHandSideMatrix:(MPSMatrix*)right
                 pivotIndices:(MPSMatrix*)pivots
               solutionMatrix:(MPSMatrix*)solution;
@end

@interface MPSMatrixSolveTriangular : MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device
                         right:(BOOL)right
                         upper:(BOOL)upper
                     transpose:(BOOL)transpose
                          unit:(BOOL)unit
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)count
                         alpha:(double)alpha;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)buffer
                 sourceMatrix:(MPSMatrix*)source
          rightHandSideMatrix:(MPSMatrix*)right
               solutionMatrix:(MPSMatrix*)solution;
@end
