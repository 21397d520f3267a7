"""Which layers run row by row, at no extra MACs (M 4): those for which it saves most, or those that are named."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..errors import InputError
from ..network import Network
from ..program import FusionSchedule
from ..program.legal import can_stream, can_sum
from .pricing import Pricer
from .problems import PlanningProblem
from .views import Views


def streamed_groups(
    work: PlanningProblem, order: Sequence[int], known: int | None = None
) -> tuple[FusionSchedule, ...]:
    """The groups of layers for which going row by row saves most; `known` is a peak that can be had anyway."""
    best = Pricer(work, order).best(known)
    return tuple(stage.schedule for stage in best if stage.schedule)


def runs(work: PlanningProblem, order: Sequence[int], names: Collection[str]) -> tuple[FusionSchedule, ...]:
    """Schedules in which just these layers run row by row; those that follow each other in the order are one group."""
    found: list[list[str]] = [[]]
    for step in order:
        layer = work.tasks[step].layers[0]
        if layer.name not in names:
            found.append([])
        elif can_stream(work.network, layer, work.views.free):
            found[-1].append(layer.name)
        elif can_sum(work.network, layer):
            found[-1].append(layer.name)
            found.append([])  # what reads the sums waits until they are complete
        else:
            raise InputError(
                f"layer '{layer.name}' cannot run row by row: that takes one image, read from top to bottom"
            )
    return tuple(FusionSchedule(tuple(group), streamed=True) for group in found if group)


def waists(network: Network, views: Views) -> frozenset[str]:
    """The tensors that alone lie across some cut, but inside a larger buffer that is filled later.

    A group could end there cheaply if the tensor waited outside and were copied, row by row, into the larger one.
    """
    places = views.places
    open_ends: set[str] = set()  # tensors made so far that are still to be read
    left = {name: len(readers) for name, readers in network.readers.items()}
    found = set()
    for layer in network.layers:
        for name in network.activations(layer):
            left[name] -= 1
            if not left[name]:
                open_ends.discard(name)
        if left[layer.output]:
            open_ends.add(layer.output)
        root = places[layer.output].root
        if open_ends == {layer.output} and network.tensors[root].bytes > network.tensors[layer.output].bytes:
            found.add(layer.output)
    return frozenset(found)
