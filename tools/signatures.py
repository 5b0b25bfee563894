"""Compares the types that the stand-in declares of MPSGraph and its arrays with Apple's own, as objc2 publishes them.

    git clone --depth 1 https://github.com/madsmtm/objc2-generated
    python tools/signatures.py objc2-generated

objc2's bindings are made from Apple's SDK: the type of every argument and result of every method, accessors of
properties among them. A number declared as another kind of number decodes silently, so each is compared: float, double,
BOOL, signed and unsigned integers, enumerations by name, objects. Prints what differs, how much was compared, and which
selectors are not among those that objc2 publishes; ends with 1 where anything differs. The bindings are read as text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from aten_overlay.apple import build
from shared.arguments import parser
from shared.objc import METHOD, PART

# What a method takes, in order, then what it gives.
Types = tuple[str, ...]

_FRAMEWORKS = ("MetalPerformanceShaders", "MetalPerformanceShadersGraph")
_KINDS = {
    "float": "float", "c_float": "float", "double": "double", "c_double": "double", "BOOL": "BOOL", "bool": "BOOL",
    "NSUInteger": "unsigned", "uint64_t": "unsigned", "u64": "unsigned", "NSInteger": "signed", "int64_t": "signed",
    "i64": "signed", "uint32_t": "unsigned of 32 bits", "u32": "unsigned of 32 bits", "usize": "unsigned",
    "void": "void", "": "void",
}  # fmt: skip
_PROPERTY = re.compile(
    r"^@property(?:\((?P<how>[^)]*)\))?\s*(?P<type>[\w<>, *]*?[ *])(?P<names>\w+(?:, ?\w+)*)\s*;", re.M
)
_BINDING = re.compile(
    r"#\[unsafe\(method\((?P<selector>[\w:]+)\)\)\].*?\bfn \w+(?:<[^>]*>)?\((?P<takes>[^)]*(?:\([^)]*\)[^)]*)*)\)"
    r"(?: -> (?P<result>[^;]*))?;",
    re.S,
)
_ARGUMENT = re.compile(r"^\s*(?:r#)?(\w+): (.*)$", re.S)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("bindings", type=Path, help="a checkout of objc2-generated")
    return compare(options.parse_args().bindings)


def compare(bindings: Path) -> int:
    """Prints what differs from the bindings in this folder; 1 where anything does."""
    theirs: dict[str, set[Types]] = {}
    for framework in _FRAMEWORKS:
        for path in sorted((bindings / framework).rglob("*.rs")):
            for selector, types in _published(path.read_text()):
                theirs.setdefault(selector, set()).add(types)
    ours = {pair for path in _headers() for pair in _declared(path.read_text())}
    wrong = [
        f"{selector} {_told(types)}, Apple's {' or '.join(map(_told, sorted(theirs[selector])))}"
        for selector, types in sorted(ours)
        if selector in theirs and not any(_alike(types, each) for each in theirs[selector])
    ]
    alone = sorted({selector for selector, _ in ours if selector not in theirs})
    compared = sum(selector in theirs for selector, _ in ours)
    if not compared:
        sys.exit(f"nothing to compare: {len(ours)} methods declared, {len(theirs)} selectors published in {bindings}")
    told = (f"{compared} methods compared, {len(wrong)} differ", f"not published: {', '.join(alone) or 'none'}")
    print(*wrong, *told, sep="\n")
    return 1 if wrong else 0


def _headers() -> list[Path]:
    return [path for name in _FRAMEWORKS for path in sorted((build.INCLUDE / name).rglob("*.h"))]


def _told(types: Types) -> str:
    return f"({', '.join(types[:-1])}) -> {types[-1]}"


def _alike(ours: Types, theirs: Types) -> bool:
    return len(ours) == len(theirs) and all(a == b or "?" in (a, b) for a, b in zip(ours, theirs, strict=True))


def _declared(header: str) -> Iterator[tuple[str, Types]]:
    """Every method of a header, and the accessors of its properties."""
    for match in METHOD.finditer(header):
        parts = PART.findall(match["rest"])
        selector = "".join(f"{name}:" for name, _ in parts) or match["rest"].strip()
        yield selector, (*(_kind(each) for _, each in parts), _kind(match["result"]))
    for match in _PROPERTY.finditer(header):
        for name in re.split(r", ?", match["names"]):
            yield name, (_kind(match["type"]),)
            if "readonly" not in (match["how"] or ""):
                yield f"set{name[0].upper()}{name[1:]}:", (_kind(match["type"]), "void")


def _kind(spelled: str) -> str:
    """The kind of a type of Objective-C: a number's, an enumeration's name, `object`, or `?` for another."""
    plain = re.sub(r"\b(const|_Nullable|_Nonnull|nullable|nonnull)\b", "", spelled).strip()
    if plain in _KINDS:
        return _KINDS[plain]
    if re.fullmatch(r"[\w ]+(<.*>)? ?\*|id(<\w+>)?|instancetype", plain, re.S) and not plain.startswith("NSUInteger"):
        return "object"
    return plain if re.fullmatch(r"\w+", plain) else "?"


def _published(bindings: str) -> Iterator[tuple[str, Types]]:
    """Every method of a file of bindings."""
    for match in _BINDING.finditer(re.sub(r"^\s*//.*\n", "", bindings, flags=re.M)):
        arguments = [m for each in _split(match["takes"]) if (m := _ARGUMENT.match(each)) and m[1] != "this"]
        yield match["selector"], (*(_bound(m[2]) for m in arguments), _bound(match["result"] or ""))


def _split(arguments: str) -> Iterator[str]:
    """The arguments between commas that stand in no brackets."""
    depth, start = 0, 0
    for i, char in enumerate(arguments):
        depth += (char in "<([") - (char in ">)]" and arguments[i - 1] != "-")
        if char == "," and not depth:
            yield arguments[start:i]
            start = i + 1
    yield arguments[start:]


def _bound(spelled: str) -> str:
    """The kind of a type of a binding."""
    plain = spelled.strip().rstrip(",")
    if plain in _KINDS:
        return _KINDS[plain]
    if re.fullmatch(r"(Option<)?(&|Retained<|Allocated<).*|Self", plain, re.S):
        return "object"
    return plain if re.fullmatch(r"\w+", plain) else "?"


if __name__ == "__main__":
    sys.exit(main())
