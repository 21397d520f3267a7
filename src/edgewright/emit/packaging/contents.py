"""What a package holds: the library's sources and, around them, what each build system wants to see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from ...board.toolchain import BARE, clang_flags, clang_in_make, gcc_flags
from ...kernels.printing.constants import C_TYPES
from ...kernels.printing.source import comment
from ...network import Tensor
from ...platform.target import Architecture
from ..header import VERSION, lies_densely
from ..lanes import has_threads
from ..library import Library
from ..names import parameters
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
    "examples/main.c": "main.c",
}


@dataclass(frozen=True, slots=True)
class ExampleArgument:
    """An input or output as the examples use it."""

    parameter: str
    array: str  # a variable that clashes with nothing
    macro: str  # what its macros begin with
    ctype: str
    accessor: str  # the function that says where it lies in the arena; empty where there is none
    row: int  # elements of a row, where the network asks for rows; else 0
    what: str

    @property
    def given(self) -> str:
        """What the run function gets: the array, or the function that hands out its rows."""
        return f"pull_{self.parameter}, 0" if self.row else self.array

    @property
    def in_place(self) -> str:
        """The same where it may stay in the arena."""
        return "0" if self.accessor else self.given

    @property
    def file(self) -> str:
        return f"{self.parameter.upper()}.bin"

    @property
    def is_float(self) -> bool:
        return self.ctype in ("float", "double")

    @property
    def ramp(self) -> str:
        if self.is_float:
            return f"({self.ctype})(i % 255 - 127) / 127"
        return (
            f"({self.ctype})(i % 2)" if "64" in self.ctype or "32" in self.ctype else f"({self.ctype})(i % 255 - 127)"
        )

    @property
    def printed(self) -> str:
        return "double" if self.is_float else "long"

    @property
    def format(self) -> str:
        return "%g" if self.is_float else "%ld"


def package_files(library: Library, edgewright: str) -> dict[str, str | bytes]:
    """Every file but the report, by path. The same library gives the same bytes."""
    facts = _facts(library, edgewright)
    files: dict[str, str | bytes] = {f"src/{name}": content for name, content in library.files.items()}
    files |= {path: _rendered(template, facts) for path, template in _TEMPLATES.items()}
    sketch = f"examples/{library.name}/{library.name}.ino"
    files[sketch] = _rendered("sketch.ino", facts)
    files["library.json"] = json.dumps(_platformio(facts, sketch), indent=2) + "\n"
    arduino = ("README.md", "library.properties", sketch)
    chosen = {path: content for path, content in files.items() if path in arduino or path.startswith("src/")}
    files[f"{library.name}-arduino.zip"] = zipped(library.name, chosen)
    return files


def calls_cmsis_nn(library: Library) -> bool:
    """Whether the library needs CMSIS-NN beside it."""
    return any(isinstance(text, str) and "#include <arm_nnfunctions.h>" in text for text in library.files.values())


def _facts(library: Library, edgewright: str) -> dict[str, Any]:
    """What the templates speak of."""
    plan, network, name = library.plan, library.network, library.name
    texts = [text for text in library.files.values() if isinstance(text, str)]
    title = comment(" ".join("".join(c if c.isprintable() else " " for c in network.name).split())) or name
    return {
        "name": name,
        "macro": name.upper(),
        "title": title,
        "sentence": f"{name}: a neural network compiled by edgewright",
        "version": f"{VERSION}.0.0",
        "edgewright": edgewright,
        "target": library.target.name,
        "board": plan.board,
        "sources": library.sources,
        "headers": tuple(file for file in library.files if file.endswith(".h")),
        "flags": FLAGS,
        "clang_flags": clang_flags(library.target),
        "clang_in_make": clang_in_make(library.target),
        "is_host": library.target.architecture is Architecture.HOST,
        "has_assembler": any(file.endswith(".S") for file in library.sources),
        "uses_math": any("#include <math.h>" in text for text in texts),
        "uses_threads": plan.lanes > 1 and has_threads(library.target),
        "uses_cmsis_nn": calls_cmsis_nn(library),
        "ram": plan.peak_bytes,
        "optimal": plan.optimal,
        "weights": library.weight_bytes,
        "macs": plan.macs,
        **_compilers(library),
        **_arguments(library),
    }


def _compilers(library: Library) -> dict[str, Any]:
    """What the Makefile calls unless told otherwise."""
    target = library.target
    tools = _TOOLS[target.architecture]
    options = [flag for flag in gcc_flags(target) if flag not in BARE] or ["$(NATIVE)"]
    level = library.options.optimise_flag(target)
    return {
        "compiler": f"{tools}gcc" if tools else "cc",
        "archiver": f"{tools}ar",
        "size": f"{tools}size",
        "cflags": [level, *options, "-ffunction-sections", "-fdata-sections"],
    }


def _arguments(library: Library) -> dict[str, Any]:
    network = library.network
    names = parameters(library.name, network, library.arenas)
    inputs = [_argument(library, "input", network.tensors[n], p) for n, p in names.inputs.items()]
    outputs = [_argument(library, "output", network.tensors[n], p) for n, p in names.outputs.items()]
    both = [*names.inputs.items(), *names.outputs.items()]
    return {
        "accessors": [f"`{a.accessor}()`" for a in (*inputs, *outputs) if a.accessor],
        "pulled": [f"`{a.parameter}`" for a in inputs if a.row],
        "call": [f"{p}, {p}_context" if n in library.plan.pulled else p for n, p in both],
        "inputs": inputs,
        "outputs": outputs,
    }


def _argument(library: Library, way: str, tensor: Tensor, parameter: str) -> ExampleArgument:
    accessor = f"{library.name}_{way}_{parameter}"
    declared = lies_densely(library.plan, library.network, tensor.name)
    return ExampleArgument(
        parameter=parameter,
        array=f"{way}_{parameter}",
        macro=f"{library.name.upper()}_{way.upper()}_{parameter.upper()}",
        ctype=C_TYPES[tensor.dtype.value],
        accessor=accessor if declared else "",
        row=tensor.size // tensor.shape[1] if way == "input" and tensor.name in library.plan.pulled else 0,
        what=_described(tensor),
    )


def _described(tensor: Tensor) -> str:
    text = f"{tensor.dtype.value}, {'x'.join(map(str, tensor.shape)) or 'one number'}"
    if tensor.quant is not None and not tensor.quant.is_per_channel:
        text += f"; real = {tensor.quant.scale[0]:.9g} * (stored - {tensor.quant.zero[0]})"
    return text


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


def _rendered(template: str, facts: Mapping[str, Any]) -> str:
    return _environment().get_template(f"{template}.jinja").render(facts)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_template),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )


@cache
def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")
