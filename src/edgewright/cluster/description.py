"""What a cluster file says: devices, the cables and buses between them, and where frames come in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from ..errors import BoardError, InputError
from ..platform import Board, load_board
from ..platform.board import Link
from ..platform.schema import (
    BitsPerSecond,
    Bytes,
    Entry,
    Flag,
    MacsPerSecond,
    Name,
    SecondsOrZero,
    Text,
    Watts,
    read_toml,
    suggestion,
)
from ..run.estimated_times import peak_rate
from .devices import Cluster, ClusterDevice, ClusterLink
from .node.addresses import host_and_port

MOST_DEVICES = 10_000
SHARE_OF_PEAK = 0.1  # of the vector units' peak that S's software reaches on a Raspberry Pi 4: 2.4 of 24 GMAC/s
_BITS = 8

LinkEnds = Annotated[tuple[Name, ...], Field(min_length=1, max_length=1000)]


class DeviceEntry(Entry):
    """One device, or several equal ones."""

    name: Name = Field(description='a name, unique in the file; with count = 3, "pi" stands for pi1, pi2 and pi3')
    count: Annotated[StrictInt, Field(ge=1, le=MOST_DEVICES)] | None = Field(
        default=None, description=f"the number of equal devices, 1 to {MOST_DEVICES:,}"
    )
    board: Text = Field(default="", description="a board from `edgewright boards`, or a board file")
    rate: MacsPerSecond | None = Field(default=None, description='a speed, such as "2.4 GMAC/s"')
    ram: Bytes | None = Field(default=None, description='a size, such as "512 MiB"; that of the board when left out')
    flash: Bytes | None = Field(default=None, description='a size, such as "2 MiB"; that of the board when left out')
    idle: Watts | None = Field(default=None, description='a power, such as "2.7 W"')
    active: Watts | None = Field(default=None, description='a power, such as "6.4 W"')
    switch: Name | None = Field(default=None, description="the name of the switch that each has a cable to")
    link: Name | None = Field(default=None, description="a link of the board, for the cable to the switch")
    bandwidth: BitsPerSecond | None = Field(
        default=None, description='the data rate of the cable to the switch, such as "100 Mbit/s"'
    )
    latency: SecondsOrZero | None = Field(default=None, description='the delay of that cable, such as "0.2 ms"')
    half_duplex: Flag = Field(default=False, description="true if one end at a time sends on that cable, else false")
    address: Text = Field(
        default="",
        description='where its node listens, such as "10.0.0.5" or "pi1.local:7447"; a host of its name when left out',
    )

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of its devices."""
        return (self.name,) if self.count is None else tuple(f"{self.name}{n + 1}" for n in range(self.count))


class LinkEntry(Entry):
    """A cable between two ends, or a bus or radio channel that several share."""

    name: Name | None = Field(default=None, description="a name, unique among the links")
    ends: LinkEnds = Field(
        description='a list of two devices or switches, such as ["pi1", "switch"], or of more for a bus'
    )
    bandwidth: BitsPerSecond = Field(description='a data rate, such as "100 Mbit/s"')
    latency: SecondsOrZero = Field(default=0.0, description='a delay, such as "0.2 ms"')
    half_duplex: Flag = Field(default=False, description="true if one end at a time sends, else false")


class ClusterFile(Entry):
    """The whole file."""

    name: Name = Field(default="cluster", description='a name of a-z, 0-9, "-" and "_"')
    gateway: Name | None = Field(
        default=None, description="the device where frames come in and results go out; the first when left out"
    )
    switches: tuple[Name, ...] = Field(
        default=("switch",), max_length=1000, description='a list of the names of switches, such as ["switch"]'
    )
    devices: tuple[DeviceEntry, ...] = Field(
        alias="device", max_length=MOST_DEVICES, description="a table headed [[device]], at least one"
    )
    links: tuple[LinkEntry, ...] = Field(
        default=(), alias="link", max_length=MOST_DEVICES, description="a table headed [[link]], or none"
    )

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        for key, problem in _broken_rules(self):
            raise PydanticCustomError("rule", "{problem}", {"key": key, "problem": problem})
        return self

    @property
    def device_names(self) -> tuple[str, ...]:
        return tuple(name for entry in self.devices for name in entry.devices)

    def ends_of(self, link: LinkEntry) -> tuple[str, ...]:
        """The devices and switches that it joins; the name of several equal devices stands for all of them."""
        groups = {entry.name: entry.devices for entry in self.devices}
        return tuple(dict.fromkeys(end for name in link.ends for end in groups.get(name, (name,))))


