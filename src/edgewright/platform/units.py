"""Parses and formats quantities such as "128 KiB", "180 MHz" or "2.5 W".

Sizes are returned in bytes, clocks in hertz and rates in bits per second, as integers; power in watts, time in seconds
and energy in joules as floats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..errors import InputError

_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PARTS = {"m": 10**3, "u": 10**6, "µ": 10**6, "n": 10**9}

# Larger than on any board, and still exact in the solvers' 64-bit integers.
_LIMIT = 2**60

# A decimal or, as in linker scripts, hexadecimal number; then a unit or nothing. The number of
# digits is bounded, so that no text, however long, takes long to refuse.
_TEXT = re.compile(
    r"(?P<hex>0[xX][0-9a-fA-F]{1,16})"
    r"|(?P<number>[0-9]{1,20}(\.[0-9]{1,20})?) *(?P<unit>[^\d\s.,+-]\S*)?"
)


@dataclass(frozen=True)
class Quantity:
    """A kind of quantity: its units, and its name in messages."""

    noun: str  # with its article, as in "expected a size"
    examples: str
    units: Mapping[str, Fraction]
    integral: bool = True

    @property
    def expected(self) -> str:
        """The expected form, for messages."""
        return f"{self.noun} such as {self.examples}"


def _units(factors: Mapping[str, int | Fraction]) -> Mapping[str, Fraction]:
    return {unit: Fraction(factor) for unit, factor in factors.items()}


# "K" alone is 1024 as in linker scripts; "kB" is 1000 as in SI, so that a size is never taken for
# more memory than there is.
SIZE = Quantity(
    "a size",
    '"128 KiB", "64K", "1 MB" or 65536',
    _units(
        {"B": 1}
        | {f"{p}iB": f for p, f in _BINARY.items()}
        | {f"{p}B": f for p, f in _DECIMAL.items()}
        | {"KB": 1000}
        | _BINARY
        | {p.lower(): f for p, f in _BINARY.items()}
    ),
)
FREQUENCY = Quantity(
    "a frequency", '"180 MHz", "1.5 GHz" or 180000000', _units({"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9})
)
RATE = Quantity(
    "a data rate",
    '"100 Mbit/s", "1 GB/s" or 115200',
    _units(
        {"bit/s": 1}
        | {f"{p}bit/s": f for p, f in _DECIMAL.items()}
        | {"B/s": 8}
        | {f"{p}B/s": 8 * f for p, f in _DECIMAL.items()}
        | {f"{p}iB/s": 8 * f for p, f in _BINARY.items()}
    ),
)
MAC_RATE = Quantity(
    "a speed in multiply-accumulates",
    '"2.4 GMAC/s", "90 MMAC/s" or 2400000000',
    _units({"MAC/s": 1} | {f"{p}MAC/s": f for p, f in _DECIMAL.items()}),
    integral=False,
)
POWER = Quantity(
    "a power",
    '"2.5 W", "80 mW" or 2.5',
    _units({"W": 1, "kW": 1000} | {f"{p}W": Fraction(1, f) for p, f in _PARTS.items()}),
    integral=False,
)
TIME = Quantity(
    "a time",
    '"0.5 ms", "80 ns" or 0.0005',
    _units({"s": 1} | {f"{p}s": Fraction(1, f) for p, f in _PARTS.items()} | {"min": 60, "h": 3600}),
    integral=False,
)
ENERGY = Quantity(
    "an energy",
    '"52 Wh", "20 mJ" or 187200',
    _units(
        {"J": 1, "kJ": 1000, "MJ": 10**6}
        | {f"{p}J": Fraction(1, f) for p, f in _PARTS.items()}
        | {"Wh": 3600, "kWh": 3_600_000, "mWh": Fraction(18, 5)}
    ),
    integral=False,
)


def parse_size(value: object, or_zero: bool = False) -> int:
    """Bytes: "64K" and "64 KiB" give 65536, "64 kB" gives 64000."""
    return int(_parse(SIZE, value, or_zero))


def parse_frequency(value: object) -> int:
    """Hertz."""
    return int(_parse(FREQUENCY, value))


def parse_rate(value: object) -> int:
    """Bits per second; "1 MB/s" gives 8000000."""
    return int(_parse(RATE, value))


def parse_mac_rate(value: object) -> float:
    """Multiply-accumulates per second."""
    return float(_parse(MAC_RATE, value))


def parse_power(value: object) -> float:
    """Watts."""
    return float(_parse(POWER, value))


def parse_time(value: object, or_zero: bool = False) -> float:
    """Seconds."""
    return float(_parse(TIME, value, or_zero))


def parse_energy(value: object, or_zero: bool = False) -> float:
    """Joules."""
    return float(_parse(ENERGY, value, or_zero))


def format_size(size: int) -> str:
    """The shortest exact spelling, which `parse_size` reads back: 131072 is "128 KiB"."""
    return _format(SIZE, size)


def format_frequency(hertz: int) -> str:
    """The shortest exact spelling, which `parse_frequency` reads back."""
    return _format(FREQUENCY, hertz)


def show(value: object) -> str:
    """A value as a person wrote it, shortened to fit in one line of a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10**30:  # Python refuses to print very long integers
        return "a number of more than 30 digits"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    text = "".join(char if char.isprintable() else "?" for char in str(value))
    if len(text) > 60:
        text = text[:57] + "..."
    return f'"{text}"' if isinstance(value, str) else text


