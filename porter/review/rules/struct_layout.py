"""A struct that host and kernel share has the same fields on both sides: sizes, order, alignment (196157)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from porter.languages.source import parse_source
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, host_case

_SIZES: Mapping[str, int] = {
    "bool": 1, "char": 1, "uchar": 1, "int8_t": 1, "uint8_t": 1, "short": 2, "ushort": 2, "int16_t": 2, "uint16_t": 2,
    "half": 2, "bfloat": 2, "int": 4, "uint": 4, "int32_t": 4, "uint32_t": 4, "float": 4, "unsigned": 4,
    "int64_t": 8, "uint64_t": 8, "size_t": 8,
}  # fmt: skip
_METAL = {**_SIZES, "long": 8, "ulong": 8}
_HOST = {**_SIZES, "long": 8, "double": 8}


@dataclass(frozen=True)
class _Struct:
    path: str
    start: int
    line: int
    fields: tuple[tuple[str, str, str], ...]  # type, name, extent of an array

    def layout(self, sizes: Mapping[str, int]) -> tuple[tuple[str, int, str], ...]:
        """The name and the size in bytes of each field, and how many there are; 0 for a type that is not known."""
        return tuple((name, sizes.get(kind, 0), extent) for kind, name, extent in self.fields)


def _check(change: Change) -> Iterator[Remark]:
    metal = {path: text for path, text in change.kernel_texts.items() if "struct" in text}
    paths = {file.path for file in change.files}
    for host_path, host in change.host_texts.items():
        if "struct" not in host:
            continue
        structs = _list_structs(host_path, host)
        for path, text in metal.items():
            if paths.isdisjoint((host_path, path)):
                continue
            shared = _list_structs(path, text)
            for name in structs.keys() & shared.keys():
                yield from _compare(name, structs[name], shared[name])


def _compare(name: str, host: _Struct, metal: _Struct) -> Iterator[Remark]:
    ours, theirs = host.layout(_HOST), metal.layout(_METAL)
    if any(size == 0 for _, size, _ in (*ours, *theirs)) or ours == theirs:
        return
    differing = next((a or b for a, b in zip(ours, theirs, strict=False) if a != b), None)
    about = f"field `{differing[0]}`" if differing else "the number of fields"
    what = f"`{name}` has another layout in {metal.path}:{metal.line}: {about} differs"
    yield Remark(host.path, host.line, what, "Give both sides the same fields, or one header that both include.")


def _list_structs(path: str, text: str) -> dict[str, _Struct]:
    """The structs without functions, templates and bases, by name."""
    source = parse_source(path, text)
    structs: dict[str, _Struct] = {}
    if not source.is_readable:
        return structs
    code = source.code
    for at, token in enumerate(code[:-2]):
        if token.text != "struct" or code[at + 2].text != "{" or (at and code[at - 1].text == ">"):
            continue
        body = code[at + 3 : source.partners[at + 2]]
        if any(t.text in ("(", "{", "using") for t in body):
            continue
        fields = tuple(_read_fields([t.text for t in body]))
        structs[code[at + 1].text] = _Struct(path, token.start, source.place(token.start).line, fields)
    return structs


def _read_fields(tokens: list[str]) -> Iterator[tuple[str, str, str]]:
    """The fields of a struct: type, name, and what stands in the brackets of an array, or "" for one value."""
    statement: list[str] = []
    for text in tokens:
        if text != ";":
            statement.append(text)
            continue
        plain = [word for word in statement if word not in ("const", "unsigned", "alignas", "std", "::", "metal")]
        if "=" in plain:
            plain = plain[: plain.index("=")]
        extent = ""
        if "[" in plain:
            extent = "".join(plain[plain.index("[") + 1 : -1])
            plain = plain[: plain.index("[")]
        if len(plain) >= 2:
            yield plain[0], plain[-1], extent
        statement = []


_HOST_TEXT = """struct PlantedParams {
  int32_t rows;
  int64_t stride;
};
void f() {}
"""
_METAL_TEXT = """struct PlantedParams {
  int32_t rows;
  int64_t stride;
};
"""
RULE = Rule(
    "struct-layout",
    Severity.ERROR,
    "A struct of host code has other fields than the kernel file's of the same name.",
    _check,
    bad=(
        host_case(_HOST_TEXT, _METAL_TEXT.replace("int64_t", "int32_t")),
        host_case(
            _HOST_TEXT.replace("int32_t rows;\n  int64_t stride", "int64_t stride;\n  int32_t rows"), _METAL_TEXT
        ),
        host_case(_HOST_TEXT.replace("int32_t rows", "bool rows"), _METAL_TEXT),
    ),
    good=(host_case(_HOST_TEXT, _METAL_TEXT.replace("int64_t", "long").replace("int32_t", "int")),),
)
