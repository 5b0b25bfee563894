"""Puts the body of a function in the place of its call: parameters become arguments, and what is known is folded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from porter.core.edits import replace_spans
from porter.languages.brackets import split_at_commas
from porter.languages.identifiers import contains_identifier, find_words, is_whole, is_word, rename_identifiers
from porter.languages.lexer import Token, strip_comments
from porter.languages.liveness import find_commented_start, list_declared
from porter.languages.patterns import Found, find_code, has_code, match_code, replace_code
from porter.languages.source import Function, Source
from porter.languages.statements import (
    Statement,
    find_returns,
    list_lambdas,
    name_tokens,
    read_statements,
    walk_statements,
)

_SIMPLE = re.compile(r"(?:\w+::)*\w+$|-?[\d.]+f?$|\"[^\"]*\"$")
_TEMPLATE = re.compile(r"template\s*<([^<>]*)>")
_CONST_CAST = ("const_cast<$$type>($name)", "(Tensor&)$name", "(Tensor&)($name)")
_LITERALS = re.compile(r'(?<=[^\\])"\s*\+\s*"')  # two literals, joined as one
_CHARACTERS = re.compile(r'("[^"\n]*")\.c_str\(\)')  # of a literal, which has them itself
_DECLARED = re.compile(r"(?:const\s+)?([\w:]+(?:<[^;=]*>)?)[&*]?\s+(\w+)\s*[=({;]")
_CALLED = re.compile(r"(?!std::|(?:at::)?Tensor\b)[\w:]+\(")  # a function that may write results, and makes no tuple
_EMPTY = "std::nullopt"
_NEVER_OPTIONAL = ("bool", "auto", "Tensor", "Tensor&", "MaybeOwned<Tensor>", "c10::MaybeOwned<Tensor>")
_UNDEFINED = "Tensor()"
_NO_TENSOR = "borrow_from_optional_tensor(std::nullopt)"
_RETURN = "return $$value;"
_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "++", "--")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function: its type as written, its name, and the argument that it has where none is passed."""

    type: str
    name: str
    default: str = ""


def read_parameters(function: Function) -> tuple[Parameter, ...]:
    """The parameters of a function, in order; the name of one that has none is empty."""
    parts = split_at_commas(strip_comments(function.params), "<>()[]{}")
    return tuple(_read_parameter(*part.partition("=")[::2]) for part in parts if part)


def _read_parameter(declared: str, default: str) -> Parameter:
    text = declared.strip()
    name = re.search(r"(\w+)\s*$", text)
    if name is None or name[1] == text:
        return Parameter(" ".join(text.split()), "", default.strip())
    return Parameter(" ".join(text[: name.start()].split()), name[1], default.strip())


@dataclass(frozen=True)
class CallSite:
    """A statement that is a call of a function: its arguments as written, and whether its value is returned.

    `types` are what it names for the parameters of a template.
    """

    statement: Statement
    arguments: tuple[str, ...]
    is_returned: bool
    types: tuple[str, ...] = ()


def find_call_site(text: str, name: str) -> CallSite | None:
    """The statement of a body that only calls a function, or returns what it returns; None if there is none."""
    return next(list_call_sites(text, name), None)


def list_call_sites(text: str, name: str) -> Iterator[CallSite]:
    """The statements of a body that only call a function, return what it returns, or set an argument to it.

    Such an argument is an output, which the function returns.
    """
    called = (f"{name}($$arguments);", f"{name}<$$types>($$arguments);")
    patterns = tuple(f"{before}{call}" for before in ("", "return ", "$output = ") for call in called)
    for each in walk_statements(text):
        if each.keyword:
            continue
        written = text[each.start : each.end]
        match = match_code(written, *patterns)
        if match is None:
            continue
        arguments = tuple(_strip(argument) for argument in split_at_commas(match["arguments"]))
        if "output" not in match.holes or arguments[-1:] == (match["output"],):
            types = tuple(split_at_commas(match.holes.get("types", ""), "<>()"))
            yield CallSite(each, arguments, written.startswith("return"), types)


