"""An application as read: its file, and the draft of its deployment, whose parts have no plans yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

from ..errors import InputError
from ..fusion.by_hand import layer_range
from ..memory.row_windows import pullable
from ..network import Network, Region
from ..network.parts import NetworkPart, TensorRegion, cut, given_outside
from ..platform import Board, load_board
from ..platform.target import TARGETS, Target, chosen_target
from ..program.deployment import (
    OUTSIDE,
    Deployment,
    Fifo,
    FirmwareBuffer,
    InterruptionPoints,
    Part,
    Reader,
    Relation,
    RelationKind,
    Worker,
)
from .description import ALWAYS, ApplicationFile, AppNetworkEntry, PreemptionPoints, RelationEntry, read_application
from .handed_images import with_handed_images
from .handover import End, kept_ends, shared_fifos
from .quantisation import read_network

DEVICE = "board"


@dataclass(frozen=True)
class Application:
    """An application as read."""

    file: ApplicationFile
    deployment: Deployment  # a worker for each part
    board: Board | None
    target: Target
    partitions: Mapping[str, tuple[tuple[str, ...], ...]]  # layers of each partition, by network

    @property
    def networks(self) -> Mapping[str, Network]:
        return self.deployment.network_named

    @property
    def memories(self) -> Mapping[str, int]:
        """Bytes of each memory, the fastest first: those in the file, or the board's; empty if a limit is given."""
        if self.file.memories:
            return {memory.name.lower(): memory.size for memory in self.file.memories}
        if self.board is None or self.file.limits.ram is not None:
            return {}
        return {memory.name: memory.usable for memory in self.board.ram}

    def is_pipelined(self, network: str) -> bool:
        return len(self.deployment.parts_of(network)) > 1

    def preempting(self, relation: Relation) -> RelationEntry:
        """The file's entry for a pair of networks of which one preempts the other."""
        networks = tuple(self.deployment.part_named[name].owner for name in relation.parts)
        return [one for one in self.file.related(RelationKind.PREEMPTS) if one.networks == networks][-1]


def load_application(path: Path, pull_input: bool = False) -> Application:
    """The application in a file, with its networks and its board."""
    return assemble_application(read_application(path), path.parent, str(path), pull_input)


def assemble_application(file: ApplicationFile, folder: Path, where: str, pull_input: bool = False) -> Application:
    """The application in the file's data; paths are relative to `folder`, and `where` names the file in errors.

    With `pull_input`, images are pulled row by row if a network can do so and no other needs them.
    """
    board = load_board(_board_name(file.board, folder)) if file.board is not None else None
    if file.target is not None and file.target not in TARGETS:
        raise InputError(f'{where}: target is "{file.target}"; expected one of {", ".join(TARGETS)}')
    target = chosen_target(board, file.target) or TARGETS["host"]
    networks = {
        entry.name: replace(read_network(entry, folder, f"{where}: network[{index}]"), name=entry.name)
        for index, entry in enumerate(file.networks)
    }
    networks = with_handed_images(file, networks, where)
    pipelined = {file.network(r.networks[0]).name for r in file.related(RelationKind.PIPELINED)}
    parts: list[Part] = []
    queues: list[Fifo] = []
    partitions: dict[str, tuple[tuple[str, ...], ...]] = {}
    for index, entry in enumerate(file.networks):
        network = networks[entry.name]
        if pull_input and pullable(network) and not _has_held_ends(file, entry.name):
            file = file.pulling(entry.name)
        layers = partitions[entry.name] = _partitions(network, entry, f"{where}: network[{index}].partitions")
        if entry.name in pipelined:
            made = [partition(network, layers, n) for n in range(len(layers))]
            names = [f"{entry.name}.{n + 1}" for n in range(len(layers))]
            parts += [
                Part(name, one.network, None, one.inputs, one.outputs) for name, one in zip(names, made, strict=True)
            ]
            queues += _crossing(names, made)
        else:
            inputs, outputs = (
                {name: TensorRegion(entry.name, name, Region.whole(network.tensors[name].shape)) for name in ends}
                for ends in (network.inputs, network.outputs)
            )
            parts.append(Part(entry.name, network, None, inputs, outputs))
    shared, handed = shared_fifos(file, networks, pipelined)
    parts = [
        replace(one, inputs={own: handed.get((one.name, own), what) for own, what in one.inputs.items()})
        for one in parts
    ]
    deployment = Deployment(
        tuple(networks.values()),
        tuple(parts),
        tuple(Worker(part.name, DEVICE, target.name, (), (part.name,)) for part in parts),
        tuple(_fifos(queues, shared, parts, kept_ends(file, networks, pipelined))),
        {},
        relations=tuple(_relations(file, parts)),
        buffers=tuple(_buffers(file, parts)),
    )
    return Application(file, deployment, board, target, partitions)


