"""The syntax tree of C++ functions, as far as ATen's shared implementations and kernels need one.

A statement that is not understood is `Opaque`, with its text: whoever meets one on the path that matters refuses it,
and everyone else walks past.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Name:
    """A possibly qualified name: `std::numeric_limits<T>::max` is `std::numeric_limits::max` with arguments `(T,)`."""

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
    """`x++`, `x--` and the expansion of a pack, `x...`."""

    op: str
    value: Expr
    start: int = 0


@dataclass(frozen=True)
class Binary:
    """An infix operator, assignments included."""

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
    """Parentheses, kept because they are the author's."""

    value: Expr
    start: int = 0


@dataclass(frozen=True)
class Call:
    """A call, a functional cast or a brace initialisation; `end` lies behind its closing bracket."""

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
    """A parameter of a function or lambda; `name` is empty where it has none."""

    type: str
    name: str


@dataclass(frozen=True)
class LambdaExpr:
    """A C++ lambda; `returns` is empty when deduced."""

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
    """`if (test) then else otherwise`, `if constexpr` too."""

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
class Return:
    """`return value;`."""

    value: Expr | None
    start: int = 0


@dataclass(frozen=True)
class Run:
    """An expression as a statement."""

    value: Expr
    start: int = 0


@dataclass(frozen=True)
class Opaque:
    """A statement that is not understood."""

    text: str
    start: int = 0


Stmt = Block | Declaration | Using | If | While | Return | Run | Opaque


@dataclass(frozen=True)
class Function:
    """A parsed function: `templates` are its template parameters as written, `returns` may hold specifiers too."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Block
    templates: tuple[str, ...] = ()
    returns: str = ""
    start: int = 0


class Unparsed(Exception):
    """Raised inside the parser; every caller turns it into an `Opaque` statement or a coded error."""


class TooDeep(Unparsed):
    """What stands here is nested more deeply than any person writes: no reader of the tree could walk it."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.start = start


def is_wrap(call: Call) -> bool:
    """Whether this is `AT_WRAP(...)`, which only protects commas."""
    return isinstance(call.function, Name) and call.function.path == "AT_WRAP"