def specialize(function: Function, body: str, site: CallSite) -> tuple[str, tuple[Parameter, ...]] | None:
    """The body and the parameters of a function, with the types that a call names in the place of its template's.

    None if the call names other than all of them.
    """
    parameters, template = read_parameters(function), _TEMPLATE.match(function.signature)
    declared = split_at_commas(template[1], "<>()") if template else []
    if site.types and len(site.types) != len(declared):
        return None
    names = (find_words(each.partition("=")[0])[-1] for each in declared)
    types = dict(zip(names, site.types, strict=bool(site.types)))
    typed = (replace(each, type=rename_identifiers(each.type, types)) for each in parameters)
    return rename_identifiers(body, types), tuple(typed)


def complete_call(site: CallSite, parameters: Sequence[Parameter]) -> CallSite | None:
    """A call with the arguments that it leaves to their defaults; None if it is not one of that function."""
    left = parameters[len(site.arguments) :]
    if len(site.arguments) > len(parameters) or not all(each.default for each in left):
        return None
    return replace(site, arguments=(*site.arguments, *(each.default for each in left)))


def _strip(argument: str) -> str:
    """An argument without comments and without a cast that only takes `const` away."""
    plain = strip_comments(argument).strip()
    match = match_code(plain, *_CONST_CAST)
    return match["name"] if match else plain


def inline_call(
    text: str,
    site: CallSite,
    body: str,
    parameters: Sequence[Parameter],
    distinct: Collection[str],
    caller: str,
    given: Collection[str] = (),
) -> str | None:
    """The text of `caller` with the body of the called function in the place of a call; None where it cannot be there.

    It can where the call is the last statement of its block, only a `return` follows, or the body has none, all
    parameters have names, and no argument views what ends with the call. `given` are variables of the caller that are
    no optionals.
    """
    behind = text[site.statement.end :].strip()
    follows = not behind or match_code(behind, _RETURN) is not None
    falls_through = not follows and not site.is_returned and not any(find_returns(body))
    if (not follows and not falls_through) or len(site.arguments) != len(parameters):
        return None
    arguments = [f'"{caller}"' if each == "__func__" else each for each in site.arguments]
    owned = [_own(each, value, given) for each, value in zip(parameters, arguments, strict=True)]
    if None in owned or not all(each.name for each in parameters):
        return None
    kept = [each for each in owned if each]
    body = _fill_optionals(body, [each for each, own in zip(parameters, kept, strict=True) if own.is_given])
    known, declarations = _bind(kept, parameters, body)
    passed = {token.text for each in kept for token in name_tokens(each.value)}
    hidden = (passed | list_locals(text)) & list_locals(body)  # by which the body would hide an argument
    body = rename(body, {name: find_free_name(name, body) for name in hidden})
    made = _CHARACTERS.sub(r"\1", _LITERALS.sub("", rename(body, known)))
    made = _fold_undefined(fold(made, distinct), distinct)
    if not site.is_returned and not falls_through:
        made = _return_instead(made, behind or "return;")
    stop = site.statement.end if not behind or site.is_returned or falls_through else len(text.rstrip())
    return text[: site.statement.start] + declarations + made.strip() + text[stop:]


def _own(parameter: Parameter, argument: str, given: Collection[str]) -> Owned | None:
    """What a parameter is declared as, in a body that no call is left of."""
    if _SIMPLE.match(argument):
        return Owned(parameter.type, argument, argument in given)
    return own_viewed(parameter.type, argument)


def _bind(arguments: Sequence[Owned], parameters: Sequence[Parameter], body: str) -> tuple[Mapping[str, str], str]:
    """What each parameter's name becomes, and declarations of those that stand for more than a name or a number."""
    known, declarations = {}, ""
    for argument, parameter in zip(arguments, parameters, strict=True):
        is_assigned = has_code(body, *(f"{parameter.name} {operator}" for operator in _ASSIGNMENTS))
        if argument.value == parameter.name:
            continue
        if _SIMPLE.match(argument.value) and (not is_assigned or argument.value == _EMPTY):
            known[parameter.name] = argument.value
        elif contains_identifier(body, parameter.name):
            declarations += f"{argument.type} {parameter.name} = {argument.value};\n  "
    return known, declarations


def _fill_optionals(body: str, parameters: Sequence[Parameter]) -> str:
    """A body whose optional parameters are passed what is always there."""
    for each in parameters:
        if "ptional" in each.type:
            body = _without_borrowed(body, each.name)
            body = replace_code(body, TRUE, f"{each.name}.has_value()", f"{each.name}.defined()")
            body = replace_code(body, each.name, f"{each.name}.value()", f"{each.name}.get()", f"*{each.name}")
            body = replace_code(body, "", f"TORCH_CHECK({TRUE}, $$words);")
    return body


