#include <Foundation/Foundation.h>

#include <cstdio>
#include <string>

#include "runtime/objects.h"
#include "text.h"

extern "C" {
id porter_allocate(Class cls);
void porter_add_reference(id object);
int porter_drop_reference(id object);
int64_t porter_references(id object);
void porter_deallocate(id object);
void porter_autorelease(id object);
id objc_lookup_class(const char* name, ...);
}

using porter::objc::Selector;

static porter::objc::Class* runtime_class(Class cls) {
  return (porter::objc::Class*)cls;
}

static const char* selector_name(SEL selector) {
  return ((const Selector*)(void*)selector)->name;
}

@implementation NSObject
+ (instancetype)alloc {
  return porter_allocate((Class)self);
}
+ (instancetype)new {
  return [[self alloc] init];
}
+ (Class)class {
  return (Class)self;
}
+ (instancetype)retain {
  return (id)self;
}
+ (oneway void)release {
}
+ (instancetype)autorelease {
  return (id)self;
}
+ (BOOL)instancesRespondToSelector:(SEL)selector {
  return porter::objc::find_method(runtime_class((Class)self), selector_name(selector)) != nullptr;
}
+ (BOOL)respondsToSelector:(SEL)selector {
  return porter::objc::find_method(runtime_class((Class)self)->isa, selector_name(selector)) != nullptr;
}
- (instancetype)init {
  return self;
}
- (void)dealloc {
  porter_deallocate(self);
}
- (instancetype)retain {
  porter_add_reference(self);
  return self;
}
- (oneway void)release {
  if (porter_drop_reference(self)) {
    [self dealloc];
  }
}
- (instancetype)autorelease {
  porter_autorelease(self);
  return self;
}
- (NSUInteger)retainCount {
  return (NSUInteger)porter_references(self);
}
- (id)copy {
  return [(id<NSCopying>)self copyWithZone:nil];
}
- (id)mutableCopy {
  return [(id<NSMutableCopying>)self mutableCopyWithZone:nil];
}
- (Class)class {
  return (Class)porter::objc::class_of((::id)self);
}
- (BOOL)isEqual:(id)other {
  return self == other;
}
- (NSUInteger)hash {
  return (NSUInteger)self;
}
- (BOOL)respondsToSelector:(SEL)selector {
  return porter::objc::find_method(porter::objc::class_of((::id)self), selector_name(selector)) != nullptr;
}
- (BOOL)isKindOfClass:(Class)cls {
  for (auto* at = porter::objc::class_of((::id)self); at; at = at->super) {
    if (at == runtime_class(cls)) {
      return true;
    }
  }
  return false;
}
- (id)performSelector:(SEL)selector {
  IMP method = porter::objc::find_method(porter::objc::class_of((::id)self), selector_name(selector));
  if (!method) {
    porter::objc::fail(std::string("PTR120: there is no method `") + selector_name(selector) + "`");
  }
  return ((id(*)(id, SEL))method)(self, selector);
}
- (NSString*)description {
  char text[128];
  std::snprintf(text, sizeof text, "<%s: %p>", porter::objc::class_of((::id)self)->name, (void*)self);
  return porter::string(text);
}
- (NSString*)debugDescription {
  return [self description];
}
@end

@implementation NSNull
+ (NSNull*)null {
  static NSNull* value = [[NSNull alloc] init];
  return value;
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (NSString*)description {
  return @"<null>";
}
@end

extern "C" {
void* objc_autoreleasePoolPush(void);
void objc_autoreleasePoolPop(void* pool);
}

@implementation NSAutoreleasePool {
  void* _mark;
}
- (instancetype)init {
  _mark = objc_autoreleasePoolPush();
  return self;
}
- (void)drain {
  objc_autoreleasePoolPop(_mark);
  [self release];
}
@end

Class NSClassFromString(NSString* name) {
  return (Class)objc_lookup_class([name UTF8String]);
}

SEL NSSelectorFromString(NSString* name) {
  auto* selector = new Selector{strdup([name UTF8String]), nullptr};  // selectors last as long as the process
  return (SEL)(void*)selector;
}

void NSLog(NSString* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "%s\n", porter::format([format UTF8String], arguments).c_str());
  va_end(arguments);
}
