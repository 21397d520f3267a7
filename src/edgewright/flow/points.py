"""The sources of a flow's design points: a search, a front, or one trained model in several widths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from ..errors import Infeasible, InputError
from ..files import read_file
from ..network import Array, Network
from ..network.onnx_writer import to_onnx
from ..network.read import read
from ..platform import Board
from ..search.data import LabelArray, load_data
from ..search.front import FRONT_FILE, MODELS, DesignFront, DesignPoint, Measure, read_front
from ..search.outcome import JOURNAL_ENDING, board_of, digest, run_search
from ..search.pricing import CandidatePricer, Manner
from ..search.searching import SearchProgress
from ..search.task import SearchTask, read_task
from ..search.training import scores
from ..search.workers import LocalWorkers
from .description import FlowFile, ShrinkEntry
from .fine_tuning import fine_tune, torch_for_training
from .model_data import ModelData, load_model_data, spread
from .quantisation import CALIBRATION, QuantisedModel, check_is_float, model_outputs, quantise_with
from .shrinking import shrink
from .stages import key_of

VALIDATION_SHARE = 4  # one sample in 4 is neither trained nor calibrated on
FULL = ShrinkEntry(shares=(1.0,), epochs=0.0)

Told = Callable[[str], None]


@dataclass(frozen=True)
class DesignPoints:
    """A front, its models by path, and notes for the user."""

    front: DesignFront
    models: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


class PointSource(Protocol):
    """Something that gives design points; equal keys give equal points."""

    doing: str

    def key(self) -> str: ...

    def points(self, told: Told, /) -> DesignPoints: ...


class FrontSource:
    """A front that a search wrote."""

    doing = "reading the front"

    def __init__(self, path: Path, task: Path | None) -> None:
        self.path = path / FRONT_FILE if path.is_dir() else path
        self.front = read_front(self.path)
        if task is not None:
            _check_task(self.front, self.path, task)
        if not self.front.points:
            raise InputError(f"the front '{self.path}' has no points; search longer, or under looser limits")

    def key(self) -> str:
        return key_of(self.front.text(), *self._models().values())

    def points(self, _told: Told, /) -> DesignPoints:
        return DesignPoints(self.front, self._models())

    def _models(self) -> dict[str, bytes]:
        advice = "the models lie beside the front that names them"
        return {one.model: read_file(self.path.parent / one.model, advice) for one in self.front.points}


def _check_task(front: DesignFront, path: Path, task: Path) -> None:
    """Raises an error if the front is not the result of this task with this seed."""
    known = SearchIdentity.of(task)
    if (front.digest, front.seed) != (known.digest, known.task.seed):
        is_same = front.seed == known.task.seed  # by which data are split, too
        other = "other data or settings" if is_same else f"seed {front.seed}, not {known.task.seed}"
        raise InputError(
            f"the front '{path}' is not that of the task '{task}' ({other}); search again, or leave one of them out"
        )


@dataclass(frozen=True)
class SearchIdentity:
    """A task and the digest of all that decides the result of its search."""

    task: SearchTask
    digest: str

    @staticmethod
    def of(path: Path) -> SearchIdentity:
        task = read_task(path)
        data = load_data(task.data, path.parent, task.seed)
        return SearchIdentity(task, digest(task, data, board_of(task, path.parent)))


class TaskSource:
    """An architecture search, which goes on where it was stopped."""

    doing = "reading the task"

    def __init__(self, path: Path, output: Path, workers: int | None) -> None:
        self.path, self.workers = path, workers
        self.identity = SearchIdentity.of(path)
        self.folder = output / f"search-{self.identity.digest[:12]}-{self.identity.task.seed}"

    def key(self) -> str:
        return key_of(self.identity.digest, self.identity.task.seed, self.identity.task.name)

    def points(self, told: Told, /) -> DesignPoints:
        def tell(now: SearchProgress) -> None:
            told(f"searching: {now.trained} of {now.wanted} networks trained, best {now.best:.3f}")

        path, workers = self.folder / FRONT_FILE, LocalWorkers(self.workers)
        begun = path.with_suffix(JOURNAL_ENDING).exists()
        outcome = run_search(self.path, path, is_resumed=begun, workers=workers, is_checked=False, progress=tell)
        if not outcome.front.points:
            raise Infeasible(f"the search of '{self.path}' found no network; search longer, or under looser limits")
        models = {point.model: (self.folder / point.model).read_bytes() for point in outcome.front.points}
        return DesignPoints(outcome.front, models, outcome.notes)


class ModelSource:
    """One trained model, quantised in several widths."""

    def __init__(self, file: FlowFile, base: Path, board: Board, board_name: str) -> None:
        assert file.model is not None and file.data is not None
        self.path, self.data_path = base / file.model, base / file.data
        self.shrink, self.board, self.board_name = file.shrink or FULL, board, board_name
        self.doing = "quantising the model" + (" in several widths" if file.shrink else "")

    def key(self) -> str:
        return key_of(
            read_file(self.path, "give the path of an .onnx or .tflite model"),
            read_file(self.data_path, "give samples of the model in an .npz file"),
            self.shrink.model_dump(mode="json"),
            self.board.model_dump_json(),
        )

    def points(self, told: Told) -> DesignPoints:
        trained = read(self.path)
        check_is_float(trained, str(self.path))
        data = load_model_data(self.data_path, trained)
        if len(data) < 2:
            raise InputError(
                f"'{self.data_path}' has 1 sample; a flow needs some to set ranges and others to compare with"
            )
        is_tuned = self.shrink.epochs > 0 and min(self.shrink.shares) < 1
        if is_tuned:
            torch_for_training()  # before the work, and not after it
        validation = spread(len(data), max(1, len(data) // VALIDATION_SHARE))
        held = set(validation)
        training = data.part([at for at in range(len(data)) if at not in held])
        targets = _outputs(trained, training) if is_tuned else []
        evaluated = data.part(validation)
        expected = evaluated.labels if evaluated.labels is not None else _classes(trained, evaluated)
        points, models, notes = [], {}, []
        narrow = trained
        for share in sorted(self.shrink.shares, reverse=True):
            told(f"{self.doing}: {share:.0%} of the channels")
            narrow = self._narrower(trained, narrow, share, training, targets)
            calibration = training.part(spread(len(training), CALIBRATION))
            quantised = quantise_with(narrow, calibration, evaluated)
            found = np.array(quantised.classes, np.int64)
            reached = scores(expected, found, trained.tensors[trained.outputs[0]].size)
            name = f"w{round(100 * share)}"
            path = f"{MODELS}/{name}.onnx"
            models[path] = quantised.model.SerializeToString()
            points.append(self._point(name, path, quantised, reached))
            notes.append(_cost(name, share, quantised, trained, reached))
        return DesignPoints(self._front(points), models, tuple(notes))

    def _narrower(
        self, trained: Network, before: Network, share: float, training: ModelData, targets: Sequence[Array]
    ) -> Network:
        """The network with this share of its channels, cut from the width before, and trained if asked for."""
        if share == 1:
            return trained
        entry = self.shrink
        narrow = shrink(before, share, entry.step, trained)
        if not entry.epochs:
            return narrow
        return fine_tune(narrow, training, targets, entry.epochs, entry.learning_rate, entry.seed)

    def _point(self, name: str, path: str, quantised: QuantisedModel, reached: tuple[float, float]) -> DesignPoint:
        pricer = CandidatePricer(self.board, Manner.WHOLE)
        price = pricer.network_price(pricer.network(quantised.model))
        return DesignPoint(
            name=name,
            accuracy=reached[0],
            macro_f1=reached[1],
            ram_bytes=price.ram_bytes,
            flash_bytes=price.flash_bytes,
            instructions=price.instructions,
            macs=quantised.network.total_macs,
            latency_s=price.seconds,
            throughput=1 / price.seconds,
            energy_j=price.energy_j,
            model=path,
            manner=Manner.WHOLE.value,
            command=pricer.command(path),
        )

    def _front(self, points: Sequence[DesignPoint]) -> DesignFront:
        return DesignFront(
            task=self.path.stem,
            digest=self.key()[:16],
            seed=self.shrink.seed,
            board=self.board_name,
            metric="accuracy",
            measures=(Measure.ACCURACY, Measure.RAM, Measure.INSTRUCTIONS),
            points=tuple(points),
        )


def _outputs(network: Network, data: ModelData) -> list[Array]:
    """The first output of each sample, by onnxruntime."""
    source = to_onnx(network)
    return [outputs[0] for outputs in model_outputs(source, read(source), data)]


def _classes(trained: Network, data: ModelData) -> LabelArray:
    """The classes that the trained model predicts; they stand in for missing labels."""
    return np.array([int(each.argmax()) for each in _outputs(trained, data)], np.int64)


def _cost(name: str, share: float, quantised: QuantisedModel, trained: Network, reached: tuple[float, float]) -> str:
    """What a width costs, in a sentence."""
    before = quantised.accuracy[0] if quantised.accuracy else None
    measured = f"accuracy {reached[0]:.2%} in int8"
    if before is None:
        measured = f"the class of the model as trained for {reached[0]:.2%} of the samples"
    else:
        measured += f", {before:.2%} in float32"
    weights = f"{quantised.network.weight_bytes:,} B of weights ({trained.weight_bytes:,} as trained)"
    return f"{name}, {share:.0%} of the channels: {measured}; {weights}, {quantised.network.total_macs:,} MACs"
