"""What stays of a body when the statements of a vocabulary go."""

import re

import pytest
from expecttest import assert_expected_inline

from porter.languages.liveness import list_declared, prune

GRAPH = re.compile(r"\bGraph\b|\bNSNumber\b")


def test_what_only_served_the_graph_goes_and_checks_stay() -> None:
    body = """
  TORCH_CHECK(self.dim() == 2, "a matrix");
  auto sizes = self.sizes();
  // the axes of the reduction
  std::vector<NSNumber*> axes(self.dim());
  int64_t rest = 1;
  for (const auto i : c10::irange(self.dim())) {
    if (i != dim) {
      axes[i] = @(i);
      rest *= sizes[i];
    }
  }
  Tensor output = at::empty(sizes, self.options());
  if (output.numel() == 0) {
    return output; // nothing to do
  }
  Graph* graph = make(axes, rest);
  graph->run();
  launch(output);
  return output;
"""
    assert_expected_inline(
        prune(body, GRAPH),
        """\

  TORCH_CHECK(self.dim() == 2, "a matrix");
  auto sizes = self.sizes();
  Tensor output = at::empty(sizes, self.options());
  if (output.numel() == 0) {
    return output; // nothing to do
  }
  launch(output);
  return output;
""",
    )


def test_a_comment_between_statements_that_go_goes_with_them() -> None:
    body = """
  launch(output);

  // about what stays

  bool gather = true;
  // See the issue about views.

  if (output.is_view()) {
    gather = false;
  }
  Graph* graph = make(gather);
"""
    assert prune(body, GRAPH) == "\n  launch(output);\n\n  // about what stays\n\n"


def test_what_changes_arguments_or_others_memory_stays() -> None:
    body = "\n  int count = 0;\n  count += 1;\n  result = self;\n  auto& alias = out;\n  alias = self;\n  out.resize_(count);\n"
    assert prune(body, GRAPH) == body


def test_what_is_set_after_its_last_use_goes_unless_a_loop_runs_it_before_one() -> None:
    body = """
  auto shape = self.sizes();
  bool is_flat = true;
  for (const auto dim : dims) {
    TORCH_CHECK(dim < shape.size());
    if (dim < 0) {
      is_flat = false;
    }
  }
  if (is_flat) {
    shape = flatten(shape);
  }
  Graph graph(shape);
"""
    kept = """
  auto shape = self.sizes();
  for (const auto dim : dims) {
    TORCH_CHECK(dim < shape.size());
  }
"""
    assert prune(body, GRAPH).rstrip() == kept.rstrip()
    again = "\n  auto shape = self.sizes();\n  while (more()) {\n    use(shape);\n    shape = next();\n  }\n"
    assert prune(again, GRAPH) == again


def test_copies_to_memory_that_nothing_reads_go() -> None:
    body = "\n  Tensor dense;\n  if (is_old) {\n    dense = at::empty_like(self);\n    mps_copy_(dense, self);\n  } else {\n"
    body += "    dense = self;\n  }\n  Graph graph(dense);\n  auto alias = out;\n  alias.copy_(self);\n"
    assert prune(body, GRAPH) == "\n  auto alias = out;\n  alias.copy_(self);\n"


def test_needed_names_keep_their_declarations() -> None:
    body = "\n  const auto width = self.size(-1);\n  Graph graph;\n"
    assert prune(body, GRAPH, ("width",)) == "\n  const auto width = self.size(-1);\n"
    assert prune(body, GRAPH) == "\n"


def test_branches_that_only_assert_go_with_the_rest() -> None:
    body = "\n  if (mode == Sum) {\n    Graph graph;\n  } else {\n    assert(mode == None);\n  }\n  stop();\n"
    assert prune(body, GRAPH) == "\n  stop();\n"


def test_a_loop_that_does_nothing_goes_with_its_jumps() -> None:
    loop = "\n  int at = 0;\n  for (int i : sizes) {\n    at++;\n    if (at == 2) {\n      break;\n    }\n    CALL\n  }\n  stop();\n"
    assert prune(loop.replace("CALL", "shape.push_back(@(i)); NSNumber* n = @(i);"), GRAPH) != "\n  stop();\n"
    assert prune(loop.replace("CALL", "NSNumber* n = @(i);"), GRAPH) == "\n  stop();\n"
    assert "break;" in prune(loop.replace("CALL", "check(i);"), GRAPH)


def test_a_switch_of_what_the_graph_needed_goes_with_its_labels() -> None:
    switch = "\n  switch (format) {\n    case at::A:\n      SET\n      break;\n    default:\n      assert(0);\n  }\n  stop();\n"
    body = f"\n  string key;\n  auto format = self.format();{switch}"
    assert prune(body.replace("SET", 'key = "a";'), GRAPH) == "\n  stop();\n"
    kept = prune(body.replace("SET", 'key = "a";\n      check();'), GRAPH)
    assert "case at::A:" in kept and "check();" in kept and "auto format" in kept and "break;" in kept


def test_a_switch_that_stays_keeps_its_labels() -> None:
    body = (
        "\n  switch (mode) {\n    case Mode::A:\n      Graph graph;\n      break;\n    case Mode::B:\n"
        "      TORCH_CHECK(false);\n      break;\n    default: Graph other;\n      break;\n  }\n  stop();\n"
    )
    kept = "".join(prune(body, GRAPH).split())
    assert kept == "switch(mode){caseMode::A:break;caseMode::B:TORCH_CHECK(false);break;default:break;}stop();"


@pytest.mark.parametrize("label", ["default:", "case Mode::B:", "case Mode::B:\n    default:"])
@pytest.mark.parametrize("space", [" ", "\n      "])
def test_a_label_that_ends_a_switch_keeps_a_statement(label: str, space: str) -> None:
    body = (
        f"\n  switch (mode) {{\n    case Mode::A:\n      check();\n      break;\n    {label}{space}Graph graph;\n  }}\n"
        "  stop(Mode::A ? 1 : 2);\n"
    )
    assert prune(body, GRAPH) == body.replace(f"{label}{space}Graph graph;", f"{label} break;")


def test_an_else_goes_with_what_follows_it() -> None:
    body = "\n  if (is_flat) {\n    check();\n  } else if (is_deep) {\n    Graph graph;\n  }\n  stop();\n"
    assert prune(body, GRAPH) == "\n  if (is_flat) {\n    check();\n  }\n  stop();\n"


@pytest.mark.parametrize("tied", ["std::tie(x, std::ignore)", "std::tie(*x, std::ignore)"])
def test_what_only_sets_one_of_a_tuple_goes_with_it(tied: str) -> None:
    body = f"\n  Tensor x;\n  {tied} = f(y);\n  Graph graph(x);\n  stop();\n"
    assert prune(body, GRAPH) == "\n  stop();\n"
    assert prune(body.replace("std::ignore", "z"), GRAPH) != "\n  stop();\n"


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("const auto x = f(y);", ["x"]),
        ("std::vector<int64_t> sizes(a.begin(), a.end());", ["sizes"]),
        ("Tensor *a = nil, *b = nil;", ["a", "b"]),
        ("auto [first, second] = pair;", ["first", "second"]),
        ("using T = std::pair<int, int>;", ["T"]),
        ("using namespace mps;", []),
        ("x = 5;", []),
        ("f(x, y);", []),
        ("a::b::c(x);", []),
        ("out.resize_(sizes);", []),
        ("return x;", []),
    ],
)
def test_declared_names(statement: str, names: list[str]) -> None:
    assert list_declared(statement) == names
