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
- (void)setConstantValues:(const void*)values type:(MTLDataType)type withRange:(NSRange)range;
- (void)reset;
@end

@protocol MTLFunction <NSObject>
- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index;
@property(readonly) NSString* name;
@property(readonly) MTLFunctionType functionType;
@property(readonly) MTLFunctionOptions options;
@property(readonly) id<MTLDevice> device;
@property(copy) NSString* label;
@end

@interface MTLFunctionDescriptor : NSObject <NSCopying>
+ (MTLFunctionDescriptor*)functionDescriptor;
@property(copy) NSString* name;
@property(copy) NSString* specializedName;
@property(copy) MTLFunctionConstantValues* constantValues;
@property MTLFunctionOptions options;
@end

@interface MTLCompileOptions : NSObject <NSCopying>
@property MTLLanguageVersion languageVersion;
@property BOOL fastMathEnabled;
@property MTLMathMode mathMode;
@property MTLMathFloatingPointFunctions mathFloatingPointFunctions;
@property(copy) NSDictionary* preprocessorMacros;
@property MTLLibraryType libraryType;
@property MTLLibraryOptimizationLevel optimizationLevel;
@property BOOL preserveInvariance;
@property BOOL enableLogging;
@end

typedef void (^MTLFunctionHandler)(id<MTLFunction> function, NSError* error);

@protocol MTLLibrary <NSObject>
- (id<MTLFunction>)newFunctionWithName:(NSString*)name;
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError**)error;
- (void)newFunctionWithName:(NSString*)name
             constantValues:(MTLFunctionConstantValues*)values
          completionHandler:(MTLFunctionHandler)handler;
- (id<MTLFunction>)newFunctionWithDescriptor:(MTLFunctionDescriptor*)descriptor error:(NSError**)error;
@property(readonly) MTLLibraryType type;
@property(readonly) NSString* installName;
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
@property(readonly) BOOL supportIndirectCommandBuffers;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSString* label;
@end
