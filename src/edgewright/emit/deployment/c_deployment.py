"""A deployment as its C sees it: a bit for each part, C of places, and which inputs and outputs the caller passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

from ...errors import InputError
from ...network import Network, Tensor
from ...network.parts import cut, given_outside
from ...program.deployment import (
    OUTSIDE,
    ArenaLayout,
    Deployment,
    Fifo,
    FirmwareBuffer,
    Part,
)
from ..files import renamed
from ..names import Parameters, arena_names, parameters
from ..packaging import rendered
from .names import LibraryNames

MOST = 32  # bits of a word


@dataclass(frozen=True)
class CDeployment:
    """A deployment for one device, and what its C is called."""

    deployment: Deployment
    names: LibraryNames

    @property
    def name(self) -> str:
        return self.names.library

    @property
    def guard(self) -> str:
        """What its macros begin with."""
        return self.name.upper()

    def prefix(self, part: Part) -> str:
        """What the part's functions begin with."""
        return self.names.parts[part.name]

    def function(self, part: Part) -> str:
        """The function that runs the part."""
        return f"{self.name}_run_{self.prefix(part)}"

    def parameters(self, part: Part) -> Parameters:
        """The parameters of the part's functions, as headers call them."""
        return parameters(self.prefix(part), part.network, self.deployment.plans[part.name].arenas)

    def text(self, file: str) -> list[str]:
        """Lines of C that is the same for all deployments but for its names."""
        return renamed((resources.files(__package__) / "c" / file).read_text(encoding="utf-8"), self.name).splitlines()

    def render(self, template: str, **facts: object) -> str:
        """A template, filled in."""
        text = (resources.files(__package__) / "templates" / f"{template}.jinja").read_text(encoding="utf-8")
        return rendered(text, {"name": self.name, "macro": self.guard, **facts})

    @cached_property
    def lock_lines(self) -> tuple[list[str], list[str]]:
        """What the header says about locks, and C of the macros LOCK and UNLOCK."""
        lines = self.text("locks.h")
        end = next(n for n, line in enumerate(lines, 1) if line.endswith("*/"))
        return lines[:end], lines[end:]

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.deployment.parts

    @cached_property
    def references(self) -> Mapping[str, Network]:
        """Each part as the model has it, without what planning added."""
        whole = self.deployment.network_named
        return {part.name: _reference(whole[part.owner], part.network) for part in self.parts}

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The number of each part."""
        return {part.name: n for n, part in enumerate(self.parts)}

    def bits(self, names: Iterable[str]) -> int:
        """A bit for each of these parts."""
        return sum(1 << self.index[name] for name in set(names))

    def frame(self, part: str) -> str:
        """C of the number of the frame that a part is at, during its run; a part that fills a ring counts it first."""
        number = f"done[{self.index[part]}]"
        return f"({number} - 1u)" if any(ring.source == part for ring in self.deployment.rings) else number

    def beside(self, part: str) -> frozenset[str]:
        """The parts that run parallel to this one."""
        return frozenset(other for other in self.index if self.deployment.are_parallel(part, other))

    @property
    def is_polled(self) -> bool:
        """Whether any part may be interrupted."""
        return any(map(self.deployment.may_be_interrupted, self.index))

    @property
    def is_shared(self) -> bool:
        """Whether threads, cores or interrupts may start parts at the same time."""
        return any(one.points is None for one in self.deployment.preemptions) or any(map(self.beside, self.index))

    def turns(self, low: str) -> Mapping[int, tuple[int, ...]]:
        """For each stage, the turns after which others may interrupt the part."""
        places = sorted(self.deployment.points_of(low).rows)
        return {stage: tuple(turn for at, turn in places if at == stage) for stage, _ in places}

    @cached_property
    def arenas(self) -> Mapping[str, ArenaLayout]:
        """What lies where in each memory of the device."""
        return {memory: layout for (_, memory), layout in self.deployment.arenas.items()}

    @cached_property
    def sections(self) -> Mapping[str, str]:
        """The name of each memory in C."""
        return arena_names(self.arenas)

    def arena(self, memory: str) -> str:
        """The array that is the arena of a memory."""
        return "arena" if len(self.sections) == 1 else f"arena_{self.sections[memory]}"

    def size_macro(self, memory: str) -> str:
        own = f"_{self.sections[memory].upper()}" if len(self.sections) > 1 else ""
        return f"{self.guard}_ARENA{own}_SIZE"

    def base(self, part: Part, memory: str) -> int:
        """Where the part's own arena begins."""
        return self.arenas[memory].workers[self.deployment.workers_of[part.name][0].name]

    def place(self, part: Part, tensor: str) -> tuple[str, int]:
        """The memory in which a part has a tensor, and where it begins there."""
        plan = self.deployment.plans[part.name]
        view = plan.views[tensor]
        buffer = plan.buffer_named[view.buffer]
        return buffer.memory, self.base(part, buffer.memory) + buffer.offset + view.offset

    def slots(self, fifo: Fifo) -> tuple[tuple[str, int], ...]:
        """Where the frames of a queue lie, slot by slot; in place, where the source makes them."""
        for memory, layout in self.arenas.items():
            if fifo.what in layout.slots:
                return tuple((memory, at) for at in layout.slots[fifo.what])
        source = self.deployment.part_named[fifo.source]
        return (self.place(source, source.own(fifo)),)

    def address(self, place: tuple[str, int]) -> str:
        """C of where something begins."""
        return f"{self.arena(place[0])} + {place[1]}"

    def buffer_function(self, own: FirmwareBuffer) -> str:
        """The function that points to a buffer of the firmware."""
        return f"{self.name}_buffer_{own.name.lower()}"

    def _passed(self, part: Part) -> frozenset[str]:
        """The inputs and outputs that go from part to part."""
        fifos = (
            *self.deployment.queues,
            *(x for x in self.deployment.shared if (x.source, x.writer) != (OUTSIDE, part.name)),
        )
        return frozenset(part.own(fifo) for fifo in fifos if part.name in fifo.ends)

    def given(self, part: Part) -> tuple[list[str], list[str]]:
        """The inputs and outputs that the caller passes, in the order of the run function's parameters."""
        ends, passed = (part.network.inputs, dict.fromkeys(part.network.outputs)), self._passed(part)
        inputs, outputs = ([name for name in names if name not in passed] for names in ends)
        return inputs, outputs

    def resident(self, part: Part) -> frozenset[str]:
        """The inputs and outputs that stay in the arena, for other parts or from them."""
        return self._passed(part) - set(self.deployment.plans[part.name].outside)

    def handed(self, part: Part) -> Iterator[str]:
        """Sentences: what the part reads that others have brought or made."""
        for fifo in self.deployment.shared:
            if part.name in fifo.reading and fifo.writer != part.name:
                yield f"{part.own(fifo)} is {fifo.what.tensor} of {fifo.what.network}, where it lies"
        for fifo in self.deployment.queues:
            if part.name in fifo.reading:
                yield f"{part.own(fifo)} comes from {fifo.source}"


