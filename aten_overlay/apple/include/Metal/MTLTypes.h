// Sizes and options. Source: Apple's documentation of Metal; the values are those of its headers.
#pragma once
#include <Foundation/Foundation.h>
#include <simd/simd.h>

#define __MAC_13_0 130000
#define __MAC_13_2 130200
#define __MAC_13_3 130300
#define __MAC_14_0 140000
#define __MAC_14_4 140400
#define __MAC_15_0 150000
#define __MAC_26_0 260000
#define __MAC_OS_X_VERSION_MAX_ALLOWED __MAC_26_0

typedef struct {
  NSUInteger width;
  NSUInteger height;
  NSUInteger depth;
} MTLSize;

static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  return MTLSize{width, height, depth};
}

typedef struct {
  NSUInteger size;
  NSUInteger align;
} MTLSizeAndAlign;

// What an indirect dispatch reads from its buffer.
typedef struct {
  uint32_t threadgroupsPerGrid[3];
} MTLDispatchThreadgroupsIndirectArguments;

typedef NS_OPTIONS(NSUInteger, MTLResourceOptions){
    MTLResourceCPUCacheModeDefaultCache = 0,
    MTLResourceCPUCacheModeWriteCombined = 1,
    MTLResourceStorageModeShared = 0,
    MTLResourceStorageModeManaged = 1 << 4,
    MTLResourceStorageModePrivate = 2 << 4,
    MTLResourceHazardTrackingModeDefault = 0,
    MTLResourceHazardTrackingModeUntracked = 1 << 8,
    MTLResourceHazardTrackingModeTracked = 2 << 8,
};
typedef NS_ENUM(NSUInteger, MTLStorageMode){MTLStorageModeShared = 0, MTLStorageModeManaged = 1,
                                            MTLStorageModePrivate = 2};
typedef NS_ENUM(NSUInteger, MTLCPUCacheMode){MTLCPUCacheModeDefaultCache = 0, MTLCPUCacheModeWriteCombined = 1};
typedef NS_ENUM(NSUInteger, MTLHazardTrackingMode){MTLHazardTrackingModeDefault = 0, MTLHazardTrackingModeUntracked = 1,
                                                   MTLHazardTrackingModeTracked = 2};
typedef NS_ENUM(NSUInteger, MTLPurgeableState){MTLPurgeableStateKeepCurrent = 1, MTLPurgeableStateNonVolatile = 2,
                                               MTLPurgeableStateVolatile = 3, MTLPurgeableStateEmpty = 4};
typedef NS_OPTIONS(NSUInteger, MTLResourceUsage){MTLResourceUsageRead = 1, MTLResourceUsageWrite = 2};
typedef NS_ENUM(NSUInteger, MTLDispatchType){MTLDispatchTypeSerial = 0, MTLDispatchTypeConcurrent = 1};
typedef NS_OPTIONS(NSUInteger, MTLBarrierScope){MTLBarrierScopeBuffers = 1, MTLBarrierScopeTextures = 2};
typedef NS_ENUM(NSUInteger, MTLLanguageVersion){
    MTLLanguageVersion1_1 = (1 << 16) + 1, MTLLanguageVersion1_2 = (1 << 16) + 2, MTLLanguageVersion2_0 = (2 << 16),
    MTLLanguageVersion2_1 = (2 << 16) + 1, MTLLanguageVersion2_2 = (2 << 16) + 2, MTLLanguageVersion2_3 = (2 << 16) + 3,
    MTLLanguageVersion2_4 = (2 << 16) + 4, MTLLanguageVersion3_0 = (3 << 16), MTLLanguageVersion3_1 = (3 << 16) + 1, MTLLanguageVersion3_2 = (3 << 16) + 2,
    MTLLanguageVersion4_0 = (4 << 16)};
typedef NS_ENUM(NSInteger, MTLMathMode){MTLMathModeSafe = 0, MTLMathModeRelaxed = 1, MTLMathModeFast = 2};
typedef NS_ENUM(NSInteger, MTLMathFloatingPointFunctions){MTLMathFloatingPointFunctionsFast = 0,
                                                          MTLMathFloatingPointFunctionsPrecise = 1};
typedef NS_ENUM(NSUInteger, MTLLibraryError){MTLLibraryErrorUnsupported = 1, MTLLibraryErrorInternal = 2,
                                             MTLLibraryErrorCompileFailure = 3, MTLLibraryErrorCompileWarning = 4};
typedef NS_ENUM(NSUInteger, MTLCommandBufferStatus){
    MTLCommandBufferStatusNotEnqueued = 0, MTLCommandBufferStatusEnqueued = 1, MTLCommandBufferStatusCommitted = 2,
    MTLCommandBufferStatusScheduled = 3,   MTLCommandBufferStatusCompleted = 4, MTLCommandBufferStatusError = 5};
typedef NS_ENUM(NSUInteger, MTLCommandBufferError){
    MTLCommandBufferErrorNone = 0, MTLCommandBufferErrorInternal = 1, MTLCommandBufferErrorTimeout = 2,
    MTLCommandBufferErrorPageFault = 3, MTLCommandBufferErrorOutOfMemory = 8};
