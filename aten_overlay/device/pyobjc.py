"""pyobjc's modules `Metal`, `MetalPerformanceShaders`, `Foundation`, `objc`, over the stand-in of Apple's frameworks.

A message is a method of the object, its colons written as underscores: `device.newBufferWithLength_options_(64, 0)`.
All classes, constants and methods that the stand-in has are here, as its headers and its classes declare them. As with
pyobjc a text is a `str`, a structure a tuple with names, an error the second of two results, and a reference ends with
the Python object.
"""

from __future__ import annotations

import ctypes
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

from aten_overlay import toolchain
from aten_overlay.apple import build

HERE = Path(__file__).resolve().parent
MODULES = ("objc", "Foundation", "Metal", "MetalPerformanceShaders")
_QUALIFIERS = "rnNoORVA"  # of a type's encoding: const, in, inout, out, ...
_ENUMERATOR = re.compile(r"\b((?:MTL|NS)\w+)\s*=\s*([^,;{}]+?)\s*(?=[,}])")
_CLASS, _TEXT = (
    re.compile(r"^(?:__attribute__\(\(\w+\)\) )?@interface (\w+)", re.M),
    re.compile(r"^extern \w+\*? (?:const )?(\w+);", re.M),
)
_COMMENT = re.compile(r"//[^\n]*")
# What an argument of a block is: clang's encoding of a block does not say.
_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "addCompletedHandler:": ("@",), "addScheduledHandler:": ("@",), "notifyListener:atValue:block:": ("@", "Q"),
    "newBufferWithBytesNoCopy:length:options:deallocator:": ("^v", "Q"),
    "newLibraryWithSource:options:completionHandler:": ("@", "@"),
    "newFunctionWithName:constantValues:completionHandler:": ("@", "@"),
    "newComputePipelineStateWithFunction:completionHandler:": ("@", "@"),
}  # fmt: skip
_INTEGERS = {
    "c": ctypes.c_int8, "C": ctypes.c_uint8, "s": ctypes.c_int16, "S": ctypes.c_uint16, "i": ctypes.c_int32,
    "I": ctypes.c_uint32, "l": ctypes.c_int64, "L": ctypes.c_uint64, "q": ctypes.c_int64, "Q": ctypes.c_uint64,
}  # fmt: skip


class MTLSize(NamedTuple):
    width: int
    height: int
    depth: int


class NSRange(NamedTuple):
    location: int
    length: int


class NSOperatingSystemVersion(NamedTuple):
    majorVersion: int
    minorVersion: int
    patchVersion: int


_STRUCTURES: Mapping[str, Callable[..., tuple[int, ...]]] = {
    "QQQ": MTLSize, "QQ": NSRange, "qqq": NSOperatingSystemVersion,
}  # fmt: skip


class error(Exception):
    """What a message raises where Objective-C would throw, or the stand-in refuses."""


class _Registers(ctypes.Structure):
    _fields_ = (("integers", ctypes.c_uint64 * 6), ("reals", ctypes.c_uint64 * 8))


class _Selector(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("types", ctypes.c_char_p))


class _Block(ctypes.Structure):
    _fields_ = (
        ("isa", ctypes.c_void_p), ("flags", ctypes.c_int32), ("reserved", ctypes.c_int32),
        ("invoke", ctypes.c_void_p), ("descriptor", ctypes.c_void_p),
    )  # fmt: skip


_GLOBAL = 1 << 28  # a block that nobody copies
_LONGEST = 24  # words of arguments on the stack


@dataclass(frozen=True)
class _Method:
    """What answers a selector: its code, the selector as it is passed, the types of its result and of its arguments."""

    address: int
    selector: _Selector
    result: str
    arguments: tuple[str, ...]


@cache
def _libraries() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """The frameworks, and what calls their methods."""
    import aten_overlay
    from aten_overlay.device import frameworks

    apple = frameworks.load(aten_overlay.start()).library
    flags = ("-std=c++20", "-I", str(build.HERE))
    link = (*toolchain.link_with(build.build_frameworks()), "-lstdc++")
    library = toolchain.build("porter_messages", [HERE / "messages.cpp"], flags, [build.INCLUDE], link=link)
    messages = ctypes.CDLL(str(library))
    messages.porter_find_method.restype = messages.porter_call.restype = ctypes.c_char_p
    for name in ("objc_lookup_class", "porter_make_string", "porter_at", "porter_pool_push", "porter_data"):
        getattr(apple, name).restype = ctypes.c_void_p
    for name in ("porter_kind", "porter_class_name", "porter_string"):
        getattr(apple, name).restype = ctypes.c_char_p
    return apple, messages


