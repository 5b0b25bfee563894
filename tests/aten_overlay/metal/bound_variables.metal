// Positions that are bound to variables at program scope.
#include <metal_stdlib>
using namespace metal;

uint place [[thread_position_in_grid]];
static const uint lane [[thread_index_in_simdgroup]];
constant uint3 extent
    [[threads_per_threadgroup]];
uint2 hidden [[thread_position_in_threadgroup]];

kernel void plain(device float* out [[buffer(0)]]) { out[place] = float(lane) + 100 * extent.x; }
kernel void without_parameters() { const uint2 own = hidden; (void)own; }
kernel void with_none(void) { (void)place; }
kernel void own_parameter(device float* out [[buffer(0)]], uint place [[threads_per_grid]]) { out[lane] = place; }
template <typename T> kernel void shared(device T* out) { out[place] = T(lane) + T(hidden.x); }
template [[host_name("shared_float")]] kernel void shared<float>(device float*);
template [[host_name("shared_int")]] kernel decltype(shared<int>) shared<int>;
static float twice() { return 2 * place; }
kernel void through_a_function(device float* out [[buffer(0)]]) { out[0] = twice(); }
kernel void broken(device float* out [[buffer(0)]]) { out[place] = no_such_name; }
