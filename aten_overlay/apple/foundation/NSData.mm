#include <cstdlib>

#include "text.h"

@implementation NSData {
 @public
  void* _bytes;
  NSUInteger _length;
  long _owned;
}
+ (instancetype)data {
  return [self dataWithBytes:nullptr length:0];
}
+ (instancetype)dataWithBytes:(const void*)bytes length:(NSUInteger)length {
  return [[[self alloc] initWithBytes:bytes length:length] autorelease];
}
+ (instancetype)dataWithBytesNoCopy:(void*)bytes length:(NSUInteger)length {
  return [self dataWithBytesNoCopy:bytes length:length freeWhenDone:YES];
}
+ (instancetype)dataWithBytesNoCopy:(void*)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free {
  return [[[self alloc] initWithBytesNoCopy:bytes length:length freeWhenDone:free] autorelease];
}
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length {
  void* copy = std::malloc(length ? length : 1);
  std::memcpy(copy, bytes, length);
  return [self initWithBytesNoCopy:copy length:length freeWhenDone:YES];
}
- (instancetype)initWithBytesNoCopy:(void*)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free {
  _bytes = bytes;
  _length = length;
  _owned = free;
  return self;
}
- (void)dealloc {
  if (_owned) {
    std::free(_bytes);
  }
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (const void*)bytes {
  return _bytes;
}
- (NSUInteger)length {
  return _length;
}
@end
