"""Reads the graph of an MPSGraph implementation from its source, for every type and path through its conditions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any

from porter.aten.declarations import Argument as SchemaArgument
from porter.aten.implementations import Implementation, expand_implementation, list_host_sources
from porter.aten.native_functions import NativeFunction
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.core.errors import Place
from porter.core.layout import OPERATION_UTILS
from porter.languages import cpp
from porter.languages.brackets import too_deep
from porter.languages.definitions import flatten
from porter.languages.identifiers import contains_identifier
from porter.languages.objcpp_parser import Boxed, Break, Label, ObjCParser, Send, Switch
from porter.languages.source import Source, parse_source
from porter.mpsgraph.graph import RESULTS, Call, Case, Expr, Graph, Input, Refusal
from porter.mpsgraph.source_reader import interpreter
from porter.mpsgraph.source_reader.interpreter import CALLS, apply, send
from porter.mpsgraph.source_reader.values import (
    EXPRESSIONS,
    GRAPH,
    Argument,
    BreakSignal,
    CheckFailed,
    Closure,
    GraphHandle,
    Paths,
    ReadText,
    Record,
    ReturnSignal,
    Scope,
    TensorArg,
    TensorIterator,
    Test,
    Unknown,
    UnreachablePath,
    format_value,
    make_unsupported_error,
    quote,
)

_MOST_PATHS = 32
_MOST_WALKED = 1024  # with those that are refused or cannot be taken
# Code that does not compile gives values that no construct takes, and helpers that call themselves.
_MISFITS = (
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
    ZeroDivisionError,
    OverflowError,
)


def read_graph(
    checkout: Checkout,
    implementation: Implementation,
    native: NativeFunction,
    out_dtype: Callable[[DType], DType],
) -> Graph:
    """Returns the graph of an implementation, for every element type. `out_dtype` maps input types to output types.

    Raises PTR033 for an unsupported construct, and if no graph is run.
    """
    try:
        return _read_graph(checkout, implementation, native, out_dtype)
    except _MISFITS as error:
        what = f"{implementation.symbol}, whose values do not fit what they are used for ({type(error).__name__})"
        raise make_unsupported_error(what, implementation.place) from error


def _read_graph(
    checkout: Checkout,
    implementation: Implementation,
    native: NativeFunction,
    out_dtype: Callable[[DType], DType],
) -> Graph:
    cases: list[Case] = []
    refusals: list[Refusal] = []
    for dtype in dtypes.ALL:
        pending: list[tuple[bool, ...]] = [()]
        walked = 0
        while pending and len(cases) < _MOST_PATHS * len(dtypes.ALL):
            walked += 1
            if walked > _MOST_WALKED:
                raise make_unsupported_error(f"{implementation.symbol}, which has too many paths", implementation.place)
            paths = Paths(pending.pop())
            try:
                expr = Evaluation(checkout, implementation, paths).run(native, dtype, out_dtype(dtype))
                cases.append(Case(dtype, tuple(paths.taken), expr))
            except UnreachablePath:
                pass
            except CheckFailed as refused:
                refusals.append(Refusal(dtype, refused.text, refused.place))
            pending += paths.pending
    inputs = tuple(a.name for a in native.arguments if a.is_tensor and not a.is_result)
    scalars = tuple(a.name for a in native.arguments if not a.is_tensor)
    return Graph(inputs, scalars, tuple(cases), tuple(dict.fromkeys(refusals)))


# Runs an MPSGraph implementation for one element type along one path, and returns the expression that it builds. It
# interprets statements, including helpers in the same file and in OperationUtils.mm. Tensors are symbolic, element
# types are known, and conditions on arguments fork. Unsupported code raises an error at its line: nothing is guessed.


_MOST_STATEMENTS = 20_000  # in one run


@lru_cache(maxsize=512)
def _function(path: str, text: str) -> cpp.Function:
    return ObjCParser(path, text).checked_function(())


def _parsed(reading: ReadText) -> cpp.Function:
    try:
        return _function(reading.source.path, reading.text)
    except cpp.TooDeep as error:
        raise too_deep(reading.place(error.start)) from None
    except (cpp.ParseError, IndexError):
        raise make_unsupported_error("this function", reading.first) from None


class Evaluation:
    """One run, for one element type and one path through the conditions on arguments."""

    def __init__(self, checkout: Checkout, implementation: Implementation, paths: Paths) -> None:
        self.checkout = checkout
        self.source = parse_source(implementation.file, checkout.read(implementation.file))
        self.implementation = implementation
        self.paths = paths
        self.results: list[tuple[str, Expr]] = []  # the values written, by tensor name
        self.anonymous = 0
        self.executed = 0
        self.out = dtypes.FLOAT
        text = flatten(self.source, expand_implementation(self.source, implementation))
        self.reading = ReadText(self.source, implementation.place, text, implementation.macro is not None)

    def run(self, native: NativeFunction, dtype: DType, out: DType) -> Expr:
        """Calls the implementation with the schema's arguments and returns the value of its outputs."""
        self.out = out
        function = _parsed(self.reading)
        values = [_bound(a, dtype, out) for a in native.arguments]
        if len(function.parameters) == 1 and "TensorIterator" in function.parameters[0].type:
            tensors = [v for v in values if isinstance(v, TensorArg)]
            inputs = tuple(t for t in tensors if not t.output) or (TensorArg("self", dtype),)
            values = [TensorIterator(inputs, TensorArg("out", out, output=True))]
        names = [parameter.name for parameter in function.parameters]
        self._call(function, names, values[: len(names)], Scope({"__func__": ""}))
        if not self.results:
            raise make_unsupported_error(
                f"{self.implementation.symbol} runs no graph of its own", self.implementation.place
            )
        return self._written(native)

    def _written(self, native: NativeFunction) -> Expr:
        """Returns the value of the output, or of all of them, which the schema has to name if there are several."""
        if native.results < 2:
            return self.results[-1][1]
        written, names = dict(self.results), [a.name for a in native.arguments if a.is_result]
        if len(names) != native.results:
            raise make_unsupported_error(
                f"which of {native.results} results each graph writes", self.implementation.place
            )
        for name in names:
            if name not in written:
                raise make_unsupported_error(f"the result `{name}`, which no graph writes", self.implementation.place)
        return Call(RESULTS, tuple(written[name] for name in names), written[names[0]].dtype)

    def place(self, start: int) -> Place:
        """Returns the line of an offset into the text being interpreted."""
        return self.reading.place(start)

    @contextmanager
    def _reading(self, text: ReadText) -> Generator[None, None, None]:
        before, self.reading = self.reading, text
        try:
            yield
        finally:
            self.reading = before

    def _call(self, function: cpp.Function, names: Sequence[str], values: Sequence[Any], outer: Scope | None) -> Any:
        scope = Scope(dict(zip(names, values, strict=False)), outer)
        try:
            self.execute(function.body, scope)
        except ReturnSignal as returned:
            return returned.value
        return None

    def call_closure(self, closure: Closure, values: Sequence[Any]) -> Any:
        """Calls a lambda or block."""
        scope = Scope(dict(zip(closure.parameters, values, strict=False)), closure.scope)
        with self._reading(closure.text):
            try:
                self.execute(closure.body, scope)
            except ReturnSignal as returned:
                return returned.value
        return None

    def call_helper(self, name: str, values: Sequence[Any], start: int) -> Any:
        """Calls a function of the same file, of OperationUtils.mm, or of another file that shares it as `mps::name`."""
        for source in chain(self._sources(), self._sharing(name)):
            found = [f for f in source.functions_by_name.get(name, ()) if f.wrapper is None]
            chosen = next((f for f in found if f.params.count(",") + 1 == len(values)), found[0] if found else None)
            if chosen:
                text = flatten(source, source.text[chosen.start : chosen.end])
                reading = ReadText(source, source.place(chosen.start), text)
                function = _parsed(reading)
                names = [parameter.name for parameter in function.parameters]
                with self._reading(reading):
                    return self._call(function, names, [*values, *self._defaults(chosen.params, len(values))], None)
        if any(isinstance(value, (*EXPRESSIONS, Closure, GraphHandle)) for value in values):
            raise make_unsupported_error(f"a call to {name}", self.place(start))
        return Unknown(name)

    def _defaults(self, params: str, given: int) -> list[Any]:
        """Returns the default values of parameters that a call omits."""
        defaults = [p.split("=", 1)[1].strip() for p in params.split(",")[given:] if "=" in p]
        return [
            Unknown(text) if text not in interpreter.CONSTANTS else interpreter.CONSTANTS[text] for text in defaults
        ]

    def _sources(self) -> list[Source]:
        where = self.reading.source
        found = [where] if where is self.source else [where, self.source]
        if self.checkout.exists(OPERATION_UTILS):
            found.append(parse_source(OPERATION_UTILS, self.checkout.read(OPERATION_UTILS)))
        return found

    def _sharing(self, name: str) -> Iterable[Source]:
        """Yields the files with a function of this name that other files may call."""
        for path in list_host_sources(self.checkout):
            text = self.checkout.read(path)
            if contains_identifier(text, name):
                source = parse_source(path, text)
                if any(not f.static and f.wrapper is None for f in source.functions_by_name.get(name, ())):
                    yield source

    def execute(self, statement: cpp.Stmt | Switch | Break, scope: Scope) -> None:
        """Runs one statement."""
        self.executed += 1
        if self.executed > _MOST_STATEMENTS:
            raise make_unsupported_error("code that runs this long", self.place(getattr(statement, "start", 0)))
        match statement:
            case cpp.Block(statements=statements):
                inner = Scope({}, scope)
                for each in statements:
                    self.execute(each, inner)
            case cpp.Declaration(name=name, value=value, type=kind):
                empty = Record() if kind.endswith(("Dictionary", "Placeholder")) else None
                scope.names[name] = self.value(value, scope) if value is not None else empty
            case cpp.ExpressionStatement(value=value):
                self.value(value, scope)
            case cpp.Return(value=value):
                raise ReturnSignal(self.value(value, scope) if value is not None else None)
            case cpp.If(test=test, then=then, otherwise=otherwise, start=start):
                if self.truth(self.value(test, scope), start):
                    self.execute(then, scope)
                elif otherwise is not None:
                    self.execute(otherwise, scope)
            case Switch():
                self._switch(statement, Scope({}, scope))
            case Break():
                raise BreakSignal
            case cpp.Opaque(text=text) if text.startswith(("using ", "typedef ", "static_assert")):
                pass
            case cpp.Using():
                pass
            case _:
                what = self.reading.describe(statement.start) or quote(getattr(statement, "text", ""))
                raise make_unsupported_error(what, self.place(statement.start))

    def _switch(self, statement: Switch, scope: Scope) -> None:
        """Runs a switch from the label whose value its own equals. One on an argument forks, label by label."""
        for each in self._find_start(statement, scope):
            if not isinstance(each, Label):
                try:
                    self.execute(each, scope)
                except BreakSignal:
                    return

    def _find_start(self, statement: Switch, scope: Scope) -> Sequence[cpp.Stmt | Label | Break]:
        """The rest of a switch's body from the label that it goes to; nothing if there is none."""
        body = statement.body
        for at, label in enumerate(body):
            if isinstance(label, Label) and label.value is not None:
                equal = cpp.Binary("==", statement.test, label.value, statement.start)
                if self.truth(self.value(equal, scope), statement.start):
                    return body[at:]
        return next((body[at:] for at, each in enumerate(body) if isinstance(each, Label) and each.value is None), ())

    def truth(self, value: Any, start: int) -> bool:
        """Returns a condition as a bool. One on an argument forks the evaluation."""
        if isinstance(value, Test):
            return self.paths.decide(value.text)
        if isinstance(value, Argument):
            return self.paths.decide(f"{value.name}.has_value()" if value.optional else value.name)
        if isinstance(value, Unknown):
            raise make_unsupported_error(self.reading.describe(start) or f"a branch on {value.text}", self.place(start))
        return bool(value)

    def value(self, expr: Any, scope: Scope) -> Any:
        """Returns the value of an expression."""
        match expr:
            case cpp.Literal(text=text):
                return _literal(text)
            case cpp.Name(path=path):
                found = scope.find(path)
                return found.names[path] if found else interpreter.constant(path)
            case cpp.Paren(value=inner) | cpp.Cast(value=inner):
                return self.value(inner, scope)
            case Boxed(values=values):
                return tuple(self.value(each, scope) for each in values)
            case cpp.LambdaExpr():
                names = tuple(p.name or p.type for p in expr.parameters)
                return Closure(names, expr.body, scope, self.reading)
            case Send():
                return send(self, expr, scope)
            case cpp.Call():
                return self._called(expr, scope)
            case cpp.Member(value=inner, name=name):
                return interpreter.member(self.value(inner, scope), name)
            case cpp.Index(value=inner, index=index):
                record, key = self.value(inner, scope), self.value(index, scope)
                return record.fields.get(key, Unknown("[]")) if isinstance(record, Record) else Unknown("[]")
            case cpp.Ternary(test=test, yes=yes, no=no, start=start):
                return self.value(yes if self.truth(self.value(test, scope), start) else no, scope)
            case cpp.Unary() | cpp.Binary():
                return apply(self, expr, scope)
        raise make_unsupported_error(type(expr).__name__, self.place(getattr(expr, "start", 0)))

    def assign(self, target: Any, value: Any, scope: Scope) -> Any:
        """Assigns a value to a name, a record's field or a dictionary's key."""
        match target:
            case cpp.Name(path=path):
                (scope.find(path) or scope).names[path] = value
            case cpp.Member(value=inner, name=name):
                record = self.value(inner, scope)
                if isinstance(record, Record):
                    record.fields[name] = value
            case cpp.Index(value=inner, index=index):
                record = self.value(inner, scope)
                if isinstance(record, Record):
                    record.fields[self.value(index, scope)] = value
        return value

    def _called(self, expr: cpp.Call, scope: Scope) -> Any:
        if isinstance(expr.function, cpp.Member):
            return self._method(expr, scope)
        function = self.value(expr.function, scope)
        path = expr.function.path if isinstance(expr.function, cpp.Name) else ""
        if path and scope.find(path) and isinstance(function, Unknown):
            path = function.text
        name = path.rsplit("::", 1)[-1]
        if name in interpreter.CHECKS:
            return self._check(expr, scope)
        if name in interpreter.QUIET:
            return None
        values = [self.value(argument, scope) for argument in expr.arguments]
        if name == "assert" and values[0] is False:
            raise UnreachablePath
        if isinstance(function, Closure):
            return self.call_closure(function, values)
        if not path:
            return tuple(values)
        if name in interpreter.QUERIES:
            return interpreter.QUERIES[name]
        if name in CALLS:
            return CALLS[name](self, values, expr.start)
        known = interpreter.is_class(name, values[0], len(values) > 1 and values[1] is True) if values else None
        return known if known is not None else self.call_helper(name, values, expr.start)

    def _check(self, expr: cpp.Call, scope: Scope) -> None:
        """Evaluates a check. If it fails, the element type is rejected; a check of an argument is ignored."""
        held = self.value(expr.arguments[0], scope)
        if isinstance(held, (Unknown, Test, Argument)) or held:
            return
        words = [a.text.strip('"') for a in expr.arguments[1:] if isinstance(a, cpp.Literal)]
        raise CheckFailed(" ".join(words).strip() or "a check of the implementation fails", self.place(expr.start))

    def _method(self, expr: cpp.Call, scope: Scope) -> Any:
        assert isinstance(expr.function, cpp.Member)
        receiver, name = self.value(expr.function.value, scope), expr.function.name
        values = [self.value(argument, scope) for argument in expr.arguments]
        if isinstance(receiver, TensorIterator):
            return receiver.inputs[int(values[0]) if values else 0] if name.startswith("input") else receiver.output
        if isinstance(receiver, Record) and name == "graph":
            return GRAPH
        if isinstance(receiver, TensorArg) and name == "to":
            target = next((v for v in values if isinstance(v, DType)), receiver.dtype)
            return TensorArg(receiver.name, target, receiver.output, receiver.wrapped)
        if isinstance(receiver, Argument) and name == "equal":
            return Test(f"{receiver.name} == {format_value(values[0])}")
        if name in ("equals", "equal") and isinstance(receiver, Unknown):
            return True
        if isinstance(receiver, TensorArg) and receiver.output and name == "copy_" and isinstance(values[0], TensorArg):
            if not values[0].output:  # the graph has already written its result there
                copied = interpreter.cast(Input(values[0].name, values[0].dtype), receiver.dtype)
                self.results.append((receiver.name, copied))
            return receiver
        return interpreter.member(receiver, name)


def _bound(argument: SchemaArgument, dtype: DType, out: DType) -> Any:
    if argument.is_tensor:
        return TensorArg(argument.name, out if argument.is_result else dtype, output=argument.is_result)
    return Argument(argument.name, argument.type, dtype)


def _literal(text: str) -> Any:
    if text.startswith(('"', "'")):
        return text.strip("\"'")
    number = text.rstrip("fFlLuU") if not text.lower().startswith("0x") else text
    try:
        return int(number, 0)
    except ValueError:
        return float(number)
