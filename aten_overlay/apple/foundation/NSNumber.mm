#include <cmath>
#include <sstream>
#include <type_traits>

#include "text.h"

#define EACH_NUMBER(X)                                                                     \
  X(Bool, bool, BOOL) X(Char, char, char) X(UnsignedChar, unsignedChar, unsigned char)     \
  X(Short, short, short) X(UnsignedShort, unsignedShort, unsigned short) X(Int, int, int)  \
  X(UnsignedInt, unsignedInt, unsigned int) X(Long, long, long)                            \
  X(UnsignedLong, unsignedLong, unsigned long) X(LongLong, longLong, long long)            \
  X(UnsignedLongLong, unsignedLongLong, unsigned long long) X(Integer, integer, NSInteger) \
  X(UnsignedInteger, unsignedInteger, NSUInteger) X(Float, float, float) X(Double, double, double)

@implementation NSNumber {
 @public
  int64_t _integer;
  double _real;
  long _kind;  // 0: bool, 1: integer, 2: unsigned, 3: real
}
template <typename T>
static NSNumber* filled(NSNumber* number, T value) {
  constexpr bool real = std::is_floating_point_v<T>;
  number->_kind = real ? 3 : std::is_same_v<T, bool> ? 0 : std::is_unsigned_v<T> ? 2 : 1;
  number->_integer = real ? (std::isfinite((double)value) ? (int64_t)value : 0) : (int64_t)value;
  number->_real = (double)value;
  return number;
}
template <typename T>
static T value_of(NSNumber* number) {
  return number->_kind == 3 ? (T)number->_real : (T)number->_integer;
}
#define MAKE(Name, name, type)                   \
  +(NSNumber*)numberWith##Name : (type)value {   \
    return [filled([self alloc], value) autorelease]; \
  }
EACH_NUMBER(MAKE)
#define READ(Name, name, type)     \
  -(type)name##Value {             \
    return value_of<type>(self);   \
  }
EACH_NUMBER(READ)
- (instancetype)initWithInteger:(NSInteger)value {
  return filled(self, value);
}
- (instancetype)initWithUnsignedInteger:(NSUInteger)value {
  return filled(self, value);
}
- (instancetype)initWithInt:(int)value {
  return filled(self, value);
}
- (instancetype)initWithFloat:(float)value {
  return filled(self, value);
}
- (instancetype)initWithDouble:(double)value {
  return filled(self, value);
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (BOOL)isEqualToNumber:(NSNumber*)other {
  const bool real = _kind == 3 || other->_kind == 3;
  return real ? _real == other->_real : _integer == other->_integer;
}
- (BOOL)isEqual:(id)other {
  return self == other || ([other isKindOfClass:[NSNumber class]] && [self isEqualToNumber:other]);
}
- (NSUInteger)hash {
  return (NSUInteger)(int64_t)_real;
}
- (NSString*)stringValue {
  std::ostringstream out;
  if (_kind == 3) {
    out << _real;
  } else if (_kind == 2) {
    out << (uint64_t)_integer;
  } else {
    out << _integer;
  }
  return porter::string(out.str());
}
- (NSString*)description {
  return [self stringValue];
}
@end

extern "C" int porter_number(const void* object, int64_t* integer, double* real) {
  NSNumber* number = (NSNumber*)object;
  *integer = number->_integer;
  *real = number->_real;
  return number->_kind == 3;
}
