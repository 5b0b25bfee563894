// The library for sources that name no swizzle (see choose_library in swizzles.py). To complete a vector with all of its
// swizzles takes half of the time in which a small kernel is lowered.
#pragma once
#define PM_WITHOUT_SWIZZLES
#include "../metal_stdlib"
