// Convolution, pooling, normalization, resizing, random numbers, recurrent networks, transforms. Source: Apple's
// documentation of MPSGraph.
#pragma once
#include <MetalPerformanceShadersGraph/MPSGraph.h>
#include <MetalPerformanceShadersGraph/MPSGraphDescriptors.h>

@interface MPSGraph (NetworkOps)
- (MPSGraphTensor*)convolution2DWithSourceTensor:(MPSGraphTensor*)source
                                   weightsTensor:(MPSGraphTensor*)weights
                                      descriptor:(MPSGraphConvolution2DOpDescriptor*)descriptor
                                            name:(NSString*)name;
- (MPSGraphTensor*)convolution2DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
                                                         weightsTensor:(MPSGraphTensor*)weights
                                                           outputShape:(MPSShape*)shape
                                          forwardConvolutionDescriptor:(MPSGraphConvolution2DOpDescriptor*)descriptor
                                                                  name:(NSString*)name;
- (MPSGraphTensor*)convolution2DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
    sourceTensor:(MPSGraphTensor*)source
    outputShape:(MPSShape*)shape
    forwardConvolutionDescriptor:(MPSGraphConvolution2DOpDescriptor*)descriptor
    name:(NSString*)name;
- (MPSGraphTensor*)convolution3DWithSourceTensor:(MPSGraphTensor*)source
                                   weightsTensor:(MPSGraphTensor*)weights
                                      descriptor:(MPSGraphConvolution3DOpDescriptor*)descriptor
                                            name:(NSString*)name;
- (MPSGraphTensor*)convolution3DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
                                                         weightsTensor:(MPSGraphTensor*)weights
                                                           outputShape:(MPSShape*)shape
                                          forwardConvolutionDescriptor:(MPSGraphConvolution3DOpDescriptor*)descriptor
                                                                  name:(NSString*)name;
- (MPSGraphTensor*)convolution3DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
    sourceTensor:(MPSGraphTensor*)source
    outputShape:(MPSShape*)shape
    forwardConvolutionDescriptor:(MPSGraphConvolution3DOpDescriptor*)descriptor
    name:(NSString*)name;
- (MPSGraphTensor*)depthwiseConvolution3DWithSourceTensor:(MPSGraphTensor*)source
                                            weightsTensor:(MPSGraphTensor*)weights
                                               descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)depthwiseConvolution3DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
    weightsTensor:(MPSGraphTensor*)weights
    outputShape:(MPSShape*)shape
    descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
    name:(NSString*)name;
- (MPSGraphTensor*)depthwiseConvolution3DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
    sourceTensor:(MPSGraphTensor*)source
    outputShape:(MPSShape*)shape
    descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
    name:(NSString*)name;
- (MPSGraphTensor*)maxPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)maxPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)maxPooling4DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling4DOpDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)maxPooling4DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling4DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)avgPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)avgPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)avgPooling4DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling4DOpDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)avgPooling4DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling4DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)maxPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                            indicesTensor:(MPSGraphTensor*)indices
                                              outputShape:(MPSShape*)shape
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)maxPooling4DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                            indicesTensor:(MPSGraphTensor*)indices
                                              outputShape:(MPSShape*)shape
                                               descriptor:(MPSGraphPooling4DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)normalizationWithTensor:(MPSGraphTensor*)tensor
                                meanTensor:(MPSGraphTensor*)mean
                            varianceTensor:(MPSGraphTensor*)variance
                               gammaTensor:(MPSGraphTensor*)gamma
                                betaTensor:(MPSGraphTensor*)beta
                                   epsilon:(float)epsilon
                                      name:(NSString*)name;
- (MPSGraphTensor*)normalizationGammaGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
                                                           sourceTensor:(MPSGraphTensor*)source
                                                             meanTensor:(MPSGraphTensor*)mean
                                                         varianceTensor:(MPSGraphTensor*)variance
                                                          reductionAxes:(NSArray<NSNumber*>*)axes
                                                                epsilon:(float)epsilon
                                                                   name:(NSString*)name;
- (MPSGraphTensor*)normalizationBetaGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
                                                          sourceTensor:(MPSGraphTensor*)source
                                                         reductionAxes:(NSArray<NSNumber*>*)axes
                                                                  name:(NSString*)name;
