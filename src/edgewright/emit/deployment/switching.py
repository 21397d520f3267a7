"""The C library of scenarios that switch at run time: one arena, `NAME_request`, `NAME_step`, rules.

The plans, and when each step may run during a switch, have been judged before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...errors import InputError
from ...kernels.closed_plan import ClosedPlan
from ...kernels.printing.constants import C_TYPES, number
from ...kernels.printing.source import identifier
from ...network import Tensor
from ...platform.target import Target
from ...program.deployment import Deployment, Part
from ...program.switching import SwitchingRules, SwitchPolicy, SwitchSchedule
from ..header import STOPPED
from ..library import LibraryShare, SharedCode, drafted, with_patterns
from ..names import Parameters, local_names
from .c_deployment import CDeployment, checked_for_c
from .interface import described_end
from .library import DeploymentLibrary
from .names import LibraryNames, NamedPiece, check_names

MILLISECONDS = 1000  # in a second
MOST_DWELL = 2**31  # milliseconds: half of what the clock of the library counts


@dataclass(frozen=True)
class SwitchWriter:
    """Prints NAME.h, NAME.c and what the scenarios call at their switch points."""

    code: CDeployment
    schedule: SwitchSchedule
    rules: SwitchingRules

    @property
    def policy(self) -> SwitchPolicy:
        return self.schedule.policy

    @property
    def has_points(self) -> bool:
        """Whether anything happens while a frame is computed."""
        return self.policy is not SwitchPolicy.FINISH

    @property
    def is_counting(self) -> bool:
        """Whether the library counts the steps of frames under way."""
        return self.policy in (SwitchPolicy.OVERLAP, SwitchPolicy.OVERTAKE)

    @property
    def dwell(self) -> int:
        """Milliseconds."""
        return round(self.rules.dwell * MILLISECONDS)

    @property
    def is_kept(self) -> bool:
        """Whether scenarios read frames where the caller has them."""
        return any(
            name in self.code.deployment.plans[part.name].outside
            for part in self.code.parts
            for name in part.network.inputs
        )

    @property
    def _needed(self) -> list[str]:
        """The arrays that must not be NULL: inputs of frames that may begin again, and results that are looked at."""
        names, pulled = local_names(self._names), self._pulled(self.code.parts[0])
        is_again = self.policy is SwitchPolicy.ABORT or bool(self.rules.cascades)
        inputs = [parameter for name, parameter in names.inputs.items() if is_again and name not in pulled]
        return [*inputs, *(names.outputs.values() if self.rules.cascades else ())]

    @property
    def is_shared(self) -> bool:
        """Whether two threads, cores or interrupts change the same words."""
        return self.policy is SwitchPolicy.OVERLAP or bool(self.rules.rules)

    @property
    def words(self) -> Mapping[str, int]:
        """Words of RAM beside the arena: how many of each kind."""
        is_overlap, is_overtake = (self.policy is one for one in (SwitchPolicy.OVERLAP, SwitchPolicy.OVERTAKE))
        return {
            "requested": 1,
            "current": 1,
            "running": 1,
            "rules": 2 * bool(self.rules.rules),
            "clock": 3 * (self.dwell > 0),
            "done": len(self.code.parts) * self.is_counting,
            "inside": 2 * is_overtake,
            "before": 3 * is_overlap,
        }

    def share(self, part: Part, shared: SharedCode) -> LibraryShare:
        """How the scenario's own library takes part."""
        own, stages = self.code.index[part.name], len(self.schedule.steps[part.name])
        rows = frozenset(n for n, steps in enumerate(self.schedule.steps[part.name]) if steps > 1)
        if self.policy is SwitchPolicy.ABORT:
            stop = f"{self.code.name}_stop()"
            probe = f"(stage) < {stages} && {stop}"
            return LibraryShare(shared, probe, row_probe=stop, rows=rows, may_stop=True, step_probe=stop)
        if self.is_counting:
            stage, row = f"{self.code.name}_at({own}, stage)", f"{self.code.name}_at_row({own})"
            step = f"{self.code.name}_at(own, stage)"
            return LibraryShare(shared, stage, row_probe=row, rows=rows, number=own, step_probe=step)
        return LibraryShare(shared)

    def header(self) -> str:
        first = self.code.parts[0]
        return self.code.render(
            "switch.h",
            **self.facts,
            headers=[f"{self.code.prefix(part)}.h" for part in self.code.parts],
            sizes={self.code.size_macro(memory): layout.bytes for memory, layout in self.code.arenas.items()},
            ends=[
                f"{way} {parameter}: {described_end(self.code.references[first.name], tensor)}."
                for way, group in (("input", self._names.inputs), ("output", self._names.outputs))
                for tensor, parameter in group.items()
            ],
            pulls=[
                (f"{self.code.name}_pull_{parameter}", C_TYPES[self._tensor(first, name).dtype.value])
                for name, parameter in self._names.inputs.items()
                if name in self._pulled(first)
            ],
            parameters=self._signature(is_public=True),
            locks="\n".join(self.code.lock_lines[0]),
        )

    def source(self) -> str:
        code, first_steps = self.code, [self._first_steps(part) for part in self.code.parts]
        different_steps = list(dict.fromkeys(first_steps))
        return code.render(
            "switch.c",
            **self.facts,
            parameters=self._signature(is_public=False),
            arguments=", ".join(self._argument_names),
            locks="\n".join(code.lock_lines[1]),
            arenas=[
                (section, code.arena(memory), code.size_macro(memory)) for memory, section in code.sections.items()
            ],
            calls=[self._call(part) for part in code.parts],
            rules=[self._rule(number) for number in range(len(self.rules.rules))],
            cascades=list(self._cascades()),
            first_steps=different_steps,
            first_names=[f"first_{different_steps.index(counts)}" for counts in first_steps],
            first_type=unsigned(sum(steps) for steps in self.schedule.steps.values()),
            overtakers=[", ".join(map(str, self._overtakers(part))) for part in code.parts],
            overtaker_type=unsigned(n for part in code.parts for n in self._overtakers(part)),
            needs={
                (code.index[old], code.index[new]): ", ".join(map(str, counts))
                for (old, new), counts in self.schedule.needs.items()
            },
        )

    def probe_header(self) -> str:
        return self.code.render("switch_probe.h", policy=self.policy.value)

    @property
    def facts(self) -> Mapping[str, object]:
        names = [(identifier(part.name).upper(), part.name) for part in self.code.parts]
        return {
            "policy": self.policy.value,
            "scenarios": names,
            "signals": [(identifier(signal).upper(), signal) for signal in self.rules.signals],
            "start": self.code.index[self.rules.start],
            "fallback": self.code.index[self.rules.fallback],
            "dwell": self.dwell,
            "has_points": self.has_points,
            "has_rules": bool(self.rules.rules),
            "has_cascades": bool(self.rules.cascades),
            "output": next(iter(local_names(self._names).outputs.values())),
            "is_kept": self.is_kept,
            "needed": self._needed,
            "is_shared": self.is_shared,
            "stopped": STOPPED,
            "count": len(self.code.parts),
        }

    @property
    def _names(self) -> Parameters:
        return self.code.parameters(self.code.parts[0])

    def _tensor(self, part: Part, name: str) -> Tensor:
        return part.network.tensors[name]

    def _pulled(self, part: Part) -> tuple[str, ...]:
        return self.code.deployment.plans[part.name].pulled

    def _signature(self, is_public: bool) -> str:
        """The parameters of `NAME_step`: those of the first scenario, since all scenarios have the same."""
        part, names = self.code.parts[0], self._names if is_public else local_names(self._names)
        parts = []
        for name, parameter in names.inputs.items():
            ctype = C_TYPES[self._tensor(part, name).dtype.value]
            if name in self._pulled(part):
                parts += [f"{self.code.name}_pull_{self._names.inputs[name]} {parameter}", f"void *{parameter}_context"]
            else:
                parts.append(f"const {ctype} *{parameter}")
        parts += [f"{C_TYPES[self._tensor(part, name).dtype.value]} *{p}" for name, p in names.outputs.items()]
        return ", ".join(parts)

    @property
    def _argument_names(self) -> Iterator[str]:
        names, pulled = local_names(self._names), self._pulled(self.code.parts[0])
        for name, parameter in names.inputs.items():
            yield from (parameter, f"{parameter}_context") if name in pulled else (parameter,)
        yield from names.outputs.values()

    def _call(self, part: Part) -> Mapping[str, object]:
        """C of a frame of the scenario, and whether the call says how it went."""
        plan = self.code.deployment.plans[part.name]
        arenas = (self.code.arena(memory) for memory in plan.arenas)
        text = f"{self.code.prefix(part)}_run_in({', '.join([*arenas, *self._argument_names])})"
        return {"text": text, "returns": bool(plan.pulled) or self.policy is SwitchPolicy.ABORT}

    def _rule(self, index: int) -> Mapping[str, object]:
        rule = self.rules.rules[index]
        sides = ("<", ">") if rule.is_below else (">", "<")
        return {
            "signal": self.rules.signals.index(rule.signal),
            "begins": f"value {sides[0]} {number(rule.threshold)}",
            "ends": f"value {sides[1]} {number(rule.until)}",
            "request": self.code.index[rule.request],
        }

    def _cascades(self) -> Iterator[Mapping[str, object]]:
        """For each cascade rule: the scenario, the one that it hands frames on to, and C of whether it does."""
        output = next(iter(local_names(self._names).outputs.values()))
        for rule in self.rules.cascades:
            part = self.code.deployment.part_named[rule.scenario]
            tensor = self._tensor(part, part.network.outputs[0])
            if tensor.dtype.is_float:
                test = f"!(margin({output}) >= {number(rule.margin_below)})"
            else:
                test = f"margin({output}) < {margin_steps(tensor, rule.margin_below)}"
            yield {
                "scenario": self.code.index[rule.scenario],
                "request": self.code.index[rule.request],
                "test": test,
                "ctype": C_TYPES[tensor.dtype.value],
                "type": "float" if tensor.dtype.is_float else "int32_t",
                "size": tensor.size,
            }

    def _first_steps(self, part: Part) -> str:
        """The number of steps before each stage, and of all."""
        counts, total = [], 0
        for steps in (*self.schedule.steps[part.name], 0):
            counts.append(total)
            total += steps
        return ", ".join(map(str, counts))

    def _overtakers(self, part: Part) -> list[int]:
        """Runs of ended steps: one past the last, and bits of the scenarios that may overtake there."""
        found: list[int] = []
        for ended, names in enumerate(self.schedule.overtakers.get(part.name, ())):
            bits = self.code.bits(names)
            if found and found[-1] == bits:
                found[-2] = ended + 1
            else:
                found += [ended + 1, bits]
        return found


