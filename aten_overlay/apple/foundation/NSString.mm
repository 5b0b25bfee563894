#include <cerrno>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>

#include "text.h"

// NSString is abstract: constants lie in the program's data, all others own their text.
@interface PorterString : NSString {
 @public
  std::string _text;
}
@end

static NSString* made(const std::string& text) {
  PorterString* made = [PorterString alloc];
  made->_text = text;
  return made;
}

NSString* porter::string(const std::string& text) {
  return [made(text) autorelease];
}

static void append_formatted(std::string& out, const std::string& directive, va_list arguments) {
  char stretch[512];
  va_list here;
  va_copy(here, arguments);
  std::vsnprintf(stretch, sizeof stretch, directive.c_str(), here);
  va_end(here);
  out += stretch;
}

static void skip_argument(char conversion, const std::string& length, va_list arguments) {
  if (std::strchr("eEfFgGaA", conversion)) {
    va_arg(arguments, double);
  } else if (std::strchr("diouxXc", conversion) && length.find_first_of("lqzjt") == std::string::npos) {
    va_arg(arguments, int);
  } else {
    va_arg(arguments, void*);
  }
}

std::string porter::format(const char* pattern, va_list given) {
  va_list arguments;
  va_copy(arguments, given);
  std::string out;
  for (const char* at = pattern; *at; at++) {
    if (*at != '%') {
      out += *at;
      continue;
    }
    const char* start = at++;
    while (*at && std::strchr("0123456789.+- #hlqLzjt", *at)) {
      at++;
    }
    if (!*at) {
      break;
    }
    if (*at == '%') {
      out += '%';
    } else if (*at == '@') {
      out += porter::text([va_arg(arguments, id) description]);
    } else {
      const std::string directive(start, at + 1);
      append_formatted(out, directive, arguments);
      skip_argument(*at, directive, arguments);
    }
  }
  va_end(arguments);
  return out;
}

@implementation NSString
@dynamic length, UTF8String;
+ (instancetype)alloc {
  return (Class)self == [NSString class] ? (id)[PorterString alloc] : [super alloc];
}
+ (instancetype)string {
  return porter::string("");
}
+ (instancetype)stringWithUTF8String:(const char*)text {
  return porter::string(text);
}
+ (instancetype)stringWithCString:(const char*)text encoding:(NSStringEncoding)encoding {
  return porter::string(text);
}
+ (instancetype)stringWithString:(NSString*)other {
  return porter::string(porter::text(other));
}
+ (instancetype)stringWithFormat:(NSString*)pattern, ... {
  va_list arguments;
  va_start(arguments, pattern);
  const std::string text = porter::format([pattern UTF8String], arguments);
  va_end(arguments);
  return porter::string(text);
}
+ (instancetype)stringWithContentsOfFile:(NSString*)path encoding:(NSStringEncoding)encoding error:(NSError**)error {
  return [[[self alloc] initWithContentsOfFile:path encoding:encoding error:error] autorelease];
}
- (instancetype)initWithContentsOfFile:(NSString*)path encoding:(NSStringEncoding)encoding error:(NSError**)error {
  std::ifstream file(porter::text(path), std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad() || !file.is_open()) {
    if (error) {
      *error = [NSError errorWithDomain:@"NSCocoaErrorDomain"
                                   code:260  // NSFileReadNoSuchFileError
                               userInfo:@{NSLocalizedDescriptionKey : porter::string("The file “" + porter::text(path) +
                                                                                     "” couldn’t be opened.")}];
    }
    [self release];
    return nil;
  }
  ((PorterString*)self)->_text = std::move(text);
  return self;
}
- (instancetype)initWithUTF8String:(const char*)text {
  ((PorterString*)self)->_text = text;
  return self;
}
- (instancetype)initWithCString:(const char*)text encoding:(NSStringEncoding)encoding {
  return [self initWithUTF8String:text];
}
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding {
  ((PorterString*)self)->_text.assign((const char*)bytes, length);
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (const char*)cStringUsingEncoding:(NSStringEncoding)encoding {
  return [self UTF8String];
}
- (BOOL)isEqualToString:(NSString*)other {
  return other && porter::text(self) == porter::text(other);
}
- (BOOL)isEqual:(id)other {
  return self == other || ([other isKindOfClass:[NSString class]] && [self isEqualToString:other]);
}
- (NSUInteger)hash {
  return std::hash<std::string_view>()([self UTF8String]);
}
- (NSString*)stringByAppendingString:(NSString*)other {
  return porter::string(porter::text(self) + porter::text(other));
}
- (NSString*)stringByAppendingPathComponent:(NSString*)part {
  const std::string folder = porter::text(self);
  return porter::string(folder + (folder.empty() || folder.ends_with('/') ? "" : "/") + porter::text(part));
}
- (NSString*)stringByDeletingLastPathComponent {
  const std::string path = porter::text(self);
  const size_t end = path.rfind('/');
  return porter::string(end == std::string::npos ? "" : path.substr(0, end == 0 ? 1 : end));
}
- (BOOL)hasSuffix:(NSString*)suffix {
  return porter::text(self).ends_with(porter::text(suffix));
}
- (BOOL)hasPrefix:(NSString*)prefix {
  return porter::text(self).starts_with(porter::text(prefix));
}
- (BOOL)containsString:(NSString*)part {
  return porter::text(self).find(porter::text(part)) != std::string::npos;
}
- (NSString*)description {
  return self;
}
@end

@implementation PorterString
- (NSUInteger)length {
  return _text.size();
}
- (const char*)UTF8String {
  return _text.c_str();
}
@end

@implementation NXConstantString
- (instancetype)retain {
  return self;
}
- (oneway void)release {
}
- (instancetype)autorelease {
  return self;
}
- (NSUInteger)retainCount {
  return NSUIntegerMax;
}
- (NSUInteger)length {
  return _size;
}
- (const char*)UTF8String {
  return _constant;
}
@end
