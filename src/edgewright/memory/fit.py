"""Whether a plan fits, and which buffers determine its peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import text
from ..errors import InputError
from ..platform import Board
from ..program import Buffer, BufferKind, Plan
from .layout import Item, LayoutProblem, Placement, critical
from .layout.problem import align_up


@dataclass(frozen=True, slots=True)
class Fit:
    """The needs of a plan and the available bytes (None without a limit)."""

    arenas: int
    stack: int | None  # None: unknown
    flash_needed: int
    ram: int | None
    flash: int | None

    @property
    def ram_needed(self) -> int:
        return self.arenas + (self.stack or 0)

    @property
    def fits(self) -> bool:
        return self.ram_fits and (self.flash is None or self.flash_needed <= self.flash)

    @property
    def ram_fits(self) -> bool:
        return self.ram is None or self.ram_needed <= self.ram


def fit(plan: Plan, board: Board | None = None, ram: int | None = None) -> Fit:
    """Compares a plan's arenas, and its stack if known, with the board's memories or with `ram` bytes."""
    if ram is not None and ram <= 0:
        raise InputError("there must be some RAM: give a size such as 64K")
    flash = None if board is None else board.flash_size
    there = ram if board is None or ram is not None else _ram_for(plan, board)
    return Fit(plan.peak_bytes, plan.stack_bytes, plan.flash_bytes, there, flash)


def _ram_for(plan: Plan, board: Board) -> int:
    """Bytes of the memories that hold the arenas and the stack.

    A plan is spread over several memories only if each holds its part; otherwise it lies in one. The stack lies beside
    it, or in another memory that has more space left.
    """
    stack, largest = plan.stack_bytes or 0, max(board.ram, key=lambda memory: memory.usable)
    if len(plan.arenas) > 1:
        left = max(memory.usable - plan.arenas.get(memory.name, 0) for memory in board.ram)
        return board.ram_size if stack <= left else plan.peak_bytes + left
    homes = [memory for memory in board.ram if memory.name in plan.arenas and memory.usable >= plan.peak_bytes]
    home = homes[0] if homes else largest
    others = [memory.usable for memory in board.ram if memory is not home and memory.usable >= stack]
    is_beside = not others or not plan.peak_bytes <= home.usable < plan.peak_bytes + stack
    return home.usable if is_beside else home.usable + min(others)


def critical_buffers(plan: Plan) -> tuple[str, ...]:
    """The buffers that stack up from address 0 to the peak; one of them must shrink before the peak can (S 4.3.3, fig.
    4.10)."""
    chosen: list[str] = []
    for memory, size in plan.arenas.items():
        # Scratch of kernels takes what is free.
        buffers = [b for b in plan.buffers if b.memory == memory and b.kind is not BufferKind.KERNELS]
        items = tuple(Item(b.name, b.first, b.last + 1, align_up(b.size, plan.alignment)) for b in buffers)
        offsets = {b.name: b.offset for b in buffers}
        placement = Placement(offsets, align_up(size, plan.alignment), 0, "planned")
        problem = LayoutProblem(items, _gaps(buffers, plan.alignment), plan.alignment)
        chosen.extend(critical(problem, placement))
    return tuple(chosen)


def _gaps(buffers: Sequence[Buffer], alignment: int) -> Mapping[tuple[str, str], tuple[int, int]]:
    """The least distances of pairs that share bytes while both are live: an output that overlaps its input."""
    gaps = {}
    alive: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: b.first):
        alive = [other for other in alive if other.last >= buffer.first]
        for other in alive:
            x, y = sorted((other, buffer), key=lambda b: b.offset)
            if y.offset < x.end:
                gaps[x.name, y.name] = (y.offset - x.offset, align_up(y.size, alignment))
        alive.append(buffer)
    return gaps


def fullest(plan: Plan) -> tuple[int, tuple[Buffer, ...]]:
    """The stage with the most live bytes, and its buffers from the largest down."""
    stage = max(range(len(plan.live_bytes)), key=plan.live_bytes.__getitem__)
    return stage, tuple(sorted(plan.live(stage), key=lambda buffer: (-buffer.size, buffer.offset, buffer.name)))


def dominating(plan: Plan, most: int = 3) -> str:
    """The fullest stage in words: "'conv1' fills it, with 'input' (3,072 B) and 'conv1' (16,384 B)"."""
    stage, buffers = fullest(plan)
    shown = [f"'{buffer.name}' ({text.size(buffer.size)})" for buffer in buffers[:most]]
    if len(buffers) > most:
        rest = buffers[most:]
        shown.append(f"{len(rest)} more ({text.size(sum(buffer.size for buffer in rest))})")
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
    stages = plan.program.stages
    filling = f"stage '{stages[stage].name}' fills it" if stages else "what goes in and comes out fills it"
    return filling + (f", with {listed}" if listed else "")
