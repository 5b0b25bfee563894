"""torchgen as a library: the structured wrappers and registrations a PyTorch build would emit for the MPS key.

The rows come from the fork's `native_functions.yaml` as edited; the generator and the class of the meta function come
from the installed wheel, because the result is linked with the wheel's library (torchgen/gen.py, native/README.md).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from porter.aten.declarations import parse_base_name
from porter.core.cache import put_if_changed
from porter.core.errors import Place, PorterError
from porter.core.layout import ATEN, NATIVE_FUNCTIONS
from porter.core.yaml_text import choose_loader
from porter.languages.identifiers import rename_identifiers
from porter.verdict.build.switches import SWITCHES, add_switches

# torchgen ships without types: its model classes and template writer are opaque values here.
Grouped = Any
Indices = Any
BackendIndex = Any
FileManager = Any

_ROW = re.compile(r"^- func: *(?P<name>[^\s(]+)(?P<rest>\([^\n]*)", re.M)


class UnreadableRows(PorterError):
    """Rows that the wheel's torchgen cannot read (PTR160), and the names of those that it speaks of."""

    def __init__(self, what: str, place: Place, named: frozenset[str]) -> None:
        super().__init__("PTR160", what, place, "Check the edited rows.")
        self.named = named


@dataclass(frozen=True)
class Row:
    """One `- func:` row as text: its name with overload, its schema, its yaml and the line it starts on."""

    name: str
    schema: str
    text: str
    line: int

    @property
    def base(self) -> str:
        return parse_base_name(self.name)


@dataclass(frozen=True)
class Kernel:
    """What a row's MPS key calls: `symbol` is the C++ name that `<op>_native.h` declares (`structured_atan2_out`)."""

    row: str
    symbol: str
    place: Place


@dataclass(frozen=True)
class MetaClass:
    """The class of a structured row's meta function (`structured_softplus`), and the base name of its row."""

    base: str
    name: str


@dataclass(frozen=True)
class Registration:
    """Generated C++: one source per operator, the headers naming the MPS kernels, those kernels, the rows served."""

    sources: tuple[Path, ...]
    include: Path
    kernels: tuple[Kernel, ...]
    served: tuple[str, ...]


def rows(yaml_text: str, bases: Iterable[str]) -> tuple[Row, ...]:
    """The rows of some operators, cut out of the file without parsing the rest of it.

    With them come functional forms that have a name of their own: torchgen puts those in the operator's group.
    """
    named = tuple(bases)
    wanted = {*named, *(f"{base}_functional" for base in named)}
    by_base = _group(yaml_text)
    return tuple(sorted((row for base in wanted for row in by_base.get(base, ())), key=lambda row: row.line))


def generate(yaml_text: str, bases: Iterable[str], out: Path) -> Registration:
    """Writes the registration sources and `<op>_native.h` headers of some operators to `out`, a source for each.

    Raises PTR160 (rows that torchgen cannot read), PTR161 (no row dispatches MPS) or PTR162 (a row whose schema is not
    the wheel's, so that its wrapper would not fit).
    """
    return generate_parts(yaml_text, [(base,) for base in dict.fromkeys(bases)], out)


def generate_parts(yaml_text: str, parts: Iterable[Sequence[str]], out: Path, switched: bool = False) -> Registration:
    """The same with a source for several operators: many are compiled faster together.

    With `switched`, loading them registers nothing: `switches.register` does so for one operator.
    """
    sources, kernels, names = [], [], []
    include = out / "include"
    for part in parts:
        family = rows(yaml_text, part)
        groups, indices = _readable(family)
        index = _mps(indices)
        served = _list_served(groups, index)
        if not served:
            line = family[0].line if family else 0
            raise PorterError(
                "PTR161",
                f"no row of {', '.join(part)} dispatches to MPS: every call would fall back to the CPU",
                Place(NATIVE_FUNCTIONS, line),
                "Add MPS to the dispatch line of the shared implementation.",
            )
        mine = [str(f.func.name) for g in served for f in _functions(g)]
        fitted = _fit_to_wheel(family, mine)
        _write_headers(groups, indices, include)
        called = served if fitted == family else _list_served(_readable(fitted)[0], index)
        sources.append(_write_source(part, called, index, out, switched, _list_shorter(served, called, index)))
        kernels += [k for g in served for k in _kernels(g, index, family)]
        names += mine
    if switched:
        sources.append(put_if_changed(out / "Switches.cpp", SWITCHES))
    return Registration(tuple(sources), include, tuple(kernels), tuple(names))


def _list_served(groups: Iterable[Grouped], index: BackendIndex) -> list[Grouped]:
    return [g for g in groups if index.has_kernel(g) or any(index.has_kernel(f) for f in _functions(g))]


