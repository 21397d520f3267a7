"""What all tests share: options, how thorough hypothesis is, lightly optimised code, the folder of real models."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from edgewright.board.toolchain import Toolchain
from edgewright.emit.firmware import image
from tests.helpers.parameters import corpus

_QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}
_compile = Toolchain.run
_objects: dict[str, bytes] = {}
settings.register_profile("usual", max_examples=16, derandomize=True, **_QUIET)
settings.register_profile("thorough", max_examples=1500, **_QUIET)
settings.load_profile("thorough" if os.environ.get("EDGEWRIGHT_THOROUGH") else "usual")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files again: then read their diff")


def pytest_configure() -> None:
    """Where EDGEWRIGHT_PROGRAMS names a file, writes there which programs of the system the tests of a file start."""
    record = os.environ.get("EDGEWRIGHT_PROGRAMS")
    if record:
        sys.addaudithook(lambda event, details: _record_program(Path(record), event, details))


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the garbage collector need not walk through it again and again."""
    gc.collect()
    gc.freeze()


def _record_program(record: Path, event: str, details: tuple[Any, ...]) -> None:
    current = os.environ.get("PYTEST_CURRENT_TEST")
    if event != "subprocess.Popen" or not current:
        return
    program = os.fsdecode(details[0] or details[1][0])
    name = Path(program).name
    if program in (name, shutil.which(name)) and not name.startswith("python"):
        with record.open("a") as file:
            file.write(f"{current.split('::')[0]} {name}\n")


@pytest.fixture(scope="session", autouse=True)
def _lightly_compiled() -> Iterator[None]:
    """Code for this machine is optimised a little, in less than half the time of -O3.

    Fully in `make check-all`, and in tests that are `fully_compiled`.
    """

    def lightly(self: Toolchain, arguments: Sequence[str | Path], folder: Path) -> None:
        arguments = [str(argument) for argument in arguments]
        if "-fPIC" in arguments:  # no program of a board, whose cycles count
            arguments = ["-Og" if flag in ("-O2", "-O3") else flag for flag in arguments]
        is_split = "-shared" in arguments and "-x" not in arguments  # which says what all files are, objects too
        (_compile_library if is_split else _compile)(self, arguments, folder)

    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("EDGEWRIGHT_THOROUGH"):
            patch.setattr(Toolchain, "run", lightly)
        yield


def _compile_library(tools: Toolchain, arguments: Sequence[str], folder: Path) -> None:
    """Compiles and links a library. Sources that were compiled before, such as kernels, are not compiled again."""
    sources = [argument for argument in arguments if argument.endswith((".c", ".S"))]
    flags = [argument for argument in arguments if argument not in (*sources, "-shared", "-lm")]
    at = flags.index("-o")
    output, flags = flags[at : at + 2], [*flags[:at], *flags[at + 2 :]]
    objects = [f"{number}.o" for number in range(len(sources))]
    for source, name in zip(sources, objects, strict=True):
        key = image._key(tools, [flag.replace(str(folder), "") for flag in flags], folder, Path(source).name)
        if key not in _objects:
            _compile(tools, [*flags, "-c", source, "-o", name], folder)
            _objects[key] = (folder / name).read_bytes()
        (folder / name).write_bytes(_objects[key])
    _compile(tools, [*flags, "-shared", *output, *objects, "-lm"], folder)


@pytest.fixture(scope="module")
def fully_compiled(_lightly_compiled: None) -> Iterator[None]:
    """Code is compiled as users compile it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Toolchain, "run", _compile)
        yield


@pytest.fixture(scope="session")
def corpus_folder() -> Path:
    root = corpus()
    if root is None:
        pytest.skip("set EDGEWRIGHT_CORPUS to a folder with models/ and data/ to test real models")
    return root
