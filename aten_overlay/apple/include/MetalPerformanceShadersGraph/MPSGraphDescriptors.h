// Source: Apple's documentation of MPSGraph's operation descriptors.
#pragma once
#include <MetalPerformanceShadersGraph/MPSGraphTypes.h>

@interface MPSGraphConvolution2DOpDescriptor : NSObject <NSCopying>
@property NSUInteger strideInX, strideInY, dilationRateInX, dilationRateInY;
@property NSUInteger paddingLeft, paddingRight, paddingTop, paddingBottom, groups;
@property MPSGraphPaddingStyle paddingStyle;
@property MPSGraphTensorNamedDataLayout dataLayout, weightsLayout;
@end

@interface MPSGraphConvolution3DOpDescriptor : NSObject <NSCopying>
@property NSUInteger strideInX, strideInY, strideInZ, dilationRateInX, dilationRateInY, dilationRateInZ;
@property NSUInteger paddingLeft, paddingRight, paddingTop, paddingBottom, paddingFront, paddingBack, groups;
@property MPSGraphPaddingStyle paddingStyle;
@property MPSGraphTensorNamedDataLayout dataLayout, weightsLayout;
@end

@interface MPSGraphDepthwiseConvolution3DOpDescriptor : NSObject <NSCopying>
@property(copy) NSArray<NSNumber*>* strides;
@property(copy) NSArray<NSNumber*>* dilationRates;
@property(copy) NSArray<NSNumber*>* paddingValues;
@property MPSGraphPaddingStyle paddingStyle;
@property NSInteger channelDimensionIndex;
@end

@interface MPSGraphPooling2DOpDescriptor : NSObject <NSCopying>
+ (instancetype)descriptorWithKernelWidth:(NSUInteger)kernelWidth
                             kernelHeight:(NSUInteger)kernelHeight
                                strideInX:(NSUInteger)strideInX
                                strideInY:(NSUInteger)strideInY
                          dilationRateInX:(NSUInteger)dilationRateInX
                          dilationRateInY:(NSUInteger)dilationRateInY
                              paddingLeft:(NSUInteger)paddingLeft
                             paddingRight:(NSUInteger)paddingRight
                               paddingTop:(NSUInteger)paddingTop
                            paddingBottom:(NSUInteger)paddingBottom
                             paddingStyle:(MPSGraphPaddingStyle)paddingStyle
                               dataLayout:(MPSGraphTensorNamedDataLayout)dataLayout;
@property NSUInteger kernelWidth, kernelHeight, strideInX, strideInY, dilationRateInX, dilationRateInY;
@property NSUInteger paddingLeft, paddingRight, paddingTop, paddingBottom;
@property MPSGraphPaddingStyle paddingStyle;
@property MPSGraphTensorNamedDataLayout dataLayout;
@property MPSGraphPoolingReturnIndicesMode returnIndicesMode;
@property MPSDataType returnIndicesDataType;
@property BOOL ceilMode, includeZeroPadToAverage;
@end

@interface MPSGraphPooling4DOpDescriptor : NSObject <NSCopying>
+ (instancetype)descriptorWithKernelSizes:(NSArray<NSNumber*>*)kernelSizes
                                  strides:(NSArray<NSNumber*>*)strides
                            dilationRates:(NSArray<NSNumber*>*)dilationRates
                            paddingValues:(NSArray<NSNumber*>*)paddingValues
                             paddingStyle:(MPSGraphPaddingStyle)paddingStyle;
@property(copy) NSArray<NSNumber*>* kernelSizes;
@property(copy) NSArray<NSNumber*>* strides;
@property(copy) NSArray<NSNumber*>* dilationRates;
@property(copy) NSArray<NSNumber*>* paddingValues;
@property MPSGraphPaddingStyle paddingStyle;
@property MPSGraphPoolingReturnIndicesMode returnIndicesMode;
@property MPSDataType returnIndicesDataType;
@property BOOL ceilMode, includeZeroPadToAverage;
@end

@interface MPSGraphRandomOpDescriptor : NSObject <NSCopying>
+ (instancetype)descriptorWithDistribution:(MPSGraphRandomDistribution)distribution dataType:(MPSDataType)type;
@property MPSGraphRandomDistribution distribution;
@property MPSDataType dataType;
@property float min, max, mean, standardDeviation;
@property NSInteger minInteger, maxInteger;
@end

@interface MPSGraphLSTMDescriptor : NSObject <NSCopying>
+ (instancetype)descriptor;
@property BOOL reverse, bidirectional, produceCell, training, forgetGateLast;
@property MPSGraphRNNActivation inputGateActivation, forgetGateActivation, cellGateActivation;
@property MPSGraphRNNActivation outputGateActivation, activation;
@end

@interface MPSGraphFFTDescriptor : NSObject <NSCopying>
+ (instancetype)descriptor;
@property(readwrite, nonatomic) BOOL inverse, roundToOddHermitean;
@property(readwrite, nonatomic) MPSGraphFFTScalingMode scalingMode;
@end
