"""The conventional drivers of the benchmark: their sources, and where PULPino's registers have the fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from edgewright.hal import examples
from edgewright.hal.language.description import Description
from edgewright.hal.layout.layout import FieldAt, RegisterAt

HERE = Path(__file__).parent / "hal_conventional"
EXAMPLES = Path(examples.__file__).parent
MAP_BYTES = 64 + 40  # GPIO and SPI
PLANES = {"dir": 0x00, "in": 0x04, "out": 0x08, "intEn": 0x0C, "function": 0x1C}  # a bit for each pad
SPI = {  # in the order in which a write to a register takes effect
    0x00: (("chipSelect", 8), ("start", 0), ("state", 0), ("rxLevel", 16), ("txLevel", 24)),
    0x04: (("clkDiv", 0),),
    0x08: (("cmd", 0),),
    0x0C: (("addr", 0),),
    0x10: (("cmdLen", 0), ("addrLen", 8), ("dataLen", 16)),
    0x14: (("dummyRd", 0), ("dummyWr", 16)),
    0x18: (("data", 0),),
    0x20: (("data", 0),),
    0x24: (("irqTx", 0), ("irqRx", 8), ("irqEn", 31)),
}
_LOCAL = re.compile(r"^(    (?:for \()?)(uint32_t \w+ = )", re.MULTILINE)


def headers() -> dict[str, str]:
    """What every driver's functions look like from outside, and who calls them."""
    files = [*EXAMPLES.glob("*.h"), HERE / "workload.c"]
    return {file.name: file.read_text() for file in files}


def clean(shared: bool = False) -> dict[str, str]:
    """The drivers as one writes them; `shared` with one function for all single bits of the GPIO."""
    found = headers() | {file.name: file.read_text() for file in HERE.glob("*.h")}
    gpio = HERE / ("gpio_shared.c" if shared else "gpio.c")
    return found | {"gpio.c": gpio.read_text(), "spi.c": (HERE / "spi.c").read_text()}


def with_volatile_locals() -> dict[str, str]:
    """The same drivers with every local variable volatile, as PULPino has them."""
    found = clean()
    return found | {name: _LOCAL.sub(r"\1volatile \2", found[name]) for name in ("gpio.c", "spi.c")}


def registers(description: Description) -> tuple[RegisterAt, ...]:
    """PULPino's register maps, in terms of the examples' fields."""
    return (*_gpio(description), *_spi(description))


def _gpio(description: Description) -> Iterator[RegisterAt]:
    def pad(number: int, name: str, bit: int, size: int = 1, low: int = 0) -> FieldAt:
        field = description.field("GPIOPad", name)
        return FieldAt(f"pads[{number}].{name}", "GPIOPad", field, bit, size, low)

    for name, offset in PLANES.items():
        yield RegisterAt("gpio", offset, 32, tuple(pad(number, name, number) for number in range(32)))
    for low in (0, 1):
        fields = tuple(pad(number, "intType", number, 1, low) for number in range(32))
        yield RegisterAt("gpio", 0x10 + 4 * low, 32, fields)
    status = FieldAt("intStatus", "GPIOType", description.field("GPIOType", "intStatus"), 0, 32)
    yield RegisterAt("gpio", 0x18, 32, (status,))
    for word in range(8):
        fields = tuple(pad(4 * word + byte, "cfg", 8 * byte, 8) for byte in range(4))
        yield RegisterAt("gpio", 0x20 + 4 * word, 32, fields)


def _spi(description: Description) -> Iterator[RegisterAt]:
    for offset, inside in SPI.items():
        fields = [(name, bit, description.field("SPIType", name)) for name, bit in inside]
        found = tuple(FieldAt(name, "SPIType", field, bit, field.bits) for name, bit, field in fields)
        yield RegisterAt("spi", offset, 32, found)
