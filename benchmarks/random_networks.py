"""Random networks through the whole tool: ten thousand models in both formats, planned in every mode, run and compared.

    python benchmarks/random_networks.py [--networks 10000] [--boards 1000] [--first SEED] [--jobs 2] [--json FILE]

Models are drawn as files (ONNX in float32 and QDQ, TFLite in float32, int8 and dynamic range), read, planned (whole
layers, plain, by rows, least RAM, tiles by hand, pulled inputs; every alignment) and emitted for some family of
kernels. The code is run on this machine, or for a share of them on a virtual board, and compared: with the numpy
kernels, integers bit for bit, and these with the model's own runtime. Troubles must be 0; each is printed with the seed
that shows it again.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter

import click
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgewright.emit.firmware import measure
from tests.helpers.emitting import WARNINGS
from tests.helpers.emitting_batch import build_together
from tests.helpers.random_models import KINDS
from tests.helpers.random_trials import BOARDS, MODES, Prepared, Trial, prepared, refused, story

BATCH = 48  # libraries in one call of the compiler
FLAGS = tuple("-Og" if flag == "-O1" else flag for flag in WARNINGS)  # most of the time is the compiler's


@dataclass(frozen=True)
class Verdict:
    """What came of a trial; no troubles where all is right."""

    trial: Trial
    mode: str
    target: str
    alignment: int
    layers: int
    troubles: tuple[str, ...]


def examine(trials: Sequence[Trial]) -> list[Verdict]:
    """The verdicts on some trials, compiled together where they run on this machine."""
    made, verdicts = [], []
    for number, trial in enumerate(trials):
        try:
            made.append(prepared(trial, f"n{number}"))
        except Exception as error:  # whatever it is, it is a trouble of this trial
            verdicts.append(Verdict(trial, "none", "none", 0, 0, (refused(trial, error),)))
    here = [item for item in made if not item.trial.is_board]
    verdicts += [_verdict(item, troubles) for item, troubles in _run_here(here)]
    verdicts += [_verdict(item, _on_board(item)) for item in made if item.trial.is_board]
    return verdicts


def _verdict(made: Prepared, troubles: tuple[str, ...]) -> Verdict:
    plan = made.plan
    return Verdict(made.trial, made.mode, made.library.target.name, plan.alignment, len(plan.network.layers), troubles)


def _run_here(made: Sequence[Prepared]) -> Iterator[tuple[Prepared, tuple[str, ...]]]:
    """Each with its troubles; where the compiler does not take all of them together, one by one."""
    if not made:
        return
    try:
        built = build_together([item.library for item in made], FLAGS)
    except AssertionError as error:
        if len(made) == 1:
            yield made[0], (f"compiler: {error}",)
            return
        for item in made:
            yield from _run_here([item])
        return
    for item, native in zip(made, built, strict=True):
        try:
            yield item, story(item, native.run(item.inputs, poison=0xFF if item.trial.seed % 2 else 0x55))
        except AssertionError as error:
            yield item, (f"emitted code: {error}",)


def _on_board(made: Prepared) -> tuple[str, ...]:
    """Troubles of a run on a virtual board; one that takes more stack than was promised is an error there."""
    try:
        measured = measure(made.library, made.inputs)
    except Exception as error:
        return (refused(made.trial, error),)
    found = story(made, measured.outputs)
    if measured.ram_linked != made.plan.peak_bytes:
        found += (f"board: {measured.ram_linked} bytes of RAM are linked, {made.plan.peak_bytes} were planned",)
    return found


def trials(networks: int, boards: int, first: int, targets: tuple[str, ...] = BOARDS) -> Iterator[Trial]:
    """Kinds take turns, and those for boards, of these targets, are spread over all."""
    turns = -(-networks // len(KINDS))  # of every kind
    for number in range(networks):
        turn, kind = divmod(number, len(KINDS))
        place = kind * turns + turn
        is_board = (place + 1) * boards // networks > place * boards // networks
        yield Trial(KINDS[kind], first + turn, is_board, targets)


def _batches(drawn: Iterator[Trial]) -> Iterator[tuple[Trial, ...]]:
    while batch := tuple(islice(drawn, BATCH)):
        yield batch


def table_of(verdicts: Sequence[Verdict], what: str, of: Mapping[Verdict, str]) -> Table:
    """How many there were of each, and how many troubles."""
    counts = Counter(of[verdict] for verdict in verdicts)
    wrong = Counter(of[verdict] for verdict in verdicts if verdict.troubles)
    table = Table(title=f"random networks by {what}", title_justify="left")
    for heading in (what, "networks", "with troubles"):
        table.add_column(heading, justify="left" if heading == what else "right")
    for name, count in sorted(counts.items()):
        table.add_row(name, str(count), str(wrong[name]))
    return table


@click.command()
@click.option("--networks", default=10_000, show_default=True, help="How many.")
@click.option("--boards", default=1_000, show_default=True, help="How many of them on a virtual board.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option(
    "--target", "targets", multiple=True, default=BOARDS, type=click.Choice(BOARDS), help="Only boards of these."
)
@click.option("--json", "output", type=click.Path(path_type=Path), help="Where all figures go.")
def main(networks: int, boards: int, first: int, jobs: int, targets: tuple[str, ...], output: Path | None) -> None:
    console, start = Console(width=120), perf_counter()
    drawn = list(_batches(trials(networks, boards, first, targets)))
    verdicts: list[Verdict] = []
    for found in Parallel(n_jobs=jobs, return_as="generator")(delayed(examine)(batch) for batch in drawn):
        verdicts += found
        for verdict in found:
            for trouble in verdict.troubles:
                where = "board" if verdict.trial.is_board else "host"
                console.print(
                    f"{verdict.trial.kind} {verdict.trial.seed} ({verdict.mode}, {verdict.target}, {where}, "
                    f"alignment {verdict.alignment}): {trouble}",
                    soft_wrap=True, markup=False, highlight=False,
                )  # fmt: skip
        if sys.stderr.isatty() or len(verdicts) % (BATCH * 5) == 0:
            print(f"{len(verdicts)} of {networks}, {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    wrong = sum(bool(verdict.troubles) for verdict in verdicts)
    rows = {
        "kind": {v: v.trial.kind for v in verdicts},
        "mode": {v: v.mode for v in verdicts},
        "target": {v: f"{v.target}{' on a board' if v.trial.is_board else ''}" for v in verdicts},
        "alignment": {v: f"{v.alignment:3}" for v in verdicts},
    }
    for what, of in rows.items():
        console.print(table_of(verdicts, what, of))
    emulated = sum(verdict.trial.is_board for verdict in verdicts)
    console.print(f"{len(verdicts)} networks, {emulated} emulated, {wrong} with troubles")
    if output:
        about = {
            "networks": len(verdicts),
            "emulated": emulated,
            "troubles": wrong,
            "modes": list(MODES),
            "seconds": round(perf_counter() - start),
            **{what: Counter(of.values()) for what, of in rows.items()},
            "wrong": [
                {
                    "kind": v.trial.kind,
                    "seed": v.trial.seed,
                    "mode": v.mode,
                    "target": v.target,
                    "troubles": v.troubles,
                }
                for v in verdicts
                if v.troubles
            ],
        }
        output.write_text(json.dumps(about, indent=1) + "\n")
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
