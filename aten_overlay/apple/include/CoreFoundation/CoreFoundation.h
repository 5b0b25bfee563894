// Source: Apple's documentation of CFAbsoluteTimeGetCurrent; its objects are not here.
#pragma once
#include <Foundation/Foundation.h>
