template <typename N, typename D>
inline constexpr N ceildiv(N number, D by) {
  return (number + by - 1) / by;
}
