"""What a package holds: a library's sources and, around them, what each build system wants to see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined

from ...board.toolchain import BARE, clang_flags, clang_in_make, gcc_flags
from ...kernels.printing.source import comment
from ...platform.target import Architecture, Target
from ..header import VERSION
from .folder import zipped

# Without the first, results would depend on the compiler; without the second, so would reuse of the arena.
FLAGS = ("-ffp-contract=off", "-fno-strict-aliasing")

_TOOLS = {
    Architecture.HOST: "",
    Architecture.CORTEX_M: "arm-none-eabi-",
    Architecture.RV32: "riscv64-unknown-elf-",
    Architecture.AARCH64: "aarch64-linux-gnu-",
}
_TEMPLATES = {
    "CMakeLists.txt": "CMakeLists.txt",
    "Makefile": "Makefile",
    "README.md": "README.md",
    "idf_component.yml": "idf_component.yml",
    "library.properties": "library.properties",
    "zephyr/CMakeLists.txt": "zephyr-CMakeLists.txt",
    "zephyr/Kconfig": "zephyr-Kconfig",
    "zephyr/module.yml": "zephyr-module.yml",
}


@dataclass(frozen=True)
class PackageContents:
    """A library to be packaged: of one network, or of an application."""

    name: str  # prefix of every identifier, and of the main header
    title: str
    kind: str  # such as "a neural network"
    target: Target
    board: str | None
    files: Mapping[str, str | bytes]  # of the library, by name
    headers: tuple[str, ...]  # those that users include, directly or not
    entry: str  # the function to call
    optimise: str  # the compiler's option
    ram: int
    weights: int
    macs: int
    about: str  # of the README: how the library is called
    reports: str  # of the README: what else lies in the folder
    main: str  # C of the example
    sketch: str  # the same for Arduino
    uses_threads: bool = False
    example_uses_threads: bool = False


def packaged(package: PackageContents, edgewright: str) -> dict[str, str | bytes]:
    """Every file but the reports, by path. The same library gives the same bytes."""
    facts, name = _facts(package, edgewright), package.name
    files: dict[str, str | bytes] = {f"src/{name}": content for name, content in package.files.items()}
    files |= {path: rendered(_template(f"{template}.jinja"), facts) for path, template in _TEMPLATES.items()}
    sketch = f"examples/{name}/{name}.ino"
    files |= {"examples/main.c": package.main, sketch: package.sketch}
    files["library.json"] = json.dumps(_platformio(facts, sketch), indent=2) + "\n"
    arduino = ("README.md", "library.properties", sketch)
    chosen = {path: content for path, content in files.items() if path in arduino or path.startswith("src/")}
    files[f"{name}-arduino.zip"] = zipped(name, chosen)
    return files


def calls_cmsis_nn(files: Mapping[str, str | bytes]) -> bool:
    """Whether a library of these files needs CMSIS-NN beside it."""
    return any(isinstance(text, str) and "#include <arm_nnfunctions.h>" in text for text in files.values())


def _facts(package: PackageContents, edgewright: str) -> dict[str, Any]:
    """What the templates speak of."""
    name, target = package.name, package.target
    texts = [text for text in package.files.values() if isinstance(text, str)]
    sources = tuple(file for file in package.files if file.endswith((".c", ".S")))
    title = comment(" ".join("".join(c if c.isprintable() else " " for c in package.title).split())) or name
    return {
        **{field: getattr(package, field) for field in ("name", "board", "entry", "ram", "weights", "macs", "about")},
        "macro": name.upper(),
        "title": title,
        "sentence": f"{name}: {package.kind} compiled by edgewright",
        "version": f"{VERSION}.0.0",
        "edgewright": edgewright,
        "target": target.name,
        "reports": package.reports,
        "sources": sources,
        "headers": tuple(file for file in package.files if file.endswith(".h")),
        "public_headers": package.headers,
        "flags": FLAGS,
        "clang_flags": clang_flags(target),
        "clang_in_make": clang_in_make(target),
        "is_host": target.architecture is Architecture.HOST,
        "has_assembler": any(file.endswith(".S") for file in sources),
        "uses_math": any("#include <math.h>" in text for text in texts),
        "uses_threads": package.uses_threads,
        "example_uses_threads": package.example_uses_threads,
        "uses_cmsis_nn": calls_cmsis_nn(package.files),
        **_compilers(package),
    }


def _compilers(package: PackageContents) -> dict[str, Any]:
    """What the Makefile calls unless told otherwise."""
    tools = _TOOLS[package.target.architecture]
    options = [flag for flag in gcc_flags(package.target) if flag not in BARE] or ["$(NATIVE)"]
    return {
        "compiler": f"{tools}gcc" if tools else "cc",
        "archiver": f"{tools}ar",
        "size": f"{tools}size",
        "cflags": [package.optimise, *options, "-ffunction-sections", "-fdata-sections"],
    }


def _platformio(facts: Mapping[str, Any], sketch: str) -> dict[str, Any]:
    folder, _, file = sketch.rpartition("/")
    return {
        "name": facts["name"],
        "version": facts["version"],
        "description": facts["sentence"],
        "frameworks": "*",
        "platforms": "*",
        "headers": f"{facts['name']}.h",
        "build": {"srcDir": "src", "includeDir": "src", "flags": [*FLAGS, "-Isrc"]},
        "examples": [{"name": facts["name"], "base": folder, "files": [file]}],
    }


def rendered(template: str, facts: Mapping[str, Any]) -> str:
    """The template filled in."""
    return _environment().from_string(template).render(facts)


@cache
def _environment() -> Environment:
    return Environment(
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )


@cache
def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")
