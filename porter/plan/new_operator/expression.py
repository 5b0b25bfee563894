"""Parses the expression of a new operator, and writes it in C++, in Python and as a formula of ATen."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from porter.core.errors import PorterError

CONSTANTS: Mapping[str, tuple[str, str]] = {
    "pi": ("c10::pi<opmath_t>", "torch.pi"),
    "e": ("c10::e<opmath_t>", "math.e"),
}


@dataclass(frozen=True)
class Function:
    """A function: in C++, as a method of tensors, for a number in Python. `positive` ones are not defined below 0."""

    cpp: str
    method: str
    number: str = ""
    arity: int = 1
    positive: bool = False


def _same(*names: str, positive: bool = False) -> dict[str, Function]:
    return {name: Function(f"std::{name}", name, f"math.{name}({{0}})", positive=positive) for name in names}


FUNCTIONS: Mapping[str, Function] = {
    **_same("exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "erf"),
    **_same("erfc", "ceil", "floor", "trunc"),
    **_same("log", "log2", "log10", "log1p", "sqrt", "acosh", "lgamma", positive=True),
    "exp2": Function("std::exp2", "exp2", "2.0 ** ({0})"),
    "abs": Function("std::abs", "abs", "abs({0})"),
    "atan2": Function("std::atan2", "atan2", "math.atan2({0}, {1})", 2),
    "hypot": Function("std::hypot", "hypot", "math.hypot({0}, {1})", 2),
    "pow": Function("std::pow", "pow", "math.pow({0}, {1})", 2, positive=True),
}

# Functions that derivatives have beside those above.
OF_DERIVATIVES: Mapping[str, Function] = {"sign": Function("", "sgn")}


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_HINT = "An expression has numbers, the schema's arguments, + - * / **, and functions such as exp(x)."
_LEVELS: dict[type[ast.operator], int] = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2}
_UNARY = 3
_SQUARE, _CUBE = 2, 3


_DEEPEST = 60  # expressions in one another


def parse_expression(text: str, names: Collection[str], functions: Mapping[str, Function] = FUNCTIONS) -> ast.expr:
    """Parses an expression over some names. Raises PTR316 (syntax) or PTR317 (a name or function that is unknown)."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PorterError("PTR316", f"the expression {text!r} cannot be parsed", hint=_HINT) from error
    # Whether nodes stand in one another more than so many times. A derivative nests several times as deep.
    nodes: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        nodes = [child for node in nodes for child in ast.iter_child_nodes(node)]
    if bool(nodes):
        what = f"the expression nests deeper than {_DEEPEST} levels"
        raise PorterError("PTR316", what, hint="Write fewer operations in one another, or use --functor.")
    _check(tree, names, functions)
    return tree


def _check(node: ast.expr, names: Collection[str], functions: Mapping[str, Function]) -> None:
    match node:
        case ast.Constant(value=bool() | str() | bytes() | complex() | None):
            raise PorterError("PTR316", f"an expression cannot hold {ast.unparse(node)}", hint=_HINT)
        case ast.Constant():
            return
        case ast.Name(id=name):
            if name not in names and name not in CONSTANTS:
                raise _unknown(name, [*names, *CONSTANTS])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, names, functions)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow(), right=right):
            _check(left, names, functions)
            _check(right, names, functions)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in functions:
                raise _unknown(name, functions)
            if len(arguments) != functions[name].arity:
                takes = f"{name} takes {functions[name].arity} arguments, not {len(arguments)}"
                raise PorterError("PTR316", f"{takes}: {ast.unparse(node)}", hint=_HINT)
            for each in arguments:
                _check(each, names, functions)
        case _:
            raise PorterError("PTR316", f"an expression cannot hold {ast.unparse(node)}", hint=_HINT)


def _unknown(name: str, known: Collection[str]) -> PorterError:
    near = get_close_matches(name, list(known), n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else f"It may use {', '.join(sorted(known))}."
    return PorterError("PTR317", f"the expression uses {name}, which is no argument and no function", hint=hint)


def find_names(node: ast.expr) -> frozenset[str]:
    """Returns the arguments that an expression uses."""
    called = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name) and id(each) not in called)


def needs_positive(node: ast.expr) -> bool:
    """Whether an expression may be undefined, or have no derivative, for numbers that are not positive."""
    for each in ast.walk(node):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div | ast.Pow):
            return True
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and FUNCTIONS[each.func.id].positive:
            return True
    return False


