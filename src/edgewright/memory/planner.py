"""From a network to a Plan: which tensors share memory, in which order layers run, where every buffer lies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial

from ..errors import Infeasible, InputError
from ..network import Network, Region, Shape
from ..network.operators import Concat, Reshape, Slice
from ..platform import Board
from ..program import ROWS, Buffer, Item, Loop, Plan, Program, Saving, Stage, Step, Sweep, View, check
from .apart import Solution, judge, moved_apart
from .layout import (
    Effort,
    MemoryPlacement,
    place_greedy_by_size,
    place_in_memories,
    place_optimal,
)
from .ordering import Order, order
from .phases import Groups, phased_bound, runs, stretches, waists
from .problems import PLAIN, Techniques, Work, relaxed_problem
from .pulled import pullable
from .stretch import comfortable_rows, stretch, with_rows_in_place
from .views import Views, find_views, no_views, with_copies, with_planes

MOST_SEARCHED = 500  # buffers; with more, an exact search costs long and gains little over first fit
MOST_TRIALS = 24  # of deciding otherwise about a concat or slice that stands in the way

# Layers of one kind do the same to tensors of the same shapes.
Kind = tuple[Concat | Slice, tuple[Shape, ...]]


def plan(
    network: Network,
    board: Board | None = None,
    *,
    plain: bool = False,
    techniques: Techniques | None = None,
    alignment: int | None = None,
    explain: bool = True,
    pull_rows: bool = False,
    phases: bool | Collection[str] = False,
) -> Plan:
    """The plan that needs the least RAM, with a bound that no other plan can beat.

    `plain` switches everything off but order and layout (S 4.3.1, 4.3.2). `explain` adds what each technique saved.
    With `pull_rows`, images are not held in memory: the first layer asks for their rows. With `phases`, layers run row
    by row, keeping a few rows of what lies between them (M 4): those for which it saves most, or just those named.

    >>> from edgewright import samples, read_model
    >>> net = read_model(samples.build("stahl_running_example"))
    >>> plan(net, plain=True).peak_bytes  # S fig. 4.9
    24576
    """
    chosen = PLAIN if plain else techniques or Techniques()
    if pull_rows:
        chosen = replace(chosen, pulled=_pulled(network))
    unit = _alignment(network, board, alignment)
    bound = 0 if chosen == PLAIN else order(relaxed_problem(network, chosen, unit)).bound
    best = whole = _solve(network, chosen, unit, bound)
    if phases:
        bound = phased_bound(network, chosen, unit)
        best = _phased(network, chosen, unit, best) if phases is True else _named(network, chosen, unit, phases)
    best = moved_apart(best)
    bound = min(best.peak, best.order.bound if chosen == PLAIN and not phases else bound)
    by_rows = (Saving("layers row by row", best.peak),) if phases else ()
    if board is not None and best.peak > max((memory.usable for memory in board.ram), default=0):
        memories, best = _spread(best, board)
    else:
        memories = {item: _home(board, best.peak) for item in best.placement.offsets}
    return _assemble(
        best,
        memories,
        bound=bound,
        savings=(*_savings(network, chosen, unit, whole.peak), *by_rows) if explain else (),
        board=board.name if board else None,
        plain=chosen == PLAIN,
    )


def _phased(network: Network, techniques: Techniques, alignment: int, whole: Solution) -> Solution:
    """The best solution found in which layers run row by row where that saves memory; `whole` if it saves none."""
    best = min(whole, _streamed(network, techniques, alignment, stretches), key=lambda solution: solution.peak)
    waiting = waists(network, find_views(network)) if techniques.views else ()
    if waiting:
        apart = with_copies(network, waiting)
        copies = set(apart.by_name) - set(network.by_name)
        other = _streamed(apart, techniques, alignment, partial(stretches, known=best.peak), copies)
        best = min(best, other, key=lambda solution: solution.peak)
    return best


def _named(network: Network, techniques: Techniques, alignment: int, names: Collection[str]) -> Solution:
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
    return _comfortable(_place(work, order(work.order_problem())))


def _comfortable(solution: Solution) -> Solution:
    """The solution with several rows in a step wherever that is faster and does not raise the peak."""
    for at, part in enumerate(solution.work.stretches):
        rows = comfortable_rows(solution.work.network, part.layers)
        if rows:
            parts = list(solution.work.stretches)
            parts[at] = stretch(solution.work.network, solution.work.views, part.layers, rows)
            work = replace(solution.work, stretches=tuple(parts))
            other = _place(work, order(work.order_problem()))
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


def _pulled(network: Network) -> tuple[tuple[str, int], ...]:
    found = pullable(network)
    if not found:
        raise Infeasible(
            f"no input of '{network.name}' can be pulled by rows: that takes one image which one layer reads from "
            "top to bottom, a few rows at a time"
        )
    return tuple(found.items())


def _alignment(network: Network, board: Board | None, wanted: int | None) -> int:
    """What every offset is a multiple of: the target's word, and no less than the largest element."""
    widest = max((t.dtype.bytes for t in network.tensors.values() if t.name not in network.constants), default=1)
    return max(wanted or (board.alignment if board else 4), widest)


