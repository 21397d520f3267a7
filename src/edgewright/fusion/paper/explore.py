"""Automated tiling exploration (S 4.3, fig. 4.1): plan, split the buffer that sets the peak, and plan again.

The paper's method with our planner, as a baseline of the joint search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ...interrupts import keeping_best
from ...memory import critical_buffers
from ...memory import plan as make_plan
from ...network import Network
from ...platform import Board
from ...program import FusionSchedule, Plan
from ..choice import interrupted
from .paths import Path, TilingMethod, candidates, known_methods, schedule_of
from .trials import Trial, TrialEvaluator, with_schedule

MOST_ROUNDS = 32
CUTOFF = 0.05  # of the largest critical buffer; smaller ones rarely matter (S 4.3.3)


@dataclass(frozen=True)
class ExplorationRound:
    """One critical buffer, the candidates tried for it, and the chosen one; None if nothing was better."""

    buffer: str
    peak_bytes: int  # before
    trials: tuple[Trial, ...]
    chosen: Trial | None


@dataclass(frozen=True)
class Exploration:
    """The result of the exploration and its rounds."""

    plan: Plan
    schedules: tuple[FusionSchedule, ...]
    rounds: tuple[ExplorationRound, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths in the plan, in the order in which they were found."""
        chosen = [each.chosen for each in self.rounds if each.chosen]
        return tuple(trial.path for trial in chosen if trial.schedule in self.schedules)


def explore(
    network: Network,
    *,
    methods: Collection[str] = tuple(TilingMethod),
    board: Board | None = None,
    alignment: int | None = None,
    plain: bool = True,
    pull_rows: bool = False,
    cutoff: float = CUTOFF,
    most_rounds: int = MOST_ROUNDS,
) -> Exploration:
    """The plan after splitting critical buffers, the largest first, until no candidate saves RAM.

    With `plain`, plans use order and layout only, as in the paper. A layer runs one way only: a path through layers of
    an earlier one replaces that one.

    >>> from edgewright import samples, read_model
    >>> found = explore(read_model(samples.build("stahl_running_example")))
    >>> found.plan.peak_bytes, [str(path) for path in found.paths]  # S fig. 4.12, 4.13
    (16384, ['[FDTO,PART] PD_D along channels, N=3'])
    """
    known_methods(methods)
    words = alignment or (board.alignment if board else None)
    replan = partial(make_plan, network, plain=plain, explain=False, pull_rows=pull_rows)
    plan = replan(alignment=words)
    evaluator = TrialEvaluator.of(network, plain, pull_rows, plan.alignment)
    schedules: tuple[FusionSchedule, ...] = ()
    rounds: list[ExplorationRound] = []
    is_whole = True
    try:
        with keeping_best():
            for _ in range(most_rounds):
                rounds += _until_better(evaluator, plan, schedules, methods, cutoff)
                if not rounds or rounds[-1].chosen is None:
                    break
                further = with_schedule(schedules, rounds[-1].chosen.schedule)
                plan, schedules = replan(alignment=words, schedules=further), further
    except KeyboardInterrupt:  # the state so far is a valid plan
        is_whole = False
    if board is not None:
        plan = replan(board=board, alignment=alignment, schedules=schedules or None)
    return Exploration(plan if is_whole else interrupted(plan), schedules, tuple(rounds))


def _until_better(
    evaluator: TrialEvaluator,
    plan: Plan,
    schedules: Sequence[FusionSchedule],
    methods: Collection[str],
    cutoff: float,
) -> Iterator[ExplorationRound]:
    """Tries one critical buffer after the other, the largest first, until a path improves the plan."""
    known: set[tuple[FusionSchedule, ...]] = {tuple(schedules)}
    for buffer in _worth_splitting(plan, cutoff):
        tensors = [name for name, view in plan.views.items() if view.buffer == buffer]
        paths = [path for name in tensors for path in candidates(evaluator.network, name, methods)]
        fresh = [path for path in paths if with_schedule(schedules, schedule_of(evaluator.network, path)) not in known]
        trials = evaluator.tried_all(schedules, fresh)
        known |= {with_schedule(schedules, trial.schedule) for trial in trials}
        better = [trial for trial in trials if trial.peak_bytes is not None and trial.peak_bytes < plan.peak_bytes]
        chosen = min(better, key=_preference) if better else None
        yield ExplorationRound(buffer, plan.peak_bytes, tuple(trials), chosen)
        if chosen:
            return


def _preference(trial: Trial) -> tuple[int, int, int]:
    """A sort key: least RAM first, then the shortest path with the fewest parts."""
    assert trial.peak_bytes is not None
    return trial.peak_bytes, len(trial.path.layers), trial.path.partition.parts


def _worth_splitting(plan: Plan, cutoff: float) -> list[str]:
    """The critical buffers, largest first, without inputs and outputs of the application."""
    network = plan.network
    given = [name for name in (*network.inputs, *network.outputs) if name not in network.constants]
    interface = {plan.views[name].buffer for name in given}
    sizes = {buffer.name: buffer.size for buffer in plan.buffers}
    critical = sorted(critical_buffers(plan), key=lambda name: -sizes[name])
    largest = max((sizes[name] for name in critical), default=0)
    return [name for name in critical if name not in interface and sizes[name] >= cutoff * largest]
