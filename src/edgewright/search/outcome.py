"""A whole search: task and data in, front, models and journal out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import make_folder, write_together
from ..fusion.request import find
from ..platform import Board, load_board
from ..program import Plan
from .candidates import CnnCandidate, architectures
from .data import SearchData, load_data
from .evolution import settings_of
from .front import MODELS, DesignFront, Measure
from .journal import Journal, JournalIdentity
from .module import torch_module
from .points import Assessor, design_points, point_name
from .pricing import CandidatePricer
from .searching import ArchitectureSearch, Progress
from .task import SearchTask, read_task
from .training import TorchTrainer, Trainer
from .workers import LocalWorkers, Workers

JOURNAL_ENDING = ".journal"


@dataclass(frozen=True)
class SearchOutcome:
    """The front of a search, and every candidate on the way to it."""

    task: SearchTask
    front: DesignFront
    candidates: tuple[CnnCandidate, ...]
    seconds: Mapping[int, float]  # from the start of the search until each candidate was trained
    points: Mapping[str, int]  # the candidate's number for each point's name
    pricer: CandidatePricer
    models: Mapping[str, bytes]  # of the points, by name
    notes: tuple[str, ...] = field(default=())

    def plans(self) -> dict[str, Plan]:
        """The plans of the points by name; points mapped to several cores of a Linux board have none."""
        pricer = self.pricer
        if pricer.is_mapped:
            return {}
        return {
            name: find(pricer.network(model, name), pricer.request, pricer.board, pricer.target).plan
            for name, model in self.models.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """For --json: the front, and how many candidates there were."""
        return {
            "front": self.front.model_dump(mode="json"),
            "architectures_trained": len(architectures(self.candidates)),
            "slices_trained": sum(one.is_trained for one in self.candidates),
            "refused": sum(bool(one.refusal) for one in self.candidates),
            "notes": list(self.notes),
        }


def run_search(
    task_file: Path,
    output: Path,
    *,
    seed: int | None = None,
    is_resumed: bool = False,
    workers: Workers | None = None,
    is_checked: bool = True,
    progress: Progress = lambda _: None,
    trainer_of: Callable[[SearchTask, SearchData], Trainer] | None = None,
) -> SearchOutcome:
    """Searches, and writes the front to `output`; beside it go the journal and the models of the front.

    The same task, data and seed give the same front, with any workers and after any interruption.
    `is_checked` runs each point of the front on the virtual board.
    """
    task = read_task(task_file)
    if seed is not None:
        task = task.model_copy(update={"seed": seed})
    board = board_of(task, task_file.parent)
    data = load_data(task.data, task_file.parent, task.seed)
    needs_energy = Measure.ENERGY in task.measures or task.limits.energy is not None
    pricer = CandidatePricer(board, task.manner, needs_energy)
    trainer = (trainer_of or torch_trainer)(task, data)
    make_folder(output.parent)
    identity = JournalIdentity(task.name, digest(task, data, board), task.seed)
    journal = Journal(output.with_suffix(JOURNAL_ENDING), identity, is_resumed)
    workers = workers or LocalWorkers()
    try:
        search = ArchitectureSearch(task, data.shape, len(data.classes), journal, workers, pricer, trainer, progress)
        candidates = search.run()
        chosen = search.front()
        finished = search.finish(chosen)
        assessor = Assessor(data, trainer, pricer, is_checked and not pricer.is_mapped)
        points, models, notes = design_points(task, search, assessor, chosen, finished)
        if is_resumed and journal.is_new:
            notes = ("there was no journal to go on with: the search began from its start", *notes)
        front = DesignFront(
            task=task.name,
            digest=identity.digest,
            seed=task.seed,
            board=task.board,
            metric=task.metric,
            measures=task.measures,
            classes=data.classes,
            mean=data.mean,
            deviation=data.deviation,
            points=points,
        )
        make_folder(output.parent / MODELS)
        write_together({**{output.parent / file: content for file, content in models.items()}, output: front.text()})
        journal.mark_done()
        names = {point_name(one): one.number for one in chosen}
        by_name = {point.name: models[point.model] for point in points}
        return SearchOutcome(task, front, candidates, journal.times(), names, pricer, by_name, notes)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note("go on with --resume")
        raise
    finally:
        journal.close()


def torch_trainer(task: SearchTask, data: SearchData) -> TorchTrainer:
    """The trainer of a task's settings; an error where PyTorch is missing."""
    torch_module()
    settings = settings_of(task.evolution, task.training)
    training = task.training
    return TorchTrainer(data, settings, training.final_epochs, training.noise, task.metric == "macro_f1")


def digest(task: SearchTask, data: SearchData, board: Board) -> str:
    """A digest of everything that decides a search's result, except the seed and the paths of files."""
    given = task.model_dump(mode="json", exclude={"name": True, "seed": True, "data": {"path"}})
    content = [given, data.digest, board.model_dump(mode="json")]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def board_of(task: SearchTask, base: Path) -> Board:
    """The board of a task; its file is seen from the task's folder."""
    if not task.board.endswith(".toml"):
        return load_board(task.board)
    path = base / task.board
    if not path.exists():
        raise InputError(f"there is no board file '{path}'; it is seen from the task file's folder")
    return load_board(path)
