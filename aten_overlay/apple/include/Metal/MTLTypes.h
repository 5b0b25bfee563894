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
    MTLLanguageVersion3_0 = (3 << 16), MTLLanguageVersion3_1 = (3 << 16) + 1, MTLLanguageVersion3_2 = (3 << 16) + 2,
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
    MTLDataTypeNone = 0,   MTLDataTypeFloat = 3,  MTLDataTypeHalf = 16,  MTLDataTypeInt = 29,  MTLDataTypeUInt = 33,
    MTLDataTypeShort = 37, MTLDataTypeUShort = 41, MTLDataTypeChar = 45, MTLDataTypeUChar = 49, MTLDataTypeBool = 53,
    MTLDataTypeLong = 81,  MTLDataTypeULong = 85, MTLDataTypeBFloat = 121};
typedef NS_ENUM(NSInteger, MTLGPUFamily){MTLGPUFamilyApple7 = 1007, MTLGPUFamilyApple8 = 1008,
                                         MTLGPUFamilyApple9 = 1009, MTLGPUFamilyApple10 = 1010,
                                         MTLGPUFamilyMac2 = 2002,   MTLGPUFamilyMetal3 = 5001};
typedef NS_ENUM(NSInteger, MTLHeapType){MTLHeapTypeAutomatic = 0, MTLHeapTypePlacement = 1};
typedef NS_ENUM(NSInteger, MTLCaptureDestination){MTLCaptureDestinationDeveloperTools = 1,
                                                  MTLCaptureDestinationGPUTraceDocument = 2};

extern NSString* const MTLLibraryErrorDomain;
extern NSString* const MTLCommandBufferErrorDomain;