- (MPSGraphTensor*)normalizationGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
                                                      sourceTensor:(MPSGraphTensor*)source
                                                        meanTensor:(MPSGraphTensor*)mean
                                                    varianceTensor:(MPSGraphTensor*)variance
                                                       gammaTensor:(MPSGraphTensor*)gamma
                                               gammaGradientTensor:(MPSGraphTensor*)gammaGradient
                                                betaGradientTensor:(MPSGraphTensor*)betaGradient
                                                     reductionAxes:(NSArray<NSNumber*>*)axes
                                                           epsilon:(float)epsilon
                                                              name:(NSString*)name;
- (MPSGraphTensor*)resizeTensor:(MPSGraphTensor*)images
                           size:(MPSShape*)size
                           mode:(MPSGraphResizeMode)mode
                   centerResult:(BOOL)center
                   alignCorners:(BOOL)align
                         layout:(MPSGraphTensorNamedDataLayout)layout
                           name:(NSString*)name;
- (MPSGraphTensor*)resizeTensor:(MPSGraphTensor*)images
                     sizeTensor:(MPSGraphTensor*)size
                           mode:(MPSGraphResizeMode)mode
                   centerResult:(BOOL)center
                   alignCorners:(BOOL)align
                         layout:(MPSGraphTensorNamedDataLayout)layout
                           name:(NSString*)name;
- (MPSGraphTensor*)resizeWithGradientTensor:(MPSGraphTensor*)gradient
                                      input:(MPSGraphTensor*)input
                                       mode:(MPSGraphResizeMode)mode
                               centerResult:(BOOL)center
                               alignCorners:(BOOL)align
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name;
- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)images
                                sizeTensor:(MPSGraphTensor*)size
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)mode
                              centerResult:(BOOL)center
                              alignCorners:(BOOL)align
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name;
- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)images
                                sizeTensor:(MPSGraphTensor*)size
                         scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)mode
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name;
- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)images
                                 sizeTensor:(MPSGraphTensor*)size
                               centerResult:(BOOL)center
                               alignCorners:(BOOL)align
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name;
- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)images
                                 sizeTensor:(MPSGraphTensor*)size
                          scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name;
- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)mode
                                      centerResult:(BOOL)center
                                      alignCorners:(BOOL)align
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name;
- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                                 scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)mode
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name;
- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                       centerResult:(BOOL)center
                                       alignCorners:(BOOL)align
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name;
- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                  scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name;
- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalize
                          relativeCoordinates:(BOOL)relative
                                 alignCorners:(BOOL)align
                                  paddingMode:(MPSGraphPaddingMode)padding
                                 samplingMode:(MPSGraphResizeMode)sampling
                                constantValue:(double)value
                                         name:(NSString*)name;
- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalize
                          relativeCoordinates:(BOOL)relative
                                 alignCorners:(BOOL)align
                                  paddingMode:(MPSGraphPaddingMode)padding
                          nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)rounding
                                constantValue:(double)value
                                         name:(NSString*)name;
- (MPSGraphTensor*)softMaxCrossEntropyWithSourceTensor:(MPSGraphTensor*)source
                                          labelsTensor:(MPSGraphTensor*)labels
                                                  axis:(NSInteger)axis
                                         reductionType:(MPSGraphLossReductionType)reduction
                                                  name:(NSString*)name;
- (MPSGraphTensor*)softMaxCrossEntropyGradientWithIncomingGradientTensor:(MPSGraphTensor*)gradient
                                                            sourceTensor:(MPSGraphTensor*)source
                                                            labelsTensor:(MPSGraphTensor*)labels
                                                                    axis:(NSInteger)axis
                                                           reductionType:(MPSGraphLossReductionType)reduction
                                                                    name:(NSString*)name;
- (MPSGraphTensor*)dropoutTensor:(MPSGraphTensor*)tensor rate:(double)rate name:(NSString*)name;
- (MPSGraphTensor*)randomTensorWithShape:(MPSShape*)shape
                              descriptor:(MPSGraphRandomOpDescriptor*)descriptor
                                    name:(NSString*)name;
