"""Judges the form of deployments: regions, FIFOs, replicas, and deadlocks.

It shares no code with the planners of deployments. What parts compute is checked by interpreting them
(`deployment_run`), what their plans are worth by the judge of plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise
from math import lcm
from pathlib import PurePosixPath

from ..errors import InputError
from ..network import DType, Layer, Network, Region
from ..network.operators import Slice
from ..network.part_draft import tensor_part
from ..network.parts import TensorRegion
from .arena_check import broken_promises, flaws_of_relations
from .check import faults
from .deployment import (
    OUTSIDE,
    Deployment,
    Fifo,
    Part,
)
from .overlaps import overlaps
from .plan import FaultKind, PlanFault, judged

MOST_SLOTS = 1 << 20
MOST_TURNS = 1 << 12  # frames until all workers have had the same number of turns


def deployment_faults(deployment: Deployment, *, with_plans: bool = True) -> Iterator[PlanFault]:
    """What is wrong with the deployment, the gravest first; each kind is judged only if the ones before hold.

    Plans are judged too, one after the other, unless that was done already (`with_plans`).
    """
    judges = (
        (FaultKind.FORM, _flaws_of_names),
        (FaultKind.FORM, _flaws_of_turns),
        (FaultKind.FORM, _flaws_of_regions),
        (FaultKind.FORM, _flaws_of_parts),
        (FaultKind.FORM, _flaws_of_fifos),
        (FaultKind.FORM, _flaws_of_built_parts),
        (FaultKind.ORDER, _left_out),
        (FaultKind.ORDER, _computed_twice),
        (FaultKind.ORDER, _waits),
        (FaultKind.PROMISE, broken_promises),
        (FaultKind.FORM, flaws_of_relations),
    )
    for fault in judged(deployment, judges):
        yield fault
        return
    for part in deployment.parts if with_plans else ():
        pushed = [own for own, fifo in deployment.writes[part.name].items() if fifo.rows]
        for fault in faults(part.plan, pushed) if part.plan else ():
            yield PlanFault(fault.kind, f"the plan of part '{part.name}': {fault.message}")
            return
    for message in overlaps(deployment):
        yield PlanFault(FaultKind.MEMORY, message)
        return


def checked_deployment(deployment: Deployment, *, with_plans: bool = True) -> Deployment:
    """The deployment itself, when nothing is wrong with it."""
    if fault := next(deployment_faults(deployment, with_plans=with_plans), None):
        raise InputError(f"this deployment cannot run: {fault.message}")
    return deployment


def turns(deployment: Deployment) -> int:
    """The number of frames after which the assignment of frames to replicas repeats."""
    return lcm(*(worker.replica[1] for worker in deployment.workers))


def region_text(what: TensorRegion) -> str:
    """A region of a tensor in words."""
    bounds = ", ".join(f"{a}:{b}" for a, b in what.region.bounds)
    sums = "" if what.share is None else f" summed over [{', '.join(f'{a}:{b}' for a, b in what.share.bounds)}]"
    return f"'{what.tensor}' [{bounds}]{sums}"


def _flaws_of_names(deployment: Deployment) -> Iterator[str]:
    """Names that are defined twice, or used without being defined."""
    kinds = {
        "network": [network.name for network in deployment.networks],
        "part": [part.name for part in deployment.parts],
        "worker": [worker.name for worker in deployment.workers],
    }
    for kind, names in kinds.items():
        if OUTSIDE in names or not names:
            yield f"a {kind} has no name" if names else f"there is no {kind}"
        yield from (f"two {kind}s are called '{name}'" for name, n in Counter(names).items() if n > 1)
    for worker in deployment.workers:
        for name in worker.parts:
            if name not in deployment.part_named:
                yield f"worker '{worker.name}' runs '{name}', which is no part"
        if len(set(worker.parts)) < len(worker.parts):
            yield f"worker '{worker.name}' runs a part twice for one frame"
        if not worker.parts:
            yield f"worker '{worker.name}' runs no part"
        if len(set(worker.cores)) < len(worker.cores) or any(core < 0 for core in worker.cores):
            yield f"the cores of worker '{worker.name}' are not numbers from 0 on, each once"
    for fifo in deployment.fifos:
        for name in fifo.ends:
            if name != OUTSIDE and name not in deployment.part_named:
                yield f"the FIFO of {region_text(fifo.what)} joins '{name}', which is no part"


def _flaws_of_turns(deployment: Deployment) -> Iterator[str]:
    """Frames of a part that no worker runs, or that more than one runs."""
    for worker in deployment.workers:
        index, count = worker.replica
        if not 0 <= index < count:
            yield f"worker '{worker.name}' takes turn {index} of {count}, which does not exist"
            return
    for part in deployment.parts:
        workers = deployment.workers_of[part.name]
        if not workers:
            yield f"no worker runs part '{part.name}'"
            continue
        period = lcm(*(worker.replica[1] for worker in workers))
        if period > MOST_TURNS:
            yield f"the replicas of part '{part.name}' repeat their turns after {period} frames only"
            continue
        for frame in range(period):
            taking = [worker.name for worker in workers if worker.takes(frame)]
            if len(taking) != 1:
                who = f"workers {' and '.join(taking)} both" if taking else "no worker"
                yield f"{who} take{'' if taking else 's'} frame {frame} of part '{part.name}'"
                break


def _flaws_of_regions(deployment: Deployment) -> Iterator[str]:
    """Regions that lie outside their tensor, or of tensors that do not exist."""
    for what in _regions(deployment):
        network = deployment.network_named.get(what.network)
        if network is None:
            yield f"{region_text(what)} is of network '{what.network}', which the deployment does not have"
        elif what.tensor not in network.tensors or what.tensor in network.constants:
            yield f"'{what.tensor}' is no tensor that '{what.network}' computes or is given"
        elif not _is_inside(what.region, network.tensors[what.tensor].shape):
            yield f"{region_text(what)} is not inside the tensor of shape {network.tensors[what.tensor].shape}"
        elif what.share is not None and not _is_share(network, what):
            yield f"{region_text(what)} is no part of a sum"


def _regions(deployment: Deployment) -> Iterator[TensorRegion]:
    for part in deployment.parts:
        yield from part.inputs.values()
        yield from part.outputs.values()
    for fifo in deployment.fifos:
        yield fifo.what


def _is_inside(region: Region, shape: tuple[int, ...]) -> bool:
    return len(region.bounds) == len(shape) and all(
        0 <= a < b <= n for (a, b), n in zip(region.bounds, shape, strict=True)
    )


def _is_share(network: Network, what: TensorRegion) -> bool:
    layer = network.producers.get(what.tensor)
    if not network.layers:  # of a reduced deployment
        return True
    return (
        layer is not None and what.share is not None and _is_inside(what.share, network.tensors[layer.inputs[0]].shape)
    )


def _flaws_of_parts(deployment: Deployment) -> Iterator[str]:
    """Parts and plans whose inputs or outputs have another region or type than stated."""
    for part in deployment.parts:
        network = part.network
        ends = {"inputs": (part.inputs, network.inputs), "outputs": (part.outputs, network.outputs)}
        for kind, (told, own) in ends.items():
            if set(told) != set(own) or len(own) != len(told) or (kind == "outputs" and not told):
                yield f"the {kind} of part '{part.name}' are not those of its network"
                return
        for own_name, what in (*part.inputs.items(), *part.outputs.items()):
            if problem := _mismatch(deployment, part, own_name, what):
                yield f"tensor '{own_name}' of part '{part.name}' is not {region_text(what)}: {problem}"
        if part.plan is not None and (differing := difference(network, part.plan.network)):
            yield f"the plan of part '{part.name}' is one of another network: its {differing} differ"


def difference(network: Network, planned: Network) -> str:
    """How the network of a plan differs from the one that it is for, but for copies that join tensors; empty where it
    does not."""
    copies = {
        layer.output: layer.inputs[0]
        for layer in planned.layers
        if layer.name not in network.by_name and _is_copy(planned, layer)
    }
    layers = [
        replace(layer, inputs=tuple(copies.get(name, name) for name in layer.inputs))
        for layer in planned.layers
        if layer.output not in copies
    ]
    tensors = {name: tensor for name, tensor in planned.tensors.items() if name not in copies}
    pairs = {
        "inputs": (network.inputs, planned.inputs),
        "outputs": (network.outputs, planned.outputs),
        "arithmetics": (network.arithmetic, planned.arithmetic),
        "layouts": (network.layouts, planned.layouts),
        "constants": (network.constants.keys(), planned.constants.keys()),
        "tensors": (network.tensors, tensors),
        "layers": (list(network.layers), layers),
    }
    return next((what for what, (own, theirs) in pairs.items() if own != theirs), "")


def _is_copy(network: Network, layer: Layer) -> bool:
    source, copy = (network.tensors[name] for name in (layer.inputs[0], layer.output))
    rank = len(source.shape)
    return layer.op == Slice((0,) * rank, source.shape, (1,) * rank) and replace(copy, name=source.name) == source


def _mismatch(deployment: Deployment, part: Part, own_name: str, what: TensorRegion) -> str:
    own = part.network.tensors[own_name]
    whole = deployment.network_named[what.network].tensors[what.tensor]
    if own.shape != what.region.shape:
        return f"its shape is {own.shape}"
    if what.share is not None:
        wanted = DType.FLOAT32 if whole.dtype is DType.FLOAT32 else DType.INT32
        return "" if own.dtype is wanted else f"it is {own.dtype.value}, and sums are {wanted.value}"
    if own.dtype is not whole.dtype:
        return f"it is {own.dtype.value}, and the whole is {whole.dtype.value}"
    return "" if own.quant == tensor_part(whole, what.region).quant else "its scales differ"


def _flaws_of_fifos(deployment: Deployment) -> Iterator[str]:
    """FIFOs whose source does not produce what they carry, or whose readers expect something else, and inputs or
    outputs of parts that have no FIFO."""
    carried = Counter(fifo.what for fifo in deployment.fifos)
    yield from (f"two FIFOs carry {region_text(what)}" for what, count in carried.items() if count > 1)
    for fifo in deployment.fifos:
        if not 1 <= fifo.slots <= MOST_SLOTS:
            yield f"the FIFO of {region_text(fifo.what)} has {fifo.slots} slots; give it one or more"
        if not fifo.reading or len(set(fifo.reading)) < len(fifo.reading):
            yield f"the readers of the FIFO of {region_text(fifo.what)} are none, or one stands twice"
        yield from _mismatched_ends(deployment, fifo)
        yield from _misplaced_releases(deployment, fifo)
        if fifo.source in fifo.reading or fifo.rows < 0:
            yield f"the FIFO of {region_text(fifo.what)} is read by its own source, or is a ring of {fifo.rows} rows"
    for part in deployment.parts:
        brought = {fifo.what for fifo in deployment.fifos if part.name in fifo.reading}
        taken = {fifo.what for fifo in deployment.fifos if part.name == fifo.source}
        for what in part.inputs.values():
            if what not in brought:
                yield f"part '{part.name}' reads {region_text(what)}, which no FIFO brings"
        for what in part.outputs.values():
            if what not in taken:
                yield f"part '{part.name}' computes {region_text(what)}, which no FIFO takes"
        for own, what in part.outputs.items() if part.plan else ():
            view = part.plan.views.get(own) if part.plan else None
            rows = [fifo.rows for fifo in deployment.fifos if fifo.what == what]
            if view is not None and rows != [view.window[1] if view.window else 0]:
                yield f"part '{part.name}' does not keep as many rows of {region_text(what)} as its FIFO"
        if any(count > 1 for count in Counter((*part.inputs.values(), *part.outputs.values())).values()):
            yield f"two inputs or outputs of part '{part.name}' are the same region"


def _misplaced_releases(deployment: Deployment, fifo: Fifo) -> Iterator[str]:
    """Readers that release a slot after a stage which their plan does not have."""
    for reader in fifo.readers:
        plan = deployment.part_named[reader.part].plan if reader.part != OUTSIDE else None
        stages = len(plan.program.stages) if plan is not None else 0
        if reader.stage is not None and plan is not None and not -1 <= reader.stage < stages:
            what = region_text(fifo.what)
            yield f"'{reader.part}' releases {what} after stage {reader.stage}, and its stages are 0 to {stages - 1}"


def _mismatched_ends(deployment: Deployment, fifo: Fifo) -> Iterator[str]:
    """Parts whose tensor or region differs from what their FIFO carries."""
    network, what = deployment.network_named[fifo.what.network], region_text(fifo.what)
    if fifo.source == OUTSIDE:
        if fifo.what.tensor not in network.inputs or fifo.what.share is not None:
            yield f"a FIFO brings {what} from outside, which is no input of '{network.name}'"
    elif fifo.what not in deployment.part_named[fifo.source].outputs.values():
        yield f"a FIFO takes {what} from part '{fifo.source}', which does not compute it"
    for reader in fifo.reading:
        if reader == OUTSIDE:
            if fifo.what.tensor not in network.outputs or fifo.what.share is not None:
                yield f"a FIFO takes {what} outside, which is no output of '{network.name}'"
        elif fifo.what not in deployment.part_named[reader].inputs.values():
            yield f"a FIFO brings {what} to part '{reader}', which does not read it"


def _flaws_of_built_parts(deployment: Deployment) -> Iterator[str]:
    """Built parts whose files are missing, or whose sizes are impossible."""
    for part in deployment.parts:
        if (built := part.built) is None:
            continue
        file = PurePosixPath(built.file)
        if file.is_absolute() or ".." in file.parts:
            yield f"part '{part.name}' names a file outside the folder"
        if built.lanes < 1 or min((built.weights_bytes, *built.arenas.values())) < 0:
            yield f"part '{part.name}' has no lanes, or a memory of negative size"


def _left_out(deployment: Deployment) -> Iterator[str]:
    """Regions of network outputs that no part produces. Constants and inputs do not count: the caller has them.

    A reduced network has no layers, and only outputs that are computed.
    """
    for network in deployment.networks:
        for name in dict.fromkeys(network.outputs):
            if network.layers and name not in network.producers:
                continue
            taken = [
                fifo.what.region
                for fifo in deployment.fifos
                if (fifo.what.network, fifo.what.tensor) == (network.name, name)
                and (OUTSIDE in fifo.reading or fifo.keeps_latest)
            ]
            for gap in _gaps(Region.whole(network.tensors[name].shape), taken):
                yield f"no part computes {region_text(TensorRegion(network.name, name, gap))} for the caller"
                break


def _gaps(whole: Region, boxes: Iterable[Region]) -> list[Region]:
    """The boxes that remain of `whole` when all `boxes` are subtracted."""
    left = [whole]
    for box in boxes:
        left = [rest for region in left for rest in _without(region, box)]
    return left


def _without(region: Region, box: Region) -> Iterator[Region]:
    inside = region & box
    if inside.is_empty:
        yield region
        return
    for axis, ((a, b), (c, d)) in enumerate(zip(region.bounds, inside.bounds, strict=True)):
        for interval in ((a, c), (d, b)):
            if interval[0] < interval[1]:
                yield region.with_axis(axis, interval)
        region = region.with_axis(axis, (c, d))


def _computed_twice(deployment: Deployment) -> Iterator[str]:
    """Elements that two parts produce, although one could read them from the other."""
    given: dict[tuple[str, str], list[Fifo]] = {}
    for fifo in deployment.fifos:
        if fifo.source != OUTSIDE:
            given.setdefault((fifo.what.network, fifo.what.tensor), []).append(fifo)
    for fifos in given.values():
        for one, other in combinations(fifos, 2):
            if one.source == other.source or (one.what.region & other.what.region).is_empty:
                continue
            shares = one.what.share, other.what.share
            are_same = shares[0] is None and shares[1] is None
            if shares[0] is not None and shares[1] is not None:
                are_same = not (shares[0] & shares[1]).is_empty
            if are_same:
                yield f"parts '{one.source}' and '{other.source}' both compute a piece of {region_text(one.what)}"


def _waits(deployment: Deployment) -> Iterator[str]:
    """Parts that wait for each other.

    A part waits for parts of its own frame (those it reads from, and those before it on its worker) and for earlier
    frames (its worker's, and readers of the slots that it writes). So all goes on for ever if no frame waits in a
    circle, however many slots there are.
    """
    reads: dict[str, set[str]] = {part.name: set() for part in deployment.parts}
    for fifo in deployment.fifos:
        for reader in fifo.reading:
            if OUTSIDE not in (fifo.source, reader):
                reads[reader].add(fifo.source)
            if reader != OUTSIDE:
                reads[reader] |= deployment.read_before(fifo, reader)
    period = turns(deployment)
    if period > MOST_TURNS:
        yield f"the replicas repeat their turns after {period} frames only; give counts that divide each other"
        return
    seen = set()
    for frame in range(period):
        taking = tuple(worker for worker in deployment.workers if worker.takes(frame))
        if taking in seen:
            continue
        seen.add(taking)
        before = {name: set(sources) for name, sources in reads.items()}
        for worker in taking:
            for first, second in pairwise(worker.parts):
                before[second].add(first)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            circle = " -> ".join(f"'{name}'" for name in error.args[1])
            yield f"parts wait for each other in frame {frame}: {circle}"
            return