typedef NS_ENUM(NSUInteger, MTLDataType){
    MTLDataTypeNone = 0,    MTLDataTypeFloat = 3,    MTLDataTypeFloat2 = 4,   MTLDataTypeFloat3 = 5,   MTLDataTypeFloat4 = 6,
    MTLDataTypeHalf = 16,   MTLDataTypeHalf2 = 17,   MTLDataTypeHalf3 = 18,   MTLDataTypeHalf4 = 19,   MTLDataTypeInt = 29,
    MTLDataTypeInt2 = 30,   MTLDataTypeInt3 = 31,    MTLDataTypeInt4 = 32,    MTLDataTypeUInt = 33,    MTLDataTypeUInt2 = 34,
    MTLDataTypeUInt3 = 35,  MTLDataTypeUInt4 = 36,   MTLDataTypeShort = 37,   MTLDataTypeShort2 = 38,  MTLDataTypeShort3 = 39,
    MTLDataTypeShort4 = 40, MTLDataTypeUShort = 41,  MTLDataTypeUShort2 = 42, MTLDataTypeUShort3 = 43, MTLDataTypeUShort4 = 44,
    MTLDataTypeChar = 45,   MTLDataTypeChar2 = 46,   MTLDataTypeChar3 = 47,   MTLDataTypeChar4 = 48,   MTLDataTypeUChar = 49,
    MTLDataTypeUChar2 = 50, MTLDataTypeUChar3 = 51,  MTLDataTypeUChar4 = 52,  MTLDataTypeBool = 53,    MTLDataTypeBool2 = 54,
    MTLDataTypeBool3 = 55,  MTLDataTypeBool4 = 56,   MTLDataTypeLong = 81,    MTLDataTypeULong = 85,   MTLDataTypeBFloat = 121};
typedef NS_ENUM(NSInteger, MTLGPUFamily){
    MTLGPUFamilyApple1 = 1001, MTLGPUFamilyApple2 = 1002, MTLGPUFamilyApple3 = 1003,  MTLGPUFamilyApple4 = 1004,
    MTLGPUFamilyApple5 = 1005, MTLGPUFamilyApple6 = 1006, MTLGPUFamilyApple7 = 1007,  MTLGPUFamilyApple8 = 1008,
    MTLGPUFamilyApple9 = 1009, MTLGPUFamilyApple10 = 1010, MTLGPUFamilyMac1 = 2001,   MTLGPUFamilyMac2 = 2002,
    MTLGPUFamilyCommon1 = 3001, MTLGPUFamilyCommon2 = 3002, MTLGPUFamilyCommon3 = 3003, MTLGPUFamilyMetal3 = 5001,
    MTLGPUFamilyMetal4 = 5002};
typedef NS_ENUM(NSUInteger, MTLDeviceLocation){MTLDeviceLocationBuiltIn = 0, MTLDeviceLocationSlot = 1,
                                               MTLDeviceLocationExternal = 2,
                                               MTLDeviceLocationUnspecified = NSUIntegerMax};
typedef NS_ENUM(NSUInteger, MTLReadWriteTextureTier){MTLReadWriteTextureTierNone = 0, MTLReadWriteTextureTier1 = 1,
                                                     MTLReadWriteTextureTier2 = 2};
typedef NS_ENUM(NSUInteger, MTLArgumentBuffersTier){MTLArgumentBuffersTier1 = 0, MTLArgumentBuffersTier2 = 1};
typedef NS_ENUM(NSUInteger, MTLFunctionType){MTLFunctionTypeVertex = 1, MTLFunctionTypeFragment = 2,
                                             MTLFunctionTypeKernel = 3};
typedef NS_ENUM(NSInteger, MTLLibraryType){MTLLibraryTypeExecutable = 0, MTLLibraryTypeDynamic = 1};
typedef NS_ENUM(NSInteger, MTLLibraryOptimizationLevel){MTLLibraryOptimizationLevelDefault = 0,
                                                        MTLLibraryOptimizationLevelSize = 1};
typedef NS_OPTIONS(NSUInteger, MTLFunctionOptions){MTLFunctionOptionNone = 0, MTLFunctionOptionCompileToBinary = 1};
typedef NS_OPTIONS(NSUInteger, MTLCommandBufferErrorOption){MTLCommandBufferErrorOptionNone = 0,
                                                            MTLCommandBufferErrorOptionEncoderExecutionStatus = 1};
typedef NS_ENUM(NSInteger, MTLHeapType){MTLHeapTypeAutomatic = 0, MTLHeapTypePlacement = 1};
typedef NS_ENUM(NSInteger, MTLCaptureDestination){MTLCaptureDestinationDeveloperTools = 1,
                                                  MTLCaptureDestinationGPUTraceDocument = 2};

extern NSString* const MTLLibraryErrorDomain;
extern NSString* const MTLCommandBufferErrorDomain;