def read_cluster(path: Path) -> Cluster:
    """The cluster that a file describes; an error names the file, the key and what was expected."""
    file = read_toml(path, ClusterFile, "a cluster")
    try:
        return _cluster(file)
    except (InputError, BoardError) as error:
        raise InputError(f"{path}: {error}") from error


def _broken_rules(file: ClusterFile) -> Iterator[tuple[str, str]]:
    """What no single field can tell: (key, what is wrong)."""
    if sum(entry.count or 1 for entry in file.devices) > MOST_DEVICES:
        yield "device", f"has more than {MOST_DEVICES:,} devices in all; expected fewer"
        return
    names = file.device_names
    if len(names) < 2:
        there = "one device" if names else "no device"
        yield "device", f"has {there}; expected at least two, such as count = 2 (`edgewright map` plans for one board)"
        return
    yield from _repeated_names(file)
    yield from _repeated_addresses(file)
    known = {*names, *file.switches}
    for index, entry in enumerate(file.devices):
        key = f"device[{index}]"
        if entry.switch is not None and entry.switch not in file.switches:
            yield f"{key}.switch", f'is "{entry.switch}"; {_one_of(entry.switch, file.switches, "the switches")}'
        if not entry.board and entry.rate is None:
            yield key, f'("{entry.name}") has no speed; expected a board, or a rate such as "2.4 GMAC/s"'
        if entry.link is not None and not entry.board:
            yield f"{key}.link", "is for a board's own link; expected a board beside it, or a bandwidth"
        if entry.address and (entry.count or 1) > 1:
            yield f"{key}.address", "is of one device, and there are several; give each a [[device]] of its own"
        for cable in ("link", "bandwidth", "latency"):
            if getattr(entry, cable) is not None and entry.switch is None:
                yield f"{key}.{cable}", "is of the cable to a switch; expected a switch beside it"
    for index, link in enumerate(file.links):
        key, ends = f"link[{index}]", file.ends_of(link)
        for end in ends:
            if end not in known:
                yield f"{key}.ends", f'names "{end}"; {_one_of(end, known, "the devices and switches")}'
        if len(ends) < 2:
            yield f"{key}.ends", "joins nothing; expected two different devices or switches, or more for a bus"
    if file.gateway is not None and file.gateway not in names:
        yield "gateway", f'is "{file.gateway}"; {_one_of(file.gateway, names, "the devices")}'


def _repeated_names(file: ClusterFile) -> Iterator[tuple[str, str]]:
    groups = [entry.name for entry in file.devices if entry.count is not None]
    counts = Counter([*file.device_names, *file.switches, *groups])
    for index, entry in enumerate(file.devices):
        twice = [name for name in (*entry.devices, entry.name) if counts[name] > 1]
        if twice:
            yield f"device[{index}].name", f'gives the name "{twice[0]}", which is taken; expected a unique name'
    for index, name in enumerate(file.switches):
        if counts[name] > 1:
            yield f"switches[{index}]", f'is "{name}", which is taken; expected a unique name'
    links = Counter(link.name or "" for link in file.links)
    for index, link in enumerate(file.links):
        if link.name and links[link.name] > 1:
            yield f"link[{index}].name", f'is "{link.name}", which is taken; expected a unique name'


def _repeated_addresses(file: ClusterFile) -> Iterator[tuple[str, str]]:
    """Addresses that two nodes would listen at: the same host and port."""
    taken: dict[tuple[str, int], str] = {}
    for index, entry in enumerate(file.devices):
        for name in entry.devices:
            try:
                place = host_and_port((entry.address if len(entry.devices) == 1 else "") or name)
            except InputError:
                expected = "expected a host and perhaps a port, such as pi1.local:7447"
                yield f"device[{index}].address", f'is "{entry.address}"; {expected}'
                break
            if place in taken:
                at = f"{place[0]}:{place[1]}"
                yield (
                    f"device[{index}].address",
                    f'leads "{name}" to {at}, which is the address of "{taken[place]}"; give each device its own',
                )
            taken.setdefault(place, name)


