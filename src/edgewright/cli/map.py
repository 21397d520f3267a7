"""`edgewright map`: assigns the layers of a model to the processors of a board."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .. import text
from ..errors import InputError
from ..files import output_folder, write_atomic
from ..mapping.answer import UNKNOWN, MappingAnswer
from ..mapping.deploy import deployable
from ..mapping.exact import MappingLimits
from ..mapping.front import mapping_front
from ..mapping.goal import ANY_GOAL, MappingGoal, map_for
from ..mapping.measurement import measure_mapping
from ..mapping.paper.genetic import map_genetic
from ..mapping.problem import MappingProblem
from ..mapping.profiled import problem_of
from ..network import Network, Shape
from ..platform import Board, load_board
from ..platform.profile import Profile, load_profile
from ..program.deployment_file import save_deployment, save_reduced
from ..program.deployment_memory import with_built_weights
from ..report.mapping_page import mapping_page
from ..run.build import build_pipeline
from ..run.estimated_times import estimate_profile
from ..run.pipeline import Pipeline
from ..run.profiling import THIS, fingerprint
from ..run.profiling_here import measured_here
from .common import console, print_json, print_notes, print_written, read_model, shown, working
from .map_tables import answer_to_dict, channels_table, front_table, run_lines, stages_table, verdict


@dataclass(frozen=True, slots=True)
class MapOptions:
    """The options of `edgewright map`, as parsed."""

    model: Path
    board: str
    times: Path | None
    cores: dict[str, int]
    executors: tuple[str, ...]
    stages: int | None
    replicas: int | None
    lanes: int | None
    max_latency: float | None
    ram: int | None
    min_throughput: float | None
    minimise: Any
    method: str
    fitness: Any
    pareto: bool
    page: Path | None
    output: Path | None
    is_run: bool
    frames: int
    shapes: dict[str, Shape]
    as_json: bool


def map_(options: MapOptions) -> None:
    goal = MappingGoal(
        options.minimise,
        options.max_latency,
        options.ram,
        options.min_throughput,
        MappingLimits(options.stages, options.replicas, options.lanes),
    )
    if options.method == "ga" and goal != ANY_GOAL:
        raise InputError(
            "--method ga gives each layer one core and knows neither limits nor other goals; use --method exact"
        )
    if (options.is_run or options.output) and options.board != THIS:
        raise InputError(f"parts are built for this machine, not for '{options.board}'; map for --board this")
    hardware = None if options.board == THIS else load_board(options.board)
    power = hardware.power if hardware else UNKNOWN
    network = read_model(options.model, options.shapes)
    profile = _times(network, hardware, options.times, options.executors, options.lanes)
    name = hardware.name if hardware else THIS
    problem = problem_of(network, profile, name, _named_cores(profile, options.cores))
    front: tuple[MappingAnswer, ...] = ()
    with working(f"mapping {network.name}"):
        answer = (
            map_genetic(problem, options.fitness, power) if options.method == "ga" else map_for(problem, goal, power)
        )
        if options.pareto:
            front = mapping_front(problem, goal, power)
    built = _built(answer, network, options.model, options.output, options.frames if options.is_run else 0)
    record = answer_to_dict(answer) | built.figures
    if front:
        record["front"] = [answer_to_dict(one) for one in front]
    if options.page:
        measured = built.figures.get("measured_throughput")
        write_atomic(options.page, mapping_page(answer, front, measured, built.shares))
    if options.as_json:
        print_json(record)
        return
    _print(problem, answer, front)
    for line in built.lines:
        console.print(line, soft_wrap=True)
    print_written([options.page, options.output])


@dataclass(frozen=True)
class BuiltMapping:
    """The results of building and running a mapping: for `--json`, for the terminal and for the page."""

    figures: dict[str, Any]
    lines: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()


def _built(answer: MappingAnswer, network: Network, model: Path, output: Path | None, frames: int) -> BuiltMapping:
    """Compiles the mapping into `output`, or to run it for some frames; does nothing if neither is requested."""
    if not output and not frames:
        return BuiltMapping({})
    with working(f"building {network.name}"):
        deployment, note = deployable(answer, network, THIS)
    memory = deployment.ram_bytes
    lines = [shown(note)] if note else []
    lines.append(f"arenas and FIFOs as planned: {text.size(memory)}")
    figures: dict[str, Any] = {"memory_bytes": memory}
    with TemporaryDirectory(prefix="edgewright-") as passing:
        folder = output or Path(passing)
        with working(f"compiling {network.name}"), output_folder(folder) as fresh:
            built = build_pipeline(deployment, fresh)
            if output:
                save_deployment(with_built_weights(deployment, built.built_weights_bytes), fresh)
                save_reduced(built, fresh, is_beside_source=True)
        if not frames:
            return BuiltMapping(figures, tuple(lines))
        with Pipeline(built, folder) as running, working(f"running {network.name}"):
            measured = measure_mapping(answer, network, model, running, frames)
    figures |= measured.to_dict()
    return BuiltMapping(figures, (*lines, *run_lines(answer, measured)), measured.busy(answer, deployment))


def _times(
    network: Network, board: Board | None, times: Path | None, executors: tuple[str, ...], most_lanes: int | None
) -> Profile:
    """The given times; else times measured here, or estimated for the board."""
    if executors and (times or board):
        raise InputError("executors are measured on this machine; leave --executor out, or --times and --board")
    if times is None and board is None:
        with working(f"measuring the layers of {network.name}"):
            return measured_here(network, executors, most_lanes)
    if times is None:
        assert board is not None
        return estimate_profile(network, board)
    profile = load_profile(times)
    if board is None and profile.machine and profile.machine != (here := fingerprint()):
        there = profile.machine
        raise InputError(
            f"these times were measured on another machine ({there.cores} × {there.model}, {there.compiler}; this one: "
            f"{here.cores} × {here.model}, {here.compiler}); leave --times out to measure here"
        )
    return profile


def _named_cores(profile: Profile, cores: dict[str, int]) -> dict[str, int]:
    """Cores by processor; a number without a name applies to the only processor that is not a GPU."""
    named = dict(cores)
    names = [processor.name for processor in profile.processors]
    if "" in named:
        plain = [processor.name for processor in profile.processors if processor.kind != "gpu"]
        if len(plain) != 1:
            raise InputError(f"--cores needs a name here: NAME=N with one of {', '.join(names)}")
        named[plain[0]] = named.pop("")
    if unknown := [name for name in named if name not in names]:
        raise InputError(f"--cores names '{unknown[0]}', which the times do not know; expected {', '.join(names)}")
    return named


def _print(problem: MappingProblem, answer: MappingAnswer, front: tuple[MappingAnswer, ...]) -> None:
    console.print(stages_table(answer))
    if answer.timing.fifos:
        console.print(channels_table(answer))
    if front:
        console.print(front_table(front))
    console.print(verdict(answer), soft_wrap=True)
    print_notes(problem.notes)
