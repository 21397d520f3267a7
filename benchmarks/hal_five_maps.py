"""The fixed register maps of the five peripherals in hal_conventional, in terms of the examples' fields."""

from __future__ import annotations

from edgewright.hal.language.description import Child, Description, Field
from edgewright.hal.layout.layout import FieldAt, RegisterAt

Map = dict[int, tuple[tuple[str, int], ...]]  # by offset: the fields in the order in which a write takes effect, bits

I2C: Map = {
    0x00: (("irqEnable", 1), ("enable", 0)),
    0x04: (("divider", 0),),
    0x08: (("data", 0),),
    0x0C: (("start", 1), ("stop", 2), ("receive", 3), ("refuse", 4), ("go", 0)),
    0x10: (("failure", 1), ("done", 3), ("go", 0)),
    0x14: (("received", 0),),
}
RTC: Map = {
    0x00: (("seconds", 0), ("minutes", 8), ("hours", 16)),
    0x04: (("day", 0), ("month", 8), ("year", 16)),
    0x08: (("alarmEnable", 1), ("running", 0)),
    0x0C: (("correction", 0), ("slower", 15)),
    0x10: (("alarmSeconds", 0), ("alarmMinutes", 8), ("alarmHours", 16)),
    0x14: (("alarmed", 0),),
}
ADC: Map = {
    0x00: (
        ("repeat", 2),
        ("irqEnable", 3),
        ("resolution", 4),
        ("average", 6),
        ("last", 8),
        ("enable", 0),
        ("start", 1),
    ),
    0x04: (("done", 0), ("overrun", 1), ("outside", 2)),
    0x08: tuple((f"steps[{n}].channel", 4 * n) for n in range(8)),
    0x0C: tuple((f"steps[{n}].sampleTime", 3 * n) for n in range(8)),
    0x10: (("low", 0), ("high", 16)),
    **{0x14 + 4 * n: ((f"steps[{n}].result", 0),) for n in range(8)},
}
CAN: Map = {
    0x00: (("retry", 1), ("configure", 0)),
    0x04: (("configuring", 0),),
    0x08: (("prescaler", 0), ("segment1", 16), ("segment2", 20), ("jump", 24), ("loopback", 30), ("silent", 31)),
    0x0C: (("irqReceived", 0), ("irqSent", 1), ("irqErrors", 2)),
    0x10: (("busOff", 0), ("sendErrors", 16), ("receiveErrors", 24)),
    0x14: (("level", 0), ("overrun", 4), ("release", 5)),
    0x18: (("remote", 1), ("extended", 2), ("id", 3)),
    0x1C: (("length", 0),),
    0x20: (("low", 0),),
    0x24: (("high", 0),),
    0x28: tuple((f"filters[{n}].enable", n) for n in range(4)),
}
for box in range(3):
    start, flags = 0x30 + 16 * box, (("remote", 1), ("extended", 2), ("id", 3), ("request", 0))
    CAN[start] = tuple((f"mailboxes[{box}].{name}", bit) for name, bit in flags)
    CAN |= {start + 4 + 4 * n: ((f"mailboxes[{box}].{x}", 0),) for n, x in enumerate(("length", "low", "high"))}
for number in range(4):
    CAN |= {0x60 + 8 * number + 4 * n: ((f"filters[{number}].{x}", 0),) for n, x in enumerate(("id", "mask"))}
PWM: Map = {
    0x00: (("centred", 1), ("enable", 0)),
    0x04: (("prescaler", 0),),
    0x08: (("period", 0),),
    0x0C: (("count", 0),),
    0x10: tuple((f"channels[{n}].{x}", 4 * n + bit) for n in range(4) for bit, x in enumerate(("enable", "inverted"))),
    0x14: tuple((f"channels[{n}].irqEnable", n) for n in range(4)),
    0x18: tuple((f"channels[{n}].matched", n) for n in range(4)),
    **{0x1C + 4 * n: ((f"channels[{n}].compare", 0),) for n in range(4)},
}
MAPS = {"i2c": I2C, "rtc": RTC, "adc": ADC, "can": CAN, "pwm": PWM}
BYTES = {name: max(found) + 4 for name, found in MAPS.items()}


def registers(description: Description, name: str) -> tuple[RegisterAt, ...]:
    """The registers of the conventional device of that name."""
    device = description.device(name)

    def at(path: str, bit: int) -> FieldAt:
        group = device.group
        for step in path.split("."):
            member = description.groups[group].member(step.partition("[")[0])
            if isinstance(member, Child):
                group = member.group
        assert isinstance(member, Field)
        return FieldAt(path, group, member, bit, member.bits)

    return tuple(
        RegisterAt(name, offset, 32, tuple(at(path, bit) for path, bit in inside))
        for offset, inside in sorted(MAPS[name].items())
    )
