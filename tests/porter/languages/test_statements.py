"""Statements of bodies in C++ and Objective-C++, by their spans."""

from porter.languages.statements import Statement, find_returns, name_tokens, read_statements

BODY = """
  if (a > 0) return;
  @autoreleasepool {
    auto run = ^() { stop(); };
    for (const auto i : irange(3)) { add(i); }
  }
  do { step(); } while (more);
  if constexpr (b) { first(); } else if (c) { second(); } else third();
"""


def outline(statement: Statement, text: str) -> object:
    within = [outline(each, text) for each in (*statement.body, *statement.otherwise)]
    return (statement.keyword, *within) if statement.keyword else text[statement.start : statement.end]


def test_statements_nest_as_written() -> None:
    assert [outline(each, BODY) for each in read_statements(BODY)] == [
        ("if", "return;"),
        ("autoreleasepool", "auto run = ^() { stop(); };", ("for", "add(i);")),
        ("do", "step();"),
        ("if", "first();", ("if", "second();", "third();")),
    ]


def test_a_statement_covers_all_of_its_text() -> None:
    texts = [BODY[each.start : each.end] for each in read_statements(BODY)]
    assert texts[2] == "do { step(); } while (more);"
    assert [BODY[slice(*each.head)] for each in read_statements(BODY) if each.head] == ["a > 0", "b"]


DISPATCHED = """
  AT_DISPATCH_MPS_TYPES(result.scalar_type(), "range_mps", [&]() {
    auto first = start.to<scalar_t>();
    if (first > 0) { return; }
  });
  AT_DISPATCH_V2(type, "none", AT_WRAP([&] { run(); }), kHalf);
  parallel_for([&]() { run(); });
"""


def test_a_dispatch_has_the_statements_of_its_lambda() -> None:
    made = read_statements(DISPATCHED)
    assert [outline(each, DISPATCHED) for each in made] == [
        ("dispatch", "auto first = start.to<scalar_t>();", ("if", "return;")),
        'AT_DISPATCH_V2(type, "none", AT_WRAP([&] { run(); }), kHalf);',
        "parallel_for([&]() { run(); });",
    ]
    assert made[0].head and made[0].inner
    assert DISPATCHED[slice(*made[0].head)] == 'result.scalar_type(), "range_mps", [&]() '
    assert DISPATCHED[slice(made[0].inner[1], made[0].end)] == "});"


def test_names_are_no_members_and_not_qualified() -> None:
    assert [token.text for token in name_tokens("a.b + c->d + std::max(e, f::g)")] == ["a", "c", "std", "e", "f"]


RETURNING = """
  auto queue = ^() { return 1; };
  if (all_of(sizes, [](int64_t size) { return size != 0; }) || order(sizes, [&](auto a) -> std::vector<int> { return a; })) {
    return first[0];
  }
  dispatch(stream, ^{ return; });
  visit([&]<typename T>(T tag) mutable { return tag; }, ^int(int a) { return a; });
  return [](int a) { return a; };
"""


def test_the_returns_of_a_body_are_not_those_of_its_lambdas() -> None:
    assert [each["value"] for each in find_returns(RETURNING)] == ["first[0]", "[](int a) { return a; }"]