def _without_borrowed(body: str, name: str) -> str:
    """A body without the reference to a tensor that an optional holds: it is the tensor."""
    borrowed = f"borrow_from_optional_tensor({name})"
    patterns = (f"const Tensor& $held = *{borrowed};", f"const Tensor& $held = *({borrowed});")
    for found in find_code(body, *patterns):
        return rename(body[: found.start] + body[found.end :].lstrip(), {found["held"]: name})
    return body


def find_free_name(name: str, body: str) -> str:
    """Another name for a variable, that a body does not have yet."""
    used = {token.text for token in name_tokens(body)}
    return next(each for each in (f"{name}_", f"{name}_c", f"own_{name}") if each not in used)


def list_locals(body: str) -> set[str]:
    """The variables that a body declares."""
    statements = [each for each in walk_statements(body) if not each.keyword]
    return {name for each in statements for name in list_declared(body[each.start : each.end])}


def list_given(function: Function, text: str) -> set[str]:
    """The parameters of a function, and variables that its body, `text`, declares, that are no optionals."""
    statements = [text[each.start : each.end] for each in walk_statements(text)]
    declared = [found for each in statements if (found := _DECLARED.match(each))]
    types = {each[2]: each[1] for each in declared if each[1] not in ("auto", "return")}
    types |= {each.name: each.type for each in read_parameters(function)}
    return {name for name, type_ in types.items() if "ptional" not in type_}


def rename(text: str, known: Mapping[str, str]) -> str:
    """A text with other variables in the place of some, but for members and parameters of lambdas so named."""
    tokens = [token for token in name_tokens(text) if token.text in known]
    for inner in list_lambdas(text) if tokens else ():
        hidden = inner.parameters & known.keys()
        tokens = [each for each in tokens if each.text not in hidden or not inner.start < each.start < inner.end]
    return replace_spans(text, ((token.start, token.end, known[token.text]) for token in tokens))


def _fold_undefined(text: str, distinct: Collection[str]) -> str:
    """Folds what depends on an optional tensor that is not given."""
    while True:
        made = replace_code(text, _UNDEFINED, f"*({_NO_TENSOR})", _NO_TENSOR, "*Tensor()")
        made = replace_code(made, FALSE, "std::nullopt.has_value()", "Tensor().defined()")
        made = made.replace("Tensor().suggest_memory_format()", "MemoryFormat::Contiguous")
        for each in (inner for inner in walk_statements(made) if not inner.keyword):
            match = match_code(made[each.start : each.end], "$$type $name = $$value;")
            if match is None or match["value"] not in (TRUE, FALSE, _UNDEFINED):
                continue
            is_only = len(list(find_code(made, f"{match['name']} ="))) == 1
            if is_only and match["type"].removeprefix("const ") in _NEVER_OPTIONAL:
                made = rename(made[: each.start] + made[each.end :], {match["name"]: match["value"]})
                break
        made = fold(made, distinct)
        if made == text:
            return text
        text = made


def _return_instead(text: str, behind: str) -> str:
    """A body whose every `return` is the one that follows the call, which it ends with unless nothing is returned."""
    statements = read_statements(text)
    if statements and text.startswith("return", statements[-1].start):
        text = text[: statements[-1].start].rstrip()
    places = list(find_returns(text))
    made = replace_spans(text, ((each.start, each.end, _return_after(text, each, behind)) for each in places))
    return made if behind == "return;" else f"{made.rstrip()}\n\n  {behind}"


def _return_after(text: str, place: Found, behind: str) -> str:
    """The `return` that follows a call, behind what another one calls: that may write results."""
    if not _CALLED.match(place["value"]):
        return behind
    both = f"{place['value']};\n{behind}"
    return both if text[: place.start].rstrip().endswith(("{", "}", ";")) else f"{{\n{both}\n}}"


