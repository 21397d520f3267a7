"""An application with scenarios as read: the network of each, its order of layers, and their times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .. import text
from ..application.description import AppNetworkEntry
from ..application.quantisation import read_network
from ..dataflow.cnn.counts import input_actors, output_actors
from ..errors import InputError
from ..fusion.request import PlanRequest, make_plan
from ..fusion.timing import TimedPlan, Timing
from ..memory import plan as plan_network
from ..network import Network, Quant
from ..network.operators import Reshape
from ..platform import Board, load_board
from ..platform.chip_time import assumed_instruction_time
from ..platform.target import TARGETS, Target, chosen_target
from ..program import Plan
from .description import AdaptiveFile, RuleEntry, ScenarioEntry, read_adaptive

UNKNOWN_CLOCK = 10**9  # hertz, if no board gives the processor's clock


@dataclass(frozen=True)
class AppScenario:
    """A scenario with its network."""

    entry: ScenarioEntry
    network: Network
    times: Mapping[str, float]  # seconds of each layer, in the order of execution
    is_estimated: bool  # whether the times are estimates

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers in the order of execution, as `executed_layers` names them."""
        return tuple(self.times)

    @property
    def frame_time(self) -> float:
        """Seconds of one frame, layer by layer on one processor."""
        return sum(self.times.values())


@dataclass(frozen=True)
class AdaptiveApplication:
    """An application with scenarios as read."""

    file: AdaptiveFile
    scenarios: tuple[AppScenario, ...]
    board: Board | None
    target: Target
    notes: tuple[str, ...] = ()  # assumptions, for people

    def scenario(self, name: str) -> AppScenario:
        return next(one for one in self.scenarios if one.name == name)


def load_adaptive(path: Path) -> AdaptiveApplication:
    """The application in a file, with its networks and its board."""
    return assemble_adaptive(read_adaptive(path), path.parent, str(path))


def assemble_adaptive(file: AdaptiveFile, folder: Path, where: str) -> AdaptiveApplication:
    """The application that a file describes; paths are relative to `folder`, and errors call it `where`."""
    board = None
    if file.board is not None:
        board = load_board(folder / file.board if file.board.endswith(".toml") else file.board)
    if file.target is not None and file.target not in TARGETS:
        raise InputError(f'{where}: target is "{file.target}"; expected one of {", ".join(TARGETS)}')
    target = chosen_target(board, file.target) or TARGETS["host"]
    networks = {
        entry.name: replace(read_network(entry, folder, f"{where}: network[{index}]"), name=entry.name)
        for index, entry in enumerate(file.networks)
    }
    estimates = {
        entry.name: _estimated_times(networks[entry.name], entry, board, target)
        for entry in file.networks
        if not all(one.layer_times for one in file.scenarios if one.network_name == entry.name)
    }
    scenarios = tuple(
        AppScenario(
            one,
            networks[one.network_name],
            _given_times(one, networks[one.network_name], f"{where}: scenario[{index}].layer_times")
            if one.layer_times
            else estimates[one.network_name],
            not one.layer_times,
        )
        for index, one in enumerate(file.scenarios)
    )
    application = AdaptiveApplication(file, scenarios, board, target)
    for key, problem in _problems_of_networks(application):
        raise InputError(f"{where}: {key} {problem}")
    return replace(application, notes=tuple(_notes(application)))


def executed_layers(network: Network) -> tuple[str, ...]:
    """The layers of the paper's model in the order of execution: inputs, layers that execute something, outputs."""
    executing = (layer.name for layer in network.layers if not isinstance(layer.op, Reshape))
    return (*input_actors(network).values(), *executing, *output_actors(network).values())


def scenario_plan(application: AdaptiveApplication, scenario: AppScenario) -> Plan:
    """The plan of a scenario as its network's entry asks for it, alone in the arena."""
    request = scenario_request(application, scenario)
    return make_plan(scenario.network, request, application.board, application.target)


def scenario_request(application: AdaptiveApplication, scenario: AppScenario) -> PlanRequest:
    """The planning request in the entry of the scenario's network.

    Frames of confidence cascades stay in the caller's memory, for the next scenario to read.
    """
    entry = application.file.network_of(scenario.name)
    is_kept = any(rule.is_cascade for rule in application.file.rules) and not entry.pull_input
    return PlanRequest(
        ram=application.file.limits.ram,
        plain=entry.plain,
        phases=entry.phases,
        pull_rows=entry.pull_input,
        minimise_ram=entry.minimise == "ram",
        max_overhead=entry.max_overhead,
        max_slowdown=entry.max_slowdown,
        outside=tuple(scenario.network.inputs) if is_kept else (),
    )


def _given_times(entry: ScenarioEntry, network: Network, key: str) -> Mapping[str, float]:
    """The times in the file; inputs and outputs may be left out and then take no time."""
    layers, given = executed_layers(network), entry.layer_times
    ends = {*input_actors(network).values(), *output_actors(network).values()}
    computing = [name for name in layers if name not in ends]
    if len(given) == len(layers):
        return dict(zip(layers, given, strict=True))
    if len(given) != len(computing):
        names = ", ".join(layers) if len(layers) <= 12 else f"{', '.join(layers[:6])}, …, {layers[-1]}"
        raise InputError(
            f"{key} has {text.plural(len(given), 'time')}, and '{network.name}' has {len(layers)} layers ({names}); "
            f"expected {len(layers)} times, or {len(computing)} without inputs and outputs"
        )
    return dict.fromkeys(layers, 0.0) | dict(zip(computing, given, strict=True))


