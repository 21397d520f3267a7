"""Random switches between four widths of a network on the virtual Cortex-M4: delays, waits, RAM, code, bit by bit.

    python benchmarks/adaptive_board.py [MODEL ...] [--switches 250] [--plan fast] [--policy abort] [--json FILE]

Each int8 network of $EDGEWRIGHT_CORPUS/models is cut to 1, 0.75, 0.5 and 0.25 of its channels: four scenarios. Fast and
streamed plans of them switch under `abort` and `overtake`, at least so many times each. A request comes just after a
random switch point. Every result is compared with the reference execution of its scenario. The largest scenario is
also built alone. Ends with status 1 when a result is wrong, a wait is above 5 % of its frame, a delay is above the
longest wait, a frame and 2,000 instructions, or `abort` takes over 64 B of RAM beside the largest scenario's.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from edgewright.adaptive.compiled import check_linked
from edgewright.adaptive.deploying import SwitchingApplication, with_policy
from edgewright.adaptive.scenarios import AdaptiveApplication, scenario_plan
from edgewright.emit.deployment.switch_timing import SWITCH, SwitchTiming
from edgewright.emit.deployment.switch_trial import SwitchScript, SwitchTrial
from edgewright.emit.firmware.measurement import measure
from edgewright.emit.library import emit
from edgewright.network import Network, random_inputs
from edgewright.network.read import read
from edgewright.program.options import Options
from edgewright.program.switching import SwitchPolicy

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.helpers.nested_networks import narrowed, scenarios_of

MODELS = ("mlperf_kws_ref_int8", "mlperf_ic_resnet8_int8", "mlperf_vww96_int8")
TARGET = "cortex-m4"
WIDTHS = (1.0, 0.75, 0.5, 0.25)
PLANS = {"fast": "", "streamed": "phases = true"}
POLICIES = {one.value: one for one in (SwitchPolicy.ABORT, SwitchPolicy.OVERTAKE)}
FRAMES, SHARE = 240, 4  # of a run on the virtual board
MOST_WAIT = 0.05  # of a frame
MOST_STATE = 64  # bytes of RAM beside the largest scenario's under `abort`


@dataclass(frozen=True)
class Row:
    model: str
    plan: str
    policy: str
    switches: int
    wrong: int
    worst_wait: float  # share of the frame
    worst_excess: int  # instructions of a delay beyond the longest wait and a frame
    mean_delay: float  # in frames of the new scenario
    slower: float  # a frame of the largest scenario, over one without switch points
    ram: int
    ram_alone: int
    code: int
    code_alone: int
    weights: int
    weights_alone: int

    @property
    def misses(self) -> bool:
        state = self.ram - self.ram_alone if self.policy == SwitchPolicy.ABORT.value else 0
        is_late = self.worst_wait > MOST_WAIT or self.worst_excess > SWITCH
        return bool(self.wrong) or is_late or state > MOST_STATE


@dataclass(frozen=True)
class Alone:
    """The largest scenario built by itself."""

    ram: int
    code: int
    weights: int
    instructions: int


def alone(application: AdaptiveApplication, network: Network) -> Alone:
    plan = scenario_plan(application, application.scenarios[0])
    library = emit(plan, application.target, network)
    flag = Options().optimise_flag(application.target)
    found = measure(library, random_inputs(network), optimise=flag)
    assert found.instructions is not None
    return Alone(found.ram_linked, found.flash_code + found.flash_runtime, found.flash_weights, found.instructions)


def row(
    model: str, plan: str, application: AdaptiveApplication, policy: SwitchPolicy, largest: Alone, count: int
) -> Row:
    """Runs until there were so many switches."""
    switching = SwitchingApplication(with_policy(application, policy), policy)
    layout = switching.front.fastest_within()
    library = switching.library(layout)
    trial = SwitchTrial(library, switching.writer(library, layout))
    timings: list[SwitchTiming] = []
    while sum(len(one.delays) for one in timings) < count:
        tried = trial.run_on_board(SwitchScript(FRAMES, SHARE, len(timings) + 1))
        check_linked(library, tried)
        timings.append(SwitchTiming(tried))
    first, run = timings[0], timings[0].trial.run
    delays = [delay / one.frames[new] for one in timings for _, new, delay in one.delays]
    return Row(
        model,
        plan,
        policy.value,
        len(delays),
        sum(len(one.trial.result.wrong) for one in timings),
        max(one.worst_wait for one in timings),
        max(one.worst_excess for one in timings),
        sum(delays) / len(delays),
        first.frames[application.scenarios[0].name] / largest.instructions,
        run.ram_linked,
        largest.ram,
        run.code_bytes,
        largest.code,
        run.weight_bytes,
        largest.weights,
    )


@click.command()
@click.argument("models", nargs=-1)
@click.option("--switches", default=250, show_default=True, help="At least so many under each policy and plan.")
@click.option("--plan", "plans", multiple=True, type=click.Choice([*PLANS]), default=[*PLANS])
@click.option("--policy", "policies", multiple=True, type=click.Choice([*POLICIES]), default=[*POLICIES])
@click.option("--json", "path", type=click.Path(path_type=Path))
def main(
    models: tuple[str, ...], switches: int, plans: tuple[str, ...], policies: tuple[str, ...], path: Path | None
) -> None:
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if not corpus:
        raise click.UsageError("EDGEWRIGHT_CORPUS names no folder with models.")
    rows = []
    for model in models or MODELS:
        whole = read(Path(corpus).resolve() / "models" / f"{model}.tflite")
        networks = [narrowed(whole, width) for width in WIDTHS]
        for plan in plans:
            with tempfile.TemporaryDirectory() as name:
                application = scenarios_of(networks, TARGET, Path(name), PLANS[plan])
            largest = alone(application, networks[0])
            for policy in policies:
                rows.append(row(model, plan, application, POLICIES[policy], largest, switches))
                click.echo(f"{rows[-1]}", err=True)
    Console(width=140).print(table_of(rows))
    if path is not None:
        path.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
    sys.exit(1 if any(one.misses for one in rows) else 0)


def table_of(rows: list[Row]) -> Table:
    table = Table(title=f"Four widths that switch on a {TARGET}", title_justify="left")
    names = ("network", "plan", "policy")
    figures = ("switches", "wrong", "longest wait", "beyond wait + frame", "delay", "slower", "RAM", "code", "weights")
    for heading in (*names, *figures):
        table.add_column(heading, justify="left" if heading in names else "right")
    for one in rows:
        table.add_row(
            one.model,
            one.plan,
            one.policy,
            f"{one.switches:,}",
            str(one.wrong),
            f"{100 * one.worst_wait:.2f} %",
            f"{one.worst_excess:+,}",
            f"{one.mean_delay:.3f} frames",
            f"{100 * (one.slower - 1):+.1f} %",
            f"{one.ram_alone:,} {one.ram - one.ram_alone:+,} B",
            f"{one.code / one.code_alone:.2f}",
            f"{one.weights / one.weights_alone:.2f}",
        )
    return table


if __name__ == "__main__":
    main()
