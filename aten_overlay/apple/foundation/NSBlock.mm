// Blocks as objects: what clang sends to one that it makes of a C++ lambda, and what a collection sends to its members.
// Source: "Language Specification for Blocks" and "Block Implementation Specification" (clang).
#include <Foundation/Foundation.h>

extern "C" {
void* _Block_copy(const void* block);
void _Block_release(const void* block);
void porter_autorelease(id object);
}

@interface NSBlock : NSObject <NSCopying>
@end

@implementation NSBlock
- (instancetype)retain {
  return (id)_Block_copy((const void*)self);
}
- (oneway void)release {
  _Block_release((const void*)self);
}
- (instancetype)autorelease {
  porter_autorelease(self);
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  return (id)_Block_copy((const void*)self);
}
@end
