"""Points of a front: quantised after training, evaluated in int8, and checked on the virtual board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from ..complete_plan import find_complete
from ..emit.verify import verify
from ..errors import EdgewrightError
from ..lazy import load_package
from ..network.reference import exact_session
from .architecture import INPUT, CnnArchitecture
from .candidates import CnnCandidate, Trained
from .data import LabelledSet, SearchData
from .front import MODELS, DesignPoint, pareto
from .model import Ranges, onnx_model
from .pricing import CandidatePricer
from .searching import ArchitectureSearch
from .task import SearchTask
from .training import Trainer, channels_first, scores
from .weights import FloatArray, State, Weights, folded

RANGE_SHARES = (1.0, 0.85, 0.7, 0.55)  # of the values that tensors take; what lies beyond saturates
RANGE_FACTORS = (1.15, 0.87)  # by which single tensors try to change theirs
EVALUATED_AT_ONCE = 256
CHECKED_INPUTS = 2  # of the validation data, on the virtual board


@dataclass(frozen=True)
class Assessment:
    """A point after quantisation: the model and its scores."""

    model: bytes  # ONNX, int8
    accuracy: float  # on the validation data
    macro_f1: float
    held_out: tuple[float, float] | None  # accuracy and macro F1
    float_macro_f1: float  # before it was quantised; on the held-out data, where there are any
    checked: CheckedPlan | None = None  # on the virtual board


@dataclass(frozen=True)
class CheckedPlan:
    """What compiling for the board and running there gave."""

    ram_bytes: int
    flash_bytes: int  # code included
    instructions: int | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Assessor:
    """What workers need to assess points."""

    data: SearchData
    trainer: Trainer
    pricer: CandidatePricer
    is_checked: bool  # on the virtual board


def assess(assessor: Assessor, job: tuple[str, CnnArchitecture, State]) -> Assessment:
    """Quantises a trained network and evaluates it; worker processes call this function."""
    name, architecture, state = job
    data, weights = assessor.data, folded(architecture, state)
    frames = data.calibration
    real = onnx_model(architecture, weights, batch=None).SerializeToString()
    ranges = assessor.trainer.ranges(architecture, state, frames)
    quantised = _quantised(architecture, weights, ranges, run_onnx(real, frames), frames)
    tested = data.held_out or data.validation
    accuracy, macro_f1 = _scored(quantised, data.validation, len(data.classes))
    content = _for_one_frame(quantised, name)
    return Assessment(
        content,
        accuracy,
        macro_f1,
        _scored(quantised, data.held_out, len(data.classes)) if data.held_out else None,
        _scored(real, tested, len(data.classes))[1],
        _on_board(assessor, name, content) if assessor.is_checked else None,
    )


def _quantised(
    architecture: CnnArchitecture, weights: Weights, ranges: Ranges, expected: FloatArray, frames: FloatArray
) -> bytes:
    """The int8 model for any number of frames, with ranges for which the probabilities of these frames' classes are
    closest: first one share of the values is chosen for all tensors, then another one for each where that is better."""

    def error(shares: Mapping[str, float]) -> float:
        model = onnx_model(architecture, weights, _cut(ranges, shares), batch=None, is_exact=False)
        return divergence(expected, run_onnx(model.SerializeToString(), frames))

    shares = min((dict.fromkeys(ranges, share) for share in RANGE_SHARES), key=error)
    least = error(shares)
    for name in ranges:
        for factor in RANGE_FACTORS:
            tried = {**shares, name: min(1.0, shares[name] * factor)}
            if tried != shares and (reached := error(tried)) < least:
                least, shares = reached, tried
    return onnx_model(architecture, weights, _cut(ranges, shares), batch=None).SerializeToString()


def divergence(expected: FloatArray, found: FloatArray) -> float:
    """The mean Kullback-Leibler divergence of the classes' probabilities, for scores. It counts errors where classes
    are close, and hardly any that large scores have."""
    p, q = (_log_softmax(scores.astype(np.float64)) for scores in (expected, found))
    return float((np.exp(p) * (p - q)).sum(1).mean())


def _log_softmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    shifted = scores - scores.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def _cut(ranges: Ranges, shares: Mapping[str, float]) -> Ranges:
    return {name: (shares[name] * low, shares[name] * high) for name, (low, high) in ranges.items()}


def _for_one_frame(model: bytes, name: str) -> bytes:
    """The same model under a name, for one frame at a time."""
    found = onnx.load_from_string(model)
    found.graph.name = name
    for value in (*found.graph.input, *found.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1
    return found.SerializeToString()


def _scored(model: bytes, given: LabelledSet, classes: int) -> tuple[float, float]:
    return scores(given.y, run_onnx(model, given.x).argmax(1).astype(np.int64), classes)


def run_onnx(model: bytes, x: FloatArray) -> FloatArray:
    """The scores that onnxruntime computes with one thread, for inputs NHWC."""
    onnxruntime = load_package("onnxruntime", "reference")
    session = exact_session(onnxruntime, model)
    parts = [
        session.run(None, {INPUT: channels_first(x[start : start + EVALUATED_AT_ONCE])})[0]
        for start in range(0, len(x), EVALUATED_AT_ONCE)
    ]
    return np.concatenate(parts)


def _on_board(assessor: Assessor, name: str, model: bytes) -> CheckedPlan:
    """The plan for the board, whose C gave the outputs of the reference, here and on the virtual board."""
    pricer = assessor.pricer
    network = pricer.network(model, name)
    library = find_complete(network, pricer.request, pricer.board, pricer.target, name=name).library
    given = [{network.inputs[0]: x[None]} for x in assessor.data.validation.x[:CHECKED_INPUTS]]
    try:
        figures = verify(library, model, given, count=0, board=pricer.board)
    except EdgewrightError as error:
        error.add_note(f"point {name} of the front, on the virtual board")
        raise
    notes = figures.notes if figures.instructions is None else ()
    return CheckedPlan(library.plan.peak_bytes, library.plan.flash_bytes, figures.instructions, notes)


def design_points(
    task: SearchTask,
    search: ArchitectureSearch,
    assessor: Assessor,
    front: Sequence[CnnCandidate],
    finished: Mapping[int, Trained],
) -> tuple[tuple[DesignPoint, ...], dict[str, bytes], tuple[str, ...]]:
    """The points that are undominated in int8, ordered by RAM, their model files, and notes."""
    jobs = [(point_name(one), one.architecture, finished[one.number].state) for one in front]
    assessed = dict(search.workers.map(assess, assessor, jobs))
    points = [_point(task, assessor.pricer, one, assessed[at]) for at, one in enumerate(front)]
    kept = sorted(pareto(points, task.measures), key=lambda point: (point.ram_bytes, point.name))
    models = {point_name(one): assessed[at].model for at, one in enumerate(front)}
    checked = [one.checked for one in assessed.values() if one.checked]
    notes = dict.fromkeys(note for one in checked for note in one.notes)
    return tuple(kept), {point.model: models[point.name] for point in kept}, tuple(notes)


def point_name(candidate: CnnCandidate) -> str:
    return f"c{candidate.number}"


def _point(task: SearchTask, pricer: CandidatePricer, candidate: CnnCandidate, assessment: Assessment) -> DesignPoint:
    price, name, checked = candidate.price, point_name(candidate), assessment.checked
    held_out = assessment.held_out
    file = f"{MODELS}/{name}.onnx"
    return DesignPoint(
        name=name,
        accuracy=assessment.accuracy,
        macro_f1=assessment.macro_f1,
        held_out_accuracy=held_out[0] if held_out else None,
        held_out_macro_f1=held_out[1] if held_out else None,
        float_macro_f1=assessment.float_macro_f1,
        ram_bytes=checked.ram_bytes if checked else price.ram_bytes,
        flash_bytes=checked.flash_bytes if checked else price.flash_bytes,
        instructions=price.instructions,
        measured_instructions=checked.instructions if checked else None,
        macs=candidate.architecture.macs,
        latency_s=price.seconds,
        throughput=1 / price.seconds,
        energy_j=price.energy_j,
        architecture=candidate.architecture.text(),
        model=file,
        manner=task.manner.value,
        command=pricer.command(file),
    )
