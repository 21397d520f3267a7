"""What is asked of a plan, and the plan that comes of it: whole layers, rows, tiles by hand, or a search over all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from ..emit.target import target_of
from ..errors import InputError
from ..memory import Techniques, Way
from ..memory import plan as make_plan
from ..memory.bounds import phased_bound
from ..network import Network
from ..platform import Board
from ..program import Plan
from .cost import model_of
from .explore import explore
from .search import fitting, least


class Method(Enum):
    """Who searches."""

    JOINT = "joint"  # every way to run every stretch at once
    PAPER = "paper"  # buffer by buffer, tiles alone (S 4.3.3)


@dataclass(frozen=True)
class Wish:
    """What a plan should be like. Nothing asked for: whole layers in the least RAM.

    A limit on extra work, `minimise_ram` or a `method` asks for a search: the least extra work that fits `ram` or the
    board, or the least RAM where nothing must fit or `minimise_ram` says so. Limits are shares: 0.05 for 5 % more.
    """

    ram: int | None = None
    plain: bool = False
    alignment: int | None = None
    pull_rows: bool = False
    phases: bool | tuple[str, ...] = False
    ways: tuple[Way, ...] = ()
    minimise_ram: bool = False
    max_overhead: float | None = None
    max_slowdown: float | None = None
    method: Method | None = None

    def __post_init__(self) -> None:
        if sum(map(bool, (self.plain, self.phases, self.ways, self.is_search))) > 1:
            raise InputError(
                "a plan is plain, by rows (phases), in tiles by hand (ways) or searched for: one of these"
            )
        if any(
            limit is not None and not 0 <= limit < float("inf") for limit in (self.max_overhead, self.max_slowdown)
        ):
            raise InputError("a limit on extra work is a share from 0, such as 0.05 for 5 %")
        if self.method is Method.PAPER and not self.limits == (None, None):
            raise InputError(
                "the paper's method knows no limit on extra work: leave the limit out, or search jointly"
            )

    @property
    def limits(self) -> tuple[float | None, float | None]:
        return self.max_overhead, self.max_slowdown

    @property
    def is_search(self) -> bool:
        return self.minimise_ram or self.method is not None or self.limits != (None, None)


def make(network: Network, wish: Wish, board: Board | None = None, target: str | None = None) -> Plan:
    """The plan that was asked for. `target` is whose time a limit on slowdown means, if not the board's."""
    plan = _made(network, wish, board, target)
    if not wish.pull_rows or plan.peak_bytes <= phased_bound(network, Techniques(), plan.alignment):
        return plan  # nothing is pulled, or no plan that holds the inputs could do with less
    resident = _made(network, replace(wish, pull_rows=False), board, target)
    return replace(plan, resident_bytes=resident.peak_bytes if resident.peak_bytes < plan.peak_bytes else None)


def _made(network: Network, wish: Wish, board: Board | None, target: str | None) -> Plan:
    if not wish.is_search:
        return make_plan(
            network,
            board,
            plain=wish.plain,
            alignment=wish.alignment,
            pull_rows=wish.pull_rows,
            phases=wish.phases,
            ways=wish.ways or None,
        )
    if wish.method is Method.PAPER:
        return explore(network, board=board, alignment=wish.alignment, pull_rows=wish.pull_rows).plan
    ram = None if wish.minimise_ram else wish.ram or _largest(board)
    find = partial(least, network) if ram is None else partial(fitting, network, ram)
    return find(
        board,
        alignment=wish.alignment,
        pull_rows=wish.pull_rows,
        max_overhead=wish.max_overhead,
        max_slowdown=wish.max_slowdown,
        target=_timed(wish, board, target),
    )


def _timed(wish: Wish, board: Board | None, target: str | None) -> str | None:
    """The target whose instructions are limited; an error where they cannot be told."""
    core = target or (target_of(board).name if board else None)
    if wish.max_slowdown is None:
        return core
    if core is None:
        raise InputError("a limit on slowdown needs a board or a target: whose time is it?")
    return model_of(core).target


def _largest(board: Board | None) -> int | None:
    return max((memory.usable for memory in board.ram), default=None) if board else None
