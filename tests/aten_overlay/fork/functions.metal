// Registers the functions of the fork's special_math.h and utils.h as kernels, to test them.
#include <c10/metal/indexing.h>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>
using namespace metal;

#define UNARY(NAME)                       \
  struct NAME##_functor {                 \
    inline float operator()(float x) {    \
      return c10::metal::NAME(x);         \
    }                                     \
  };                                      \
  REGISTER_UNARY_OP(NAME, float, float);

#define BINARY(NAME)                              \
  struct NAME##_functor {                         \
    template <typename T>                         \
    inline T operator()(const T a, const T b) {   \
      return c10::metal::NAME(a, b);              \
    }                                             \
  };

UNARY(erf)
UNARY(expm1f)
UNARY(log1p)

BINARY(div)
BINARY(floor_divide)
BINARY(fmod)
BINARY(hypot)
BINARY(max)
BINARY(min)
BINARY(mul)
BINARY(remainder)

REGISTER_BINARY_OP(div, float2, float2);
REGISTER_BINARY_OP(mul, float2, float2);
REGISTER_BINARY_OP(hypot, float, float);

#define FLOAT_AND_INTEGERS(NAME)          \
  REGISTER_BINARY_OP(NAME, float, float); \
  REGISTER_BINARY_OP(NAME, long, long);   \
  REGISTER_BINARY_OP(NAME, int, int);     \
  REGISTER_BINARY_OP(NAME, short, short); \
  REGISTER_BINARY_OP(NAME, char, char);   \
  REGISTER_BINARY_OP(NAME, uchar, uchar);

FLOAT_AND_INTEGERS(floor_divide)
FLOAT_AND_INTEGERS(fmod)
FLOAT_AND_INTEGERS(max)
FLOAT_AND_INTEGERS(min)
FLOAT_AND_INTEGERS(remainder)
