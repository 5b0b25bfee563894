// A GPU's registers and instructions as functions, so that code for it runs on a processor (see hardware.cpp).
#pragma once
#define PM_SHARED static
#define PM_DYNAMIC extern
#define PM_CUDA_INSTRUCTIONS_H
extern "C" {
unsigned __nvvm_read_ptx_sreg_laneid();
unsigned __nvvm_read_ptx_sreg_tid_x();
unsigned __nvvm_read_ptx_sreg_ntid_x();
unsigned __nvvm_read_ptx_sreg_ctaid_x();
unsigned __nvvm_read_ptx_sreg_ctaid_y();
unsigned __nvvm_read_ptx_sreg_ctaid_z();
unsigned __nvvm_read_ptx_sreg_nctaid_x();
unsigned __nvvm_read_ptx_sreg_nctaid_y();
int __nvvm_bar0_popc(int);
void __syncthreads();
void __nvvm_bar_warp_sync(unsigned mask);
int __nvvm_shfl_sync_idx_i32(unsigned mask, int word, int lane, int);
int __nvvm_shfl_sync_down_i32(unsigned mask, int word, int by, int);
int __nvvm_shfl_sync_up_i32(unsigned mask, int word, int by, int);
int __nvvm_shfl_sync_bfly_i32(unsigned mask, int word, int bits, int);
int __nvvm_redux_sync_add(int, int mask);
int __nvvm_redux_sync_min(int, int mask);
int __nvvm_redux_sync_max(int, int mask);
unsigned __nvvm_redux_sync_umin(unsigned, int mask);
unsigned __nvvm_redux_sync_umax(unsigned, int mask);
int __nvvm_redux_sync_and(int, int mask);
int __nvvm_redux_sync_or(int, int mask);
int __nvvm_redux_sync_xor(int, int mask);
unsigned __nvvm_vote_ballot_sync(unsigned mask, bool);
float __nvvm_atom_add_gen_f(volatile float*, float);
float __nvvm_ex2_approx_f(float);
inline void __nvvm_membar_gl() {}
inline void __nvvm_membar_cta() {}
unsigned hardware_active_mask();
}
namespace pm {
inline void nanosleep(unsigned) {}
inline __attribute__((always_inline)) unsigned active_mask() { return hardware_active_mask(); }
unsigned transpose_halves(unsigned);
void multiply_halves(float (&)[4], unsigned, unsigned);
void multiply_bfloats(float (&)[4], unsigned, unsigned);
}  // namespace pm

template <int...> struct hardware_numbers {};
template <class T, T... I> using hardware_list = hardware_numbers<I...>;
// Calls an entry with the arguments at some addresses.
template <class... A, int... I> void hardware_call(void (*entry)(A...), void** arguments, hardware_numbers<I...>) {
  entry(*static_cast<__remove_cv(__remove_reference_t(A))*>(arguments[I])...);
}
template <class... A> void hardware_call(void (*entry)(A...), void** arguments) {
  hardware_call(entry, arguments, __make_integer_seq<hardware_list, int, sizeof...(A)>{});
}