@cache
def _intern(name: str, types: bytes) -> _Selector:
    return _Selector(name.encode(), types)


def _find_method(pointer: int, selector: str) -> _Method | None:
    address = ctypes.c_void_p()
    types = _libraries()[1].porter_find_method(ctypes.c_void_p(pointer), selector.encode(), ctypes.byref(address))
    if types is None:
        return None
    result, _, _, *arguments = split_types(types.decode())
    return _Method(address.value or 0, _intern(selector, types), result, tuple(arguments))


def split_types(text: str) -> list[str]:
    """The types of an encoding: of the result, the object, the selector and the arguments, without offsets.

    A structure is `{` and the types of its fields; a pointer is `^` and what it points to.
    """
    types, at = list[str](), 0
    while at < len(text):
        kind, at = _read_type(text, at)
        types.append(kind)
        while at < len(text) and text[at].isdigit():
            at += 1
    return types


def _read_type(text: str, at: int) -> tuple[str, int]:
    while text[at] in _QUALIFIERS:
        at += 1
    first = text[at]
    if first == "^":
        target, end = _read_type(text, at + 1)
        return f"^{target}", end
    if first == "@":
        end = text.index('"', at + 2) + 1 if text[at + 1 : at + 2] == '"' else at + 1
        return ("@?", at + 2) if text[at + 1 : at + 2] == "?" else ("@", end)
    if first in "{[(":
        close = {"{": "}", "[": "]", "(": ")"}[first]
        depth, end = 1, at + 1
        while depth:
            depth += (text[end] == first) - (text[end] == close)
            end += 1
        fields = text[at + 1 : end - 1].partition("=")[2] if first == "{" else ""
        return first + "".join(split_types(re.sub(r'"\w*"', "", fields))), end
    return first, at + 1


class Object:
    """An object of Objective-C: each attribute is a message that its class answers."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    def __getattr__(self, name: str) -> Callable[..., Any]:
        selector = name.replace("_", ":") if name.endswith("_") else name
        method = None if name.startswith("__") else _find_method(self._pointer, selector)
        if method is None:
            kind = _libraries()[0].porter_class_name(ctypes.c_void_p(self._pointer)).decode()
            raise AttributeError(f"PTR120: {kind} has no method `{selector}` here", name=name, obj=self)
        return lambda *arguments: _send(self, method, arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Object) and self._pointer == other._pointer

    def __hash__(self) -> int:
        return hash(self._pointer)

    def __repr__(self) -> str:
        return f"<{_libraries()[0].porter_class_name(ctypes.c_void_p(self._pointer)).decode()} {self._pointer:#x}>"


class Class(Object):
    """A class, which nobody holds a reference to."""


class Instance(Object):
    """An object with a reference that ends with this one."""

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing():
            _libraries()[0].porter_release(ctypes.c_void_p(self._pointer))

    def __str__(self) -> str:
        return str(self.localizedDescription() if _is_kind(self, "NSError") else self.description())


class Collection(Instance):
    """An array, or a dictionary: as Python has them too."""

    def __len__(self) -> int:
        return int(self.count())

    def __getitem__(self, key: Any) -> Any:
        if hasattr(self, "objectForKey_"):
            value = self.objectForKey_(key)
            if value is None:
                raise KeyError(key)
            return value
        if isinstance(key, slice):
            return [self[at] for at in range(*key.indices(len(self)))]
        at = key + len(self) if key < 0 else key
        if not 0 <= at < len(self):
            raise IndexError(key)
        return self.objectAtIndex_(at)

    def __iter__(self) -> Iterator[Any]:
        if hasattr(self, "allKeys"):
            yield from self.allKeys()
        else:
            yield from (self[at] for at in range(len(self)))


class varlist:
    """Memory at an address, whose size the caller knows, as pyobjc returns it from `contents`."""

    def __init__(self, pointer: int, owner: Object) -> None:
        self._pointer, self._owner = pointer, owner

    def as_buffer(self, count: int) -> memoryview:
        """The first bytes, which are the buffer's own."""
        array = (ctypes.c_char * count).from_address(self._pointer)
        array._owner = self._owner  # type: ignore[attr-defined]
        return memoryview(array).cast("B")

    def as_tuple(self, count: int) -> tuple[bytes, ...]:
        return tuple(self[:count])

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [bytes(self.as_buffer(at.stop)[n : n + 1]) for n in range(at.start or 0, at.stop)]
        return bytes(self.as_buffer(at + 1)[at : at + 1])

    def __setitem__(self, at: int, value: bytes) -> None:
        self.as_buffer(at + 1)[at : at + 1] = value


