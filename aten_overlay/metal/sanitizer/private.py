"""Private variables that are used before they have a value.

Clang gives each such variable a pattern of its own (`-ftrivial-auto-var-init`). `mark_undefined` makes the pattern the
result of a call that nothing can be known of; the optimizer removes all that is overwritten. `watch_undefined` follows
what is left through the values computed from it, next to each of which a bit tells whether it is undefined, and adds a
call of the runtime where one decides a branch, is an address, or is stored where others see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from aten_overlay.metal.ir import LOCAL, NotUnderstood, first_type, functions
from aten_overlay.metal.sanitizer.places import Place, Places
from aten_overlay.metal.sanitizer.roots import Kind, Roots

FOR_PRIVATE = "-ftrivial-auto-var-init=pattern"
_NODE = re.compile(r'^!(\d+) = !\{!"auto-init"\}$', re.M)
_SCALAR = r"i\d+|half|bfloat|float|double"
_STORE = re.compile(rf"^  store ({_SCALAR}|<(\d+) x i8>) .*, ptr ({LOCAL.pattern}), align (\d+)(.*)$")
_FILL = re.compile(
    rf"^  call void @llvm\.memset\.p0\.i64\(ptr align (\d+) ({LOCAL.pattern}), i8 -(?:86|1), i64 (\d+), .*?\)(.*)$"
)
_COPY = re.compile(
    rf"^  call void @llvm\.memcpy\.p0\.p0\.i64\(ptr align (\d+) ({LOCAL.pattern}), ptr [^,]*, i64 (\d+), .*?\)(.*)$"
)
_MOST_BYTES = 2048  # of a variable that is followed
_SOURCE = "@pm_undefined_"
_RESULT = re.compile(rf"^  ({LOCAL.pattern}) = (?:tail )?(\w+) (.*)$")
_USE = re.compile(rf"^  (?:({LOCAL.pattern}) = )?(?:tail )?(store|br|switch|load) (.*)$")
_ADDRESS = re.compile(rf", ptr ({LOCAL.pattern})(?=,|$)")
_PHI = re.compile(r"\[ (.+?), (%(?:\"[^\"]*\"|[-\w.$]+)) \]")
_LOCATION = re.compile(r"!dbg !(\d+)")
_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
_NANS = {"half": "0xH7E00", "bfloat": "0xR7FC0", "float": "0x7FF8000000000000", "double": "0x7FF8000000000000"}
_FUNCTION = re.compile(r"@(?!pm_)(?:llvm\.\w|[a-z]\w*\()")
_OPERATIONS = """
    add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem fneg freeze trunc zext sext
    fptrunc fpext fptoui fptosi uitofp sitofp bitcast icmp fcmp select phi"""
_STEPS = frozenset(("getelementptr", "phi", "select", "alloca"))
_FOLLOWED = frozenset(_OPERATIONS.split())


def mark_undefined(module: str) -> str:
    """`module` as clang wrote it, with a call in place of each pattern."""
    node = _NODE.search(module)
    if not node:
        return module
    numbers, kinds, mark = count(), {"i32"}, f"!annotation !{node[1]}"

    def pieces(address: str, bytes_: int, align: str, rest: str) -> Iterator[str]:
        for offset in range(0, bytes_, 4):
            name = f"%pm.undefined.{next(numbers)}"
            yield f"  {name}.at = getelementptr i8, ptr {address}, i64 {offset}"
            yield f"  {name} = call i32 {_SOURCE}i32(){rest}"
            yield f"  store i32 {name}, ptr {name}.at, align {min(int(align), 4)}"

    lines: list[str] = []
    for line in module.split("\n"):
        rest = f", {found[0]}" if (found := _LOCATION.search(line)) else ""
        store = _STORE.match(line) if mark in line else None
        fill = (_FILL.match(line) or _COPY.match(line)) if mark in line else None
        if store and store[2] is None:
            name = f"%pm.undefined.{next(numbers)}"
            kinds.add(store[1])
            lines.append(f"  {name} = call {store[1]} {_SOURCE}{store[1]}(){rest}")
            lines.append(f"  store {store[1]} {name}, ptr {store[3]}, align {store[4]}")
        elif store and int(store[2]) % 4 == 0:
            lines += pieces(store[3], int(store[2]), store[4], rest)
        elif fill and int(fill[3]) % 4 == 0 and int(fill[3]) <= _MOST_BYTES:
            lines += pieces(fill[2], int(fill[3]), fill[1], rest)
        else:
            lines.append(line)
    declared = [f"declare {kind} {_SOURCE}{kind}() nounwind willreturn memory(none)" for kind in sorted(kinds)]
    return "\n".join([*lines, *declared, ""])


def watch_undefined(module: str) -> str:
    """`module`, optimized, with calls where something depends on a variable without a value; the marks go."""
    places, files = Places.read(module), dict[str, int]()
    pieces, at = [], 0
    for start, end, _ in functions(module):
        text = module[start:end]
        if f"{_SOURCE}" in text:
            pieces += [module[at:start], _Function(text, places, files).write()]
            at = end
    rest = re.sub(rf"^declare .*{_SOURCE}.*\n", "", "".join([*pieces, module[at:]]), flags=re.M)
    tables = [_table(file, number) for file, number in files.items()]
    return "\n".join([rest, *tables, "declare void @pm_check_private(i1, ptr, i32)", ""])


def _table(file: str, number: int) -> str:
    data = file.encode() + b"\0"
    return f'@pm.private.{number} = private constant [{len(data)} x i8] c"{"".join(f"{chr(92)}{b:02X}" for b in data)}"'


@dataclass
class _Function:
    """A function whose values may be undefined; `bits` are the values that may, by name.

    `arrays` are the private variables that may hold one, and `loaded` what was loaded from one, with its bits' type.
    """

    text: str
    places: Places
    files: dict[str, int]
    bits: set[str] = field(default_factory=set)
    arrays: set[str] = field(default_factory=set)
    loaded: dict[str, str] = field(default_factory=dict)

    def write(self) -> str:
        self.lines = self.text.split("\n")
        self.roots = Roots.read(self.text, False)
        self.escaping = self._find_escaping()
        while self._grow():
            pass
        place: Place = ("?", 0)
        written = []
        for line in self.lines:
            if found := _LOCATION.search(line):
                place = self.places.find(found[1]) or place
            before, after = self._bits_of(line), self._after(line)
            written += [*before, *self._checks(line, place), self._without_mark(line), *after]
        return "\n".join(written)

    def _find_escaping(self) -> set[str]:
        """Private variables whose address goes where it cannot be followed."""
        found = set()
        for line in self.lines:
            known = _RESULT.match(line)
            if known and (known[2] in _STEPS or (known[2] == "load" and _has_size(known[3]))):
                continue
            if line.startswith("  store ") and _has_size(line.removeprefix("  store ")):
                line = line.split(", ptr ")[0]
            elif re.match(r"  (?:tail )?call void @llvm\.lifetime", line):
                line = ""
            for name in LOCAL.findall(line):
                root = self.roots.find(name) if name in self.roots.values else None
                if root and root.kind is Kind.PRIVATE:
                    found.add(root.name)
        return found

    def _array(self, address: str) -> str:
        """The private variable that an address is in, if it can be followed; else nothing."""
        root = self.roots.find(address)
        return root.name if root and root.kind is Kind.PRIVATE and root.name not in self.escaping else ""

    def _grow(self) -> bool:
        before = len(self.bits) + len(self.arrays)
        for line in self.lines:
            store = _USE.match(line)
            if store and store[2] == "store" and (to := _ADDRESS.search(store[3])):
                value = store[3][: to.start()].rsplit(" ", 1)[-1]
                if value in self.bits and (array := self._array(to[1])):
                    self.arrays.add(array)
            found = _RESULT.match(line)
            if found and self._may_be_undefined(found[2], found[3]):
                self.bits.add(found[1])
                if found[2] == "load":
                    self.loaded[found[1]] = _kept_type(found[3])[0]
        return len(self.bits) + len(self.arrays) > before

    def _may_be_undefined(self, opcode: str, rest: str) -> bool:
        if opcode == "call" and not _FUNCTION.search(rest):
            return _SOURCE in rest
        if opcode == "load":
            address = _ADDRESS.search(rest)
            return bool(address and self._array(address[1]) in self.arrays) and not rest.startswith("<")
        return (
            (opcode in _FOLLOWED or opcode == "call")
            and "<" not in rest.split(",")[0]
            and any(o in self.bits for o in LOCAL.findall(rest))
        )

    def _bit(self, value: str) -> str:
        return _bit_name(value) if value in self.bits else "false"

    def _bits_of(self, line: str) -> list[str]:
        """The bit of the line's result, made before it."""
        found = _RESULT.match(line)
        if not found or found[1] not in self.bits:
            return []
        name, opcode, rest = found[1], found[2], found[3].split(", !")[0]
        bit, part = _bit_name(name), _part_name(name)
        if _SOURCE in rest:
            return [f"  {bit} = or i1 true, false"]
        if opcode == "load":
            address = _ADDRESS.search(rest)
            assert address
            kept, every = _kept_type(rest)
            load = f"  {part}.all = load {kept}, ptr {part}.at, align 1"
            return [*self._place_bit(part, address[1]), load, f"  {bit} = icmp eq {kept} {part}.all, {every}"]
        if opcode == "phi":
            ways = ", ".join(f"[ {self._bit(value)}, {label} ]" for value, label in _PHI.findall(rest))
            return [f"  {bit} = phi i1 {ways}"]
        if opcode == "select":
            condition, yes, no = (part.rsplit(" ", 1)[-1] for part in rest.split(", "))
            chosen = f"  {part}.of = select i1 {condition}, i1 {self._bit(yes)}, i1 {self._bit(no)}"
            return [chosen, f"  {bit} = or i1 {part}.of, {self._bit(condition)}"]
        operands = [o for o in LOCAL.findall(rest) if o in self.bits]
        first, *others = operands
        parts = [f"  {part}.{n} = or i1 {self._bit(each)}, {part}.{n - 1}" for n, each in enumerate(others, 1)]
        return [f"  {part}.0 = or i1 {self._bit(first)}, false", *parts, f"  {bit} = or i1 {part}.{len(others)}, false"]

    def _place_bit(self, bit: str, address: str) -> list[str]:
        """Where the bits of what is at an address of a private variable are kept: a byte for each of its bytes."""
        array = self._array(address)
        return [
            f"  {bit}.to = ptrtoint ptr {address} to i64",
            f"  {bit}.from = ptrtoint ptr {array} to i64",
            f"  {bit}.by = sub i64 {bit}.to, {bit}.from",
            f"  {bit}.at = getelementptr i8, ptr {_bit_name(array)}, i64 {bit}.by",
        ]

    def _after(self, line: str) -> list[str]:
        """Keeps the bits of private memory beside it."""
        found = _RESULT.match(line)
        if found and found[2] == "alloca" and found[1] in self.arrays:
            kind = found[3].rsplit(", align", 1)[0]
            size = f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"
            bits = _bit_name(found[1])
            clear = f"  call void @llvm.memset.p0.i64(ptr {bits}, i8 0, i64 {size}, i1 false)"
            return [f"  {bits} = alloca {kind}, align 16", clear]
        store = _USE.match(line)
        if not store or store[2] != "store" or not (to := _ADDRESS.search(store[3])):
            return []
        if self._array(to[1]) not in self.arrays:
            return []
        value = store[3][: to.start()].rsplit(" ", 1)[-1]
        bit = f"%pm.kept.{len(self.text)}.{next(_numbers)}"
        kept, every = _kept_type(store[3])
        if self.loaded.get(value) == kept:  # a copy, of which some bytes may be undefined
            made, bits = [], f"{_part_name(value)}.all"
        else:
            made, bits = [f"  {bit}.all = select i1 {self._bit(value)}, {kept} {every}, {kept} 0"], f"{bit}.all"
        return [*self._place_bit(bit, to[1]), *made, f"  store {kept} {bits}, ptr {bit}.at, align 1"]

    def _checks(self, line: str, place: Place) -> list[str]:
        """Before what the program's course or others' memory comes to depend on."""
        found = _USE.match(line)
        if not found:
            return []
        opcode, rest = found[2], found[3].split(", !")[0]
        used = []
        if opcode in ("br", "switch"):
            used = LOCAL.findall(rest.split(",")[0])
        elif opcode == "store" and (to := _ADDRESS.search(rest)):
            root = self.roots.find(to[1])
            if not (root and root.kind is Kind.PRIVATE):
                used = [rest[: to.start()].rsplit(" ", 1)[-1]]
        named = f"@pm.private.{self.files.setdefault(place[0], len(self.files))}"
        return [
            f"  call void @pm_check_private(i1 {self._bit(value)}, ptr {named}, i32 {place[1]})"
            for value in used
            if value in self.bits
        ]

    def _without_mark(self, line: str) -> str:
        """The pattern itself is any value."""
        return re.sub(rf"(?:tail )?call ({_SCALAR}) {_SOURCE}\w+\(\)[^,]*(,.*)?$", _plain_value, line)


