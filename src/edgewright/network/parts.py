"""Parts of a network: networks that compute regions of its tensors, with the tensors and regions they read.

A part is cut out backwards from the requested regions: each layer says what it reads for a region (`restrict`), and
what the part does not compute itself becomes an input. Halos are recomputed if their layer is in the part, and read if
it is not. Deployments decide where parts run and how tensors are transferred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import ModelError, Unsupported
from .network import Layer, Network
from .operators.base import WidenedRegion
from .part_draft import PartDraft, pieces, reads, tensor_part
from .partial import PartialSums, add_finish, add_partial, checked_share, checked_shares, has_integer_sums, share_reads
from .region import Region
from .restrict import restrict, restrictable_hull


@dataclass(frozen=True, slots=True)
class TensorRegion:
    """A region of a tensor of a whole network; with `share`, its sums over that region of its layer's first input."""

    network: str
    tensor: str
    region: Region
    share: Region | None = None


@dataclass(frozen=True)
class NetworkPart:
    """A separate network, and the regions of the whole network that its inputs and outputs are."""

    network: Network
    inputs: Mapping[str, TensorRegion]
    outputs: Mapping[str, TensorRegion]
    computed: Mapping[str, Region]  # layer -> region of its output computed here, including halos


def cut(
    network: Network,
    layers: Iterable[str],
    outputs: Mapping[str, Region | PartialSums],
    finished: Mapping[str, Sequence[Region]] | None = None,
) -> NetworkPart:
    """The part that computes these regions with these layers; other tensors that they read become inputs.

    A layer in `finished` is not computed from its inputs: it adds sums over these shares of its first input, which
    other parts compute (`PartialSums`). Layers that are not needed are left out.
    """
    chosen = _known(network, layers)
    asked = {name: _checked(network, chosen, name, what) for name, what in outputs.items()}
    if not asked:
        raise ModelError(f"nothing is asked of this part of '{network.name}'")
    shares = _finished(network, chosen, finished or {})
    demand = demanded(network, chosen, asked, shares)
    draft = PartDraft(network, f"{network.name}-part", demand.wanted)
    sums: dict[str, TensorRegion] = {}
    made: dict[str, str] = {}
    for layer in network.layers:
        region = demand.computed.get(layer.name)
        target = asked.get(layer.output)
        if region is None:
            continue
        if isinstance(target, PartialSums):
            made[layer.output] = add_partial(draft, layer, target)
        elif layer.name in shares:
            for name, share in add_finish(draft, layer, region, shares[layer.name]).items():
                sums[name] = TensorRegion(network.name, layer.output, region, share)
        else:
            draft.compute(layer, region)
    ends: dict[str, TensorRegion] = {}
    for name, what in asked.items():
        own = made[name] if isinstance(what, PartialSums) else draft.read(name, what)
        of = what.share if isinstance(what, PartialSums) else None
        ends[own] = TensorRegion(network.name, name, _region_of(what), of)
    whole = {name: TensorRegion(network.name, tensor, region) for name, (tensor, region) in draft.inputs.items()}
    part = _like_the_whole(network, draft.builder.build(list(ends)), {**whole, **ends})
    inputs = {name: (whole | sums)[name] for name in part.inputs}
    return NetworkPart(part, inputs, ends, demand.computed)


def subnetwork(network: Network, names: Iterable[str]) -> Network:
    """The network of these layers only: tensors read from outside become inputs, tensors read outside become
    outputs."""
    chosen = _known(network, names)
    unread = [x.output for x in network.layers if x.name in chosen and not network.readers[x.output]]
    outputs = given_outside(network, chosen) | {name: Region.whole(network.tensors[name].shape) for name in unread}
    return cut(network, chosen, outputs).network


def given_outside(network: Network, layers: Collection[str]) -> dict[str, Region]:
    """The outputs of these layers that other layers read or that the network returns, as whole tensors."""
    return {
        layer.output: Region.whole(network.tensors[layer.output].shape)
        for layer in network.layers
        if layer.name in layers
        and (layer.output in network.outputs or any(r.name not in layers for r in network.readers[layer.output]))
    }


def _known(network: Network, names: Iterable[str]) -> set[str]:
    chosen = set(names)
    if unknown := chosen - set(network.by_name):
        raise ModelError(f"network '{network.name}' has no layer {sorted(unknown)}")
    return chosen


def _region_of(what: Region | PartialSums) -> Region:
    return what.region if isinstance(what, PartialSums) else what


