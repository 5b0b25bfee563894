// Objective-C++ as -fobjc-arc has it: nothing is retained or released by hand.
#import <Foundation/Foundation.h>
#include <mach/mach_time.h>

#include <stdexcept>
#include <string>

#include "runtime/porter_runtime.h"

@interface Counted : NSObject
@property(strong) NSArray* items;
@property(copy) void (^block)(void);
@end

@implementation Counted
@end

namespace {
std::string tell(NSUInteger number) {
  return std::to_string(number);
}

Counted* make(NSUInteger count) {
  Counted* made = [Counted new];
  NSMutableArray* items = [NSMutableArray array];
  for (NSUInteger i = 0; i < count; i++) {
    [items addObject:@(i)];
  }
  made.items = items;
  return made;
}

std::string run() {
  std::string told;
  Counted* kept = make(3);
  __block NSUInteger sum = 0;
  kept.block = ^{
    sum += 4;
  };
  kept.block();
  told += "kept " + tell([kept.items count]) + " " + tell(sum);
  __weak Counted* weak = kept;
  told += " | weak " + tell(weak != nil);
  kept = nil;
  told += " " + tell(weak != nil);
  try {
    [NSException raise:NSGenericException format:@"bad %d", 7];
  } catch (const std::runtime_error& error) {
    told += std::string(" | caught ") + error.what();
  }
  BOOL is_folder = NO;
  const bool exists = [[NSFileManager defaultManager] fileExistsAtPath:@"/" isDirectory:&is_folder];
  const bool lacks = [[NSFileManager defaultManager] fileExistsAtPath:[[NSBundle mainBundle] pathForResource:@"a"
                                                                                                   ofType:@"metal"]];
  mach_timebase_info_data_t base;
  mach_timebase_info(&base);
  told += " | " + tell(base.numer + base.denom) + " files " + tell(exists && is_folder) + tell(lacks);
  return told + " | least " + tell(MIN((NSUInteger)1, (NSUInteger)3)) + " most " + tell(MAX((NSUInteger)1, (NSUInteger)3));
}
}  // namespace

extern "C" const char* counted() {
  static std::string told;
  @autoreleasepool {
    told = run();
  }
  told += " | left " + std::to_string(porter_live_objects("Counted"));
  return told.c_str();
}
