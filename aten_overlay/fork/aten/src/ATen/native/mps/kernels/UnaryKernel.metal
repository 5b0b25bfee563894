#include <c10/metal/indexing.h>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>
using namespace metal;
using namespace c10::metal;

struct exp_functor {
  template <typename T>
  inline enable_if_t<is_scalar_floating_point_v<T>, T> operator()(const T x) {
    return static_cast<T>(precise::exp(static_cast<float>(x)));
  }
  template <typename T>
  inline enable_if_t<is_scalar_integral_v<T>, float> operator()(const T x) {
    return precise::exp(static_cast<float>(x));
  }
  template <typename T>
  inline enable_if_t<is_complex_v<T>, T> operator()(const T x) {
    const float scale = precise::exp(static_cast<float>(x.x));
    const float angle = static_cast<float>(x.y);
    if (angle == 0) {
      return T(scale, angle);
    }
    return T(scale * precise::cos(angle), scale * precise::sin(angle));
  }
};

REGISTER_UNARY_OP(exp, bool, float);
REGISTER_UNARY_OP(exp, uchar, float);
REGISTER_UNARY_OP(exp, char, float);
REGISTER_UNARY_OP(exp, short, float);
REGISTER_UNARY_OP(exp, int, float);
REGISTER_UNARY_OP(exp, long, float);
REGISTER_UNARY_OP(exp, float, float);
REGISTER_UNARY_OP(exp, half, half);
REGISTER_UNARY_OP(exp, bfloat, bfloat);
REGISTER_UNARY_OP(exp, float2, float2);
