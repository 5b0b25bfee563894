"""A kernel-builder project without Nix: what its build.toml says of Metal, as a setup.py of porter's own.

The project is Hugging Face's form of a kernel: C++ with `TORCH_LIBRARY_EXPAND` beside Metal sources that its own build
makes one library of and embeds. Here the text is embedded, with the headers that it includes, and compiled at run time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from porter.core.errors import Place, PorterError
from porter.core.files import create_whole, read_named
from porter.plan.toolbelt import read_toml

BUILD = "build.toml"
_CODE = "PTR259"
_PYTHON = "torch-ext"  # the folder of the Python package, and of the binding
_CPP, _METAL = (".c", ".cc", ".cpp", ".m", ".mm"), ".metal"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*(?:include|import)[ \t]+"([^"\n]+)"[^\n]*$', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*$", re.MULTILINE)
_DEPENDENCIES = ("torch",)
_SETUP = """\
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

FRAMEWORKS = ("Foundation", "Metal", "MetalPerformanceShaders")
extension = CppExtension(
    "{package}.{operators}",
    sources={sources},
    include_dirs={folders},
    define_macros=[
        ("METAL_KERNEL", None),
        ("EMBEDDED_METALLIB_HEADER", '"{package}_library.h"'),
        ("EMBEDDED_METALLIB_NAMESPACE", "{package}_library"),
    ],
    extra_compile_args={{"cxx": {flags}}},
    extra_link_args=[word for name in FRAMEWORKS for word in ("-framework", name)],
)
setup(
    name="{package}",
    version="{version}",
    packages=find_packages("torch-ext"),
    package_dir={{"": "torch-ext"}},
    package_data={{"": ["**/*"]}},
    ext_modules=[extension],
    cmdclass={{"build_ext": BuildExtension.with_options(use_ninja=False)}},
)
"""
_OPERATORS = """\
import torch

from . import {operators}

ops = torch.ops.{operators}


def add_op_namespace_prefix(op_name):
    return "{operators}::" + op_name
"""
_REGISTRATION = """\
// How a kernel-builder project registers its operators: the names are macros, which have to be expanded first.
#pragma once
#include <Python.h>
#include <torch/library.h>

#define PORTER_JOINED(first, second) first##second
#define PORTER_JOIN(first, second) PORTER_JOINED(first, second)
#define PORTER_QUOTED(name) #name
#define PORTER_QUOTE(name) PORTER_QUOTED(name)

#define TORCH_LIBRARY_EXPAND(name, library) TORCH_LIBRARY(name, library)
#define TORCH_LIBRARY_IMPL_EXPAND(name, device, library) TORCH_LIBRARY_IMPL(name, device, library)
#define REGISTER_EXTENSION(name)                                                              \\
  PyMODINIT_FUNC PORTER_JOIN(PyInit_, name)(void) {                                           \\
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, PORTER_QUOTE(name), nullptr, -1}; \\
    return PyModule_Create(&definition);                                                      \\
  }
"""
_HEADER = """\
#pragma once
#import <Metal/Metal.h>

namespace {package}_library {{
id<MTLLibrary> createLibrary(id<MTLDevice> device, NSError** error = nullptr);
}}
"""
# Of one text the library is Metal's own. Several, which may define the same helpers, become one library each.
_LIBRARY = """\
#import <Foundation/Foundation.h>

#include "{package}_library.h"

static const char* const kTexts[] = {{
{texts}}};

@interface {package}_Libraries : NSObject <MTLLibrary>
@property(retain) NSMutableArray<id<MTLLibrary>>* parts;
@end

@implementation {package}_Libraries
@synthesize label;
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {{
  for (id<MTLLibrary> part in self.parts) {{
    if ([part.functionNames containsObject:name]) return [part newFunctionWithName:name];
  }}
  return nil;
}}
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError**)error {{
  for (id<MTLLibrary> part in self.parts) {{
    if ([part.functionNames containsObject:name]) {{
      return [part newFunctionWithName:name constantValues:values error:error];
    }}
  }}
  return nil;
}}
- (NSArray<NSString*>*)functionNames {{
  NSMutableArray<NSString*>* names = [NSMutableArray array];
  for (id<MTLLibrary> part in self.parts) [names addObjectsFromArray:part.functionNames];
  return names;
}}
- (id<MTLDevice>)device {{
  return [[self.parts objectAtIndex:0] device];
}}
@end

namespace {package}_library {{
id<MTLLibrary> createLibrary(id<MTLDevice> device, NSError** error) {{
  {package}_Libraries* all = [{package}_Libraries new];
  all.parts = [NSMutableArray array];
  for (const char* text : kTexts) {{
    NSString* source = [NSString stringWithUTF8String:text];
    id<MTLLibrary> part = [device newLibraryWithSource:source options:nil error:error];
    if (!part) return nil;
    [all.parts addObject:part];
  }}
  return all.parts.count == 1 ? [all.parts objectAtIndex:0] : all;
}}
}}
"""
# What tests of such a project load it by, which would otherwise fetch what was published.
_LOADER = """\
import importlib


