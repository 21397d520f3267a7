"""Options that name outputs. Every verb checks its outputs before it starts to work."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import exists, isfile, realpath
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..errors import InputError
from ..files import check_file, check_folder


class OutFile(click.Path):
    """A file to write; with `makes_folders`, missing parent folders are created."""

    def __init__(self, makes_folders: bool = False) -> None:
        super().__init__(path_type=Path)
        self.makes_folders = makes_folders

    def check(self, path: Path, _given: dict[str, Any]) -> None:
        """Raises an error if the file could not be written; `given` holds all parameters of the command."""
        check_file(path, self.makes_folders)


class OutFolder(OutFile):
    """A folder to create, or to write into."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "directory"

    def check(self, path: Path, _given: dict[str, Any]) -> None:
        check_folder(path)


class OutPlanOrFolder(OutFile):
    """A plan file, or with --compile a folder."""

    def check(self, path: Path, given: dict[str, Any]) -> None:
        check_folder(path) if given["compiles"] else check_file(path, makes_folders=True)


class OutModelOrFolder(OutFile):
    """A folder for files, or the path of the .onnx file."""

    def check(self, path: Path, _given: dict[str, Any]) -> None:
        check_file(path, makes_folders=True) if is_model(path) else check_folder(path)


def is_model(path: Path) -> bool:
    """Whether the path names an ONNX file rather than a folder."""
    return path.suffix.lower() == ".onnx" and not path.is_dir()


class Verb(click.Command):
    """A command that checks its outputs before it runs: they must be writable and must not overwrite an input."""

    def invoke(self, ctx: click.Context) -> object:
        outputs = list(self._outputs(ctx))
        for kind, path in outputs:
            kind.check(path, ctx.params)
        files = [path for kind, path in outputs if not isinstance(kind, OutFolder)]
        inputs = {realpath(path) for path in self._inputs(ctx)}
        seen: set[str] = set()
        for path in files:
            place = realpath(path)
            if place in inputs and isfile(place):
                raise InputError(f"'{path}' is an input and would be overwritten; give another name")
            if place in seen and (isfile(place) or not exists(place)):
                raise InputError(f"'{path}' is asked for twice; give two names")
            seen.add(place)
        return super().invoke(ctx)

    def _outputs(self, ctx: click.Context) -> Iterator[tuple[OutFile, Path]]:
        for parameter in self.params:
            path = ctx.params.get(parameter.name or "")
            is_given = ctx.get_parameter_source(parameter.name or "") is not ParameterSource.DEFAULT
            if isinstance(parameter.type, OutFile) and path is not None and is_given:
                yield parameter.type, path

    def _inputs(self, ctx: click.Context) -> Iterator[Path]:
        for parameter in self.params:
            if isinstance(parameter.type, click.Path) and not isinstance(parameter.type, OutFile):
                value = ctx.params.get(parameter.name or "")
                paths = value if isinstance(value, tuple) else (value,)
                yield from (path for path in paths if isinstance(path, Path))
