"""Switches on this machine: delays of `overlap` on two cores beside those of `finish`, predictions, random requests.

    python benchmarks/adaptive.py [APPLICATION ...] [--repeats 15] [--requests 10000] [--json FILE]

The applications are those of `adaptive_networks.py`. Every pair of scenarios switches under both policies in turns, at
the same moments of a frame; `overlap` has the layout with the shortest delays. Ratios are of medians over all requests.
Then random requests come while frames are computed under each policy, and every result is compared with the
reference. Ends with status 1 when a result is wrong, lost, doubled or out of order, when half of an application's pairs
take more than 0.75 of their time under `finish`, when one takes more than 1.03, or when a prediction is more than 15 %
off. Other work on the machine makes delays longer: its load is printed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import permutations
from pathlib import Path
from statistics import median

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from adaptive_networks import APPLICATIONS, LARGE, application_with, slices
from edgewright.adaptive.deploying import SwitchingApplication, with_policy
from edgewright.adaptive.measured import MeasuredDelay, SwitchMeter
from edgewright.adaptive.requests import RandomRequests
from edgewright.adaptive.result_check import FrameSource, ResultCheck
from edgewright.adaptive.runtime import Adaptive
from edgewright.program.switching import SwitchPolicy

POLICIES = (SwitchPolicy.FINISH, SwitchPolicy.OVERLAP)
VARIETY = 2  # different frames: references of large networks take seconds
MOST_MEDIAN, MOST, MOST_ERROR = 0.75, 1.03, 0.15


@dataclass(frozen=True)
class PairRow:
    """One switch: seconds from a request to the first result, by policy, as measured and as predicted."""

    old: str
    new: str
    measured: dict[str, float]
    predicted: dict[str, float]
    errors: dict[str, float]  # the median of (measured - predicted) / predicted

    @property
    def ratio(self) -> float:
        return self.measured["overlap"] / self.measured["finish"]


@dataclass(frozen=True)
class Row:
    application: str
    pairs: tuple[PairRow, ...]
    requests: dict[str, int]
    results: dict[str, str]  # what was wrong under each policy
    is_right: bool

    @property
    def troubles(self) -> Iterator[str]:
        ratios = [pair.ratio for pair in self.pairs]
        if median(ratios) > MOST_MEDIAN:
            yield f"the median ratio is {median(ratios):.2f}"
        if max(ratios) > MOST:
            yield f"the largest ratio is {max(ratios):.2f}"
        for pair in self.pairs:
            for policy, error in pair.errors.items():
                if abs(error) > MOST_ERROR:
                    yield f"{pair.old} to {pair.new} under {policy} takes {error:+.0%} than predicted"
        if not self.is_right:
            yield "results are wrong"


def at_work(application: str, stack: ExitStack) -> dict[SwitchPolicy, Adaptive]:
    """The application under each policy, with the shortest delays."""
    found, networks = {}, slices(application)
    for policy in POLICIES:
        one = SwitchingApplication(with_policy(application_with(networks, "host"), policy), policy)
        found[policy] = stack.enter_context(Adaptive(one, one.front.fastest_within()))
    return found


def examine(name: str, repeats: int, requests: int) -> Row:
    with ExitStack() as stack:
        running = at_work(name, stack)
        source = FrameSource(running[SwitchPolicy.FINISH].application, VARIETY)
        check, rng = ResultCheck(source), np.random.default_rng(1)
        meters = {policy: SwitchMeter(one, source, check) for policy, one in running.items()}
        pairs = [*permutations(running[SwitchPolicy.FINISH].scenarios, 2)]
        found: dict[tuple[str, str], dict[str, list[MeasuredDelay]]] = {
            pair: {policy.value: [] for policy in POLICIES} for pair in pairs
        }
        for number in range(repeats):
            for pair in pairs:
                share = float(rng.random())
                for policy in POLICIES[:: 1 if number % 2 else -1]:
                    found[pair][policy.value].append(meters[policy].measure(*pair, share))
        counts = {policy.value: ask_at_random(one, source, check, requests) for policy, one in running.items()}
        rows = tuple(pair_row(pair, trials) for pair, trials in found.items())
        return Row(name, rows, counts, {"all": check.said}, check.is_right)


def pair_row(pair: tuple[str, str], trials: dict[str, list[MeasuredDelay]]) -> PairRow:
    return PairRow(
        *pair,
        {policy: median(one.measured for one in ones) for policy, ones in trials.items()},
        {policy: median(one.predicted for one in ones) for policy, ones in trials.items()},
        {policy: median(one.measured / one.predicted - 1 for one in ones) for policy, ones in trials.items()},
    )


def ask_at_random(running: Adaptive, source: FrameSource, check: ResultCheck, requests: int) -> int:
    """Computes frames until so many requests have come; how many there were."""
    asking, taken = RandomRequests(), 0
    check.begin()

    def frames() -> Iterator[dict[str, np.ndarray]]:
        nonlocal taken
        while asking.count < requests:
            yield dict(source.frame(taken))
            taken += 1

    with asking.feeding(running):
        for result in running(frames()):
            check.take(result)
    check.end(taken)
    return asking.count


def table_of(row: Row) -> Table:
    ratios = [pair.ratio for pair in row.pairs]
    said = f"{row.application}: overlap / finish {median(ratios):.2f} in the median, at most {max(ratios):.2f}"
    table = Table("switch", title=said, title_justify="left")
    for heading in ("finish, ms", "overlap, ms", "ratio", "predicted", "", "finish off by", "overlap off by"):
        table.add_column(heading, justify="right")
    for pair in row.pairs:
        measured, predicted = (
            [f"{1e3 * one[p.value]:.3f}" for p in POLICIES] for one in (pair.measured, pair.predicted)
        )
        errors = [f"{pair.errors[policy.value]:+.0%}" for policy in POLICIES]
        table.add_row(f"{pair.old} → {pair.new}", *measured, f"{pair.ratio:.2f}", *predicted, *errors)
    return table


@click.command()
@click.argument("applications", nargs=-1, type=click.Choice([*APPLICATIONS, *LARGE]))
@click.option("--repeats", default=15, show_default=True, help="Requests for each pair and policy.")
@click.option("--requests", default=10_000, show_default=True, help="At random moments, for each policy.")
@click.option("--json", "path", type=click.Path(path_type=Path))
def main(applications: tuple[str, ...], repeats: int, requests: int, path: Path | None) -> None:
    if not os.environ.get("EDGEWRIGHT_CORPUS"):
        raise click.UsageError("EDGEWRIGHT_CORPUS names no folder with models.")
    console, rows = Console(width=120), []
    for name in applications or (*APPLICATIONS, *LARGE):
        rows.append(row := examine(name, repeats, requests))
        console.print(table_of(row))
        console.print(f"{row.requests} random requests, {row.results['all']}; load {os.getloadavg()[0]:.1f}")
        for trouble in row.troubles:
            console.print(trouble, style="red", markup=False)
    if path is not None:
        path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    sys.exit(1 if any([*row.troubles] for row in rows) else 0)


if __name__ == "__main__":
    main()