@dataclass(frozen=True)
class Choice:
    """Where to copy although a view would do, since a view keeps a larger buffer alive for longer."""

    copied: frozenset[str] = frozenset()  # concats and slices with an output of their own
    moved: frozenset[str] = frozenset()  # tensors that wait outside a concat's buffer until it is needed


def _solve(
    network: Network, techniques: Techniques, alignment: int, bound: int, most_trials: int = MOST_TRIALS
) -> Solution:
    """The best solution found over what may be a view and what is copied; `bound` ends the search early.

    Views are nearly always right, so the search starts from all of them and turns one decision at a time among
    those that touch the fullest stage. Orders are compared first: a layout never needs less than its order.
    """
    if not techniques.views:
        return _place(*_ordered(network, no_views(network), techniques, alignment))
    choice = Choice()
    best = _place(*_chosen(network, choice, techniques, alignment))
    movers = [layer for layer in network.layers if isinstance(layer.op, Concat | Slice | Reshape)]
    everything = Choice(copied=frozenset(layer.name for layer in movers))
    tried = {choice}
    # A reshape is always best looked at in place.
    has_choice = any(not isinstance(layer.op, Reshape) for layer in movers)
    while has_choice and best.peak > bound:
        trials = [everything, *_alternatives(network, best, choice)]
        trials = [trial for trial in trials if trial not in tried][: most_trials - len(tried)]
        tried.update(trials)
        start = best.peak
        for trial in trials:
            work, found = _chosen(network, trial, techniques, alignment)
            if found.peak < best.peak:
                solution = _place(work, found)
                if solution.peak < best.peak:
                    best, choice = solution, trial
        if best.peak == start:
            break
    return best


def _alternatives(network: Network, solution: Solution, choice: Choice) -> list[Choice]:
    """Choices that differ in how one concat or slice is treated, among those in memory at the fullest stage.

    Networks repeat their blocks, and all of them must change before the peak does: alike layers are decided alike.
    """
    work = solution.work
    spans = work.lifetimes(solution.order.steps)
    fullest = work.fullest(solution.order.steps)
    members = work.views.members()
    parts: dict[str, str] = {}  # a concat's buffer -> the part that is written first
    for layer in work.layers:
        root = work.views.places[layer.output].root
        if any(isinstance(reader.op, Concat) for reader in work.network.readers[layer.output]):
            parts.setdefault(root, layer.output)
    alike: dict[Kind, set[str]] = {}
    in_the_way: dict[Kind, bool] = {}  # in the order of the network
    for layer in network.layers:
        if isinstance(layer.op, Concat | Slice):
            kind = (layer.op, network.shapes(layer))
            alike.setdefault(kind, set()).add(layer.name)
            root = work.views.places[layer.output].root
            first, last = spans[root]
            in_the_way[kind] = in_the_way.get(kind, False) or (first <= fullest <= last and len(members[root]) > 1)
    found = []
    for kind in (kind for kind, matters in in_the_way.items() if matters):
        roots = {work.views.places[network.by_name[name].output].root for name in alike[kind]}
        # What is written first may wait outside, unless it is a copy already.
        early = {parts[root] for root in roots if root in parts and parts[root] in network.tensors}
        if early - choice.moved:
            found.append(replace(choice, moved=choice.moved | early))
        found.append(replace(choice, copied=choice.copied ^ alike[kind]))
    return found


