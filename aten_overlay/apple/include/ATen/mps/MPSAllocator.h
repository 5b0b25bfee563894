// In the place of the header of PyTorch's heap allocator, which no code outside of it may include: it says so itself.
#error "PTR148: ATen/mps/MPSAllocator.h declares the heaps of PyTorch's own allocator, which the stand-in has not; include ATen/mps/MPSAllocatorInterface.h"
