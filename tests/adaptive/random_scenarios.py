"""Random scenarios on one to four processors, pipelined or not, with buffers at random addresses; random chains."""

from __future__ import annotations

import random
from collections.abc import Mapping

from edgewright.adaptive.steps import Scenario, ScenarioStep

MOST_STEPS = 8
ARENA = 24  # cells in which buffers of both scenarios meet
LAYERS = 8  # that chains are made of


def random_scenario(rng: random.Random, name: str, processors: int, most_steps: int = MOST_STEPS) -> Scenario:
    """A random graph of steps with integer times. One frame by itself has no hazard.

    On one processor buffers reuse the bytes of dead ones; on several, each has bytes of its own.
    """
    count = 1 + int(rng.random() * most_steps)
    processors = min(processors, count)
    is_pipelined = processors > 1 and rng.random() < 0.5
    places = _processors(rng, count, processors, is_pipelined)
    inputs = [_inputs(rng, at) for at in range(count)]
    last_read = list(range(count))
    for at, those in enumerate(inputs):
        for other in those:
            last_read[other] = at
    buffers: list[int] = []
    steps = []
    taken = 0
    for at, those in enumerate(inputs):
        reads = 0
        for other in those:
            reads |= buffers[other]
        in_use = taken
        if processors == 1:
            is_in_place = bool(those) and last_read[those[0]] == at and rng.random() < 0.2
            in_use = 0
            for other in range(at):
                if last_read[other] >= at and not (is_in_place and other == those[0]):
                    in_use |= buffers[other]
        own = _place(rng, in_use)
        scratch = _place(rng, in_use | reads | own) if rng.random() < 0.2 else 0
        if processors > 1:
            taken |= own | scratch
        if at == 0 and rng.random() < 0.5:
            reads = scratch = _place(rng, in_use | own)  # its input is copied into memory first
            taken |= scratch
        buffers.append(own)
        time = int(rng.random() * 6)
        steps.append(ScenarioStep(f"{name}{at}", time, places[at], those, reads, own | scratch))
    scenario = Scenario(name, tuple(steps))
    if is_pipelined and scenario.shortest_period < scenario.latency:
        period = scenario.shortest_period + int(rng.random() * (scenario.latency - scenario.shortest_period + 1))
        return Scenario(name, tuple(steps), period)
    return scenario


def _processors(rng: random.Random, count: int, processors: int, is_pipelined: bool) -> list[int]:
    if is_pipelined:
        return [at * processors // count for at in range(count)]
    return [int(rng.random() * processors) for _ in range(count)]


def _inputs(rng: random.Random, at: int) -> tuple[int, ...]:
    """One or two earlier steps, mostly the one before."""
    if at == 0:
        return ()
    first = at - 1 if rng.random() < 0.7 else int(rng.random() * at)
    second = int(rng.random() * at)
    return (first,) if rng.random() < 0.7 or second == first else (first, second)


def _place(rng: random.Random, in_use: int) -> int:
    """One to four cells that are not in use, at a random address of the arena, or else above all that are."""
    mask = (1 << 1 + int(rng.random() * 4)) - 1
    for _ in range(3):
        placed = mask << int(rng.random() * ARENA)
        if not placed & in_use:
            return placed
    return mask << max(ARENA, in_use.bit_length())


def random_chain(rng: random.Random, name: str, cells: Mapping[object, int], is_exclusive: bool = True) -> Scenario:
    """A chain of some of the layers of a supergraph, in their order. `cells` has a mask for each layer and each edge.

    Where layers are exclusive, two scenarios never run the same one at a time.
    """
    layers = [layer for layer in range(LAYERS) if rng.random() < 0.7] or [0, LAYERS - 1]
    steps = []
    for at, layer in enumerate(layers):
        reads = cells[layers[at - 1], layer] if at else 0
        writes = cells[layer, layers[at + 1]] if at + 1 < len(layers) else 0
        own = cells[layer] if is_exclusive else 0
        steps.append(ScenarioStep(str(layer), 1 + int(rng.random() * 5), 0, (), reads, writes | own))
    return Scenario(name, tuple(steps))
