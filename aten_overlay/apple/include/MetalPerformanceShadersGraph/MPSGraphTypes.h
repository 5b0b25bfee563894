// Enumerations and tensors. Source: Apple's documentation of MPSGraph; the values are those of its headers.
#pragma once
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>

typedef NS_ENUM(uint64_t, MPSGraphOptions){MPSGraphOptionsNone = 0, MPSGraphOptionsSynchronizeResults = 1,
                                           MPSGraphOptionsVerbose = 2, MPSGraphOptionsDefault = 1};
typedef NS_ENUM(uint64_t, MPSGraphOptimization){MPSGraphOptimizationLevel0 = 0, MPSGraphOptimizationLevel1 = 1};
typedef NS_ENUM(NSUInteger, MPSGraphTensorNamedDataLayout){
    MPSGraphTensorNamedDataLayoutNCHW = 0,  MPSGraphTensorNamedDataLayoutNHWC = 1,
    MPSGraphTensorNamedDataLayoutOIHW = 2,  MPSGraphTensorNamedDataLayoutHWIO = 3,
    MPSGraphTensorNamedDataLayoutCHW = 4,   MPSGraphTensorNamedDataLayoutHWC = 5,
    MPSGraphTensorNamedDataLayoutHW = 6,    MPSGraphTensorNamedDataLayoutNCDHW = 7,
    MPSGraphTensorNamedDataLayoutNDHWC = 8, MPSGraphTensorNamedDataLayoutOIDHW = 9,
    MPSGraphTensorNamedDataLayoutDHWIO = 10};
typedef NS_ENUM(NSUInteger, MPSGraphPaddingStyle){
    MPSGraphPaddingStyleExplicit = 0, MPSGraphPaddingStyleTF_VALID = 1, MPSGraphPaddingStyleTF_SAME = 2,
    MPSGraphPaddingStyleExplicitOffset = 3, MPSGraphPaddingStyleONNX_SAME_LOWER = 4};
typedef NS_ENUM(NSInteger, MPSGraphPaddingMode){
    MPSGraphPaddingModeConstant = 0,    MPSGraphPaddingModeReflect = 1, MPSGraphPaddingModeSymmetric = 2,
    MPSGraphPaddingModeClampToEdge = 3, MPSGraphPaddingModeZero = 4,    MPSGraphPaddingModePeriodic = 5,
    MPSGraphPaddingModeAntiPeriodic = 6};
typedef NS_ENUM(NSUInteger, MPSGraphResizeMode){MPSGraphResizeNearest = 0, MPSGraphResizeBilinear = 1};
typedef NS_ENUM(NSUInteger, MPSGraphResizeNearestRoundingMode){
    MPSGraphResizeNearestRoundingModeRoundPreferCeil = 0, MPSGraphResizeNearestRoundingModeRoundPreferFloor = 1,
    MPSGraphResizeNearestRoundingModeCeil = 2,            MPSGraphResizeNearestRoundingModeFloor = 3,
    MPSGraphResizeNearestRoundingModeRoundToEven = 4,     MPSGraphResizeNearestRoundingModeRoundToOdd = 5};
typedef NS_ENUM(NSInteger, MPSGraphScatterMode){
    MPSGraphScatterModeAdd = 0, MPSGraphScatterModeSub = 1, MPSGraphScatterModeMul = 2, MPSGraphScatterModeDiv = 3,
    MPSGraphScatterModeMin = 4, MPSGraphScatterModeMax = 5, MPSGraphScatterModeSet = 6};
typedef NS_ENUM(uint64_t, MPSGraphRandomDistribution){MPSGraphRandomDistributionUniform = 0,
                                                      MPSGraphRandomDistributionNormal = 1,
                                                      MPSGraphRandomDistributionTruncatedNormal = 2};
typedef NS_ENUM(NSUInteger, MPSGraphPoolingReturnIndicesMode){
    MPSGraphPoolingReturnIndicesNone = 0,            MPSGraphPoolingReturnIndicesGlobalFlatten1D = 1,
    MPSGraphPoolingReturnIndicesGlobalFlatten2D = 2, MPSGraphPoolingReturnIndicesGlobalFlatten3D = 3,
    MPSGraphPoolingReturnIndicesGlobalFlatten4D = 4, MPSGraphPoolingReturnIndicesLocalFlatten1D = 5,
    MPSGraphPoolingReturnIndicesLocalFlatten2D = 6,  MPSGraphPoolingReturnIndicesLocalFlatten3D = 7,
    MPSGraphPoolingReturnIndicesLocalFlatten4D = 8};
typedef NS_ENUM(NSUInteger, MPSGraphFFTScalingMode){MPSGraphFFTScalingModeNone = 0, MPSGraphFFTScalingModeSize = 1,
                                                    MPSGraphFFTScalingModeUnitary = 2};
typedef NS_ENUM(uint64_t, MPSGraphLossReductionType){MPSGraphLossReductionTypeAxis = 0,
                                                     MPSGraphLossReductionTypeNone = 0,
                                                     MPSGraphLossReductionTypeSum = 1,
                                                     MPSGraphLossReductionTypeMean = 2};
typedef NS_ENUM(NSUInteger, MPSGraphRNNActivation){
    MPSGraphRNNActivationNone = 0,    MPSGraphRNNActivationRelu = 1,        MPSGraphRNNActivationTanh = 2,
    MPSGraphRNNActivationSigmoid = 3, MPSGraphRNNActivationHardSigmoid = 4};

@class MPSGraphOperation;

// A value of a graph: the result, or one of the results, of an operation. A shape of nil is unknown.
@interface MPSGraphTensor : NSObject <NSCopying>
@property(readonly) MPSShape* shape;
@property(readonly) MPSDataType dataType;
@property(readonly) MPSGraphOperation* operation;
@end

@interface MPSGraphOperation : NSObject <NSCopying>
@property(readonly) NSString* name;
@end

@interface MPSGraphShapedType : NSObject <NSCopying>
- (instancetype)initWithShape:(MPSShape*)shape dataType:(MPSDataType)type;
@property(readonly) MPSShape* shape;
@property(readonly) MPSDataType dataType;
@end

@interface MPSGraphDevice : NSObject
+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)device;
@end

// Where a graph reads a value from, or writes it to.
@interface MPSGraphTensorData : NSObject
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer shape:(MPSShape*)shape dataType:(MPSDataType)type;
- (instancetype)initWithMPSNDArray:(MPSNDArray*)array;
- (instancetype)initWithDevice:(MPSGraphDevice*)device
                          data:(NSData*)data
                         shape:(MPSShape*)shape
                      dataType:(MPSDataType)type;
- (MPSNDArray*)mpsndarray;
@property(readonly) MPSShape* shape;
@property(readonly) MPSDataType dataType;
@end

typedef NSDictionary<MPSGraphTensor*, MPSGraphTensorData*> MPSGraphTensorDataDictionary;
typedef NSDictionary<MPSGraphTensor*, MPSGraphShapedType*> MPSGraphTensorShapedTypeDictionary;