def _fifos(
    queues: Sequence[Fifo], shared: Sequence[Fifo], parts: Sequence[Part], kept: frozenset[End]
) -> Iterator[Fifo]:
    """The FIFOs between partitions and between networks, and one to or from the outside for each of the other inputs
    and outputs."""
    yield from queues
    by_name = {part.name: part for part in parts}
    for fifo in shared:
        ends = [(name, by_name[name].own(fifo)) for name in fifo.ends if name != OUTSIDE]
        yield replace(fifo, is_kept=not kept.isdisjoint(ends))
    carried = {fifo.what for fifo in (*queues, *shared)}
    for part in parts:
        for own, what in part.inputs.items():
            if what not in carried:
                carried.add(what)
                readers = tuple(Reader(one.name) for one in parts if what in one.inputs.values())
                yield Fifo(what, OUTSIDE, readers, 1, is_kept=(part.name, own) in kept)
        for own, what in part.outputs.items():
            if what not in carried:
                carried.add(what)
                yield Fifo(what, part.name, (Reader(OUTSIDE),), 1, is_kept=(part.name, own) in kept)


def _relations(file: ApplicationFile, parts: Sequence[Part]) -> Iterator[Relation]:
    """The relation of each pair of parts, and the order of the readers of shared frames."""
    parallel = {frozenset(x) for one in file.related(RelationKind.PARALLEL) for x in combinations(one.networks, 2)}
    preempting = {one.networks: one for one in file.related(RelationKind.PREEMPTS)}
    for a, b in combinations(parts, 2):
        if a.owner == b.owner or frozenset((a.owner, b.owner)) in parallel:
            yield Relation(RelationKind.PARALLEL, (a.name, b.name))
        elif (a.owner, b.owner) not in preempting and (b.owner, a.owner) not in preempting:
            yield Relation(RelationKind.EXCLUSIVE, (a.name, b.name))
    for owners, entry in preempting.items():
        points = None if entry.points is PreemptionPoints.ANYWHERE else InterruptionPoints()
        for high, low in product(*([part.name for part in parts if part.owner == owner] for owner in owners)):
            yield Relation(RelationKind.PREEMPTS, (high, low), points)
    for entry in file.related(RelationKind.SAME_INPUT):
        yield Relation(RelationKind.SAME_INPUT, entry.networks)


def _buffers(file: ApplicationFile, parts: Sequence[Part]) -> Iterator[FirmwareBuffer]:
    for own in file.buffers:
        during = None if own.alive == ALWAYS else tuple(p.name for name in own.alive for p in parts if p.owner == name)
        yield FirmwareBuffer(own.name, own.size, during)


def _has_held_ends(file: ApplicationFile, name: str) -> bool:
    """Whether the network's inputs may have to be whole in memory: passed on, or kept."""
    together = file.related(RelationKind.AFTER, RelationKind.SAME_INPUT)
    related = {file.network(n).name for one in together for n in one.networks}
    return name in related or any(text.partition(".")[0] == name for text in file.keep)


def _board_name(board: str, folder: Path) -> str | Path:
    """A path to a board file beside the application; other names are from the catalogue."""
    return folder / board if board.endswith(".toml") else board


def _partitions(network: Network, entry: AppNetworkEntry, key: str) -> tuple[tuple[str, ...], ...]:
    """The layers of each partition, which together are all layers, and read only from earlier partitions."""
    if not entry.partitions:
        return (tuple(network.by_name),)
    try:
        parts = tuple(layer_range(network, text) for text in entry.partitions)
    except InputError as error:
        raise InputError(f"{key} names layers of '{entry.name}' wrongly: {error}") from error
    home: dict[str, int] = {}
    for number, names in enumerate(parts):
        for name in names:
            if name in home:
                raise InputError(f"{key} holds layer '{name}' twice; expected each layer of '{entry.name}' once")
            home[name] = number
    missing = [name for name in network.by_name if name not in home]
    if missing:
        raise InputError(f"{key} leaves out '{missing[0]}'; expected all layers of '{entry.name}', each once")
    for layer in network.layers:
        for source in network.activations(layer):
            producer = network.producers.get(source)
            if producer is not None and home[producer.name] > home[layer.name]:
                raise InputError(
                    f"{key} is cyclic: '{layer.name}' in partition {home[layer.name] + 1} reads what "
                    f"'{producer.name}' makes in partition {home[producer.name] + 1}; expected producers first"
                )
    return parts


def partition(network: Network, parts: Sequence[tuple[str, ...]], number: int) -> NetworkPart:
    """A partition as a separate network; what others read of it are its outputs."""
    own = set(parts[number])
    return cut(network, own, given_outside(network, own))


def _crossing(names: Sequence[str], parts: Sequence[NetworkPart]) -> Iterator[Fifo]:
    """The FIFOs between the partitions of a pipeline, with a slot for each frame in flight."""
    for number, part in enumerate(parts):
        for what in part.outputs.values():
            readers = [later for later in range(number + 1, len(parts)) if what in parts[later].inputs.values()]
            if readers:
                slots = max(readers) - number + 1
                yield Fifo(what, names[number], tuple(Reader(names[later]) for later in readers), slots)
