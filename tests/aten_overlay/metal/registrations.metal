// Every registration macro of c10/metal/indexing.h, over every element type.
#include <c10/metal/indexing.h>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>
using namespace metal;
using namespace c10::metal;

struct angle_functor {
  template <typename T>
  inline enable_if_t<is_floating_point_v<T>, T> operator()(const T a, const T b) {
    return static_cast<T>(precise::atan2(float(a), float(b)));
  }
  template <typename T>
  inline enable_if_t<is_integral_v<T>, float> operator()(const T a, const T b) {
    return precise::atan2(float(a), float(b));
  }
};
struct product_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return static_cast<T>(c10::metal::mul(a, b));
  }
};
struct total_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return static_cast<T>(a + b);
  }
};
struct less_functor {
  template <typename T>
  inline bool operator()(const T a, const T b) {
    return a < b;
  }
};
struct scaled_sum_functor {
  template <typename T>
  inline T operator()(const T a, const T b, const T alpha) {
    return static_cast<T>(a + b * alpha);
  }
};
struct shifted_functor {
  template <typename T>
  inline T operator()(const T a, const T alpha) {
    return static_cast<T>(a + alpha);
  }
};
struct between_functor {
  template <typename T>
  inline T operator()(const T a, const T low, const T high) {
    return static_cast<T>(a < low ? low : (high < a ? high : a));
  }
};
struct fused_functor {
  template <typename T>
  inline T operator()(const T a, const T b, const T c) {
    return static_cast<T>(a + b * c);
  }
};
struct negated_functor {
  template <typename T>
  inline T operator()(const T a) {
    return static_cast<T>(-a);
  }
};
DEFINE_UNARY_FLOATING_FUNCTOR(digamma);

#define FLOATS(M, N) M(N, float, float); M(N, half, half); M(N, bfloat, bfloat)
#define INTEGERS(M, N) M(N, long, long); M(N, int, int); M(N, short, short); M(N, uchar, uchar); M(N, char, char)
#define TO_FLOAT(M, N) M(N, long, float); M(N, int, float); M(N, short, float); M(N, uchar, float); M(N, char, float); M(N, bool, float)
#define COMPLEX(M, N) M(N, float2, float2); M(N, half2, half2)
#define TO_BOOL(M, N) M(N, float, bool); M(N, half, bool); M(N, bfloat, bool); M(N, long, bool); M(N, int, bool); M(N, short, bool); M(N, uchar, bool); M(N, char, bool); M(N, bool, bool)
#define ALPHA_FLOATS(M, N) M(N, float, float, float); M(N, half, half, half); M(N, bfloat, bfloat, bfloat)
#define ALPHA_INTEGERS(M, N) M(N, long, long, long); M(N, int, int, int); M(N, short, short, short); M(N, uchar, uchar, uchar); M(N, char, char, char)

FLOATS(REGISTER_UNARY_OP, digamma);
TO_FLOAT(REGISTER_UNARY_OP, digamma);
FLOATS(REGISTER_UNARY_OP, negated);
INTEGERS(REGISTER_UNARY_OP, negated);
COMPLEX(REGISTER_UNARY_OP, negated);
ALPHA_FLOATS(REGISTER_UNARY_ALPHA_OP, shifted);
ALPHA_INTEGERS(REGISTER_UNARY_ALPHA_OP, shifted);
FLOATS(REGISTER_BINARY_OP, angle);
TO_FLOAT(REGISTER_BINARY_OP, angle);
FLOATS(REGISTER_OPMATH_BINARY_OP, total);
INTEGERS(REGISTER_BINARY_OP, total);
COMPLEX(REGISTER_BINARY_OP, product);
TO_BOOL(REGISTER_BINARY_OP, less);
TO_BOOL(REGISTER_BINARY_CASTOUT_OP, less);
ALPHA_FLOATS(REGISTER_BINARY_ALPHA_OP, scaled_sum);
ALPHA_INTEGERS(REGISTER_BINARY_ALPHA_OP, scaled_sum);
FLOATS(REGISTER_TERNARY_OP, between);
INTEGERS(REGISTER_TERNARY_OP, between);
FLOATS(REGISTER_OPMATH_TERNARY_OP, fused);
#ifdef REGISTER_TERNARY_ALPHA_OP
struct fused_alpha_functor {
  template <typename T, typename A>
  inline T operator()(const T a, const T b, const T c, const A alpha) {
    return static_cast<T>(a + T(alpha) * b * c);
  }
};
ALPHA_FLOATS(REGISTER_TERNARY_ALPHA_OP, fused_alpha);
ALPHA_INTEGERS(REGISTER_TERNARY_ALPHA_OP, fused_alpha);
struct fused_alpha_opmath_functor : fused_alpha_functor {};
ALPHA_FLOATS(REGISTER_OPMATH_TERNARY_ALPHA_OP, fused_alpha_opmath);
#endif
