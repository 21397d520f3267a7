"""Training of candidates, a slice at a time, from weights that are inherited."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .architecture import CnnArchitecture
from .candidates import Trained
from .data import LabelArray, LabelledSet, SearchData
from .evolution import EvolutionSettings
from .model import Ranges, tensor_scales
from .module import load_state, module_of, ranges_of, state_of, torch_module
from .weights import FloatArray, State, fresh_state, inherited

EVALUATED_AT_ONCE = 512
QUANTISED = 0.25  # of the last training: its end, in int8
TEMPERATURE = 2.0  # of distillation (Hinton et al. 2015): outputs are divided by it before the softmax


@dataclass(frozen=True)
class TrainingJob:
    """One slice of training of one architecture."""

    architecture: CnnArchitecture
    ancestors: tuple[tuple[CnnArchitecture, State], ...]  # weights are inherited from these, mainly from the first
    seed: int
    is_final: bool = False  # more epochs, a learning rate that falls to 0, and int8 at the end


class Trainer(Protocol):
    """Trains a candidate; the same job always gives the same result."""

    def train(self, job: TrainingJob) -> Trained: ...

    def taught_by(self, teachers: Sequence[tuple[CnnArchitecture, State]], share: float) -> Trainer:
        """A trainer whose loss has this share from the mean outputs of these networks, the rest from labels."""

    def ranges(self, architecture: CnnArchitecture, state: State, x: FloatArray) -> Ranges:
        """The values that tensors take on these inputs."""


def run_job(trainer: Trainer, job: TrainingJob) -> Trained:
    """Trains; worker processes call this function."""
    return trainer.train(job)


def start_state(job: TrainingJob) -> State:
    """The initial weights: those of the main parent; blocks taken from another parent bring theirs."""
    if not job.ancestors:
        return fresh_state(job.architecture, job.seed)
    (parent, state), *others = job.ancestors
    arrays = inherited(job.architecture, parent, state, job.seed)
    for other, its_state in others:
        foreign = {
            f"block{index}."
            for index, block in enumerate(job.architecture.blocks)
            if block in other.blocks and not (index < len(parent.blocks) and parent.blocks[index] == block)
        }
        for name, array in inherited(job.architecture, other, its_state, job.seed).items():
            if any(name.startswith(block) for block in foreign):
                arrays[name] = array
    return arrays


@dataclass(frozen=True)
class TorchTrainer:
    """Adam in PyTorch: on a GPU where torch finds one, else with one thread."""

    data: SearchData
    settings: EvolutionSettings
    final_epochs: float
    noise: float = 0.0
    is_balanced: bool = False  # rare classes weigh more, for the macro F1
    targets: FloatArray | None = None  # outputs of the teachers for each training sample
    distillation: float = 0.0  # the share of the loss that these make

    def train(self, job: TrainingJob) -> Trained:
        torch = torch_module()
        torch.set_num_threads(1)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cuda":
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
        module = _loaded(job.architecture, start_state(job))
        module.to(device, memory_format=torch.channels_last)
        epochs = self.final_epochs if job.is_final else self.settings.epochs
        if epochs:
            self._fit(torch, module, device, job, epochs)
        predicted = predictions(module, self.data.validation.x)
        accuracy, macro_f1 = scores(self.data.validation.y, predicted, len(self.data.classes))
        return Trained(accuracy, macro_f1, state_of(module))

    def taught_by(self, teachers: Sequence[tuple[CnnArchitecture, State]], share: float) -> TorchTrainer:
        torch_module().set_num_threads(1)
        given = [outputs(_loaded(*teacher), self.data.train.x) for teacher in teachers]
        return replace(self, targets=np.mean(given, axis=0, dtype=np.float32), distillation=share)

    def ranges(self, architecture: CnnArchitecture, state: State, x: FloatArray) -> Ranges:
        torch_module().set_num_threads(1)
        return ranges_of(_loaded(architecture, state), [channels_first(x)])

    def _fit(self, torch: Any, module: Any, device: str, job: TrainingJob, epochs: float) -> None:
        train, size = self.data.train, min(self.settings.batch, len(self.data.train))
        x = torch.from_numpy(train.x.copy()).to(device)  # workers share theirs, read-only
        y = torch.from_numpy(train.y).to(device)
        weight = (
            torch.from_numpy(_class_weights(train, len(self.data.classes))).to(device) if self.is_balanced else None
        )
        from_labels = torch.nn.CrossEntropyLoss(weight=weight)
        targets = self.targets
        if targets is not None:
            targets = torch.softmax(torch.from_numpy(targets.copy()).to(device) / TEMPERATURE, 1)
        rate = self.settings.learning_rate
        optimiser = torch.optim.Adam(module.parameters(), lr=rate)
        steps = max(1, round(epochs * len(train) / size))
        generator = np.random.default_rng(job.seed)
        module.train()
        quantised_from = round(steps * (1 - QUANTISED))
        for step, batch in zip(range(steps), _batches(generator, len(train), size), strict=False):
            if job.is_final and step == quantised_from:
                ranges = ranges_of(module, [channels_first(self.data.calibration)])
                module.scales = tensor_scales(job.architecture, ranges)
            if job.is_final:
                optimiser.param_groups[0]["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            chosen = torch.from_numpy(batch).to(device)
            frames = x[chosen]
            if self.noise:
                shape = tuple(frames.shape)
                frames = frames + self.noise * torch.from_numpy(generator.standard_normal(shape, np.float32)).to(device)
            optimiser.zero_grad()
            found = module(frames.permute(0, 3, 1, 2))  # channels last, which is faster
            loss = from_labels(found, y[chosen])
            if targets is not None:
                from_teachers = -(targets[chosen] * torch.log_softmax(found / TEMPERATURE, 1)).sum(1).mean()
                loss = (1 - self.distillation) * loss + self.distillation * TEMPERATURE**2 * from_teachers
            loss.backward()
            optimiser.step()
        module.scales = {}  # scores and outputs are those of float32


def channels_first(x: FloatArray) -> FloatArray:
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def predictions(module: Any, x: FloatArray) -> LabelArray:
    """The class that a module gives each input."""
    return outputs(module, x).argmax(1).astype(np.int64)


def outputs(module: Any, x: FloatArray) -> FloatArray:
    """The scores that a module gives each class, for each input."""
    torch = torch_module()
    module.eval()
    device = next(module.parameters()).device
    found = []
    with torch.no_grad():
        for start in range(0, len(x), EVALUATED_AT_ONCE):
            frames = torch.from_numpy(channels_first(x[start : start + EVALUATED_AT_ONCE])).to(device)
            found.append(module(frames).cpu().numpy())
    return np.concatenate(found)


def _loaded(architecture: CnnArchitecture, state: State) -> Any:
    module = module_of(architecture)
    load_state(module, state)
    return module


def scores(y: LabelArray, predicted: LabelArray, classes: int) -> tuple[float, float]:
    """Accuracy and macro F1. Classes without samples and predictions are left out of the mean."""
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (y, predicted), 1)
    hits, true, said = table.diagonal(), table.sum(1), table.sum(0)
    counted = true + said > 0
    f1 = 2 * hits[counted] / (true + said)[counted]
    return float(hits.sum() / len(y)), float(f1.mean())


def _class_weights(train: LabelledSet, classes: int) -> FloatArray:
    """Weights by the square root of each class's rarity; their mean over the samples is 1."""
    counts = np.bincount(train.y, minlength=classes)
    weights = np.sqrt(counts.max() / counts)
    return np.asarray(weights * len(train) / (weights * counts).sum(), np.float32)


def _batches(generator: np.random.Generator, count: int, size: int) -> Iterator[npt.NDArray[np.int64]]:
    """Endless batches of indices: a new permutation each epoch, without its incomplete last batch."""
    while True:
        order = generator.permutation(count)
        for start in range(0, count - size + 1, size):
            yield order[start : start + size]
