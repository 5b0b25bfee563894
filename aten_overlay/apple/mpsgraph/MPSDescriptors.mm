// Descriptors: their properties, which the compiler writes.
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#define COPY_BY_RETAIN                \
  -(id)copyWithZone : (NSZone*)zone { \
    return [self retain];             \
  }

@implementation MPSGraphConvolution2DOpDescriptor
COPY_BY_RETAIN
- (instancetype)init {
  _strideInX = _strideInY = _dilationRateInX = _dilationRateInY = 1;
  return self;
}
@end

@implementation MPSGraphConvolution3DOpDescriptor
COPY_BY_RETAIN
- (instancetype)init {
  _strideInX = _strideInY = _strideInZ = _dilationRateInX = _dilationRateInY = _dilationRateInZ = 1;
  return self;
}
@end

@implementation MPSGraphDepthwiseConvolution3DOpDescriptor
COPY_BY_RETAIN
- (void)dealloc {
  [_strides release];
  [_dilationRates release];
  [_paddingValues release];
  [super dealloc];
}
@end

@implementation MPSGraphPooling2DOpDescriptor
COPY_BY_RETAIN
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
                               dataLayout:(MPSGraphTensorNamedDataLayout)dataLayout {
  MPSGraphPooling2DOpDescriptor* made = [[self new] autorelease];
  made.kernelWidth = kernelWidth;
  made.kernelHeight = kernelHeight;
  made.strideInX = strideInX;
  made.strideInY = strideInY;
  made.dilationRateInX = dilationRateInX;
  made.dilationRateInY = dilationRateInY;
  made.paddingLeft = paddingLeft;
  made.paddingRight = paddingRight;
  made.paddingTop = paddingTop;
  made.paddingBottom = paddingBottom;
  made.paddingStyle = paddingStyle;
  made.dataLayout = dataLayout;
  return made;
}
@end

@implementation MPSGraphPooling4DOpDescriptor
COPY_BY_RETAIN
+ (instancetype)descriptorWithKernelSizes:(NSArray<NSNumber*>*)kernelSizes
                                  strides:(NSArray<NSNumber*>*)strides
                            dilationRates:(NSArray<NSNumber*>*)dilationRates
                            paddingValues:(NSArray<NSNumber*>*)paddingValues
                             paddingStyle:(MPSGraphPaddingStyle)paddingStyle {
  MPSGraphPooling4DOpDescriptor* made = [[self new] autorelease];
  made.kernelSizes = kernelSizes;
  made.strides = strides;
  made.dilationRates = dilationRates;
  made.paddingValues = paddingValues;
  made.paddingStyle = paddingStyle;
  return made;
}
- (void)dealloc {
  [_kernelSizes release];
  [_strides release];
  [_dilationRates release];
  [_paddingValues release];
  [super dealloc];
}
@end

@implementation MPSGraphRandomOpDescriptor
COPY_BY_RETAIN
+ (instancetype)descriptorWithDistribution:(MPSGraphRandomDistribution)distribution dataType:(MPSDataType)type {
  MPSGraphRandomOpDescriptor* made = [[self new] autorelease];
  made.distribution = distribution;
  made.dataType = type;
  const bool uniform = distribution == MPSGraphRandomDistributionUniform;
  made.min = uniform ? 0 : -2;
  made.max = uniform ? 1 : 2;
  made.maxInteger = uniform ? INT32_MAX : 0;
  made.standardDeviation = uniform ? 0 : 1;
  return made;
}
@end

@implementation MPSGraphLSTMDescriptor
COPY_BY_RETAIN
+ (instancetype)descriptor {
  MPSGraphLSTMDescriptor* made = [[self new] autorelease];
  made.inputGateActivation = MPSGraphRNNActivationSigmoid;
  made.forgetGateActivation = MPSGraphRNNActivationSigmoid;
  made.cellGateActivation = MPSGraphRNNActivationTanh;
  made.outputGateActivation = MPSGraphRNNActivationSigmoid;
  made.activation = MPSGraphRNNActivationTanh;
  return made;
}
@end

@implementation MPSGraphFFTDescriptor
COPY_BY_RETAIN
+ (instancetype)descriptor {
  return [[self new] autorelease];
}
@end
