"""Where a plan puts tensors, running sums and scratch, as C expressions over the arenas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..kernels.call import CTensor
from ..kernels.printing.constants import C_TYPES
from ..kernels.printing.source import Expr, plus, times
from ..kernels.sites import Sites
from ..network import Network
from ..program import Buffer, BufferKind, Plan

LANE = "lane"  # the parameter of the run function that says which lane is at work


@dataclass(frozen=True)
class ArenaPointers:
    sites: Sites
    memories: Mapping[str, str]  # the C variable of each memory's arena

    @property
    def plan(self) -> Plan:
        return self.sites.plan

    @property
    def network(self) -> Network:
        return self.sites.facts.network

    def at(self, memory: str, offset: Expr) -> str:
        """C of a pointer into an arena."""
        arena = self.memories[memory]
        return f"{arena} + {offset}" if isinstance(offset, int) else f"{arena} + ({offset})"

    def buffer(self, buffer: Buffer | None) -> str | None:
        """C of a pointer to a buffer (uint8_t *), if there is one."""
        if buffer is None:
            return None
        return f"({self.at(buffer.memory, plus(*_of_lane(buffer), buffer.offset))})"

    def tensor(self, name: str, shift: Sequence[Expr] = ()) -> CTensor:
        """A tensor where it lies, `shift` bytes further on where only a tile of it is kept."""
        placed = self.sites.placement(name)
        if placed.memory is None:
            return CTensor(placed.tensor, placed.strides)
        # Kernels count from the first element of the whole tensor, wherever the current tile begins.
        shift = (*shift, *_of_lane(self.plan.buffer_named[self.plan.views[name].buffer]))
        zero = plus(*shift, placed.first)
        at = self.memories[placed.memory] if zero == 0 and not shift else self.at(placed.memory, zero)
        ctype = C_TYPES[placed.tensor.dtype.value]
        pointer = f"({at})" if ctype == "uint8_t" else f"(({ctype} *)(void *)({at}))"
        return CTensor(placed.tensor, placed.strides, placed.window, placed.memory, placed.first, placed.last, pointer)

    def sums(self, layer: str) -> str:
        """C of a pointer to the running sums of a layer."""
        own = self.buffer(self.plan.buffer_for(BufferKind.SUMS, layer))
        if own is None:
            return self.tensor(self.network.by_name[layer].output).pointer
        return f"((int32_t *)(void *){own})"

    def plane(self, layer: str) -> str | None:
        """C of a pointer to what is reserved for a channel plane of the layer."""
        return self.buffer(self.plan.buffer_for(BufferKind.PLANE, layer))


def _of_lane(buffer: Buffer) -> tuple[Expr, ...]:
    """The offset of the current lane's part within the buffer, in bytes."""
    return (times(LANE, buffer.part),) if buffer.lanes > 1 else ()
