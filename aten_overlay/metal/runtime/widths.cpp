// Integers that are too wide for their type on the way to an address, NaN and infinities of finite numbers: what
// sanitizer/widths.py and sanitizer/values.py call after an operation.
#include "sanitizer.h"

#include <stdio.h>

using namespace pm;
using namespace pm::sanitizer;

namespace {
enum Operation : uint32_t { kConvert, kAdd, kSubtract, kMultiply, kWiden, kShift, kRound, kFloat, kSigned = 8 };
enum Shift : uint32_t { kAmountAlone = 2, kToTheRight = 4 };
constexpr const char* kNames[] = {"converts", "adds %lld and %lld", "subtracts %2$lld from %1$lld", "multiplies %lld and %lld", "", "shifts %lld left by %lld"};

// The value of the low bits of a word, signed.
int64_t extend(uint64_t word, uint32_t bits) { return int64_t(word << (64 - bits)) >> (64 - bits); }
bool fits_signed(__int128 value, uint32_t bits) { return value >= -(__int128(1) << (bits - 1)) && value < __int128(1) << (bits - 1); }
bool fits_unsigned(__int128 value, uint32_t bits) { return value >= 0 && value < __int128(1) << bits; }
__int128 compute(uint32_t operation, __int128 a, __int128 b) {
  return operation == kAdd ? a + b : operation == kSubtract ? a - b : operation == kShift ? a * (__int128(1) << (b & 63)) : a * b;
}
// A float that is rounded towards zero: whether an integer of so many bits holds it.
bool holds(float value, uint32_t bits, bool is_signed) {
  const float end = __builtin_ldexpf(1, int(bits - is_signed));
  return value > (is_signed ? -end - 1 : -1.0f) && value < end;
}
}  // namespace

void pm::sanitizer::fail_for_open_result(State& s, uint32_t line) {
  const OpenResult& open = s.open_result;
  if (!open.site || open.group != s.group || open.lane != pm_index()) return;
  enum { kDivide, kRemainder };
  const uint32_t operation = open.site->operation & 7, bits = open.site->operation >> 8;
  const bool is_signed = open.site->operation & kSigned;
  pm_site place{};
  place.file = open.site->file;
  place.line = open.site->line;
  char made[96];
  if (operation > kRemainder)
    snprintf(made, sizeof(made), "converts %.9g to %s%u bits, which cannot hold it", __builtin_bit_cast(double, open.a), is_signed ? "" : "unsigned ", bits);
  else
    snprintf(made, sizeof(made), is_signed ? "%s %lld by %lld" : "%s %llu by %llu", operation == kDivide ? "divides" : "takes the remainder of",
             static_cast<long long>(open.a), static_cast<long long>(open.b));
  fail(s, PM_OPEN_RESULT, "PTR299: kernel `", place, pm_index(), "%s: Metal leaves the result open, and line %u depends on it", made, line);
}

