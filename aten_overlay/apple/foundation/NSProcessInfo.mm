// What programs ask of the system: files, time, and exceptions.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "runtime/objects.h"
#include "text.h"

extern char** environ;

NSExceptionName const NSGenericException = @"NSGenericException";
NSExceptionName const NSInvalidArgumentException = @"NSInvalidArgumentException";
NSExceptionName const NSInternalInconsistencyException = @"NSInternalInconsistencyException";

namespace {

constexpr NSOperatingSystemVersion kVersion{26, 0, 0};

double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

NSString* string_of(const std::filesystem::path& path) {
  return porter::string(path.string());
}

std::filesystem::path executable() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

}  // namespace

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  static NSProcessInfo* value = [[NSProcessInfo alloc] init];
  return value;
}
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version {
  return YES;
}
- (NSOperatingSystemVersion)operatingSystemVersion {
  return kVersion;
}
- (NSString*)operatingSystemVersionString {
  return @"Version 26.0 (stand-in)";
}
- (NSUInteger)processorCount {
  return static_cast<NSUInteger>(sysconf(_SC_NPROCESSORS_CONF));
}
- (NSUInteger)activeProcessorCount {
  return static_cast<NSUInteger>(sysconf(_SC_NPROCESSORS_ONLN));
}
- (unsigned long long)physicalMemory {
  return static_cast<unsigned long long>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<unsigned long long>(sysconf(_SC_PAGESIZE));
}
- (NSTimeInterval)systemUptime {
  return seconds_of(CLOCK_MONOTONIC);
}
- (NSDictionary<NSString*, NSString*>*)environment {
  NSMutableDictionary* variables = [NSMutableDictionary dictionary];
  for (char** entry = environ; *entry; entry++) {
    const std::string text = *entry;
    if (const size_t end = text.find('='); end != std::string::npos) {
      [variables setObject:porter::string(text.substr(end + 1)) forKey:porter::string(text.substr(0, end))];
    }
  }
  return variables;
}
@end

@implementation NSBundle
+ (NSBundle*)mainBundle {
  static NSBundle* value = [[NSBundle alloc] init];
  return value;
}
+ (NSBundle*)bundleForClass:(Class)cls {
  return [self mainBundle];
}
+ (NSBundle*)bundleWithPath:(NSString*)path {
  return nil;
}
- (NSString*)pathForResource:(NSString*)name ofType:(NSString*)extension {
  return nil;
}
- (NSURL*)URLForResource:(NSString*)name withExtension:(NSString*)extension {
  return nil;
}
- (NSString*)bundlePath {
  return string_of(executable().parent_path());
}
- (NSString*)resourcePath {
  return [self bundlePath];
}
- (NSString*)executablePath {
  return string_of(executable());
}
- (NSString*)bundleIdentifier {
  return nil;
}
@end

@implementation NSFileManager
+ (NSFileManager*)defaultManager {
  static NSFileManager* value = [[NSFileManager alloc] init];
  return value;
}
- (BOOL)fileExistsAtPath:(NSString*)path {
  return [self fileExistsAtPath:path isDirectory:nullptr];
}
- (BOOL)fileExistsAtPath:(NSString*)path isDirectory:(BOOL*)is_folder {
  struct stat status;
  if (!path || stat([path UTF8String], &status)) {
    return NO;
  }
  if (is_folder) {
    *is_folder = S_ISDIR(status.st_mode);
  }
  return YES;
}
- (BOOL)isReadableFileAtPath:(NSString*)path {
  return path && access([path UTF8String], R_OK) == 0;
}
- (NSString*)currentDirectoryPath {
  std::error_code ignored;
  return string_of(std::filesystem::current_path(ignored));
}
@end

NSString* NSTemporaryDirectory(void) {
  std::error_code ignored;
  return porter::string(std::filesystem::temp_directory_path(ignored).string() + "/");
}

@implementation NSDate {
  NSTimeInterval _since_1970;
}
+ (instancetype)date {
  NSDate* now = [[self alloc] autorelease];
  now->_since_1970 = seconds_of(CLOCK_REALTIME);
  return now;
}
- (NSTimeInterval)timeIntervalSinceDate:(NSDate*)other {
  return _since_1970 - [other timeIntervalSince1970];
}
- (NSTimeInterval)timeIntervalSinceNow {
  return _since_1970 - seconds_of(CLOCK_REALTIME);
}
- (NSTimeInterval)timeIntervalSince1970 {
  return _since_1970;
}
@end

@implementation NSThread
+ (void)sleepForTimeInterval:(NSTimeInterval)seconds {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}
+ (BOOL)isMainThread {
  return gettid() == getpid();
}
@end

CFAbsoluteTime CFAbsoluteTimeGetCurrent(void) {
  constexpr double kUntil2001 = 978307200;
  return seconds_of(CLOCK_REALTIME) - kUntil2001;
}

CFTimeInterval CACurrentMediaTime(void) {
  return seconds_of(CLOCK_MONOTONIC);
}

@implementation NSException {
  NSString* _name;
  NSString* _reason;
}
+ (NSException*)exceptionWithName:(NSExceptionName)name reason:(NSString*)reason userInfo:(NSDictionary*)info {
  NSException* exception = [[self alloc] autorelease];
  exception->_name = [name copy];
  exception->_reason = [reason copy];
  return exception;
}
+ (void)raise:(NSExceptionName)name format:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  const std::string reason = porter::format([format UTF8String], arguments);
  va_end(arguments);
  [[self exceptionWithName:name reason:porter::string(reason) userInfo:nil] raise];
}
- (void)raise {
  throw std::runtime_error(porter::text(_name) + ": " + porter::text(_reason));
}
- (void)dealloc {
  [_name release];
  [_reason release];
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (NSExceptionName)name {
  return _name;
}
- (NSString*)reason {
  return _reason;
}
- (NSString*)description {
  return _reason;
}
- (NSArray<NSString*>*)callStackSymbols {
  return @[];
}
@end

NSException* porter::caught_exception() {
  std::string reason = "an exception that is no std::exception";
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
  }
  return [NSException exceptionWithName:NSGenericException reason:porter::string(reason) userInfo:nil];
}

void porter::throw_exception(NSException* exception) {
  [exception raise];
  std::terminate();  // sent to nil, which raises nothing
}
