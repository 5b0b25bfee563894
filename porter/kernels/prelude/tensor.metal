// Dense tensor whose indices go from the innermost dimension out: t(column, row).
template <typename Pointer, int Rank>
struct porter_tensor {
  Pointer data;
  constant const int* shape;

  uint get_extent(uint dimension) const { return uint(shape[Rank - 1 - int(dimension)]); }

  template <typename... Indices>
  auto operator()(Indices... indices) const -> decltype(*data) {
    static_assert(sizeof...(Indices) == Rank, "a tensor takes one index for each of its dimensions");
    const ulong at[] = {ulong(indices)...};
    ulong offset = 0;
    for (int d = Rank - 1; d >= 0; --d) offset = offset * get_extent(d) + at[d];
    return data[offset];
  }

  template <typename Index>
  auto operator[](Index index) const -> decltype(*data) { return data[index]; }
};