#pragma GCC visibility push(default)
extern "C" {
// `a` and `b` are the operands, with zeros above their bits; `b` is `a` where there is one.
void pm_check_width(uint64_t a, uint64_t b, const pm_width_site* site) {
  if (!active()) return;
  State& s = state();
  if (!(s.checks & kOverflow)) return;
  const uint32_t operation = site->operation & 7, bits = site->operation >> 8 & 255, to = site->operation >> 16;
  const bool is_signed = site->operation & kSigned;
  const int64_t left = extend(a, bits), right = extend(b, bits);
  pm_site place{};
  place.file = site->file;
  place.line = site->line;
  if (operation == kWiden) {
    if (left < 0) s.widened = {left, site->file, site->line, s.group, pm_index()};
    return;
  }
  if (operation == kConvert) {
    const bool kept = extend(a, to) == left || (!is_signed && (a & ((uint64_t(1) << to) - 1)) == a);
    if (!kept)
      fail(s, PM_OVERFLOW, "PTR282: kernel `", place, pm_index(), "converts %lld to %u bits on the way to an address: it becomes %lld",
           static_cast<long long>(left), to, static_cast<long long>(extend(a, to)));
    return;
  }
  if (operation == kRound) {
    const float value = __builtin_bit_cast(float, uint32_t(a));
    if (__builtin_isfinite(value) && !(value < 0 || to < 32 ? holds(value, to, is_signed) : true))
      fail(s, PM_OVERFLOW, "PTR282: kernel `", place, pm_index(), "converts %.9g to %s%u bits on the way to an address: it is out of range",
           double(value), is_signed ? "" : "unsigned ", to);
    return;
  }
  if (operation == kFloat) {
    const uint64_t size = is_signed && left < 0 ? -uint64_t(left) : a;
    if (to == 11 && size >= 65520)  // the first that rounds to more than the largest half
      fail(s, PM_OVERFLOW, "PTR282: kernel `", place, pm_index(), "converts %lld to half on the way to an address: it becomes infinity",
           static_cast<long long>(is_signed ? left : int64_t(a)));
    else if (size && size >> __builtin_ctzll(size) >> to)
      fail(s, PM_OVERFLOW, "PTR282: kernel `", place, pm_index(), "converts %lld to %s on the way to an address, which holds %u bits of it",
           static_cast<long long>(is_signed ? left : int64_t(a)), to == 11 ? "half" : "float", to);
    return;
  }
  if (operation == kShift && bits >= 32 && b >= bits)
    fail(s, PM_OVERFLOW, "PTR282: kernel `", place, pm_index(), "shifts %lld %s by %lld in %u bits on the way to an address: Metal shifts by %u",
         static_cast<long long>(is_signed ? left : int64_t(a)), to & kToTheRight ? "right" : "left", static_cast<long long>(right), bits, uint32_t(b & (bits - 1)));
  if (operation == kShift && to & kAmountAlone) return;
  const __int128 exact = compute(operation, left, right);
  // A count of 8 or 16 bits ends where it passes its largest value; what is taken from one may pass below 0.
  const bool is_count = to && right >= 0 && operation != kSubtract;
  if ((fits_signed(exact, bits) && !is_count) || (!is_signed && fits_unsigned(compute(operation, a, b), bits))) return;
  const int64_t shown = extend(uint64_t(exact), bits), wrapped = is_signed || (shown >= 0 && !is_count) ? shown : int64_t(uint64_t(exact) & ((uint64_t(1) << bits) - 1));
  char made[96];
  snprintf(made, sizeof(made), kNames[operation], static_cast<long long>(is_signed ? left : int64_t(a)), static_cast<long long>(is_signed ? right : int64_t(b)));
  fail(s, PM_OVERFLOW, "PTR282: kernel `", place, pm_index(), "%s in %s%u bits on the way to an address: the result, %lld, is out of range and wraps to %lld",
       made, is_signed ? "" : "unsigned ", bits, static_cast<long long>(is_count ? compute(operation, a, b) : exact), static_cast<long long>(wrapped));
}

// After an operation whose result Metal leaves open, if `is_open`.
void pm_note_open(bool is_open, uint64_t a, uint64_t b, const pm_width_site* site) {
  if (!is_open || !active()) return;
  State& s = state();
  if (s.checks & kArithmetic) s.open_result = {a, b, site, s.group, pm_index()};
}
// `a`, `b` and `c` are the operands; the last one stands for those that there are not.
void pm_check_value(float a, float b, float c, float result, const pm_width_site* site) {
  if (__builtin_isfinite(result) || !active()) return;
  State& s = state();
  if (!(s.checks & kNotFinite) || !__builtin_isfinite(a) || !__builtin_isfinite(b) || !__builtin_isfinite(c)) return;
  constexpr const char* kMade[] = {"adds %.9g and %.9g", "subtracts %2$.9g from %1$.9g", "multiplies %.9g by %.9g", "divides %.9g by %.9g",
                                   "divides %.9g by %.9g", "rounds %.9g to half", "computes a function of %.9g"};
  char made[96];
  snprintf(made, sizeof(made), kMade[site->operation], double(a), double(b));
  pm_site place{};
  place.file = site->file;
  place.line = site->line;
  fail(s, PM_NOT_FINITE, "PTR297: kernel `", place, pm_index(), "%s: the result is %s", made,
       result != result ? "NaN" : result > 0 ? "infinity" : "-infinity");
}
}
#pragma GCC visibility pop
