#include <algorithm>
#include <string>
#include <vector>

#include "runtime/objects.h"
#include "text.h"

@implementation NSArray {
 @public
  std::vector<id> _items;
}
static void fill(NSArray* array, const id* objects, NSUInteger count) {
  array->_items.assign(objects, objects + count);
  for (id object : array->_items) {
    [object retain];
  }
}
static void fill(NSArray* array, id first, va_list rest) {
  std::vector<id> objects;
  for (id object = first; object; object = va_arg(rest, id)) {
    objects.push_back(object);
  }
  fill(array, objects.data(), objects.size());
}
static id at(NSArray* array, NSUInteger index) {
  if (index >= array->_items.size()) {
    porter::objc::fail("PTR121: index " + std::to_string(index) + " is beyond an array of " +
                       std::to_string(array->_items.size()));
  }
  return array->_items[index];
}
+ (instancetype)array {
  return [[[self alloc] init] autorelease];
}
+ (instancetype)arrayWithObject:(id)object {
  return [self arrayWithObjects:&object count:1];
}
+ (instancetype)arrayWithObjects:(const id[])objects count:(NSUInteger)count {
  return [[[self alloc] initWithObjects:objects count:count] autorelease];
}
+ (instancetype)arrayWithObjects:(id)first, ... {
  NSArray* made = [[self alloc] autorelease];
  va_list rest;
  va_start(rest, first);
  fill(made, first, rest);
  va_end(rest);
  return made;
}
+ (instancetype)arrayWithArray:(NSArray*)other {
  return [[[self alloc] initWithArray:other] autorelease];
}
- (instancetype)initWithObjects:(const id[])objects count:(NSUInteger)count {
  fill(self, objects, count);
  return self;
}
- (instancetype)initWithObjects:(id)first, ... {
  va_list rest;
  va_start(rest, first);
  fill(self, first, rest);
  va_end(rest);
  return self;
}
- (instancetype)initWithArray:(NSArray*)other {
  if (other) {
    fill(self, other->_items.data(), other->_items.size());
  }
  return self;
}
- (void)dealloc {
  for (id object : _items) {
    [object release];
  }
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  return [[NSArray alloc] initWithArray:self];
}
- (id)mutableCopyWithZone:(NSZone*)zone {
  return [[NSMutableArray alloc] initWithArray:self];
}
- (NSUInteger)count {
  return _items.size();
}
- (id)objectAtIndex:(NSUInteger)index {
  return at(self, index);
}
- (id)objectAtIndexedSubscript:(NSUInteger)index {
  return at(self, index);
}
- (id)firstObject {
  return _items.empty() ? nil : _items.front();
}
- (id)lastObject {
  return _items.empty() ? nil : _items.back();
}
- (NSUInteger)indexOfObject:(id)object {
  for (size_t i = 0; i < _items.size(); i++) {
    if ([_items[i] isEqual:object]) {
      return i;
    }
  }
  return NSNotFound;
}
- (BOOL)containsObject:(id)object {
  return [self indexOfObject:object] != NSNotFound;
}
- (BOOL)isEqualToArray:(NSArray*)other {
  return other && std::equal(_items.begin(), _items.end(), other->_items.begin(), other->_items.end(),
                             [](id one, id two) { return [one isEqual:two]; });
}
- (BOOL)isEqual:(id)other {
  return self == other || ([other isKindOfClass:[NSArray class]] && [self isEqualToArray:other]);
}
- (NSUInteger)hash {
  return _items.size();
}
- (NSArray*)subarrayWithRange:(NSRange)range {
  if (range.location + range.length > _items.size()) {
    at(self, range.location + range.length);
  }
  return [NSArray arrayWithObjects:_items.data() + range.location count:range.length];
}
- (NSArray*)arrayByAddingObject:(id)object {
  NSMutableArray* made = [NSMutableArray arrayWithArray:self];
  [made addObject:object];
  return made;
}
- (NSString*)componentsJoinedByString:(NSString*)separator {
  std::string joined;
  for (size_t i = 0; i < _items.size(); i++) {
    joined += (i ? porter::text(separator) : "") + porter::text([_items[i] description]);
  }
  return porter::string(joined);
}
- (id)valueForKey:(NSString*)key {
  const SEL selector = NSSelectorFromString(key);
  NSMutableArray* values = [NSMutableArray array];
  for (id object : _items) {
    [values addObject:[object performSelector:selector]];
  }
  return values;
}
- (NSString*)description {
  return porter::string("(" + porter::text([self componentsJoinedByString:@", "]) + ")");
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)count {
  if (state->state) {
    return 0;
  }
  state->state = 1;
  state->itemsPtr = _items.data();
  state->mutationsPtr = &state->extra[0];
  return _items.size();
}
@end

@implementation NSMutableArray
+ (instancetype)arrayWithCapacity:(NSUInteger)capacity {
  return [self array];
}
- (instancetype)initWithCapacity:(NSUInteger)capacity {
  return self;
}
- (void)addObject:(id)object {
  if (!object) {
    porter::objc::fail("PTR121: nil was added to an array");
  }
  _items.push_back([object retain]);
}
- (void)addObjectsFromArray:(NSArray*)other {
  const std::vector<id> objects = other->_items;
  for (id object : objects) {
    [self addObject:object];
  }
}
- (void)insertObject:(id)object atIndex:(NSUInteger)index {
  if (index != _items.size()) {
    at(self, index);
  }
  _items.insert(_items.begin() + (ptrdiff_t)index, [object retain]);
}
- (void)replaceObjectAtIndex:(NSUInteger)index withObject:(id)object {
  id old = at(self, index);
  _items[index] = [object retain];
  [old release];
}
- (void)setObject:(id)object atIndexedSubscript:(NSUInteger)index {
  if (index == _items.size()) {
    [self addObject:object];
  } else {
    [self replaceObjectAtIndex:index withObject:object];
  }
}
- (void)exchangeObjectAtIndex:(NSUInteger)one withObjectAtIndex:(NSUInteger)other {
  at(self, std::max(one, other));
  std::swap(_items[one], _items[other]);
}
- (void)removeObjectAtIndex:(NSUInteger)index {
  [at(self, index) release];
  _items.erase(_items.begin() + (ptrdiff_t)index);
}
- (void)removeObject:(id)object {
  for (NSUInteger index; (index = [self indexOfObject:object]) != NSNotFound;) {
    [self removeObjectAtIndex:index];
  }
}
- (void)removeLastObject {
  [self removeObjectAtIndex:_items.size() - 1];
}
- (void)removeAllObjects {
  while (!_items.empty()) {
    [self removeLastObject];
  }
}
@end