def _one_of(name: str, known: tuple[str, ...] | set[str], what: str) -> str:
    names = sorted(known)
    if len(names) <= 8:
        return f"expected one of {what}: {', '.join(names)}" if names else f"expected one of {what}, but there is none"
    return f"expected one of {what}{suggestion(name, names)}"


def _cluster(file: ClusterFile) -> Cluster:
    boards = {entry.board: load_board(entry.board) for entry in file.devices if entry.board}
    devices = [_device(entry, name, boards.get(entry.board)) for entry in file.devices for name in entry.devices]
    links = [link for index, entry in enumerate(file.devices) for link in _cables(index, entry, boards)]
    taken = {link.name for link in links} | {link.name for link in file.links if link.name}
    for index, link in enumerate(file.links):
        name = link.name or _unused(f"link{index + 1}", taken)
        ends, speed = file.ends_of(link), link.bandwidth / _BITS
        links.append(ClusterLink(name, ends, speed, link.latency, link.half_duplex))
    made = Cluster(file.name, tuple(devices), tuple(links), file.gateway or devices[0].name)
    _check_links(made)
    return made


def _device(entry: DeviceEntry, name: str, board: Board | None) -> ClusterDevice:
    rate, ram, flash, idle, active = entry.rate, entry.ram, entry.flash, entry.idle, entry.active
    if board is not None:
        rate = rate or board_rate(board)
        ram, flash = ram or board.ram_size, flash or board.flash_size
        idle, active = idle or board.power.idle, active or board.power.active
    assert rate is not None
    return ClusterDevice(name, rate, ram, flash, idle or 0.0, active or idle or 0.0, entry.board, entry.address)


def board_rate(board: Board) -> float:
    """Multiply-accumulates of float32 per second: an estimate, a share of what the vector units of all cores could do.

    Graphics processors do not count.
    """
    cores = (one for one in board.processors if one.kind.value != "gpu")
    return SHARE_OF_PEAK * sum(one.count * peak_rate(board, one).macs_per_s for one in cores)


def _cables(index: int, entry: DeviceEntry, boards: Mapping[str, Board]) -> Iterator[ClusterLink]:
    """The cables from the devices of a table to their switch."""
    if entry.switch is None:
        return
    own = _board_link(index, entry, boards[entry.board]) if entry.board else None
    bandwidth = entry.bandwidth or (own.bandwidth if own else None)
    if bandwidth is None:
        where = f"board {entry.board} has no link" if entry.board else "no board is given"
        raise InputError(f'device[{index}] ("{entry.name}"): {where}; give a bandwidth such as "100 Mbit/s"')
    latency = entry.latency if entry.latency is not None else (own.latency if own else None) or 0.0
    for name in entry.devices:
        ends = (name, entry.switch)
        yield ClusterLink(f"{name}-{entry.switch}", ends, bandwidth / _BITS, latency, entry.half_duplex)


def _board_link(index: int, entry: DeviceEntry, board: Board) -> Link | None:
    """The board's link that is named, or its first."""
    if entry.link is None:
        return board.links[0] if board.links else None
    for link in board.links:
        if link.name == entry.link:
            return link
    names = ", ".join(link.name for link in board.links)
    known = f"expected one of {names}" if names else "the board has none; give a bandwidth instead"
    raise InputError(f'device[{index}].link is "{entry.link}", which is no link of board {board.name}; {known}')


def _check_links(cluster: Cluster) -> None:
    """Refuses links of one name, and devices that no links lead to."""
    twice = [name for name, count in Counter(link.name for link in cluster.links).items() if count > 1]
    if twice:
        raise InputError(f'two links have the name "{twice[0]}"; give each a name of its own')
    joined, reached = {end for link in cluster.links for end in link.ends}, cluster.reached_from(cluster.gateway)
    for device in cluster.devices:
        if device.name not in joined:
            raise InputError(
                f'no link reaches device "{device.name}"; give it a switch, such as switch = "switch", or name it in '
                "the ends of a [[link]]"
            )
        if device.name not in reached:
            raise InputError(
                f'no links lead from the gateway "{cluster.gateway}" to device "{device.name}"; join their switches '
                "by a [[link]]"
            )


def _unused(name: str, taken: set[str]) -> str:
    return name if name not in taken else _unused(f"{name}-", taken)