def unsigned(numbers: Iterable[int]) -> str:
    """The narrowest unsigned type of C for these."""
    most = max(numbers, default=0)
    return next(f"uint{bits}_t" for bits in (8, 16, 32) if most < 1 << bits)


def margin_steps(tensor: Tensor, margin: float) -> int:
    """The least difference of two stored integers that is this margin or more in real values."""
    assert tensor.quant is not None, "scores are real values"
    scale = tensor.quant.scale[0]
    steps = max(0, int(margin / scale) - 2)
    while steps * scale < margin:
        steps += 1
    return steps


def emit_switching(
    deployment: Deployment, target: Target, names: LibraryNames, schedule: SwitchSchedule, rules: SwitchingRules
) -> DeploymentLibrary:
    """The library of these scenarios, whose plans have kernels selected; schedule and deployment were judged."""
    code = checked_for_c(CDeployment(deployment, names))
    writer = SwitchWriter(code, schedule, rules)
    _check(writer)
    shared = SharedCode.of_networks(code.name, [part.network for part in code.parts])
    drafts = []
    for part in code.parts:
        closed = ClosedPlan.of(code.deployment.plans[part.name], target, part.network, nesting=shared.nesting)
        drafts.append(drafted(closed, code.prefix(part), writer.share(part, shared)))
    emitted, patterns = with_patterns(drafts, shared)
    libraries = {part.name: library for part, library in zip(code.parts, emitted, strict=True)}
    files: dict[str, str | bytes] = {f"{code.name}.h": writer.header(), f"{code.name}.c": writer.source()}
    if writer.has_points:
        files[f"{code.name}_probe.h"] = writer.probe_header()
    for library in libraries.values():
        files |= library.files
    files |= patterns.files() | shared.files()
    pieces = [NamedPiece(names.key(""), str(files[f"{code.name}.h"]))]
    pieces += [
        NamedPiece(names.key(name), str(one.files[f"{one.name}.h"]), str(one.files[f"{one.name}.c"]))
        for name, one in libraries.items()
    ]
    check_names([*pieces, NamedPiece(names.key(""), "", str(files[f"{code.name}.c"]))])
    state = 4 * sum(writer.words.values())
    return DeploymentLibrary(code, target, libraries, files, shared.constants.bytes, state)


def _check(writer: SwitchWriter) -> None:
    """Refuses what the C has no means for."""
    code, policy = writer.code, writer.policy
    constants = {identifier(part.name).upper() for part in code.parts}
    if len(constants) < len(code.parts):
        raise InputError("two scenarios have names that are the same in capitals; give one of them another name")
    if writer.rules.cascades and writer.is_counting:
        raise InputError(
            f'a confidence cascade computes a frame again, and policy "{policy.value}" lets another frame use the '
            'memory meanwhile; choose "finish" or "abort", or leave the cascade out'
        )
    if writer.dwell >= MOST_DWELL:
        raise InputError(f"adapt.dwell is {writer.rules.dwell:g} s; the C library counts at most 24 days")
    pulling = {part.name for part in code.parts if writer.code.deployment.plans[part.name].pulled}
    if pulling and len(pulling) < len(code.parts):
        raise InputError(f"some scenarios pull rows of their input ({', '.join(sorted(pulling))}), and others do not")
