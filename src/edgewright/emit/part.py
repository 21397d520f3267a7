"""The part of a layer that a step computes, with C expressions where loops decide."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..kernels.printing.source import Expr
from ..network import Network
from ..program import Step, summed_axes

Box = tuple[tuple[Expr, Expr], ...]  # half-open along each axis


@dataclass(frozen=True)
class Part:
    region: Box  # of the output
    share: Box | None = None  # of the first input, where running sums are kept

    @property
    def is_empty(self) -> bool:
        bounds = (*self.region, *(self.share or ()))
        return any(isinstance(a, int) and isinstance(b, int) and b <= a for a, b in bounds)

    def cut(self, network: Network, step: Step, axis: int, bounds: tuple[Expr, Expr]) -> Part:
        """The part cut along an axis: of the input where the step sums over it, else of the output."""
        if self.share is not None and axis % len(self.share) in summed_axes(network, network.by_name[step.layer]):
            return replace(self, share=_with(self.share, axis, bounds))
        return replace(self, region=_with(self.region, axis, bounds))


def _with(box: Box, axis: int, bounds: tuple[Expr, Expr]) -> Box:
    at = axis % len(box)
    return (*box[:at], bounds, *box[at + 1 :])
