"""The whole design flow: design points, augmented points, selection, application, firmware (M 1.3 to 1.5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import Infeasible, InputError
from ..platform import Board, load_board
from ..search.chosen import PointChoice, choose
from ..search.front import MODELS, DesignFront, DesignPoint, read_front
from .augmenting import PLANS, augment
from .deploying import APPLICATION_FILE, kind_of, write_application, write_firmware, write_libraries
from .description import ApplicationKind, FlowFile, SelectionEntry, read_flow, weighs_energy
from .manners import manners_of
from .points import FrontSource, ModelSource, PointSource, TaskSource
from .stages import StageFolder, key_of

POINTS, AUGMENTED, SELECTION, APPLICATION, FIRMWARE = "points", "augmented", "selection", "application", "firmware"
STAGES = (POINTS, AUGMENTED, SELECTION, APPLICATION, FIRMWARE)
SELECTION_FILE, FIRMWARE_FILE, LEFT_OUT_FILE, NOTES_FILE = (
    "selection.json",
    "result.json",
    "left_out.json",
    "notes.json",
)

Told = Callable[[str], None]  # what the flow is doing


@dataclass(frozen=True)
class FlowSelection:
    """The point selected for one requirement set, and the one that would be without augmented points."""

    entry: SelectionEntry
    choice: PointChoice
    before: PointChoice | None  # without augmented points; None where none of them keeps the limits

    @property
    def point(self) -> DesignPoint:
        return self.choice.best

    @property
    def is_better(self) -> bool:
        """Whether augmented points led to another, better choice."""
        return self.before is None or self.before.best.name != self.point.name

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.entry.name,
            **self.choice.to_dict(),
            "without_augmented_points": self.before.best.model_dump(mode="json") if self.before else None,
            "is_better": self.is_better,
        }


@dataclass
class FlowOutcome:
    """The results of a flow, stage by stage."""

    file: FlowFile
    board: str
    folder: Path
    points: DesignFront
    augmented: DesignFront
    left_out: tuple[str, ...]
    notes: tuple[str, ...]  # about the points, such as the accuracy of each width
    selections: tuple[FlowSelection, ...]
    kind: ApplicationKind
    firmware: dict[str, Any] | None = None
    reused: list[str] = field(default_factory=list)  # stages whose results an earlier run left

    @property
    def sentence(self) -> str:
        """A sentence about the firmware and how it was verified."""
        if self.firmware is None:
            return "nothing was compiled"
        if "sentence" in self.firmware:
            return str(self.firmware["sentence"])
        libraries = self.firmware["libraries"]
        built = [name for name, figures in libraries.items() if "note" not in figures]
        verified = all(libraries[name]["verified"] for name in built)
        return f"{', '.join(built) or 'nothing'} compiled, {'verified' if verified else 'nothing was run'}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.file.name,
            "board": self.board,
            "output": str(self.folder),
            "points": len(self.points.points),
            "augmented_points": len(self.augmented.points),
            "left_out": list(self.left_out),
            "notes": list(self.notes),
            "selections": [one.to_dict() for one in self.selections],
            "application": self.kind.value,
            "firmware": self.firmware,
            "reused": self.reused,
        }


class DesignFlow:
    """One flow from its file to its folder."""

    def __init__(
        self, path: Path, output: Path | None = None, workers: int | None = None, told: Told = lambda _: None
    ) -> None:
        self.file, self.path = read_flow(path), path
        self.output = output or Path(f"{self.file.name}-flow")
        self.workers, self.told = workers, told
        self.stages = StageFolder(self.output)
        self._reused: list[str] = []

    def run(self, verify: bool = True) -> FlowOutcome:
        """Runs all stages but those whose results an earlier run left."""
        board_name = self._known_board()
        with self.stages.locked():
            points = self._points(board_name)
            board_name = board_name or self._board_of(points)
            board = self._checked_board(board_name)
            augmented, left_out = self._augmented(points, board, board_name)
            selections = self._selected(augmented, points)
            selected = [(one.entry.name, one.point) for one in selections]
            kind = kind_of(self.file, [point for _, point in selected])
            outcome = FlowOutcome(
                self.file,
                board_name,
                self.output,
                points,
                augmented,
                left_out,
                tuple(json.loads((self.stages.path(POINTS) / NOTES_FILE).read_text())),
                selections,
                kind,
                reused=self._reused,
            )
            if kind is not ApplicationKind.NONE:
                outcome.firmware = self._firmware(outcome, selected, verify)
            return outcome

    # Checks before any work

    def _known_board(self) -> str | None:
        """The board that the file names; the path of a board file is seen from the working directory."""
        name = self.file.board
        if name is None:
            return None
        name = str(self.path.parent / name) if name.endswith(".toml") else name
        self._checked_board(name)
        return name

    def _checked_board(self, name: str) -> Board:
        board = load_board(name)
        unsure = next((one for one in self.file.selections if weighs_energy(one)), None)
        if unsure is not None and board.power.active is None:
            raise InputError(
                f"{self.path}: selection '{unsure.name}' asks for energy, and board '{board.name}' has no power data; "
                "add [power] with active = to the board's file, or weigh something else"
            )
        able = manners_of(board, is_application=False)
        for manner in self.file.manners:
            if manner not in able:
                raise InputError(
                    f"{self.path}: manners has \"{manner.value}\", which '{board.name}' cannot run; expected some of "
                    f"{', '.join(one.value for one in able)}"
                )
        return board

    # Stages

    def _points(self, board_name: str | None) -> DesignFront:
        """The front that the flow starts from."""
        source = self._source(board_name)

        def write(folder: Path) -> None:
            found = source.points(self.told)
            names = {path: f"{MODELS}/{number:03}.onnx" for number, path in enumerate(found.models)}
            (folder / MODELS).mkdir()
            for path, content in found.models.items():
                (folder / names[path]).write_bytes(content)
            kept = tuple(one.model_copy(update={"model": names[one.model]}) for one in found.front.points)
            found.front.model_copy(update={"points": kept}).write(folder)
            _write_json(folder / NOTES_FILE, found.notes)

        self._make(POINTS, source.doing, write, source.key())
        return read_front(self.stages.path(POINTS))

    def _source(self, board_name: str | None) -> PointSource:
        file, base = self.file, self.path.parent
        task = base / file.task if file.task else None
        if file.front is not None:
            return FrontSource(base / file.front, task)
        if task is not None:
            return TaskSource(task, self.output, self.workers)
        assert board_name is not None  # models need one
        return ModelSource(file, base, load_board(board_name), board_name)

    def _board_of(self, points: DesignFront) -> str:
        """The board of a front, whose file is seen from where the task or the front is."""
        if not points.board.endswith(".toml"):
            return points.board
        origin = self.path.parent / (self.file.task or self.file.front or "")
        return str((origin if origin.is_dir() else origin.parent) / points.board)

    def _augmented(self, points: DesignFront, board: Board, name: str) -> tuple[DesignFront, tuple[str, ...]]:
        """Every point under all manners of execution."""
        is_application = self.file.application in (ApplicationKind.ADAPT, ApplicationKind.APP)
        manners = self.file.manners or manners_of(board, is_application)

        def write(folder: Path) -> None:
            def tell(done: int, of: int) -> None:
                self.told(f"augmenting design points: {done} of {of} networks")

            front, plans, left_out = augment(
                points,
                self.stages.path(POINTS),
                f"../{POINTS}/",
                (board, name),
                manners,
                self.workers,
                tell,
            )
            (folder / PLANS).mkdir()
            for path, text in plans.items():
                (folder / path).write_text(text)
            front.write(folder)
            _write_json(folder / LEFT_OUT_FILE, left_out)

        what = "augmenting design points"
        parts = [self._model_keys(points), board.model_dump_json(), name, [one.value for one in manners]]
        self._make(AUGMENTED, what, write, points.text(), *parts)
        folder = self.stages.path(AUGMENTED)
        return read_front(folder), tuple(json.loads((folder / LEFT_OUT_FILE).read_text()))

    def _model_keys(self, points: DesignFront) -> list[str]:
        folder = self.stages.path(POINTS)
        return [key_of((folder / path).read_bytes()) for path in sorted({one.model for one in points.points})]

    def _selected(self, augmented: DesignFront, points: DesignFront) -> tuple[FlowSelection, ...]:
        """A point for each requirement set, selected again in each run, since that takes no time."""
        own = {point.name: point.manner for point in points.points}
        known = [point for point in augmented.points if point.manner == own.get(network_of(point))]
        selections = tuple(self._selection(one, augmented, known) for one in self.file.selections)
        found = [one.to_dict() for one in selections]
        self._make(
            SELECTION, "selecting", lambda folder: _write_json(folder / SELECTION_FILE, found), found, told=False
        )
        return selections

    def _selection(self, entry: SelectionEntry, front: DesignFront, known: list[DesignPoint]) -> FlowSelection:
        how = front.metric, entry.requirement, entry.figure_limits, entry.method
        try:
            choice = choose(front.points, *how)
        except (InputError, Infeasible) as error:
            raise type(error)(f"{self.path}: selection '{entry.name}': {error}") from error
        try:
            before = choose(known, *how) if known else choice
        except Infeasible:
            before = None
        return FlowSelection(entry, choice, before)

    def _firmware(self, outcome: FlowOutcome, selected: list[tuple[str, DesignPoint]], verify: bool) -> dict[str, Any]:
        """The application, compiled and verified on the virtual board."""
        source, kind = self.stages.path(AUGMENTED), outcome.kind
        parts: list[Any] = [[(name, point.model_dump(mode="json")) for name, point in selected]]
        parts += [
            self._model_keys(outcome.points),
            self.file.model_dump_json(),
            load_board(outcome.board).model_dump_json(),
        ]
        if kind in (ApplicationKind.ADAPT, ApplicationKind.APP):
            self._make(
                APPLICATION,
                "writing the application",
                lambda folder: write_application(folder, self.file, outcome.board, selected, source),
                *parts,
            )

        def write(folder: Path) -> None:
            if kind is ApplicationKind.COMPILE:
                found = write_libraries(folder, outcome.board, selected, source, verify)
            else:
                found = write_firmware(self.stages.path(APPLICATION) / APPLICATION_FILE, folder, kind, verify)
            _write_json(folder / FIRMWARE_FILE, found)

        doing = "compiling and verifying on the virtual board" if verify else "compiling"
        self._make(FIRMWARE, doing, write, *parts, verify, kind.value)
        result: dict[str, Any] = json.loads((self.stages.path(FIRMWARE) / FIRMWARE_FILE).read_text())
        return result

    def _make(self, stage: str, doing: str, write: Callable[[Path], None], *parts: Any, told: bool = True) -> None:
        if told:
            self.told(doing)
        if self.stages.make(stage, key_of(stage, *parts), write):
            self._reused.append(stage)


def network_of(point: DesignPoint) -> str:
    """The name of the point that an augmented point comes from."""
    return point.name.removesuffix(f"-{point.manner}")


def _write_json(path: Path, found: Any) -> None:
    path.write_text(json.dumps(found, indent=1) + "\n")
