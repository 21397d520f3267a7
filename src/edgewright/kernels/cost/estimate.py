"""Estimates of the instructions that a plan takes on a core, from a model fitted to the virtual board's counts.

A call's instructions are a sum over what its kernel says it does, each amount times a coefficient that was measured for
the target and a compiler. Coefficients come with the error that they had when they were fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod

from ...network import Network, Region
from ...network.operators import Clamp, Conv2d, Dense
from ...network.operators.partial_sums import partial_macs, partial_needs
from ...platform.target import Target
from ...program import Plan, Step
from ...program.lower import calls, lower
from ...program.options import Options
from ...program.selection import CallKind
from ...program.steps import SUM_BYTES
from ..catalogue import BY_NAME
from ..select import first_offer, select
from ..sites import NetworkFacts, Sites
from ..window import round_up
from .call_context import AMPLE, CallContext, site_in
from .model import FitError, model_of, modelled, target_named
from .stages import cuts, representative_calls
from .work import KernelWork

__all__ = ["Costs", "Estimate", "VectorPrices", "estimate", "model_of", "modelled", "works_of"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Instructions that a plan is thought to take; an estimate, with the error that the model had when fitted."""

    instructions: int
    stages: tuple[int, ...]  # of each
    compiler: str  # that the model knows: gcc, or zig
    error: FitError
    source: str  # what the model was fitted to
    guessed: tuple[str, ...]  # layers of a kind that was never measured


def estimate(plan: Plan, target: Target | str, *, zig: bool | None = None) -> Estimate:
    """The instructions of one run of the plan on the target, by the kernels that it selects.

    `zig` says whether Zig builds them, or GCC; without it, what linked the plan does, or else GCC.
    """
    if zig is None:
        zig = plan.linked is not None and plan.linked.compiler.startswith("zig")
    core = target_named(target)
    model, stages, guessed = model_of(core, zig=zig), [], dict[str, None]()
    begin = model.coefficients.get("stage", {}).get("calls", 0.0)
    for works in works_of(plan, core):
        stages.append(round(begin + sum(count * model.cost(work) for _, work, count in works)))
        guessed |= {layer: None for layer, work, _ in works if not model.knows(work)}
    return Estimate(sum(stages), tuple(stages), model.compiler, model.error, model.source, tuple(guessed))


def works_of(plan: Plan, target: Target) -> list[list[tuple[str, KernelWork, int]]]:
    """For each stage the work of its calls: layer, work, and how often."""
    own = plan.target if plan.selections else None
    is_selected = own is not None and own.name == target.name
    core, options = (own or target, plan.options or Options()) if is_selected else (target, Options())
    facts = NetworkFacts(plan.network, core, options)
    chosen = plan if is_selected else select(plan, facts)
    sites, found = Sites(chosen, facts), []
    also = frozenset(selection.kernel for stage in chosen.selections for selection in stage)
    for stage, selections in zip(chosen.program.stages, chosen.selections, strict=True):
        nodes, works = lower(chosen, stage), []
        known = {}
        for (call, loops), selection in zip(calls(nodes), selections, strict=True):
            site, kernel = sites.site(call, loops, also), BY_NAME[selection.kernel]
            known[id(call)] = site, kernel, selection.offer
            if call.kind is CallKind.FINISH:
                works.append((call.layer, kernel.work(site, selection.offer, Region.whole(call.most), None), 1))
        for call, step, count in representative_calls(nodes):
            site, kernel, offer = known[id(call)]
            works.append((call.layer, kernel.work(site, offer, step.region, step.partial), count))
        found.append(works)
    return found


@dataclass(frozen=True, slots=True)
class VectorPrices:
    """What parts of layers cost a core with vectors beside the products, in instructions of the one that stands in.

    Whole layers take about as long on both, in proportion, where channels fill vectors. In parts, vectors are done with
    the products so soon that beginning a call shows, and reading weights again, and running sums. Partial sums are made
    by the kernel of whole layers, and cost what their share of the products does. Fitted to inverted bottlenecks of
    MobileNetV2 in float32, whole, by rows and in parts of channels.
    """

    call: float
    weight_byte: float  # of the weights that a call reads
    sum_byte: float  # of running sums that a call reads, and again for each that it writes
    lanes: int  # channels that are computed together
    function: float = 0.0  # of a call that ends with more than a clamp
    far_byte: float = 0.0  # of what a call reads and writes beyond what is near


# 41 ns a call, 28 ps a byte of weights, 113 ps of sums: 48 plans, 6 % root mean square, 11 % at worst.
AARCH64_PRICES = VectorPrices(call=2300, weight_byte=1.6, sum_byte=6.3, lanes=4)
# AVX-512: calls, sums and weights from 45 plans of single blocks (8 % root mean square). The price of weights lies
# between that fit (1.4) and joint fits (2.5), chosen by M table 6.6; functions and far bytes were set by hand.
X86_64_PRICES = VectorPrices(call=9200, weight_byte=1.8, sum_byte=9.1, lanes=16, function=50000, far_byte=7)
NEAR = 2 << 20  # bytes of the second cache


