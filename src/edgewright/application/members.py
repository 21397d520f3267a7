"""The networks of an application as read, and its members: whole networks, and partitions of pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ..errors import InputError
from ..fusion.by_hand import layer_range
from ..memory.row_windows import pullable
from ..network import Network, Region, Tensor
from ..network.parts import NetworkPart, TensorRegion, cut, given_outside
from ..platform import Board, load_board
from ..platform.target import TARGETS, Target, target_of
from ..program.deployment import OUTSIDE, Fifo, Reader, RelationKind
from ..program.steps import row_count
from .description import ApplicationFile, AppNetworkEntry, read_application
from .handed_images import with_handed_images
from .handover import shared_fifos
from .quantisation import read_network


@dataclass(frozen=True)
class AppMember:
    """What runs as a unit: a network, or a partition of a pipelined one."""

    name: str  # as relations call it
    entry: AppNetworkEntry
    network: Network
    inputs: Mapping[str, TensorRegion]  # its own tensors -> those of the whole network
    outputs: Mapping[str, TensorRegion]

    @property
    def owner(self) -> str:
        """The network that it is, or is a partition of."""
        return self.entry.name

    def own(self, fifo: Fifo) -> str:
        """Its own name of the tensor that a FIFO carries."""
        ends = self.outputs if fifo.source == self.name else self.inputs
        return next(own for own, what in ends.items() if what == fifo.what)


def fifo_name(fifo: Fifo) -> str:
    return f"{fifo.what.network}:{fifo.what.tensor}"


def frame_rows(fifo: Fifo) -> int:
    """Rows of a frame."""
    return row_count(fifo.what.region.shape)


def slot_name(fifo: Fifo, number: int = 0) -> str:
    """The buffer that is a slot, or the ring."""
    return f"{fifo_name(fifo)}[{f'{fifo.rows} of {frame_rows(fifo)} rows' if fifo.rows else number}]"


@dataclass(frozen=True)
class Application:
    """Everything that was read."""

    file: ApplicationFile
    networks: Mapping[str, Network]
    members: tuple[AppMember, ...]
    fifos: tuple[Fifo, ...]  # between partitions of pipelines
    shared: tuple[Fifo, ...]  # between networks
    board: Board | None
    target: Target
    partitions: Mapping[str, tuple[tuple[str, ...], ...]]  # of each network: the layers of each, all in one where none

    @cached_property
    def by_name(self) -> Mapping[str, AppMember]:
        return {member.name: member for member in self.members}

    @cached_property
    def memories(self) -> Mapping[str, int]:
        """Bytes of each memory, the fastest first: what the file lists, or the board's; none where there is a limit."""
        if self.file.memories:
            return {memory.name.lower(): memory.size for memory in self.file.memories}
        if self.board is None or self.file.limits.ram is not None:
            return {}
        return {memory.name: memory.usable for memory in self.board.ram}

    @property
    def rings(self) -> tuple[Fifo, ...]:
        """What crosses row by row."""
        return tuple(fifo for fifo in self.fifos if fifo.rows)

    @property
    def release_stages(self) -> Mapping[str, int]:
        """Of partitions that do not release their slots at once when they have read them: the stage after which they
        do."""
        readers = [reader for fifo in self.fifos for reader in fifo.readers]
        return {reader.part: reader.stage for reader in readers if reader.stage is not None}

    def releasing(self, stages: Mapping[str, int]) -> Application:
        """The application whose partitions release their slots after these stages."""
        fifos = (
            replace(fifo, readers=tuple(Reader(reader.part, stages.get(reader.part)) for reader in fifo.readers))
            for fifo in self.fifos
        )
        return replace(self, fifos=tuple(fifos))

    def fifos_of(self, owner: str) -> tuple[Fifo, ...]:
        return tuple(fifo for fifo in self.fifos if fifo.what.network == owner)

    def tensor(self, fifo: Fifo) -> Tensor:
        """What a FIFO carries."""
        return self.networks[fifo.what.network].tensors[fifo.what.tensor]

    def row_bytes(self, fifo: Fifo) -> int:
        return self.tensor(fifo).bytes // frame_rows(fifo)

    def ends(self, fifo: Fifo) -> tuple[tuple[str, str], ...]:
        """The FIFO's tensor as each member knows it, its producer first: (member, tensor)."""
        return tuple((name, self.by_name[name].own(fifo)) for name in fifo.ends if name != OUTSIDE)

    def members_of(self, owner: str) -> tuple[AppMember, ...]:
        return tuple(member for member in self.members if member.owner == owner)

    def is_pipelined(self, owner: str) -> bool:
        return len(self.members_of(owner)) > 1


