"""The adaptive part of an application's file: scenarios, policy, rules."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from ..application.description import ApplicationFile, AppNetworkEntry, MemberName, NetworkName
from ..errors import InputError
from ..platform.schema import Entry, Seconds, SecondsOrZero, Watts, read_toml
from ..program.deployment import RelationKind
from ..program.switching import SwitchPolicy

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Label = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Time = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]


class LayerAttribute(Enum):
    """An attribute of a layer that may differ between layers that share one (M table 2.1).

    X and Y, the data of its edges, follow from I and O.
    """

    TYPE = "type"
    OPERATOR = "op"
    INPUTS = "I"
    OUTPUTS = "O"
    WINDOW = "Theta"
    KERNEL_HEIGHT = "kh"
    KERNEL_WIDTH = "kw"
    STRIDE = "s"
    PADDING = "pad"
    PARAMETERS = "par"


PAPER_SHARE = (LayerAttribute.INPUTS, LayerAttribute.OUTPUTS, LayerAttribute.PARAMETERS)  # A of M 5.7


class AdaptEntry(Entry):
    """How the application switches."""

    policy: SwitchPolicy = Field(
        default=SwitchPolicy.FINISH, description="one of " + ", ".join(policy.value for policy in SwitchPolicy)
    )
    start: NetworkName | None = Field(
        default=None, description="the first scenario; the first of the file when left out"
    )
    fallback: NetworkName | None = Field(
        default=None, description="the scenario while no rule requests one; that of start when left out"
    )
    processors: Annotated[StrictInt, Field(ge=1, le=64)] = Field(
        default=1, description="a number from 1 to 64: processors that run scenarios"
    )
    delay: Seconds | None = Field(default=None, description='the longest switching delay, such as "20 ms"')
    dwell: SecondsOrZero = Field(default=0.0, description='the least time between two switches, such as "5 s", or 0')
    share: tuple[LayerAttribute, ...] = Field(
        default=PAPER_SHARE,
        max_length=len(LayerAttribute),
        description="a list of attributes out of " + ", ".join(one.value for one in LayerAttribute),
    )


class ScenarioEntry(Entry):
    """A scenario: the network that computes a frame, and its figures."""

    name: NetworkName = Field(description="a name of letters, digits and _ that begins with a letter")
    network: NetworkName | None = Field(default=None, description="a network's name; the scenario's when left out")
    accuracy: Annotated[float, Field(strict=True, ge=0, le=1)] | None = Field(
        default=None, description="a share from 0 to 1, such as 0.82"
    )
    power: Watts | None = Field(default=None, description='a power, such as "11.2 W"')
    labels: tuple[Label, ...] = Field(
        default=(), max_length=100000, description="a list of names, one for each class, the same in all scenarios"
    )
    layer_times: tuple[Time, ...] = Field(
        default=(), max_length=10000, description="a list of seconds, one for each layer in the order of execution"
    )

    @property
    def network_name(self) -> str:
        return self.network or self.name


class RuleEntry(Entry):
    """A scenario and when it is requested: while a signal is past a threshold, or after an uncertain result."""

    signal: NetworkName | None = Field(default=None, description="the name of a number that the firmware sets")
    below: Number | None = Field(default=None, description="a number: the rule is active from when the signal is below")
    above: Number | None = Field(default=None, description="a number: the rule is active from when the signal is above")
    until: Number | None = Field(
        default=None, description="a number on the other side of the threshold, at which the rule ends to be active"
    )
    scenario: NetworkName | None = Field(default=None, description="a scenario, whose unsure results another improves")
    margin_below: Annotated[Number, Field(gt=0)] | None = Field(
        default=None, description="a positive number: what the best class leads the second by in a sure result"
    )
    request: MemberName = Field(description="the scenario to run")

    @property
    def is_cascade(self) -> bool:
        return self.scenario is not None

    @property
    def threshold(self) -> float | None:
        """The signal value at which the rule becomes active."""
        return self.above if self.below is None else self.below

    @property
    def end(self) -> float | None:
        """The signal value at which the rule becomes inactive."""
        return self.threshold if self.until is None else self.until


class AdaptiveFile(ApplicationFile):
    """The whole file. Without scenarios it is an ordinary application."""

    adapt: AdaptEntry = Field(default=AdaptEntry(), description="a table headed [adapt]")
    scenarios: tuple[ScenarioEntry, ...] = Field(
        default=(), alias="scenario", max_length=64, description="a table headed [[scenario]], two or more"
    )
    rules: tuple[RuleEntry, ...] = Field(
        default=(), alias="rule", max_length=64, description="a table headed [[rule]], or none"
    )

    @model_validator(mode="after")
    def _keeps_the_adaptive_rules(self) -> Self:
        for key, problem in _problems(self):
            raise PydanticCustomError("rule", "{problem}", {"key": key, "problem": problem})
        return self

    @property
    def start(self) -> str:
        """The scenario that runs first."""
        return self.adapt.start or self.scenarios[0].name

    @property
    def fallback(self) -> str:
        """The scenario that runs while no rule requests one."""
        return self.adapt.fallback or self.start

    @property
    def scenario_names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.scenarios)

    def network_of(self, scenario: str) -> AppNetworkEntry:
        """The network of a scenario."""
        return self.network(self.scenarios[self.scenario_names.index(scenario)].network_name)


def parse_share(value: str) -> tuple[LayerAttribute, ...]:
    """The set A in a text such as "I,O,par"; empty for an empty text."""
    known = {one.value: one for one in LayerAttribute}
    names = [name.strip() for name in value.split(",")] if value.strip() else []
    for name in names:
        if name not in known:
            raise InputError(f'"{name}" is no attribute of a layer; expected some of {",".join(known)}')
    return tuple(dict.fromkeys(known[name] for name in names))


def read_adaptive(path: Path) -> AdaptiveFile:
    """Reads the file of an application with scenarios; an error names the file, the key and what was expected."""
    file = read_toml(path, AdaptiveFile, "an application with scenarios")
    if not file.scenarios:
        raise InputError(
            f"{path}: scenario is missing; expected two or more tables headed [[scenario]], or plan the networks "
            f"without scenarios: edgewright app {path}"
        )
    return file


def _problems(file: AdaptiveFile) -> Iterator[tuple[str, str]]:
    """Rules that involve several fields: (key, problem)."""
    if not file.scenarios:
        for key in ("adapt", "rules"):
            if key in file.model_fields_set:
                yield key.removesuffix("s"), "is given, and no scenario; expected two or more [[scenario]] beside it"
        return
    yield from _scenario_problems(file)
    yield from _policy_problems(file)
    for index, rule in enumerate(file.rules):
        yield from _rule_problems(file, f"rule[{index}]", rule)
    yield from _conflicting_rules(file)
    yield from _cascade_circles(file)


def _scenario_problems(file: AdaptiveFile) -> Iterator[tuple[str, str]]:
    names, networks = file.scenario_names, tuple(one.name for one in file.networks)
    if len(names) == 1:
        yield "scenario", f'is "{names[0]}" alone, so there is nothing to switch to; expected two [[scenario]] or more'
    for index, one in enumerate(file.scenarios):
        key = f"scenario[{index}]"
        if one.name in names[:index]:
            yield f"{key}.name", f'is "{one.name}", which is taken; expected a unique name'
        if one.network_name not in networks:
            where = f"{key}.network" if one.network else f"{key}.name"
            yield where, f'is "{one.network_name}", which no network has; expected one of {", ".join(networks)}'
        if one.layer_times and not any(one.layer_times):
            yield f"{key}.layer_times", "has no time above 0; expected the seconds that layers take"
    yield from _label_problems(file)
    used = {one.network_name for one in file.scenarios}
    for index, name in enumerate(networks):
        if name not in used:
            yield (
                f"network[{index}].name",
                f'is "{name}", which no scenario runs; expected a scenario with network = "{name}", or no such network',
            )
    for index, relation in enumerate(file.relations):
        owners = {file.network(name).name for name in relation.networks}
        if len(owners) > 1 and relation.kind is not RelationKind.EXCLUSIVE:
            yield (
                f"relation[{index}].kind",
                f"makes {' and '.join(sorted(owners))} {relation.kind.value}, and scenarios run one at a time; "
                "expected no relation between them",
            )


def _label_problems(file: AdaptiveFile) -> Iterator[tuple[str, str]]:
    """Scenarios whose classes, or their order, differ from the first one with labels."""
    first = next((one for one in file.scenarios if one.labels), None)
    for index, one in enumerate(file.scenarios):
        if first is None or not one.labels or one.labels == first.labels:
            continue
        pairs = zip_longest(first.labels, one.labels)
        at, (expected, label) = next((at, pair) for at, pair in enumerate(pairs) if pair[0] != pair[1])
        has, wants = (f'"{each}"' if each else "no label" for each in (label, expected))
        yield (
            f"scenario[{index}].labels",
            f"has {has} for class {at}, and scenario '{first.name}' has {wants}; expected the same labels in the same "
            "order, since any scenario may compute a result",
        )


def _policy_problems(file: AdaptiveFile) -> Iterator[tuple[str, str]]:
    adapt, names = file.adapt, file.scenario_names
    for key, name in (("start", adapt.start), ("fallback", adapt.fallback)):
        if name is not None and name not in names:
            yield f"adapt.{key}", f'is "{name}", which no scenario has; expected one of {", ".join(names)}'
    if adapt.policy is SwitchPolicy.OVERLAP and adapt.processors == 1:
        yield (
            "adapt.policy",
            'is "overlap" on one processor, where no step of the new scenario can run beside one of the old; expected '
            "finish, overtake or abort, or processors = 2",
        )
    if len(set(adapt.share)) < len(adapt.share):
        yield "adapt.share", "names an attribute twice; expected each at most once"


def _rule_problems(file: AdaptiveFile, key: str, rule: RuleEntry) -> Iterator[tuple[str, str]]:
    """The problems of one rule by itself."""
    names = file.scenario_names
    for field, name in (("request", rule.request), ("scenario", rule.scenario)):
        if name is not None and name not in names:
            yield f"{key}.{field}", f'is "{name}", which no scenario has; expected one of {", ".join(names)}'
    if rule.is_cascade:
        strangers = [name for name in ("signal", "below", "above", "until") if getattr(rule, name) is not None]
        if strangers:
            yield f"{key}.{strangers[0]}", "is for rules on a signal; expected none beside scenario"
        if rule.margin_below is None:
            yield f"{key}.margin_below", "is missing; expected what the best class leads the second by, such as 0.2"
        if rule.request == rule.scenario:
            yield f"{key}.request", f'is "{rule.request}", whose results it is about; expected another scenario'
        return
    if rule.signal is None:
        yield f"{key}.signal", "is missing; expected a signal such as battery, or scenario for a confidence cascade"
    if rule.margin_below is not None:
        yield f"{key}.margin_below", "is for confidence cascades; expected scenario beside it, and no signal"
    if (rule.below is None) == (rule.above is None):
        said = "is missing" if rule.below is None else "contradicts above"
        yield f"{key}.below", f"{said}; expected one threshold, below or above"
    if rule.until is None or rule.threshold is None:
        return
    if rule.below is not None and rule.until < rule.below:
        yield (
            f"{key}.until",
            f"is {rule.until:g}, less than below, {rule.below:g}, so that the rule ends before it begins; expected "
            "at least that",
        )
    if rule.above is not None and rule.until > rule.above:
        yield (
            f"{key}.until",
            f"is {rule.until:g}, more than above, {rule.above:g}, so that the rule ends before it begins; expected "
            "at most that",
        )


def _conflicting_rules(file: AdaptiveFile) -> Iterator[tuple[str, str]]:
    """Rules covered by earlier ones, and pairs that contradict each other without a limit on switching."""
    for later, rule in enumerate(file.rules):
        for low, high in combinations(range(later), 2):
            if not rule.is_cascade and _leave_no_gap(file.rules[low], file.rules[high]):
                yield (
                    f"rule[{later}]",
                    f"can never fire: rule[{low}] or rule[{high}] is active for every value of "
                    f"{file.rules[low].signal}, and both come first; expected another order, or other thresholds",
                )
        for earlier, other in enumerate(file.rules[:later]):
            if _covers(other, rule):
                yield (
                    f"rule[{later}]",
                    f"can never fire: rule[{earlier}] is active whenever it is, and comes first; expected another "
                    "order, or another threshold",
                )
            elif file.adapt.dwell == 0 and other.request != rule.request and _meet_head_on(other, rule):
                yield (
                    f"rule[{later}]",
                    f"contradicts rule[{earlier}]: both are active for some values of {rule.signal}, and adapt.dwell "
                    "is 0, so that a noisy signal switches all the time; expected thresholds apart, or a dwell time",
                )


def _covers(earlier: RuleEntry, later: RuleEntry) -> bool:
    """Whether the earlier rule is active whenever the later one is."""
    if earlier.is_cascade or later.is_cascade:
        return earlier.scenario == later.scenario and (earlier.margin_below or 0.0) >= (later.margin_below or 0.0)
    if earlier.signal != later.signal:
        return False
    (begin, end), (own_begin, own_end) = _ends(earlier), _ends(later)
    if earlier.below is not None and later.below is not None:
        return begin >= own_begin and end >= own_end
    return earlier.above is not None and later.above is not None and begin <= own_begin and end <= own_end


def _leave_no_gap(one: RuleEntry, other: RuleEntry) -> bool:
    """Whether a rule below a threshold or one above another is active for every value of the signal."""
    if not _are_opposite(one, other):
        return False
    low, high = (one, other) if one.below is not None else (other, one)
    return _ends(high)[0] < _ends(low)[0]


def _meet_head_on(one: RuleEntry, other: RuleEntry) -> bool:
    """Whether a rule below a threshold and one above another may be active together."""
    if not _are_opposite(one, other):
        return False
    low, high = (one, other) if one.below is not None else (other, one)
    (below, low_end), (above, high_end) = _ends(low), _ends(high)
    return above < low_end or high_end < below


def _are_opposite(one: RuleEntry, other: RuleEntry) -> bool:
    """Whether one rule is active below a threshold and the other above one, of the same signal."""
    if one.is_cascade or other.is_cascade:
        return False
    return one.signal == other.signal and (one.below is None) != (other.below is None)


def _ends(rule: RuleEntry) -> tuple[float, float]:
    """The signal values at which a rule becomes active and inactive."""
    assert rule.threshold is not None and rule.end is not None
    return rule.threshold, rule.end


def _cascade_circles(file: AdaptiveFile) -> Iterator[tuple[str, str]]:
    """Cascades that pass one frame around in a cycle."""
    following: dict[str, set[str]] = {}
    for index, rule in enumerate(file.rules):
        if rule.scenario is None:
            continue
        following.setdefault(rule.scenario, set()).add(rule.request)
        try:
            TopologicalSorter(following).prepare()
        except CycleError as error:
            names = ", ".join(dict.fromkeys(error.args[1]))
            yield (
                f"rule[{index}].request",
                f"closes a circle of cascades through {names}, so that a frame might never end; expected none",
            )
            return
