/* Operators that ran on the CPU because the device has no kernel for them, counted by name. Plain C, for ctypes. */
#ifndef PORTER_DEVICE_FALLBACK_H
#define PORTER_DEVICE_FALLBACK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes "name.overload count\n" for each operator, sorted, at most `size` bytes with the closing 0; returns the bytes
 * that all of it takes. */
size_t porter_fallback_counts(char* text, size_t size);

void porter_fallback_reset(void);

/* 1: an operator without a kernel raises NotImplementedError instead of running on the CPU. */
void porter_fallback_refuse(int refuse);

#ifdef __cplusplus
}
#endif
#endif
