// What programs ask of the system. Source: Apple's documentation of NSProcessInfo, NSBundle, NSFileManager, NSDate,
// NSException and NSThread.
#pragma once
#include <Foundation/NSCollections.h>
#include <Foundation/NSError.h>
#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>

typedef struct {
  NSInteger majorVersion;
  NSInteger minorVersion;
  NSInteger patchVersion;
} NSOperatingSystemVersion;

@interface NSProcessInfo : NSObject
+ (NSProcessInfo*)processInfo;
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version;
@property(readonly) NSOperatingSystemVersion operatingSystemVersion;
@property(readonly, copy) NSString* operatingSystemVersionString;
@property(readonly) NSUInteger processorCount;
@property(readonly) NSUInteger activeProcessorCount;
@property(readonly) unsigned long long physicalMemory;
@property(readonly) NSTimeInterval systemUptime;
@property(readonly, copy) NSDictionary<NSString*, NSString*>* environment;
@end

// A program here has no bundle: no resource is found, and paths are those of the executable.
@interface NSBundle : NSObject
+ (NSBundle*)mainBundle;
+ (NSBundle*)bundleForClass:(Class)cls;
+ (NSBundle*)bundleWithPath:(NSString*)path;
- (NSString*)pathForResource:(NSString*)name ofType:(NSString*)extension;
- (NSURL*)URLForResource:(NSString*)name withExtension:(NSString*)extension;
@property(readonly, copy) NSString* bundlePath;
@property(readonly, copy) NSString* resourcePath;
@property(readonly, copy) NSString* executablePath;
@property(readonly, copy) NSString* bundleIdentifier;
@end

@interface NSFileManager : NSObject
+ (NSFileManager*)defaultManager;
- (BOOL)fileExistsAtPath:(NSString*)path;
- (BOOL)fileExistsAtPath:(NSString*)path isDirectory:(BOOL*)is_folder;
- (BOOL)isReadableFileAtPath:(NSString*)path;
@property(readonly, copy) NSString* currentDirectoryPath;
@end

extern "C" NSString* NSTemporaryDirectory(void);

@interface NSDate : NSObject
+ (instancetype)date;
- (NSTimeInterval)timeIntervalSinceDate:(NSDate*)other;
@property(readonly) NSTimeInterval timeIntervalSinceNow;
@property(readonly) NSTimeInterval timeIntervalSince1970;
@end

@interface NSThread : NSObject
+ (void)sleepForTimeInterval:(NSTimeInterval)seconds;
+ (BOOL)isMainThread;
@end

typedef NSString* NSExceptionName;
extern NSExceptionName const NSGenericException;
extern NSExceptionName const NSInvalidArgumentException;
extern NSExceptionName const NSInternalInconsistencyException;

// `raise` throws a std::runtime_error, as all that fails here does. `@catch` gets one of these for each.
@interface NSException : NSObject <NSCopying>
+ (NSException*)exceptionWithName:(NSExceptionName)name reason:(NSString*)reason userInfo:(NSDictionary*)info;
+ (void)raise:(NSExceptionName)name format:(NSString*)format, ...;
- (void)raise;
@property(readonly, copy) NSExceptionName name;
@property(readonly, copy) NSString* reason;
@property(readonly, copy) NSArray<NSString*>* callStackSymbols;
@end

namespace porter {
// What is being caught, autoreleased: `driver.py` writes `@catch (NSException* e)` as `catch (...)` and this.
NSException* caught_exception();
[[noreturn]] void throw_exception(NSException* exception);
}  // namespace porter

typedef double CFAbsoluteTime;
extern "C" CFAbsoluteTime CFAbsoluteTimeGetCurrent(void);
extern "C" CFTimeInterval CACurrentMediaTime(void);
