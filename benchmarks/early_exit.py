"""One network with early exits beside scenarios that switch, at 20 throughput demands: accuracy and memory.

    python benchmarks/early_exit.py DATA.npz [--steps 1200] [--seed 1 ...] [--models FOLDER] [--json FILE]

The network with early exits is in the manner of MSDNet (Huang et al. 2018): two scales, each layer reads all before it
at its scale, and each of four exits gives class scores from the coarse scale; all exits are trained together. The
scenarios are four plain networks, trained one by one. As in M 5.10.4, a demand is the least throughput, and each side
runs the exit or the network that is most accurate on the validation part among those that are fast enough. Both are
applications with scenarios in int8: the exits are networks that share their weights. Instructions are counted on a
virtual Cortex-M4, and one is assumed to take one cycle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
import onnx
from onnx.utils import Extractor
from rich.console import Console
from rich.table import Table

from edgewright.adaptive.runtime import Adaptive, adaptive
from edgewright.platform import load_board
from edgewright.samples.builder import ModelBuilder
from labelled_data import LabelledData, Samples, read_labelled
from trainable import PLAIN, class_scores, convolved, plain_cnn, trained
from trained_scenarios import BoardFirmware, application_of, frames, results_here

EXITS = 4
FINE, COARSE = 8, 16  # channels that each layer adds at its scale
HEAD = 16  # channels before the scores of an exit
BOARD = "nucleo-f446re"
BOARD_FRAMES = 8
DEMANDS = 20


@dataclass(frozen=True)
class Choice:
    """An exit, or a scenario."""

    name: str
    validation: float  # accuracy
    test: float
    instructions: float  # mean of a frame
    arena_bytes: int


@dataclass(frozen=True)
class AdaptiveSystem:
    """All exits, or all scenarios, in one application."""

    choices: tuple[Choice, ...]
    arena_bytes: int
    weight_bytes: int

    def at(self, throughput: float, clock: float) -> Choice | None:
        """The choice that validates best among those that keep this throughput; the faster of equals."""
        fast = [each for each in self.choices if clock / each.instructions >= throughput]
        return max(fast, key=lambda each: (each.validation, -each.instructions), default=None)


@dataclass(frozen=True)
class Trial:
    seed: int
    exits: AdaptiveSystem
    scenarios: AdaptiveSystem


def dense_exits(data: LabelledData) -> onnx.ModelProto:
    """A network of two scales with an output after each layer."""
    net = ModelBuilder("exits")
    fine = [convolved(net, net.input(1, *data.shape), FINE, 2)]
    coarse = [convolved(net, fine[0], COARSE, 2)]
    exits = []
    for number in range(1, EXITS + 1):
        above, beside = _joined(net, fine), _joined(net, coarse)
        coarse += [convolved(net, above, COARSE // 2, 2), convolved(net, beside, COARSE // 2)]
        if number < EXITS:
            fine.append(convolved(net, above, FINE))
        head = convolved(net, _joined(net, coarse), HEAD, 2)
        exits.append(class_scores(net, head, data.classes, f"exit{number}"))
    return net.model(*exits)


def _joined(net: ModelBuilder, parts: Sequence[str]) -> str:
    return net.concat(*parts) if len(parts) > 1 else parts[0]


def prefixes(model: onnx.ModelProto) -> Mapping[str, onnx.ModelProto]:
    """For each exit, what it takes to compute its scores, and no other exit."""
    inputs = [model.graph.input[0].name]
    return {exit_.name: Extractor(model).extract_model(inputs, [exit_.name]) for exit_ in model.graph.output}


def measured(data: LabelledData, steps: int, seed: int, kept: Path | None) -> Trial:
    exits = trained(dense_exits(data), data, steps=steps, seed=seed, folder=kept)
    plain = {name: trained(plain_cnn(name, data), data, steps=steps, seed=seed, folder=kept) for name in PLAIN}
    return Trial(seed, system_of(prefixes(exits), data), system_of(plain, data))


def system_of(models: Mapping[str, onnx.ModelProto], data: LabelledData) -> AdaptiveSystem:
    """Each model's accuracy as compiled here, its instructions on the board, and the memory of all."""
    with TemporaryDirectory() as folder:
        application = application_of(models, data, Path(folder))
        board = BoardFirmware.of(application)
        few = frames(application, data.test.x[:BOARD_FRAMES])
        choices = []
        with adaptive(application) as running:
            for name in models:
                accuracies = (_accuracy(running, part, name) for part in (data.validation, data.test))
                plan = board.library.code.deployment.plans[name]
                choices.append(Choice(name, *accuracies, board.run(few, name)[0], sum(plan.arenas.values())))
        arenas = board.library.code.arenas.values()
        return AdaptiveSystem(tuple(choices), sum(each.bytes for each in arenas), board.library.weight_bytes)


