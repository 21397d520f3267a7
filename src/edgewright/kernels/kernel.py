"""Kernels as values: what each can compute at a site, with how much scratch, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..network import Region
from ..network.operators import Op
from ..platform.target import Family
from ..program.selection import CallKind, Offer
from .call import CCall
from .cost.elements import plain_work
from .cost.work import KernelWork
from .printing.source import CWriter
from .site import Site

__all__ = ["EVERY", "SMALL", "CallKind", "Kernel", "Offer", "anywhere", "of_region", "where"]


EVERY = frozenset(Family)
SMALL = EVERY - {Family.SIMD}  # cores of microcontrollers


def where(suits: Callable[[Site], bool]) -> Callable[[Site], Iterator[Offer]]:
    """The offers of a kernel that has no variants and takes no scratch: one, where it suits the site."""
    return lambda site: iter((Offer(),) if suits(site) else ())


def anywhere(_: Site) -> Iterator[Offer]:
    """The offers of a kernel that suits every site."""
    yield Offer()


def of_region(work: Callable[[Site, Region], KernelWork]) -> Callable[[Site, Offer, Region, Region | None], KernelWork]:
    """The work of a kernel whose calls cost the same whichever offer is taken."""
    return lambda site, _, region, __: work(site, region)


_plain = of_region(plain_work)


@dataclass(frozen=True)
class Kernel:
    """A way to compute calls of some operators.

    `offers` says what it can do at a site, fastest first, and nothing where it cannot; `work` what one call does for a
    region, or for part of a sum; `write` prints the call, and is the only function that knows C. Where no arena has
    room, up to `stack` bytes of scratch may lie on the stack.
    """

    name: str  # the plan names it so, and so do the coefficients of costs
    operators: tuple[type[Op], ...]
    offers: Callable[[Site], Iterator[Offer]]
    write: Callable[[CCall, Offer, CWriter], None]
    families: frozenset[Family] = EVERY
    kind: CallKind = CallKind.COMPUTE
    stack: int = 0
    work: Callable[[Site, Offer, Region, Region | None], KernelWork] = _plain

    def offered(self, site: Site) -> Iterator[Offer]:
        """The offers of the kernel at this site, none for targets of other families."""
        if site.target.family in self.families:
            yield from self.offers(site)
