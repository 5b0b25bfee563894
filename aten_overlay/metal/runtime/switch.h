// Switching between stacks. On x86-64 by hand, without a call or a return that has no counterpart: a lane resumes by an
// indirect jump straight behind its own call of the hook, which predicts well because its neighbors just went there too.
// The hooks keep no registers but the stack and frame pointers (`preserve_none`). Elsewhere by ucontext, far slower.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && __has_attribute(preserve_none) && !defined(PM_UCONTEXT)
#define PM_NATIVE_SWITCH 1
struct Context {
  void *stack, *frame, *resume;
};

extern "C" {
Context* pm_leave_at_barrier(void* resume, void* stack, void* frame);
Context* pm_leave_in_simd(void* resume, void* stack, void* frame);
Context* pm_leave_at_end(void* resume, void* stack, void* frame);
}
#define PM_HOOK(name, visibility, leave) \
  asm(".text\n.globl " #name "\n." visibility " " #name "\n.type " #name ",@function\n" #name ":\n" \
      "  popq %rdi\n  movq %rsp, %rsi\n  movq %rbp, %rdx\n  call " #leave "\n" \
      "  movq (%rax), %rsp\n  movq 8(%rax), %rbp\n  jmpq *16(%rax)\n" \
      ".size " #name ", .-" #name "\n")

// From the scheduler into a lane. Compiled without a red zone, which the push would overwrite.
static inline __attribute__((always_inline)) void enter(Context& scheduler, Context& lane) {
  Context *from = &scheduler, *to = &lane;
  asm volatile(
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %%rbp, 8(%0)\n\t"
      "movq %%rax, 16(%0)\n\t"
      "movq (%1), %%rsp\n\t"
      "movq 8(%1), %%rbp\n\t"
      "jmpq *16(%1)\n"
      "1:\n\t"
      "popq %%rbp\n\t"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#if defined(__AVX512F__)
        ,
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29",
        "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#endif
  );
}
static inline __attribute__((always_inline)) void prepare(Context& context, char* low, size_t size, void (*start)()) {
  auto top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(low) + size) & ~uintptr_t(15));
  *--top = nullptr;  // where a called function finds its return address: aligns the stack as after a call
  context = {top, nullptr, reinterpret_cast<void*>(start)};
}
#else
#include <ucontext.h>
using Context = ucontext_t;
static inline void enter(Context& scheduler, Context& lane) { swapcontext(&scheduler, &lane); }
static inline void prepare(Context& context, char* low, size_t size, void (*start)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = low;
  context.uc_stack.ss_size = size;
  context.uc_link = nullptr;
  makecontext(&context, start, 0);
}
#endif
