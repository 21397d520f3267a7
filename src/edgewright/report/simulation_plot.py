"""The chart of a simulated day as SVG: signals with thresholds, scenario, power, charge, accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import floor
from operator import itemgetter

from ..adaptive.simulation import HOUR, BudgetViolation, Period, Simulation, SimulationOutcome
from ..program.switching import SwitchingRules
from .charts import LETTER, Axis, escaped, opening

WIDTH, LEFT, RIGHT, TOP, FOOT = 860.0, 62.0, 22.0, 26.0, 44.0  # px
SIGNAL, LANE, POWER, CHARGE, ACCURACY, GAP = 84.0, 22.0, 100.0, 150.0, 84.0, 34.0  # px of each panel, and between two
SHADES = 6
UNITS = ((2 * HOUR / 3, HOUR, "h"), (100.0, 60.0, "min"), (0.0, 1.0, "s"))  # from this duration on, seconds, name
Points = Sequence[tuple[float, float]]


def simulation_svg(outcome: SimulationOutcome, *, standalone: bool = True) -> str:
    """The chart as an SVG element, with the charge of each scenario alone. `standalone` includes style and
    background."""
    return "".join(_TimeChart(outcome).lines(standalone))


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    up: Axis

    @classmethod
    def at(cls, top: float, height: float, title: str, low: float, high: float) -> _Panel:
        return cls(title, Axis(low, high, top + height, top))

    @property
    def top(self) -> float:
        return self.up.end

    @property
    def floor(self) -> float:
        return self.up.start


class _TimeChart:
    def __init__(self, outcome: SimulationOutcome) -> None:
        self.simulation, self.rules, self.alone = outcome.simulation, outcome.rules, outcome.alone
        self.environment = self.simulation.environment
        duration = self.environment.duration
        self.per_unit, self.unit = next((per, unit) for least, per, unit in UNITS if duration >= least)
        self.across = Axis(0.0, duration / self.per_unit, LEFT, WIDTH - RIGHT)
        self.signals = _read_signals(self.simulation, self.rules)
        tall = len(self.signals) * (SIGNAL + GAP) + LANE + POWER + CHARGE + ACCURACY + 3 * GAP
        self.height = TOP + tall + FOOT

    def lines(self, standalone: bool) -> Iterator[str]:
        yield from opening("simulation", WIDTH, self.height, "scenario, power and charge over time", standalone)
        top = TOP
        for name, points in self.signals.items():
            yield from self._signal(name, points, top)
            top += SIGNAL + GAP
        yield from self._scenarios(top)
        top += LANE + GAP
        yield from self._power(top)
        top += POWER + GAP
        yield from self._charge(top)
        top += CHARGE + GAP
        yield from self._accuracy(top)
        yield from self._time_axis(top + ACCURACY)
        yield "</svg>"

    def _x(self, seconds: float) -> float:
        return self.across.at(seconds / self.per_unit)

    def _frame(self, panel: _Panel, most: int) -> Iterator[str]:
        """The title above the panel, horizontal lines at round values, vertical ones at round times."""
        yield f'<text class="name" x="{LEFT:g}" y="{panel.top - 9:g}">{panel.title}</text>'
        for value, _ in self.across.ticks(10):
            yield f'<path class="grid" d="M{self.across.at(value):.1f} {panel.top:g}V{panel.floor:g}"/>'
        for value, shown in panel.up.ticks(most):
            y = panel.up.at(value)
            yield f'<path class="grid" d="M{LEFT:g} {y:.1f}H{self.across.end:g}"/>'
            yield f'<text class="tick end" x="{LEFT - 7:g}" y="{y + 4:.1f}">{shown}</text>'

    def _key(self, panel: _Panel, entries: Sequence[tuple[str, str]]) -> Iterator[str]:
        """The legend of a panel, at its top right: (CSS class, text)."""
        x = self.across.end
        for style, words in reversed(entries):
            yield f'<text class="end" x="{x:.1f}" y="{panel.top - 9:g}">{escaped(words)}</text>'
            x -= LETTER * len(words) + 22
            yield f'<path class="{style}" d="M{x:.1f} {panel.top - 13:g}h18"/>'
            x -= 14

    def _signal(self, name: str, points: Points, top: float) -> Iterator[str]:
        mine = [rule for rule in self.rules.rules if rule.signal == name]
        bounds = [bound for rule in mine for bound in (rule.threshold, rule.until)]
        values = [value for _, value in points] + bounds
        margin = 0.08 * ((max(values) - min(values)) or 1.0)
        panel = _Panel.at(top, SIGNAL, escaped(name), min(values) - margin, max(values) + margin)
        yield from self._frame(panel, 4)
        keys = {"threshold": "a rule begins"} | (
            {"until": "and ends"} if any(r.threshold != r.until for r in mine) else {}
        )
        yield from self._key(panel, list(keys.items()))
        yield f'<path class="signal" d="{self._path(_thinned(points, self._x), panel.up)}"/>'
        for rule in mine:
            y, end = panel.up.at(rule.threshold), panel.up.at(rule.until)
            side = "below" if rule.is_below else "above"
            told = f"{rule.request}: from {side} {rule.threshold:g} until {rule.until:g}"
            yield f"<g><title>{escaped(told)}</title>"
            yield f'<path class="threshold" d="M{LEFT:g} {y:.1f}H{self.across.end:g}"/>'
            if rule.threshold != rule.until:
                yield f'<path class="until" d="M{LEFT:g} {end:.1f}H{self.across.end:g}"/>'
            yield "</g>"

    def _scenarios(self, top: float) -> Iterator[str]:
        count = len(self.simulation.switches)
        title = f"scenario in use ({count:,} {'switch' if count == 1 else 'switches'})"
        yield f'<text class="name" x="{LEFT:g}" y="{top - 9:g}">{title}</text>'
        for start, end, name in _runs(self.simulation.periods):
            x, wide = self._x(start), self._x(end) - self._x(start)
            told = f"{escaped(name)}\nfrom {self._time(start)} to {self._time(end)}"
            yield f'<g class="{self._shade(name)}"><title>{told}</title>'
            yield f'<rect class="run" x="{x:.2f}" y="{top:g}" width="{max(wide, 0.4):.2f}" height="{LANE:g}"/>'
            if wide > LETTER * len(name) + 8:
                yield f'<text class="in middle" x="{x + wide / 2:.1f}" y="{top + 15:g}">{escaped(name)}</text>'
            yield "</g>"

    def _power(self, top: float) -> Iterator[str]:
        limits = self.environment.limits
        most = max([p.figures.power for p in self.simulation.periods] + [limit.power for limit in limits])
        panel = _Panel.at(top, POWER, "power, W", 0.0, 1.12 * most)
        yield from self._frame(panel, 4)
        yield from self._key(panel, [("used", "taken"), *([("limit", "limit")] if limits else [])])
        yield from self._violated(panel, "power")
        for limit in limits:
            x, y, end = self._x(limit.begin), panel.up.at(limit.power), self._x(limit.end)
            told = f"at most {limit.power:g} W\nfrom {self._time(limit.begin)} to {self._time(limit.end)}"
            yield f'<path class="limit" d="M{x:.1f} {y:.1f}H{end:.1f}"><title>{told}</title></path>'
        steps = [(period, period.figures.power) for period in self.simulation.periods]
        yield f'<path class="used" d="{self._steps(steps, panel.up)}"/>'

    def _charge(self, top: float) -> Iterator[str]:
        """The remaining charge and its required minimum; without a battery, the energy used."""
        battery = self.environment.battery
        if battery is None:
            panel = _Panel.at(top, CHARGE, "energy taken, Wh", 0.0, 1.08 * self.simulation.energy / HOUR)
            yield from self._frame(panel, 5)
            points = [(time, energy / HOUR) for time, energy in self.simulation.spent()]
            yield f'<path class="used" d="{self._path(points, panel.up)}"/>'
            return
        panel = _Panel.at(top, CHARGE, "energy left, Wh", 0.0, 1.06 * battery.capacity / HOUR)
        yield from self._frame(panel, 5)
        keys = [("used", "left"), *([("limit", "least")] if battery.least else [])]
        yield from self._key(panel, [*keys, *([("alone", "one scenario all the time")] if self.alone else [])])
        yield from self._violated(panel, "energy")
        for name, simulation in self.alone.items():
            yield from self._charge_alone(name, _charges(simulation, battery.capacity), panel.up)
        if battery.least:
            end = self.environment.duration
            times = [0.0, *(time for time, _ in battery.least if 0.0 < time < end), end]
            points = [(time, battery.least_at(time) / HOUR) for time in times]
            yield f'<path class="limit" d="{self._path(points, panel.up)}"/>'
        yield f'<path class="used" d="{self._path(_charges(self.simulation, battery.capacity), panel.up)}"/>'

    def _charge_alone(self, name: str, points: Points, up: Axis) -> Iterator[str]:
        """The charge when one scenario runs all the time, with its name below the falling line, on the left."""
        yield f'<path class="alone" d="{self._path(points, up)}"/>'
        (end, left), words = points[-1], f"{name} alone"
        if left <= 0.0:
            yield f'<path class="empty" d="M{self._x(end) - 4:.1f} {up.at(0.0) - 4:.1f}l8 8m0 -8l-8 8"/>'
            words += f": empty at {self._time(end)}"
        x = (self._x(0.0) + self._x(end)) / 2
        anchor = "end" if x - LETTER * len(words) > LEFT else "start"
        y = up.at((points[0][1] + left) / 2)
        yield f'<text class="value {anchor}" x="{x - 4:.1f}" y="{y + 14:.1f}">{escaped(words)}</text>'

    def _accuracy(self, top: float) -> Iterator[str]:
        values = [100 * p.figures.accuracy for p in self.simulation.periods]
        margin = 0.25 * ((max(values) - min(values)) or 4.0)
        low, high = max(0.0, min(values) - margin), min(100.0, max(values) + margin)
        mean = 100 * self.simulation.accuracy
        panel = _Panel.at(top, ACCURACY, "accuracy, %", low, high)
        yield from self._frame(panel, 4)
        yield from self._key(panel, [("used", "of the scenario"), ("mean", f"mean over time, {mean:.1f} %")])
        yield f'<path class="mean" d="M{LEFT:g} {panel.up.at(mean):.1f}H{self.across.end:g}"/>'
        steps = [(period, value) for period, value in zip(self.simulation.periods, values, strict=True)]
        yield f'<path class="used" d="{self._steps(steps, panel.up)}"/>'

    def _time_axis(self, floor: float) -> Iterator[str]:
        for value, shown in self.across.ticks(10):
            x = self.across.at(value)
            yield f'<text class="tick middle" x="{x:.1f}" y="{floor + 16:g}">{shown}</text>'
        x = (self.across.start + self.across.end) / 2
        yield f'<text class="middle" x="{x:.0f}" y="{floor + 34:g}">time, {self.unit}</text>'

    def _violated(self, panel: _Panel, kind: str) -> Iterator[str]:
        for one in self.simulation.violations:
            if one.kind == kind:
                x, wide = self._x(one.start), self._x(one.end) - self._x(one.start)
                yield f'<rect class="violated" x="{x:.2f}" y="{panel.top:g}" width="{max(wide, 1.0):.2f}"'
                yield f' height="{panel.floor - panel.top:g}"><title>{self._told(one)}</title></rect>'

    def _told(self, violation: BudgetViolation) -> str:
        return f"{violation.said}\nfrom {self._time(violation.start)} to {self._time(violation.end)}"

    def _time(self, seconds: float) -> str:
        return f"{seconds / self.per_unit:.4g} {self.unit}"

    def _shade(self, scenario: str) -> str:
        return f"c{self.rules.scenarios.index(scenario) % SHADES}"

    def _path(self, points: Points, up: Axis) -> str:
        return "M" + "L".join(f"{self._x(time):.1f} {up.at(value):.1f}" for time, value in points)

    def _steps(self, steps: Sequence[tuple[Period, float]], up: Axis) -> str:
        """A step function over periods."""
        path = f"M{self._x(0.0):.1f} {up.at(steps[0][1]):.1f}"
        return path + "".join(f"V{up.at(value):.1f}H{self._x(period.end):.1f}" for period, value in steps)


def _read_signals(simulation: Simulation, rules: SwitchingRules) -> Mapping[str, Points]:
    """The signals that rules read, held between readings; the charge has its own panel."""
    environment = simulation.environment
    kept: dict[str, list[tuple[float, float]]] = {}
    for time, values in environment.readings().items():
        for name, value in values.items():
            points = kept.setdefault(name, [])
            if points:
                points.append((time, points[-1][1]))
            points.append((time, value))
    ended = {name: [*points, (environment.duration, points[-1][1])] for name, points in kept.items()}
    return {name: ended[name] for name in rules.signals if name in ended}


def _thinned(points: Points, x: Callable[[float], float]) -> Points:
    """At most four points for each half px: the first, the minimum, the maximum and the last."""
    thin: list[tuple[float, float]] = []
    for _, group in groupby(points, key=lambda point: floor(2 * x(point[0]))):
        column = list(group)
        marks = (0, len(column) - 1, *(column.index(f(column, key=itemgetter(1))) for f in (min, max)))
        thin += [column[mark] for mark in sorted(set(marks))]
    return thin


def _charges(simulation: Simulation, capacity: float) -> Points:
    """The remaining energy over time in watt hours, until the battery is empty."""
    points = [(time, (capacity - spent) / HOUR) for time, spent in simulation.spent()]
    for index, ((start, before), (end, after)) in enumerate(pairwise(points)):
        if after < 0:
            return [*points[: index + 1], (start + (end - start) * before / (before - after), 0.0)]
    return points


def _runs(periods: Sequence[Period]) -> Iterator[tuple[float, float, str]]:
    """The intervals in which each scenario delivers the results."""
    for name, group in groupby(periods, key=lambda period: period.scenario):
        run = list(group)
        yield run[0].start, run[-1].end, name
