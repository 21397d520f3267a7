"""Scenarios as one deployment: their plans with kernels, a layout for the policy, and the C library that switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, combinations

from .. import text
from ..application.preemption_points import RunPieces, with_turns
from ..emit.deployment import DeploymentLibrary, LibraryNames
from ..emit.deployment.switching import SwitchWriter, emit_switching
from ..emit.names import safe_prefix
from ..errors import Infeasible, InputError
from ..fusion.timing import TimedPlan, Timing
from ..kernels.cost.estimate import estimate, modelled
from ..kernels.select import select
from ..kernels.sites import NetworkFacts
from ..network import Network, Region
from ..network.parts import TensorRegion
from ..platform.target import Target
from ..program import Plan
from ..program.deployment import OUTSIDE, ArenaLayout, Deployment, Fifo, Part, Reader, Relation, RelationKind, Worker
from ..program.deployment_check import checked_deployment
from ..program.nesting import nesting_of
from ..program.options import Options
from ..program.switching import SwitchPolicy, SwitchSchedule
from .alike import common_turns, in_groups_of
from .front import SwitchFront, SwitchLayout
from .rules import switching_rules
from .scenarios import AdaptiveApplication, AppScenario, instruction_time, scenario_plan, scenario_request
from .switch_conflicts import ScenarioPlan

DEVICE = "board"
PIECE = 0.02  # of a frame: longest estimated wait for a switch point; smaller pieces cost instructions

MOST_LARGER = 1.25  # memory of a scenario in the groups of the largest one, relative to its own plan
MOST_SLOWER = 1.1  # estimated frame time with kernels that read a larger scenario's weights, relative to the fastest


@dataclass(frozen=True)
class SwitchingApplication:
    """An application planned for run-time switching under one policy."""

    application: AdaptiveApplication
    policy: SwitchPolicy

    @cached_property
    def plans(self) -> tuple[ScenarioPlan, ...]:
        """The plan of each scenario, with kernels selected; by rows if frames are interrupted, so that waits are
        short."""
        found: dict[str, ScenarioPlan] = {}
        for name, plan in self._divided(self._grouped()).items():
            scenario = self.application.scenario(name)
            found[name] = self._selected(scenario, plan, [one.plan for one in found.values()])
        return tuple(found[one.name] for one in self.application.scenarios)

    @cached_property
    def _are_slices(self) -> bool:
        return nesting_of([one.network for one in self.application.scenarios]) is not None

    def _grouped(self) -> Mapping[str, Plan]:
        """The plans of all scenarios, the largest network first; slices of it run in its fusion groups.

        All scenarios may use the memory of the largest one, unless frames of several overlap: then they take little
        more than their own plans.
        """
        application, found = self.application, dict[str, Plan]()
        is_alone = self.policy in (SwitchPolicy.FINISH, SwitchPolicy.ABORT)
        for scenario in sorted(application.scenarios, key=lambda one: -one.network.weight_bytes):
            self._check(scenario)
            own = scenario_plan(application, scenario)
            if self._are_slices:
                largest = next(iter(found.values()), own)
                most = max(own.peak_bytes, largest.peak_bytes) if is_alone else round(MOST_LARGER * own.peak_bytes)
                request = scenario_request(application, scenario)
                own = in_groups_of(largest, own, scenario.network, request, most, application.board, application.target)
            found[scenario.name] = own
        return found

    def _divided(self, plans: Mapping[str, Plan]) -> Mapping[str, Plan]:
        """The plans with long layers in pieces if frames are interrupted; slices of a layer have the same pieces."""
        if self.policy is SwitchPolicy.FINISH:
            return plans
        target, every = self.application.target, list(plans.values())
        common = common_turns(every, target, PIECE) if self._are_slices else None
        return {
            name: with_turns(plan, common_turns([plan], target, PIECE) if common is None else common)
            for name, plan in plans.items()
        }

    def _check(self, scenario: AppScenario) -> None:
        if self.application.file.network_of(scenario.name).partitions:
            raise InputError(
                f"scenario '{scenario.name}' has partitions, and the code that switches runs a scenario on one "
                "processor; leave partitions out"
            )

    def _selected(self, scenario: AppScenario, plan: Plan, larger: Sequence[Plan]) -> ScenarioPlan:
        """The plan with kernels; layers that are slices of larger plans' layers take the kernels that read those
        weights."""
        target = self.application.target
        costs = Timing(target, vectors=True).costs(plan.network)
        facts = NetworkFacts(plan.network, target, Options())
        fast, lean = select(plan, facts), select(plan, facts, _kernels_of_wholes(plan, larger))
        plan = lean if _instructions(lean, target) <= MOST_SLOWER * _instructions(fast, target) else fast
        time = instruction_time(self.application.board, plan.network)
        pieces = RunPieces.of(TimedPlan(plan, costs), time)
        return ScenarioPlan(scenario.name, plan, self._as_measured(scenario, plan, pieces), facts)

    def _as_measured(self, scenario: AppScenario, plan: Plan, pieces: RunPieces) -> RunPieces:
        """The pieces with the file's times or instructions if given; estimates distribute these over the pieces."""
        instructions = self.application.file.network_of(scenario.name).instructions
        if scenario.is_estimated and not instructions:
            return pieces
        if scenario.is_estimated:
            assert instructions
            time = instruction_time(self.application.board, plan.network)
            return _scaled(pieces, [instructions * time / (pieces.total or 1.0)] * len(pieces.stages))
        given = [sum(scenario.times.get(name, 0.0) for name in stage.layers) for stage in plan.program.stages]
        if not sum(given):  # passes have renamed all layers
            return _scaled(pieces, [scenario.frame_time / (pieces.total or 1.0)] * len(pieces.stages))
        total = scenario.frame_time / sum(given)  # includes times of inputs, outputs and fused layers
        return _scaled(
            pieces, [time * total / (sum(own) or 1.0) for time, own in zip(given, pieces.stages, strict=True)]
        )

    @cached_property
    def front(self) -> SwitchFront:
        return SwitchFront(self.plans, self.policy, self.application.file.adapt.processors)

    @cached_property
    def layouts(self) -> tuple[SwitchLayout, ...]:
        """The front of arena size against the worst delay, the largest arena first."""
        return self.front.points()

    @property
    def ram(self) -> int | None:
        """Bytes for the arena: the limit of the file, or the largest memory of the board."""
        limit, board = self.application.file.limits.ram, self.application.board
        return limit if limit is not None else max(m.usable for m in board.ram) if board and board.ram else None

    @cached_property
    def layout(self) -> SwitchLayout:
        """The smallest arena that keeps the limit on delays; without a limit, one that realises half of the possible
        gain.

        Only layouts needed for this decision are made. Raises an error if none fits the memory or keeps the limit.
        """
        front, ram, delay = self.front, self.ram, self.application.file.adapt.delay
        least = front.slackest
        if ram is not None and least.arena_bytes > ram:
            raise Infeasible(
                f"does not fit: the scenarios need {text.size(least.arena_bytes)} of RAM at least, and there are "
                f'{text.size(ram)}; leave a scenario out, or plan it for less with minimise = "ram"'
            )
        allowed = (least.worst_delay + front.fastest_within(ram).worst_delay) / 2 if delay is None else delay
        found = front.within(allowed)
        if found is not None and (ram is None or found.arena_bytes <= ram):
            return found
        fitting = [one for one in self.layouts if ram is None or one.arena_bytes <= ram] or [least]
        fast = [one for one in fitting if one.worst_delay <= allowed]
        if not fast:
            best = min(one.worst_delay for one in fitting)
            raise Infeasible(
                f"adapt.delay is {text.duration(allowed)}, and the worst switch takes {text.duration(best)} "
                f'under policy "{self.policy.value}" in this memory; allow that, or choose another policy'
            )
        return min(fast, key=lambda one: one.arena_bytes)

    def writer(self, library: DeploymentLibrary, layout: SwitchLayout) -> SwitchWriter:
        """The printer of a layout's library."""
        return SwitchWriter(library.code, switch_schedule(layout), switching_rules(self.application.file))

    def library(self, layout: SwitchLayout) -> DeploymentLibrary:
        """The C library of a layout, which has been checked."""
        file = self.application.file
        keys = {one.name: f"scenario[{n}].name" for n, one in enumerate(file.scenarios)}
        names = LibraryNames(file.prefix, {name: safe_prefix(name) for name in keys}, {"": "name", **keys})
        deployment = switching_deployment(self.application, layout)
        rules = switching_rules(file)
        return emit_switching(deployment, self.application.target, names, switch_schedule(layout), rules)


