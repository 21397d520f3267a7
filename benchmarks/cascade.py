"""A confidence cascade of two trained int8 networks: accuracy and mean instructions against the threshold.

    python benchmarks/cascade.py DATA.npz ... [--steps 1200] [--seed 1 ...] [--models FOLDER] [--json FILE]
        [--plot FILE.svg]

Two networks are trained on one part of the data, the threshold is chosen on a second and judged on a third: it is the
one with the fewest instructions among those as accurate as both networks alone. The cascade at that threshold is then
compiled, and run with every frame on this machine and with some on a virtual Cortex-M4, where instructions are counted.
"of large" divides its instructions by those of the large network alone, "hindsight" the fewest that any threshold
needs to be as accurate as the large network on the third part.
Ends with status 1 when the compiled cascade computes anything else than the rule says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from cascade_plot import CascadeCurve, cascade_svg
from edgewright.adaptive.runtime import Adaptive, adaptive
from edgewright.adaptive.scenarios import AdaptiveApplication
from labelled_data import LabelledData, Samples, read_labelled
from trainable import plain_cnn, trained
from trained_scenarios import Array, BoardFirmware, application_of, frames, results_here

PAIR = ("small", "large")
RULE = '[[rule]]\nscenario = "small"\nmargin_below = {margin!r}\nrequest = "large"\n'
BOARD_FRAMES = 24  # of each kind: those that stay with the small network, and those that are handed on


@dataclass(frozen=True)
class Judged:
    """Accuracy of a network or a cascade on the test part, and mean instructions of a frame."""

    accuracy: float
    instructions: float

    def is_better_than(self, other: Judged) -> bool:
        return self.accuracy >= other.accuracy and self.instructions < other.instructions


@dataclass(frozen=True)
class CascadeOutcome:
    data: str
    seed: int
    samples: int  # of the test part
    small: Judged
    large: Judged
    margin: float  # that was chosen, in real values
    handed_on: float  # share of the frames
    cascade: Judged
    cheapest: Judged | None  # that is better than the large network, had the test part chosen the threshold
    is_exact: bool  # whether the compiled cascade did what the rule says, on this machine and on the board
    curve: CascadeCurve

    @property
    def dominates(self) -> bool:
        return self.cascade.is_better_than(self.large) and self.cascade.accuracy >= self.small.accuracy


@dataclass(frozen=True)
class Part:
    """Both networks on one part of the data: whether each frame is right, and the small one's margin in steps."""

    small: Array
    large: Array
    steps: Array

    @classmethod
    def of(cls, small: Array, large: Array, y: Array) -> Part:
        second, best = np.sort(small.astype(np.int64))[:, -2:].T
        return cls(small.argmax(1) == y, large.argmax(1) == y, best - second)

    def accuracy(self, least: int) -> float:
        """Of the cascade that hands frames on whose margin is below so many steps."""
        return float(np.where(self.steps < least, self.large, self.small).mean())

    def handed_on(self, least: int) -> float:
        return float((self.steps < least).mean())


@dataclass(frozen=True)
class BoardCost:
    """Mean instructions of frames: of each network alone, and of the two kinds of frames of the cascade."""

    small: float
    large: float
    stays: float
    handed_on: float

    def of(self, share: float) -> float:
        """Of a frame when this share of them is handed on."""
        return (1 - share) * self.stays + share * self.handed_on


def measured(data: LabelledData, steps: int, seed: int, kept: Path | None) -> CascadeOutcome:
    models = {name: trained(plain_cnn(name, data), data, steps=steps, seed=seed, folder=kept) for name in PAIR}
    with TemporaryDirectory() as folder:
        alone = application_of(models, data, Path(folder))
        with adaptive(alone) as running:
            validation, test = (_part(running, samples) for samples in (data.validation, data.test))
        least = _chosen(validation)
        margin = _score_step(alone) * (least - 0.5)
        both = application_of(models, data, Path(folder), RULE.format(margin=margin))
        cost, is_exact = _tried(alone, both, frames(alone, data.test.x), test.steps < least)
    curve = CascadeCurve(
        f"{data.name}, seed {seed}",
        tuple(
            (_score_step(alone) * max(0.0, each - 0.5), test.accuracy(each), cost.of(test.handed_on(each)))
            for each in range(int(test.steps.max()) + 2)
        ),
        (float(test.small.mean()), cost.small),
        (float(test.large.mean()), cost.large),
        margin,
    )
    small, large = Judged(*curve.small), Judged(*curve.large)
    better = [one for one in (Judged(*figures) for _, *figures in curve.points) if one.is_better_than(large)]
    return CascadeOutcome(
        data.name,
        seed,
        len(data.test),
        small,
        large,
        margin,
        test.handed_on(least),
        Judged(test.accuracy(least), cost.of(test.handed_on(least))),
        min(better, key=lambda one: one.instructions, default=None),
        is_exact,
        curve,
    )


