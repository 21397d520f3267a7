"""Simulates a day of an adaptive application: an environment over time gives scenarios, energy, accuracy, violations.

Power and accuracy of a scenario are constants in the application's file. Scenarios change as `rules` decides. A switch
that takes time is counted pessimistically: until the new scenario's first output, power is the larger of both
scenarios' and accuracy the old one's, and no other switch begins. Cascades depend on results, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, inf
from pathlib import Path

from ..errors import InputError
from ..program.switching import SwitchingRules
from .description import AdaptiveFile, read_adaptive
from .environment import Battery, Environment, PowerLimit, read_environment
from .rules import (
    SwitchingState,
    advance,
    due,
    initial_state,
    switching_rules,
    wanted,
    with_request,
    with_signals,
)

ROUNDING = 1e-9  # relative, of sums of energies; less is not a violation
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class ScenarioFigures:
    """The figures of a scenario for simulations."""

    accuracy: float  # 0 to 1
    power: float  # W


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` to `end`, in seconds, results come from this scenario."""

    start: float
    end: float
    scenario: str
    figures: ScenarioFigures

    @property
    def energy(self) -> float:
        """Joules."""
        return (self.end - self.start) * self.figures.power


@dataclass(frozen=True, slots=True)
class ScenarioSwitch:
    """A switch that began at `time`; `delay` is the worst-case time to the new scenario's first output."""

    time: float
    old: str
    new: str
    delay: float | None  # None if unknown

    def to_dict(self) -> dict[str, object]:
        return {"time": self.time, "from": self.old, "to": self.new, "delay": self.delay}


@dataclass(frozen=True, slots=True)
class BudgetViolation:
    """An interval in which the application exceeded a power limit, or fell below the required energy."""

    kind: str  # "power" or "energy"
    start: float
    end: float
    excess: float  # maximum, in W or J

    @property
    def said(self) -> str:
        amount = f"{self.excess:.3g} W" if self.kind == "power" else f"{self.excess / HOUR:.3g} Wh"
        return f"{self.kind} budget violated by up to {amount}"

    def to_dict(self) -> dict[str, object]:
        unit, factor = ("W", 1.0) if self.kind == "power" else ("Wh", HOUR)
        return {"kind": self.kind, "from": self.start, "until": self.end, f"excess_{unit}": self.excess / factor}


@dataclass(frozen=True, slots=True)
class Simulation:
    """The course of a simulation."""

    environment: Environment
    periods: tuple[Period, ...]  # without gaps
    switches: tuple[ScenarioSwitch, ...]
    violations: tuple[BudgetViolation, ...]

    @property
    def energy(self) -> float:
        """Joules."""
        return fsum(period.energy for period in self.periods)

    @property
    def accuracy(self) -> float:
        """The mean over time."""
        sums = fsum((period.end - period.start) * period.figures.accuracy for period in self.periods)
        return sums / self.environment.duration

    def share_of(self, scenario: str) -> float:
        """The share of time in which results come from this scenario."""
        return fsum(p.end - p.start for p in self.periods if p.scenario == scenario) / self.environment.duration

    def spent(self) -> tuple[tuple[float, float], ...]:
        """The energy used up to each time, in joules; linear in between."""
        points = [(0.0, 0.0)]
        for period in self.periods:
            points.append((period.end, points[-1][1] + period.energy))
        return tuple(points)

    def to_dict(self) -> dict[str, object]:
        battery = self.environment.battery
        return {
            "energy_Wh": self.energy / HOUR,
            "capacity_Wh": None if battery is None else battery.capacity / HOUR,
            "accuracy": self.accuracy,
            "switches": [switch.to_dict() for switch in self.switches],
            "violations": [violation.to_dict() for violation in self.violations],
            "periods": [{"from": p.start, "until": p.end, "scenario": p.scenario} for p in self.periods],
        }


