"""Tensors passed between networks: one FIFO for each tensor that several of them write or read.

A tensor is live from its writer to the last of its readers, in any legal order. `after` names the writer and a reader;
`same input` names readers and their order. If no network writes the tensor, the first reader brings it: the caller
passes it to that network's run function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ..errors import InputError
from ..network import Network, Region
from ..network.parts import TensorRegion
from ..program.deployment import OUTSIDE, Fifo, Reader, RelationKind, all_before
from .description import ApplicationFile, RelationEntry

T = TypeVar("T")
End = tuple[str, str]  # a network, and one of its inputs or outputs


def named_end(name: str, network: Network, way: str, wanted: str | None) -> str:
    """The named input or output, or the only one."""
    ends = {"inputs": network.inputs, "outputs": network.outputs, "ends": (*network.inputs, *network.outputs)}[way]
    if wanted is None and len(ends) == 1:
        return ends[0]
    if wanted in ends:
        return str(wanted)
    problem = f"has no end '{wanted}'" if wanted is not None else f"has {len(ends)} {way}, and none is named"
    raise InputError(f"network '{name}' {problem}; expected one of {', '.join(ends)}")


def cascade_ends(relation: RelationEntry, networks: Mapping[str, Network]) -> tuple[End, End]:
    """The output of the first network and the input of the second that an `after` joins."""
    first, second = relation.networks
    output = named_end(first, networks[first], "outputs", relation.output)
    return (first, output), (second, named_end(second, networks[second], "inputs", relation.input))


def kept_ends(file: ApplicationFile, networks: Mapping[str, Network], pipelined: Iterable[str]) -> frozenset[End]:
    """The inputs and outputs that must stay intact. Constants are not in an arena."""
    ends = set[End]()
    for text in file.keep:
        name, _, end = text.partition(".")
        network = networks[name]
        if name in pipelined:
            raise InputError(f"network '{name}' is pipelined, and its ends cannot be kept; run it whole")
        groups = {"input": network.inputs, "output": network.outputs}
        groups |= {"inputs": network.inputs, "outputs": network.outputs}
        tensors = groups[end] if end in groups else (named_end(name, network, "ends", end),)
        ends |= {(name, tensor) for tensor in tensors if tensor not in network.constants}
    return frozenset(ends)


def read_before(file: ApplicationFile, reader: str) -> frozenset[str]:
    """The networks that read a shared input before this one, over all `same input` relations."""
    return all_before(reader, [one.networks for one in file.related(RelationKind.SAME_INPUT)])


def shared_fifos(
    file: ApplicationFile, networks: Mapping[str, Network], pipelined: Iterable[str]
) -> tuple[tuple[Fifo, ...], Mapping[End, TensorRegion]]:
    """The FIFOs between networks, with readers in file order and the input of each reader."""
    after = [cascade_ends(one, networks) for one in file.related(RelationKind.AFTER)]
    frames = [
        [(name, named_end(name, networks[name], "inputs", one.input)) for name in one.networks]
        for one in file.related(RelationKind.SAME_INPUT)
    ]
    for name, _ in (end for group in (*after, *frames) for end in group):
        if name in pipelined:
            raise InputError(f"network '{name}' is pipelined, and its ends cannot be handed over; run it whole")
    fifos, inputs = [], dict[End, TensorRegion]()
    for ends in joined([*map(list, after), *frames]):
        fifo = _fifo(file, networks, ends, after)
        fifos.append(fifo)
        inputs |= {end: fifo.what for end in ends if end[0] != fifo.source}
    return tuple(fifos), inputs


def joined(links: Iterable[Sequence[T]]) -> list[list[T]]:
    """Connected components: for example ends that are the same tensor."""
    groups: list[list[T]] = []
    for link in links:
        touched = [group for group in groups if set(group) & set(link)]
        joined = list(dict.fromkeys(end for group in (*touched, link) for end in group))
        groups = [*(group for group in groups if group not in touched), joined]
    return groups


def _fifo(
    file: ApplicationFile, networks: Mapping[str, Network], ends: Sequence[End], after: Sequence[tuple[End, End]]
) -> Fifo:
    outputs = [end for end in ends if any(end == made for made, _ in after)]
    readers = _in_order(file, [name for name, _ in (end for end in ends if end not in outputs)])
    if len(set(readers)) < len(readers):
        raise InputError(f"network '{readers[0]}' has two inputs that are one tensor; give it a copy in a [[buffer]]")
    if len(outputs) > 1:
        makers = " and ".join(f"'{name}'" for name, _ in outputs)
        raise InputError(f"{makers} both make the input of '{readers[0]}': expected one network that makes it")
    first = [name for name in readers if not read_before(file, name) & set(readers)]
    if not outputs and len(first) > 1:
        names = " and ".join(f"'{name}'" for name in first)
        raise InputError(
            f"{names} share an input, and no relation says who reads it first; name all of them in one same input"
        )
    source, tensor = outputs[0] if outputs else next(end for end in ends if end[0] == first[0])
    for other in ends:
        _check_alike(networks, (source, tensor), other)
    what = TensorRegion(source, tensor, Region.whole(networks[source].tensors[tensor].shape))
    return Fifo(what, source if outputs else OUTSIDE, tuple(map(Reader, readers)), 1, keeps_latest=True)


def _in_order(file: ApplicationFile, readers: Sequence[str]) -> list[str]:
    """The readers in their reading order."""
    return sorted(readers, key=lambda name: len(read_before(file, name) & set(readers)))


def _check_alike(networks: Mapping[str, Network], before: End, after: End) -> None:
    """Raises an error if two networks disagree on the shape, the type or the scale of a tensor."""
    x, y = (networks[name].tensors[tensor] for name, tensor in (before, after))
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        raise InputError(
            f"'{before[1]}' of '{before[0]}' is {x.dtype.value}{list(x.shape)} and '{after[1]}' of '{after[0]}' "
            f"{y.dtype.value}{list(y.shape)}: only equal tensors lie in the same bytes; "
            "where height and width alone differ, give crop or resize in the relation"
        )
    if x.quant != y.quant:
        raise InputError(
            f"'{before[1]}' of '{before[0]}' and '{after[1]}' of '{after[0]}' have different scales: "
            "quantise both networks with the same range there"
        )
