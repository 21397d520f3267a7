"""Operators described in users' Python files: shapes, needs, a reference, and C code beside them.

A network knows them by name only. The files are given on the command line or loaded in Python; the environment passes
them on to worker processes.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from ...errors import EdgewrightError, InputError
from ..region import Interval, Region, Shape
from ..tensor import Array
from .base import Answer, Operator, RestrictedOperator, WidenedRegion, require

DESCRIBE = "describe it in a Python file, with its C beside it (--operators), or cut the model before it"
FILES = "EDGEWRIGHT_OPERATORS"  # environment variable with the list of files


class CustomOperator:
    """One operator of a model, with its attributes. Subclasses in the user's file define what it does."""

    name: ClassVar[str]  # as in the model: TFLite's custom code, or ONNX's type with its domain ("mine.Shift")
    code: ClassVar[str]  # the C file, beside the Python file
    function: ClassVar[str]  # the C function: ew_...

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.attributes = attributes

    def shape(self, shapes: Sequence[Shape]) -> Shape:
        """The output's shape, from those of the inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no shape()")

    def needs(self, first: int, last: int, shapes: Sequence[Shape]) -> Sequence[Interval | None]:
        """The rows of each input image that rows [first, last) of an output image need; None for all of an input."""
        return [None for _ in shapes]

    def compute(self, inputs: Sequence[Array]) -> Array:
        """The whole output: the reference for the C code."""
        raise NotImplementedError(f"{type(self).__name__} has no compute()")

    def numbers(self, shapes: Sequence[Shape]) -> Sequence[int | float]:
        """The arguments that follow the tensors in the C function's parameters."""
        return ()

    @classmethod
    def code_path(cls) -> Path:
        return _FOLDERS[cls.name] / cls.code


_DEFINED: dict[str, type[CustomOperator]] = {}
_FOLDERS: dict[str, Path] = {}
_LOADED: set[str] = set()


def load_operators(file: str | os.PathLike[str]) -> tuple[str, ...]:
    """Runs a Python file and registers the operators that it describes; returns their names."""
    path = Path(file).resolve()
    described = _described(path)
    for one in described:
        _DEFINED[one.name], _FOLDERS[one.name] = one, path.parent
    files = [known for known in os.environ.get(FILES, "").split(os.pathsep) if known and known != str(path)]
    os.environ[FILES] = os.pathsep.join([*files, str(path)])
    _LOADED.add(str(path))
    instance_of.cache_clear()
    return tuple(one.name for one in described)


def _described(path: Path) -> list[type[CustomOperator]]:
    """The operators in the file, each checked to be complete."""
    if not path.is_file():
        raise InputError(f"cannot read operators from '{path}': there is no such file")
    spec = importlib.util.spec_from_file_location(f"edgewright_operators_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"'{path}' is no Python file; describe operators in a .py file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any exception of the user's code
        raise InputError(f"'{path}' cannot be loaded: {type(error).__name__}: {error}") from error
    described = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, CustomOperator) and value is not CustomOperator
    ]
    if not described:
        raise InputError(f"'{path}' describes no operator: it has no subclass of edgewright.CustomOperator")
    for one in described:
        for field in ("name", "code", "function"):
            if not isinstance(getattr(one, field, None), str):
                raise InputError(f"'{path}': {one.__name__} states no {field}")
        if not one.function.startswith("ew_") or not one.function.isidentifier():
            raise InputError(f"'{path}': the function of {one.__name__} is '{one.function}'; call it ew_...")
        if not (path.parent / one.code).is_file():
            raise InputError(f"'{path}': the code of {one.__name__}, '{one.code}', is not beside it")
    return described


def find_custom(name: str) -> type[CustomOperator] | None:
    """The operator with this name; None if no loaded file describes it."""
    for file in os.environ.get(FILES, "").split(os.pathsep):
        if file and file not in _LOADED:
            load_operators(file)
    return _DEFINED.get(name)


@lru_cache(maxsize=256)
def instance_of(name: str, attributes: str) -> CustomOperator:
    definition = find_custom(name)
    if definition is None:
        raise InputError(f"nothing is known of the operator '{name}'; name the file that describes it with --operators")
    try:
        given = json.loads(attributes)
        return definition({key: bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for key, v in given.items()})
    except EdgewrightError:
        raise
    except Exception as error:
        raise ValueError(f"its attributes are not as {definition.__name__} expects: {error}") from error


@dataclass(frozen=True, slots=True)
class Custom(Operator):
    """Inputs: as in the user's file. `attributes` are JSON: those of ONNX, or TFLite's `options`; bytes as {"hex":
    ...}."""

    name: str
    attributes: str = "{}"

    @property
    def definition(self) -> CustomOperator:
        return instance_of(self.name, self.attributes)

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        try:
            shape = tuple(int(size) for size in self.definition.shape(shapes))
        except Exception as error:  # any exception of the user's code
            raise ValueError(f"{type(self.definition).__name__}.shape: {error}") from error
        require(min(shape, default=1) > 0, f"{type(self.definition).__name__}.shape gives {shape}")
        return shape

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        whole = [Region.whole(shape) for shape in shapes]
        if out.is_empty or len(out.bounds) != 4:
            return tuple(whole)
        try:
            rows_read = self.definition.needs(*out.bounds[1], shapes)
        except Exception as error:  # any exception of the user's code
            raise ValueError(f"{type(self.definition).__name__}.needs: {error}") from error
        return tuple(
            region if rows is None else region.with_axis(1, _inside(rows, region.shape[1]))
            for region, rows in zip(whole, rows_read, strict=True)
        )

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        reason = "what a custom operator computes may depend on where it lies"
        for axis in range(len(out.bounds)):
            answer = self._restrict_lines(out, shapes, axis, reason)
            if isinstance(answer, WidenedRegion):
                return answer
        return RestrictedOperator(self, self.needs(out, shapes))


def to_json(attributes: Mapping[str, Any]) -> str:
    """Attributes in the form that networks store."""
    plain = {key: {"hex": value.hex()} if isinstance(value, bytes) else value for key, value in attributes.items()}
    return json.dumps(plain, sort_keys=True)


def _inside(rows: Interval, size: int) -> Interval:
    return min(max(rows[0], 0), size), min(max(rows[1], 0), size)