def _accuracy(running: Adaptive, part: Samples, scenario: str) -> float:
    scores = results_here(running, frames(running.application, part.x), scenario).scores
    return float((scores.argmax(1) == part.y).mean())


def demands(trials: Sequence[Trial], clock: float) -> list[float]:
    """From what every choice keeps to what only the fastest one keeps, each a constant factor above the one before."""
    costs = [[each.instructions for s in (one.exits, one.scenarios) for each in s.choices] for one in trials]
    slowest, fastest = clock / max(map(max, costs)), clock / max(map(min, costs))
    return [float(value) for value in np.geomspace(slowest, fastest * (1 - 1e-9), DEMANDS)]


def table_of(trials: Sequence[Trial], clock: float, name: str) -> Table:
    table = Table(title=f"{name}: mean accuracy of {len(trials)} trainings on the test part", title_justify="left")
    table.add_column("frames/s at least", justify="right")
    for side in ("early exit", "scenario"):
        table.add_column(side)
        for heading in ("accuracy", "arena in use, B"):
            table.add_column(heading, justify="right")
    for demand in demands(trials, clock):
        row = [f"{demand:,.0f}"]
        for systems in ([one.exits for one in trials], [one.scenarios for one in trials]):
            chosen = [system.at(demand, clock) for system in systems]
            row += _cells([each for each in chosen if each is not None], len(trials))
        table.add_row(*row)
    return table


def _cells(chosen: Sequence[Choice], trials: int) -> list[str]:
    if len(chosen) < trials:
        return ["none is fast enough", "", ""]
    names = ", ".join(dict.fromkeys(each.name for each in chosen))
    accuracy = np.mean([each.test for each in chosen])
    return [names, f"{accuracy:.1%}", f"{max(each.arena_bytes for each in chosen):,}"]


@click.command()
@click.argument("path", metavar="DATA.npz", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--steps", default=1200, show_default=True, help="Batches that each network is trained on.")
@click.option("--seed", "seeds", multiple=True, type=int, default=(1,), show_default=True)
@click.option("--models", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Keep trained networks.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(path: Path, steps: int, seeds: tuple[int, ...], models: Path | None, file: Path | None) -> None:
    data, clock = read_labelled(path), float(load_board(BOARD).processors[0].clock)
    trials = [measured(data, steps, seed, models) for seed in seeds]
    console = Console(width=140)
    console.print(table_of(trials, clock, data.name))
    for name, system in (("early exits", trials[0].exits), ("scenarios", trials[0].scenarios)):
        costs = ", ".join(f"{each.name} {each.instructions:,.0f}" for each in system.choices)
        memory = f"arena {system.arena_bytes:,} B, weights {system.weight_bytes:,} B"
        console.print(f"{name} together: {memory}; instructions: {costs}", highlight=False)
    if file is not None:
        rows = []
        for demand in demands(trials, clock):
            chosen = [(one.exits.at(demand, clock), one.scenarios.at(demand, clock)) for one in trials]
            rows.append({"demand": demand, "chosen": [[each and asdict(each) for each in pair] for pair in chosen]})
        found = {"data": data.name, "clock": clock, "trials": [asdict(one) for one in trials], "demands": rows}
        file.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