- (MPSGraphTensor*)randomPhiloxStateTensorWithCounterLow:(NSUInteger)low
                                             counterHigh:(NSUInteger)high
                                                     key:(NSUInteger)key
                                                    name:(NSString*)name;
- (MPSGraphTensor*)randomPhiloxStateTensorWithSeed:(NSUInteger)seed name:(NSString*)name;
- (MPSGraphTensor*)fastFourierTransformWithTensor:(MPSGraphTensor*)tensor
                                             axes:(NSArray<NSNumber*>*)axes
                                       descriptor:(MPSGraphFFTDescriptor*)descriptor
                                             name:(NSString*)name;
- (MPSGraphTensor*)realToHermiteanFFTWithTensor:(MPSGraphTensor*)tensor
                                           axes:(NSArray<NSNumber*>*)axes
                                     descriptor:(MPSGraphFFTDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)HermiteanToRealFFTWithTensor:(MPSGraphTensor*)tensor
                                           axes:(NSArray<NSNumber*>*)axes
                                     descriptor:(MPSGraphFFTDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)scaledDotProductAttentionWithQueryTensor:(MPSGraphTensor*)query
                                                  keyTensor:(MPSGraphTensor*)key
                                                valueTensor:(MPSGraphTensor*)value
                                                 maskTensor:(MPSGraphTensor*)mask
                                                      scale:(float)scale
                                                       name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)maxPooling2DReturnIndicesWithSourceTensor:(MPSGraphTensor*)source
                                                            descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                                  name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)maxPooling4DReturnIndicesWithSourceTensor:(MPSGraphTensor*)source
                                                            descriptor:(MPSGraphPooling4DOpDescriptor*)descriptor
                                                                  name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)randomTensorWithShape:(MPSShape*)shape
                                        descriptor:(MPSGraphRandomOpDescriptor*)descriptor
                                       stateTensor:(MPSGraphTensor*)state
                                              name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)LSTMWithSourceTensor:(MPSGraphTensor*)source
                                  recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                      inputWeight:(MPSGraphTensor*)inputWeight
                                             bias:(MPSGraphTensor*)bias
                                        initState:(MPSGraphTensor*)initState
                                         initCell:(MPSGraphTensor*)initCell
                                       descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                             name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)LSTMWithSourceTensor:(MPSGraphTensor*)source
                                  recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                      inputWeight:(MPSGraphTensor*)inputWeight
                                             bias:(MPSGraphTensor*)bias
                                        initState:(MPSGraphTensor*)initState
                                         initCell:(MPSGraphTensor*)initCell
                                             mask:(MPSGraphTensor*)mask
                                         peephole:(MPSGraphTensor*)peephole
                                       descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                             name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)LSTMGradientsWithSourceTensor:(MPSGraphTensor*)source
                                           recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                            sourceGradient:(MPSGraphTensor*)sourceGradient
                                                    zState:(MPSGraphTensor*)zState
                                             cellOutputFwd:(MPSGraphTensor*)cellOutput
                                             stateGradient:(MPSGraphTensor*)stateGradient
                                              cellGradient:(MPSGraphTensor*)cellGradient
                                               inputWeight:(MPSGraphTensor*)inputWeight
                                                      bias:(MPSGraphTensor*)bias
                                                 initState:(MPSGraphTensor*)initState
                                                  initCell:(MPSGraphTensor*)initCell
                                                      mask:(MPSGraphTensor*)mask
                                                  peephole:(MPSGraphTensor*)peephole
                                                descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                                      name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)LSTMGradientsWithSourceTensor:(MPSGraphTensor*)source
                                           recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                            sourceGradient:(MPSGraphTensor*)sourceGradient
                                                    zState:(MPSGraphTensor*)zState
                                             cellOutputFwd:(MPSGraphTensor*)cellOutput
                                               inputWeight:(MPSGraphTensor*)inputWeight
                                                      bias:(MPSGraphTensor*)bias
                                                 initState:(MPSGraphTensor*)initState
                                                  initCell:(MPSGraphTensor*)initCell
                                                      mask:(MPSGraphTensor*)mask
                                                descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                                      name:(NSString*)name;
@end
