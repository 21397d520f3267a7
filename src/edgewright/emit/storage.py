"""Where a plan puts tensors, running sums and scratch, as C expressions over the arenas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..kernels.placement import dense_strides
from ..kernels.printing.constants import C_TYPES
from ..kernels.printing.source import Expr, plus
from ..kernels.printing.tensor import CTensor
from ..network import Network
from ..program import Buffer, Plan, sums_name


@dataclass(frozen=True)
class Storage:
    plan: Plan
    network: Network
    memories: Mapping[str, str]  # the C variable of each memory's arena

    @cached_property
    def buffers(self) -> Mapping[str, Buffer]:
        return {buffer.name: buffer for buffer in self.plan.buffers}

    def at(self, memory: str, offset: Expr) -> str:
        """C of a pointer into an arena."""
        arena = self.memories[memory]
        return f"{arena} + {offset}" if isinstance(offset, int) else f"{arena} + ({offset})"

    def tensor(self, name: str, shift: Sequence[Expr] = ()) -> CTensor:
        """A tensor where it lies; of one that is kept tile by tile, so many bytes further on."""
        tensor = self.network.tensors[name]
        if name in self.network.constants:
            return CTensor(tensor, dense_strides(tensor))
        view = self.plan.views[name]
        buffer = self.buffers[view.buffer]
        start = buffer.offset + view.offset
        size = list(tensor.shape)
        if view.window:
            size[view.window[0]] = min(size[view.window[0]], view.window[1])
        reach = sum((n - 1) * s for n, s in zip(size, view.strides, strict=True)) + tensor.dtype.bytes
        reach = min(reach, buffer.size - view.offset)  # of a tiled tensor no more is there
        # Kernels count from the first element of the whole tensor, wherever the tile at hand begins.
        zero = plus(*shift, start)
        at = self.memories[buffer.memory] if zero == 0 and not view.tiled else self.at(buffer.memory, zero)
        ctype = C_TYPES[tensor.dtype.value]
        pointer = f"({at})" if ctype == "uint8_t" else f"(({ctype} *)(void *)({at}))"
        strides = tuple(s // tensor.dtype.bytes for s in view.strides)
        return CTensor(tensor, strides, view.window, buffer.memory, start, start + reach, pointer)

    def sums(self, layer: str) -> str:
        """C of a pointer to the running sums of a layer."""
        buffer = self.buffers.get(sums_name(layer))
        if buffer is None:
            return self.tensor(self.network.by_name[layer].output).pointer
        return f"((int32_t *)(void *)({self.at(buffer.memory, buffer.offset)}))"
