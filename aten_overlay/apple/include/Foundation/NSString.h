// Source: Apple's documentation of NSString.
#pragma once
#include <Foundation/NSObject.h>

@class NSError;

typedef NSUInteger NSStringEncoding;
enum : NSStringEncoding { NSASCIIStringEncoding = 1, NSUTF8StringEncoding = 4 };

@interface NSString : NSObject <NSCopying>
+ (instancetype)string;
+ (instancetype)stringWithUTF8String:(const char*)text;
+ (instancetype)stringWithCString:(const char*)text encoding:(NSStringEncoding)encoding;
+ (instancetype)stringWithString:(NSString*)other;
+ (instancetype)stringWithFormat:(NSString*)format, ...;
+ (instancetype)stringWithContentsOfFile:(NSString*)path encoding:(NSStringEncoding)encoding error:(NSError**)error;
- (instancetype)initWithContentsOfFile:(NSString*)path encoding:(NSStringEncoding)encoding error:(NSError**)error;
- (instancetype)initWithUTF8String:(const char*)text;
- (instancetype)initWithCString:(const char*)text encoding:(NSStringEncoding)encoding;
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding;
- (const char*)cStringUsingEncoding:(NSStringEncoding)encoding;
- (BOOL)isEqualToString:(NSString*)other;
- (NSString*)stringByAppendingString:(NSString*)other;
- (NSString*)stringByAppendingPathComponent:(NSString*)part;
- (NSString*)stringByDeletingLastPathComponent;
- (BOOL)hasPrefix:(NSString*)prefix;
- (BOOL)hasSuffix:(NSString*)suffix;
- (BOOL)containsString:(NSString*)part;
@property(readonly) NSUInteger length;
@property(readonly) const char* UTF8String;
@end

@interface NXConstantString : NSString {
  const char* _constant;
  unsigned int _size;
}
@end
