// Source: Apple's documentation of NSArray, NSDictionary and their mutable forms.
#pragma once
#include <Foundation/NSObject.h>

@interface NSArray<Element> : NSObject <NSCopying, NSMutableCopying, NSFastEnumeration>
+ (instancetype)array;
+ (instancetype)arrayWithObject:(Element)object;
+ (instancetype)arrayWithObjects:(const Element[])objects count:(NSUInteger)count;
+ (instancetype)arrayWithObjects:(Element)first, ...;
+ (instancetype)arrayWithArray:(NSArray<Element>*)other;
- (instancetype)initWithObjects:(const Element[])objects count:(NSUInteger)count;
- (instancetype)initWithObjects:(Element)first, ...;
- (instancetype)initWithArray:(NSArray<Element>*)other;
- (Element)objectAtIndex:(NSUInteger)index;
- (Element)objectAtIndexedSubscript:(NSUInteger)index;
- (BOOL)containsObject:(Element)object;
- (NSUInteger)indexOfObject:(Element)object;
- (BOOL)isEqualToArray:(NSArray<Element>*)other;
- (NSArray<Element>*)subarrayWithRange:(NSRange)range;
- (NSArray<Element>*)arrayByAddingObject:(Element)object;
- (NSString*)componentsJoinedByString:(NSString*)separator;
- (id)valueForKey:(NSString*)key;
@property(readonly) NSUInteger count;
@property(readonly) Element firstObject;
@property(readonly) Element lastObject;
@end

enum : NSInteger { NSNotFound = LONG_MAX };

@interface NSMutableArray<Element> : NSArray <Element>
+ (instancetype)arrayWithCapacity:(NSUInteger)capacity;
- (instancetype)initWithCapacity:(NSUInteger)capacity;
- (void)addObject:(Element)object;
- (void)addObjectsFromArray:(NSArray<Element>*)other;
- (void)insertObject:(Element)object atIndex:(NSUInteger)index;
- (void)replaceObjectAtIndex:(NSUInteger)index withObject:(Element)object;
- (void)setObject:(Element)object atIndexedSubscript:(NSUInteger)index;
- (void)exchangeObjectAtIndex:(NSUInteger)one withObjectAtIndex:(NSUInteger)other;
- (void)removeObjectAtIndex:(NSUInteger)index;
- (void)removeObject:(Element)object;
- (void)removeLastObject;
- (void)removeAllObjects;
@end

@interface NSDictionary<Key, Value> : NSObject <NSCopying, NSMutableCopying, NSFastEnumeration>
+ (instancetype)dictionary;
+ (instancetype)dictionaryWithObject:(Value)object forKey:(Key)key;
+ (instancetype)dictionaryWithObjects:(const Value[])objects forKeys:(const Key[])keys count:(NSUInteger)count;
+ (instancetype)dictionaryWithObjectsAndKeys:(id)first, ...;
+ (instancetype)dictionaryWithDictionary:(NSDictionary<Key, Value>*)other;
- (instancetype)initWithObjects:(const Value[])objects forKeys:(const Key[])keys count:(NSUInteger)count;
- (instancetype)initWithObjectsAndKeys:(id)first, ...;
- (instancetype)initWithDictionary:(NSDictionary<Key, Value>*)other;
- (Value)objectForKey:(Key)key;
- (Value)objectForKeyedSubscript:(Key)key;
@property(readonly) NSUInteger count;
@property(readonly, copy) NSArray<Key>* allKeys;
@property(readonly, copy) NSArray<Value>* allValues;
@end

@interface NSMutableDictionary<Key, Value> : NSDictionary <Key, Value>
+ (instancetype)dictionaryWithCapacity:(NSUInteger)capacity;
- (instancetype)initWithCapacity:(NSUInteger)capacity;
- (void)setObject:(Value)object forKey:(Key)key;
- (void)setObject:(Value)object forKeyedSubscript:(Key)key;
- (void)removeObjectForKey:(Key)key;
- (void)removeAllObjects;
@end