def _parse(quantity: Quantity, value: object, or_zero: bool = False) -> Fraction:
    amount = _amount(quantity, value)
    if or_zero and amount == 0:
        return amount
    if amount <= 0:
        raise _refusal(quantity, value, "it must be more than zero")
    if amount > _LIMIT:
        raise _refusal(quantity, value, "it is too large")
    if quantity.integral and amount.denominator != 1:
        raise _refusal(quantity, value, f"it is not a whole number of {next(iter(quantity.units))}")
    if not quantity.integral and float(amount) == 0:
        raise _refusal(quantity, value, "it is too small")
    return amount


def _amount(quantity: Quantity, value: object) -> Fraction:
    """The value in the quantity's first unit, unchecked."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, float) and not quantity.integral and abs(value) < _LIMIT:  # inf and nan fail this
        return Fraction(value)
    if not isinstance(value, str):
        raise _refusal(quantity, value)
    text = value.strip()
    if text.startswith("-"):
        raise _refusal(quantity, value, "it must be more than zero")
    match = _TEXT.fullmatch(text)
    if match is None:
        raise _refusal(quantity, value)
    if match["hex"]:
        return Fraction(int(match["hex"], 16))
    unit = match["unit"]
    if unit is None:
        return Fraction(match["number"])
    if unit not in quantity.units:
        raise _refusal(quantity, value, _unknown_unit(quantity, unit))
    return Fraction(match["number"]) * quantity.units[unit]


def _unknown_unit(quantity: Quantity, unit: str) -> str:
    for known in quantity.units:
        if known.lower() == unit.lower():
            return f"{show(unit)} is no unit of it, did you mean {known}?"
    return f"{show(unit)} is no unit of it"


def _refusal(quantity: Quantity, value: object, reason: str = "") -> InputError:
    because = f" ({reason})" if reason else ""
    return InputError(f"{show(value)} is not {quantity.noun}{because}; expected {quantity.expected}")


def _format(quantity: Quantity, amount: int) -> str:
    # The unit with the fewest digits; among equals the first, which is the binary one.
    exact = [(text, unit) for unit, factor in quantity.units.items() if (text := _decimal(amount / factor))]
    text, unit = min(exact, key=lambda pair: len(pair[0].replace(".", "")))
    return f"{text} {unit}"


def _decimal(number: Fraction) -> str:
    """The number with at most three decimals; empty if that is not exact or it is below 1."""
    thousandths = number * 1000
    if number < 1 or thousandths.denominator != 1:
        return ""
    whole, part = divmod(int(thousandths), 1000)
    return f"{whole}.{part:03}".rstrip("0").rstrip(".")
