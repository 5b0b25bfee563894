#include <string>
#include <vector>

#include "runtime/objects.h"
#include "text.h"

// In the order of insertion, so that what a program prints is always the same. They are small: a search is linear.
@implementation NSDictionary {
 @public
  std::vector<id> _keys;
  std::vector<id> _values;
}
static ptrdiff_t find(NSDictionary* dictionary, id key) {
  for (size_t i = 0; i < dictionary->_keys.size(); i++) {
    if (dictionary->_keys[i] == key || [dictionary->_keys[i] isEqual:key]) {
      return (ptrdiff_t)i;
    }
  }
  return -1;
}
static void put(NSDictionary* dictionary, id key, id value) {
  if (!key || !value) {
    porter::objc::fail("PTR121: a nil key or value was added to a dictionary");
  }
  [value retain];
  const ptrdiff_t index = find(dictionary, key);
  if (index >= 0) {
    [dictionary->_values[index] release];
    dictionary->_values[index] = value;
  } else {
    dictionary->_keys.push_back([key respondsToSelector:@selector(copyWithZone:)] ? [key copy] : [key retain]);
    dictionary->_values.push_back(value);
  }
}
static void put_pairs(NSDictionary* dictionary, id first, va_list rest) {
  for (id value = first; value; value = va_arg(rest, id)) {
    put(dictionary, va_arg(rest, id), value);
  }
}
+ (instancetype)dictionary {
  return [[[self alloc] init] autorelease];
}
+ (instancetype)dictionaryWithObject:(id)object forKey:(id)key {
  return [self dictionaryWithObjects:&object forKeys:&key count:1];
}
+ (instancetype)dictionaryWithObjects:(const id[])objects forKeys:(const id[])keys count:(NSUInteger)count {
  return [[[self alloc] initWithObjects:objects forKeys:keys count:count] autorelease];
}
+ (instancetype)dictionaryWithObjectsAndKeys:(id)first, ... {
  NSDictionary* made = [[self alloc] autorelease];
  va_list rest;
  va_start(rest, first);
  put_pairs(made, first, rest);
  va_end(rest);
  return made;
}
+ (instancetype)dictionaryWithDictionary:(NSDictionary*)other {
  return [[[self alloc] initWithDictionary:other] autorelease];
}
- (instancetype)initWithObjects:(const id[])objects forKeys:(const id[])keys count:(NSUInteger)count {
  for (NSUInteger i = 0; i < count; i++) {
    put(self, keys[i], objects[i]);
  }
  return self;
}
- (instancetype)initWithObjectsAndKeys:(id)first, ... {
  va_list rest;
  va_start(rest, first);
  put_pairs(self, first, rest);
  va_end(rest);
  return self;
}
- (instancetype)initWithDictionary:(NSDictionary*)other {
  for (size_t i = 0; other && i < other->_keys.size(); i++) {
    put(self, other->_keys[i], other->_values[i]);
  }
  return self;
}
- (void)dealloc {
  for (size_t i = 0; i < _keys.size(); i++) {
    [_keys[i] release];
    [_values[i] release];
  }
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  return [[NSDictionary alloc] initWithDictionary:self];
}
- (id)mutableCopyWithZone:(NSZone*)zone {
  return [[NSMutableDictionary alloc] initWithDictionary:self];
}
- (NSUInteger)count {
  return _keys.size();
}
- (NSArray*)allKeys {
  return [NSArray arrayWithObjects:_keys.data() count:_keys.size()];
}
- (NSArray*)allValues {
  return [NSArray arrayWithObjects:_values.data() count:_values.size()];
}
- (id)objectForKey:(id)key {
  const ptrdiff_t index = find(self, key);
  return index < 0 ? nil : _values[index];
}
- (id)objectForKeyedSubscript:(id)key {
  return [self objectForKey:key];
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)count {
  if (state->state) {
    return 0;
  }
  state->state = 1;
  state->itemsPtr = _keys.data();
  state->mutationsPtr = &state->extra[0];
  return _keys.size();
}
@end

@implementation NSMutableDictionary
+ (instancetype)dictionaryWithCapacity:(NSUInteger)capacity {
  return [self dictionary];
}
- (instancetype)initWithCapacity:(NSUInteger)capacity {
  return self;
}
- (void)setObject:(id)object forKey:(id)key {
  put(self, key, object);
}
- (void)setObject:(id)object forKeyedSubscript:(id)key {
  put(self, key, object);
}
- (void)removeObjectForKey:(id)key {
  const ptrdiff_t index = find(self, key);
  if (index >= 0) {
    [_keys[index] release];
    [_values[index] release];
    _keys.erase(_keys.begin() + index);
    _values.erase(_values.begin() + index);
  }
}
- (void)removeAllObjects {
  while (!_keys.empty()) {
    [self removeObjectForKey:_keys.back()];
  }
}
@end

extern "C" {
void* porter_key_at(const void* dictionary, size_t index) {
  return ((NSDictionary*)dictionary)->_keys.at(index);
}
void* porter_value_at(const void* dictionary, size_t index) {
  return ((NSDictionary*)dictionary)->_values.at(index);
}
}
