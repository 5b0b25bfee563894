// Vector types. Source: Apple's documentation of simd; three components take the room of four.
#pragma once

#define PORTER_SIMD(type, name)                                      \
  typedef type simd_##name##2 __attribute__((ext_vector_type(2)));   \
  typedef type simd_##name##3 __attribute__((ext_vector_type(3)));   \
  typedef type simd_##name##4 __attribute__((ext_vector_type(4)));

PORTER_SIMD(char, char)
PORTER_SIMD(unsigned char, uchar)
PORTER_SIMD(short, short)
PORTER_SIMD(unsigned short, ushort)
PORTER_SIMD(int, int)
PORTER_SIMD(unsigned int, uint)
PORTER_SIMD(long, long)
PORTER_SIMD(unsigned long, ulong)
PORTER_SIMD(float, float)
PORTER_SIMD(double, double)
#undef PORTER_SIMD
