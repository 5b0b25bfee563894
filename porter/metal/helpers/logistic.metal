inline float logistic(float x) {
  return 1 / (1 + precise::exp(-x));
}
