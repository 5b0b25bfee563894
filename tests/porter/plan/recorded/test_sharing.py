"""Functions that ports write with the same body call one that has it."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.layout import OPERATIONS
from porter.plan.plan import Draft
from porter.plan.recorded.sharing import share_bodies
from tests.porter.plan.recorded import fork

FILE = f"{OPERATIONS}/Shared.mm"
HOST = """namespace at::native {

// The first
TORCH_IMPL_FUNC(turn1d_out_mps)
(const Tensor& self, int64_t times, const Tensor& out) {
  @BODY(turn)
}

TORCH_IMPL_FUNC(turn2d_out_mps)
(const Tensor& self, int64_t times, const Tensor& out) {
  @BODY(turn)
}

Tensor& other_mps(const Tensor& self, Tensor& out) {
  return out;
}

TORCH_IMPL_FUNC(return_out_mps)
(const Tensor& self, const Tensor& out) {
  @BODY(return)
}
} // namespace at::native
"""
BODY = """using namespace mps;

  if (out.numel() == 0) {
    return;
  }
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc("NAME_" + scalarToMetalTypeString(self));
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder, out, self);
      mtl_dispatch1DJob(computeEncoder, PSO, out.numel());
    }
  });"""


def write(folder: Path, host: str) -> Draft:
    checkout = fork.copy_fork(folder)
    for name in ("turn", "return"):
        host = host.replace(f"@BODY({name})", BODY.replace("NAME", name))
    (checkout.root / FILE).write_text(host)
    return Draft(checkout)


def share(draft: Draft, before: str = "") -> Draft:
    """The draft with what a port shares that wrote all functions that `before` lacks, and no more to share then."""
    made = draft.apply(share_bodies(draft.fork, FILE, before))
    again = made.apply(share_bodies(made.fork, FILE, before))
    assert again.fork.read(FILE) == made.fork.read(FILE)
    return made


def read(draft: Draft) -> str:
    return draft.fork.read(FILE)


def test_functions_with_one_body_call_it_with_the_names_of_their_kernels(tmp_path: Path) -> None:
    assert_expected_inline(
        read(share(write(tmp_path, HOST))),
        """\
namespace at::native {

static void turn_return_out_mps_impl(const Tensor& self, const Tensor& out, const std::string& kernel_name) {
  using namespace mps;

  if (out.numel() == 0) {
    return;
  }
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc(kernel_name + "_" + scalarToMetalTypeString(self));
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder, out, self);
      mtl_dispatch1DJob(computeEncoder, PSO, out.numel());
    }
  });
}

// The first
TORCH_IMPL_FUNC(turn1d_out_mps)
(const Tensor& self, int64_t times, const Tensor& out) {
  turn_return_out_mps_impl(self, out, "turn");
}

TORCH_IMPL_FUNC(turn2d_out_mps)
(const Tensor& self, int64_t times, const Tensor& out) {
  turn_return_out_mps_impl(self, out, "turn");
}

Tensor& other_mps(const Tensor& self, Tensor& out) {
  return out;
}

TORCH_IMPL_FUNC(return_out_mps)
(const Tensor& self, const Tensor& out) {
  turn_return_out_mps_impl(self, out, "return");
}
} // namespace at::native
""",
    )


def test_a_later_port_adds_the_name_of_its_kernel(tmp_path: Path) -> None:
    first, _, second = HOST.partition("Tensor& other_mps")
    draft = share(write(tmp_path, f"{first}}} // namespace at::native\n"))
    shared = read(draft)
    assert "static void turn_out_mps_impl(const Tensor& self, const Tensor& out) {" in shared
    assert "\n  turn_out_mps_impl(self, out);\n" in shared
    host = shared.replace("} // namespace at::native\n", f"Tensor& other_mps{second}")
    both = share(write(tmp_path / "again", host), shared)
    assert read(both) == read(share(write(tmp_path / "at_once", HOST)))


def test_what_no_port_has_written_stays(tmp_path: Path) -> None:
    draft = write(tmp_path, HOST)
    assert read(share(draft, read(draft))) == read(draft)


def test_what_differs_in_more_than_literals_stays(tmp_path: Path) -> None:
    changes = (
        ("turn1d_out_mps)\n(const Tensor& self", "turn1d_out_mps)\n(const TensorList& self"),
        ("// The first", "#ifdef OLD"),
        ("namespace at::native {\n", "namespace at::native {\nnamespace mps {\n"),
        ("out.numel());", "out.numel() - 1);"),
        ("if (out.numel() == 0) {\n    return;\n  }\n", ""),
    )
    for at, (old, new) in enumerate(changes):
        first, _, rest = HOST.partition("TORCH_IMPL_FUNC(turn2d")
        rest = rest.partition("\n}\n")[2]
        one, two = write(tmp_path / f"{at}", first), write(tmp_path / f"{at}_rest", rest)
        changed = read(one).replace(old, new)
        changed += "#endif\n" * ("#ifdef" in new) + "}\n" * ("mps {" in new)
        draft = write(tmp_path / f"{at}_both", changed + read(two))
        assert changed != read(one)
        assert read(share(draft)) == read(draft)


def test_a_helper_that_a_port_filled_stays_for_its_callers(tmp_path: Path) -> None:
    host = HOST.replace("TORCH_IMPL_FUNC(turn1d_out_mps)\n", "static void turn_template").partition("Tensor& other")[0]
    draft = write(tmp_path, f"{host}}} // namespace at::native\n")
    assert read(share(draft)) == read(draft)


def test_a_function_that_others_call_too_stays_for_them(tmp_path: Path) -> None:
    made = read(share(write(tmp_path, HOST)))
    last = made[made.index("TORCH_IMPL_FUNC(return") :].removesuffix("} // namespace at::native\n")
    again = "TORCH_IMPL_FUNC(again_out_mps)\n(const Tensor& self, const Tensor& out) {\n  @BODY(turn)\n}\n"
    draft = write(tmp_path / "again", made.replace(last, f"#ifdef OLD\n{last}#endif\n{again}"))
    assert read(share(draft, made)) == read(draft)


def test_a_name_that_a_file_has_is_left_to_it(tmp_path: Path) -> None:
    other = HOST.replace("Tensor& other_mps", "Tensor& turn_return_out_mps_impl")
    draft = write(tmp_path, other)
    assert "static void turn_return_out_mps_template(" in read(share(draft))


OUT = """
Tensor& turn_out_mps(const Tensor& self, Tensor& out) {
  @BODY(turn)
  return out;
}
"""
FUNCTIONAL = """
Tensor turn_mps(const Tensor& self) {
  Tensor out = at::empty_like(self);
  @BODY(turn)
  return out;
}
"""
CHECK = """TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "Expected self to have dtype ",
              out.scalar_type(),
              ", but got ",
              self.scalar_type());
