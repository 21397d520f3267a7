"""Block-based path discovery (S 4.3.3): how to split a critical buffer, by walking up and down from it.

Each step of the discovery maps candidates to candidates, so that every list in the paper can be inspected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from ...errors import InputError
from ...network import Layer, Network
from ...program import CHANNELS, COLUMNS, ROWS, FusionSchedule, Split, even_ends
from .blocks import Block, Partition, Terminal, channel_runs, matches, overlaps, with_runs

MOST_PARTS = 25  # along one axis; more parts rarely save more memory (S 4.3.3)
MOST_SQUARE = 5  # along each of two axes


class TilingMethod(StrEnum):
    """The two ways of fused tiling."""

    FFMT = "ffmt"  # parts of feature maps, with recomputed halos
    FDT = "fdt"  # parts of the channels


@dataclass(frozen=True)
class PathBlock:
    """A layer of a path, the block it becomes, and the tensor by which the path enters it."""

    layer: str
    block: Block
    source: str


@dataclass(frozen=True)
class Path:
    """The layers that split a critical buffer: those before it and those after it."""

    critical: str
    partition: Partition
    before: tuple[PathBlock, ...] = ()
    after: tuple[PathBlock, ...] = ()

    @property
    def mapped(self) -> tuple[PathBlock, ...]:
        return (*self.before, *self.after)

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(mapped.layer for mapped in self.mapped)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of its layers between split and recombination, except where a layer itself splits or
        recombines."""
        blocks = [mapped.block for mapped in self.mapped]
        if not blocks:
            return ()
        split = () if blocks[0] is Block.FDTO else (Block.SPLIT,)
        concat = () if blocks[-1] is Block.FDTI else (Block.CONCAT,)
        return (*split, *blocks, *concat)

    @property
    def label(self) -> str:
        """The path in the paper's notation, which omits CONCAT."""
        return f"[{','.join(block.name for block in self.blocks if block is not Block.CONCAT)}]"

    def __str__(self) -> str:
        return f"{self.label} {self.partition}"


@dataclass(frozen=True)
class Discovery:
    """The candidates for one critical buffer after each step; the last ones are evaluated."""

    proposed: tuple[Path, ...]
    upward: tuple[Path, ...]
    downward: tuple[Path, ...]
    pruned: tuple[Path, ...]


def candidates(network: Network, buffer: str, methods: Collection[str] = tuple(TilingMethod)) -> list[Path]:
    """The paths that split a tensor, each with one number of parts; none if it cannot be split.

    >>> from edgewright import samples, read_model
    >>> net = read_model(samples.build("stahl_running_example"))
    >>> list(dict.fromkeys(path.label for path in candidates(net, "Conv3")))
    ['[FDTO,PART]', '[FDTO,PART,PART,FDTI]']
    """
    return list(discover(network, buffer, methods).pruned)


def discover(network: Network, buffer: str, methods: Collection[str] = tuple(TilingMethod)) -> Discovery:
    """Path discovery step by step. Inputs and outputs of the application are never split."""
    is_inner = buffer in network.producers and buffer not in network.outputs
    proposed = proposals(network, buffer, methods) if is_inner else ()
    upward = _each(network, proposed, _upward)
    downward = _each(network, upward, _downward)
    return Discovery(proposed, upward, downward, _each(network, downward, _pruned))


def proposals(network: Network, buffer: str, methods: Collection[str] = tuple(TilingMethod)) -> tuple[Path, ...]:
    """One empty path for each way to divide the buffer: N = 2 to 25 along each axis, 2x2 to 5x5 along rows and
    columns."""
    wanted = known_methods(methods)
    shape = network.tensors[buffer].shape
    cuts: list[tuple[tuple[int, int], ...]] = []
    if TilingMethod.FDT in wanted and shape:
        cuts += [((CHANNELS, n),) for n in _counts(shape[-1], MOST_PARTS)]
    if TilingMethod.FFMT in wanted and len(shape) == 4:
        cuts += [((axis, n),) for axis in (ROWS, COLUMNS) for n in _counts(shape[axis], MOST_PARTS)]
        cuts += [((ROWS, n), (COLUMNS, n)) for n in _counts(min(shape[ROWS], shape[COLUMNS]), MOST_SQUARE)]
    return tuple(Path(buffer, Partition(cut)) for cut in cuts)


def known_methods(methods: Collection[str]) -> frozenset[TilingMethod]:
    """The methods by name; an error for unknown ones."""
    unknown = sorted(set(methods) - set(TilingMethod))
    if unknown:
        raise InputError(f"there is no tiling method '{unknown[0]}': choose from {', '.join(TilingMethod)}")
    return frozenset(TilingMethod(name) for name in methods)


def _counts(size: int, most: int) -> range:
    return range(2, min(most, size) + 1)


