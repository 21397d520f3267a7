"""The emitted code beside the reference: run on this machine and on the virtual board, compared, measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

from .. import text
from ..board.machine import machine_for
from ..board.toolchain import toolchain
from ..errors import EdgewrightError
from ..network import Array, Network, describe
from ..network.interface import file_inputs, file_outputs, random_file_inputs, stored_inputs
from ..network.layerwise import Layerwise
from ..network.reference import OutputDifference, compare
from ..platform import Board
from ..platform.chip_time import board_instruction_time
from ..platform.target import Architecture
from ..program.selection import Linked
from . import native
from .figures import ByLayers, Check, Figures, LayerCost, amount, layer_by_layer, verdict
from .firmware import Measurement, chosen_emulator, measure
from .firmware import trace as board_trace
from .firmware.host_program import emulator
from .inputs import Inputs
from .judge import Judge, Source, judge
from .library import Library
from .packaging import calls_cmsis_nn
from .stagewise import compare_stages, is_same

# Less than a release build: it is compiled once and run a few times.
QUICK = ("-std=c99", "-O2", "-ffp-contract=off", "-fno-strict-aliasing")
CMSIS_NN = (
    "nothing was built or run: the code calls CMSIS-NN (arm_nnfunctions.h), which the project must bring, as the CMake "
    "target `cmsis-nn` or as the folder of its headers (make CMSIS_NN=...)"
)


MOST_ELEMENTS = 1 << 26  # of a tensor in a network that is run here: it and its reference then take about a gigabyte


Run = Callable[[Inputs], Mapping[str, Array]]


@dataclass(frozen=True)
class _Case:
    given: Inputs  # as the model file takes them
    inputs: Inputs  # as the library takes them
    expected: Mapping[str, Array]  # as the model file gives them
    judge: Judge
    accepted: list[Mapping[str, Array]] = field(default_factory=list)  # what code gave whose stages were judged

    @cached_property
    def layers(self) -> Layerwise | None:
        """The layers one by one, where quantised ones may each be a step off and the reference shows them."""
        try:
            return self.judge.by_layers(self.given, self.expected) if self.judge.by_layers else None
        except EdgewrightError:  # a file too large to be changed: its outputs must do
            return None


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

    Quantised layers of ONNX files, and layers that store real numbers as they come, are judged one by one: our kernels
    from the reference's own inputs. Outputs beyond what is allowed are accepted where every layer passes and the code
    gives what the kernels give; if not end to end, then stage by stage from the code's own inputs.
    """
    if calls_cmsis_nn(library.files):
        return _noted(predicted(library, board), CMSIS_NN)
    network = library.network
    _check_sizes(network)
    truth = judge(source, network, library.options)
    given = [file_inputs(network, values) for values in inputs]
    given += [random_file_inputs(network, seed) for seed in range(count)]
    cases = [_Case(values, stored_inputs(network, values), truth.run(values), truth) for values in given]
    figures = replace(predicted(library, board), reference=truth.name, missing=truth.missing, notes=tuple(truth.notes))
    figures = _with_native(figures, library, cases)
    figures = _with_layers(_with_board(figures, library, cases, board), cases)
    return _noted(_accepted(figures, library.plan.linked), *library.plan.notes)


def _check_sizes(network: Network) -> None:
    """Refuses to run what no machine for development should: mostly a file whose sizes are damaged."""
    for tensor in network.tensors.values():
        if tensor.size > MOST_ELEMENTS and tensor.name not in network.constants:
            raise EdgewrightError(
                f"tensor '{tensor.name}' has {tensor.size:,} elements, and {MOST_ELEMENTS:,} are the most that "
                "verifying runs here. Check the shapes of the model's inputs, or give --no-verify"
            )


