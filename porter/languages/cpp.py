"""The syntax tree of C++ functions, for the subset that ATen's shared implementations and kernels use.

Any other statement is `Opaque`, with its text. It is an error only if it lies on a path that matters to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Name:
    """A name, possibly qualified. `std::numeric_limits<T>::max` has the path `std::numeric_limits::max` and the
    arguments `(T,)`.
    """

    path: str
    arguments: tuple[str, ...] = ()
    start: int = 0

    @property
    def last(self) -> str:
        return self.path.rsplit("::", 1)[-1]


@dataclass(frozen=True)
class Literal:
    """A number, string or character, as written."""

    text: str
    start: int = 0


@dataclass(frozen=True)
class Unary:
    """A prefix operator."""

    op: str
    value: Expr
    start: int = 0


@dataclass(frozen=True)
class Postfix:
    """A postfix operator: `x++`, `x--` or the pack expansion `x...`."""

    op: str
    value: Expr
    start: int = 0


@dataclass(frozen=True)
class Binary:
    """A binary operator or assignment."""

    op: str
    left: Expr
    right: Expr
    start: int = 0


@dataclass(frozen=True)
class Ternary:
    """`test ? yes : no`."""

    test: Expr
    yes: Expr
    no: Expr
    start: int = 0


@dataclass(frozen=True)
class Paren:
    """A parenthesized expression, kept as the author wrote it."""

    value: Expr
    start: int = 0


@dataclass(frozen=True)
class Call:
    """A call, functional cast or brace initialization; `end` is the offset after its closing bracket."""

    function: Expr
    arguments: tuple[Expr, ...]
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Cast:
    """`static_cast<type>(value)` or `(type)value`."""

    type: str
    value: Expr
    start: int = 0


@dataclass(frozen=True)
class Member:
    """`value.name` or `value->name`; `arguments` are those of a member template."""

    value: Expr
    name: str
    arguments: tuple[str, ...] = ()
    start: int = 0


@dataclass(frozen=True)
class Index:
    """`value[index]`."""

    value: Expr
    index: Expr
    start: int = 0


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function or lambda; `name` is empty if it is unnamed."""

    type: str
    name: str


@dataclass(frozen=True)
class LambdaExpr:
    """A C++ lambda; `returns` is empty if the return type is deduced."""

    parameters: tuple[Parameter, ...]
    returns: str
    body: Block
    start: int = 0


Expr = Name | Literal | Unary | Postfix | Binary | Ternary | Paren | Call | Cast | Member | Index | LambdaExpr


@dataclass(frozen=True)
class Block:
    """`{ ... }`."""

    statements: tuple[Stmt, ...]
    start: int = 0


@dataclass(frozen=True)
class Declaration:
    """`type name = value;`, `type name(value);` or `type name;`."""

    type: str
    name: str
    value: Expr | None
    start: int = 0


@dataclass(frozen=True)
class Using:
    """`using name = type;`."""

    name: str
    type: str
    start: int = 0


@dataclass(frozen=True)
class If:
    """`if (test) then else otherwise`, or the same with `if constexpr`."""

    test: Expr
    then: Stmt
    otherwise: Stmt | None
    start: int = 0


@dataclass(frozen=True)
class While:
    """`while (test) body`."""

    test: Expr
    body: Stmt
    start: int = 0


@dataclass(frozen=True)
class For:
    """`for (initial; test; step) body`; `text` is all of it, for messages."""

    initial: Block
    test: Expr
    step: ExpressionStatement
    body: Stmt
    text: str
    start: int = 0


@dataclass(frozen=True)
class ArrayDeclaration:
    """`type name[size] = {values};`; `size` is None if it is not written, `text` is all of it, for messages."""

    type: str
    name: str
    size: Expr | None
    values: tuple[Expr, ...]
    text: str
    start: int = 0


@dataclass(frozen=True)
class Return:
    """`return value;`."""

    value: Expr | None
    start: int = 0


@dataclass(frozen=True)
class ExpressionStatement:
    """An expression as a statement."""

    value: Expr
    start: int = 0


@dataclass(frozen=True)
class Opaque:
    """A statement outside the supported subset."""

    text: str
    start: int = 0


Stmt = Block | Declaration | ArrayDeclaration | Using | If | While | For | Return | ExpressionStatement | Opaque


@dataclass(frozen=True)
class Function:
    """A function. `templates` are its template parameters as written; `returns` may include specifiers."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Block
    templates: tuple[str, ...] = ()
    returns: str = ""
    start: int = 0


class ParseError(Exception):
    """Text that cannot be parsed. Callers turn it into an `Opaque` statement or a coded error."""


class TooDeep(ParseError):
    """What stands here is nested more deeply than any person writes: no reader of the tree could walk it."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.start = start


def is_at_wrap(call: Call) -> bool:
    """Whether a call is `AT_WRAP(...)`, which only protects commas."""
    return isinstance(call.function, Name) and call.function.path == "AT_WRAP"