def _instructions(plan: Plan, target: Target) -> int:
    """Estimated instructions of a frame; 0 for all plans if the target has no model."""
    return estimate(plan, target).instructions if target.name in modelled() else 0


def _kernels_of_wholes(plan: Plan, larger: Sequence[Plan]) -> Mapping[str, str]:
    """For layers that are slices of layers in larger plans, the kernels of those."""
    nesting = nesting_of([plan.network, *(one.network for one in larger)])
    found: dict[str, str] = {}
    for layer in plan.network.layers if nesting is not None else ():
        weights = layer.inputs[1] if len(layer.inputs) > 1 else ""
        whole = (
            nesting.whole(plan.network.constants[weights]) if nesting and weights in plan.network.constants else None
        )
        if whole is not None:
            stages = next(one.selections for one in larger if one.network is whole.network)
            found[layer.name] = next(own.kernel for stage in stages for own in stage if own.layer == whole.layer.name)
    return found


def _scaled(pieces: RunPieces, factors: Sequence[float]) -> RunPieces:
    return RunPieces(
        tuple(tuple(piece * by for piece in stage) for by, stage in zip(factors, pieces.stages, strict=True))
    )


def with_policy(application: AdaptiveApplication, policy: SwitchPolicy) -> AdaptiveApplication:
    """The application with another policy; an error if that cannot be carried out."""
    adapt = application.file.adapt
    if policy is SwitchPolicy.OVERLAP and adapt.processors == 1:
        raise InputError(
            'policy "overlap" takes two processors, and adapt.processors is 1, where no step of the new scenario can '
            "run beside one of the old; choose finish, overtake or abort, or set processors = 2"
        )
    return replace(
        application, file=application.file.model_copy(update={"adapt": adapt.model_copy(update={"policy": policy})})
    )