"""


def write_returning(text: str) -> str:
    """A function that returns its result, wherever it does, with a check of its type."""
    returning = BODY.replace("return;", "return out;").replace("  MPSStream", f"  {CHECK}  MPSStream")
    return text.replace("@BODY(turn)", returning.replace("NAME", "turn"))


def test_functions_that_return_their_result_call_one_that_returns_nothing(tmp_path: Path) -> None:
    first = HOST.partition("TORCH_IMPL_FUNC(turn2d")[0]
    host = f"{first}{write_returning(OUT)}{write_returning(FUNCTIONAL)}}} // namespace at::native\n"
    made = read(share(write(tmp_path, host.replace(CHECK, "", 1))))
    assert_expected_inline(
        made,
        """\
namespace at::native {

static void turn_mps_impl(const Tensor& self, const Tensor& out) {
  using namespace mps;

  if (out.numel() == 0) {
    return;
  }
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "Expected self to have dtype ",
              out.scalar_type(),
              ", but got ",
              self.scalar_type());
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc("turn_" + scalarToMetalTypeString(self));
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder, out, self);
      mtl_dispatch1DJob(computeEncoder, PSO, out.numel());
    }
  });
}

// The first
TORCH_IMPL_FUNC(turn1d_out_mps)
(const Tensor& self, int64_t times, const Tensor& out) {
  turn_mps_impl(self, out);
}


Tensor& turn_out_mps(const Tensor& self, Tensor& out) {
  turn_mps_impl(self, out);
  return out;
}

Tensor turn_mps(const Tensor& self) {
  Tensor out = at::empty_like(self);
  turn_mps_impl(self, out);
  return out;
}
} // namespace at::native
""",
    )
    alone = read(share(write(tmp_path / "alone", first + "}\n")))
    assert alone == read(write(tmp_path / "first", first + "}\n"))
    host = made.replace("} // namespace at::native\n", f"{write_returning(OUT.replace('turn_out', 'again_out'))}}}\n")
    later = read(share(write(tmp_path / "later", host), made))
    assert later.count("getPipelineStateForFunc") == 1
    assert later.count("return out;") == 3


def test_what_makes_results_alone_makes_them_together(tmp_path: Path) -> None:
    functional = write_returning(FUNCTIONAL)
    both = functional + functional.replace("turn_mps", "back_mps").replace('"turn_', '"back_')
    made = read(share(write(tmp_path, f"namespace at::native {{\n{both}}}\n")))
    assert "static Tensor turn_back_mps_impl(const Tensor& self, const std::string& kernel_name) {" in made
    assert '  return turn_back_mps_impl(self, "turn");\n' in made
    out = write_returning(OUT).replace('"turn_', '"back_').replace("turn_out_mps", "back_out_mps")
    later = read(share(write(tmp_path / "later", f"{made[:-2]}{out}}}\n"), made))
    assert later.count("getPipelineStateForFunc") == 1
    assert later.count("Tensor out = at::empty_like(self);") == 2
    assert later.count("return out;") == 3


def test_other_checks_are_not_added(tmp_path: Path) -> None:
    first = HOST.partition("TORCH_IMPL_FUNC(turn2d")[0]
    out = write_returning(OUT)
    others = (
        out.replace("Expected", "Wanted"),
        out.replace(CHECK, "TORCH_CHECK(self.dim() < 4);\n"),
        out.replace(CHECK, CHECK.replace("self", "other")).replace("self,", "self, const Tensor& other,"),
    )
    for at, other in enumerate(others):
        draft = write(tmp_path / str(at), f"{first}{other}}}\n")
        assert read(share(draft)) == read(draft)