_VIEW = re.compile(r"\b(?:(?:Optional)?(?:Int|SymInt)?ArrayRef|(?:I?Optional)?TensorList(?:Ref)?|OptionalScalarRef)\b")
_MAKER = r"(?:c10::|at::)*(?:(?:Optional)?(?:Int|SymInt)?ArrayRef|makeArrayRef)(?:<\w+>)?"
_ONE_HELD = re.compile(rf"({_MAKER}\()\{{(\*\w+)\}}\)")  # one element, that lives where an optional does
_BRACES = re.compile(rf"(?:{_MAKER}\()?\{{([^{{}}]*)\}}\)?$")
_NUMBER = re.compile(rf"{_MAKER}\((-?\d+)\)$")
_MEMBER = r"\*?\w+(?:(?:\.|->)(?:sizes|strides|value|get|data|size)\(\))*"
_NO_ELEMENTS = r"(?:IntArrayRef)?\{\}"
_MADE = re.compile(rf"{_MAKER}\({_MEMBER}(?:, (?:{_MEMBER}|\d+))?\)|{_MEMBER}(?:\.value_or\({_NO_ELEMENTS}\))?")
_CHOICE = re.compile(r"[^?:]+\? (?P<first>[^?]+) : (?P<second>[^?:]+(?:::\w+)?)$")


@dataclass(frozen=True)
class Owned:
    """How a parameter is declared so that what it views lives on; `is_given` where it is no optional then."""

    type: str
    value: str
    is_given: bool = False


def own_viewed(type_: str, argument: str) -> Owned | None:
    """The declaration of a parameter of some type for an argument; None if what that views may end with it."""
    if not _VIEW.search(type_):
        return Owned(type_, argument)
    held = _ONE_HELD.sub(r"\1\2)", argument)
    if scalar := match_code(held, "OptionalScalarRef($$value)"):
        return Owned("const Scalar", f"Scalar({scalar['value']})", is_given=True)
    if elements := _BRACES.match(held) or _NUMBER.match(held):
        count = len(split_at_commas(elements[1], "<>()[]{}")) if elements[1].strip() else 0
        return Owned(f"const std::array<{_name_element(type_)}, {count}>", f"{{{elements[1].strip()}}}", is_given=True)
    choice = _CHOICE.fullmatch(held)
    parts = (choice["first"], choice["second"]) if choice else (held,)
    return Owned(type_, held) if all(each == "std::nullopt" or _MADE.fullmatch(each) for each in parts) else None


def _name_element(type_: str) -> str:
    return "Tensor" if "Tensor" in type_ else "SymInt" if "SymInt" in type_ else "int64_t"


TRUE, FALSE = "true", "false"
_STARTS = frozenset(("=", "(", ",", "{", ";", "[", "return", "?", ":", "+=", "<<"))
_STOPS = frozenset((",", ";", ")", "]", "}", ":"))
_IDLE = re.compile(r"\s*\|\| false\b|\bfalse \|\| |\s*&& true\b|\btrue && ")  # operands that change nothing
_COMPARISONS = ("==", "!=")
_LABEL = re.compile(r"\bcase ([\w:]+):(?!:)|\bdefault:")


def fold(text: str, distinct: Collection[str] = ()) -> str:
    """A body without the branches that are not taken. Raises PTR030 where brackets do not pair."""
    while True:
        made = _IDLE.sub("", _fold_branches(_fold_choices(text, distinct), distinct))
        if made == text:
            return text
        text = made


def simplify(condition: str, distinct: Collection[str] = ()) -> str:
    """A condition with what is known left out: `true` and `false` for those that are known altogether."""
    code = Source.parse("", condition).code
    for operator, absorbing in (("||", TRUE), ("&&", FALSE)):
        parts = _split(condition, code, operator)
        if len(parts) > 1:
            known = [simplify(part, distinct) for part in parts]
            if absorbing in known:
                return absorbing
            kept = [part for part in known if part not in (TRUE, FALSE)]
            joined = f" {operator} ".join(kept)
            return joined if kept else (FALSE if absorbing == TRUE else TRUE)
    return _simplify_part(condition.strip(), code, distinct)


def _simplify_part(text: str, code: Sequence[Token], distinct: Collection[str]) -> str:
    if text.startswith("(") and Source.parse("", text).partners[0] == len(code) - 1:
        inner = simplify(text[1:-1], distinct)
        return inner if is_word(inner) else f"({inner})"
    if text.startswith("!") and not text.startswith("!="):
        inner = simplify(text[1:], distinct)
        return {TRUE: FALSE, FALSE: TRUE}.get(inner, f"!{inner}")
    for operator in _COMPARISONS:
        parts = _split(text, code, operator)
        if len(parts) == 2:
            left, right = (part.strip() for part in parts)
            equal = _compare(left, right, distinct)
            if equal is not None:
                return TRUE if equal == (operator == "==") else FALSE
    return text


