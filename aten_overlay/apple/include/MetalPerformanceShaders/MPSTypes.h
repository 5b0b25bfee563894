// Source: Apple's documentation of MPSDataType and MPSShape; the values are those of its headers.
#pragma once
#include <Metal/Metal.h>

typedef NSArray<NSNumber*> MPSShape;

typedef struct {
  NSUInteger start;
  NSUInteger length;
} MPSDimensionSlice;

typedef NS_ENUM(uint32_t, MPSDataType){
    MPSDataTypeInvalid = 0,
    MPSDataTypeComplexBit = 0x01000000,
    MPSDataTypeFloatBit = 0x10000000,
    MPSDataTypeSignedBit = 0x20000000,
    MPSDataTypeIntBit = 0x20000000,
    MPSDataTypeNormalizedBit = 0x40000000,
    MPSDataTypeAlternateEncodingBit = 0x80000000,

    MPSDataTypeFloat32 = MPSDataTypeFloatBit | 32,
    MPSDataTypeFloat16 = MPSDataTypeFloatBit | 16,
    MPSDataTypeBFloat16 = MPSDataTypeAlternateEncodingBit | MPSDataTypeFloat16,
    MPSDataTypeComplexFloat32 = MPSDataTypeFloatBit | MPSDataTypeComplexBit | 64,
    MPSDataTypeComplexFloat16 = MPSDataTypeFloatBit | MPSDataTypeComplexBit | 32,
    MPSDataTypeInt4 = MPSDataTypeSignedBit | 4,
    MPSDataTypeInt8 = MPSDataTypeSignedBit | 8,
    MPSDataTypeInt16 = MPSDataTypeSignedBit | 16,
    MPSDataTypeInt32 = MPSDataTypeSignedBit | 32,
    MPSDataTypeInt64 = MPSDataTypeSignedBit | 64,
    MPSDataTypeUInt4 = 4,
    MPSDataTypeUInt8 = 8,
    MPSDataTypeUInt16 = 16,
    MPSDataTypeUInt32 = 32,
    MPSDataTypeUInt64 = 64,
    MPSDataTypeBool = MPSDataTypeAlternateEncodingBit | 8,
};

typedef NS_OPTIONS(NSUInteger, MPSAliasingStrategy){
    MPSAliasingStrategyDefault = 0,
    MPSAliasingStrategyDontCare = 0,
    MPSAliasingStrategyShallAlias = 1,
    MPSAliasingStrategyShallNotAlias = 2,
    MPSAliasingStrategyAliasingReserved = 3,
    MPSAliasingStrategyPreferTemporaryMemory = 4,
    MPSAliasingStrategyPreferNonTemporaryMemory = 8,
};

// A command buffer that can be committed and go on under the same name.
@interface MPSCommandBuffer : NSObject <MTLCommandBuffer>
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)queue;
+ (instancetype)commandBufferWithCommandBuffer:(id<MTLCommandBuffer>)buffer;
- (void)commitAndContinue;
@property(readonly) id<MTLCommandBuffer> commandBuffer;
@property(readonly) id<MTLCommandBuffer> rootCommandBuffer;
@end

@interface MPSKernel : NSObject <NSCopying>
- (instancetype)initWithDevice:(id<MTLDevice>)device;
@property(readonly) id<MTLDevice> device;
@property(copy) NSString* label;
@end