def native_headers(yaml_text: str, names: Iterable[str], include: Path) -> None:
    """Writes `<name>_native.h` for functions whose MPS kernels the wheel's own headers do not declare."""
    for base in sorted({parse_base_name(name) for name in names}):
        mine = rows(yaml_text, [base])
        if not mine:
            continue
        try:
            _write_headers(*_readable(mine), include)
        except PorterError:
            if not (_wheel_include() / "ATen" / "ops" / f"{base}_native.h").is_file():
                raise  # else the wheel's own header has to do; a kernel that it lacks is an error of its file


@cache
def find_meta_class(yaml_text: str, kernel: str) -> MetaClass | None:
    """The class of the structured row that an MPS kernel is of by its name: another key's kernel, with `_mps`."""
    from torchgen.api import meta
    from torchgen.model import NativeFunctionsGroup

    plain = kernel.replace("_mps", "")
    named = re.compile(rf": *(?:{re.escape(plain)}|{re.escape(plain.removesuffix('_out'))})\b *(?:#.*)?$", re.M)
    structured = re.compile(r"^ +structured: *True\b", re.M)
    for row in _cut(yaml_text):
        if not structured.search(row.text) or not named.search(row.text):
            continue
        try:
            groups, _ = _readable(rows(yaml_text, [row.base]))
        except PorterError:
            continue
        for group in groups:
            if isinstance(group, NativeFunctionsGroup) and str(group.out.func.name) == row.name:
                return MetaClass(row.base, f"structured_{meta.name(group)}")
    return None


def _readable(family: Sequence[Row]) -> tuple[list[Grouped], Indices]:
    """The rows without those of types that this wheel no longer has: what names them cannot be built either."""
    try:
        return read_groups(tuple(family))
    except UnreadableRows as error:
        kept = [row for row in family if row.name not in error.named]
        if len(kept) in (0, len(family)):
            raise
        return _readable(kept)


def dispatch_headers(names: Iterable[str], include: Path) -> None:
    """Writes `<name>_mps_dispatch.h`, which Linux wheels lack: `at::mps::<name>` is the dispatched function."""
    for name in names:
        text = (_wheel_include() / "ATen" / "ops" / f"{name}.h").read_text()
        inline = re.compile(rf"^inline [^\n]*\b{name}(?:_|_out|_outf)?\([^\n]*\{{\n.*?^\}}\n", re.M | re.S)
        body = f"#pragma once\n#include <ATen/ops/{name}.h>\nnamespace at::mps {{\n{''.join(inline.findall(text))}}}\n"
        put_if_changed(include / "ATen" / "ops" / f"{name}_mps_dispatch.h", body)


def _wheel_include() -> Path:
    from aten_overlay.toolchain import torch_root

    return torch_root() / "include"


@cache
def packaged_yaml() -> str:
    """The installed wheel's own `native_functions.yaml`."""
    return (_packaged() / NATIVE_FUNCTIONS.removeprefix(f"{ATEN}/")).read_text()


@cache
def _cut(yaml_text: str) -> tuple[Row, ...]:
    starts = list(_ROW.finditer(yaml_text))
    ends = [m.start() for m in starts[1:]] + [len(yaml_text)]
    found, line, seen = [], 1, 0
    for match, end in zip(starts, ends, strict=True):
        line += yaml_text.count("\n", seen, match.start())
        seen = match.start()
        name = match["name"]
        found.append(Row(name, name + match["rest"].strip(), yaml_text[seen:end], line))
    return tuple(found)


@cache
def _group(yaml_text: str) -> Mapping[str, Sequence[Row]]:
    """The rows of each base name: hundreds of headers ask for a few of thousands of rows."""
    by_base: dict[str, list[Row]] = {}
    for row in _cut(yaml_text):
        by_base.setdefault(row.base, []).append(row)
    return by_base


@cache
def _packaged() -> Path:
    import torchgen

    assert torchgen.__file__
    return Path(torchgen.__file__).parent / "packaged" / "ATen"


@cache
def read_groups(family: tuple[Row, ...]) -> tuple[list[Grouped], Indices]:
    """torchgen's own model of some rows, grouped, and every dispatch key's kernels among them."""
    from torchgen.gen import get_grouped_native_functions

    entries = [_entry(row) for row in family]
    try:
        parsed = _parsed(entries)
        grouped = list(get_grouped_native_functions(parsed.native_functions))
    except Exception as error:  # torchgen asserts; whatever it says is about these rows
        place = Place(NATIVE_FUNCTIONS, family[0].line if family else 0)
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        named = frozenset(row.name for row in family if f" {row.name}(" in reason)
        raise UnreadableRows(f"torchgen cannot parse these rows: {reason}", place, named) from error
    return grouped, parsed.backend_indices