def _reference(whole: Network, part: Network) -> Network:
    """The layers of the whole that a part has, as a network; the part itself where it computes a region or a share."""
    layers = whole.by_name.keys() & part.by_name.keys()
    is_cut = 0 < len(layers) < len(whole.layers)
    own = cut(whole, layers, given_outside(whole, layers)).network if is_cut else whole
    return own if _ends(own) == _ends(part) else part


def _ends(network: Network) -> list[Tensor]:
    return [network.tensors[name] for name in (*network.inputs, *network.outputs)]


def checked_for_c(code: CDeployment) -> CDeployment:
    """The deployment; an error where the C has no means for it."""
    deployment = code.deployment
    if len({device for device, _ in deployment.arenas}) > 1:
        raise InputError("the deployment is for several devices; give the part of it that one device runs")
    for part in deployment.parts:
        if part.plan is None or len(deployment.workers_of[part.name]) > 1:
            problem = "has no plan" if part.plan is None else "has replicas"
            raise InputError(f"{part.where} {problem}: the C library runs planned parts, each in one place")
    for fifo in deployment.fifos:
        if OUTSIDE in fifo.reading and len(fifo.reading) > 1:
            raise InputError(
                f"'{fifo.what.tensor}' of '{fifo.what.network}' is for a part and for the caller: "
                "the C library hands it to one of them"
            )
    if len(code.parts) > MOST:
        raise InputError(f"{len(code.parts)} networks and partitions are too many: at most {MOST}")
    if (handed := sum(len(fifo.readers) for fifo in code.deployment.shared)) > MOST:
        raise InputError(f"{handed} inputs that other networks hand over are too many: at most {MOST}")
    return code
