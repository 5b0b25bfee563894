#include <metal_stdlib>
using namespace metal;

template <typename T, typename I>
kernel void searchsorted(
    constant T* x [[buffer(0)]],
    constant T* edges [[buffer(1)]],
    device I* out [[buffer(2)]],
    constant long& row [[buffer(3)]],
    constant long& edges_of_row [[buffer(4)]],
    constant long& count [[buffer(5)]],
    constant long& right [[buffer(6)]],
    constant long& shared [[buffer(7)]],
    uint thread_id [[thread_position_in_grid]],
    uint threads [[threads_per_grid]]) {
  for (long i = thread_id; i < count; i += threads) {
    long first = shared ? 0 : i / row * edges_of_row, low = first, high = first + edges_of_row;
    while (low < high) {
      long middle = low + (high - low) / 2;
      bool before = right ? !(edges[middle] > x[i]) : edges[middle] < x[i];
      low = before ? middle + 1 : low;
      high = before ? high : middle;
    }
    out[i] = I(low - first);
  }
}
template [[host_name("searchsorted_float_int")]] kernel void searchsorted<float, int>(
    constant float*, constant float*, device int*, constant long&, constant long&, constant long&, constant long&,
    constant long&, uint, uint);
