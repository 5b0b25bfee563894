// Namespaces of torch that hide their functions, which then no other library sees: what a precompiled header defines is
// in a library of its own.
#pragma once
#define PORTER_FOURTH(_1, _2, _3, NAME, ...) NAME
#define PORTER_NAMESPACE_1(a) namespace a {
#define PORTER_NAMESPACE_2(a, b) namespace a::b {
#define PORTER_NAMESPACE_3(a, b, c) namespace a::b::c {
#define HIDDEN_NAMESPACE_BEGIN(...) \
  PORTER_FOURTH(__VA_ARGS__, PORTER_NAMESPACE_3, PORTER_NAMESPACE_2, PORTER_NAMESPACE_1)(__VA_ARGS__)
#define HIDDEN_NAMESPACE_END(...) }
