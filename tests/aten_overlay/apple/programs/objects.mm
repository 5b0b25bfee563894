// What the runtime and Foundation do, as text that the tests compare.
#include <Foundation/Foundation.h>

#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "runtime/porter_runtime.h"

extern "C" {
void* _Block_copy(const void*);
void _Block_release(const void*);
}

@interface Base : NSObject {
 @public
  int _x;
  std::vector<int> _members;
}
@property(nonatomic, retain) NSString* name;
- (int)twice;
@end

@implementation Base
- (int)twice {
  return 2 * _x;
}
- (void)dealloc {
  [_name release];
  [super dealloc];
}
@end

@interface Derived : Base {
 @public
  double _y;
}
@end

@implementation Derived
- (int)twice {
  return [super twice] + 1;
}
@end

@interface Base (More)
- (int)thrice;
- (id)message:(float)f with:(int)i object:(id)o flag:(BOOL)b size:(double)d;
@end

@implementation Base (More)
- (int)thrice {
  return 3 * _x;
}
@end

static std::string told;

template <typename Body>
static const char* tell(Body body) {
  const int64_t before = porter_live_objects(nullptr);
  std::ostringstream out;
  try {
    @autoreleasepool {
      body(out);
    }
  } catch (const std::exception& error) {
    out << "! " << error.what();
  }
  out << " | left " << porter_live_objects(nullptr) - before;
  told = out.str();
  return told.c_str();
}

static int answer(void* self, const char* selector, const char*, size_t count, const porter_argument* a,
                  porter_argument* result) {
  std::ostringstream out;
  out << selector << " " << count << " " << a[0].value.d << " " << a[1].value.i << " " << porter_kind(a[2].value.p)
      << " " << a[3].value.u << " " << a[4].value.d;
  result->value.p = porter_make_string(out.str().c_str());
  return 0;
}

static int refuse(void*, const char*, const char*, size_t, const porter_argument*, porter_argument*) {
  porter_set_error("refused");
  return 1;
}

extern "C" {

const char* classes() {
  return tell([](std::ostream& out) {
    Derived* object = [[Derived new] autorelease];
    object->_x = 21;
    object->_y = 1.5;
    object->_members.push_back(3);
    object.name = [NSString stringWithFormat:@"%d-%@-%.2f", 7, @"hi", 2.5];
    out << [object twice] << " " << [object thrice] << " " << object->_y << " " << object->_members.size() << " "
        << [object.name UTF8String] << " " << [object isKindOfClass:[Base class]] << " "
        << [object respondsToSelector:@selector(thrice)] << [object respondsToSelector:@selector(message:)];
  });
}

const char* collections() {
  return tell([](std::ostream& out) {
    NSMutableArray* array = [NSMutableArray array];
    [array addObject:@1];
    [array addObject:@2.5];
    array[2] = @"x";
    [array insertObject:@YES atIndex:0];
    [array removeObjectAtIndex:1];
    for (id each in array) {
      out << [[each description] UTF8String] << " ";
    }
    NSDictionary* found = @{@"a" : @1, @"b" : array};
    out << [found[@"a"] intValue] << (found[[NSString stringWithUTF8String:"b"]] == array) << (found[@"c"] == nil);
    out << " " << [@[ @1, @2 ] isEqualToArray:@[ @1.0, @2 ]] << " "
        << [[@[ @3, @4 ] componentsJoinedByString:@","] UTF8String];
  });
}

const char* beyond() {
  return tell([](std::ostream& out) { out << [@[ @1 ][3] intValue]; });
}

const char* blocks() {
  return tell([](std::ostream& out) {
    Base* object = [[Base new] autorelease];
    object->_x = 5;
    __block int count = 1;
    int (^add)(int) = (int (^)(int))_Block_copy((void*)^(int by) {
      count += by;
      return object->_x + by;
    });
    out << add(4) << " " << count << " " << [object retainCount];
    _Block_release((void*)add);
    out << " " << [object retainCount];
  });
}

// clang copies the block that it makes of a lambda, and autoreleases it.
const char* lambdas() {
  return tell([](std::ostream& out) {
    Base* object = [[Base new] autorelease];
    object->_x = 5;
    int seen = 0;
    @autoreleasepool {
      auto lambda = [&seen, object](int by) { return seen = object->_x + by; };
      int (^block)(int) = lambda;
      NSArray* kept = @[ block ];
      out << ((int (^)(int))kept[0])(4) << " " << seen << " " << [object retainCount] << " ";
      int (^bare)(int) = [](int by) { return 2 * by; };
      out << bare(3);
    }
    out << " " << [object retainCount];
  });
}

const char* queues() {
  return tell([](std::ostream& out) {
    dispatch_queue_t queue = dispatch_queue_create("q", DISPATCH_QUEUE_SERIAL);
    __block int value = 0;
    dispatch_sync(queue, ^{
      value = 9;
    });
    out << value << " ";
    dispatch_sync(queue, ^{
      dispatch_sync(queue, ^{
      });
    });
  });
}

const char* forwarded() {
  return tell([](std::ostream& out) {
    Base* object = [[Derived new] autorelease];
    porter_handle_messages("Base", answer);
    out << [[object message:1.25f with:-2 object:@[] flag:YES size:0.5] UTF8String];
    porter_handle_messages("Base", refuse);
    try {
      [object message:1.25f with:-2 object:@[] flag:YES size:0.5];
    } catch (const std::runtime_error& error) {
      out << " / " << error.what();
    }
    porter_handle_messages("Base", nullptr);
    [object message:1.25f with:-2 object:nil flag:YES size:0.5];
  });
}

const char* released_twice() {
  return tell([](std::ostream& out) {
    Base* object = [Base new];
    [[object retain] autorelease];
    [object release];
    out << [object retainCount];
  });
}

const char* nothing() {
  return tell([](std::ostream& out) {
    Base* none = nil;
    out << [none twice] << ([none name] == nil);
  });
}

}  // extern "C"
