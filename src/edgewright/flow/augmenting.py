"""Augmented design points: every network of a front under several manners of execution (M 1.4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote, split

from ..errors import EdgewrightError, Infeasible, InputError
from ..files import read_file
from ..platform import Board
from ..search.front import DesignFront, DesignPoint
from ..search.pricing import CandidatePricer, Manner, Price
from ..search.workers import LocalWorkers
from .manners import price_manner

PLANS = "plans"  # the folder beside the front
Told = Callable[[int, int], None]  # networks done, networks in all


@dataclass(frozen=True)
class AugmentedNetwork:
    """A network's points: one for each manner that fits the board and costs something else than those before it."""

    points: tuple[DesignPoint, ...]
    plans: dict[str, str]  # by the file's path
    left_out: tuple[str, ...]  # sentences


@dataclass(frozen=True)
class AugmentJob:
    """A point to augment."""

    point: DesignPoint
    number: int
    model: Path
    stored: str  # the model as the augmented front names it
    board_name: str
    manners: tuple[Manner, ...]


def augment(
    front: DesignFront,
    folder: Path,
    prefix: str,
    board: tuple[Board, str],
    manners: Sequence[Manner],
    workers: int | None = None,
    told: Told = lambda _done, _all: None,
) -> tuple[DesignFront, dict[str, str], tuple[str, ...]]:
    """The front of all points under all manners, the plans of these by path, and what was left out and why.

    `folder` is that of the front; the augmented one names models with `prefix` before them.
    """
    jobs = [
        AugmentJob(
            point,
            number,
            folder / point.model,
            f"{prefix}{point.model}",
            board[1],
            _first(point, manners),
        )
        for number, point in enumerate(front.points)
    ]
    found: dict[int, AugmentedNetwork] = {}
    for index, result in LocalWorkers(workers).map(augmented, board[0], jobs):
        found[index] = result
        told(len(found), len(jobs))
    results = [found[index] for index in range(len(jobs))]  # in the order of the front
    points = tuple(point for result in results for point in result.points)
    left_out = tuple(why for result in results for why in result.left_out)
    if not points:
        raise Infeasible(f"no network fits '{board[1]}' in any manner of execution: {left_out[0] if left_out else ''}")
    plans = {path: text for result in results for path, text in result.plans.items()}
    return front.model_copy(update={"points": points, "board": board[1]}), plans, left_out


def _first(point: DesignPoint, manners: Sequence[Manner]) -> tuple[Manner, ...]:
    """The manners, the point's own first: of manners with equal prices, the first one stays."""
    return tuple(sorted(manners, key=lambda manner: manner.value != point.manner))


def augmented(board: Board, job: AugmentJob) -> AugmentedNetwork:
    """The points of one network."""
    model = read_file(job.model, "the models lie beside the front that names them")
    points: list[DesignPoint] = []
    plans: dict[str, str] = {}
    left_out: list[str] = []
    known: dict[Price, str] = {}
    for manner in job.manners:
        name = f"{job.point.name}-{manner.value}"
        try:
            price = price_manner(model, board, manner)
        except Infeasible as error:
            left_out.append(f"{name}: {error}")
            continue
        except EdgewrightError as error:
            raise InputError(f"the model of point '{job.point.name}' cannot be used: {error}") from error
        if price.price in known:
            left_out.append(f"{name}: equals {known[price.price]}")
            continue
        known[price.price] = name
        path = f"{PLANS}/{_file_name(name, job.number)}.json" if price.plan else ""
        if path:
            plans[path] = price.plan_text
        points.append(_point(job, board, manner, price.price, name, path))
    return AugmentedNetwork(tuple(points), plans, tuple(left_out))


def _point(job: AugmentJob, board: Board, manner: Manner, price: Price, name: str, path: str) -> DesignPoint:
    command = CandidatePricer(board, manner).command(job.stored)
    if path:
        ends = "--quantised-input --quantised-output"
        command = f"edgewright compile {quote(job.stored)} --board {quote(job.board_name)} {ends} --plan {quote(path)}"
    return job.point.model_copy(
        update={
            "name": name,
            "manner": manner.value,
            "model": job.stored,
            "command": command,
            "ram_bytes": price.ram_bytes,
            "flash_bytes": price.flash_bytes,
            "instructions": price.instructions,
            "measured_instructions": None,
            "latency_s": price.seconds,
            "throughput": 1 / price.seconds,
            "energy_j": price.energy_j,
        }
    )


def plan_path(point: DesignPoint) -> str | None:
    """The file of an augmented point's plan, from the folder of the front; None for a mapping."""
    words = split(point.command)
    return words[words.index("--plan") + 1] if "--plan" in words else None


def _file_name(name: str, number: int) -> str:
    """A unique file name; points may have any names."""
    return f"{number:03}-" + re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
