// Switching between stacks. On x86-64 by hand: a resume is an indirect jump, which predicts better than a return that no
// call matches. Elsewhere by ucontext, about twenty times slower.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(PM_UCONTEXT)
using Context = void*;
extern "C" void pm_switch(Context* save, Context to);
asm(R"(
.text
.globl pm_switch
.hidden pm_switch
.type pm_switch,@function
pm_switch:
  popq %rcx
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  pushq %rcx
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %rcx
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  jmpq *%rcx
.size pm_switch, .-pm_switch
)");
static inline void switch_to(Context& save, Context& to) { pm_switch(&save, to); }
static inline void prepare(Context& context, char* low, size_t size, void (*start)()) {
  auto top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(low) + size) & ~uintptr_t(15));
  *--top = nullptr;  // the return address a called function expects: keeps the stack aligned as after a call
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  *--top = reinterpret_cast<void*>(start);
  context = top;
}
#else
#include <ucontext.h>
using Context = ucontext_t;
static inline void switch_to(Context& save, Context& to) { swapcontext(&save, &to); }
static inline void prepare(Context& context, char* low, size_t size, void (*start)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = low;
  context.uc_stack.ss_size = size;
  context.uc_link = nullptr;
  makecontext(&context, start, 0);
}
#endif
