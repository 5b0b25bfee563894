// Source: Apple's documentation of MTLLibrary, MTLFunction, MTLComputePipelineState.
#pragma once
#include <Metal/MTLResource.h>

@protocol MTLArgumentEncoder <NSObject>
- (void)setArgumentBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
@property(readonly) NSUInteger encodedLength;
@end

@interface MTLFunctionConstantValues : NSObject <NSCopying>
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index;
- (void)setConstantValue:(const void*)value type:(MTLDataType)type withName:(NSString*)name;
@end

@protocol MTLFunction <NSObject>
- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index;
@property(readonly) NSString* name;
@property(readonly) id<MTLDevice> device;
@end

@interface MTLCompileOptions : NSObject <NSCopying>
@property MTLLanguageVersion languageVersion;
@property BOOL fastMathEnabled;
@property MTLMathMode mathMode;
@property MTLMathFloatingPointFunctions mathFloatingPointFunctions;
@property(copy) NSDictionary* preprocessorMacros;
@end

@protocol MTLLibrary <NSObject>
- (id<MTLFunction>)newFunctionWithName:(NSString*)name;
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError**)error;
@property(readonly) NSArray<NSString*>* functionNames;
@property(readonly) id<MTLDevice> device;
@property(copy) NSString* label;
@end

typedef NS_ENUM(NSUInteger, MTLPipelineOption){MTLPipelineOptionNone = 0, MTLPipelineOptionArgumentInfo = 1,
                                               MTLPipelineOptionBindingInfo = 1, MTLPipelineOptionBufferTypeInfo = 2,
                                               MTLPipelineOptionFailOnBinaryArchiveMiss = 4};
@class MTLComputePipelineReflection;
typedef MTLComputePipelineReflection* MTLAutoreleasedComputePipelineReflection;

@interface MTLComputePipelineDescriptor : NSObject <NSCopying>
- (void)reset;
@property(copy) NSString* label;
@property(strong) id<MTLFunction> computeFunction;
@property BOOL threadGroupSizeIsMultipleOfThreadExecutionWidth;
@property NSUInteger maxTotalThreadsPerThreadgroup;
@property NSUInteger maxCallStackDepth;
@property BOOL supportIndirectCommandBuffers;
@end

@protocol MTLComputePipelineState <NSObject>
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property(readonly) NSUInteger threadExecutionWidth;
@property(readonly) NSUInteger staticThreadgroupMemoryLength;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSString* label;
@end