class autorelease_pool:
    """A block at whose end objects that nobody holds end, as `objc.autorelease_pool()`: they end with each message."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


NULL = ctypes.c_void_p(None)


def _is_kind(receiver: Object, name: str) -> bool:
    return bool(receiver.isKindOfClass_(find_class(name)))


def find_class(name: str) -> Class:
    """`objc.lookUpClass`. Raises `error` for a class that the stand-in does not have."""
    pointer = _libraries()[0].objc_lookup_class(name.encode())
    if pointer is None:
        raise error(f"PTR120: there is no class {name} here")
    return Class(pointer)


@dataclass
class _Call:
    """The arguments of a message as registers and the stack hold them, what has to live until it returns, and where
    its results by reference are.
    """

    selector: str
    integers: list[int]
    reals: list[int]
    stack: list[int]
    alive: list[object]
    returned: list[ctypes.c_void_p]

    def add(self, kind: str, value: Any) -> None:
        if kind[0] in "df":
            self._add_real(struct.pack("<d" if kind == "d" else "<fxxxx", value))
        elif kind[0] == "{":
            self._add_structure(kind[1:], value)
        else:
            self._add_word(self._word(kind, value))

    def _add_word(self, word: int) -> None:
        (self.integers if len(self.integers) < 6 else self.stack).append(word & (1 << 64) - 1)

    def _add_real(self, data: bytes) -> None:
        (self.reals if len(self.reals) < 8 else self.stack).append(int.from_bytes(data, "little"))

    def _add_structure(self, fields: str, value: Sequence[Any]) -> None:
        words = tuple(value)
        if set(fields) - set("qQlL") or len(words) != len(fields):
            raise error(f"PTR120: `{self.selector}` takes a structure of `{fields}`, and {value!r} is none")
        fits = len(words) <= 2 and len(self.integers) + len(words) <= 6
        (self.integers if fits else self.stack).extend(int(word) & (1 << 64) - 1 for word in words)

    def _word(self, kind: str, value: Any) -> int:
        if kind in _INTEGERS:
            number = value.__index__()
            if _INTEGERS[kind](number).value != number:
                raise OverflowError(f"`{self.selector}`: {number} is out of range")
            return int(number)
        if kind == "B":
            return int(bool(value))
        if kind == "@?":
            return self._block(value)
        if kind in "@#":
            return self._object(value)
        if kind == ":":
            selector = _intern(str(value), b"")
            return ctypes.addressof(selector)
        if kind == "^@" and value is None:
            place = ctypes.c_void_p()
            self.returned.append(place)
            return ctypes.addressof(place)
        return self._address(kind, value)

    def _object(self, value: Any) -> int:
        if isinstance(value, varlist):
            raise error(f"`{self.selector}` takes an object, not memory")
        converted = value if value is None or isinstance(value, Object) else make_object(value)
        self.alive.append(converted)
        return 0 if converted is None else converted._pointer

    def _address(self, kind: str, value: Any) -> int:
        """Of bytes, of any object with a buffer, of an array of objects, or a number that is one."""
        if value is None or value is NULL:
            return 0
        if isinstance(value, ctypes.c_void_p):
            return value.value or 0
        if isinstance(value, int):
            return value
        if isinstance(value, varlist):
            return value._pointer
        if kind == "^@":
            objects = (ctypes.c_void_p * len(value))(*(self._object(item) for item in value))
            self.alive.append(objects)
            return ctypes.addressof(objects)
        view = memoryview(value.encode() + b"\0" if isinstance(value, str) else value)
        if not view.contiguous:
            raise error(f"`{self.selector}` takes bytes that are dense")
        flat = view.cast("B") if view.nbytes else memoryview(b"\0")
        memory: Any = (ctypes.c_char * len(flat)).from_buffer(flat) if not flat.readonly else flat.tobytes()
        self.alive.append(memory)
        return ctypes.addressof(memory) if not isinstance(memory, bytes) else _address_of(memory)

    def _block(self, function: Callable[..., object] | None) -> int:
        if function is None:
            return 0
        kinds = _BLOCKS.get(self.selector)
        if kinds is None:
            raise error(f"PTR120: `{self.selector}` takes a block whose arguments are not known here")

        def invoke(_: int, *values: int) -> None:
            function(
                *(
                    _receive(kind, value, False) if kind == "@" else value
                    for kind, value in zip(kinds, values, strict=True)
                )
            )

        types = [ctypes.c_uint64 if kind == "Q" else ctypes.c_void_p for kind in kinds]
        code = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *types)(invoke)
        isa = ctypes.addressof(ctypes.c_void_p.in_dll(_libraries()[0], "_NSConcreteGlobalBlock"))
        block = _Block(isa, _GLOBAL, 0, ctypes.cast(code, ctypes.c_void_p).value, None)
        _kept.append((block, code))  # it may be called at any time
        return ctypes.addressof(block)


_kept: list[object] = []


def _address_of(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def make_object(value: Any) -> Object:
    """The object that a Python value is where a message takes one. Raises TypeError for a value that is none."""
    if isinstance(value, str):
        return _make("NSString", "stringWithUTF8String_", value)
    if isinstance(value, bool):
        return _make("NSNumber", "numberWithBool_", value)
    if isinstance(value, int):
        return _make("NSNumber", "numberWithUnsignedLongLong_" if value >= 1 << 63 else "numberWithLongLong_", value)
    if isinstance(value, float):
        return _make("NSNumber", "numberWithDouble_", value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _make("NSData", "dataWithBytes_length_", value, memoryview(value).nbytes)
    if isinstance(value, Mapping):
        keys, values = list(value), list(value.values())
        return _make("NSDictionary", "dictionaryWithObjects_forKeys_count_", values, keys, len(keys))
    if isinstance(value, Sequence):
        return _make("NSArray", "arrayWithObjects_count_", list(value), len(value))
    raise TypeError(f"{type(value).__name__} is no object of Objective-C")


def _make(name: str, message: str, *arguments: object) -> Object:
    receiver = find_class(name)
    method = _find_method(receiver._pointer, message.replace("_", ":"))
    assert method, f"{name} has {message}"
    result = _send(receiver, method, arguments, as_it_is=True)
    assert isinstance(result, Object)
    return result


def _send(receiver: Object, method: _Method, arguments: Sequence[Any], as_it_is: bool = False) -> Any:
    """What a message returns, then what it returns by reference; a text or a number stays an object `as_it_is`."""
    name = str(method.selector.name.decode())
    if len(arguments) != len(method.arguments):
        raise TypeError(f"`{name}` takes {len(method.arguments)} arguments, not {len(arguments)}")
    apple, messages = _libraries()
    structure = method.result.startswith("{") and len(method.result) - 1 > 2
    memory = (ctypes.c_uint64 * max(len(method.result), 2))()
    call = _Call(name, [ctypes.addressof(memory)] if structure else [], [], [], [], [])
    call.integers += [receiver._pointer, ctypes.addressof(method.selector)]
    pool = apple.porter_pool_push()
    try:
        for kind, value in zip(method.arguments, arguments, strict=True):
            call.add(kind, value)
        if len(call.stack) > _LONGEST:
            raise error(f"`{name}` takes more than {_LONGEST} words on the stack")
        if name.startswith("init"):  # takes the reference of its receiver, which Python still has
            apple.porter_retain(ctypes.c_void_p(receiver._pointer))
        registers = _Registers((ctypes.c_uint64 * 6)(*call.integers), (ctypes.c_uint64 * 8)(*call.reals))
        stack = (ctypes.c_uint64 * _LONGEST)(*call.stack)
        result = memory if not structure else (ctypes.c_uint64 * 2)()
        failure = messages.porter_call(
            ctypes.c_void_p(method.address), ctypes.byref(registers), ctypes.byref(stack),
            ctypes.c_char(method.result[0].encode()), ctypes.byref(result),
        )  # fmt: skip
        if failure is not None:
            raise error(failure.decode(errors="replace"))
        is_new = re.match(r"(alloc|new|copy|mutableCopy|init)(?![a-z])", name) is not None
        value = _read_result(method.result, memory, receiver, is_new, as_it_is)
        others = tuple(_receive("@", place.value or 0, False) for place in call.returned)
        return (value, *others) if others and method.result != "v" else others or value
    finally:
        apple.porter_pool_pop(ctypes.c_void_p(pool))


def _read_result(kind: str, memory: Any, receiver: Object, is_new: bool, as_it_is: bool) -> Any:
    word, data = int(memory[0]), bytes(memory)
    if kind == "v":
        return None
    if kind in "df":
        return struct.unpack_from("<" + kind, data)[0]
    if kind == "B":
        return bool(word & 0xFF)
    if kind in _INTEGERS:
        return _INTEGERS[kind](word).value
    if kind[0] == "{":
        fields = kind[1:].replace("L", "Q").replace("l", "q")
        numbers = struct.unpack_from(f"<{fields}", data)
        return _STRUCTURES[fields](*numbers) if fields in _STRUCTURES else numbers
    if kind == "#":
        return Class(word) if word else None
    if kind == "*":
        return ctypes.string_at(word) if word else None
    if kind[0] == "^":
        return varlist(word, receiver) if word else None
    return _receive(kind, word, is_new, as_it_is)


def _receive(kind: str, word: int, is_new: bool, as_it_is: bool = False) -> Any:
    """An object that a message returns, or what Python has for it; `is_new` where a reference comes with it."""
    apple, pointer = _libraries()[0], ctypes.c_void_p(word)
    if not word:
        return None
    what = apple.porter_kind(pointer).decode()
    if what == "class":
        return Class(word)
    if not is_new:
        apple.porter_retain(pointer)
    held = Collection(word) if what in ("array", "dictionary") else Instance(word)
    if as_it_is:
        return held
    if what == "string":
        return apple.porter_string(pointer).decode(errors="surrogateescape")
    if what == "number":
        integer, real = ctypes.c_int64(), ctypes.c_double()
        return real.value if apple.porter_number(pointer, ctypes.byref(integer), ctypes.byref(real)) else integer.value
    return held


@cache
def read_headers(folder: str) -> Mapping[str, object]:
    """The constants of a framework, its structures and functions, and the names of its classes and texts as None."""
    text = "\n".join(_COMMENT.sub("", path.read_text()) for path in sorted((build.INCLUDE / folder).glob("*.h")))
    names: dict[str, object] = {}
    for name, value in _ENUMERATOR.findall(text):
        if re.fullmatch(r"[\d\s()<+|-]+", value):
            names[name] = eval(value, {"__builtins__": {}})
    names |= dict.fromkeys([*_CLASS.findall(text), *_TEXT.findall(text)])
    functions: Mapping[str, Mapping[str, object]] = {
        "Foundation": {
            "NSRange": NSRange, "NSMakeRange": NSRange, "NSOperatingSystemVersion": NSOperatingSystemVersion,
        },
        "Metal": {
            "MTLSize": MTLSize, "MTLSizeMake": MTLSize, "MTLCreateSystemDefaultDevice": _create_device,
            "MTLCopyAllDevices": lambda: (_create_device(),),
        },
    }  # fmt: skip
    return {**names, **functions.get(folder, {})}


def _create_device() -> Object:
    create = _libraries()[0].MTLCreateSystemDefaultDevice
    create.restype = ctypes.c_void_p
    device = _receive("@", create(), False)
    assert isinstance(device, Object)
    return device


def borrow(*, c_void_p: int | ctypes.c_void_p) -> Any:
    """`objc.objc_object`: the object at an address that compiled code gives out."""
    return _receive("@", (c_void_p.value or 0) if isinstance(c_void_p, ctypes.c_void_p) else c_void_p, False)


class _Framework(ModuleType):
    """A module with all that a framework's headers declare; its classes are found when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        declared = {} if self.__name__ == "objc" else read_headers(self.__name__)
        if name == "__all__":
            return sorted(declared)
        if name not in declared:
            raise AttributeError(f"PTR120: {self.__name__} has no `{name}` here", name=name, obj=self)
        value = declared[name]
        if value is None:
            value = find_class(name) if _libraries()[0].objc_lookup_class(name.encode()) else self._read_text(name)
        setattr(self, name, value)
        return value

    def _read_text(self, name: str) -> Any:
        return _receive("@", ctypes.c_void_p.in_dll(_libraries()[0], name).value or 0, False)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *getattr(self, "__all__", ())]


class _Finder(MetaPathFinder, Loader):
    """Finds the modules where no package of the same name does."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Framework(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "objc":
            names = {"error": error, "varlist": varlist, "NULL": NULL, "nil": None, "YES": True, "NO": False}
            names |= {"pyobjc_id": lambda receiver: receiver._pointer, "objc_object": borrow}
            vars(module).update(names, autorelease_pool=autorelease_pool, lookUpClass=find_class)


def install() -> None:
    """Has programs of this process find the modules from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