def _estimated_times(
    network: Network, entry: AppNetworkEntry, board: Board | None, target: Target
) -> Mapping[str, float]:
    """Estimated seconds of each layer run whole. Inputs and outputs take none."""
    timed = TimedPlan(plan_network(network, plain=True), Timing(target, vectors=True).costs(network))
    counts: dict[str, float] = {}
    for stage, instructions in zip(timed.plan.program.stages, timed.stages, strict=True):
        for name in stage.layers:
            counts[name] = instructions / len(stage.layers)
    executed = {name: counts.get(name, 0.0) for name in executed_layers(network)}
    total = max(1.0, sum(executed.values()))
    scale = (entry.instructions or total) / total * instruction_time(board, network)
    return {name: instructions * scale for name, instructions in executed.items()}


def instruction_time(board: Board | None, network: Network) -> float:
    """Seconds of an instruction; without a board, one cycle at a clock that a note states."""
    return assumed_instruction_time(board, network.is_real) if board else 1 / UNKNOWN_CLOCK


def _problems_of_networks(application: AdaptiveApplication) -> Iterator[tuple[str, str]]:
    """Problems that need networks and times to be known: (key, problem)."""
    first, *others = application.scenarios
    for index, other in enumerate(others, start=1):
        for what, mine, theirs in (
            ("inputs", _ends(first.network, first.network.inputs), _ends(other.network, other.network.inputs)),
            ("outputs", _ends(first.network, first.network.outputs), _ends(other.network, other.network.outputs)),
        ):
            if mine != theirs:
                yield (
                    f"scenario[{index}].network",
                    f"has the {what} {_said(theirs)}, and scenario '{first.name}' has {_said(mine)}; expected the "
                    "same shapes and types in all scenarios, since any of them may take a frame",
                )
    for index, one in enumerate(application.scenarios):
        classes, labels = one.network.tensors[one.network.outputs[0]].shape[-1], len(one.entry.labels)
        if labels not in (0, classes):
            yield (
                f"scenario[{index}].labels",
                f"has {text.plural(labels, 'label')}, and '{one.network.name}' gives {text.plural(classes, 'score')}; "
                "expected one for each",
            )
    for index, rule in enumerate(application.file.rules):
        if rule.scenario is not None:
            network = application.scenario(rule.scenario).network
            if not _gives_scores(network):
                yield (
                    f"rule[{index}].scenario",
                    f'is "{rule.scenario}", whose output is {_said(_ends(network, network.outputs))}; a confidence '
                    "cascade expects one vector of two or more class scores",
                )
            yield from _differently_stored(network, application.scenario(rule.request).network, f"rule[{index}]", rule)
    limit = application.file.adapt.delay
    for index, one in enumerate(application.scenarios):
        if limit is not None and one.is_estimated and application.board is None:
            yield (
                "adapt.delay",
                f"is {text.duration(limit)}, and nobody knows how fast '{one.name}' is; expected a board, or "
                f"scenario[{index}].layer_times",
            )
        if limit is not None and one.frame_time > limit:
            yield (
                "adapt.delay",
                f"is {text.duration(limit)}, and a frame of '{one.name}' alone takes {text.duration(one.frame_time)}, "
                "so that no switch to it can be as fast; expected at least that",
            )


def _differently_stored(network: Network, other: Network, key: str, rule: RuleEntry) -> Iterator[tuple[str, str]]:
    """Inputs that the two networks of a cascade would interpret differently."""
    for name, its in zip(network.inputs, other.inputs, strict=True):
        mine, theirs = network.tensors[name].quant, other.tensors[its].quant
        if mine != theirs:
            yield (
                f"{key}.request",
                f"is \"{rule.request}\", which stores its input '{its}' with {_stored(theirs)}, and "
                f'"{rule.scenario}" stores the same frame with {_stored(mine)}; a confidence cascade hands the bytes '
                "of a frame on, so expected equal scales: quantise both networks with the same range of inputs",
            )


def _stored(quant: Quant | None) -> str:
    return "no scale" if quant is None else f"scale {quant.scale[0]:.9g} and zero point {quant.zero[0]}"


def _ends(network: Network, names: tuple[str, ...]) -> tuple[tuple[tuple[int, ...], str], ...]:
    tensors = (network.tensors[name] for name in names)
    return tuple((tensor.shape, tensor.dtype.value) for tensor in tensors)


def _said(ends: tuple[tuple[tuple[int, ...], str], ...]) -> str:
    return " and ".join(f"{dtype}[{'x'.join(map(str, shape))}]" for shape, dtype in ends)


def _gives_scores(network: Network) -> bool:
    """Whether the network returns one vector of two or more ordered numbers: reals, or stored reals of one scale."""
    if len(network.outputs) != 1:
        return False
    output = network.tensors[network.outputs[0]]
    is_real = output.dtype.is_float or (output.quant is not None and not output.quant.is_per_channel)
    return is_real and output.size > 1 and sum(size > 1 for size in output.shape) == 1


def _notes(application: AdaptiveApplication) -> Iterator[str]:
    if application.board is None and any(one.is_estimated for one in application.scenarios):
        yield (
            f"no board says how fast the processor is: times are estimated instructions at "
            f"{UNKNOWN_CLOCK // 10**9} GHz; name a board, or give layer_times"
        )
    for what in ("inputs", "outputs"):
        scales = {
            tuple(one.network.tensors[name].quant for name in getattr(one.network, what))
            for one in application.scenarios
        }
        if len(scales) > 1:
            yield (
                f"the {what} of scenarios are stored with different scales: convert with those of the scenario that "
                "computes the frame"
            )
