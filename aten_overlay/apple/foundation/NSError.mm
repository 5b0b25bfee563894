#include "text.h"

NSString* const NSLocalizedDescriptionKey = @"NSLocalizedDescription";

@implementation NSError {
  NSString* _domain;
  NSInteger _code;
  NSString* _told;
}
+ (instancetype)errorWithDomain:(NSString*)domain code:(NSInteger)code userInfo:(id)info {
  NSError* made = [[self alloc] autorelease];
  made->_domain = [domain copy];
  made->_code = code;
  made->_told = [[(NSDictionary*)info objectForKey:NSLocalizedDescriptionKey] copy];
  return made;
}
- (void)dealloc {
  [_domain release];
  [_told release];
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (NSString*)domain {
  return _domain;
}
- (NSInteger)code {
  return _code;
}
- (NSString*)localizedDescription {
  return _told;
}
- (NSString*)description {
  return _told;
}
@end

@implementation NSURL {
  NSString* _path;
}
+ (instancetype)fileURLWithPath:(NSString*)path {
  NSURL* made = [[self alloc] autorelease];
  made->_path = [path copy];
  return made;
}
+ (instancetype)URLWithString:(NSString*)text {
  return [self fileURLWithPath:text];
}
- (void)dealloc {
  [_path release];
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (NSString*)path {
  return _path;
}
@end
