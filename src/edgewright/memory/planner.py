"""From a network to a Plan: which tensors share memory, the order of layers, the address of every buffer.

Also the lower bounds that say how far a plan may be from the best.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Unpack

from ..errors import Infeasible, InputError
from ..network import Layer, Network
from ..platform import Board
from ..program import Plan, Saving, rows_needed
from ..program.legal import can_stream, can_sum
from .assembly import assemble
from .layout import MemoryPlacement, place_greedy_by_size, place_in_memories
from .layout.problem import align_up
from .ordering import order
from .problems import PlanningProblem
from .relaxed import relaxed_problem
from .request import LayoutKeywords, PlanRequest
from .row_windows import pullable
from .solver import Solution, drop_needless_overlaps, solve
from .streamed import lay_out, named, phased
from .techniques import PLAIN, Techniques
from .views import no_views

MOST_ALIGNMENT = 4096
MOST_TRIED = 1_000  # layers; in larger networks the savings of single techniques are found with one choice of views


def plan(
    network: Network,
    board: Board | None = None,
    request: PlanRequest | None = None,
    *,
    plain: bool = False,
    techniques: Techniques | None = None,
    explain: bool = True,
    unfused: PlanningProblem | None = None,
    **fields: Unpack[LayoutKeywords],
) -> Plan:
    """The plan that needs the least RAM, with a bound that no other plan can beat.

    `request`, or its fields as keywords, says by hand how layers run; this function does not search for schedules.
    Inputs and outputs in `outside` are not copied and do not count in the peak. `plain` leaves order and layout only
    (S 4.3.1, 4.3.2), `techniques` switches single techniques off; `explain` adds what each one saved. `unfused` is the
    result of `unfused_problem` for the same arguments; passing it avoids tracing the layers again.

    >>> from edgewright import samples, read_model
    >>> net = read_model(samples.build("stahl_running_example"))
    >>> plan(net, plain=True).peak_bytes  # S fig. 4.9
    24576
    """
    asked = request or PlanRequest(**fields)
    chosen = replace(
        PLAIN if plain or asked.plain else techniques or Techniques(), outside=_outside(network, asked.outside)
    )
    if asked.pull_rows:
        held = tuple(each for each in pulled_inputs(network) if each[0] not in chosen.outside)
        chosen = replace(chosen, pulled=held)
    unit = alignment_of(network, board, asked.alignment)
    best, bound, parts = _solved(network, chosen, unit, asked, unfused)
    savings = _savings(network, chosen, unit, best.peak if not parts else None) if explain else ()
    if explain and parts:
        savings = (*savings, Saving(parts, best.peak))
    if board is not None and best.peak > max((memory.usable for memory in board.ram), default=0):
        memories, best = _spread(best, board)
    else:
        memories = {item: _home(board, best.peak) for item in best.placement.offsets}
    return assemble(
        best, memories, bound=bound, savings=savings, board=board.name if board else None, plain=chosen.is_plain
    )


def explained(plan: Plan, network: Network, techniques: Techniques) -> Plan:
    """The plan of whole layers, with the savings of each technique added."""
    known = plan.peak_bytes if len(plan.arenas) == 1 else None  # a plan spread over memories may need more
    return replace(plan, savings=_savings(network, techniques, plan.alignment, known))


def _solved(
    network: Network,
    techniques: Techniques,
    unit: int,
    request: PlanRequest,
    unfused: PlanningProblem | None,
) -> tuple[Solution, int, str]:
    """The best solution, a lower bound of its peak, and a name for the way layers run in parts (empty: they do not)."""
    phases = request.phases
    if request.schedules is not None:
        best = drop_needless_overlaps(lay_out(network, techniques, unit, request.schedules))
        return best, min(best.peak, least_bound(network, techniques, unit)), "layers in parts"
    if phases and phases is not True:
        best = drop_needless_overlaps(named(network, techniques, unit, phases))
        return best, min(best.peak, phased_bound(network, techniques, unit)), "layers row by row"
    bound = 0
    if not techniques.is_plain:
        relaxed = order(relaxed_problem(network, techniques, unit)).bound
        bound = max(relaxed, least_bound(network, techniques, unit))
    best = solve(network, techniques, unit, bound)
    if phases:
        best = drop_needless_overlaps(phased(network, techniques, unit, best, unfused))
        return best, min(best.peak, phased_bound(network, techniques, unit)), "layers row by row"
    best = drop_needless_overlaps(best)
    return best, min(best.peak, best.order.bound if techniques.is_plain else bound), ""


def _outside(network: Network, names: Collection[str]) -> frozenset[str]:
    """The inputs and outputs in the caller's memory; an error if one cannot be there."""
    for name in names:
        if name in network.constants or (name in network.inputs) == (name in network.outputs):
            raise InputError(
                f"'{name}' cannot lie in the caller's memory: it is not an input or output of '{network.name}' that "
                "is given or computed"
            )
    return frozenset(names)


def pulled_inputs(network: Network) -> tuple[tuple[str, int], ...]:
    """The inputs that can arrive row by row, and the rows kept of each; an error if there are none."""
    rows = pullable(network)
    if not rows:
        raise Infeasible(
            f"no input of '{network.name}' can be pulled by rows: that takes one image which one layer reads from "
            "top to bottom, a few rows at a time"
        )
    return tuple(rows.items())


