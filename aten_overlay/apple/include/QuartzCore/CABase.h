// Source: Apple's documentation of CACurrentMediaTime; layers are not here.
#pragma once
#include <Foundation/Foundation.h>
