"""Python functions for the verbs `inspect`, `profile`, `map` and `app`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import onnx

from .application.draft import load_application
from .application.outcome import AppOutcome, plan_application
from .errors import InputError
from .mapping.answer import UNKNOWN, MappingAnswer
from .mapping.goal import ANY_GOAL, MappingGoal, map_for
from .mapping.profiled import problem_of
from .network import Network, Shape
from .network.read import read
from .network.summary import summary
from .platform import Board, load_board
from .platform.profile import Profile, load_profile
from .platform.units import parse_size
from .progress import Listener, listening
from .run.estimated_times import estimate_profile
from .run.profiling import THIS
from .run.profiling_here import measured_here

Model: TypeAlias = Network | str | os.PathLike[str] | bytes | onnx.ModelProto


def inspect_model(model: Model, *, shapes: Mapping[str, Shape] | None = None) -> dict[str, object]:
    """The contents of a model as `inspect --json` prints them: inputs, outputs, layers with their sizes and work."""
    return summary(_network(model, shapes))


def profile_model(
    model: Model,
    board: str | Path | Board = THIS,
    *,
    lanes: int | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> Profile:
    """The time of each layer: measured on this machine with up to `lanes` lanes, or estimated for a board."""
    network, hardware = _network(model, shapes), _board(board)
    if hardware is None:
        return measured_here(network, (), lanes)
    if lanes is not None:
        raise InputError(f"lanes are those of this machine; leave them out for '{hardware.name}'")
    return estimate_profile(network, hardware)


def map_model(
    model: Model,
    board: str | Path | Board = THIS,
    *,
    times: Profile | str | Path | None = None,
    cores: Mapping[str, int] | None = None,
    goal: MappingGoal = ANY_GOAL,
    shapes: Mapping[str, Shape] | None = None,
) -> MappingAnswer:
    """The mapping of layers to processors with the highest throughput, or the best one for `goal`.

    `times` is an existing profile; without one the layers are timed as by `profile_model`.
    """
    network, hardware = _network(model, shapes), _board(board)
    profile = load_profile(Path(times)) if isinstance(times, str | Path) else times
    profile = profile or profile_model(network, board)
    problem = problem_of(network, profile, hardware.name if hardware else THIS, cores)
    return map_for(problem, goal, hardware.power if hardware else UNKNOWN)


def plan_app(path: str | Path, *, ram: int | str | None = None, progress: Listener | None = None) -> AppOutcome:
    """Plans several networks in one memory, as a file describes them; raises Infeasible if limits or deadlines cannot
    be kept."""
    with listening(progress):
        return plan_application(load_application(Path(path)), None if ram is None else parse_size(ram))


def _network(model: Model, shapes: Mapping[str, Shape] | None) -> Network:
    return model if isinstance(model, Network) else read(model, shapes=shapes)


def _board(board: str | Path | Board) -> Board | None:
    """The board; None for this machine."""
    if isinstance(board, Board):
        return board
    return None if board == THIS else load_board(board)
