"""Estimates of the instructions that a plan takes on a core, from a model fitted to the virtual board's counts.

A step's instructions are a sum over what it does (see `cost_work`), each amount times a coefficient that was measured
for the target. Coefficients come with the error that they had when they were fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from ..network import Network, Region
from ..platform.target import Target
from ..program import Plan, Step
from .cost_facts import Facts
from .cost_geometry import Setting
from .cost_model import Error, model_of, modelled, target_named
from .cost_settings import Settings
from .cost_stages import alike_steps, cuts
from .cost_work import finish, work_of

__all__ = ["Costs", "Estimate", "estimate", "model_of", "modelled", "step_cost"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Instructions that a plan is thought to take; an estimate, with the error that the model had when fitted."""

    instructions: int
    stages: tuple[int, ...]  # of each
    error: Error
    source: str  # what the model was fitted to
    guessed: tuple[str, ...]  # layers of a kind that was never measured

    def seconds(self, clock_hz: float, per_cycle: float = 1.0) -> float:
        """Time at a clock and a number of instructions per cycle, which is itself a guess about the core."""
        return self.instructions / (clock_hz * per_cycle)


def estimate(plan: Plan, target: Target | str) -> Estimate:
    """The instructions of one run of the plan on the target."""
    costs = Costs(plan.network, target, exact=True)
    settings = Settings(plan)
    stages, guessed = [], dict[str, None]()
    for index, stage in enumerate(plan.program.stages):
        total = costs.stage
        for step, count in alike_steps(plan.program, stage):
            total += count * costs.step(step, settings.of(index, step))
            if not costs.is_known(step.layer):
                guessed[step.layer] = None
        total += sum(costs.finish(name) for name in plan.program.partial(stage))
        stages.append(round(total))
    model = costs.model
    return Estimate(sum(stages), tuple(stages), model.error, model.source, tuple(guessed))


class Costs:
    """What parts of a network's layers cost on a target: quick, since what was asked before is remembered.

    Whether there are exact multipliers for a layer, or it is left to plain loops, takes a while to find out; without
    `exact`, all layers are taken to have them.
    """

    def __init__(self, network: Network, target: Target | str, *, exact: bool = False) -> None:
        self.network, self.facts = network, Facts(network, target_named(target), exact)
        self.model = model_of(self.facts.target)
        self.stage = self.model.coefficients.get("stage", {}).get("calls", 0.0)
        self._known: dict[tuple[str, Region, Region | None, Setting], float] = {}
        self._kinds: dict[str, bool] = {}

    def step(self, step: Step, setting: Setting | None = None) -> float:
        """Instructions of one step."""
        return self.region(step.layer, step.region, setting or Setting(sweep=step.sweep), step.share)

    def region(
        self, layer: str, region: Region, setting: Setting | None = None, share: Region | None = None
    ) -> float:
        """Instructions to compute a region of a layer's output, or to add a share to its running sums."""
        setting = setting or Setting()
        key = (layer, region, share, setting)
        if key not in self._known:
            work = work_of(self.facts, self.network.by_name[layer], region, setting, share)
            self._kinds[layer] = self.model.knows(work)
            self._known[key] = self.model.cost(work)
        return self._known[key]

    def finish(self, layer: str) -> float:
        """Instructions to zero a layer's running sums and to make them its output."""
        return self.model.cost(finish(self.facts, self.network.by_name[layer]))

    def parts(self, layer: str, shape: tuple[int, ...], setting: Setting | None = None) -> float:
        """Instructions of a whole layer in parts of this shape at most, one call each."""
        whole = self.network.tensors[self.network.by_name[layer].output].shape
        along = [cuts(size, min(part, size)) for size, part in zip(whole, shape, strict=True)]
        total = 0.0
        for chosen in product(*along):
            count = prod(often for _, often in chosen)
            total += count * self.region(layer, Region(tuple(part for part, _ in chosen)), setting)
        return total

    def is_known(self, layer: str) -> bool:
        """Whether the kind of work that a layer was last found to be has been measured."""
        return self._kinds.get(layer, True)


def step_cost(
    network: Network, layer: str, shape: tuple[int, ...], target: Target | str, setting: Setting | None = None
) -> float:
    """Instructions of a whole layer in calls that compute this much of its output each; see `Costs` for many."""
    return Costs(network, target).parts(layer, shape, setting)