def _each(network: Network, paths: Iterable[Path], step: Callable[[Network, Path], Iterator[Path]]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(longer for path in paths for longer in step(network, path)))


def _upward(network: Network, path: Path) -> Iterator[Path]:
    """The versions of a path from its beginning to the critical buffer."""
    yield from (climbed for climbed in _climb(network, path, path.critical) if climbed.before)


def _climb(network: Network, path: Path, tensor: str) -> Iterator[Path]:
    """The path extended by the producer of the tensor, if it has no other reader.

    A version that stops before a layer with overlap is kept: a shorter path may be better than one with a large halo.
    """
    layer = network.producers.get(tensor)
    is_straight = tensor == path.critical or network.sole_reader(tensor) is not None
    leading = list(_leading(network, layer, path.partition)) if layer and is_straight else []
    if not leading or any(_is_overlapping(network, path, mapped) for mapped in leading):
        yield path
    for mapped in leading:
        longer = replace(path, before=(mapped, *path.before))
        if mapped.block is Block.FDTO:
            yield longer
        else:
            yield from _climb(network, longer, mapped.source)


def _leading(network: Network, layer: Layer, partition: Partition) -> Iterator[PathBlock]:
    """The blocks for a layer whose output is partitioned, for each of its inputs."""
    for source in network.activations(layer):
        for block in matches(network, layer, source, partition):
            if any(leaves is partition.terminal for _, leaves in block.joins):
                yield PathBlock(layer.name, block, source)


def _downward(network: Network, path: Path) -> Iterator[Path]:
    """The versions of a path extended from the critical buffer to its end."""
    yield from (descended for descended in _descend(network, path, path.critical) if descended.after)


def _descend(network: Network, path: Path, tensor: str) -> Iterator[Path]:
    """The path extended by the only reader of the tensor; versions without overlap and without fan-in are kept."""
    layer = network.sole_reader(tensor)
    mapped = _following(network, layer, tensor, path.partition) if layer else None
    if mapped is None or mapped.block is Block.FDTI or _is_overlapping(network, path, mapped):
        yield path
    if mapped is not None:
        longer = replace(path, after=(*path.after, mapped))
        if mapped.block is Block.FDTI:
            yield longer
        else:
            yield from _descend(network, longer, network.by_name[mapped.layer].output)


def _following(network: Network, layer: Layer, source: str, partition: Partition) -> PathBlock | None:
    """The blocks for a layer whose input is partitioned."""
    for block in matches(network, layer, source, partition):
        if any(enters is partition.terminal for enters, _ in block.joins):
            return PathBlock(layer.name, block, source)
    return None


def _is_overlapping(network: Network, path: Path, mapped: PathBlock) -> bool:
    return overlaps(network, network.by_name[mapped.layer], mapped.source, path.partition)


def _pruned(network: Network, path: Path) -> Iterator[Path]:
    """The path from the layer that reads the least to the one that writes the least; the shorter one of equals.

    It is dropped if nothing after the critical buffer is smaller: recombining would need as much memory again.
    """
    starts = [_outside_bytes(network, path.before[at:]) for at in range(len(path.before))]
    first = max(at for at, size in enumerate(starts) if size == min(starts))
    ends = [network.tensors[network.by_name[mapped.layer].output].bytes for mapped in path.after]
    last = ends.index(min(ends))
    if ends[last] < network.tensors[path.critical].bytes:
        yield replace(path, before=path.before[first:], after=path.after[: last + 1])


def _outside_bytes(network: Network, part: Iterable[PathBlock]) -> int:
    """Bytes of everything that these layers read and do not compute."""
    layers = [network.by_name[mapped.layer] for mapped in part]
    read = {name for layer in layers for name in network.activations(layer)}
    return sum(network.tensors[name].bytes for name in read - {layer.output for layer in layers})


def schedule_of(network: Network, path: Path) -> FusionSchedule:
    """The path as a schedule: its last layer is divided evenly, the others as that one requires."""
    last = path.mapped[-1]
    layer = network.by_name[last.layer]
    driven = network.tensors[last.source if last.block is Block.FDTI else layer.output].shape
    unit = _unit(network, path) if path.partition.terminal is Terminal.PD_D else 1
    splits = tuple(Split(axis, even_ends(driven[axis], parts, unit)) for axis, parts in path.partition.cuts)
    return FusionSchedule(path.layers, splits)


def _unit(network: Network, path: Path) -> int:
    """The required multiple for parts of the channels, so that no channel is recomputed: groups stay whole."""
    unit = 1
    for mapped in path.mapped:
        layer = network.by_name[mapped.layer]
        runs = None if mapped.block in (Block.FDTO, Block.FDTI) else channel_runs(network, layer, mapped.source)
        unit = with_runs(unit, runs) if runs else unit
    return unit
