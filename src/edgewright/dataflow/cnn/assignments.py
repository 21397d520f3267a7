"""Files with a value for each layer: its processor, or its time. JSON or TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from ...errors import InputError
from ...files import read_file
from ..graph import quoted

MOST_BYTES = 16 << 20


def read_mapping(path: Path | str) -> dict[str, str]:
    """The processor of each layer: {"conv1": "cpu", "conv2": "gpu"}."""
    return {layer: _processor(value, layer, path) for layer, value in _table(path, "processor").items()}


def read_times(path: Path | str) -> dict[str, int | Fraction]:
    """The time of each layer, all in one unit: {"conv1": 120, "conv2": 0.5, "conv3": "1/3"}."""
    return {layer: _time(value, layer, path) for layer, value in _table(path, "time").items()}


def _table(path: Path | str, what: str) -> Mapping[str, object]:
    text = _text(Path(path), what)
    try:
        values = json.loads(text) if text.lstrip().startswith(("{", "[")) else tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply; expected a {what} for each layer") from None
    except ValueError as error:  # raised by both readers, also for integers of thousands of digits
        raise InputError(f"{path}: is neither JSON nor TOML: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f'{path}: expected a {what} for each layer, as in {{"conv1": …}}')
    return values


def _text(path: Path, what: str) -> str:
    expected = f"expected a JSON or TOML file with a {what} for each layer"
    data = read_file(path, expected, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"'{path}' is larger than {MOST_BYTES >> 20} MiB; {expected}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"'{path}' is not UTF-8 text; {expected}") from None


def _processor(value: object, layer: str, path: Path | str) -> str:
    if isinstance(value, str) and value:
        return value
    raise InputError(f"{path}: the processor of layer {quoted(layer)} is no name{_hint(value)}")


def _time(value: object, layer: str, path: Path | str) -> int | Fraction:
    try:
        if isinstance(value, int | float | str) and not isinstance(value, bool) and len(str(value)) <= 40:
            return Fraction(str(value))  # the decimal as written: 0.1 is a tenth
    except (ValueError, ZeroDivisionError):
        pass
    raise InputError(f"{path}: the time of layer {quoted(layer)} is no number{_hint(value)}")


def _hint(value: object) -> str:
    """Advice if TOML parsed a dotted name as tables."""
    return "; put names with dots in quotes" if isinstance(value, dict) else ""
