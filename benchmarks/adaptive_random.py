"""Random switches between scenarios: none has a hazard or is slower than finishing first; the printed protocol fails.

    python benchmarks/adaptive_random.py [--cases 1000000] [--first SEED] [--jobs 1] [--json FILE]

Every other case is a pair of random graphs on one to four processors, pipelined or not, with buffers at random
addresses. It switches under every policy that suits it. The others are pairs of chains of the layers of one supergraph,
whose edges have a buffer each, on two processors; they also switch as Algorithm 7 of M 5.9 is printed, for a request in
each old step: with the delays of Algorithm 6, and with line 6 as it stands. Each switch is replayed byte by byte.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgewright.adaptive.steps import Scenario
from edgewright.adaptive.switch_check import hazards
from edgewright.adaptive.transition import StepRun, Timeline, Transition, transition
from edgewright.program.switching import SwitchPolicy
from tests.adaptive.random_scenarios import LAYERS, random_chain, random_scenario

BLOCK = 500  # cases that one task examines
TROUBLES = 5  # that a task tells in words
EXAMPLES = 20  # of them that the JSON keeps


def supergraph_cells() -> dict[object, int]:
    """A cell for each layer and each edge of the supergraph of all chains."""
    edges = [(a, b) for b in range(LAYERS) for a in range(b)]
    return {what: 1 << at for at, what in enumerate((*range(LAYERS), *edges))}


CELLS = supergraph_cells()


def examine(first: int, count: int) -> tuple[Counter[str], list[str]]:
    """The counts of a block of cases, and the first troubles in words."""
    counts: Counter[str] = Counter()
    troubles: list[str] = []
    for seed in range(first, first + count):
        rng = random.Random(seed)
        found = [*(examine_graphs if seed % 2 else examine_chains)(rng, counts)]
        counts["troubles"] += len(found)
        troubles += [f"case {seed}: {trouble}" for trouble in found[: TROUBLES - len(troubles)]]
    return counts, troubles


def examine_graphs(rng: random.Random, counts: Counter[str]) -> Iterator[str]:
    processors = 1 + int(rng.random() * 4)
    old, new = random_scenario(rng, "o", processors), random_scenario(rng, "n", processors)
    counts["graphs"] += 1
    counts[f"processors {processors}"] += 1
    counts["pipelined"] += old.interval < old.latency or new.interval < new.latency
    for policy in SwitchPolicy:
        if policy is SwitchPolicy.OVERLAP and processors == 1:
            continue
        if policy is SwitchPolicy.OVERTAKE and old.processors > 1:
            continue
        yield from examine_switch(rng, transition(old, new, policy, processors), counts)


def examine_chains(rng: random.Random, counts: Counter[str]) -> Iterator[str]:
    old, new = random_chain(rng, "o", CELLS), random_chain(rng, "n", CELLS)
    counts["chains"] += 1
    one = transition(old, new, SwitchPolicy.OVERLAP, 2)
    yield from examine_switch(rng, one, counts)
    delays = printed_delays(old, new)
    requests = range(1, len(old.steps) + 1)
    races = {step for step in requests if has_hazard(printed_switch(one, delays, step))}
    losses = {step for step in requests if loses_a_step(one, delays, step)}
    counts["requests"] += len(requests)
    for what, failing in (("race", races), ("loss", losses), ("failure", races | losses)):
        counts[f"printed: pairs with a {what}"] += bool(failing)
        counts[f"printed: requests with a {what}"] += len(failing)


def examine_switch(rng: random.Random, one: Transition, counts: Counter[str]) -> Iterator[str]:
    """A switch at a random time, and at the worst one. Naive is to finish first."""
    old, new, policy = one.old, one.new, one.policy.value
    arrivals = {int(rng.random() * 4 * old.interval) / 4, max(old.critical_arrivals, key=one.delay)}
    for arrival in sorted(arrivals):
        timeline = one.timeline(arrival)
        naive = old.latency - arrival + new.latency
        counts[f"{policy}: switches"] += 1
        counts[f"{policy}: faster"] += timeline.delay < naive
        counts[f"{policy}: slower"] += timeline.delay > naive
        wrong = [*hazards(timeline)]
        counts[f"{policy}: hazards"] += bool(wrong)
        yield from wrong[:1]
        if timeline.delay > naive:
            yield f"{policy} takes {timeline.delay}, finishing first {naive}"
        if not timeline.delay == one.delay(arrival) <= one.worst_delay:
            yield f"{policy} takes {timeline.delay}; predicted {one.delay(arrival)}, at worst {one.worst_delay}"


def has_hazard(timeline: Timeline) -> bool:
    return next(hazards(timeline), None) is not None


def printed_delays(old: Scenario, new: Scenario) -> list[int]:
    """X by Algorithm 6 as printed. A step's name is its layer."""
    found, x = [], 0
    for step in new.steps:
        for j, other in enumerate(old.steps, start=1):
            if other.name == step.name and j >= x:
                x = j
        found.append(x)
        x += 1
    return found


