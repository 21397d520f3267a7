"""Random programs: networks whose layers run in any stages that are legal, each planned in some way.

A program is told by its seed alone. Stages are any layers that hang together, not just runs of them; tiles are cut
along rows, columns, channels or what is summed over, at any places and nested in any order; rows come on demand, by
themselves or inside of tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from edgewright.errors import InputError
from edgewright.memory import Techniques, plan
from edgewright.memory.row_windows import pullable
from edgewright.memory.views import find_views, no_views
from edgewright.network import Network
from edgewright.program import FusionSchedule, Plan, Split
from edgewright.program.fusion import CHANNELS, COLUMNS, FusedLayers
from edgewright.program.legal import problems
from edgewright.program.steps import ROWS
from tests.helpers.random_networks import network_of_seed

ALIGNMENTS = (None, None, 1, 4, 16)
TRIES = 40  # drawn for each stage: most do not suit the layers
MOST_LAYERS = 9  # of a stage


@dataclass(frozen=True)
class RandomProgram:
    seed: int
    network: Network
    plan: Plan

    @property
    def schedules(self) -> tuple[FusionSchedule, ...]:
        """Those of stages that are more than a whole layer."""
        stages = self.plan.program.stages
        return tuple(stage.schedule for stage in stages if len(stage.layers) > 1 or not stage.schedule.is_whole)


def random_program(seed: int, most: int = 12) -> RandomProgram:
    """The program of a seed."""
    random, network = Random(seed), network_of_seed(seed, most=most)
    techniques = Techniques(*(random.random() < 0.7 for _ in range(4)))
    alignment = random.choice(ALIGNMENTS)
    pulled = pullable(network) if random.random() < 0.3 else {}
    free = find_views(network).free if techniques.views else no_views(network).free
    chosen: list[FusionSchedule] = []
    for _ in range(random.choice((1, 1, 2, 3))):
        taken = {name for schedule in chosen for name in schedule.layers}
        for _ in range(TRIES):
            drawn = drawn_schedule(network, random, {*free, *taken})
            if drawn and not any(problems(network, drawn, free, pulled)):
                chosen.append(drawn)
                break
    return RandomProgram(seed, network, _planned(network, chosen, techniques, alignment, bool(pulled)))


def _planned(
    network: Network, chosen: list[FusionSchedule], techniques: Techniques, alignment: int | None, pulls: bool
) -> Plan:
    """The plan with as many of the schedules as can run beside each other."""
    for count in range(len(chosen), 0, -1):
        try:
            return plan(
                network,
                techniques=techniques,
                alignment=alignment,
                explain=False,
                pull_rows=pulls,
                schedules=chosen[:count],
            )
        except InputError:
            continue
    return plan(network, techniques=techniques, alignment=alignment, explain=False, pull_rows=pulls)


def drawn_schedule(network: Network, random: Random, taken: set[str]) -> FusionSchedule | None:
    """Some layers that hang together, in some parts: legal or not. None where nothing is left to be drawn."""
    layers = _connected(network, random, taken)
    if not layers:
        return None
    streamed = random.random() < 0.5
    axes = [CHANNELS, COLUMNS] if streamed else [CHANNELS, COLUMNS, ROWS]
    random.shuffle(axes)
    axes = axes[: random.choice((0, 0, 1, 2) if streamed else (0, 1, 1, 2, 2, 3))]
    bare = FusionSchedule(layers, tuple(Split(axis, (1,)) for axis in axes), streamed)
    fused = FusedLayers(network, bare, taken)
    splits = tuple(Split(axis, _ends(random, _size(fused, axis))) for axis in axes)
    rows = _sizes(random, layers) if streamed and random.random() < 0.5 else ()
    columns = _sizes(random, layers) if streamed and COLUMNS not in axes and random.random() < 0.4 else ()
    return FusionSchedule(layers, splits, streamed, rows, columns)


def _connected(network: Network, random: Random, taken: set[str]) -> tuple[str, ...]:
    """Layers each of which reads another, or is read by one; producers first."""
    left = [layer.name for layer in network.layers if layer.name not in taken]
    if not left:
        return ()
    found = {random.choice(left)}
    for _ in range(random.randint(0, MOST_LAYERS - 1)):
        near = set()
        for name in found:
            layer = network.by_name[name]
            near |= {reader.name for reader in network.readers[layer.output]}
            near |= {network.producers[x].name for x in layer.inputs if x in network.producers}
        if near := (near & set(left)) - found:
            found.add(random.choice(sorted(near)))
    return tuple(sorted(found, key=network.position.__getitem__))


def _size(fused: FusedLayers, axis: int) -> int:
    """What the first of the last layers has along the axis; where it has none, any number does."""
    try:
        return fused.driven(fused.sinks[0], axis)[axis]
    except LookupError:
        return 2


def _ends(random: Random, size: int) -> tuple[int, ...]:
    inner = random.sample(range(1, size), min(size - 1, random.choice((0, 1, 1, 2, 3, 5)))) if size > 1 else []
    return (*sorted(inner), size)


def _sizes(random: Random, layers: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    chosen = random.sample(layers, random.randint(1, len(layers)))
    return tuple((name, random.randint(1, 4)) for name in chosen)
