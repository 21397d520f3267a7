"""What dominates a plan's RAM: the stage in which most is in use, and the largest buffers of that moment."""

from __future__ import annotations

from .. import text
from ..program import Buffer, Plan


def fullest(plan: Plan) -> tuple[int, tuple[Buffer, ...]]:
    """The number of the stage, and its buffers from the largest down."""
    stage = max(range(len(plan.live_bytes)), key=plan.live_bytes.__getitem__)
    return stage, tuple(sorted(plan.live(stage), key=lambda buffer: (-buffer.size, buffer.offset, buffer.name)))


def dominating(plan: Plan, most: int = 3) -> str:
    """The same in words: "'conv1' fills it, with 'input' (3,072 B) and 'conv1' (16,384 B)"."""
    stage, buffers = fullest(plan)
    shown = [f"'{buffer.name}' ({text.size(buffer.size)})" for buffer in buffers[:most]]
    if len(buffers) > most:
        rest = buffers[most:]
        shown.append(f"{len(rest)} more ({text.size(sum(buffer.size for buffer in rest))})")
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
    return f"stage '{plan.program.stages[stage].name}' fills it" + (f", with {listed}" if listed else "")
