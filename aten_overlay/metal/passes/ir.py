"""LLVM's intermediate representation as text: functions, blocks, instructions and the types of their results.

Reads what clang writes, as far as `lockstep` needs it (LLVM Language Reference, "Instruction Reference").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LOCAL = re.compile(r'%(?:"[^"]*"|[-\w.$]+)')
GLOBAL = re.compile(r'@(?:"[^"]*"|[-\w.$]+)')
_RESULT = re.compile(rf"({LOCAL.pattern}) = ")
_DEFINED = re.compile(rf"({GLOBAL.pattern})\(")
_LABEL = re.compile(r'^("[^"]*"|[-\w.$]+):')
_METADATA = re.compile(r", ![\w.]+ !(\d+|\{\})")
_TYPE = re.compile(rf"i\d+|half|bfloat|float|double|ptr|void|[<\[{{]|{LOCAL.pattern}")
_FLAG = re.compile(
    r"(nuw|nsw|nusw|exact|disjoint|nneg|samesign|inbounds|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|volatile|atomic"
    r"|tail|musttail|notail|call|noundef|nonnull|noalias|zeroext|signext|inreg|\w+cc|(align|range|dereferenceable"
    r"|dereferenceable_or_null|nofpclass)( \d+|\([^)]*(\([^)]*\))?[^)]*\))) "
)
_CLOSING = {"<": ">", "[": "]", "{": "}"}
_ARITHMETIC = "add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem fneg freeze phi"
_CONVERSIONS = "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr bitcast"
_SAME_TYPE, _CASTS = frozenset(_ARITHMETIC.split()), frozenset(_CONVERSIONS.split())
_ENDS = frozenset(("br", "switch", "ret", "unreachable", "invoke", "resume", "indirectbr", "callbr"))
PURE = _SAME_TYPE | _CASTS | {"icmp", "fcmp", "select", "getelementptr", "extractvalue", "insertvalue"}
PURE |= {"extractelement", "insertelement", "shufflevector"}
TRAPS = frozenset(("udiv", "sdiv", "urem", "srem"))
# Recomputed where they are used, rather than stored for every lane.
CHEAP = frozenset(("getelementptr", "zext", "sext", "trunc", "bitcast"))


def write_string(text: str) -> str:
    """A constant's type and value: text with the zero that ends it."""
    data = text.encode() + b"\0"
    return f'[{len(data)} x i8] c"{"".join(f"{chr(92)}{byte:02X}" for byte in data)}"'


class NotUnderstood(Exception):
    """The text holds what this reader does not know."""


@dataclass(frozen=True)
class Instruction:
    """One instruction without its metadata. `result` is its name with the `%`, or ""; `text` what follows the `=`."""

    result: str
    opcode: str
    text: str

    @property
    def operands(self) -> list[str]:
        """The local names it references; those of types and labels too."""
        return LOCAL.findall(self.text)

    @property
    def callee(self) -> str:
        """The function a direct call calls, with the `@`; "" for anything else."""
        found = re.search(rf"({GLOBAL.pattern})\(", self.text) if self.opcode == "call" else None
        return found[1] if found else ""


@dataclass(frozen=True)
class Block:
    """A basic block; `label` has no `%`. The last instruction is its terminator."""

    label: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Function:
    """A function definition; `head` is its first line. The first block is the entry."""

    name: str
    head: str
    parameters: tuple[str, ...]
    blocks: tuple[Block, ...]


def functions(text: str) -> Iterator[tuple[int, int, str]]:
    """The span and name of each function definition in a module."""
    at = 0
    while (start := text.find("define ", at)) >= 0:
        at = text.find("\n", start)
        name = _DEFINED.search(text, start, at)
        end = text.find("\n}\n", at) + 3
        if name and end > at and text[at - 1] == "{" and (not start or text[start - 1] == "\n"):
            yield start, end, name[1]
            at = end