class Costs:
    """What parts of a network's layers cost on a target: quick, since what was asked before is remembered.

    Whether there are exact multipliers for a layer, or it is left to plain loops, takes a while to find out; without
    `exact`, all layers are taken to have them. With `vectors`, the target stands in for one that has them.
    """

    def __init__(
        self, network: Network, target: Target | str, *, exact: bool = False, vectors: VectorPrices | None = None
    ) -> None:
        self.network, self.vectors = network, vectors
        self.facts = NetworkFacts(network, target_named(target), exact=exact)
        self.model = model_of(self.facts.target)
        self.stage = self.model.coefficients.get("stage", {}).get("calls", 0.0)
        self._known: dict[tuple[str, Region, Region | None, CallContext], float] = {}
        self._kinds: dict[str, bool] = {}

    def step(self, step: Step, context: CallContext | None = None) -> float:
        """Instructions of one step."""
        return self.region(step.layer, step.region, context or CallContext(sweep=step.sweep), step.partial)

    def region(
        self, layer: str, region: Region, context: CallContext | None = None, partial: Region | None = None
    ) -> float:
        """Instructions to compute a region of a layer's output, or to add a part to its running sums."""
        context = context or CallContext()
        prices = self.vectors if self._is_real(layer) else None
        if prices:  # rolling windows are of no matter to vectors, and scratch is on the stack
            context = replace(context, room=AMPLE, is_circular=False)
        key = (layer, region, partial, context)
        if key not in self._known:
            work = self.work(layer, region, context, None if prices else partial)
            self._kinds[layer] = self.model.knows(work)
            cost = self.model.cost(work)
            if prices:
                cost = self._in_vectors(prices, cost, layer, region, partial)
            if self.vectors and partial is not None:
                cost += self.vectors.sum_byte * 2 * SUM_BYTES * region.size
            self._known[key] = cost
        return self._known[key]

    def _is_real(self, name: str) -> bool:
        """Whether a layer multiplies real numbers; parts of others were not timed with vectors."""
        layer = self.network.by_name[name]
        return isinstance(layer.op, Conv2d | Dense) and self.network.tensors[layer.output].dtype.is_float

    def _in_vectors(
        self, prices: VectorPrices, cost: float, name: str, region: Region, partial: Region | None
    ) -> float:
        """Of a layer of products that takes so many instructions where there are no vectors, all of them or a share."""
        layer = self.network.by_name[name]
        op, shapes = layer.op, self.network.shapes(layer)
        read = op.needs(region, shapes)
        if partial is not None:
            read = partial_needs(op, region, shapes, partial)
            cost *= partial_macs(op, region, shapes, partial) / max(1, op.macs(region, shapes))
        cost *= round_up(region.shape[-1], prices.lanes) / max(1, region.shape[-1])
        cost += prices.call + prices.weight_byte * read[1].size * self.network.tensors[layer.inputs[1]].dtype.bytes
        if not isinstance(getattr(op, "activation", None), Clamp | None):
            cost += prices.function
        moved = (read[0].size + region.size) * self.network.tensors[layer.output].dtype.bytes
        return cost + prices.far_byte * max(0, moved - NEAR)

    def work(self, layer: str, region: Region, context: CallContext, partial: Region | None = None) -> KernelWork:
        """What the kernel does that would be selected there."""
        site = site_in(self.facts, layer, region, context, partial)
        kind = CallKind.COMPUTE if partial is None else CallKind.ADD
        kernel, offer = first_offer(site, kind, context.room)
        return kernel.work(site, offer, region, partial)

    def finish(self, layer: str) -> float:
        """Instructions to zero a layer's running sums and to make them its output."""
        whole = Region.whole(self.network.tensors[self.network.by_name[layer].output].shape)
        site = site_in(self.facts, layer, whole, CallContext())
        kernel, offer = first_offer(site, CallKind.FINISH, 0)
        return self.model.cost(kernel.work(site, offer, whole, None))

    def parts(self, layer: str, shape: tuple[int, ...], context: CallContext | None = None) -> float:
        """Instructions of a whole layer in parts of this shape at most, one call each."""
        whole = self.network.tensors[self.network.by_name[layer].output].shape
        along = [cuts(size, min(part, size)) for size, part in zip(whole, shape, strict=True)]
        total = 0.0
        for chosen in product(*along):
            count = prod(often for _, often in chosen)
            total += count * self.region(layer, Region(tuple(part for part, _ in chosen)), context)
        return total

    def is_known(self, layer: str) -> bool:
        """Whether the kind of work that a layer was last found to be has been measured."""
        return self._kinds.get(layer, True)
