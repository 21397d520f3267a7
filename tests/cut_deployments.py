"""Networks cut into parts of whole layers at random, on workers with replicas."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random

from edgewright.memory import plan as make_plan
from edgewright.network import Network, Region
from edgewright.network.parts import TensorRegion
from edgewright.program.deployment import OUTSIDE, Deployment, Fifo, Part, Worker

REPLICAS = ([(0, 1)], [(0, 1)], [(0, 2), (1, 2)], [(0, 2), (1, 4), (3, 4)])


def is_cuttable(network: Network) -> bool:
    """Whether frames come in and go out through layers."""
    read = all(network.readers[name] for name in network.inputs)
    return bool(network.layers) and read and all(name in network.producers for name in network.outputs)


def draw_deployment(network: Network, random: Random, parts: int, foreign: Collection[int] = ()) -> Deployment:
    """The network in so many parts, of which those with these numbers are left to another runtime than ours."""
    layers = network.layers
    ends = sorted(random.sample(range(1, len(layers)), min(parts, len(layers)) - 1))
    made = []
    for number, (low, high) in enumerate(zip([0, *ends], [*ends, len(layers)], strict=True)):
        chosen = layers[low:high]
        written = {layer.output for layer in chosen}
        inputs = [name for layer in chosen for name in network.activations(layer) if name not in written]
        outputs = [
            layer.output
            for layer in chosen
            if layer.output in network.outputs or any(r not in chosen for r in network.readers[layer.output])
        ]
        unread = [layer.output for layer in chosen if not network.readers[layer.output]]
        ends_of = tuple(dict.fromkeys((*outputs, *(outputs or unread))))
        own = replace(network, inputs=tuple(dict.fromkeys(inputs)), outputs=ends_of).with_layers(chosen)
        plan = None if number in foreign else make_plan(own, alignment=64, explain=False)
        made.append(
            Part(
                f"p{number}",
                own,
                plan,
                {name: _whole(network, name) for name in own.inputs},
                {name: _whole(network, name) for name in own.outputs},
            )
        )
    return _joined(network, tuple(made), random)


def _joined(network: Network, parts: tuple[Part, ...], random: Random) -> Deployment:
    sources = dict.fromkeys(network.inputs, OUTSIDE) | {name: p.name for p in parts for name in p.outputs}
    fifos = []
    for name, source in sources.items():
        readers = [part.name for part in parts if name in part.inputs]
        readers += [OUTSIDE] if name in network.outputs else []
        if readers:
            fifos.append(Fifo(_whole(network, name), source, tuple(readers), random.randint(1, 3)))
    workers: list[Worker] = []
    start = 0
    while start < len(parts):
        end = random.randint(start + 1, len(parts))
        names = tuple(part.name for part in parts[start:end])
        for replica in random.choice(REPLICAS):
            workers.append(Worker(f"w{len(workers)}", "this", "cpu", (len(workers) % 2,), names, replica))
        start = end
    draft = Deployment((network,), parts, tuple(workers), tuple(fifos), {})
    arenas = sum(
        max(
            (draft.part_named[name].plan.arenas.get("ram", 0) for name in w.parts if draft.part_named[name].plan),
            default=0,
        )
        for w in workers
    )
    slots = sum(fifo.slots * draft.slot_bytes(fifo) for fifo in fifos)
    return replace(draft, arenas={("this", "ram"): arenas + slots})


def _whole(network: Network, name: str) -> TensorRegion:
    return TensorRegion(network.name, name, Region.whole(network.tensors[name].shape))