def scenario_figures(file: AdaptiveFile, where: str) -> Mapping[str, ScenarioFigures]:
    """The figures of all scenarios; `where` names the file in errors."""
    figures = {}
    for index, one in enumerate(file.scenarios):
        if one.accuracy is None or one.power is None:
            key, example = ("accuracy", "accuracy = 0.82") if one.accuracy is None else ("power", 'power = "11.2 W"')
            raise InputError(f"{where}: scenario[{index}].{key} is missing; a simulation needs it, such as {example}")
        figures[one.name] = ScenarioFigures(one.accuracy, one.power)
    return figures


def simulate(
    rules: SwitchingRules,
    figures: Mapping[str, ScenarioFigures],
    environment: Environment,
    delays: Mapping[tuple[str, str], float] | None = None,
) -> Simulation:
    """Simulates the application in this environment. `delays`: the worst switching delay of each pair (old, new), in
    seconds."""
    _check_signals(rules, environment)
    run = _SimulatedRun(rules, figures, environment, delays or {})
    for time, (values, requests) in _events(environment).items():
        run.until(time)
        run.take(time, values, requests)
    run.until(environment.duration)
    return run.result()


def simulate_alone(scenario: str, figures: ScenarioFigures, environment: Environment) -> Simulation:
    """One scenario for the whole time, ignoring requests."""
    periods = (Period(0.0, environment.duration, scenario, figures),)
    return Simulation(environment, periods, (), _violations(periods, environment))


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """An application in an environment, compared with each of its scenarios alone."""

    rules: SwitchingRules
    simulation: Simulation
    alone: Mapping[str, Simulation]

    def to_dict(self) -> dict[str, object]:
        alone = {
            name: {"energy_Wh": one.energy / HOUR, "accuracy": one.accuracy, "violations": len(one.violations)}
            for name, one in self.alone.items()
        }
        return {**self.simulation.to_dict(), "alone": alone}


def simulate_application(
    application: Path, environment: Path, delays: Mapping[tuple[str, str], float] | None = None
) -> SimulationOutcome:
    """The application of one file in the environment of another."""
    file = read_adaptive(application)
    rules, figures = switching_rules(file), scenario_figures(file, str(application))
    around = read_environment(environment)
    alone = {name: simulate_alone(name, one, around) for name, one in figures.items()}
    return SimulationOutcome(rules, simulate(rules, figures, around, delays), alone)


class _SimulatedRun:
    """A simulation in progress."""

    def __init__(
        self,
        rules: SwitchingRules,
        figures: Mapping[str, ScenarioFigures],
        environment: Environment,
        delays: Mapping[tuple[str, str], float],
    ) -> None:
        self.rules, self.figures, self.environment, self.delays = rules, figures, environment, delays
        self.state: SwitchingState = initial_state(rules)
        self.periods: list[Period] = []  # completed periods
        self.switches: list[ScenarioSwitch] = []
        self.begun = 0.0  # start of the current period
        self.taken = 0.0  # joules up to that time
        self.free_at = -inf  # end of the current switch

    def until(self, time: float) -> None:
        """Carries out the switches that become due before this time."""
        ready = due(self.rules, self.state)
        if ready is not None and max(ready, self.free_at) < time:
            # After a switch the current scenario is the wanted one, so there is only one before the next event.
            self._switch(max(ready, self.free_at))

    def take(self, time: float, values: Mapping[str, float], requests: Sequence[str]) -> None:
        """Processes signals and requests of one instant, and the resulting switch if it is due."""
        battery = self.environment.battery
        if battery is not None and battery.signal is not None:
            values = {**values, battery.signal: self._charge(battery, time)}
        self.state = with_signals(self.rules, self.state, values)
        for scenario in requests:
            self.state = with_request(self.rules, self.state, scenario)
        ready = due(self.rules, self.state)
        if ready is not None and max(ready, self.free_at) <= time:
            self._switch(time)

    def result(self) -> Simulation:
        self._end_period(self.environment.duration, self.state.current)
        periods = tuple(self.periods)
        return Simulation(self.environment, periods, tuple(self.switches), _violations(periods, self.environment))

    def _switch(self, time: float) -> None:
        old, new = self.state.current, wanted(self.rules, self.state)
        self.state = advance(self.rules, self.state, time)
        delay = self.delays.get((old, new))
        self.switches.append(ScenarioSwitch(time, old, new, delay))
        self._end_period(time, old)
        self.free_at = min(time + (delay or 0.0), self.environment.duration)
        one, other = self.figures[old], self.figures[new]
        self._end_period(self.free_at, old, ScenarioFigures(one.accuracy, max(one.power, other.power)))

    def _end_period(self, time: float, scenario: str, figures: ScenarioFigures | None = None) -> None:
        if time > self.begun:
            period = Period(self.begun, time, scenario, figures or self.figures[scenario])
            self.periods.append(period)
            self.begun, self.taken = time, self.taken + period.energy

    def _charge(self, battery: Battery, time: float) -> float:
        """The remaining share of the charge; energy of the current period is counted up to this time."""
        if time < self.begun:  # within a switch
            last = self.periods[-1]
            taken = self.taken - (last.end - time) * last.figures.power
        else:
            taken = self.taken + (time - self.begun) * self.figures[self.state.current].power
        return max(0.0, 1 - taken / battery.capacity)


