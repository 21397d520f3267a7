"""A driver's design, step by step: source, analysis, spaces, layout, merges; each is a value to be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .accesses import Access
from .description import Description
from .functions import Function
from .layout import Layout
from .merging import Merging
from .source import Source
from .spaces import Joint, Spaces, Use


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses that must not become one, and why (an edge of the conflict graph, S 6.4.2)."""

    first: int
    second: int
    reason: str


@dataclass(frozen=True, slots=True)
class Regions:
    """The conflict graph of a function and its colouring: accesses of one region may be combined."""

    conflicts: tuple[Conflict, ...]
    regions: tuple[tuple[int, ...], ...]  # numbers of accesses


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is known of a driver before there is a layout."""

    source: Source
    description: Description
    functions: tuple[Function, ...]
    regions: Mapping[str, Regions]  # by function
    spaces: Spaces
    uses: Mapping[tuple[str, int], Use]  # by function and number of the access
    joints: tuple[Joint, ...]

    def access(self, function: str, number: int) -> Access:
        return self.uses[function, number].access


@dataclass(frozen=True, slots=True)
class Design:
    analysis: Analysis
    layout: Layout
    merging: Mapping[str, Merging]  # by function