def _checked(network: Network, chosen: set[str], name: str, what: Region | PartialSums) -> Region | PartialSums:
    """The requested regions, after a check that a layer of the part computes them."""
    layer = network.producers.get(name)
    if layer is None or layer.name not in chosen:
        by = f"which '{layer.name}' computes" if layer else "which no layer computes"
        raise ModelError(f"'{name}', {by}, cannot be an output of a part without that layer")
    region, shape = _region_of(what), network.tensors[name].shape
    if len(region.bounds) != len(shape) or region.is_empty or region not in Region.whole(shape):
        raise ModelError(f"{region} is no region of '{name}' of shape {shape}")
    if isinstance(what, PartialSums):
        return replace(what, share=checked_share(network, layer, what.share))
    return what


def _finished(
    network: Network, chosen: set[str], finished: Mapping[str, Sequence[Region]]
) -> dict[str, tuple[Region, ...]]:
    if missing := set(finished) - chosen:
        raise ModelError(f"layers {sorted(missing)} are to be finished in a part that they do not belong to")
    return {name: checked_shares(network, network.by_name[name], shares) for name, shares in finished.items()}


@dataclass(frozen=True, slots=True)
class PartDemand:
    """The regions that a part computes and reads, before it is cut out."""

    computed: Mapping[str, Region]  # layer -> region of its output
    wanted: Mapping[str, Region]  # tensor -> the bounding box of all its reads
    constants: Mapping[str, Region]  # the same for weights


def demanded(
    network: Network,
    chosen: Collection[str],
    asked: Mapping[str, Region | PartialSums],
    finished: Mapping[str, Sequence[Region]],
) -> PartDemand:
    """What each layer computes and each tensor must contain, derived backwards from the requests."""
    held: tuple[dict[str, Region], dict[str, Region]] = {}, {}
    wanted, constants = held
    computed: dict[str, Region] = {}
    for layer in reversed(network.layers):
        target, inner = asked.get(layer.output), wanted.get(layer.output)
        if layer.name not in chosen or (target is None and inner is None):
            continue
        if isinstance(target, PartialSums):
            if inner is not None or layer.name in finished:
                raise ModelError(
                    f"layer '{layer.name}' gives partial sums, so that the same part cannot read or finish them"
                )
            computed[layer.name] = target.region
            operands = list(zip(layer.inputs, share_reads(network, layer, target).reads, strict=False))
        else:
            region = _computed(network, layer, target, inner, layer.name in finished)
            computed[layer.name] = wanted[layer.output] = region
            operands = _reads(network, layer, region, layer.name in finished)
        for name, read in operands:
            known = held[name in network.constants]
            known[name] = known.get(name, read) | read
    return PartDemand(computed, wanted, constants)


def _computed(network: Network, layer: Layer, target: Region | None, inner: Region | None, is_finished: bool) -> Region:
    """The region to compute: the reads of the part's layers and the requests, widened until the operator can compute
    it."""
    asked = target or inner
    assert asked is not None
    hull = asked | inner if inner is not None else asked
    if is_finished:
        return hull
    shapes, dtype = network.shapes(layer), network.tensors[layer.inputs[0]].dtype
    read = restrictable_hull(layer.op, inner, shapes, dtype) if inner is not None else None
    if target is not None and (read is None or target not in read):
        answer = restrict(layer.op, target, shapes, dtype)
        if isinstance(answer, WidenedRegion):
            raise Unsupported(
                f"layer '{layer.name}' ({type(layer.op).__name__}) cannot be cut to {target} along axis "
                f"{answer.axis}: {answer.reason}. Ask for {restrictable_hull(layer.op, target, shapes, dtype)}"
            )
    return restrictable_hull(layer.op, hull, shapes, dtype)


def _reads(network: Network, layer: Layer, region: Region, is_finished: bool) -> list[tuple[str, Region]]:
    """The region read of each input; a layer that finishes integer sums reads only its bias, one of real sums
    nothing."""
    if is_finished:
        if not has_integer_sums(network, layer):
            return []
        needs = layer.op.needs(region, network.shapes(layer))
        return list(zip(layer.inputs[2:], needs[2:], strict=True))
    return [(layer.inputs[i], read) for i, read in reads(pieces(network, layer, region))]


def _like_the_whole(network: Network, part: Network, ends: Mapping[str, TensorRegion]) -> Network:
    """The part with the whole network's metadata of inputs, outputs and whole tensors."""
    known = {own: end for own, end in ends.items() if end.share is None and own in (*part.inputs, *part.outputs)}
    return replace(
        part,
        notes=network.notes,
        states={},  # states are kept by the whole network
        layouts={own: network.layouts[end.tensor] for own, end in known.items() if end.tensor in network.layouts},
        file_tensors={
            own: tensor_part(network.file_tensors[end.tensor], end.region, own)
            for own, end in known.items()
            if end.tensor in network.file_tensors
        },
        origins={
            name: origin
            for name, origin in network.origins.items()
            if name in part.tensors and part.tensors[name] == network.tensors[name]
        },
    )
