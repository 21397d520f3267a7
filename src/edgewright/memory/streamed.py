"""Solutions in which some layers run as scheduled and the others whole: addresses, and step sizes.

Also the choice of layers to run row by row without extra MACs (M 4): those that save the most, or given ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from ..errors import Infeasible, InputError
from ..network import Network
from ..program import FusionSchedule
from ..program.legal import can_stream, can_sum, known_layers, problems
from ..program.steps import SUM_BYTES
from .footprint import footprint
from .in_place import with_planes, with_rows_in_place
from .layout import LayoutEffort
from .ordering import order
from .pricing import Pricer
from .problems import PlanningProblem
from .row_windows import rows_pulled
from .solver import MOST_REPLACED, Solution, place
from .step_sizes import narrow_steps, widen_steps
from .techniques import Techniques
from .views import Views, find_views, no_views, with_copies


def phased(
    network: Network,
    techniques: Techniques,
    alignment: int,
    whole: Solution,
    unfused: PlanningProblem | None = None,
) -> Solution:
    """The best solution found with layers row by row where that saves memory; `whole` if nothing is saved.

    `unfused` is the network's `unfused_problem`, if its groups have been traced before.
    """
    by_rows = _streamed(network, techniques, alignment, streamed_groups, unfused=unfused)
    best = min(whole, by_rows, key=lambda solution: solution.peak)
    waiting = bottleneck_tensors(network, find_views(network, outside=techniques.outside)) if techniques.views else ()
    if waiting:
        apart = with_copies(network, waiting)
        copies = set(apart.by_name) - set(network.by_name)
        other = _streamed(apart, techniques, alignment, partial(streamed_groups, known=best.peak), copies)
        best = min(best, other, key=lambda solution: solution.peak)
    return best


def named(network: Network, techniques: Techniques, alignment: int, names: Collection[str]) -> Solution:
    """The solution in which exactly these layers run row by row; consecutive ones do so together."""
    known_layers(network, names)
    return _streamed(network, techniques, alignment, partial(named_groups, names=names))


def lay_out(network: Network, techniques: Techniques, alignment: int, schedules: Sequence[FusionSchedule]) -> Solution:
    """The solution in which layers run as scheduled, and all others whole."""
    pulled = dict(techniques.pulled)
    return _streamed(
        network, techniques, alignment, lambda problem, _: _checked(network, schedules, problem.views.free, pulled)
    )


def _checked(
    network: Network, schedules: Sequence[FusionSchedule], free: Collection[str], pulled: Collection[str]
) -> list[FusionSchedule]:
    """The schedules without layers that execute nothing; an error if one cannot be carried out."""
    checked: list[FusionSchedule] = []
    taken: set[str] = set()
    for schedule in schedules:
        known_layers(network, schedule.layers)
        layers = [layer.name for layer in network.layers if layer.name not in free]
        names = tuple(name for name in layers if name in schedule.layers)
        if twice := taken & set(names):
            raise InputError(f"layer '{min(twice)}' is asked to run in two ways at once")
        taken |= set(names)
        if names:
            checked.append(replace(schedule, layers=names))
            for problem in problems(network, checked[-1], free, pulled):
                raise InputError(problem)
    return checked


def _streamed(
    network: Network,
    techniques: Techniques,
    alignment: int,
    choose: Callable[[PlanningProblem, Sequence[int]], Sequence[FusionSchedule]],
    copied: Collection[str] = (),
    unfused: PlanningProblem | None = None,
) -> Solution:
    """The solution for the schedules that `choose` selects for the best order of whole layers."""
    problem = unfused or unfused_problem(network, techniques, alignment, copied)
    schedules = choose(problem, order(problem.order_problem()).steps)
    chosen = {name for schedule in schedules for name in schedule.layers}
    views = _row_views(network, techniques, copied)
    if techniques.in_place:
        tiled = {
            name: each for each in schedules if each.splits and not _is_one_layer_in_lanes(each) for name in each.layers
        }
        # Whole layers overlap their input by placement; nothing is placed in the caller's memory.
        ends = {x.name for x in network.layers if problem.views.places[x.output].root in problem.outside}
        by_rows = {name: each for each in schedules if each.streamed and not each.splits for name in each.layers}
        views = with_rows_in_place(network, views, chosen | (ends - techniques.no_overlap), tiled, by_rows)
    read = {name for layer in chosen for name in network.by_name[layer].inputs}
    views = with_planes(network, views, techniques, alignment, read)
    parts = tuple(footprint(network, views, narrow_steps(network, views, each)) for each in schedules)
    # Running sums have 32 bits, and are word-aligned even if everything else is bytes.
    words = max(alignment, SUM_BYTES) if any(part.sums for part in parts) else alignment
    pulled = rows_pulled(network, views.free, techniques.pulled, [part.schedule for part in parts])
    problem = PlanningProblem(network, views, replace(techniques, pulled=pulled), words, parts)
    return _widened(place(problem, order(problem.order_problem())))


def _is_one_layer_in_lanes(schedule: FusionSchedule) -> bool:
    """Whether the schedule divides a single layer among lanes without recomputation or overwriting what another lane
    reads."""
    return schedule.lanes > 1 and len(schedule.layers) == 1


def unfused_problem(
    network: Network, techniques: Techniques, alignment: int, copied: Collection[str] = ()
) -> PlanningProblem:
    """The planning problem in which any layer may still join a fusion group: the starting point for choosing stages."""
    views = _row_views(network, techniques, copied)
    unfused = with_rows_in_place(network, views, network.by_name) if techniques.in_place else views
    return PlanningProblem(network, unfused, techniques, alignment)


def _widened(solution: Solution) -> Solution:
    """The solution with larger steps wherever that is faster and does not raise the peak.

    In large networks most layout searches fail, so only first fit is used.
    """
    for at, part in enumerate(solution.problem.footprints):
        network, views = solution.problem.network, solution.problem.views
        for schedule in widen_steps(network, views, part.schedule):
            parts = list(solution.problem.footprints)
            parts[at] = footprint(network, views, schedule)
            problem = replace(solution.problem, footprints=tuple(parts))
            order_found = order(problem.order_problem())
            effort = LayoutEffort.FIRST_FIT if len(problem.stores) > MOST_REPLACED else None
            try:
                solution = place(problem, order_found, solution.peak, effort)
                break
            except Infeasible:  # infeasible, or not found
                continue
    return solution


def _row_views(network: Network, techniques: Techniques, copied: Collection[str]) -> Views:
    """Views in which each concat is free or copies all its parts, so that a row of it is one step."""
    if not techniques.views:
        return no_views(network)
    apart = set(copied)
    while True:
        views = find_views(network, apart, techniques.outside)
        if not views.in_place:
            return views
        apart |= set(views.in_place)


def streamed_groups(
    problem: PlanningProblem, order: Sequence[int], known: int | None = None
) -> tuple[FusionSchedule, ...]:
    """The groups of layers for which running row by row saves the most; `known` is a peak that is already achieved."""
    best = Pricer(problem, order).best(known)
    return tuple(stage.schedule for stage in best if stage.schedule)


def named_groups(problem: PlanningProblem, order: Sequence[int], names: Collection[str]) -> tuple[FusionSchedule, ...]:
    """Schedules in which exactly these layers run row by row; consecutive ones form a group."""
    groups: list[list[str]] = [[]]
    for step in order:
        layer = problem.nodes[step].layers[0]
        if layer.name not in names:
            groups.append([])
        elif can_stream(problem.network, layer, problem.views.free):
            groups[-1].append(layer.name)
        elif can_sum(problem.network, layer):
            groups[-1].append(layer.name)
            groups.append([])  # readers of the sums wait until they are complete
        else:
            raise InputError(
                f"layer '{layer.name}' cannot run row by row: that takes one image, read from top to bottom"
            )
    return tuple(FusionSchedule(tuple(group), streamed=True) for group in groups if group)


def bottleneck_tensors(network: Network, views: Views) -> frozenset[str]:
    """The tensors that are the only ones live at some cut of the order, but lie inside a larger buffer that is filled
    later."""
    places = views.places
    open_ends: set[str] = set()  # tensors that are still to be read
    left = {name: len(readers) for name, readers in network.readers.items()}
    bottlenecks = set()
    for layer in network.layers:
        for name in network.activations(layer):
            left[name] -= 1
            if not left[name]:
                open_ends.discard(name)
        if left[layer.output]:
            open_ends.add(layer.output)
        root = places[layer.output].root
        if open_ends == {layer.output} and network.tensors[root].bytes > network.tensors[layer.output].bytes:
            bottlenecks.add(layer.output)
    return frozenset(bottlenecks)
