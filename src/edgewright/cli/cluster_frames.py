"""Sends frames through a coordinator, compares the results, and shows and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from ..cluster.running.coordinator import Coordinator, Replan
from ..cluster.running.metrics import json_lines
from ..cluster.running.monitor import ClusterStatus, Monitor, recoveries_to_list, recovery_words
from ..emit import Options
from ..emit.inputs import load_inputs
from ..emit.judge import judge
from ..errors import InputError, RunError
from ..network import Array, Network, random_inputs
from ..network.reference import OutputDifference, badness, compare, to_file_layout
from ..report.cluster_run_page import RunHistory, page_while_running, write_run_page
from .cluster_live import difference_to_dict, following, run_figures, status_table
from .common import console, print_json, print_notes, print_written

SAMPLES = 4  # random frames, used in turn
Inputs = dict[str, Array]


@dataclass(frozen=True)
class RunOutputs:
    """Where the results, the page and the statistics of a run go."""

    results: Path | None = None  # a folder
    page: Path | None = None
    statistics: Path | None = None
    as_json: bool = False


class Comparison:
    """Compares results with those of the untouched model for the same frames.

    `slack` widens the usual tolerance, as a share of the output's largest value.
    """

    def __init__(self, model: Path, network: Network, slack: float = 0.0) -> None:
        self.network, self.slack = network, slack
        self._truth = judge(model, network, Options())
        self.reference = self._truth.name
        self.worst: OutputDifference | None = None
        self._known: list[tuple[Inputs, dict[str, Array]]] = []  # recent frames and the results expected for them

    def note(self, frame: Inputs, result: Mapping[str, Array]) -> None:
        """Compares one result."""
        wanted = next((outputs for known, outputs in self._known if known is frame), None)
        if wanted is None:
            wanted = self._truth.run(frame)
            self._known = [*self._known[1 - SAMPLES :], (frame, wanted)]
        difference = compare(self.network, result, wanted)
        if self.slack:
            allowed = difference.allowed + self.slack * float(np.abs(wanted[difference.output]).max(initial=0))
            difference = replace(difference, allowed=allowed, passes=difference.largest <= allowed)
        if self.worst is None or badness(difference) > badness(self.worst):
            self.worst = difference


@dataclass
class Stream:
    """One run of frames through a coordinator."""

    coordinator: Coordinator
    network: Network
    replan: Replan
    outputs: RunOutputs
    comparison: Comparison | None = None
    events: Mapping[int, Callable[[], None]] = field(default_factory=dict)  # runs after this many results

    def run(self, frames: Iterator[Inputs]) -> None:
        """Runs all frames and prints the summary."""
        monitor, history, outputs = Monitor(self.coordinator), RunHistory(), self.outputs
        waiting: list[Inputs] = []  # frames whose results are not yet compared

        def source() -> Iterator[Inputs]:
            for frame in frames:
                if self.comparison:
                    waiting.append(frame)
                yield frame

        with ExitStack() as held:
            if outputs.statistics:
                held.enter_context(json_lines(outputs.statistics, monitor.status))
            if outputs.page:
                held.enter_context(page_while_running(outputs.page, monitor, history))
            if not outputs.as_json:
                held.enter_context(following(monitor))
            for number, result in enumerate(self.coordinator(source(), self.replan)):
                if event := self.events.get(number):
                    event()
                history.note(monitor)
                if self.comparison:
                    self.comparison.note(waiting.pop(0), result)
                if outputs.results:
                    _write_result(outputs.results, number, self.network, result)
            status = monitor.status()
        self._tell(status, history)

    def _tell(self, status: ClusterStatus, history: RunHistory) -> None:
        worst = self.comparison.worst if self.comparison else None
        reference = self.comparison.reference if self.comparison else ""
        recoveries, outputs = self.coordinator.recoveries, self.outputs
        if outputs.page:
            write_run_page(outputs.page, status, recoveries, history)
        if outputs.as_json:
            losses = {"losses": recoveries_to_list(recoveries), "reference": reference}
            print_json({**status.to_dict(), **losses, **(difference_to_dict(worst) if worst else {})})
        else:
            console.print(status_table(status))
            print_notes(map(recovery_words, recoveries))
            print_written([outputs.results, outputs.page, outputs.statistics])
            console.print(run_figures(status, worst, reference), soft_wrap=True)
        if worst and not worst.passes:
            raise RunError(f"results are not those of {reference}: {worst}")


def random_frames(network: Network, count: int) -> Iterator[Inputs]:
    return islice(cycle([random_inputs(network, seed) for seed in range(SAMPLES)]), count)


def frames_of(network: Network, paths: Sequence[Path], count: int | None) -> Iterator[Inputs]:
    """Frames from files, sorted by name; random frames if there are no files."""
    if not paths:
        return random_frames(network, count or 100)
    if missing := [path for path in paths if not path.exists()]:
        raise InputError(f"there is no file or folder '{missing[0]}'; give .npy or .npz files, or a folder of them")
    files = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    files = [file for file in files if file.suffix in (".npy", ".npz")]
    if not files:
        raise InputError(f"'{paths[0]}' has no frames; expected .npy or .npz files")
    for file in files:  # report unreadable files before preparing anything
        load_inputs(network, [file])

    def loaded() -> Iterator[Inputs]:
        for file in files:
            yield from load_inputs(network, [file])

    return islice(loaded(), count)


def _write_result(folder: Path, number: int, network: Network, result: dict[str, Array]) -> None:
    path = folder / f"{number:06}.npz"
    with path.open("wb") as file:
        np.savez(file, **{name: to_file_layout(network, name, value) for name, value in result.items()})  # type: ignore[arg-type]
