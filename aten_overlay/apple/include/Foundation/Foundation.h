// Foundation, as much of it as PyTorch's MPS backend uses. Part of porter's stand-in for Apple's frameworks.
#pragma once
#ifdef __cplusplus
#include <condition_variable>  // MPSEvent.h uses it and relies on libc++ to include it
#endif
#include <dispatch/dispatch.h>
#include <mach/vm_page_size.h>
#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>
#include <Foundation/NSNumber.h>
#include <Foundation/NSCollections.h>
#include <Foundation/NSData.h>
#include <Foundation/NSError.h>
#include <Foundation/NSProcessInfo.h>
