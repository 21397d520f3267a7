"""Instructions of plans for searches: estimated quickly, cached, and for any target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..board.toolchain import ON_ARM
from ..kernels.cost.call_context import CallContext, CallContexts
from ..kernels.cost.estimate import AARCH64_PRICES, X86_64_PRICES, Costs
from ..kernels.cost.model import model_of, stand_in, target_named
from ..kernels.cost.stages import Counted, cuts, representative_calls, representative_steps
from ..network import Network, Region
from ..platform.target import Architecture, Family, Target
from ..program import Plan, Step, Sweep
from ..program.lower import BELOW, ROW, For, Node, OnDemand, is_one_turn, lower

ERROR_SHARE = 0.25  # of the estimate's error when two plans of one network are compared: they share the rest
UNKNOWN_PENALTY = 2.0  # penalty for layers without a timing sample


class Timing:
    """Estimates the cost of plans of a network on a target, or on a similar one if the target has no cost model.

    Multipliers are not searched for: layers computed by plain loops cost the same in every plan, and are underestimated
    so that differences look larger. With `vectors`, the vector cost of layers on a target that has vectors is added to
    the cost on the similar target; for the host these are this machine's.
    """

    def __init__(self, target: Target | str | None, vectors: bool = False) -> None:
        self.target = stand_in(target)
        self._vectors = None
        if vectors and target is not None and target_named(target).family is Family.SIMD:
            is_arm = ON_ARM or target_named(target).architecture is Architecture.AARCH64
            self._vectors = AARCH64_PRICES if is_arm else X86_64_PRICES
        self._costs: dict[int, Costs] = {}

    def within(self, instructions: float, extra: float) -> float:
        """The estimate up to which a plan is trusted to take at most the share `extra` more than these instructions."""
        return instructions * (1 + self.caution * extra)

    @property
    def caution(self) -> float:
        """The share of a limit on extra instructions that estimates may use, because of their error."""
        return 1 - ERROR_SHARE * model_of(self.target).error.total

    def costs(self, network: Network) -> Costs:
        key = id(network)  # valid as long as its costs are cached
        if key not in self._costs:
            self._costs[key] = Costs(network, self.target, vectors=self._vectors)
        return self._costs[key]

    def of(self, plan: Plan) -> float:
        """Instructions of one run."""
        return TimedPlan(plan, self.costs(plan.network)).total


@dataclass(frozen=True)
class TimedPlan:
    """A plan and the cost of its stages."""

    plan: Plan
    costs: Costs

    @cached_property
    def total(self) -> float:
        return sum(self.stages)

    @cached_property
    def stages(self) -> tuple[float, ...]:
        return tuple(self._stage(index) for index in range(len(self.plan.program.stages)))

    @cached_property
    def _contexts(self) -> CallContexts:
        return CallContexts(self.plan, self.costs.facts)

    @cached_property
    def _steps(self) -> tuple[Sequence[Counted], ...]:
        return tuple(list(representative_steps(self.plan, stage)) for stage in self.plan.program.stages)

    def _stage(self, index: int) -> float:
        summing = self.plan.program.partial(self.plan.program.stages[index])
        return self.costs.stage + self.steps(index) + sum(self.costs.finish(name) for name in summing)

    def pieces(self, index: int) -> tuple[float, ...]:
        """Instructions of a stage turn by turn (`Program.turns`), and then the rest; a single figure if it has one
        turn."""
        stage = self.plan.program.stages[index]
        pieces = list(self._pieces(index, lower(self.plan, stage), {}))
        rest = self.costs.stage + sum(self.costs.finish(name) for name in self.plan.program.partial(stage))
        return (*pieces, rest) if len(pieces) > 1 else (sum(pieces) + rest,)

    def _pieces(self, index: int, nodes: Sequence[Node], at: Mapping[str, int]) -> Iterator[float]:
        if is_one_turn(nodes):
            steps = representative_calls(nodes, at)
            yield sum(count * self._step(step, self._contexts.of(index, step)) for _, step, count in steps)
            return
        for node in nodes:
            match node:
                case For(name, times, body):
                    for turn in range(times):
                        yield from self._pieces(index, body, {**at, name: turn})
                case OnDemand(trace, bodies, band):
                    which = at[band] if band else 0
                    costs: list[list[float]] = []  # of each chain, turn by turn
                    for chain, (start, stop), body in zip(trace.chains, trace.bands[which], bodies, strict=True):
                        rows = cuts(stop, chain.rows, start)
                        costs.append(
                            [
                                cost
                                for (row, below), often in rows
                                for cost in [sum(self._pieces(index, body, {**at, ROW: row, BELOW: below}))] * often
                            ]
                        )
                    lows = [low for low, _ in trace.bands[which]]
                    for chain_at, done in trace.order(which):
                        yield costs[chain_at][done - lows[chain_at]]

    def context(self, index: int, step: Step) -> CallContext:
        return self._contexts.of(index, step)

    def steps(self, index: int, room: int | None = None) -> float:
        """Instructions of a stage's steps, with `room` bytes of scratch instead of what the plan leaves."""
        total = 0.0
        for step, count in self._steps[index]:
            context = self._contexts.of(index, step)
            total += count * self._step(step, context if room is None else replace(context, room=room))
        return total

    def _step(self, step: Step, context: CallContext) -> float:
        """Instructions of a step. Parts of an operator without samples are assumed to cost more."""
        cost = self.costs.step(step, context)
        if self.costs.is_known(step.layer):
            return cost
        whole = Region.whole(self.plan.network.tensors[self.plan.network.by_name[step.layer].output].shape)
        return cost if step.partial is None and step.region == whole else UNKNOWN_PENALTY * cost

    def without_overlap(self, index: int) -> float:
        """Instructions of a stage's steps if no output overlapped its input."""
        total = 0.0
        for step, count in self._steps[index]:
            context = replace(self._contexts.of(index, step), is_shared=False, sweep=Sweep.FORWARD)
            total += count * self._step(step, context)
        return total

    def is_shared(self, index: int) -> bool:
        """Whether some output of the stage may overlap its input."""
        contexts = [self._contexts.of(index, step) for step, _ in self._steps[index]]
        return any(context.is_shared for context in contexts)
