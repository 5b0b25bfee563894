"""Integers that become too wide for their type on the way to an address.

Numbers of a program's data wrap as Metal says, and hashes wrap on purpose. A number that an address is computed of, or
that bounds such a number in a comparison, has no use for either: it is followed back from each address, through the
variables and functions of a module that clang has lowered and not optimized. A member of a class is one variable in
all of its objects, and an array or a vector is one. Signed sums are those that clang marks `nsw`; the marks go, as
Metal's integers wrap. An unsigned sum counts where it fits neither as signed nor as unsigned: a negative stride in a
`uint` is meant (ml-explore/mlx#4528). A function is let off by `__attribute__((annotate("porter: wraps")))`.

A signed sum is followed further than an unsigned one, which may be a hash: back from a quotient, a remainder and a
shift to the right. A signed product of numbers that addresses are computed of is a count, and matters where it is only
compared. A shift by the width or more is none that an address needs, though Metal defines it: by the amount modulo the
width, which data counts on. An integer that becomes a float and an integer again has to survive; one that is scaled in
between is an approximation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from aten_overlay.metal.passes.ir import LOCAL, functions, write_string
from aten_overlay.metal.sanitizer.places import Places

# A sum has a mark for a signed one, which `-fwrapv` would leave out.
FLAGS = ("-fno-wrapv",)
MEASURED = "overflow"  # the check
_OPERATIONS = {
    "trunc": 0,
    "add": 1,
    "sub": 2,
    "mul": 3,
    "zext": 4,
    "shl": 5,
    "fptosi": 6,
    "fptoui": 6,
    "sitofp": 7,
    "uitofp": 7,
}
_DIGITS = {"half": 11, "float": 24}  # bits of an integer that a float holds
_SIGNED = 8  # in `pm_width_site.operation`
_AMOUNT, _RIGHT = 2 << 16, 4 << 16  # what is checked of a shift: its amount alone; whether it is one to the right
_LINE = re.compile(rf"^  ({LOCAL.pattern}) = (?:tail )?(\w+) (.*)$")
_CALL = re.compile(rf"^  (?:({LOCAL.pattern}) = )?(?:tail )?call [^@\n]*(@[-\w.$]+)\((.*)\)[^()]*$")
_STORE = re.compile(rf"^  store (?:i\d+|half|float) (\S+), ptr ({LOCAL.pattern})[,\n]")
_LOAD = re.compile(rf"^(?:i\d+|half|float), ptr ({LOCAL.pattern})\b")
_POINTER = re.compile(rf"^ptr, ptr ({LOCAL.pattern})\b")
_COMPARED = re.compile(r"^(\w+) i\d+ (\S+), (\S+?)(?:,|$)")
_RETURNED = re.compile(rf"^  ret i\d+ ({LOCAL.pattern})")
_INDEX = re.compile(rf"\bi\d+ ({LOCAL.pattern})")
_SUM = re.compile(r"^((?:nuw |nsw )*)i(8|16|32) (\S+), (\S+?)(?:,|$)")
_SHIFT = re.compile(r"^(?:(?:nuw |nsw |exact )*)i(32|64) (\S+), (%\S+?)(?:,|$)")
_CONVERSION = re.compile(rf"^(?:nneg )?i(\d+) ({LOCAL.pattern}) to i(\d+)")
_ROUNDING = re.compile(rf"^(half|float) ({LOCAL.pattern}) to i(\d+)")
_FLOATED = re.compile(rf"^(?:nneg )?i(16|32|64) ({LOCAL.pattern}) to (half|float)")
_ELEMENT = re.compile(rf"^(?:inbounds |nusw |nuw )*(.+?), ptr ({LOCAL.pattern}), (.*?)(?:, !|$)")
_MEMBER = re.compile(r"^i32 0, i32 (\d+)$")
_SHARED = "%#"  # what the names of members begin with, which belong to no function
# Classes that hold data of all kinds: members of one object are no other's.
_PLAIN = re.compile(r'^%(?:"struct\.metal::(?:vec|packed)[^"]*"|struct\.anon[.\d]*|union\.anon[.\d]*)$')
_FILLED = re.compile(r"^@(?:_ZN5metal3vecI\w+EE(?:C[12]|aS)|llvm\.mem(?:cpy|move)\.)")  # their first argument
_VECTORS = re.compile(r"^@_ZN5metal(?:(ml|pl|mi)ERKNS_)?3vecI([ijstahc])Li(\d)EE(?:ES\d_|(mL|pL|mI)ERKS\d_)$")
_BITS = dict.fromkeys("ij", 32) | dict.fromkeys("st", 16) | dict.fromkeys("ahc", 8)
_LOCATION = re.compile(r"!dbg !(\d+)")
_MARKS = re.compile(r"(= (?:add|sub|mul|shl)) (?:nuw |nsw )+")
_POINTED = re.compile(r"(= getelementptr) (?:inbounds |nusw |nuw )+")
_ANNOTATED = re.compile(r'^(@[.\w]+) = [^\n]*section "llvm\.metadata"$', re.M)
_WRAPS = 'c"porter: wraps\\00"'
_FOLLOWED = frozenset(
    ("add", "sub", "mul", "shl", "udiv", "sext", "zext", "trunc", "phi", "select", "freeze", "extractvalue")
)
_REDUCED = frozenset(("sdiv", "srem", "ashr"))  # which unsigned hashes have in common with indices
_COPIED = frozenset(("fadd", "fsub", "fneg", "fpext", "fptrunc"))  # after which a float still stands for an integer
_LIBRARY = "@_ZN5metal"  # whose functions pass numbers on: `min`, `max`, `clamp`, `select`
# Its functions after which a float still stands for an integer.
_COPYING = re.compile(
    r"^@_ZN5metal(?:7precise|4fast)?"
    r"(?:3abs|4fabs|4ceil|5clamp|5floor|3max|4fmax|3min|4fmin|4rint|5round|6select|5trunc)[IE]"
)
_HOOK = "@pm_check_width"

Value = tuple[str, str]  # of a function, by name


def watch_widths(module: str) -> str:
    """`module` with a call of the runtime after each such operation, and with integers that wrap."""
    parts = [_Function.read(name, module[start:end]) for start, end, name in functions(module)]
    flow = _Flow.of(parts)
    wraps, places, sites = _find_let_off(module), Places.read(module), dict[str, int]()
    files, numbers = dict[str, int](), count()
    pieces, at = [], 0
    for (start, end, name), function in zip(functions(module), parts, strict=True):
        if name in wraps:
            continue
        pieces.append(module[at:start])
        for line in function.lines:
            described = function.describe_line(line)
            operation = next((o for value, o in described if flow.matters(_at(name, value), o)), None)
            placed = _LOCATION.search(line) if operation else None
            place = places.find(placed[1]) if placed else None
            if place and operation:
                file = f"@pm.width.file.{files.setdefault(place[0], len(files))}"
                site = f"{{ ptr {file}, i32 {place[1]}, i32 {operation.number} }}"
                site_number = sites.setdefault(site, len(sites))
                pieces += operation.write(numbers, f"@pm.width.{site_number}")
            pieces.append(f"{line}\n")
        pieces[-1] = pieces[-1].removesuffix("\n")
        at = end
    text = _POINTED.sub(r"\1 ", _MARKS.sub(r"\1 ", "".join([*pieces, module[at:]])))
    names = [f"@pm.width.file.{n} = private constant {write_string(file)}" for file, n in files.items()]
    tables = [f"@pm.width.{n} = private constant {{ ptr, i32, i32 }} {site}" for site, n in sites.items()]
    declared = f"declare void {_HOOK}(i64, i64, ptr) nounwind memory(inaccessiblemem: readwrite)"
    return "\n".join([text, *names, *tables, declared, ""]) if sites else text


@dataclass(frozen=True)
class _Operation:
    """An operation that is checked: what the runtime knows it by, and its operands with their type. Of vectors the
    operands are addresses of `elements`."""

    number: int
    bits: int
    operands: tuple[str, ...]
    type: str = ""
    elements: int = 0
    is_marked: bool = False  # a signed sum or product of 32 bits
    is_float: bool = False  # makes a float of an integer

    def write(self, numbers: Iterator[int], site: str) -> Iterator[str]:
        for element in range(max(self.elements, 1)):
            names = []
            for operand in self.operands:
                name = f"%pm.wide.{next(numbers)}"
                yield from self._widen(name, operand, element)
                names.append(name)
            yield f"  call void {_HOOK}(i64 {names[0]}, i64 {names[-1]}, ptr {site})\n"

    def _widen(self, name: str, operand: str, element: int) -> Iterator[str]:
        if self.elements:
            yield f"  {name}.at = getelementptr i{self.bits}, ptr {operand}, i64 {element}\n"
            yield f"  {name}.value = load i{self.bits}, ptr {name}.at\n"
            operand = f"{name}.value"
        if self.type == "half":
            yield f"  {name}.float = fpext half {operand} to float\n"
            operand = f"{name}.float"
        if self.type:
            yield f"  {name}.bits = bitcast float {operand} to i32\n"
            operand = f"{name}.bits"
        conversion, bits = ("zext", 32) if self.type else ("bitcast" if self.bits == 64 else "zext", self.bits)
        yield f"  {name} = {conversion} i{bits} {operand} to i64\n"


@dataclass
class _Function:
    """A lowered function: its values by name, and who uses each."""

    name: str
    lines: list[str]
    parameters: list[str]
    results: dict[str, tuple[str, str]] = field(default_factory=dict)  # opcode and the rest of the line
    calls: dict[str, tuple[str, list[str]]] = field(default_factory=dict)  # by result: callee, arguments
    arguments: list[tuple[str, list[str]]] = field(default_factory=list)  # of every call
    stored: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by variable
    returned: list[str] = field(default_factory=list)
    compared: list[tuple[str, str]] = field(default_factory=list)
    ordered: list[str] = field(default_factory=list)  # what is compared with another number, as signed ones
    indices: list[str] = field(default_factory=list)
    signed: set[str] = field(default_factory=set)  # values and variables that something takes as signed
    unsigned: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, name: str, text: str) -> _Function:
        head, *lines = text.removesuffix("\n").split("\n")
        function = cls(name, [head, *lines], _read_arguments(head[head.index(f"{name}(") + len(name) + 1 :]))
        for line in lines:
            function._read_line(line)
        for variable, values in function.stored.items():  # a variable is what its loads are
            for opposite in (function.signed, function.unsigned):
                if variable in opposite:
                    opposite.update(values)
        return function

    def _read_line(self, line: str) -> None:
        if called := _CALL.match(line):
            arguments = _read_arguments(called[3])
            if _FILLED.match(called[2]) or (called[2].startswith(_LIBRARY) and not called[1]):
                self.stored[self.find_place(arguments[0])].update(map(self.find_place, arguments[1:]))
            self.arguments.append((called[2], arguments))
            if called[1]:
                self.calls[called[1]] = called[2], arguments
            self.signed.update(re.findall(rf"\bsignext ({LOCAL.pattern})", called[3]))
            self.unsigned.update(re.findall(rf"\bzeroext ({LOCAL.pattern})", called[3]))
        elif store := _STORE.match(line):
            self.stored[self.find_place(store[2])].add(store[1])
        elif returned := _RETURNED.match(line):
            self.returned.append(returned[1])
        elif result := _LINE.match(line):
            self._read_result(*result.groups())

    def _read_result(self, name: str, opcode: str, rest: str) -> None:
        self.results[name] = opcode, rest
        if opcode == "getelementptr":
            self.indices += _INDEX.findall(rest)
        if opcode == "icmp" and (compared := _COMPARED.match(rest)):
            self.compared.append((compared[2], compared[3]))
            if compared[1].startswith("s"):
                self.ordered += compared.groups()[1:]
            sides = self.signed if compared[1].startswith("s") else self.unsigned
            if compared[1] not in ("eq", "ne"):
                sides.update(self._with_variables(compared.groups()[1:]))
        elif opcode in ("sext", "sdiv", "srem", "ashr", "sitofp") or (opcode in _OPERATIONS and "nsw " in rest):
            self.signed.update(self._with_variables(LOCAL.findall(rest)))
        elif opcode in ("zext", "udiv", "urem", "lshr", "uitofp"):
            self.unsigned.update(self._with_variables(LOCAL.findall(rest)))

    def _with_variables(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield name
            opcode, rest = self.results.get(name, ("", ""))
            if opcode == "load" and (loaded := _LOAD.match(rest)):
                yield self.find_place(loaded[1])

    def find_place(self, pointer: str) -> str:
        """What lies at an address: a variable as a whole, or a member of a class, in whichever object; the address
        where neither is known."""
        opcode, rest = self.results.get(pointer, ("", ""))
        if opcode != "getelementptr" or not (element := _ELEMENT.match(rest)):
            return pointer
        member = _MEMBER.match(element[3])
        if member and element[1].startswith("%") and not _PLAIN.match(element[1]):
            return f"{_SHARED}{element[1]}.{member[1]}"
        return self.find_place(element[2])

    def describe_line(self, line: str) -> Iterator[tuple[str, _Operation]]:
        """What is checked of a line, beside the value or variable that has to be on its way to an address."""
        result = _LINE.match(line)
        operation = self.describe(*result.groups()) if result else None
        if result and operation:
            yield result[1], operation
        if (called := _CALL.match(line)) and (vectors := _VECTORS.match(called[2])):
            pair = _read_arguments(called[3])[-2:]
            sum_or_product = {"m": "mul", "p": "add"}[(vectors[1] or vectors[4])[0]]
            if (vectors[1] or vectors[4]) in ("mi", "mI"):
                sum_or_product = "sub"
            is_signed = _SIGNED if vectors[2] in "isac" else 0
            bits = _BITS[vectors[2]]
            number = _OPERATIONS[sum_or_product] | is_signed | bits << 8
            described = _Operation(number, bits, tuple(pair), elements=int(vectors[3]))
            yield called[1] or self.find_place(_read_arguments(called[3])[0]), described
            if vectors[4]:
                yield self.find_place(pair[0]), described

    def describe(self, name: str, opcode: str, rest: str) -> _Operation | None:
        """What is checked of an operation on its way to an address; None for nothing."""
        if opcode in ("trunc", "zext") and (converted := _CONVERSION.match(rest)):
            bits, to = int(converted[1]), int(converted[3])
            if (opcode == "trunc" and to < 8) or (opcode == "zext" and (bits, to) != (32, 64)):
                return None
            is_signed = _SIGNED if opcode == "trunc" and name in self.signed else 0
            return _Operation(_OPERATIONS[opcode] | is_signed | bits << 8 | to << 16, bits, (converted[2],))
        if opcode in ("fptosi", "fptoui") and (rounded := _ROUNDING.match(rest)):
            to, is_signed = int(rounded[3]), _SIGNED if opcode == "fptosi" else 0
            if to < 8 or (is_signed and to > 16):  # it becomes the nearest there is, which no test for bounds lets pass
                return None
            return _Operation(_OPERATIONS[opcode] | is_signed | 32 << 8 | to << 16, 32, (rounded[2],), rounded[1])
        if opcode in ("sitofp", "uitofp") and (floated := _FLOATED.match(rest)):
            bits, digits = int(floated[1]), _DIGITS[floated[3]]
            if bits <= digits:
                return None
            is_signed = _SIGNED if opcode == "sitofp" else 0
            number = _OPERATIONS[opcode] | is_signed | bits << 8 | digits << 16
            return _Operation(number, bits, (floated[2],), is_float=True)
        summed = _SUM.match(rest) if opcode in ("add", "sub", "mul", "shl") else None
        if summed is None:
            shifted = _SHIFT.match(rest) if opcode in ("shl", "lshr", "ashr") else None
            if shifted is None:
                return None
            number = _OPERATIONS["shl"] | _AMOUNT | (opcode != "shl") * _RIGHT | int(shifted[1]) << 8
            return _Operation(number | (opcode == "ashr") * _SIGNED, int(shifted[1]), (shifted[2], shifted[3]))
        bits, unmarked = int(summed[2]), opcode == "shl" or summed[2] != "32"
        is_signed = _SIGNED if "nsw" in summed[1] or (unmarked and name in self.signed) else 0
        strict = bits < 32 and not is_signed and name in self.unsigned  # its operands had 32 bits, which clang has cut
        number = _OPERATIONS[opcode] | is_signed | bits << 8 | strict << 16
        return _Operation(number, bits, (summed[3], summed[4]), is_marked="nsw" in summed[1] and bits == 32)

    def find_variable(self, name: str) -> str:
        """The variable that a value was loaded from, whatever its width is now; the value where there is none."""
        opcode, rest = self.results.get(name, ("", ""))
        if opcode == "load" and (loaded := _LOAD.match(rest)):
            return self.find_place(loaded[1])
        converted = _CONVERSION.match(rest) if opcode in ("sext", "zext", "trunc") else None
        return self.find_variable(converted[2]) if converted else name

    def find_counts(self, wanted: Iterable[str], compared: Iterable[str]) -> Iterator[str]:
        """Which of the values that are compared are signed products of numbers that are wanted, and of others that the
        launch binds, or constant."""
        counts = {self._find_number(name) for name in wanted}
        for name in compared:
            opcode, rest = self.results.get(name, ("", ""))
            if opcode == "mul" and "nsw " in rest:
                factors = set(self._find_factors(name))
                if factors & counts and all(f.startswith("*") for f in factors - counts):
                    yield name

    def _find_factors(self, name: str) -> Iterator[str]:
        opcode, rest = self.results.get(name, ("", ""))
        summed = _SUM.match(rest) if opcode in ("add", "sub", "mul") else None
        if summed:
            for operand in summed.groups()[2:]:
                yield from self._find_factors(operand)
        elif name.startswith("%"):
            yield self._find_number(name)

    def _find_number(self, name: str) -> str:
        """As `find_variable`, and one name for what lies behind a variable that holds an address: an argument that is
        bound is loaded anew wherever it is used."""
        variable = self.find_variable(name)
        opcode, rest = self.results.get(variable, ("", ""))
        behind = _POINTER.match(rest) if opcode == "load" else None
        return f"*{behind[1]}" if behind else variable

    def sources(self, name: str, further: frozenset[str] = frozenset()) -> Iterator[str]:
        """The values of this function that a value is computed of, but for what a call of the module's returns.
        `further` are operations whose operands count too."""
        if name in self.stored:
            yield from self.stored[name]
        opcode, rest = self.results.get(name, ("", ""))
        if opcode == "load" and (loaded := _LOAD.match(rest)):
            yield self.find_place(loaded[1])
        elif opcode == "select":
            yield from LOCAL.findall(rest)[1:]
        elif opcode in _FOLLOWED or opcode in further:
            yield from LOCAL.findall(rest.split(", !")[0])


@dataclass
class _Flow:
    """Which values reach an address, or are compared with one that does; `signed` are values that matter where they are
    signed sums."""

    by_name: dict[str, _Function]
    callers: dict[str, list[tuple[str, list[str]]]]  # of each function: the caller, and the arguments
    members: dict[str, list[Value]]  # of classes: what is stored there
    wanted: set[Value] = field(default_factory=set)
    signed: set[Value] = field(default_factory=set)
    floats: set[Value] = field(default_factory=set)  # that become numbers which are wanted, and were not scaled

    @classmethod
    def of(cls, parts: Iterable[_Function]) -> _Flow:
        by_name = {function.name: function for function in parts}
        callers: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
        for function in by_name.values():
            for callee, arguments in function.arguments:
                callers[callee].append((function.name, arguments))
        members: dict[str, list[Value]] = defaultdict(list)
        for name, function in by_name.items():
            for variable, values in function.stored.items():
                if variable.startswith(_SHARED):
                    members[variable] += (_at(name, value) for value in values)
        flow = cls(by_name, callers, members)
        pending = [(name, index) for name, function in by_name.items() for index in function.indices]
        while pending:
            flow._follow(pending, flow.wanted)
            pending = list(flow._find_bounds())
        flow._follow([*flow.wanted], flow.signed, _REDUCED)
        flow.signed |= flow._find_counts()
        flow._follow([*flow._find_rounded()], flow.floats, _COPIED)
        return flow

    def matters(self, value: Value, operation: _Operation) -> bool:
        """Whether what an operation makes of a value matters if it is too wide."""
        if operation.is_float:
            return value in self.floats
        return value in self.wanted or (operation.is_marked and value in self.signed)

    def _find_rounded(self) -> Iterator[Value]:
        """The floats that become integers which are wanted."""
        for owner, name in self.wanted:
            opcode, rest = self.by_name[owner].results.get(name, ("", "")) if owner else ("", "")
            if opcode in ("fptosi", "fptoui") and (rounded := _ROUNDING.match(rest)):
                yield owner, rounded[2]

    def _follow(self, pending: list[Value], reached: set[Value], further: frozenset[str] = frozenset()) -> None:
        while pending:
            value = pending.pop()
            if value not in reached and value[1].startswith("%"):
                reached.add(value)
                pending += self._sources(*value, further)

    def _find_counts(self) -> set[Value]:
        """Products of numbers that are wanted, where a comparison is all that they reach."""
        compared = set[Value]()
        self._follow([(name, side) for name, f in self.by_name.items() for side in f.ordered], compared)
        wanted, products = _by_owner(self.wanted), _by_owner(compared)
        return {
            (owner, name)
            for owner, function in self.by_name.items()
            for name in function.find_counts([*wanted[owner], *wanted[""]], products[owner])
        }

    def _sources(self, owner: str, name: str, further: frozenset[str]) -> Iterator[Value]:
        if not owner:
            yield from self.members[name]
            return
        function = self.by_name[owner]
        yield from (_at(owner, source) for source in function.sources(name, further))
        if name in function.parameters and not owner.startswith(_LIBRARY):
            place = function.parameters.index(name)
            for caller, arguments in self.callers[owner]:
                yield from ((caller, argument) for argument in arguments[place : place + 1])
        if name in function.calls:
            callee, arguments = function.calls[name]
            if callee.startswith(_LIBRARY):
                if further is _COPIED and not _COPYING.match(callee):
                    return
                yield from ((owner, argument) for argument in arguments)
            elif callee in self.by_name:
                yield from ((callee, returned) for returned in self.by_name[callee].returned)

    def _find_bounds(self) -> Iterator[Value]:
        for name, function in self.by_name.items():
            for pair in function.compared:
                values = [(name, side) for side in pair]
                if any(_at(name, function.find_variable(side)) in self.wanted for side in pair):
                    yield from (v for v in values if v not in self.wanted and v[1].startswith("%"))


def _at(owner: str, name: str) -> Value:
    """A value of a function, or a member of a class, which belongs to none."""
    return ("" if name.startswith(_SHARED) else owner, name)


def _by_owner(values: Iterable[Value]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = defaultdict(list)
    for owner, name in values:
        names[owner].append(name)
    return names


def _read_arguments(text: str) -> list[str]:
    """What ends each of the arguments of a call, or parameters of a definition: its name, or a constant."""
    pieces, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character == ")" and depth == 0:
            text = text[:at]
            break
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            pieces.append(text[start:at])
            start = at + 1
    return [piece.rsplit(" ", 1)[-1] for piece in [*pieces, text[start:]] if piece.strip()]


def _find_let_off(module: str) -> set[str]:
    """The functions that are annotated as ones whose numbers wrap."""
    texts = [text[1] for text in _ANNOTATED.finditer(module) if _WRAPS in text[0]]
    listed = re.search(r"^@llvm\.global\.annotations = (.*)$", module, re.M)
    pairs = re.findall(r"\{ ptr (@[-\w.$]+), ptr (@[.\w]+)", listed[1]) if listed else []
    return {name for name, text in pairs if text in texts}
