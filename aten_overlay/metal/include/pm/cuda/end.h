// The end of what begin.h begins, but for the functions of the source, which are a device's too.
#pragma clang attribute pop