def _compare(left: str, right: str, distinct: Collection[str]) -> bool | None:
    """Whether two constants are equal; None if that is not known."""
    both = (left, right)
    if all(each in (TRUE, FALSE) or is_whole(each) or each.startswith('"') for each in both):
        return left == right
    return _names_one(left, right) if all(each in distinct for each in both) else None


def _names_one(name: str, other: str) -> bool:
    """Whether two names are of one constant: one may have the scope that the other leaves out."""
    return name == other or name.endswith(f"::{other}") or other.endswith(f"::{name}")


def _split(text: str, code: Sequence[Token], operator: str) -> list[str]:
    """The parts of an expression around an operator outside of all brackets, and outside of a choice."""
    depth, start, parts = 0, 0, []
    for token in code:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.text, 0)
        if depth == 0 and token.text == "?":
            return [text]
        if depth == 0 and token.text == operator:
            parts.append(text[start : token.start])
            start = token.end
    return [*parts, text[start:]]


def _fold_choices(text: str, distinct: Collection[str]) -> str:
    """`test ? yes : no` with the one that is taken."""
    source = Source.parse("", text)
    code, partners = source.code, source.partners
    for at, token in enumerate(code):
        if token.text != "?":
            continue
        first = _find_condition(code, partners, at)
        known = simplify(text[code[first].start : code[at - 1].end], distinct)
        colon = _find_stop(code, partners, at + 1)
        if known in (TRUE, FALSE) and code[colon].text == ":":
            stop = _find_stop(code, partners, colon + 1)
            low, high = (at + 1, colon) if known == TRUE else (colon + 1, stop)
            taken = text[code[low].start : code[high - 1].end]
            return text[: code[first].start] + taken + text[code[stop - 1].end :]
    return text


def _find_condition(code: Sequence[Token], partners: dict[int, int], at: int) -> int:
    """The first token of the condition before a `?`."""
    while at > 0 and code[at - 1].text not in _STARTS:
        at = partners.get(at - 1, at - 1) if code[at - 1].text in (")", "]", "}") else at - 1
    return at


def _find_stop(code: Sequence[Token], partners: dict[int, int], at: int) -> int:
    """The token that ends an operand of a choice."""
    nested = 0
    while at < len(code):
        word = code[at].text
        if word == "?":
            nested += 1
        elif word == ":" and nested:
            nested -= 1
        elif word in _STOPS:
            return at
        at = partners.get(at, at) + 1
    return at


def _fold_branches(text: str, distinct: Collection[str]) -> str:
    """Folds the first `if` whose condition simplifies, and drops the branch that is not taken."""
    for outer in read_statements(text):
        for each in outer.walk():
            if each.keyword == "switch" and (made := _fold_switch(text, each, distinct)) is not None:
                return made
            if each.keyword == "if" and each.head:
                written = text[slice(*each.head)]
                known = simplify(written, distinct)
                if known in (TRUE, FALSE):
                    return _take(text, each, known == TRUE)
                if known != written.strip():
                    return text[: each.head[0]] + known + text[each.head[1] :]
    return text


def _fold_switch(text: str, each: Statement, distinct: Collection[str]) -> str | None:
    """A text with the statements of the case that a `switch` on a constant takes; None if it is not known."""
    assert each.head and each.inner
    value = text[slice(*each.head)].strip()
    if value not in distinct:
        return None
    body = text[slice(*each.inner)]
    labels = list(_LABEL.finditer(body))
    chosen = next((i for i, label in enumerate(labels) if label[1] == value), None)
    if chosen is None:
        chosen = next((i for i, label in enumerate(labels) if label[0] == "default:"), None)
    if chosen is None or "{" in body:
        return None
    taken = _LABEL.sub("", body[labels[chosen].end() :]).partition("break;")[0]
    return text[: each.start] + taken.strip() + text[each.end :]


def _take(text: str, branch: Statement, is_taken: bool) -> str:
    """A text with one side of a branch in its place. What it declares stays within braces where it had some."""
    statements = branch.body if is_taken else branch.otherwise
    start, end = branch.start, branch.end
    if not statements:
        line, stop = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        alone = not text[line:start].strip() and stop >= 0 and not text[end:stop].strip()
        return text[: find_commented_start(text, start, 0)] + text[stop + 1 :] if alone else text[:start] + text[end:]
    inner = text[statements[0].start : statements[-1].end]
    return text[:start] + inner + text[end:]
