"""Walks the branches of a shared implementation for one element type.

Conditions that the type decides are evaluated; both sides of any other are followed. The canonical case is assumed:
dense, non-empty tensors of one shape on the device, no CPU scalars, and an output of the operator's result type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from porter.core.dtypes import BOOL, SCALAR_TYPES, DType, Kind, of_kind
from porter.languages import cpp


@dataclass(frozen=True)
class Condition:
    """The branch taken on an argument: `text` is the condition as written in the source (`eps.has_value()`)."""

    text: str
    holds: bool

    def __str__(self) -> str:
        return self.text if self.holds else f"!({self.text})"


_NAMES = frozenset(each.aten for each in SCALAR_TYPES)
_INTEGRAL, _FLOATING, _COMPLEX = (
    frozenset(each.aten for each in of_kind(kind)) for kind in (Kind.INTEGRAL, Kind.FLOATING, Kind.COMPLEX)
)
_OUTPUTS = frozenset(("result", "out", "output", "maybe_get_output"))
_TYPE_QUERIES = frozenset(("dtype", "scalar_type", "common_dtype", "input_dtype"))
_CLASSES = {
    "isFloatingType": _FLOATING,
    "isComplexType": _COMPLEX,
    "isReducedFloatingType": frozenset(each.aten for each in SCALAR_TYPES if each.is_reduced),
    "isSignedType": frozenset(each.aten for each in SCALAR_TYPES if each.is_signed),
}
_MEMBER_CLASSES = {"is_complex": _COMPLEX, "is_floating_point": _FLOATING}
CANONICAL = {"is_scalar": False, "hasMKL": False, "is_cpu_scalar": False, "defined": True, "is_contiguous": True}


@dataclass(frozen=True)
class Facts:
    """The known facts: the input and output types, and the values of local names.

    `asked` collects the type queries made; code that makes none is the same for all types.
    """

    input: DType
    output: DType
    names: Mapping[str, cpp.Expr] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set, compare=False)

    def bind(self, name: str, value: cpp.Expr) -> Facts:
        """Returns the facts with one more local name."""
        return replace(self, names={**self.names, name: value})

    def resolve(self, value: cpp.Expr) -> cpp.Expr:
        """Returns the value of a name, following local names as far as they go."""
        seen = set()
        while isinstance(value, cpp.Name) and value.path in self.names and value.path not in seen:
            seen.add(value.path)
            value = self.names[value.path]
        return value


@dataclass(frozen=True)
class ExecutedStatement:
    """A statement that is executed if all of `when` hold."""

    statement: cpp.Stmt
    facts: Facts
    when: tuple[Condition, ...]


def list_executed(body: cpp.Stmt, facts: Facts, when: tuple[Condition, ...] = ()) -> list[ExecutedStatement]:
    """Returns the simple statements that are executed under these facts, in order."""
    found: list[ExecutedStatement] = []
    _walk(body, facts, when, found)
    return found


def _walk(
    body: cpp.Stmt, facts: Facts, when: tuple[Condition, ...], found: list[ExecutedStatement]
) -> tuple[Facts, tuple[Condition, ...] | None]:
    """Returns the facts and conditions that hold after the statement; None for conditions if that is unreachable."""
    if isinstance(body, cpp.Block):
        for statement in body.statements:
            facts, left = _walk(statement, facts, when, found)
            if left is None:
                return facts, None
            when = left
        return facts, when
    if isinstance(body, cpp.If):
        return facts, _fork(body, facts, when, found)
    found.append(ExecutedStatement(body, facts, when))
    if isinstance(body, cpp.Declaration) and body.value is not None:
        return facts.bind(body.name, body.value), when
    return facts, None if isinstance(body, cpp.Return) else when


def _fork(
    body: cpp.If, facts: Facts, when: tuple[Condition, ...], found: list[ExecutedStatement]
) -> tuple[Condition, ...] | None:
    decided = decide(body.test, facts)
    otherwise = body.otherwise or cpp.Block(())
    if decided is not None:
        return _walk(body.then if decided else otherwise, facts, when, found)[1]
    test, holds = body.test, True
    while isinstance(test, cpp.Unary) and test.op == "!":
        test, holds = test.value, not holds
    yes, no = (*when, Condition(show(test), holds)), (*when, Condition(show(test), not holds))
    after_yes = _walk(body.then, facts, yes, found)[1]
    after_no = _walk(otherwise, facts, no, found)[1]
    if after_yes is not None and after_no is not None:
        return when
    return after_no if after_yes is None else after_yes


def decide(test: cpp.Expr, facts: Facts) -> bool | None:
    """Whether a condition holds, or None if the element type does not decide it."""
    test = facts.resolve(test)
    if isinstance(test, cpp.Paren):
        return decide(test.value, facts)
    if isinstance(test, cpp.Name) and test.path in ("true", "false"):
        return test.path == "true"
    if isinstance(test, cpp.Unary) and test.op == "!":
        inner = decide(test.value, facts)
        return None if inner is None else not inner
    if isinstance(test, cpp.Ternary):
        chosen = decide(test.test, facts)
        return None if chosen is None else decide(test.yes if chosen else test.no, facts)
    if isinstance(test, cpp.Binary):
        if test.op in ("&&", "||"):
            sides = decide(test.left, facts), decide(test.right, facts)
            ending = test.op == "||"
            if ending in sides:
                return ending
            return None if None in sides else not ending
        left, right = resolve_scalar_type(test.left, facts), resolve_scalar_type(test.right, facts)
        if left is None or right is None:
            left, right = _read_enumerator(test.left, facts), _read_enumerator(test.right, facts)
        if test.op not in ("==", "!=") or left is None or right is None:
            return None
        return (left == right) == (test.op == "==")
    return _decide_call(test, facts) if isinstance(test, cpp.Call) else None


def _read_enumerator(value: cpp.Expr, facts: Facts) -> str | None:
    """Returns a qualified name without arguments, `OpType::GE`, which stands for a constant; None for anything else."""
    value = facts.resolve(value)
    return value.path if isinstance(value, cpp.Name) and "::" in value.path and not value.arguments else None


def _decide_call(test: cpp.Call, facts: Facts) -> bool | None:
    if isinstance(test.function, cpp.Member):
        name, named = test.function.name, resolve_scalar_type(test.function, facts)
        if name in _MEMBER_CLASSES:
            owner = _owner_type(test.function.value, facts)
            return owner.aten in _MEMBER_CLASSES[name]
        if name == "defined" and show(test.function.value) == "maybe_get_output()":
            return False
        return CANONICAL.get(name) if named is None else None
    if not isinstance(test.function, cpp.Name):
        return None
    name = test.function.last
    if name in CANONICAL:
        return CANONICAL[name]
    named = resolve_scalar_type(test.arguments[0], facts) if test.arguments else None
    if named is None:
        return None
    if name == "isIntegralType":
        with_bool = len(test.arguments) > 1 and show(test.arguments[1]) == "true"
        return named in _INTEGRAL or (with_bool and named == BOOL.aten)
    return named in _CLASSES[name] if name in _CLASSES else None


def resolve_scalar_type(value: cpp.Expr, facts: Facts) -> str | None:
    """Returns the ScalarType (`Float`, `BFloat16`) of a type expression, or None for any other expression."""
    value = facts.resolve(value)
    if isinstance(value, cpp.Name):
        last = value.last
        bare = last[1:] if last.startswith("k") else last
        return bare if bare in _NAMES and (last != bare or "ScalarType" in value.path) else None
    if isinstance(value, cpp.Call) and isinstance(value.function, cpp.Member):
        if value.function.name not in _TYPE_QUERIES:
            return None
        return resolve_type_query(value, facts).aten
    if isinstance(value, cpp.Call) and isinstance(value.function, cpp.Name) and value.function.path in _TYPE_QUERIES:
        facts.asked.add(value.function.path)
        return facts.output.aten
    return None


def resolve_type_query(value: cpp.Call, facts: Facts) -> DType:
    """Returns the type of `iter.common_dtype()` or `self.scalar_type()`; an iterator's `dtype()` is its output's."""
    assert isinstance(value.function, cpp.Member)
    owner, name = value.function.value, value.function.name
    facts.asked.add(name)
    if name in ("common_dtype", "input_dtype"):
        return facts.input
    if isinstance(owner, cpp.Name) and owner.path in ("iter", "iterator"):
        operand = show(value.arguments[0]) if value.arguments else "0"
        return facts.output if operand == "0" else facts.input
    return _owner_type(owner, facts)


def _owner_type(owner: cpp.Expr, facts: Facts) -> DType:
    facts.asked.add("dtype")
    while isinstance(owner, cpp.Call):
        owner = owner.function
    root = owner.path if isinstance(owner, cpp.Name) else ""
    resolved = facts.resolve(owner)
    aliased = resolved.path if isinstance(resolved, cpp.Name) else ""
    return facts.output if root in _OUTPUTS or aliased in _OUTPUTS else facts.input


def find_calls(value: cpp.Expr | None) -> Iterator[cpp.Call]:
    """Yields the calls in an expression, outermost first, without those in lambdas."""
    pending = [] if value is None else [value]
    while pending:
        part = pending.pop()
        if isinstance(part, cpp.Call):
            yield part
        pending += get_operands(part)[::-1]


# By type: most expressions are names and literals, which a chain of tests would come to last.
_OPERANDS: dict[type, Callable[[Any], tuple[cpp.Expr, ...]]] = {
    cpp.Call: lambda call: (call.function, *call.arguments),
    cpp.Binary: lambda binary: (binary.left, binary.right),
    cpp.Ternary: lambda ternary: (ternary.test, ternary.yes, ternary.no),
    cpp.Index: lambda index: (index.value, index.index),
    **dict.fromkeys((cpp.Unary, cpp.Postfix, cpp.Paren, cpp.Cast, cpp.Member), lambda outer: (outer.value,)),
}
_EVALUATED = (cpp.ExpressionStatement, cpp.Return, cpp.Declaration)


def get_operands(value: cpp.Expr) -> tuple[cpp.Expr, ...]:
    """Returns the direct operands of an expression."""
    operands = _OPERANDS.get(type(value))
    return operands(value) if operands else ()


def get_expression(statement: cpp.Stmt) -> cpp.Expr | None:
    """Returns the expression that a simple statement evaluates, or None."""
    return statement.value if isinstance(statement, _EVALUATED) else None


def show(value: cpp.Expr) -> str:
    """Returns an expression as C++ text."""
    if isinstance(value, cpp.Name):
        return value.path + (f"<{', '.join(value.arguments)}>" if value.arguments else "")
    if isinstance(value, cpp.Literal):
        return value.text
    if isinstance(value, cpp.Unary):
        return value.op + show(value.value)
    if isinstance(value, cpp.Binary):
        return f"{show(value.left)} {value.op} {show(value.right)}"
    if isinstance(value, cpp.Ternary):
        return f"{show(value.test)} ? {show(value.yes)} : {show(value.no)}"
    return _COMPOUND[type(value)](value)


_COMPOUND: dict[type, Callable[[Any], str]] = {
    cpp.Paren: lambda v: f"({show(v.value)})",
    cpp.Postfix: lambda v: show(v.value) + v.op,
    cpp.Call: lambda v: f"{show(v.function)}({', '.join(map(show, v.arguments))})",
    cpp.Cast: lambda v: f"static_cast<{v.type}>({show(v.value)})",
    cpp.Member: lambda v: f"{show(v.value)}.{v.name}",
    cpp.Index: lambda v: f"{show(v.value)}[{show(v.index)}]",
    cpp.LambdaExpr: lambda v: "[...]",
}
