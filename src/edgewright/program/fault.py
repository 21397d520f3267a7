"""What a judge has against a plan."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FaultKind(Enum):
    """Which of its duties a plan fails."""

    FORM = "form"  # names that exist, ranks that agree
    ORDER = "order"  # every step finds what it reads, every output is complete
    MEMORY = "memory"  # nothing is overwritten while it is needed
    PROMISE = "promise"  # figures are what the plan's own parts come to
    KERNEL = "kernel"  # kernels offer what the plan says, where it says so


@dataclass(frozen=True, slots=True)
class PlanFault:
    kind: FaultKind
    message: str  # without a full stop: it goes into a sentence