def write_cpp(node: ast.expr, number: str = "opmath_t", cast: bool = True) -> str:
    """Writes an expression in C++, computed in the type `number`; `cast` converts each name to it."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return repr(float(value)) if number == "double" else f"{number}({value!r})"
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name][0].replace("opmath_t", number)
        case ast.Name(id=name):
            return f"{number}({name})" if cast else name
        case ast.UnaryOp(operand=operand):
            return f"-{_enclosed(write_cpp(operand, number, cast), operand, _UNARY)}"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            # A small whole power of a name as products, which are exact where a power function is not
            exponent = right
            factor = write_cpp(left, number, cast)
            times = exponent.value if isinstance(exponent, ast.Constant) else None
            if isinstance(left, ast.Name) and isinstance(times, int) and times in (_SQUARE, _CUBE):
                return f"({' * '.join([factor] * times)})"
            return f"std::pow({factor}, {write_cpp(exponent, number, cast)})"
        case ast.BinOp(left=left, op=op, right=right):
            level = _LEVELS[type(op)]
            first = _enclosed(write_cpp(left, number, cast), left, level)
            return f"{first} {_SIGNS[type(op)]} {_enclosed(write_cpp(right, number, cast), right, level + 1)}"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return f"{FUNCTIONS[name].cpp}({', '.join(write_cpp(each, number, cast) for each in arguments)})"
    raise AssertionError(ast.dump(node))


def _enclosed(text: str, node: ast.expr, level: int) -> str:
    """Returns an operand's text in parentheses if it binds less than `level`."""
    own = _LEVELS.get(type(node.op), _UNARY + 1) if isinstance(node, ast.BinOp) else _UNARY + 1
    return f"({text})" if own < level or isinstance(node, ast.UnaryOp) else text


def write_python(node: ast.expr, tensors: Collection[str]) -> str:
    """Writes an expression as Python that computes with torch, and in double precision what is a number."""
    number = not find_names(node) & set(tensors)
    match node:
        case ast.Constant(value=value):
            return repr(value)
        case ast.Name(id=name):
            return CONSTANTS[name][1] if name in CONSTANTS else name
        case ast.UnaryOp(operand=operand):
            return f"(-{write_python(operand, tensors)})"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"{write_python(left, tensors)} ** {write_python(right, tensors)}"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({write_python(left, tensors)} {_SIGNS[type(op)]} {write_python(right, tensors)})"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            given = [write_python(each, tensors) for each in arguments]
            if number:
                return FUNCTIONS[name].number.format(*given)
            moved = (
                text if find_names(each) & set(tensors) else f"torch.as_tensor({text}, dtype=torch.double)"
                for text, each in zip(given, arguments, strict=True)
            )
            return f"torch.{FUNCTIONS[name].method}({', '.join(moved)})"
    raise AssertionError(ast.dump(node))


def write_formula(node: ast.expr, tensors: Collection[str]) -> str:
    """Writes an expression as a formula of derivatives.yaml: methods of tensors, and C++ for what is a number."""
    if not find_names(node) & set(tensors):
        return repr(node.value) if isinstance(node, ast.Constant) else write_cpp(node, "double", cast=False)
    match node:
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(operand=operand):
            return f"(-{write_formula(operand, tensors)})"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            if not find_names(left) & set(tensors):
                return f"at::pow({write_formula(left, tensors)}, {write_formula(right, tensors)})"
            return f"{write_formula(left, tensors)}.pow({write_formula(right, tensors)})"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({write_formula(left, tensors)} {_SIGNS[type(op)]} {write_formula(right, tensors)})"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            values = (write_formula(each, tensors) for each in arguments)
            function = FUNCTIONS.get(name) or OF_DERIVATIVES[name]
            first, *others = (
                text if find_names(each) & set(tensors) else f"at::scalar_tensor({text})"
                for text, each in zip(values, arguments, strict=True)
            )
            return f"{first}.{function.method}({', '.join(others)})"
    raise AssertionError(ast.dump(node))


# sympy's own names of functions, where they differ.
_TO_SYMPY = {"abs": "Abs", "lgamma": "loggamma", "ceil": "ceiling"}
_UNKNOWN_TO_SYMPY = ("trunc",)  # sympy means another function by these names


def derive(tree: ast.expr, tensors: Collection[str], names: Collection[str]) -> Mapping[str, str] | None:
    """Returns the formula of derivatives.yaml for each tensor that an expression uses.

    Returns None if sympy is not installed, or if a derivative is not an expression of the same functions.
    """
    try:
        import sympy
    except ImportError:
        return None
    symbols = {name: sympy.Symbol(name, real=True) for name in names}
    functions = {ours: getattr(sympy, theirs) for ours, theirs in _TO_SYMPY.items()}
    functions |= {name: sympy.Function(name) for name in _UNKNOWN_TO_SYMPY}
    functions |= {
        "exp2": lambda x: sympy.Integer(2) ** x,
        "expm1": lambda x: sympy.exp(x) - 1,
        "log1p": lambda x: sympy.log(1 + x),
        "log2": lambda x: sympy.log(x) / sympy.log(2),
        "log10": lambda x: sympy.log(x) / sympy.log(10),
        "hypot": lambda x, y: sympy.sqrt(x * x + y * y),
        "pow": sympy.Pow,
    }
    value = sympy.sympify(ast.unparse(tree), locals={**functions, **symbols, "e": sympy.E, "pi": sympy.pi})
    found: dict[str, str] = {}
    for name in (each for each in tensors if each in find_names(tree)):
        slope = sympy.diff(value, symbols[name])
        try:
            parsed = parse_expression(_spell(sympy.sstr(slope)), names, {**FUNCTIONS, **OF_DERIVATIVES})
        except PorterError:
            return None
        found[name] = "grad" if slope == 1 else f"grad * {write_formula(parsed, tensors)}"
    return found


def _spell(text: str) -> str:
    """Returns sympy's text of an expression in the words of porter's."""
    for ours, theirs in _TO_SYMPY.items():
        text = text.replace(f"{theirs}(", f"{ours}(")
    return text.replace("E**", "e**")