def _part(running: Adaptive, samples: Samples) -> Part:
    given = frames(running.application, samples.x)
    small, large = (results_here(running, given, name).scores for name in PAIR)
    return Part.of(small, large, samples.y)


def _score_step(application: AdaptiveApplication) -> float:
    """The real value of one step of the small network's scores."""
    network = application.scenario("small").network
    quant = network.tensors[network.outputs[0]].quant
    assert quant is not None
    return quant.scale[0]


def _tried(
    alone: AdaptiveApplication, both: AdaptiveApplication, given: Sequence[Array], is_handed_on: Array
) -> tuple[BoardCost, bool]:
    """The cost on the virtual board, and whether the compiled cascade computes what the rule says, there and here."""
    with adaptive(both) as running:
        here = results_here(running, given)
    board = BoardFirmware.of(both)
    is_exact = here.scenarios == tuple("large" if one else "small" for one in is_handed_on)
    apart = BoardFirmware.of(alone)
    small, large = (apart.run(given[:BOARD_FRAMES], each)[0] for each in PAIR)
    costs = [small, small + large]
    for kind, name in enumerate(PAIR):
        numbers = np.flatnonzero(is_handed_on == bool(kind))[:BOARD_FRAMES]
        if len(numbers):
            costs[kind], there = board.run([given[n] for n in numbers])
            is_exact &= {*there.scenarios} == {name} and np.array_equal(there.scores, here.scores[numbers])
    return BoardCost(small, large, *costs), is_exact


def _chosen(validation: Part) -> int:
    """The least margin, in steps of the scores, at which the cascade is as accurate as both networks."""
    least = max(validation.small.mean(), validation.large.mean())
    choices = range(1, int(validation.steps.max()) + 2)
    return next((each for each in choices if validation.accuracy(each) >= least), choices[-1])


def table_of(outcomes: Sequence[CascadeOutcome]) -> Table:
    table = Table(title="Accuracy on the test part, mean instructions of a frame (Cortex-M4)", title_justify="left")
    for heading in (
        "data",
        "seed",
        "test",
        "small",
        "",
        "large",
        "",
        "cascade",
        "",
        "of large",
        "handed on",
        "hindsight",
    ):
        table.add_column(heading, justify="left" if heading == "data" else "right")
    for one in outcomes:
        figures = [
            text
            for each in (one.small, one.large, one.cascade)
            for text in (f"{each.accuracy:.1%}", f"{each.instructions:,.0f}")
        ]
        ratio = one.cascade.instructions / one.large.instructions
        least = f"{one.cheapest.instructions / one.large.instructions:.2f}" if one.cheapest else "never"
        table.add_row(
            one.data, str(one.seed), str(one.samples), *figures, f"{ratio:.2f}", f"{one.handed_on:.1%}", least
        )
    return table


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--steps", default=1200, show_default=True, help="Batches that each network is trained on.")
@click.option("--seed", "seeds", multiple=True, type=int, default=(1,), show_default=True)
@click.option("--models", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Keep trained networks.")
@click.option("--json", "file", type=click.Path(path_type=Path))
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the first seed of each data set.")
def main(
    files: tuple[Path, ...],
    steps: int,
    seeds: tuple[int, ...],
    models: Path | None,
    file: Path | None,
    plot: Path | None,
) -> None:
    outcomes = [measured(read_labelled(path), steps, seed, models) for path in files for seed in seeds]
    Console(width=140).print(table_of(outcomes))
    if plot is not None:
        plot.write_text(cascade_svg([one.curve for one in outcomes if one.seed == seeds[0]]))
    if file is not None:
        found = [{**asdict(one), "dominates": one.dominates} for one in outcomes]
        file.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(0 if all(one.is_exact for one in outcomes) else 1)


if __name__ == "__main__":
    main()
