"""The emitted code beside the reference: run on this machine and on the virtual board, compared, measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import words
from ..errors import EdgewrightError
from ..network import Array
from ..network.interface import file_inputs, file_outputs, random_file_inputs, stored_inputs
from ..network.reference import Difference, compare
from ..platform import Board
from . import native
from .board import Measured, chosen_emulator, measure
from .board.hosted import emulator
from .board.machine import machine_for
from .figures import Check, Figures, LayerCost, verdict
from .inputs import Inputs
from .judge import Source, judge
from .library import Library
from .packaging import calls_cmsis_nn
from .target import Architecture
from .toolchain import toolchain

# Less than a release build: it is compiled once and run a few times.
QUICK = ("-std=c99", "-O2", "-ffp-contract=off", "-fno-strict-aliasing")
CMSIS_NN = (
    "nothing was built or run: the code calls CMSIS-NN (arm_nnfunctions.h), which the project must bring, as the CMake "
    "target `cmsis-nn` or as the folder of its headers (make CMSIS_NN=...)"
)


@dataclass(frozen=True)
class _Case:
    inputs: Inputs  # as the library takes them
    expected: Mapping[str, Array]  # as the model file gives them


def verify(
    library: Library,
    source: Source | None = None,
    inputs: Sequence[Inputs] = (),
    count: int = 3,
    board: Board | None = None,
) -> Figures:
    """What compiling came to: outputs compared for the inputs given and for `count` random ones, sizes, instructions.

    `source` is the model file, or its bytes, which its own runtime executes; without it our kernels judge. What
    cannot be run for want of a compiler or an emulator is noted, and so is code that calls CMSIS-NN. That nothing at
    all can be run is an error, and so are outputs beyond what is allowed and more RAM than was predicted. Where
    quantising an input is left to the caller, it may be given either way.
    """
    if calls_cmsis_nn(library):
        return _noted(predicted(library, board), CMSIS_NN)
    network = library.network
    truth = judge(source, network, library.options)
    given = [file_inputs(network, values) for values in inputs]
    given += [random_file_inputs(network, seed) for seed in range(count)]
    cases = [_Case(stored_inputs(network, values), truth.run(values)) for values in given]
    figures = replace(predicted(library, board), reference=truth.name, notes=truth.notes)
    figures = _with_native(figures, library, cases)
    figures = _with_board(figures, library, cases, board)
    return _noted(_accepted(figures), *library.plan.notes)


def predicted(library: Library, board: Board | None = None) -> Figures:
    """What is known before anything has run."""
    plan, network = library.plan, library.network
    return Figures(
        name=library.name,
        model=network.name,
        target=library.target.name,
        board=board.name if board else plan.board,
        arithmetic=network.arithmetic.value,
        rounding=library.options.rounding.value,
        kernels=library.options.kernels.value,
        macs=plan.macs,
        ram_predicted=plan.peak_bytes,
        flash_weights=library.weight_bytes,
        layers=tuple(_cost(library, index) for index in range(len(library.stages))),
        notes=plan.notes,
    )


def _cost(library: Library, index: int) -> LayerCost:
    network, stage = library.network, library.plan.program.stages[index]
    macs = 0
    layers = []
    for step in library.plan.program.steps(stage):
        layer = network.by_name[step.layer]
        layers.append(layer)
        macs += layer.op.macs(step.region, network.shapes(layer))
    kinds = dict.fromkeys(words.operator(layer.op, network.shapes(layer)) for layer in layers)
    output = words.shape(network.tensors[layers[-1].output].shape) if layers else ""
    return LayerCost(stage.name, "; ".join(kinds), output, macs, None)


def _with_native(figures: Figures, library: Library, cases: Sequence[_Case]) -> Figures:
    """With the comparison on this machine: the same sources, whatever the target."""
    try:
        native.compiler()
    except EdgewrightError as error:
        return _noted(figures, f"not run on this machine: {error}")
    flags = native.FLAGS if library.target.architecture is Architecture.HOST else QUICK
    built = native.build(library, flags=flags)
    check = _checked(library, "this machine", cases, lambda inputs: built.run(inputs, poison=0xA5))
    return replace(figures, checks=(*figures.checks, check))


def _checked(
    library: Library, where: str, cases: Sequence[_Case], run: Callable[[Inputs], Mapping[str, Array]]
) -> Check:
    network = library.network
    found = [compare(network, file_outputs(network, run(case.inputs)), case.expected) for case in cases]
    worst = max(found, key=_badness)
    return Check(where, len(found), worst.largest, worst.unit, worst.allowed, worst.passes)


def _badness(difference: Difference) -> tuple[bool, float]:
    return not difference.passes, difference.largest


def _noted(figures: Figures, *notes: str) -> Figures:
    return replace(figures, notes=(*figures.notes, *notes))


def _with_board(figures: Figures, library: Library, cases: Sequence[_Case], board: Board | None) -> Figures:
    """With what the virtual board tells: outputs of the first case, sizes as linked, stack, instructions."""
    obstacle = _obstacle(library)
    if obstacle:
        return _noted(figures, f"not built for {library.target.name}: {obstacle}")
    case = cases[0]
    flag = library.options.optimise_flag(library.target)
    measured = measure(library, case.inputs, optimise=flag, profile=True, board=board)
    is_hosted = library.target.architecture is Architecture.HOST
    where = f"as a program ({measured.compiler})" if is_hosted else measured.emulator
    check = _checked(library, where, [case], lambda _: measured.outputs)
    return replace(with_measured(figures, measured), checks=(*figures.checks, check))


def with_measured(figures: Figures, measured: Measured) -> Figures:
    layers = tuple(replace(cost, instructions=measured.stages.get(cost.name)) for cost in figures.layers)
    return replace(
        figures,
        layers=layers,
        emulator=measured.emulator if measured.instructions is not None else None,
        compiler=measured.compiler,
        ram_linked=measured.ram_linked,
        stack_bytes=measured.stack_bytes,
        stack_bound=measured.stack_bound,
        flash_code=measured.flash_code,
        flash_runtime=measured.flash_runtime,
        flash_weights=measured.flash_weights,
        instructions=measured.instructions,
    )


def _obstacle(library: Library) -> str:
    """Why the library cannot be built and run for its target; empty where it can."""
    try:
        toolchain(library.target)
        if library.target.architecture in (Architecture.HOST, Architecture.AARCH64):
            emulator(library)
        else:
            chosen_emulator(machine_for(library.target))
    except EdgewrightError as error:
        return str(error)
    return ""


def _accepted(figures: Figures) -> Figures:
    if not figures.checks:
        raise EdgewrightError(f"nothing can be verified: {'; '.join(figures.notes)}. Or give --no-verify")
    if not figures.verified:
        raise EdgewrightError(f"verification failed: the code {verdict(figures)}")
    if figures.ram_linked not in (None, figures.ram_predicted):
        raise EdgewrightError(
            f"verification failed: {figures.ram_linked} bytes of RAM are linked, {figures.ram_predicted} were predicted"
        )
    return figures