def read_function(text: str) -> Function:
    """Parses one definition whose blocks are all named. Raises NotUnderstood."""
    head, *lines = text.rstrip().removesuffix("}").split("\n")
    name = GLOBAL.search(head)
    assert name is not None
    parameters = tuple(LOCAL.findall(head[name.end() :]))
    blocks: list[Block] = []
    label = ""
    found: list[Instruction] = []
    for line in _joined(lines):
        if match := _LABEL.match(line):
            if label:
                blocks.append(Block(label, tuple(found)))
            label, found = match[1], []
        else:
            found.append(_instruction(line))
    blocks.append(Block(label, tuple(found)))
    if not label or any(not b.instructions or b.instructions[-1].opcode not in _ENDS for b in blocks):
        raise NotUnderstood("a block without a name or terminator")
    return Function(name[0], head, parameters, tuple(blocks))


def _joined(lines: list[str]) -> Iterator[str]:
    """The lines with instructions that span several, switches, made one."""
    pending = ""
    for line in lines:
        line = line.strip() if pending else line.rstrip()
        pending = f"{pending} {line}" if pending else line
        if "[" in pending and pending.lstrip().startswith("switch") and "]" not in pending:
            continue
        if pending.strip():
            yield pending
        pending = ""


def _instruction(line: str) -> Instruction:
    line = line.strip().split(" ; ")[0]
    if ", !" in line:
        line = _METADATA.sub("", line)
    result = _RESULT.match(line)
    text = line[result.end() :] if result else line
    words = text.split(" ", 2)
    opcode = words[1] if words[0] in ("tail", "musttail", "notail") else words[0]
    return Instruction(result[1] if result else "", opcode, text)


def result_type(instruction: Instruction) -> str:
    """The type of what an instruction yields. Raises NotUnderstood."""
    opcode, rest = instruction.opcode, instruction.text.split(" ", 1)[1]
    if opcode in _SAME_TYPE or opcode in ("load", "call", "insertvalue", "insertelement"):
        return first_type(rest)
    if opcode in _CASTS:
        return rest.rsplit(" to ", 1)[1]
    if opcode in ("alloca", "getelementptr"):
        if "<" in first_type(rest.split(", ptr", 1)[-1].strip() or "ptr") or ", <" in rest:
            raise NotUnderstood(instruction.text)
        return "ptr"
    if opcode in ("icmp", "fcmp"):
        found = re.match(r"(?:\w+ )*?(?:eq|ne|[us][gl][te]|[ou](?:eq|ne|[gl][te])|ord|uno|true|false) ", rest)
        compared = first_type(rest[found.end() :]) if found else ""
        width = re.match(r"<(\d+) x", compared)
        return f"<{width[1]} x i1>" if width else "i1"
    if opcode == "select":
        condition = first_type(rest)
        return first_type(rest[rest.index(condition) + len(condition) :].split(", ", 1)[1])
    if opcode == "cmpxchg":
        return f"{{ {first_type(rest.split(', ')[1])}, i1 }}"
    if opcode == "extractvalue":
        return _member(first_type(rest), rest.rsplit(", ", 1)[1])
    if opcode == "extractelement":
        return first_type(rest)[1:-1].split(" x ", 1)[1]
    if opcode == "shufflevector":
        mask = re.search(r", <(\d+) x i32> [^,]*(?:<[^>]*>)?$", rest)
        if mask:
            return f"<{mask[1]} x {first_type(rest)[1:-1].split(' x ', 1)[1]}>"
    if opcode == "atomicrmw":
        found = re.search(r", (\w+) [^,]*$", rest.split(", align")[0])
        if found:
            return found[1]
    raise NotUnderstood(instruction.text)


def _member(kind: str, index: str) -> str:
    """The type of a member of a structure without members that have members."""
    members = kind.removeprefix("{ ").removesuffix(" }").split(", ")
    if not kind.startswith("{") or any(c in "{[<" for m in members for c in m) or not index.isdigit():
        raise NotUnderstood(kind)
    return members[int(index)]


def first_type(text: str) -> str:
    while found := _FLAG.match(text):
        text = text[found.end() :]
    found = _TYPE.match(text)
    if not found:
        raise NotUnderstood(text)
    if found[0] not in _CLOSING:
        return found[0]
    depth = 0
    for i, character in enumerate(text):
        depth += (character in _CLOSING) - (character in _CLOSING.values())
        if depth == 0:
            return text[: i + 1]
    raise NotUnderstood(text)
