"""Random deployments: parts by layers, regions and partial sums, over workers, replicas and devices."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from edgewright.errors import InputError, Unsupported
from edgewright.memory import plan
from edgewright.memory.deploy import PartRequest, Planner, deploy, plan_in_slots
from edgewright.network import Layer, Network, Region, random_inputs
from edgewright.network.kernels import can_sum_partially
from edgewright.network.operators.partial_sums import reduction_axes
from edgewright.network.partial import PartialSums
from edgewright.network.parts import cut
from edgewright.network.restrict import restrictable_hull
from edgewright.program import FusionSchedule, Plan, Split, even_ends
from edgewright.program.deployment import Deployment, Worker
from edgewright.program.deployment_memory import laid_out
from edgewright.program.deployment_run import Frame
from edgewright.program.legal import problems

TURNS = (((0, 1),), ((0, 1),), ((0, 2), (1, 2)), ((0, 2), (1, 4), (3, 4)), ((0, 3), (1, 3), (2, 3)))


def random_deployment(network: Network, random: Random, planner: Planner | None = plan_in_slots) -> Deployment:
    """A legal deployment of the network; with `planner` None other runtimes execute all parts."""
    requests = random_requests(network, random)
    made = deploy(
        network,
        requests,
        random_workers([request.name for request in requests], random),
        slots=random.randint(1, 3),
        planner=planner or (lambda _: None),
    )
    fifos = tuple(replace(fifo, slots=random.randint(1, 3)) for fifo in made.fifos)
    changed = replace(made, fifos=fifos, predictions=())
    return replace(changed, arenas=laid_out(changed))


def planner_in_lanes(random: Random) -> Planner:
    """Plans with their ends in slots and, now and then, layers that two or three lanes share by rows or channels."""

    def planned(network: Network) -> Plan:
        lanes, schedules = random.choice((1, 1, 2, 3)), []
        for layer in network.layers if lanes > 1 else ():
            shape = network.tensors[layer.output].shape
            axis = random.choice((1, -1)) if len(shape) == 4 else -1
            if shape and shape[axis] >= lanes:
                schedule = FusionSchedule((layer.name,), (Split(axis, even_ends(shape[axis], lanes), lanes),))
                schedules += [] if any(problems(network, schedule)) else [schedule]
        if not schedules:
            return plan_in_slots(network)
        ends = [name for name in (*network.inputs, *network.outputs) if name not in network.constants]
        try:
            return plan(network, outside=dict.fromkeys(ends), explain=False, schedules=schedules)
        except InputError:  # what is free in this plan cannot be in lanes
            return plan_in_slots(network)

    return planned


def random_requests(network: Network, random: Random) -> list[PartRequest]:
    """Runs of layers, each as a whole, in regions of its output, or with the last layer summed in parts."""
    names = [layer.name for layer in network.layers]
    ends = sorted({len(names), *(random.randint(1, len(names)) for _ in range(random.randint(0, 3)))})
    found: list[PartRequest] = []
    for index, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        run = tuple(names[start:end])
        whole = [PartRequest(f"run{index}", run)]
        manner = random.choice((_in_regions, _in_sums, lambda *_: []))
        found += manner(network, run, index, random) or whole
    return found


def outward(network: Network, run: tuple[str, ...]) -> list[str]:
    """What is read outside of a run of layers."""
    return [
        layer.output
        for layer in network.layers
        if layer.name in run
        and (layer.output in network.outputs or any(r.name not in run for r in network.readers[layer.output]))
    ]


def _in_regions(network: Network, run: tuple[str, ...], index: int, random: Random) -> list[PartRequest]:
    """The run once for each region of the one tensor that it gives."""
    outs = outward(network, run)
    if len(outs) != 1 or not network.tensors[outs[0]].shape:
        return []
    layer, whole = network.producers[outs[0]], Region.whole(network.tensors[outs[0]].shape)
    axis = random.randrange(len(whole.bounds))
    size = whole.shape[axis]
    if size < 2:
        return []
    marks = sorted({0, size, *(random.randint(1, size - 1) for _ in range(random.randint(1, 2)))})
    regions = [whole.with_axis(axis, pair) for pair in pairwise(marks)]
    dtype = network.tensors[layer.inputs[0]].dtype
    if any(restrictable_hull(layer.op, region, network.shapes(layer), dtype) != region for region in regions):
        return []
    found = [PartRequest(f"run{index}.{i}", run, {outs[0]: region}) for i, region in enumerate(regions)]
    return found if _can_be_cut(network, found) else []


def _in_sums(network: Network, run: tuple[str, ...], index: int, random: Random) -> list[PartRequest]:
    """The last layer of a run summed in two parts and finished by a third; the others before it as a whole."""
    layer, outs = network.by_name[run[-1]], outward(network, run)
    shares = _shares(network, layer, random)
    if outs != [layer.output] or not shares:
        return []
    whole = Region.whole(network.tensors[layer.output].shape)
    before = [PartRequest(f"run{index}", run[:-1])] if run[:-1] else []
    summed = [
        PartRequest(f"run{index}.sum{i}", run[-1:], {layer.output: PartialSums(whole, share)})
        for i, share in enumerate(shares)
    ]
    finish = PartRequest(f"run{index}.finish", run[-1:], {layer.output: whole}, {layer.name: shares})
    found = [*before, *summed, finish]
    return found if _can_be_cut(network, [*summed, finish]) else []


def _shares(network: Network, layer: Layer, random: Random) -> list[Region]:
    tensors = [network.tensors[name] for name in layer.inputs]
    x = Region.whole(tensors[0].shape)
    axes = [axis for axis in reduction_axes(layer.op, network.shapes(layer)) if x.shape[axis] > 1]
    if not axes or not can_sum_partially(layer.op, tensors, network.tensors[layer.output], network.arithmetic):
        return []
    axis = random.choice(axes)
    middle = random.randint(1, x.shape[axis] - 1)
    return [x.with_axis(axis, (0, middle)), x.with_axis(axis, (middle, x.shape[axis]))]


def _can_be_cut(network: Network, requests: list[PartRequest]) -> bool:
    """Whether no layer has a reason against it, such as scales for each channel of which one would be left."""
    try:
        for request in requests:
            cut(network, request.layers, request.outputs or {}, request.finished)
    except Unsupported:
        return False
    return True


def random_workers(parts: list[str], random: Random) -> list[Worker]:
    """Each part on one of some workers, in the order of the parts; workers may have replicas, on one device or two."""
    count = random.randint(1, min(4, len(parts)))
    homes = [random.randrange(count) for _ in parts]
    devices = random.choice((("this",), ("this",), ("left", "right")))
    found = []
    for index in range(count):
        mine = tuple(part for part, home in zip(parts, homes, strict=True) if home == index)
        for turn, replica in enumerate(random.choice(TURNS) if mine else ()):
            device = random.choice(devices)
            found.append(Worker(f"w{index}.{turn}", device, "cpu", (len(found),), mine, replica))
    return found


def frames_of(network: Network, count: int, seed: int = 0) -> list[Frame]:
    """Frames with different inputs."""
    return [{network.name: random_inputs(network, seed + i)} for i in range(count)]
