"""Tables of a plan: its stages, its totals, and the saving of each technique."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from rich.table import Table

from .. import text
from ..fusion.choice import FoundPlan, TradeOff
from ..fusion.timing import Timing
from ..kernels.cost.estimate import Estimate
from ..kernels.cost.model import stand_in
from ..kernels.cost.run_time import RunTime, run_time
from ..network import describe
from ..platform import Board
from ..program import Plan
from .common import facts, shown, table
from .costs import estimate_words, estimated
from .fusion_groups import how


def stages_table(plan: Plan, most: int = 40, time: RunTime | None = None) -> Table:
    """The stages; of many, those around the one with the highest peak."""
    network = plan.network
    live = plan.live_bytes
    title = f"{shown(network.name)}: order and addresses"
    made = table(title, ">#", "layer", "operator", "output", ">at", ">bytes", ">in use", *((">time",) if time else ()))
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    peak = max(live, default=0)
    centre = live.index(peak) if live else 0
    first = max(0, min(centre - most // 2, len(live) - most))
    if first:
        made.add_row("", f"… {first} before")
    for index, stage in list(enumerate(plan.program.stages))[first : first + most]:
        layers = [network.by_name[name] for name in stage.layers]
        kinds = [describe.operator(layer.op, network.shapes(layer)) for layer in layers]
        tensor, view = network.tensors[layers[-1].output], plan.views[layers[-1].output]
        made.add_row(
            str(index),
            shown(stage.name),
            shown(kinds[0] if len(kinds) == 1 else f"{len(kinds)} layers, {how(plan, stage)}"),
            "x".join(map(str, tensor.shape)),
            text.count(buffers[view.buffer].offset + view.offset),
            text.count(tensor.bytes),
            text.count(live[index]),
            *((text.duration(time.stages[index]),) if time else ()),
            style="bold" if live[index] == peak else None,
        )
    if first + most < len(live):
        made.add_row("", f"… {len(live) - first - most} after; the plan file and --page have all")
    return made


def summary_table(
    plan: Plan,
    board: Board | None,
    plain: Plan | None = None,
    core: str | None = None,
    whole: Estimate | None = None,
    not_counted: str = "",
) -> Table:
    """The totals. `plain` is the plan to compare with; `core` the target of the estimate, `whole` the estimate of whole
    layers. `not_counted` says why code and stack are missing."""
    grid = facts()
    size = text.rounded_size(plan.peak_bytes)
    grid.add_row("peak RAM", f"{text.count(plan.peak_bytes)} B", f"{size}, {plan.quality}")
    if any(plan.less_ram):
        grid.add_row("less", *plan.less_ram)
    if len(plan.arenas) > 1:
        for name, used in plan.arenas.items():
            grid.add_row("", f"{text.count(used)} B", f"in {name}")
    if plain is not None:
        grid.add_row("plain peak", f"{text.count(plain.peak_bytes)} B", _saved(plan, plain))
    for row in _code_rows(plan, not_counted):
        grid.add_row(*row)
    grid.add_row("work", f"{text.rounded_count(plan.macs)} MACs", _work(plan))
    cost = estimated(plan, core)
    if cost is not None and core is not None:
        about = estimate_words(cost, core, whole)
        grid.add_row("instructions", f"≈ {text.rounded_count(cost.instructions)}", about)
    if time := run_time(plan, cost, board):
        grid.add_row("time", f"≈ {text.duration(time.seconds)}", time.words)
    if board:
        grid.add_row("board", board.name, shown(board.title or ""))
    return grid


def _code_rows(plan: Plan, not_counted: str) -> Iterator[tuple[str, str, str]]:
    """Stack, total RAM and flash, as far as they are known."""
    linked, stack = plan.linked, plan.stack_bytes
    if stack is not None and linked is not None:
        yield "stack", f"{text.count(stack)} B", f"at most, with {shown(linked.compiler)}"
        yield (
            "RAM in all",
            f"{text.count(plan.peak_bytes + stack)} B",
            text.rounded_size(plan.peak_bytes + stack),
        )
    flash = f"{text.count(plan.flash_bytes)} B"
    if linked is None:
        packed = " as packed" if plan.packed else ""
        yield "flash", flash, f"{text.rounded_size(plan.flash_bytes)} of weights{packed}"
        yield "not counted", "code, stack", shown(not_counted)
        return
    parts = {"weights": linked.weights_bytes, "code": linked.code_bytes, "what it calls": linked.runtime_bytes}
    told = ", ".join(f"{text.count(size)} B {what}" for what, size in parts.items() if size)
    yield "flash", flash, f"{text.rounded_size(plan.flash_bytes)} as linked: {told}"
    if stack is None:
        yield "not counted", "stack", "the code tells no bound"


def _saved(plan: Plan, plain: Plan) -> str:
    saved = 1 - plan.peak_bytes / plain.peak_bytes if plain.peak_bytes else 0.0
    return f"best order and layout of whole layers; {saved:.1%} saved"


def overhead(plan: Plan) -> str:
    """The extra MACs in percent."""
    return f"{plan.macs / plan.macs_plain - 1:+.1%}" if plan.macs != plan.macs_plain else "none extra"


def _work(plan: Plan) -> str:
    stages, free = text.plural(len(plan.order), "stage"), text.plural(len(plan.free), "layer")
    return f"{overhead(plan)}; {stages}, {free} for free"


def trades_table(answer: FoundPlan, core: str | None, most: int = 3) -> Table:
    """Neighbouring trade-offs: plans with somewhat more or less RAM, and the limit that selects each of the latter."""
    chosen = answer.plan.peak_bytes
    whole = answer.whole.peak_bytes if answer.whole else chosen
    above = [trade for trade in answer.trades if chosen < trade.peak_bytes <= whole]
    below = [trade for trade in answer.trades if trade.peak_bytes < chosen]
    here = [trade for trade in answer.trades if trade.peak_bytes == chosen]
    title = f"what the last bytes cost, as estimated for {stand_in(core).name}"
    made = table(title, ">peak RAM", ">instructions", ">extra MACs", "")
    caution = Timing(core).caution
    for trade in [*_spread(above, most), *here, *_spread(below, most)]:
        extra = trade.macs / max(1, answer.plan.macs_plain) - 1
        made.add_row(
            text.count(trade.peak_bytes),
            f"{1 + trade.slowdown:.2f} x whole",
            f"{extra:+.1%}" if extra > 0 else "none",
            "this plan" if trade in here else _limit(trade, caution) if trade in below else "",
            style="bold" if trade in here else None,
        )
    return made


def _limit(trade: TradeOff, caution: float) -> str:
    return f"--minimise ram --max-slowdown {ceil(100 * trade.slowdown / caution)}%"


def _spread(trades: Sequence[TradeOff], most: int) -> list[TradeOff]:
    """At most `most` of them, evenly spread; the first and the last are always included."""
    if len(trades) <= most:
        return list(trades)
    return [trades[round(i * (len(trades) - 1) / (most - 1))] for i in range(most)]


def savings_table(plan: Plan) -> Table:
    made = table("what each technique saved", "technique", ">peak RAM", ">of the first")
    base = before = plan.savings[0].peak_bytes or 1
    for saving in plan.savings:
        idle = saving.peak_bytes == before and saving is not plan.savings[0]
        share = f"{saving.peak_bytes / base:.0%}"
        made.add_row(saving.technique, text.count(saving.peak_bytes), share, style="dim" if idle else None)
        before = saving.peak_bytes
    return made
