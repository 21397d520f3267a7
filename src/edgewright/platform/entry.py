"""The field types of board files, named after their units; which fields there are is told elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StringConstraints

from ..errors import InputError
from .units import parse_frequency, parse_power, parse_rate, parse_size, parse_time

T = TypeVar("T")


class Entry(BaseModel):
    """Base of all pieces of a board: immutable, and a key that is not a field is an error.

    Each field's description completes the sentence "expected …" of an error message, and is the
    reference text of the documentation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


def _reads(parse: Callable[[object], T]) -> BeforeValidator:
    def validate(value: object) -> T:
        try:
            return parse(value)
        except InputError as error:  # pydantic adds the key to a ValueError only
            raise ValueError(str(error)) from error

    return BeforeValidator(validate)


def _size_or_zero(value: object) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else parse_size(value)


Name = Annotated[str, StringConstraints(strict=True, max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Text = Annotated[str, StringConstraints(strict=True, max_length=500)]
Flag = StrictBool
Whole = StrictInt
Address = Annotated[StrictInt, Field(ge=0, lt=2**64)]
Bytes = Annotated[int, _reads(parse_size)]
BytesOrZero = Annotated[int, _reads(_size_or_zero)]
Hertz = Annotated[int, _reads(parse_frequency)]
BitsPerSecond = Annotated[int, _reads(parse_rate)]
Watts = Annotated[float, _reads(parse_power)]
Seconds = Annotated[float, _reads(parse_time)]