def switching_deployment(application: AdaptiveApplication, layout: SwitchLayout) -> Deployment:
    """The scenarios as mutually exclusive parts, except for what the layout's transitions allow; checked."""
    parts, fifos = [], []
    for one in application.scenarios:
        part = _part(one.name, one.network, layout)
        parts.append(part)
        fifos += [Fifo(what, OUTSIDE, (Reader(one.name),), 1) for what in part.inputs.values()]
        fifos += [Fifo(what, one.name, (Reader(OUTSIDE),), 1) for what in part.outputs.values()]
    names = [part.name for part in parts]
    (memory,) = {memory for plan in layout.plans.values() for memory in plan.arenas}
    deployment = Deployment(
        tuple(replace(one.network, name=one.name) for one in application.scenarios),
        tuple(parts),
        tuple(Worker(name, DEVICE, application.target.name, (), (name,)) for name in names),
        tuple(fifos),
        {(DEVICE, memory): ArenaLayout(layout.arena_bytes, dict.fromkeys(names, 0))},
        relations=tuple(Relation(RelationKind.EXCLUSIVE, pair) for pair in combinations(names, 2)),
    )
    return checked_deployment(deployment)


def _part(name: str, network: Network, layout: SwitchLayout) -> Part:
    plan = layout.plans[name]
    own = replace(plan.network, constants={**plan.network.constants, **network.constants})
    inputs, outputs = (
        {x: TensorRegion(name, x, Region.whole(network.tensors[x].shape)) for x in dict.fromkeys(ends)}
        for ends in (network.inputs, network.outputs)
    )
    return Part(name, own, plan, inputs, outputs)


def switch_schedule(layout: SwitchLayout) -> SwitchSchedule:
    """When steps may run during a switch, in the form that the C code uses."""
    steps = {name: _steps_of_stages(layout, name) for name in layout.scenarios}
    needs: dict[tuple[str, str], tuple[int, ...]] = {}
    overtakers: dict[str, tuple[frozenset[str], ...]] = {}
    if layout.policy is SwitchPolicy.OVERLAP:
        for pair, one in layout.transitions.items():  # a step may also wait for what earlier steps needed
            needs[pair] = tuple(accumulate((max(counts) for counts in one.needs), max))
    if layout.policy is SwitchPolicy.OVERTAKE:
        for old, counts in steps.items():
            points = {new: {*one.points} for (mine, new), one in layout.transitions.items() if mine == old}
            overtakers[old] = tuple(
                frozenset(new for new, own in points.items() if 0 < ended < sum(counts) and ended in own)
                for ended in range(sum(counts) + 1)
            )
    return SwitchSchedule(layout.policy, steps, needs, overtakers)


def _steps_of_stages(layout: SwitchLayout, name: str) -> tuple[int, ...]:
    """The number of steps of each stage."""
    planned = layout.scenarios[name]
    counts = Counter(stage for _, stage, _ in planned.labels)
    return tuple(counts.get(stage, 1) for stage in range(len(planned.parts[0].plan.program.stages)))
