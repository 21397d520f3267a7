"""Board: the available hardware as plain data; `catalogue` and `schema` read it from files."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import combinations
from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .processor import Processor, ProcessorKind
from .schema import Address, BitsPerSecond, Bytes, BytesOrZero, Entry, Flag, Name, Seconds, Text, Watts, Whole


class Memory(Entry):
    """One memory as the linker sees it: a name, a size, and optionally an address."""

    name: Name = Field(description="a name, unique among the memories")
    size: Bytes = Field(description='a size, such as "128 KiB"')
    read_only: Flag = Field(default=False, description="true for flash and the like, else false")
    reserved: BytesOrZero = Field(
        default=0, description='what the system takes (stack, caches, RTOS), such as "16 KiB"; less than the size'
    )
    address: Address | None = Field(default=None, description="where it starts, such as 0x20000000")
    bandwidth: BitsPerSecond | None = Field(default=None, description='a data rate, such as "59.7 GB/s"')
    wait_states: Whole | None = Field(
        default=None, ge=0, le=10**6, description="extra cycles of an access at the highest clock, 0 or more"
    )
    attached: tuple[Name, ...] = Field(
        default=(), description="a list of the processors that reach it; all of them when left out"
    )

    @property
    def usable(self) -> int:
        """Bytes left for a plan."""
        return self.size - self.reserved


class LinkKind(Enum):
    """A kind of connection to other boards."""

    ETHERNET = "ethernet"
    WIFI = "wifi"
    BLUETOOTH = "bluetooth"
    USB = "usb"
    PCIE = "pcie"
    UART = "uart"
    SPI = "spi"
    I2C = "i2c"
    CAN = "can"


class Link(Entry):
    """A connection from this board to others."""

    name: Name = Field(description="a name, unique among the links")
    kind: LinkKind = Field(description="one of " + ", ".join(kind.value for kind in LinkKind))
    bandwidth: BitsPerSecond = Field(description='a data rate, such as "100 Mbit/s"')
    latency: Seconds | None = Field(default=None, description='a time, such as "0.5 ms"')


class Power(Entry):
    """The power of the whole board."""

    idle: Watts | None = Field(default=None, description='a power, such as "80 mW"')
    active: Watts | None = Field(default=None, description='a power, such as "2.5 W"')


class Board(Entry):
    """Processors, memories and links of one piece of hardware.

    Memories are listed fastest first, in the file and here: a planner with a choice takes the earlier one. If the
    addresses of two adjoin, one arena may span both.
    """

    name: Name = Field(description='a name of a-z, 0-9, "-" and "_"')
    title: Text = Field(default="", description="a text: the board's name as its maker writes it")
    source: Text = Field(default="", description="a text: the document the figures were read from")
    alignment: Whole = Field(
        default=4,
        ge=1,
        le=4096,
        description="the bytes every buffer starts on a multiple of: a power of two up to 4096",
    )
    processors: tuple[Processor, ...] = Field(
        alias="processor", description="a table headed [[processor]], at least one"
    )
    memories: tuple[Memory, ...] = Field(
        alias="memory", description="a table headed [[memory]], fastest first, at least one of them writable"
    )
    links: tuple[Link, ...] = Field(default=(), alias="link", description="a table headed [[link]], or none")
    power: Power = Field(default=Power(), description="a table headed [power]")

    def __repr__(self) -> str:
        return f"Board('{self.name}', {self.ram_size:,} B of RAM)"

    @property
    def ram(self) -> tuple[Memory, ...]:
        """Writable memories, fastest first."""
        return tuple(memory for memory in self.memories if not memory.read_only)

    @property
    def flash(self) -> tuple[Memory, ...]:
        """Read-only memories, fastest first."""
        return tuple(memory for memory in self.memories if memory.read_only)

    @property
    def ram_size(self) -> int:
        """Usable bytes of all writable memories; a single buffer must still fit in one of them."""
        return sum(memory.usable for memory in self.ram)

    @property
    def flash_size(self) -> int | None:
        """Usable bytes of all read-only memories; None if there are none, and weights come from a file system."""
        return sum(memory.usable for memory in self.flash) if self.flash else None

    def memories_of(self, processor: str) -> tuple[Memory, ...]:
        """The memories that a processor can access, fastest first."""
        return tuple(m for m in self.memories if not m.attached or processor in m.attached)

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        for key, problem in _broken_rules(self):
            # The text is passed as a value, since it may contain braces.
            raise PydanticCustomError("rule", "{problem}", {"key": key, "problem": problem})
        return self


def _broken_rules(board: Board) -> Iterator[tuple[str, str]]:
    """Rules that involve several fields: (key, problem)."""
    if board.alignment & (board.alignment - 1):
        yield "alignment", f"is {board.alignment}; expected a power of two"
    if not board.processors:
        yield "processor", "is empty; expected at least one [[processor]]"
    if not board.ram:
        yield "memory", "has no writable entry; expected at least one [[memory]] without read_only = true"
    for key, parts in (("processor", board.processors), ("memory", board.memories), ("link", board.links)):
        names = [part.name for part in parts]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield (
                    f"{key}[{index}].name",
                    f'is "{name}", as in {key}[{names.index(name)}]; expected a unique name',
                )
    for index, processor in enumerate(board.processors):
        if processor.lanes > 1 and processor.kind is not ProcessorKind.GPU:
            yield f"processor[{index}].lanes", "is for a gpu; expected `count` for the cores of a CPU"
    known = {processor.name for processor in board.processors}
    for index, memory in enumerate(board.memories):
        if memory.reserved >= memory.size:
            yield (
                f"memory[{index}].reserved",
                f"is {memory.reserved} bytes; expected less than the size, {memory.size}",
            )
        for name in memory.attached:
            if name not in known:
                yield (f"memory[{index}].attached", f'names "{name}"; expected one of {", ".join(sorted(known))}')
    for (i, one), (j, two) in combinations(enumerate(board.memories), 2):
        if _overlap(one, two):
            yield (
                f"memory[{j}].address",
                f'puts "{two.name}" over "{one.name}" (memory[{i}]); expected disjoint ranges',
            )


def _overlap(one: Memory, two: Memory) -> bool:
    if one.address is None or two.address is None:
        return False
    # Two processors may each see their own memory at the same address.
    if one.attached and two.attached and not set(one.attached) & set(two.attached):
        return False
    return one.address < two.address + two.size and two.address < one.address + one.size