def alignment_of(network: Network, board: Board | None, wanted: int | None) -> int:
    """The alignment of every offset: a power of two, at least the target's word and the largest element."""
    word = checked_alignment(wanted) if wanted is not None else board.alignment if board else 4
    widest = max((t.dtype.bytes for t in network.tensors.values() if t.name not in network.constants), default=1)
    return max(word, widest)


def checked_alignment(wanted: int) -> int:
    """The alignment itself; an error if it is not a supported power of two."""
    if not 1 <= wanted <= MOST_ALIGNMENT or wanted & (wanted - 1):
        raise InputError(
            f"buffers cannot be aligned to {wanted} bytes: give a power of two from 1 to {MOST_ALIGNMENT}, such as 4"
        )
    return wanted


def _home(board: Board | None, peak: int) -> str:
    """The fastest memory that holds all buffers."""
    if board is None:
        return "ram"
    return next((memory.name for memory in board.ram if memory.usable >= peak), board.ram[0].name)


def _spread(solution: Solution, board: Board) -> tuple[Mapping[str, str], Solution]:
    """Buffers over several memories if none holds them all; if all together do not, as if the first memory were
    larger."""
    layout = solution.problem.layout_problem(solution.order.steps)
    memories = [(memory.name, memory.usable) for memory in board.ram]
    try:
        spread: MemoryPlacement = place_in_memories(layout, memories, _traffic(solution))
    except Infeasible:
        return dict.fromkeys(solution.placement.offsets, board.ram[0].name), solution
    offsets = {name: at for part in spread.placements.values() for name, at in part.offsets.items()}
    peak = sum(part.peak for part in spread.placements.values())
    placement = replace(solution.placement, offsets=offsets, peak=peak)
    return spread.memory, replace(solution, placement=placement)


def _traffic(solution: Solution) -> Mapping[str, int]:
    """Bytes written to and read from each buffer: its benefit from a fast memory."""
    stores = solution.problem.stores.values()
    return {store.name: store.size * (len(store.writers) + len(store.readers)) for store in stores}


def _savings(network: Network, techniques: Techniques, alignment: int, known: int | None) -> tuple[Saving, ...]:
    """The peak as techniques are added one by one, starting with the layout of an interpreter.

    `known` is the peak with all of them, if it is known.
    """
    peak = solve(network, techniques, alignment, 0).peak if known is None else known
    bare = replace(PLAIN, outside=techniques.outside)
    as_trained = PlanningProblem(network, no_views(network), bare, alignment)
    greedy = place_greedy_by_size(as_trained.layout_problem(range(len(as_trained.layers))))
    result = [Saving("layers as trained, greedy layout", greedy.peak)]
    if techniques.is_plain:
        return (*result, Saving("best order and layout", peak))
    views, in_place = techniques.views, techniques.in_place
    added = {
        "best order and layout": bare,
        "concat, split and reshape for free": replace(bare, views=views),
        "element-wise layers in place": replace(bare, views=views, in_place=in_place),
        "output trails its input": replace(techniques, planes=False, pulled=()),
    }
    if techniques.pulled:
        added["depthwise in place by channel"] = replace(techniques, pulled=())
    trials = 3 if len(network.layers) <= MOST_TRIED else 1
    for name, step in added.items():
        peak_with = solve(network, step, alignment, peak, most_trials=trials).peak
        result.append(Saving(name, min(peak_with, result[-1].peak_bytes)))  # a technique need not be used
    last = "input pulled by rows" if techniques.pulled else "depthwise in place by channel"
    return (*result, Saving(last, peak))


def phased_bound(network: Network, techniques: Techniques, alignment: int) -> int:
    """A lower bound for plans by rows: inputs and outputs whole, and the least that any single layer needs to run."""
    outside = techniques.outside
    touched = (layer for layer in network.layers if not outside & {*layer.inputs, layer.output})
    layers = (_least(network, layer) for layer in touched)
    return max(least_bound(network, techniques, alignment), *layers, 0)


def least_bound(network: Network, techniques: Techniques, alignment: int) -> int:
    """A lower bound for all plans: all inputs exist at the start, all outputs at the end."""
    elsewhere = {*dict(techniques.pulled), *network.constants, *techniques.outside}
    given, wanted = (
        sum(align_up(network.tensors[name].bytes, alignment) for name in set(names) - elsewhere)
        for names in (network.inputs, network.outputs)
    )
    return max(given, wanted)


def _least(network: Network, layer: Layer) -> int:
    """Bytes that are in memory at some moment while the layer runs, whole or row by row."""
    out = network.tensors[layer.output]
    reads = [network.tensors[name] for name in network.activations(layer)]
    whole = max((tensor.bytes for tensor in (out, *reads)), default=0)
    if layer.op.may_be_view or can_sum(network, layer):
        return 0  # possibly free, or only partial sums
    if not can_stream(network, layer, ()):
        return whole
    rows = 0
    for tensor in reads:
        needed = rows_needed(network, layer, tensor.name) or ()
        most = max((b - a for a, b in needed), default=0)
        if most > 1:  # a single row may be passed on in pieces
            rows += most * (tensor.bytes // tensor.shape[1])
    return min(whole, rows)
