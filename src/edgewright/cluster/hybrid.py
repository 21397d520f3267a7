"""The hybrid strategy: pipelined sets of layers on groups of devices, each layer split as it suits the goal.

Early layers hold the work and late ones the weights, so that the first are best divided by rows and the last by
channels (S 5.2); where links are slow, groups that pass frames on send less than one group that exchanges all it
makes. Every unit has a choice of its own: the split, the group (a device may be in several, so that its layers need not
follow each other), and whether it is computed with the unit before, halos and all. The search begins from good
divisions of each number of groups and from those of other strategies, and changes one choice after the other while
that helps. Where there are few divisions, it tries all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product
from math import inf

from ..errors import Infeasible
from .costs import DivisionCost, DivisionCosts
from .division import Division, DivisionSegment, SegmentSplit
from .goal import ClusterAim, ClusterGoal

MOST_STARTS = 12  # switch points tried for each number of groups
MOST_IN_GROUP = 16  # devices that exchange everything with each other
SMALL = 16  # units of networks that are searched without and with several stages in a row on the same devices
MOST_FRAMES = 4  # at the same time on a group, in the starts
PENALTIES = ((4.0,), (1.0, 4.0))  # of broken limits, one after the other
EFFORT = 600  # divisions looked at, or more in small networks
UNIT_EFFORT = 16_000  # units of all divisions looked at
START_EFFORT = 200  # for each family
LIMITED_EFFORT = 10_000  # where times are limited
EVENED = 3  # times that channels are divided again


@dataclass(frozen=True, slots=True)
class UnitChoice:
    split: SegmentSplit
    devices: tuple[str, ...]
    is_joined: bool = False  # computed with the unit before
    begins_stage: bool = False  # works on another frame than the unit before, even on the same devices


Choices = tuple[UnitChoice, ...]


def division_of(choices: Sequence[UnitChoice]) -> Division:
    """Joined units are one segment where they are split alike on the same devices."""
    found: list[DivisionSegment] = []
    for number, choice in enumerate(choices):
        last = found[-1] if found else None
        devices = choice.devices[:1] if choice.split is SegmentSplit.WHOLE else choice.devices
        begins = choice.begins_stage and last is not None and last.devices == devices
        is_joined = choice.is_joined and not begins
        if is_joined and last and last.split is choice.split and last.devices == choice.devices:
            found[-1] = replace(last, stop=number + 1)
        elif choice.split is SegmentSplit.SUMS and is_joined and last and _can_pair(last, choice):
            found[-1] = replace(last, stop=number + 1, split=SegmentSplit.SUMS)
        else:
            found.append(DivisionSegment(number, number + 1, choice.split, devices, begins))
    return tuple(found)


def _can_pair(last: DivisionSegment, choice: UnitChoice) -> bool:
    """Whether fan-out and fan-in of two units become a fused pair (S 5.3.4)."""
    return last.split is SegmentSplit.CHANNELS and last.devices == choice.devices and last.stop - last.first == 1


@dataclass(frozen=True)
class FoundDivision:
    """A division, and the costs that it was found with."""

    costs: DivisionCosts
    division: Division
    cost: DivisionCost


def best_division(costs: DivisionCosts, goal: ClusterGoal, others: Sequence[Division] = ()) -> FoundDivision:
    """The best division found, with channels divided so that memory is even; an error where none keeps the limits.

    It is no worse than the best of the others, which are divisions for the same costs.
    """
    is_small = len(costs.sketcher.units) < SMALL
    tries = [_searched(costs, goal, others, repeats) for repeats in ((False, True) if is_small else (True,))]
    found = min(tries, key=lambda each: goal.score(each.costs, each.cost))
    HybridSearch(found.costs, goal).check(found.cost)
    return found


def _searched(costs: DivisionCosts, goal: ClusterGoal, others: Sequence[Division], repeats: bool) -> FoundDivision:
    first = HybridSearch(costs, goal, others, repeats=repeats)
    best = _evened(first.found(first.starts()[0]), goal)
    search = HybridSearch(best.costs, goal, others, repeats=repeats)
    return _finished(search.found(search.best()), goal)


def division_near(costs: DivisionCosts, goal: ClusterGoal, division: Division) -> FoundDivision:
    """The best division found from a known one; an error where it does not keep the limits."""
    search = HybridSearch(costs, goal)
    found = _finished(search.found(search.near(search.choices_of(division))), goal)
    search.check(found.cost)
    return found


def _finished(found: FoundDivision, goal: ClusterGoal) -> FoundDivision:
    best = _evened(found, goal)
    search = HybridSearch(best.costs, goal)
    return search.found(search.improved(search.choices_of(best.division)))


def _evened(found: FoundDivision, goal: ClusterGoal) -> FoundDivision:
    """The division with the shares of channels that suit the goal best, of some that make memory more even."""
    tried = [found]
    for _ in range(EVENED):
        costs = tried[-1].costs.with_even_memory(tried[-1].cost)
        cost = costs.cost(found.division)
        if cost is None:
            break
        tried.append(FoundDivision(costs, found.division, cost))
    return min(tried, key=lambda each: goal.score(each.costs, each.cost))


class HybridSearch:
    """Looks for the best division of one network; the same answer on any machine."""

    def __init__(
        self,
        costs: DivisionCosts,
        goal: ClusterGoal,
        others: Sequence[Division] = (),
        effort: int | None = None,
        repeats: bool = True,
    ) -> None:
        self.costs, self.goal, self.others = costs, goal, others
        self.repeats = repeats  # whether devices may have several stages in a row
        self.units = costs.sketcher.units
        self.left = effort or (LIMITED_EFFORT if goal.has_limits else max(EFFORT, UNIT_EFFORT // len(self.units)))
        self.devices = costs.cluster.devices
        self._scores: dict[tuple[ClusterGoal, Division], tuple[float, float]] = {}

    def starts(self) -> list[Choices]:
        """Divisions to begin from, the best first."""
        given = map(self.choices_of, self.others)
        found = {division_of(choices): choices for choices in (*self._starts(), *given, *self._every())}
        return sorted(found.values(), key=self._score)

    def best(self) -> Choices:
        """From the best starts of as many families as effort allows, and what is best for memory or throughput alone.

        Where times are limited, of every family, with a broken limit as only a penalty at first, since the way to good
        divisions may lead through others that break it.
        """
        starts = self.starts()
        pipelines = [list(self._family(groups)) for groups in self._groupings()]
        repeated = [list(self._family(groups)) for groups in self._repeated()]
        leaders = sorted((min(family, key=self._score) for family in pipelines), key=self._score)
        tries: list[tuple[Sequence[Choices], Sequence[ClusterGoal]]] = [(starts, ())]
        tries += [([leader], ()) for leader in leaders[: self.left // START_EFFORT]]
        tries.append(([choices for family in repeated for choices in family] or starts, ()))
        tries += [(starts, [replace(self.goal, aim=aim)]) for aim in (ClusterAim.MEMORY, ClusterAim.THROUGHPUT)]
        if self.goal.has_limits:
            tries += [(family, goals) for family in (*pipelines, *repeated) for goals in self._penalised()]
        found = []
        for number, (choices, goals) in enumerate(tries):
            rest = len(tries) - number
            found.append(self._improved_by(choices, goals, self.left * (rest - 1) // rest))
        return min(found, key=self._score)

    def _penalised(self) -> list[list[ClusterGoal]]:
        return [[replace(self.goal, penalty=penalty) for penalty in penalties] for penalties in PENALTIES]

    def near(self, choices: Choices) -> Choices:
        """Improved from a known division alone."""
        tries = [self._improved_by([choices], goals, 0) for goals in ([], *self._penalised())]
        return min(tries, key=self._score)

    def _improved_by(self, choices: Sequence[Choices], goals: Sequence[ClusterGoal], least: int) -> Choices:
        """The best of some choices improved for one goal after the other, and for the search's own; leaves effort."""
        every = [*goals, self.goal]
        found = min(choices, key=lambda each: self._score(each, every[0]))
        for goal in every:
            found = self.improved(found, goal, least)
        return found

    def choices_of(self, division: Division) -> Choices:
        """The choices that give a division."""
        found: list[UnitChoice] = []
        for segment in division:
            for number in range(segment.first, segment.stop):
                choice = UnitChoice(segment.split, segment.devices, number > segment.first)
                if segment.split is SegmentSplit.SUMS and number < segment.stop - 1:
                    choice = UnitChoice(SegmentSplit.CHANNELS, segment.devices)
                found.append(replace(choice, begins_stage=segment.begins_stage and number == segment.first))
        return tuple(found)

    def found(self, choices: Choices) -> FoundDivision:
        division = division_of(choices)
        cost = self.costs.cost(division)
        assert cost is not None
        return FoundDivision(self.costs, division, cost)

    def check(self, cost: DivisionCost) -> None:
        """An error where limits are broken."""
        if broken := [words for _, words in self.goal.broken(self.costs, cost)]:
            others = f", and {len(broken) - 3} more like these" if len(broken) > 3 else ""
            raise Infeasible(
                f"no division of '{self.costs.network.name}' over {len(self.devices)} devices was found that keeps the "
                f"limits. The closest: {'; '.join(broken[:3])}{others}. Devices that have what it needs would do, or "
                "more of them; or ask for less"
            )

    def _score(self, choices: Choices, goal: ClusterGoal | None = None) -> tuple[float, float]:
        wanted = goal or self.goal
        key = wanted, division_of(choices)
        if key not in self._scores:
            self.left -= 1
            cost = self.costs.cost(key[1])
            self._scores[key] = wanted.score(self.costs, cost) if cost else (inf, inf)
        return self._scores[key]

    def _starts(self) -> Iterator[Choices]:
        """All on one device; or first by rows, then by channels, on groups that divide the work evenly."""
        count = len(self.units)
        fastest = max(self.devices, key=lambda device: device.macs_per_second).name
        for name in {self.costs.cluster.gateway: None, fastest: None}:
            yield (UnitChoice(SegmentSplit.WHOLE, (name,), is_joined=True),) * count
        for groups in (*self._groupings(), *self._repeated()):
            yield from self._family(groups)

    def _family(self, groups: Sequence[tuple[str, ...]]) -> Iterator[Choices]:
        """First by rows, then by channels, on these groups one after the other."""
        count, owners = len(self.units), self._owners(groups)
        for point in sorted({round(count * part / MOST_STARTS) for part in range(MOST_STARTS + 1)}):
            yield tuple(self._start(number, number < point, groups, owners) for number in range(count))

    def _start(
        self, number: int, is_early: bool, groups: Sequence[tuple[str, ...]], owners: Sequence[int]
    ) -> UnitChoice:
        choice = self._possible(
            number, SegmentSplit.ROWS if is_early else SegmentSplit.CHANNELS, groups[owners[number]]
        )
        return replace(choice, begins_stage=number > 0 and owners[number - 1] != owners[number])

    def _every(self) -> Iterator[Choices]:
        """All divisions in which layers are whole, or divided over all devices; none where these are too many."""
        names = tuple(device.name for device in self.devices)
        splits = (SegmentSplit.ROWS, SegmentSplit.CHANNELS, SegmentSplit.SUMS)
        options = [UnitChoice(split, names) for split in splits]
        options += [UnitChoice(SegmentSplit.WHOLE, (name,)) for name in names]
        more = [replace(option, is_joined=True) for option in options]
        more += [replace(option, begins_stage=True) for option in options]
        if len(options) * len(options + more) ** (len(self.units) - 1) <= self.left:
            yield from product(options, *[options + more] * (len(self.units) - 1))

    def _possible(self, number: int, wanted: SegmentSplit, devices: tuple[str, ...]) -> UnitChoice:
        """The split that is wanted, or one that the unit can have."""
        for each in (wanted, SegmentSplit.CHANNELS, SegmentSplit.ROWS):
            if len(devices) > 1 and self.costs.sketcher.sketch(DivisionSegment(number, number + 1, each, devices)):
                return UnitChoice(each, devices)
        return UnitChoice(SegmentSplit.WHOLE, devices)

    def _groupings(self) -> Iterator[list[tuple[str, ...]]]:
        """Consecutive devices in 1, 2, 3, ... groups of about the same speed."""
        names = [device.name for device in self.devices]
        speeds = [device.macs_per_second for device in self.devices]
        fewest = -(-len(names) // MOST_IN_GROUP)
        for count in range(fewest, min(len(names), len(self.units)) + 1):
            if count > fewest + 4 and count != len(names) and len(names) % count:
                continue
            ends = _even_ends(speeds, count)
            groups = [tuple(names[a:b]) for a, b in zip([0, *ends], ends, strict=False) if a < b]
            if len(groups) == count:
                yield groups

    def _repeated(self) -> Iterator[list[tuple[str, ...]]]:
        """All devices as one group, for 2, 3, ... frames at a time."""
        names = tuple(device.name for device in self.devices)
        if self.repeats and len(names) <= MOST_IN_GROUP:
            yield from ([names] * frames for frames in range(2, MOST_FRAMES + 1))

    def _owners(self, groups: Sequence[tuple[str, ...]]) -> list[int]:
        """The number of each unit's group, so that all groups take about as long."""
        named = self.costs.cluster.device_named
        speeds = [sum(named[name].macs_per_second for name in group) for group in groups]
        shares = list(accumulate(speeds))
        total, found, done, at = sum(unit.work for unit in self.units), [], 0.0, 0
        for unit in self.units:
            middle = (done + unit.work / 2) / total * shares[-1]
            while at + 1 < len(groups) and middle > shares[at]:
                at += 1
            found.append(at)
            done += unit.work
        return found

    def improved(self, choices: Choices, goal: ClusterGoal | None = None, least: int = 0) -> Choices:
        """Changes one choice at a time, for as long as that helps and more than the least effort is left."""
        best, score = choices, self._score(choices, goal)
        is_better = True
        while is_better and self.left > least:
            is_better = False
            for number in range(len(best)):
                for other in self._changed(best, number):
                    if (value := self._score(other, goal)) < score:
                        best, score, is_better = other, value, True
                    if self.left <= least:
                        return best
        return best

    def _changed(self, choices: Choices, number: int) -> Iterator[Choices]:
        """The choices with another one for a unit: a split, a join, or the group of a neighbour."""
        mine = choices[number]
        others = [replace(mine, split=split) for split in (SegmentSplit.ROWS, SegmentSplit.CHANNELS, SegmentSplit.SUMS)]
        if number:
            others.append(replace(mine, is_joined=not mine.is_joined))
            others.append(replace(mine, split=SegmentSplit.SUMS, is_joined=True))
            others.append(replace(mine, split=choices[number - 1].split, is_joined=True))
        others += [
            replace(mine, split=SegmentSplit.WHOLE, devices=_rotated(mine.devices, at))
            for at in range(min(2, len(mine.devices)))
        ]
        near = {choices[other].devices for other in (number - 1, number + 1) if 0 <= other < len(choices)}
        for devices in sorted(near - {mine.devices}):
            others.append(replace(mine, devices=devices))
            others.append(UnitChoice(choices[number - 1 if number else 1].split, devices))
        if number and self.repeats:
            others.append(replace(mine, begins_stage=not mine.begins_stage))
        for other in others:
            if other != mine:
                yield (*choices[:number], other, *choices[number + 1 :])
        if mine.begins_stage:
            yield from self._stage_moved(choices, number)

    def _stage_moved(self, choices: Choices, number: int) -> Iterator[Choices]:
        """The choices where the pipeline stage begins one unit earlier, or later."""
        for other in (number - 1, number + 1):
            if 0 < other < len(choices) and not choices[other].begins_stage:
                changed = list(choices)
                changed[number] = replace(choices[number], begins_stage=False)
                changed[other] = replace(choices[other], begins_stage=True)
                yield tuple(changed)


def _rotated(devices: tuple[str, ...], by: int) -> tuple[str, ...]:
    return (*devices[by:], *devices[:by])


def _even_ends(values: Sequence[float], count: int) -> list[int]:
    """Where to cut a row of values into runs of about the same sum."""
    sums = list(accumulate(values))
    ends = [1 + min(range(len(sums)), key=lambda i: abs(sums[i] - sums[-1] * part / count)) for part in range(1, count)]
    return [*ends, len(values)]
