kernel void draw(device long* words, constant long* state, uint tid [[thread_position_in_grid]]) {
  const uint4 drawn = c10::metal::philox4::rand(state[0], state[1] + tid);
  words[tid] = static_cast<long>(static_cast<ulong>(drawn.x) << 32 | drawn.y);
}

kernel void places(
    device T* output,
    constant long* sorted,
    constant long& stride,
    uint tid [[thread_position_in_grid]]) {
  output[index_t(tid) * index_t(stride)] = static_cast<T>(sorted[tid]);
}
