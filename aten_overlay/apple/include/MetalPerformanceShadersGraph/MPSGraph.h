// A graph, how it is compiled and run. Source: Apple's documentation of MPSGraph and MPSGraphExecutable.
#pragma once
#include <MetalPerformanceShadersGraph/MPSGraphTypes.h>

@interface MPSGraphCompilationDescriptor : NSObject
- (void)disableTypeInference;
@property(readwrite, nonatomic) MPSGraphOptimization optimizationLevel;
@end

@interface MPSGraphExecutionDescriptor : NSObject
@property(readwrite, nonatomic) BOOL waitUntilCompleted;
@property(readwrite, nonatomic) BOOL enableCommitAndContinue;
@property(readwrite, nonatomic, copy) MPSGraphCompilationDescriptor* compilationDescriptor;
@end

@interface MPSGraphExecutableExecutionDescriptor : NSObject
@property(readwrite, nonatomic) BOOL waitUntilCompleted;
@property(readwrite, nonatomic) BOOL enableCommitAndContinue;
@end

@interface MPSGraphExecutable : NSObject
- (NSArray<MPSGraphTensorData*>*)encodeToCommandBuffer:(MPSCommandBuffer*)buffer
                                           inputsArray:(NSArray<MPSGraphTensorData*>*)inputs
                                          resultsArray:(NSArray<MPSGraphTensorData*>*)results
                                   executionDescriptor:(MPSGraphExecutableExecutionDescriptor*)descriptor;
@property(readonly, retain) NSArray<MPSGraphTensor*>* feedTensors;
@property(readonly, retain) NSArray<MPSGraphTensor*>* targetTensors;
@end

// Every operation is a message that the graph records; none has a method here.
@interface MPSGraph : NSObject
@property(readonly) NSArray<MPSGraphTensor*>* placeholderTensors;
@property(readwrite, nonatomic) MPSGraphOptions options;
- (void)encodeToCommandBuffer:(MPSCommandBuffer*)buffer
                        feeds:(MPSGraphTensorDataDictionary*)feeds
             targetOperations:(NSArray<MPSGraphOperation*>*)operations
            resultsDictionary:(MPSGraphTensorDataDictionary*)results
          executionDescriptor:(MPSGraphExecutionDescriptor*)descriptor;
- (MPSGraphTensorDataDictionary*)runWithMTLCommandQueue:(id<MTLCommandQueue>)queue
                                                  feeds:(MPSGraphTensorDataDictionary*)feeds
                                          targetTensors:(NSArray<MPSGraphTensor*>*)targets
                                       targetOperations:(NSArray<MPSGraphOperation*>*)operations;
- (MPSGraphExecutable*)compileWithDevice:(MPSGraphDevice*)device
                                   feeds:(MPSGraphTensorShapedTypeDictionary*)feeds
                           targetTensors:(NSArray<MPSGraphTensor*>*)targets
                        targetOperations:(NSArray<MPSGraphOperation*>*)operations
                   compilationDescriptor:(MPSGraphCompilationDescriptor*)descriptor;
@end