def _parsed(entries: list[dict[str, object]]) -> Any:
    """torchgen's reading. The tags that this wheel asks for and an older fork does not have yet are given."""
    from torchgen.gen import parse_native_yaml_struct

    asked: set[str] = set()
    while True:
        try:
            return parse_native_yaml_struct(copy.deepcopy(entries), asked, path=NATIVE_FUNCTIONS)
        except AssertionError as error:
            missing = re.search(r"^(\w+) tag missing for (\w+)", str(error))
            without = [entry for entry in entries if "tags" not in entry and missing and _root(entry) == missing[2]]
            if missing is None or not without:
                raise
        for entry in without:
            entry["tags"] = missing[1]
        asked.add(missing[1])


def _root(entry: Mapping[str, object]) -> str:
    return str(entry["func"]).split("(")[0].split(".")[0]


def _refuse_aliases(row: Row) -> None:
    """Raises PTR160 for an alias: with a few of them a row stands for any amount of text, which torchgen writes out."""
    for event in yaml.parse(row.text, Loader=choose_loader(row.text)):
        if isinstance(event, yaml.AliasEvent):
            line = row.line + (event.start_mark.line if event.start_mark else 0)
            hint = "Write out what it stands for."
            raise PorterError("PTR160", f"the row has an alias, *{event.anchor}", Place(NATIVE_FUNCTIONS, line), hint)


