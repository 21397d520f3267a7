"""The best way to run layers row by row: stretches as stages among whole layers, placed like everything else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from ..errors import InputError
from ..network import Network
from .apart import Solution
from .ordering import order
from .phases import Groups, runs, stretches, waists
from .problems import Techniques, Work
from .solving import place
from .stretch import comfortable_rows, stretch, with_rows_in_place
from .views import Views, find_views, no_views, with_copies, with_planes


def phased(network: Network, techniques: Techniques, alignment: int, whole: Solution) -> Solution:
    """The best solution found in which layers run row by row where that saves memory; `whole` if it saves none."""
    best = min(whole, _streamed(network, techniques, alignment, stretches), key=lambda solution: solution.peak)
    waiting = waists(network, find_views(network)) if techniques.views else ()
    if waiting:
        apart = with_copies(network, waiting)
        copies = set(apart.by_name) - set(network.by_name)
        other = _streamed(apart, techniques, alignment, partial(stretches, known=best.peak), copies)
        best = min(best, other, key=lambda solution: solution.peak)
    return best


def named(network: Network, techniques: Techniques, alignment: int, names: Collection[str]) -> Solution:
    """The solution in which just these layers run row by row; those that follow each other do so together."""
    unknown = [name for name in names if name not in network.by_name]
    if unknown:
        near = get_close_matches(unknown[0], network.by_name, 1)
        hint = f"did you mean '{near[0]}'?" if near else "`edgewright inspect` lists the layers"
        raise InputError(f"network '{network.name}' has no layer '{unknown[0]}': {hint}")
    return _streamed(network, techniques, alignment, partial(runs, names=names))


def _streamed(
    network: Network,
    techniques: Techniques,
    alignment: int,
    choose: Callable[[Work, Sequence[int]], Groups],
    copied: Collection[str] = (),
) -> Solution:
    """The solution in which the groups of layers that are chosen of an order run row by row."""
    views = _row_views(network, copied) if techniques.views else no_views(network)
    loose = with_rows_in_place(network, views, network.by_name) if techniques.in_place else views
    work = Work(network, loose, techniques, alignment)
    groups = choose(work, order(work.order_problem()).steps)
    chosen = {name for group in groups for name in group}
    if techniques.in_place:
        views = with_rows_in_place(network, views, chosen)
    if techniques.planes:
        read = {name for group in chosen for name in network.by_name[group].inputs}
        views = with_planes(network, views, alignment, {*dict(techniques.pulled), *read})
    work = Work(network, views, techniques, alignment, tuple(stretch(network, views, group) for group in groups))
    return _comfortable(place(work, order(work.order_problem())))


def _comfortable(solution: Solution) -> Solution:
    """The solution with several rows in a step wherever that is faster and does not raise the peak."""
    for at, part in enumerate(solution.work.stretches):
        rows = comfortable_rows(solution.work.network, part.layers)
        if rows:
            parts = list(solution.work.stretches)
            parts[at] = stretch(solution.work.network, solution.work.views, part.layers, rows)
            work = replace(solution.work, stretches=tuple(parts))
            other = place(work, order(work.order_problem()))
            solution = other if other.peak <= solution.peak else solution
    return solution


def _row_views(network: Network, copied: Collection[str]) -> Views:
    """Views in which each concat is free or copies all its parts, so that a row of it is one step."""
    apart = set(copied)
    while True:
        views = find_views(network, apart)
        if not views.in_place:
            return views
        apart |= set(views.in_place)
