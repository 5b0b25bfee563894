// Neighboring elements, which are read at once
template <typename T, int N>
struct alignas(N * sizeof(T)) neighbors {
  T at[N];
};