def _entry(row: Row) -> dict[str, object]:
    """A row as torchgen's parser wants it, without tags and dispatch keys that this wheel does not know."""
    from torchgen.model import DispatchKey

    try:
        _refuse_aliases(row)
        (entry,) = yaml.load(row.text, Loader=choose_loader(row.text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = row.line + mark.line if mark else row.line
        what = getattr(error, "problem", None) or str(error)
        raise PorterError("PTR160", f"invalid YAML: {what}", Place(NATIVE_FUNCTIONS, line)) from error
    entry.pop("tags", None)
    known = set(DispatchKey.__members__)
    dispatch: Mapping[str, str] = entry.get("dispatch") or {}
    kept = {", ".join(k for k in map(str.strip, keys.split(",")) if k in known): v for keys, v in dispatch.items()}
    if dispatch:
        entry["dispatch"] = {keys: kernel for keys, kernel in kept.items() if keys}
    entry["__line__"] = row.line
    return dict(entry)


def _mps(indices: Indices) -> BackendIndex:
    """The MPS kernels; torchgen answers with an empty index where there are none."""
    from torchgen.model import DispatchKey

    return indices[DispatchKey.MPS]


def _functions(group: Grouped) -> list[Any]:
    from torchgen.model import NativeFunctionsGroup

    return list(group.functions()) if isinstance(group, NativeFunctionsGroup) else [group]


def kernels_of(groups: list[Grouped], indices: Indices, family: Iterable[Row]) -> tuple[Kernel, ...]:
    """What the MPS key of some rows calls."""
    return tuple(kernel for group in groups for kernel in _kernels(group, _mps(indices), tuple(family)))


def _kernels(group: Grouped, index: BackendIndex, family: Iterable[Row]) -> list[Kernel]:
    from torchgen.model import NativeFunctionsGroup

    lines = {row.name: row.line for row in family}
    if isinstance(group, NativeFunctionsGroup) and group.structured:
        held = [(group.out, index.get_kernel(group))]
    else:
        held = [(f, index.get_kernel(f)) for f in _functions(group)]
    found = []
    for function, kernel in held:
        if kernel is not None:
            name = str(function.func.name)
            symbol = f"structured_{kernel.kernel}" if kernel.structured else kernel.kernel
            found.append(Kernel(name, symbol, Place(NATIVE_FUNCTIONS, lines.get(name, 0))))
    return found


def _fit_to_wheel(family: tuple[Row, ...], served: Sequence[str]) -> tuple[Row, ...]:
    """The rows, with the last arguments of the wheel's where these have defaults and a fork that is older lacks them.

    Raises PTR162.
    """
    wheel = {row.name: row.schema for row in rows(packaged_yaml(), {row.base for row in family})}
    fitted = []
    for row in family:
        whole = wheel.get(row.name, "")
        if row.name in served and _concrete(whole) != _concrete(row.schema):
            if "structured" in row.text or not _is_begin(_concrete(row.schema), _concrete(whole)):
                raise PorterError(
                    "PTR162",
                    f"{row.schema} does not match the installed torch: the wheel has {whole or 'no such row'}",
                    Place(NATIVE_FUNCTIONS, row.line),
                    "Install a torch wheel of the fork's own version.",
                )
            row = replace(row, schema=whole, text=row.text.replace(row.schema, whole, 1))
        fitted.append(row)
    return tuple(fitted)


def _is_begin(schema: str, whole: str) -> bool:
    """Whether a schema is another without its last arguments, all of which have defaults."""
    (begin, _, results), (every, _, same) = schema.rpartition(") -> "), whole.rpartition(") -> ")
    added = every.removeprefix(begin).removeprefix(", ").split(", ")
    return (
        every.startswith(f"{begin}, ")
        and results == same
        and all(argument == "*" or "=" in argument for argument in added)
    )


def _list_shorter(served: Iterable[Grouped], called: Iterable[Grouped], index: BackendIndex) -> Iterator[str]:
    """Functions with all arguments of the wheel's that call the fork's, which lack some."""
    from torchgen.api.types import NativeSignature

    fork = {str(f.func.name): f for group in served for f in _functions(group)}
    for whole in (f for group in called for f in _functions(group)):
        function, kernel = fork[str(whole.func.name)], index.get_kernel(whole)
        if function.func == whole.func or kernel is None:
            continue
        names = [each.name for each in NativeSignature(function.func, symint=False).arguments()]
        signature = NativeSignature(whole.func, symint=False)
        yield f"namespace {kernel.cpp_namespace} {{\nstatic {signature.defn(kernel.kernel)} {{"
        for added in signature.arguments()[len(names) :]:
            yield f'  TORCH_CHECK({added.name} == {added.default}, "{kernel.kernel} does not take {added.name}");'
        yield f"  return {kernel.kernel}({', '.join(names)});\n}}\n}}"


def _concrete(schema: str) -> str:
    """The schema with plain integers: a wrapper takes a symbolic one as such, so that both fit."""
    return rename_identifiers(schema, {"SymInt": "int"})


def _write_headers(groups: list[Grouped], indices: Indices, include: Path) -> None:
    """`<op>_native.h`, with MPS kernels. `<op>_meta.h` stays the wheel's: its class is what libtorch was built with."""
    from torchgen.gen import get_native_function_declarations
    from torchgen.model import NativeFunctionsGroup

    for root in dict.fromkeys(f.root_name for g in groups for f in _functions(g)):
        mine = [g for g in groups if any(f.root_name == root for f in _functions(g))]
        structured = any(isinstance(g, NativeFunctionsGroup) and g.structured for g in mine)
        values = {
            "extra_includes": [f"#include <ATen/ops/{root}_meta.h>"] if structured else [],
            "native_function_declarations": get_native_function_declarations(
                grouped_native_functions=mine, backend_indices=indices
            ),
        }
        put_if_changed(include / "ATen" / "ops" / f"{root}_native.h", fill_template("NativeFunction.h", values))


def _write_source(
    bases: Sequence[str], groups: list[Grouped], index: BackendIndex, out: Path, switched: bool, shorter: Iterable[str]
) -> Path:
    from torchgen.model import DispatchKey

    name = bases[0] if len(bases) == 1 else f"{bases[0]}_to_{bases[-1]}"
    text = write_key(groups, index, DispatchKey.MPS, shorter)
    return put_if_changed(out / f"Register_{name}.cpp", add_switches(text, bases) if switched else text)


def write_key(groups: list[Grouped], index: BackendIndex, key: Any, functions: Iterable[str] = ()) -> str:
    """The source that registers the kernels of some rows for a dispatch key, with functions of its own."""
    from torchgen import dest
    from torchgen.gen import get_native_function_definitions
    from torchgen.selective_build.selector import SelectiveBuilder

    roots = sorted({f.root_name for g in groups for f in _functions(g)})
    definitions = get_native_function_definitions(
        fm=_file_manager(),
        grouped_native_functions=groups,
        dispatch_key=key,
        backend_idx=index,
        selector=SelectiveBuilder.get_nop_selector(),
        rocm=False,
        symint=True,
        skip_dispatcher_op_registration=False,
        gen_dispatch_helpers=True,
    )
    values = {
        "extra_cuda_headers": "",
        "external_backend_headers": "",
        "dispatch_headers": dest.gen_registration_headers(index, per_operator_headers=True, rocm=False),
        "ops_headers": [*(f"#include <ATen/ops/{root}_native.h>" for root in roots), *functions],
        "dispatch_helpers": dest.gen_registration_helpers(index),
        "dispatch_definitions": definitions,
    }
    return fill_template("RegisterDispatchKey.cpp", values)


@cache
def _file_manager() -> FileManager:
    """torchgen's templates. It is never asked to write: its own writer stamps and rewrites files."""
    from torchgen.utils import FileManager

    return FileManager(install_dir=Path(), template_dir=_packaged() / "templates", dry_run=True)


def fill_template(name: str, values: Mapping[str, object]) -> str:
    """The text of one of torchgen's templates."""
    text = _file_manager().substitute_with_template(
        name, lambda: {"generated_comment": f"@generated from {name}", **values}
    )
    return str(text)