def _chosen(network: Network, choice: Choice, techniques: Techniques, alignment: int) -> tuple[Work, Order]:
    moved = with_copies(network, choice.moved)
    copies = {layer.name for layer in moved.layers} - {layer.name for layer in network.layers}
    return _ordered(moved, find_views(moved, choice.copied | copies), techniques, alignment)


def _ordered(network: Network, views: Views, techniques: Techniques, alignment: int) -> tuple[Work, Order]:
    if techniques.planes:
        views = with_planes(network, views, alignment, dict(techniques.pulled))
    work = Work(network, views, techniques, alignment)
    return work, order(work.order_problem())


def _place(work: Work, found: Order) -> Solution:
    problem = work.layout_problem(found.steps)
    effort = Effort.NORMAL if len(problem.items) <= MOST_SEARCHED else Effort.QUICK
    placement = place_optimal(problem, effort=effort)
    judge(problem, placement)
    return Solution(work, found, placement)


def _home(board: Board | None, peak: int) -> str:
    """The fastest memory that holds everything."""
    if board is None:
        return "ram"
    return next((memory.name for memory in board.ram if memory.usable >= peak), board.ram[0].name)


def _spread(solution: Solution, board: Board) -> tuple[Mapping[str, str], Solution]:
    """Buffers over several memories, when none holds them all; if all together do not, as if one memory grew."""
    problem = solution.work.layout_problem(solution.order.steps)
    memories = [(memory.name, memory.usable) for memory in board.ram]
    try:
        spread: MemoryPlacement = place_in_memories(problem, memories, _traffic(solution))
    except Infeasible:
        return dict.fromkeys(solution.placement.offsets, board.ram[0].name), solution
    offsets = {name: at for part in spread.placements.values() for name, at in part.offsets.items()}
    peak = sum(part.peak for part in spread.placements.values())
    placement = replace(solution.placement, offsets=offsets, peak=peak)
    return spread.memory, replace(solution, placement=placement)


def _traffic(solution: Solution) -> Mapping[str, int]:
    """Bytes written to and read from each buffer: what it gains from a fast memory."""
    stores = solution.work.stores.values()
    return {store.name: store.size * (len(store.writers) + len(store.readers)) for store in stores}


def _savings(network: Network, techniques: Techniques, alignment: int, peak: int) -> tuple[Saving, ...]:
    """The peak as techniques are added one after the other, from what an interpreter does to the whole."""
    as_trained = Work(network, no_views(network), PLAIN, alignment)
    greedy = place_greedy_by_size(as_trained.layout_problem(range(len(as_trained.layers))))
    result = [Saving("layers as trained, greedy layout", greedy.peak)]
    if techniques == PLAIN:
        return (*result, Saving("best order and layout", peak))
    views, in_place = techniques.views, techniques.in_place
    added = {
        "best order and layout": PLAIN,
        "concat, split and reshape for free": replace(PLAIN, views=views),
        "element-wise layers in place": replace(PLAIN, views=views, in_place=in_place),
        "output trails its input": replace(techniques, planes=False, pulled=()),
    }
    if techniques.pulled:
        added["depthwise in place by channel"] = replace(techniques, pulled=())
    for name, step in added.items():
        found = _solve(network, step, alignment, peak, most_trials=3).peak
        result.append(Saving(name, min(found, result[-1].peak_bytes)))  # a technique may be left unused
    last = "input pulled by rows" if techniques.pulled else "depthwise in place by channel"
    return (*result, Saving(last, peak))


