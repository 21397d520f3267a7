"""Random models through the whole tool: each planned in some mode, emitted for some family, run and compared.

A trial is told by its kind and seed alone. `prepared` reads, plans and emits; who runs the code (this machine, many
libraries compiled together, or a virtual board) hands the outputs to `story`, which says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewright.emit import TARGETS, Library, emit
from edgewright.emit.judge import judge
from edgewright.emit.native import build
from edgewright.emit.stagewise import compare_stages, is_same
from edgewright.errors import EdgewrightError, InputError
from edgewright.fusion.request import Method, PlanRequest, make_plan
from edgewright.memory import plan as plan_network
from edgewright.memory.row_windows import pullable
from edgewright.network import Array, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import DynamicQuantize
from edgewright.network.read import read_bytes
from edgewright.network.reference import compare
from edgewright.program import FusionSchedule, Plan, Split, even_ends, interpret
from edgewright.program.check import faults
from edgewright.program.options import Options
from tests.helpers.emitting import WARNINGS
from tests.helpers.random_models import KINDS, draw_model

MODES = (
    *("whole layers", "plain", "by rows", "least RAM", "least RAM, slower", "paper's tiles", "tiles by hand"),
    *("pulled", "pulled, by rows", "pulled, least RAM"),
)
FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55", "cortex-m0plus", "rv32gc")
BOARDS = ("cortex-m4", "rv32imc", "cortex-m55", "cortex-m0plus")
ALIGNMENTS = (None, 1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Trial:
    """What is tried: a random model of this kind, and how."""

    kind: str
    seed: int
    is_board: bool = False  # on a virtual board, not on this machine
    boards: tuple[str, ...] = BOARDS  # of which one is drawn

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, KINDS.index(self.kind), 7])


@dataclass(frozen=True)
class Prepared:
    """A trial that can be run: everything but the outputs of the emitted code."""

    trial: Trial
    mode: str
    plan: Plan
    library: Library
    inputs: Mapping[str, Array]
    ours: Mapping[str, Array]  # what the numpy kernels give
    troubles: tuple[str, ...]  # found so far

    @property
    def network(self) -> Network:
        return self.library.network


def prepared(trial: Trial, name: str) -> Prepared:
    """The trial read, planned, judged and emitted under this name."""
    rng = trial.rng
    data = draw_model(trial.kind, trial.seed)
    network = read_bytes(data, name=name)
    mode, plan = _planned(network, rng)
    target = str(rng.choice(trial.boards if trial.is_board else FAMILIES))
    library = emit(plan, TARGETS[target], network, name=name)
    inputs = random_inputs(network, trial.seed)
    ours = execute(network, inputs)
    troubles = [*_plan_troubles(plan), *_reference_troubles(data, network, inputs, ours)]
    if rng.random() < 0.2 and not _is_dynamic(network):
        troubles += _differences("interpreter", network, interpret(plan, inputs), ours)
    return Prepared(trial, mode, plan, library, inputs, ours, tuple(troubles))


def story(made: Prepared, outputs: Mapping[str, Array]) -> tuple[str, ...]:
    """What is wrong, in words: nothing where the emitted code gives what it should."""
    found = _differences("emitted code", made.network, outputs, made.ours)
    if found and _is_dynamic(made.network) and _is_right_by_stages(made, outputs):
        found = []
    return (*made.troubles, *found)


def _is_dynamic(network: Network) -> bool:
    """Whether real numbers are stored as they come: then noise in their last bits may make a step."""
    return any(isinstance(layer.op, DynamicQuantize) for layer in network.layers)


def _is_right_by_stages(made: Prepared, outputs: Mapping[str, Array]) -> bool:
    """Whether each stage on this machine gives what the numpy kernels make of its inputs, and the outputs are those."""
    built = build(made.library, flags=WARNINGS, probes=True)
    if compare_stages(made.plan, made.network, made.inputs, built.trace(made.inputs)):
        return False
    return is_same(compare(made.network, outputs, built.run(made.inputs)))


def _planned(network: Network, rng: np.random.Generator) -> tuple[str, Plan]:
    """A plan in some mode; pulled inputs and tiles only where they can be."""
    mode, chosen = drawn_choice(rng)
    common: dict[str, Any] = {"alignment": chosen, "explain": False}
    if mode.startswith("pulled") and not pullable(network):
        mode = "by rows"
    match mode:
        case "plain":
            return mode, plan_network(network, plain=True, **common)
        case "by rows":
            return mode, plan_network(network, phases=True, **common)
        case "least RAM":
            return mode, make_plan(network, PlanRequest(minimise_ram=True, alignment=chosen))
        case "least RAM, slower":
            return mode, make_plan(network, PlanRequest(minimise_ram=True, max_slowdown=1.0, alignment=chosen))
        case "paper's tiles":
            return mode, make_plan(network, PlanRequest(method=Method.PAPER, alignment=chosen))
        case "pulled, least RAM":
            return mode, make_plan(network, PlanRequest(minimise_ram=True, pull_rows=True, alignment=chosen))
        case "pulled":
            return mode, plan_network(network, pull_rows=True, **common)
        case "pulled, by rows":
            return mode, plan_network(network, pull_rows=True, phases=True, **common)
        case "tiles by hand":
            for _ in range(12):
                try:
                    return mode, plan_network(network, schedules=[drawn_schedule(network, rng)], **common)
                except InputError:
                    continue
    return "whole layers", plan_network(network, **common)


def drawn_choice(rng: np.random.Generator) -> tuple[str, int | None]:
    """A mode and an alignment."""
    return str(rng.choice(MODES)), ALIGNMENTS[int(rng.integers(len(ALIGNMENTS)))]


def drawn_schedule(network: Network, rng: np.random.Generator) -> FusionSchedule:
    """A run of layers, with tiles that may or may not suit them."""
    names = [layer.name for layer in network.layers]
    first = int(rng.integers(len(names)))
    layers = tuple(names[first : first + int(rng.integers(1, 6))])
    by_rows = bool(rng.integers(2))
    kinds: list[tuple[int, ...]] = [(), (-1,), (2,), (1,), (1, 2)] if by_rows else [(-1,), (2,), (1,), (1, 2), (2, 1)]
    axes = kinds[int(rng.integers(len(kinds)))]
    last = network.by_name[layers[-1]]
    names_of = [last.output, *network.activations(last)[:1]]  # or what it sums over
    shape = network.tensors[names_of[int(rng.integers(len(names_of)))]].shape
    sizes = [shape[axis] if -len(shape) <= axis < len(shape) else 2 for axis in axes]
    cuts = [even_ends(size, int(rng.integers(1, 5))) for size in sizes]
    return FusionSchedule(layers, tuple(map(Split, axes, cuts)), by_rows)


def _plan_troubles(plan: Plan) -> list[str]:
    """What the judge of plans finds, and elements that are not aligned."""
    found = [f"plan: {fault}" for fault in faults(plan)]
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    for name, view in plan.views.items():
        size = plan.network.tensors[name].dtype.bytes
        places = (buffers[view.buffer].offset + view.offset, *view.strides)
        if any(place % size for place in places):
            found.append(f"plan: '{name}' is not aligned to its elements of {size} bytes")
    return found


def _reference_troubles(data: bytes, network: Network, inputs: Mapping[str, Array], ours: Any) -> list[str]:
    """Where the numpy kernels differ from the runtime that the file was made for."""
    truth = judge(data, network, Options())
    expected = truth.run(inputs)
    verdict = compare(network, ours, expected)
    if verdict.passes or (truth.by_layers and truth.by_layers(inputs, expected).passes):
        return []
    return [f"reference: {verdict}"]


def _differences(who: str, network: Network, actual: Mapping[str, Array], ours: Mapping[str, Array]) -> list[str]:
    """Integers bit for bit, floats within the tolerance."""
    for name in network.outputs:
        if not network.tensors[name].dtype.is_float and not np.array_equal(actual[name], ours[name]):
            return [f"{who}: '{name}' differs in {np.count_nonzero(actual[name] != ours[name])} elements"]
    verdict = compare(network, actual, ours)
    return [] if verdict.passes else [f"{who}: {verdict}"]


def refused(trial: Trial, error: Exception) -> str:
    """A trial that never came to run, in words; refusals are not expected of these models either."""
    kind = "refused" if isinstance(error, EdgewrightError) else type(error).__name__
    return f"{kind}: {error}"