_numbers = count()


def _plain_value(found: re.Match[str]) -> str:
    kind = found[1]
    value = "0" if kind.startswith("i") else _NANS[kind]
    return f"select i1 true, {kind} {value}, {kind} {value}"


def _bytes(access: str) -> int:
    """The size of what a load or store accesses. Raises NotUnderstood for what has no plain size."""
    kind = first_type(access.removeprefix("volatile "))
    count, element = 1, kind
    if vector := re.fullmatch(r"<(\d+) x (\w+)>", kind):
        count, element = int(vector[1]), vector[2]
    if found := re.fullmatch(r"i(\d+)", element):
        return (count * int(found[1]) + 7) // 8
    if element not in _SIZES:
        raise NotUnderstood(access)
    return count * _SIZES[element]


def _has_size(access: str) -> bool:
    try:
        return bool(_bytes(access))
    except NotUnderstood:
        return False


def _kept_type(access: str) -> tuple[str, int]:
    """The type that holds the bits of what a load or store accesses, and its value where all are undefined."""
    size = _bytes(access)
    return f"i{8 * size}", int.from_bytes(b"\1" * size, "little")


def _bit_name(name: str) -> str:
    return "%pm.bit." + re.sub(r'[%"]', "", name)


def _part_name(name: str) -> str:
    """What the names of the steps to a bit start with: `x.1` may be a value of its own beside `x`."""
    return "%pm.part." + re.sub(r'[%"]', "", name)
