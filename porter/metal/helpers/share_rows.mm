namespace {
// How the threads of a grid share rows of elements: a thread, a simdgroup or a threadgroup has a row, or a slice of
// one. Another kernel combines the slices.
struct RowThreads {
  int64_t lanes;
  uint32_t slices;
};
} // namespace

// 32-bit indices up to this one stay in range where the width of a grid is added to them.
constexpr int64_t kLargestRowIndex = 1 << 30;

static RowThreads share_rows(int64_t rows, int64_t length, bool are_adjacent = false, int64_t group_size = GROUP) {
  constexpr int64_t kSimdSize = 32;
  constexpr int64_t kManyThreads = 512 * 1024;
  // Neighboring threads read neighboring elements: of one row or, where rows are adjacent, of several.
  const bool has_thread = length <= kSimdSize || (are_adjacent && rows * length >= 64 * 1024);
  const bool has_simdgroup = length <= 1024 || (length <= 8192 && rows * kSimdSize >= kManyThreads);
  // Lanes of a threadgroup have 16 elements at least, which are worth combining.
  const int64_t most_lanes = std::min(group_size, at::ceil_div(length, 16 * kSimdSize) * kSimdSize);
  const int64_t lanes = has_thread ? 1 : has_simdgroup ? kSimdSize : most_lanes;
  // A thread has LEAST elements at least, which are worth a second launch, and 256 at most, for sums to be accurate.
  const int64_t most = length / (LEAST * lanes);
  const int64_t least = at::ceil_div(length, 256 * lanes);
  const auto slices = std::max<int64_t>({1, least, std::min(most, kManyThreads / (rows * lanes))});
  return {lanes, static_cast<uint32_t>(slices)};
}

static void dispatch_rows(id<MTLComputeCommandEncoder> encoder,
                          id<MTLComputePipelineState> PSO,
                          int64_t rows,
                          const RowThreads& threads) {
  const auto lanes = std::min<NSUInteger>([PSO maxTotalThreadsPerThreadgroup], threads.lanes);
  [encoder dispatchThreads:MTLSizeMake(threads.slices * lanes, rows, 1)
      threadsPerThreadgroup:MTLSizeMake(lanes, lanes > 32 ? 1 : 256 / lanes, 1)];
}