def _events(environment: Environment) -> Mapping[float, tuple[Mapping[str, float], Sequence[str]]]:
    """Readings and requests in time order."""
    readings = environment.readings()
    requests: dict[float, list[str]] = {}
    for request in environment.requests:
        requests.setdefault(request.time, []).append(request.scenario)
    times = sorted({*readings, *requests, *(time for time in environment.sampled_at if time < environment.duration)})
    return {time: (readings.get(time, {}), requests.get(time, [])) for time in times}


def _check_signals(rules: SwitchingRules, environment: Environment) -> None:
    """Raises an error for a signal that only one side knows: a misspelt name, or a rule without readings."""
    battery = environment.battery
    given = [signal.name for signal in environment.signals]
    if battery is not None and battery.signal is not None:
        given.append(battery.signal)
    for name in given:
        if name not in rules.signals:
            known = ", ".join(rules.signals) or "none"
            raise InputError(f'{environment.name}: gives the signal "{name}", which no rule reads; rules read: {known}')
    for name in rules.signals:
        if name not in given:
            raise InputError(
                f'{environment.name}: has no signal "{name}", which a rule reads; expected a [[signal]] of that name'
            )


def _violations(periods: Sequence[Period], environment: Environment) -> tuple[BudgetViolation, ...]:
    power = (_power_violation(period, limit) for period in periods for limit in environment.limits)
    energy = () if environment.battery is None else _energy_violations(periods, environment.battery)
    return (*_joined(one for one in power if one is not None), *_joined(energy))


def _power_violation(period: Period, limit: PowerLimit) -> BudgetViolation | None:
    start, end = max(period.start, limit.begin), min(period.end, limit.end)
    excess = period.figures.power - limit.power
    if start >= end or excess <= ROUNDING * limit.power:
        return None
    return BudgetViolation("power", start, end, excess)


def _energy_violations(periods: Sequence[Period], battery: Battery) -> Iterator[BudgetViolation]:
    """Intervals in which the charge is below the minimum. Between two times both are linear, and so is their
    difference."""
    left = battery.capacity
    for period in periods:
        inside = (time for time, _ in battery.least if period.start < time < period.end)
        for start, end in pairwise((period.start, *inside, period.end)):
            before = battery.least_at(start) - left
            left -= (end - start) * period.figures.power
            after = battery.least_at(end) - left
            small = ROUNDING * battery.capacity
            if max(before, after) <= small:
                continue
            share = before / (before - after) if before != after else 0.0
            crossing = start + (end - start) * min(1.0, max(0.0, share))
            yield BudgetViolation(
                "energy",
                start if before > small else crossing,
                end if after > small else crossing,
                max(before, after),
            )


def _joined(violations: Iterable[BudgetViolation]) -> Iterator[BudgetViolation]:
    """The violations, with adjacent ones merged."""
    last: BudgetViolation | None = None
    for one in violations:
        if last is not None and one.start <= last.end:
            last = BudgetViolation(last.kind, last.start, one.end, max(last.excess, one.excess))
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last
