"""Estimates of the instructions that a plan takes on a core, from a model fitted to the virtual board's counts.

A step's instructions are a sum over what it does (see `cost_work`), each amount times a coefficient that was measured
for the target. Coefficients come with the error that they had when they were fitted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ..emit.target import TARGETS, Target
from ..errors import InputError
from ..network import Network, Region
from ..program import Plan, Step
from .cost_geometry import Setting
from .cost_settings import Settings
from .cost_work import Work, finish, general, work_of

Coefficients = Mapping[str, Mapping[str, float]]  # kind of work -> amount -> instructions for each


@dataclass(frozen=True, slots=True)
class Error:
    """How far estimates were from counts, relative to these, when the model was fitted."""

    median: float  # of single stages
    worst: float
    total: float  # worst of whole networks


@dataclass(frozen=True)
class Model:
    """What everything costs on a target."""

    target: str
    coefficients: Coefficients
    error: Error
    source: str

    def knows(self, work: Work) -> bool:
        return work.kind in self.coefficients

    def cost(self, work: Work) -> float:
        """Instructions; work of a kind that was never measured counts as other work on such elements."""
        found = self.coefficients.get(work.kind)
        if found is None:
            work = general(work)
            found = self.coefficients.get(work.kind) or self.coefficients["other"]
        return sum(found.get(key, 0.0) * amount for key, amount in work.amounts.items())


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
    costs = Costs(plan.network, target)
    settings = Settings(plan)
    stages, guessed = [], dict[str, None]()
    for index, stage in enumerate(plan.program.stages):
        total = costs.stage
        for step in plan.program.steps(stage):
            total += costs.step(step, settings.of(index, step))
            if not costs.is_known(step.layer):
                guessed[step.layer] = None
        total += sum(costs.finish(name) for name in stage.summing)
        stages.append(round(total))
    model = costs.model
    return Estimate(sum(stages), tuple(stages), model.error, model.source, tuple(guessed))


class Costs:
    """What parts of a network's layers cost on a target: quick, since what was asked before is remembered."""

    def __init__(self, network: Network, target: Target | str) -> None:
        self.network, self.target = network, _target(target)
        self.model = model_of(self.target)
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
            work = work_of(self.network, self.network.by_name[layer], region, self.target, setting, share)
            self._kinds[layer] = self.model.knows(work)
            self._known[key] = self.model.cost(work)
        return self._known[key]

    def finish(self, layer: str) -> float:
        """Instructions to zero a layer's running sums and to make them its output."""
        return self.model.cost(finish(self.network, self.network.by_name[layer]))

    def parts(self, layer: str, shape: tuple[int, ...], setting: Setting | None = None) -> float:
        """Instructions of a whole layer in parts of this shape at most, one call each.

        Only the first part along an axis, the last, and one between them are looked at: all others are like that one.
        """
        whole = self.network.tensors[self.network.by_name[layer].output].shape
        cuts = [_cuts(size, min(part, size)) for size, part in zip(whole, shape, strict=True)]
        total = 0.0
        stack: list[tuple[tuple[tuple[int, int], ...], int]] = [((), 1)]
        for axis in cuts:
            stack = [((*bounds, part), count * often) for bounds, count in stack for part, often in axis]
        for bounds, count in stack:
            total += count * self.region(layer, Region(bounds), setting)
        return total

    def is_known(self, layer: str) -> bool:
        """Whether the kind of work that a layer was last found to be has been measured."""
        return self._kinds.get(layer, True)


def step_cost(
    network: Network, layer: str, shape: tuple[int, ...], target: Target | str, setting: Setting | None = None
) -> float:
    """Instructions of a whole layer in calls that compute this much of its output each; see `Costs` for many."""
    return Costs(network, target).parts(layer, shape, setting)


def _cuts(size: int, part: int) -> list[tuple[tuple[int, int], int]]:
    """The parts of an axis that differ, each with how often it occurs."""
    count = -(-size // part)
    if count <= 3:
        return [((at, min(at + part, size)), 1) for at in range(0, size, part)]
    return [((0, part), 1), ((part, 2 * part), count - 2), (((count - 1) * part, size), 1)]


def modelled() -> tuple[str, ...]:
    """The names of targets with a model."""
    files = (resources.files(__package__) / "costs").iterdir()
    return tuple(sorted(file.name.removesuffix(".json") for file in files if file.name.endswith(".json")))


def model_of(target: Target | str) -> Model:
    """The model of a target; an error where nothing was ever counted."""
    name = _target(target).name
    if name not in modelled():
        raise InputError(
            f"there is no cost model for target '{name}': instructions are counted on the virtual board, which it does "
            f"not have. There is one for {', '.join(modelled())}"
        )
    return _read(name)


@cache
def _read(name: str) -> Model:
    data = json.loads((resources.files(__package__) / "costs" / f"{name}.json").read_text())
    return Model(name, data["instructions"], Error(**data["error"]), data["source"])


def _target(target: Target | str) -> Target:
    if isinstance(target, Target):
        return target
    if target not in TARGETS:
        raise InputError(f"unknown target '{target}'. There are: {', '.join(TARGETS)}")
    return TARGETS[target]
