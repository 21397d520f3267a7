"""`edgewright adapt --environment`: the results of a simulated day, beside each scenario alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.table import Table

from .. import text
from ..adaptive.simulation import HOUR, Simulation, SimulationOutcome, simulate_application
from ..files import write_atomic
from ..report.simulation_plot import simulation_svg
from .common import console, print_json, print_written, shown, table, working

MOST_SWITCHES = 20  # rows of the table of switches
MOST_VIOLATIONS = 5  # listed per row of the comparison


def simulate_environment(
    application: Path,
    environment: Path,
    timeline: Path | None,
    as_json: bool,
    delays: Mapping[tuple[str, str], float] | None = None,
) -> None:
    """Simulates the application and prints the results; `timeline` is the file for the picture."""
    with working("simulating"):
        outcome = simulate_application(application, environment, delays)
    if timeline is not None:
        write_atomic(timeline, simulation_svg(outcome))
    if as_json:
        print_json(outcome.to_dict())
        return
    console.print(comparison_table(outcome))
    if outcome.simulation.switches:
        console.print(switch_table(outcome.simulation))
    for name, one in _named(outcome):
        for violation in one.violations[:MOST_VIOLATIONS]:
            when = f"from {clock(violation.start)} to {clock(violation.end)}"
            console.print(shown(f"{name}: {violation.said}, {when}"), style="red")
    print_written([timeline])


def comparison_table(outcome: SimulationOutcome) -> Table:
    """Energy, accuracy and violations of the application and of each scenario alone."""
    battery = outcome.simulation.environment.battery
    of = "" if battery is None else f" of {battery.capacity / HOUR:g}"
    made = table("simulated", "", f">energy, Wh{of}", ">accuracy", ">switches", "budget")
    for name, one in _named(outcome):
        kinds = " and ".join(dict.fromkeys(violation.kind for violation in one.violations))
        verdict = f"{kinds} violated" if kinds else "kept"
        figures = (f"{one.energy / HOUR:.2f}", f"{one.accuracy:.1%}", text.count(len(one.switches)))
        made.add_row(shown(name), *figures, verdict, style="red" if kinds else None)
    return made


def switch_table(simulation: Simulation) -> Table:
    """The first switches, with their delays if known."""
    is_known = any(one.delay is not None for one in simulation.switches)
    made = table("switches", ">time", "from", "to", *([">delay at worst"] if is_known else []))
    for one in simulation.switches[:MOST_SWITCHES]:
        delay = () if one.delay is None else (text.duration(one.delay),)
        made.add_row(clock(one.time), shown(one.old), shown(one.new), *delay)
    more = len(simulation.switches) - MOST_SWITCHES
    if more > 0:
        made.add_row("…", "", f"{more:,} more")
    return made


def clock(seconds: float) -> str:
    """Time since the start, to the millisecond: 1:30:00 or 0:00:02.5."""
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    whole, _, part = f"{rest:.3f}".rstrip("0").partition(".")
    return f"{hours}:{minutes:02}:{whole:0>2}" + (f".{part}" if part else "")


def _named(outcome: SimulationOutcome) -> Iterator[tuple[str, Simulation]]:
    yield "with switching", outcome.simulation
    for name, one in outcome.alone.items():
        yield f"{name} alone", one
