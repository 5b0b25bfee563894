// Source: Apple's documentation of NSError and NSURL.
#pragma once
#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>

@interface NSError : NSObject <NSCopying>
+ (instancetype)errorWithDomain:(NSString*)domain code:(NSInteger)code userInfo:(id)info;
@property(readonly, copy) NSString* domain;
@property(readonly) NSInteger code;
@property(readonly, copy) NSString* localizedDescription;
@end

// The key of an error's text in its `userInfo`.
extern NSString* const NSLocalizedDescriptionKey;

@interface NSURL : NSObject <NSCopying>
+ (instancetype)fileURLWithPath:(NSString*)path;
+ (instancetype)URLWithString:(NSString*)text;
@property(readonly, copy) NSString* path;
@end