def load_application(path: Path, pull_input: bool = False) -> Application:
    """The application of a file, with its networks and its board."""
    return assemble_application(read_application(path), path.parent, str(path), pull_input)


def assemble_application(file: ApplicationFile, folder: Path, where: str, pull_input: bool = False) -> Application:
    """What the file names, as seen from `folder`; `where` names the file in errors.

    With `pull_input`, images come row by row wherever a network can take them so and nobody else needs them.
    """
    board = load_board(_board_name(file.board, folder)) if file.board is not None else None
    if file.target is not None and file.target not in TARGETS:
        raise InputError(f'{where}: target is "{file.target}"; expected one of {", ".join(TARGETS)}')
    target = TARGETS[file.target] if file.target else target_of(board) if board else TARGETS["host"]
    entries = enumerate(file.networks)
    networks = {
        entry.name: replace(read_network(entry, folder, f"{where}: network[{index}]"), name=entry.name)
        for index, entry in entries
    }
    networks = with_handed_images(file, networks, where)
    members: list[AppMember] = []
    fifos: list[Fifo] = []
    partitions: dict[str, tuple[tuple[str, ...], ...]] = {}
    pipelined = {file.network(r.networks[0]).name for r in file.relations if r.kind is RelationKind.PIPELINED}
    for index, entry in enumerate(file.networks):
        network = networks[entry.name]
        if pull_input and pullable(network) and not _has_held_ends(file, entry.name):
            entry = entry.model_copy(update={"pull_input": True})
        parts = _partitions(network, entry, f"{where}: network[{index}].partitions")
        partitions[entry.name] = parts
        if entry.name in pipelined:
            made = [partition(network, parts, n) for n in range(len(parts))]
            names = [f"{entry.name}.{n + 1}" for n in range(len(parts))]
            members += [
                AppMember(name, entry, part.network, part.inputs, part.outputs)
                for name, part in zip(names, made, strict=True)
            ]
            fifos += _crossing(names, made)
        else:
            inputs, outputs = (
                {name: TensorRegion(entry.name, name, Region.whole(network.tensors[name].shape)) for name in ends}
                for ends in (network.inputs, network.outputs)
            )
            members.append(AppMember(entry.name, entry, network, inputs, outputs))
    shared, handed = shared_fifos(file, networks, pipelined)
    joined = tuple(
        replace(one, inputs={own: handed.get((one.name, own), what) for own, what in one.inputs.items()})
        for one in members
    )
    return Application(file, networks, joined, tuple(fifos), shared, board, target, partitions)


def _has_held_ends(file: ApplicationFile, name: str) -> bool:
    """Whether the network's inputs may have to lie in memory as a whole: handed over, or kept."""
    together = (RelationKind.AFTER, RelationKind.SAME_INPUT)
    related = {file.network(n).name for one in file.relations if one.kind in together for n in one.networks}
    return name in related or any(text.partition(".")[0] == name for text in file.keep)


def _board_name(board: str, folder: Path) -> str | Path:
    """A board file is sought beside the application; a name is one of the catalogue."""
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
    """A partition as a network of its own; what others read of it are its outputs."""
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