def predicted(library: Library, board: Board | None = None) -> Figures:
    """What is known before anything has run."""
    plan, network, linked = library.plan, library.network, library.plan.linked
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
        ram_quality=plan.quality,
        cheaper=plan.cheaper,
        flash_weights=library.weight_bytes,
        layers=tuple(_cost(library, index) for index in range(len(library.stages))),
        notes=plan.notes,
        compiler=linked.compiler if linked else None,
        stack_bound=linked.stack_bytes if linked else None,
        flash_code=linked.code_bytes if linked else None,
        flash_runtime=linked.runtime_bytes if linked else None,
        instruction_time=board_instruction_time(board, network.is_real) if library.target.is_microcontroller else None,
    )


def _cost(library: Library, index: int) -> LayerCost:
    network, stage = library.network, library.plan.program.stages[index]
    layers = [network.by_name[step.layer] for step in library.plan.program.steps(stage)]
    kinds = dict.fromkeys(describe.operator(layer.op, network.shapes(layer)) for layer in layers)
    output = describe.shape(network.tensors[layers[-1].output].shape) if layers else ""
    return LayerCost(stage.name, "; ".join(kinds), output, library.plan.program.macs_of(stage), None)


def _with_native(figures: Figures, library: Library, cases: Sequence[_Case]) -> Figures:
    """With the comparison on this machine: the same sources, whatever the target."""
    try:
        native.compiler()
    except EdgewrightError as error:
        return _noted(figures, f"not run on this machine: {error}")
    flags = native.FLAGS if library.target.architecture is Architecture.HOST else QUICK
    threaded, lanes = native.in_threads(library), library.plan.lanes
    built = native.build(threaded, flags=flags)
    probed = cache(lambda: native.build(threaded, flags=flags, probes=True))
    check = _checked(
        library,
        "this machine" + (f" ({text.plural(lanes, 'thread')})" if lanes > 1 else ""),
        cases,
        run=lambda inputs: built.run(inputs, poison=0xA5),
        trace=lambda inputs: probed().trace(inputs),
    )
    built.close()
    return replace(figures, checks=(*figures.checks, check))


def _checked(library: Library, where: str, cases: Sequence[_Case], run: Run, trace: Run | None) -> Check:
    """`trace` gives the tensors between stages, if the code shows them there."""
    found = [_compared(library, case, run(case.inputs), trace) for case in cases]
    worst = max(found, key=_badness)
    return Check(where, len(found), worst.largest, worst.unit, worst.allowed, worst.passes)


def _compared(library: Library, case: _Case, values: Mapping[str, Array], trace: Run | None = None) -> OutputDifference:
    network = library.network
    outputs = file_outputs(network, values)
    found = compare(network, outputs, case.expected)
    if found.passes or case.layers is None:
        return found
    plain = compare(network, outputs, case.layers.plain)
    if plain.passes or not case.layers.passes:
        return min(plain, found, key=_badness)
    known = (case.layers.outputs, *case.accepted)
    if not any(is_same(compare(network, outputs, other)) for other in known):
        if trace is None or compare_stages(library.plan, network, case.inputs, trace(case.inputs)):
            return found
        case.accepted.append(outputs)
    return replace(found, allowed=found.largest, passes=True)


def _with_layers(figures: Figures, cases: Sequence[_Case]) -> Figures:
    """With what single layers came to: of the first inputs, and of those that had to be looked into."""
    looked = [case.layers for case in cases[:1] if case.layers]
    looked += [case.layers for case in cases[1:] if "layers" in case.__dict__ and case.layers]
    if not looked:
        return figures
    gaps = [layers.worst.difference for layers in looked if layers.worst]
    worst = max(gaps, key=lambda gap: (not gap.passes, gap.unit != "", gap.largest), default=None)
    itself = max((layers.itself for layers in looked), key=lambda gap: gap.largest)
    found = ByLayers(
        compared=looked[0].compared,
        is_exact=worst is None,
        difference=worst.largest if worst and worst.unit else 0.0,
        allowed=1.0,
        passes=all(layers.passes for layers in looked),
        first=next((layers.first.layer for layers in looked if layers.first), None),
        itself=itself.largest,
        unit=itself.unit,
    )
    figures = replace(figures, by_layers=found)
    if itself.largest == 0 or (itself.passes and not itself.unit):
        return figures
    name = f"{figures.reference}, with or without its optimisations"
    apart = amount(itself.largest, itself.unit)
    note = f"with its optimisations {figures.reference} is {apart} off itself without them"
    return _noted(replace(figures, reference=name), note)