def get_kernel(repo_id, *_args, **_kwargs):
    if repo_id.rpartition("/")[2].replace("-", "_") != "{package}":
        raise ModuleNotFoundError(repo_id + " is not the project that is checked")
    return importlib.import_module("{package}")
"""
LOADER = "kernels.py"
_RAW = 'R"porter_text({text})porter_text"'


@dataclass(frozen=True)
class HubProject:
    """What a build.toml says of Metal: the package's name, C++ and Metal sources, folders of headers, flags.

    Paths are relative to the project.
    """

    package: str
    version: str
    cpp: tuple[str, ...]
    metal: tuple[str, ...]
    include: tuple[str, ...]
    flags: tuple[str, ...]


def read_project(root: Path) -> HubProject:
    """Reads build.toml. Raises PTR259 for a project without a Metal part, or one that needs more than torch."""
    path = root / BUILD
    try:
        said = read_toml(BUILD, read_named(path, _CODE))
    except PorterError as error:
        raise _refuse(error.what) from error
    name = str(_table(said, "general").get("name", "")).replace("-", "_")
    if not name.isidentifier():
        raise _refuse("it names no package in [general]")
    torch = _table(said, "torch")
    kernels = [entry for entry in _table(said, "kernel").values() if _is_metal(entry)]
    if not kernels or not torch:
        raise _refuse("it has no Metal kernel that is registered with torch")
    if not (root / _PYTHON / name).is_dir():
        raise _refuse(f"there is no package {_PYTHON}/{name}")
    needs = sorted({str(need) for entry in kernels for need in entry.get("depends", ())} - {*_DEPENDENCIES})
    if needs:
        raise _refuse(f"its Metal kernels depend on {', '.join(needs)}")
    sources = list(
        dict.fromkeys([*_words(torch, "src"), *(word for entry in kernels for word in _words(entry, "src"))])
    )
    tables = (torch, *kernels)
    return HubProject(
        name,
        str(_table(said, "general").get("version", 0)),
        tuple(word for word in sources if Path(word).suffix in _CPP),
        tuple(word for word in sources if Path(word).suffix == _METAL),
        tuple(dict.fromkeys(word for table in tables for word in _words(table, "include"))),
        tuple(word for table in tables for word in _words(table, "cxx-flags")),
    )


def write_loader(project: HubProject) -> str:
    """The text of a module `kernels` that gives the built package to its own tests."""
    return _LOADER.format(package=project.package)


def write_setup(project: HubProject, root: Path) -> None:
    """Writes a setup.py and what it needs into the folder of a project, whose own files stay. Raises PTR259."""
    names = {"package": project.package, "operators": f"_{project.package}_ops"}
    library = f"{_PYTHON}/{project.package}_library"
    texts = [_join(root, path, project.include) for path in project.metal]
    sources = [*project.cpp, *((f"{library}.mm",) if texts else ())]
    files = {
        "setup.py": _SETUP.format(
            sources=_spell(sources), folders=f"{_spell([_PYTHON, *project.include])}", flags=_spell(project.flags),
            version=project.version, **names,
        ),
        f"{_PYTHON}/{project.package}/_ops.py": _OPERATORS.format(**names),
        f"{_PYTHON}/registration.h": _REGISTRATION,
        f"{library}.h": _HEADER.format(**names),
        f"{library}.mm": _LIBRARY.format(texts="".join(f"{_RAW.format(text=text)},\n" for text in texts), **names),
    }  # fmt: skip
    for path, text in files.items():
        if not (root / path).exists():
            create_whole(root / path, text)


def _join(root: Path, path: str, include: Sequence[str], seen: set[Path] | None = None) -> str:
    """The text of a Metal file with the project's own headers in place of the lines that include them."""
    seen = set() if seen is None else seen
    text = read_named(root / path, _CODE)
    if _ONCE.search(text):
        seen.add((root / path).resolve())

    def put(match: re.Match[str]) -> str:
        for folder in (Path(path).parent, *map(Path, include), Path()):
            file = (root / folder / match[1]).resolve()
            if file.is_file() and file.is_relative_to(root.resolve()):
                return "" if file in seen else _join(root, str(file.relative_to(root.resolve())), include, seen)
        return match[0]

    try:
        return _INCLUDE.sub(put, _ONCE.sub("", text))
    except RecursionError as error:
        raise _refuse(f"{path} includes itself") from error


def _is_metal(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("backend") == "metal"


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = values.get(name, {})
    return table if isinstance(table, dict) else {}


def _words(table: Mapping[str, Any], name: str) -> list[str]:
    words = table.get(name) or ()
    return [str(word) for word in words] if isinstance(words, (list, tuple)) else []


def _spell(words: Sequence[str]) -> str:
    return json.dumps(list(words))


def _refuse(what: str) -> PorterError:
    return PorterError(
        _CODE, f"this kernel-builder project cannot be built here: {what}", Place(BUILD),
        hint="Name a project with a [torch] section and a [kernel.NAME] whose backend is metal.",
    )  # fmt: skip
