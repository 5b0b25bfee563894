// What elements are combined in: simdgroups combine no bools
template <typename T>
using combined_t = ::metal::
    conditional_t<::metal::is_same_v<T, bool>, int, c10::metal::opmath_t<T>>;