def _badness(difference: OutputDifference) -> tuple[bool, float]:
    return not difference.passes, difference.largest


def _noted(figures: Figures, *notes: str) -> Figures:
    return replace(figures, notes=(*figures.notes, *notes))


def _with_board(figures: Figures, library: Library, cases: Sequence[_Case], board: Board | None) -> Figures:
    """With what the virtual board tells: outputs of the first case, sizes as linked, stack, instructions."""
    if library.target.is_portable:
        kind = board.processors[0].kind.value if board else "core"
        return _noted(figures, f"there is no virtual {kind} here: the same C was built and compared on this machine")
    obstacle = _obstacle(library)
    if obstacle:
        return _noted(figures, f"not built for {library.target.name}: {obstacle}")
    case = cases[0]
    flag = library.options.optimise_flag(library.target)
    measured = measure(library, case.inputs, optimise=flag, profile=True, board=board)
    is_hosted = library.target.architecture is Architecture.HOST
    where = f"as a program ({measured.compiler})" if is_hosted else measured.emulator
    is_traced = library.target.architecture in (Architecture.CORTEX_M, Architecture.RV32)
    look = partial(board_trace, library, optimise=flag, board=board) if is_traced else None
    check = _checked(library, where, [case], run=lambda _: measured.outputs, trace=look)
    return replace(with_measured(figures, measured), checks=(*figures.checks, check))


def with_measured(figures: Figures, measured: Measurement) -> Figures:
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
        critical_path=measured.critical_path,
    )


def _obstacle(library: Library) -> str:
    """Why the library cannot be built and run for its target; empty where it can."""
    try:
        toolchain(library.target)
        if library.target.architecture in (Architecture.HOST, Architecture.AARCH64):
            emulator(library)
        else:
            chosen_emulator(machine_for(library.target, library.plan.lanes))
    except EdgewrightError as error:
        return str(error)
    return ""


def _accepted(figures: Figures, promised: Linked | None) -> Figures:
    if not figures.checks:
        raise EdgewrightError(f"nothing can be verified: {'; '.join(figures.notes)}. Or give --no-verify")
    if not figures.verified:
        raise EdgewrightError(f"verification failed: the code {verdict(figures)}")
    if figures.by_layers and not figures.by_layers.passes:
        raise EdgewrightError(f"verification failed: {layer_by_layer(figures.by_layers)} (1 step allowed)")
    if figures.ram_linked not in (None, figures.ram_predicted):
        raise EdgewrightError(
            f"verification failed: {figures.ram_linked} bytes of RAM are linked, {figures.ram_predicted} were predicted"
        )
    if promised is not None and figures.compiler == promised.compiler:
        sizes = figures.flash_weights, figures.flash_code, figures.flash_runtime, figures.stack_bound
        wanted = promised.weights_bytes, promised.code_bytes, promised.runtime_bytes, promised.stack_bytes
        if sizes != wanted:
            raise EdgewrightError(
                f"verification failed: weights, code, what it calls and stack take {sizes} bytes, and {wanted} "
                "were predicted"
            )
    return figures


def run_once(library: Library, inputs: Inputs, board: Board | None = None) -> tuple[dict[str, Array], Figures]:
    """One run on the virtual board, or here where it was made for this machine: outputs in our layout, and figures."""
    flag = library.options.optimise_flag(library.target)
    measured = measure(library, stored_inputs(library.network, inputs), optimise=flag, profile=True, board=board)
    return dict(measured.outputs), with_measured(predicted(library, board), measured)
