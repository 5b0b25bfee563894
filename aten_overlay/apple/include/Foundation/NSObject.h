// The root class and what every object answers. Source: Apple's documentation of NSObject, NSCopying, NSFastEnumeration.
#pragma once
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef bool BOOL;
typedef double NSTimeInterval;
typedef double CFTimeInterval;
typedef void NSZone;

#define YES true
#define NO false
#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif
#ifndef nil
#define nil nullptr
#endif
#define Nil nullptr
#define NS_ENUM(type, name) \
  enum name : type name;    \
  enum name : type
#define NS_OPTIONS(type, name) \
  type name;                   \
  enum : type
#define NS_ASSUME_NONNULL_BEGIN
#define NS_ASSUME_NONNULL_END
#define NS_SWIFT_NAME(...)
#define NS_UNAVAILABLE
#define NS_DESIGNATED_INITIALIZER
#define NS_REQUIRES_NIL_TERMINATION
#define API_AVAILABLE(...)
#define API_DEPRECATED(...)
#define API_UNAVAILABLE(...)
#define NS_INLINE static inline
#ifndef MIN
#define MIN(a, b)                \
  ({                             \
    __typeof__(a) pm_a = (a);    \
    __typeof__(b) pm_b = (b);    \
    pm_a < pm_b ? pm_a : pm_b;   \
  })
#define MAX(a, b)                \
  ({                             \
    __typeof__(a) pm_a = (a);    \
    __typeof__(b) pm_b = (b);    \
    pm_a < pm_b ? pm_b : pm_a;   \
  })
#define ABS(a)                   \
  ({                             \
    __typeof__(a) pm_a = (a);    \
    pm_a < 0 ? -pm_a : pm_a;     \
  })
#endif
#define NSIntegerMax LONG_MAX
#define NSUIntegerMax ULONG_MAX

typedef struct _NSRange {
  NSUInteger location;
  NSUInteger length;
} NSRange;

static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  return NSRange{location, length};
}

typedef struct {
  unsigned long state;
  id __unsafe_unretained* itemsPtr;
  unsigned long* mutationsPtr;
  unsigned long extra[5];
} NSFastEnumerationState;

@class NSString;

@protocol NSObject
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
- (NSUInteger)retainCount;
- (BOOL)isEqual:(id)other;
- (NSUInteger)hash;
- (BOOL)respondsToSelector:(SEL)selector;
- (BOOL)isKindOfClass:(Class)cls;
- (Class)class;
@property(readonly, copy) NSString* description;
@property(readonly, copy) NSString* debugDescription;
@end

@protocol NSCopying
- (id)copyWithZone:(NSZone*)zone;
@end

@protocol NSMutableCopying
- (id)mutableCopyWithZone:(NSZone*)zone;
@end

@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)count;
@end

__attribute__((objc_root_class)) @interface NSObject<NSObject> {
  Class isa;
}
+ (instancetype)alloc;
+ (instancetype)new;
+ (Class)class;
+ (BOOL)instancesRespondToSelector:(SEL)selector;
- (instancetype)init;
- (void)dealloc;
- (id)copy;
- (id)mutableCopy;
- (id)performSelector:(SEL)selector;
@end

@interface NSNull : NSObject <NSCopying>
+ (NSNull*)null;
@end

@interface NSAutoreleasePool : NSObject
- (void)drain;
@end

extern "C" Class NSClassFromString(NSString* name);
extern "C" SEL NSSelectorFromString(NSString* name);
extern "C" void NSLog(NSString* format, ...);