def printed_switch(one: Transition, delays: Sequence[int], requested: int) -> Timeline:
    """Algorithm 7 for a request in an old step, counted from 1, with `i + 1` in line 6 instead of what is printed."""
    old, new = one.old.steps, one.new.steps
    runs = [StepRun(False, j, 0, one.old.starts[j], one.old.ends[j]) for j in range(requested)]
    now = runs[-1].end
    q, i = 2, 1
    for j in range(requested + 1, len(old) + 1):
        started = [StepRun(False, j - 1, 0, now, now + old[j - 1].time)]
        if i <= len(new) and q >= delays[i - 1] - requested + 2:
            started.append(StepRun(True, i - 1, 1, now, now + new[i - 1].time))
            i += 1
        now = max(run.end for run in started)
        runs += started
        q += 1
    for step in range(i, len(new) + 1):
        runs.append(StepRun(True, step - 1, 1, now, now + new[step - 1].time))
        now = runs[-1].end
    return Timeline(one, runs[requested - 1].start, tuple(runs))


def loses_a_step(one: Transition, delays: Sequence[int], requested: int) -> bool:
    """Whether line 6 as printed, `i = (i + 1) mod |L|`, comes to a step 0, which does not exist."""
    q, i, count = 2, 1, len(one.new.steps)
    for _ in range(requested + 1, len(one.old.steps) + 1):
        if q >= delays[i - 1] - requested + 2:
            i = (i + 1) % count
            if i == 0:
                return True
        q += 1
    return False


@click.command()
@click.option("--cases", default=1_000_000, show_default=True)
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--jobs", default=1, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(cases: int, first: int, jobs: int, file: Path | None) -> None:
    blocks = [(at, min(BLOCK, first + cases - at)) for at in range(first, first + cases, BLOCK)]
    work = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(examine)(*block) for block in blocks)
    console, counts, troubles = Console(width=120), Counter[str](), list[str]()
    for found, told in work:
        counts += found
        troubles += told
        for trouble in told:
            console.print(trouble, style="red", markup=False)
    table = Table("policy", "switches", "faster than finishing first", "slower", "with a hazard")
    for policy in (each.value for each in SwitchPolicy):
        switches = counts[f"{policy}: switches"]
        share = f"{counts[f'{policy}: faster'] / max(1, switches):.1%}"
        bad = (str(counts[f"{policy}: {what}"]) for what in ("slower", "hazards"))
        table.add_row(policy, str(switches), share, *bad)
    console.print(table)
    printed = Table("Algorithm 7 as printed", "number", "races", "line 6 loses a step", "one of both")
    for what, total in (("pairs", counts["chains"]), ("requests", counts["requests"])):
        failing = (counts[f"printed: {what} with a {kind}"] for kind in ("race", "loss", "failure"))
        printed.add_row(what, str(total), *(f"{number / max(1, total):.1%}" for number in failing))
    console.print(printed)
    if file is not None:
        result = {"cases": cases, "first": first, "counts": dict(sorted(counts.items()))}
        file.write_text(json.dumps({**result, "examples": sorted(troubles)[:EXAMPLES]}, indent=1) + "\n")
    sys.exit(1 if counts["troubles"] else 0)


if __name__ == "__main__":
    main()
