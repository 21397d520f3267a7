"""`edgewright adapt`: scenarios of one application that switch at run time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import click

from .. import text
from ..adaptive.compiled import compile_switching
from ..adaptive.delays import delay_outcome
from ..adaptive.deploying import SwitchingApplication, with_policy
from ..adaptive.description import LayerAttribute
from ..adaptive.front_outcome import FrontOutcome
from ..adaptive.live_run import Requests, ShownSwitch, run_live
from ..adaptive.outcome import adapt_outcome
from ..adaptive.requests import LineRequests, RandomRequests, SocketRequests
from ..adaptive.runtime import on_this_machine
from ..adaptive.scenarios import AdaptiveApplication, load_adaptive
from ..emit.packaging import check_folder, write_folder
from ..files import write_atomic
from ..program.switching import SwitchPolicy
from ..report.adaptive_page import adaptive_page
from .adapt_tables import (
    delays_table,
    doubled_table,
    front_table,
    measured_pairs_table,
    memory_table,
    paper_delays_table,
    scenarios_table,
    supergraph_table,
    switching_library_table,
    transitions_table,
)
from .common import console, print_json, print_notes, print_written, shown, working
from .simulation_tables import simulate_environment

FRAMES = 1000  # with --run


@dataclass(frozen=True, slots=True)
class AdaptOptions:
    """The options of `edgewright adapt`, as parsed."""

    application: Path
    share: tuple[LayerAttribute, ...] | None
    request_at: float
    environment: Path | None
    timeline: Path | None
    policy: str | None
    asked_front: bool
    asked_delays: bool
    is_run: bool
    frames: int | None
    requests: str | None
    compiles: bool
    output: Path | None
    force: bool
    verify: bool
    page: Path | None
    as_json: bool


def adapt(options: AdaptOptions) -> None:
    asked = {
        "--environment": options.environment is not None,
        "--pareto": options.asked_front,
        "--simulate": options.asked_delays,
        "--run": options.is_run,
        "--compile": options.compiles,
    }
    tasks = [name for name, is_asked in asked.items() if is_asked]
    is_paper = not tasks and options.page is None
    for is_wrong, why in (
        (len(tasks) > 1, f"{' and '.join(tasks)} are different tasks: ask for one at a time."),
        (
            options.timeline and options.environment is None,
            "--timeline shows a simulated day: add --environment ENV.TOML.",
        ),
        (
            options.environment and options.page,
            "--page shows switches: leave --environment out, or ask for --timeline.",
        ),
        (options.environment and options.policy, "--environment lets switches take no time: leave --policy out."),
        (
            options.share is not None and not (is_paper or options.asked_delays),
            f"--share is for the paper's model: leave {(tasks or ['--page'])[0]} out.",
        ),
        (
            is_paper and options.policy,
            "--policy is for --pareto, --simulate, --run, --compile and --page: add one of them.",
        ),
        ((options.frames or options.requests) and not options.is_run, "--frames and --requests are for --run: add it."),
        (options.output and not options.compiles, "-o is the folder of --compile: add it."),
    ):
        if is_wrong:
            raise click.UsageError(why)
    if options.environment is not None:
        simulate_environment(options.application, options.environment, options.timeline, options.as_json)
        return
    with working("reading the networks"):
        application = load_adaptive(options.application)
        if options.policy is not None:
            application = with_policy(application, SwitchPolicy(options.policy))
    if options.page is not None:
        with working("laying scenarios out for each policy"):
            write_atomic(options.page, adaptive_page(delay_outcome(application)))
    if options.asked_front:
        _front(application, options.as_json)
    elif options.asked_delays:
        _delays(
            application,
            None if options.policy is None else SwitchPolicy(options.policy),
            options.share,
            options.as_json,
        )
    elif options.is_run:
        _run(application, options.frames, options.requests, options.as_json)
    elif options.compiles:
        _compile(
            application, options.output or Path(application.file.name), options.force, options.verify, options.as_json
        )
    else:  # the page includes the tables of the paper's model
        _paper(application, options.share, options.request_at, options.as_json)
    if not options.as_json:
        print_written([options.page])


def _paper(
    application: AdaptiveApplication, share: tuple[LayerAttribute, ...] | None, at: float, as_json: bool
) -> None:
    with working("planning all scenarios"):
        outcome = adapt_outcome(application, share, at)
    if as_json:
        print_json(outcome.to_dict())
        return
    console.print(scenarios_table(outcome))
    console.print(supergraph_table(outcome))
    console.print(memory_table(outcome))
    console.print(transitions_table(outcome))
    if any(one.doubled for one in outcome.transitions):
        console.print(doubled_table(outcome))
    for finding in outcome.findings:
        console.print(f"finding: {shown(finding)}", soft_wrap=True)
    print_notes(outcome.notes)


def _front(application: AdaptiveApplication, as_json: bool) -> None:
    with working("laying scenarios out for one limit after the other"):
        outcome = FrontOutcome(SwitchingApplication(application, application.file.adapt.policy))
        data = outcome.to_dict()
    if as_json:
        print_json(data)
        return
    console.print(front_table(outcome))
    print_notes(outcome.notes)


def _delays(
    application: AdaptiveApplication,
    policy: SwitchPolicy | None,
    share: tuple[LayerAttribute, ...] | None,
    as_json: bool,
) -> None:
    with working("laying scenarios out for each policy"):
        outcome = delay_outcome(application, None if policy is None else [policy], share)
    if as_json:
        print_json(outcome.to_dict())
        return
    console.print(delays_table(outcome))
    console.print(paper_delays_table(outcome))
    console.print(outcome.judged, soft_wrap=True)
    print_notes([*(f"{one.value} {why}" for one, why in outcome.left_out.items()), *application.notes])


def _run(application: AdaptiveApplication, frames: int | None, address: str | None, as_json: bool) -> None:
    here = on_this_machine(application)
    switching = SwitchingApplication(here, here.file.adapt.policy)
    source: Requests
    if address is not None:
        source = SocketRequests(address)
    else:
        source = RandomRequests() if sys.stdin.isatty() else LineRequests(sys.stdin)
        frames = frames or FRAMES

    def tell(one: ShownSwitch) -> None:
        delay = "" if one.delay is None else f", {text.duration(one.delay)} after the request"
        click.echo(f"frame {one.frame}: {one.old} → {one.new}{delay}", err=as_json)

    outcome = run_live(
        switching,
        source,
        frames,
        lambda pairs: None if as_json else console.print(measured_pairs_table(pairs, switching.policy.value)),
        tell,
    )
    if as_json:
        print_json(outcome.to_dict())
    else:
        shares = ", ".join(f"{text.plural(n, 'frame')} by {name}" for name, n in outcome.check.by_scenario.items())
        console.print(shown(f"{text.plural(outcome.requests, 'request')}, {shares}: {outcome.check.said}"))
    outcome.demand_right()


def _compile(application: AdaptiveApplication, folder: Path, force: bool, verify: bool, as_json: bool) -> None:
    check_folder(folder, force)
    with working("compiling and running all scenarios"):
        compiled = compile_switching(SwitchingApplication(application, application.file.adapt.policy), verify)
    about = {"edgewright": version("edgewright"), "name": application.file.name, "target": application.target.name}
    write_folder(folder, compiled.files, about, force)
    if as_json:
        print_json({**compiled.to_dict(), "output": str(folder)})
        return
    console.print(switching_library_table(compiled))
    print_notes(application.notes)
    print_written([folder])
    console.print(shown(compiled.sentence), style="green" if verify else "yellow", soft_wrap=True)
