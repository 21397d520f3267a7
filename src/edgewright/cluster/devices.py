"""A cluster as plain data: devices, the links between them, and the way that data takes from one to another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..errors import InputError

PI4_MACS = 2.4e9  # multiply-accumulates of float32 per second: a Raspberry Pi 4 with S's software (S table 5.3)
PI4_WATTS = (2.7, 6.4)  # idle, and with all four cores busy
GIGABIT = 125e6  # bytes per second

Port = tuple[str, str]  # a link and the end that sends into it; "" where one end at a time may send


@dataclass(frozen=True, slots=True)
class ClusterDevice:
    name: str
    macs_per_second: float
    ram_bytes: int | None = None  # that a plan may use; None: no limit
    flash_bytes: int | None = None  # where weights lie; None: they take RAM
    idle_watts: float = 0.0
    active_watts: float = 0.0
    board: str = ""  # of the catalogue; "": described by its figures alone
    address: str = ""  # host, perhaps with a port, where its node listens; "": a host of its name

    @property
    def address_or_name(self) -> str:
        return self.address or self.name


@dataclass(frozen=True, slots=True)
class ClusterLink:
    """A cable between two ends, or a bus or radio channel that all its ends share."""

    name: str
    ends: tuple[str, ...]  # devices and switches
    bytes_per_second: float
    latency_s: float = 0.0
    is_half_duplex: bool = False  # one end at a time sends

    @property
    def is_shared(self) -> bool:
        return self.is_half_duplex or len(self.ends) > 2

    def port(self, sender: str) -> Port:
        return self.name, "" if self.is_shared else sender


@dataclass(frozen=True)
class Cluster:
    name: str
    devices: tuple[ClusterDevice, ...]
    links: tuple[ClusterLink, ...]
    gateway: str  # the device where frames come in and results go out

    @cached_property
    def device_named(self) -> Mapping[str, ClusterDevice]:
        return {device.name: device for device in self.devices}

    @cached_property
    def link_named(self) -> Mapping[str, ClusterLink]:
        return {link.name: link for link in self.links}

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        """All ports, each of which sends one thing at a time."""
        return tuple(dict.fromkeys(link.port(end) for link in self.links for end in link.ends))

    def route(self, source: str, target: str) -> tuple[Port, ...]:
        """The ports that data passes, on a way with the fewest links."""
        if (source, target) not in self._routes:
            self._routes[source, target] = self._route(source, target)
        return self._routes[source, target]

    def reached_from(self, source: str) -> frozenset[str]:
        """The devices and switches that links lead to."""
        return frozenset((source, *(end for end, _, _ in self._steps(source))))

    def latency(self, source: str, target: str) -> float:
        """Seconds that a bit is under way, beside the time that sending takes."""
        return sum(self.link_named[link].latency_s for link, _ in self.route(source, target))

    def bandwidth(self, source: str, target: str) -> float:
        """Bytes per second of the slowest link on the way."""
        return min(self.link_named[link].bytes_per_second for link, _ in self.route(source, target))

    def _route(self, source: str, target: str) -> tuple[Port, ...]:
        before: dict[str, tuple[str, Port]] = {}
        for end, sender, port in self._steps(source) if target != source else ():
            before[end] = sender, port
            if end == target:
                break
        ports: list[Port] = []
        here = target
        while here != source:
            if here not in before:
                raise InputError(f"cluster '{self.name}': no links lead from '{source}' to '{target}'")
            here, port = before[here]
            ports.append(port)
        return tuple(reversed(ports))

    def _steps(self, source: str) -> Iterator[tuple[str, str, Port]]:
        """Each end that links lead to, the nearest first, with who sends to it and through which port."""
        found, todo = {source}, deque([source])
        while todo:
            here = todo.popleft()
            if here != source and here in self.device_named and not self._forwards(here):
                continue
            for link in self._links_at.get(here, ()):
                for end in link.ends:
                    if end not in found:
                        found.add(end)
                        todo.append(end)
                        yield end, here, link.port(here)

    def _forwards(self, name: str) -> bool:
        """Whether a device passes on what is not for it: where it has several links."""
        return len(self._links_at.get(name, ())) > 1

    @cached_property
    def _routes(self) -> dict[tuple[str, str], tuple[Port, ...]]:
        return {}

    @cached_property
    def _links_at(self) -> Mapping[str, list[ClusterLink]]:
        at: dict[str, list[ClusterLink]] = {}
        for link in self.links:
            for end in dict.fromkeys(link.ends):
                at.setdefault(end, []).append(link)
        return at


def equal_devices(
    count: int,
    macs_per_second: float = PI4_MACS,
    bytes_per_second: float = GIGABIT,
    *,
    latency_s: float = 0.0,
    ram_bytes: int | None = None,
    watts: tuple[float, float] = PI4_WATTS,
) -> Cluster:
    """Equal devices, each with a full-duplex cable to one switch; frames come in at the first."""
    names = [f"device{number}" for number in range(1, count + 1)]
    devices = tuple(ClusterDevice(name, macs_per_second, ram_bytes, None, *watts) for name in names)
    links = tuple(
        ClusterLink(f"link{n}", (name, "switch"), bytes_per_second, latency_s) for n, name in enumerate(names, 1)
    )
    return Cluster(f"{count} equal devices", devices, links, names[0])
