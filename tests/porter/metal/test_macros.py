import pytest
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.languages.source import Source
from porter.metal.macros import Instance, MacroBook, MacroFamily
from porter.metal.registration import Need, register_lines

HEADER = r"""
#define REGISTER_UNARY_OP(NAME, DTYPE0, DTYPE1)                         \
  template [[host_name(#NAME "_dense_" #DTYPE1 "_" #DTYPE0)]] kernel    \
  void unary_dense<DTYPE0, NAME##_functor>(device DTYPE1 * output);     \
  template [[host_name(#NAME "_dense_castout_" #DTYPE0)]] kernel void   \
  unary_dense_castout<DTYPE0, NAME##_functor>(device void* output)
#define REGISTER_BINARY_OP_(NAME, DTYPEI, DTYPEO, OMT)                  \
  template [[host_name(#NAME "_strided_" #DTYPEO "_" #DTYPEI)]] kernel  \
  void binary_strided<DTYPEI, NAME##_functor, OMT>(device void* output);\
  template [[host_name(#NAME "_dense_" #DTYPEO "_" #DTYPEI)]] kernel    \
  void binary_dense<DTYPEI, NAME##_functor, OMT>(device void* output)
#define REGISTER_OPMATH_BINARY_OP(NAME, DTYPEI, DTYPEO) \
  REGISTER_BINARY_OP_(NAME, DTYPEI, DTYPEO, opmath_t<DTYPEI>)
#define REGISTER_BINARY_OP(NAME, DTYPEI, DTYPEO) \
  REGISTER_BINARY_OP_(NAME, DTYPEI, DTYPEO, DTYPEI)
#define REGISTER_BINARY_CASTOUT_OP(NAME, DTYPEI, DTYPEO)                        \
  template [[host_name(#NAME "_strided_castout_" #DTYPEO "_" #DTYPEI)]] kernel  \
  void binary_strided_castout<DTYPEI, NAME##_functor>(device void* output)
#define REGISTER_BINARY_ALPHA_OP(NAME, DTYPEI, DTYPEA, DTYPEO)                      \
  template [[host_name(#NAME "_dense_" #DTYPEO "_" #DTYPEI "_" #DTYPEA)]] kernel    \
  void binary_alpha_dense<DTYPEI, DTYPEA, NAME##_functor>(device void* output)
#define REGISTER_FLOAT_BINARY_OP(NAME)    \
  REGISTER_BINARY_OP(NAME, float, float); \
  REGISTER_BINARY_OP(NAME, half, half)
#define REGISTER_INT2FLOAT_BINARY_OP(NAME) \
  REGISTER_BINARY_OP(NAME, long, float);   \
  REGISTER_BINARY_OP(NAME, int, float)
"""


def book() -> MacroBook:
    return MacroBook.read(Source.parse("indexing.h", HEADER).macros())


def lines(name: str, *needs: Need) -> str:
    return "\n".join(map(str, register_lines(name, needs, book())))


def pairs(*spelled: str) -> tuple[Instance, ...]:
    return tuple(Instance(*each.split(">")) for each in spelled)


def test_families_and_roles_come_from_the_host_names() -> None:
    bases = book().bases
    assert {name: (b.family, b.opmath, b.castout, b.roles) for name, b in bases.items() if not name.endswith("_")} == {
        "REGISTER_UNARY_OP": (MacroFamily.UNARY, False, False, ("in", "out")),
        "REGISTER_OPMATH_BINARY_OP": (MacroFamily.BINARY, True, False, ("in", "out")),
        "REGISTER_BINARY_OP": (MacroFamily.BINARY, False, False, ("in", "out")),
        "REGISTER_BINARY_CASTOUT_OP": (MacroFamily.BINARY, False, True, ("in", "out")),
        "REGISTER_BINARY_ALPHA_OP": (MacroFamily.BINARY_ALPHA, False, False, ("in", "alpha", "out")),
    }


def test_convenience_macros_are_used_where_they_fit_exactly() -> None:
    need = Need(MacroFamily.BINARY, pairs("float>float", "half>half", "bfloat>bfloat", "long>float", "int>float"))
    assert_expected_inline(
        lines("atan2", need),
        """\
REGISTER_FLOAT_BINARY_OP(atan2);
REGISTER_BINARY_OP(atan2, bfloat, bfloat);
REGISTER_INT2FLOAT_BINARY_OP(atan2);""",
    )


def test_a_macro_that_would_register_too_much_is_not_used() -> None:
    assert_expected_inline(
        lines("f", Need(MacroFamily.BINARY, pairs("float>float"))), """REGISTER_BINARY_OP(f, float, float);"""
    )


def test_opmath_and_alpha_families() -> None:
    opmath = Need(MacroFamily.BINARY, pairs("float>float", "half>half"), opmath=True)
    alpha = Need(MacroFamily.BINARY_ALPHA, (Instance("float", "float", "float"),))
    assert_expected_inline(
        lines("mul", opmath) + "\n" + lines("add", alpha),
        """\
REGISTER_OPMATH_BINARY_OP(mul, float, float);
REGISTER_OPMATH_BINARY_OP(mul, half, half);
REGISTER_BINARY_ALPHA_OP(add, float, float, float);""",
    )


def test_a_line_expands_to_its_pairs() -> None:
    made = book().expand("REGISTER_INT2FLOAT_BINARY_OP", ("atan2",))
    assert [(base.name, instance.input, instance.output) for base, instance in made] == [
        ("REGISTER_BINARY_OP", "long", "float"),
        ("REGISTER_BINARY_OP", "int", "float"),
    ]


def test_a_macro_without_its_name_registers_nothing() -> None:
    assert book().expand("REGISTER_INT2FLOAT_BINARY_OP", ()) == ()
    assert book().expand("REGISTER_INT2FLOAT_BINARY_OP", ("atan2", "float")) == ()


def test_a_kernel_file_that_hides_a_macro_of_the_header_is_named() -> None:
    kernel_file = r"""
#define REGISTER_BINARY_OP(NAME, DTYPE) \
  template [[host_name(#NAME "_" #DTYPE)]] kernel void NAME<DTYPE>(device DTYPE * output)
"""
    macros = (*Source.parse("indexing.h", HEADER).macros(), *Source.parse("BinaryKernel.metal", kernel_file).macros())
    binary = pairs("float>float")
    with pytest.raises(PorterError, match=r"PTR090.*defines REGISTER_BINARY_OP otherwise"):
        register_lines("f", [Need(MacroFamily.BINARY, binary)], MacroBook.read(macros))
    (line,) = register_lines("f", [Need(MacroFamily.BINARY, binary, opmath=True)], MacroBook.read(macros))
    assert str(line) == "REGISTER_OPMATH_BINARY_OP(f, float, float);"
    (line,) = register_lines("f", [Need(MacroFamily.UNARY, binary)], MacroBook.read(macros))
    assert str(line) == "REGISTER_UNARY_OP(f, float, float);"