def _assemble(
    solution: Solution,
    memories: Mapping[str, str],
    *,
    bound: int,
    savings: tuple[Saving, ...],
    board: str | None,
    plain: bool,
) -> Plan:
    work, network = solution.work, solution.work.network
    offsets = solution.placement.offsets
    spans = dict(work.lifetimes(solution.order.steps))
    sizes = {root: work.techniques.bytes(network.tensors[root]) for root in work.stores}
    for position, step in enumerate(solution.order.steps):
        for name, size in work.scratch(work.tasks[step]).items():
            spans[name], sizes[name] = (position, position), size
    buffers = tuple(
        Buffer(name, sizes[name], offsets[name], *spans[name], memory=memories[name]) for name in sizes
    )
    sweeps = _sweeps(solution, memories)
    stages = tuple(Stage(work.tasks[s].name, _body(work, s, sweeps[s])) for s in solution.order.steps)
    program = check(Program(network, stages), [*work.views.free, *work.views.in_place])
    places, kept = work.views.places, _windows(work)
    return Plan(
        program=program,
        free=tuple(layer.name for layer in network.layers if layer.name in work.views.free),
        buffers=tuple(sorted(buffers, key=lambda b: (b.first, b.offset, b.name))),
        views={
            name: View(place.root, place.offset, place.strides, kept.get(place.root))
            for name, place in places.items()
        },
        alignment=work.alignment,
        peak_bytes=solution.peak,
        bound_bytes=bound,
        flash_bytes=network.weight_bytes,
        macs_plain=network.total_macs,
        method=_method(solution),
        savings=savings,
        board=board,
        plain=plain,
    )


def _method(solution: Solution) -> str:
    found = f"order: {solution.order.method}; layout: {solution.placement.method}"
    if not solution.work.stretches:
        return found
    return f"rows: the best cuts of one order into stretches, by shortest path; {found}"


def _windows(work: Work) -> Mapping[str, tuple[int, int]]:
    """For each buffer that holds a few rows at a time: the axis, and how many."""
    found = {name: (ROWS, rows) for name, rows in work.techniques.pulled}
    for part in work.stretches:
        axis = part.stream.axis
        for root, rows in part.windows.items():
            if rows < work.network.tensors[root].shape[axis]:
                found[root] = (axis, rows)
    return found


def _body(work: Work, step: int, sweep: Sweep) -> tuple[Item, ...]:
    """The steps of one stage: the whole layer, or those parts of a concat that do not lie in place yet.

    What reads a pulled input goes row by row, so that few rows suffice.
    """
    task = work.tasks[step]
    if task.stretch:
        return (task.stretch.stream,)
    layer = task.layers[0]
    whole = Region.whole(work.network.tensors[layer.output].shape)
    if any(name in dict(work.techniques.pulled) for name in layer.inputs):
        down = tuple(int(axis == ROWS) for axis in range(len(whole.bounds)))
        return (Loop(whole.shape[ROWS], (Step(layer.name, whole.with_axis(ROWS, (0, 1)), sweep, (down,)),)),)
    if layer.name not in work.views.in_place:
        return (Step(layer.name, whole, sweep),)
    assert isinstance(layer.op, Concat)
    axis = layer.op.axis % len(whole.bounds)
    steps, start = [], 0
    for position, shape in enumerate(work.network.shapes(layer)):
        if position not in work.views.in_place[layer.name]:
            steps.append(Step(layer.name, whole.with_axis(axis, (start, start + shape[axis]))))
        start += shape[axis]
    return tuple(steps)


def _sweeps(solution: Solution, memories: Mapping[str, str]) -> Mapping[int, Sweep]:
    """For each step: forwards, unless the output lies so that only the other direction is safe."""
    work = solution.work
    at, shared = solution.placement.offsets, work.gaps(solution.order.steps)
    sweeps = {
        step: Sweep.CHANNELS if task.name in work.views.planes else Sweep.FORWARD
        for step, task in enumerate(work.tasks)
    }
    for (step, x, y), safe in work.pairs.items():
        delta = at[y] - at[x]
        if (x, y) in shared and memories[x] == memories[y] and -safe.below < delta < work.stores[x].size:
            sweeps[step] = Sweep.BACKWARD
    return sweeps
