"""A driver's design, step by step: source, analysis, spaces, layout, merges; each is a value to be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .analysis.functions import Function
from .analysis.regions import Regions
from .analysis.spaces import Joint, Spaces, Use
from .language.description import Description
from .language.source import Source
from .layout.layout import Layout
from .merge import Merging


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
    interrupts: frozenset[str] = frozenset()  # functions that run in interrupts
    moments: tuple[tuple[Use, ...], ...] = ()  # accesses of fields that are together: each is one access
    leaders: Mapping[tuple[str, int], int] = field(default_factory=dict)  # of reads in snapshots, the opening one


@dataclass(frozen=True, slots=True)
class Design:
    analysis: Analysis
    layout: Layout
    merging: Mapping[str, Merging]  # by function
    inlined: frozenset[str] = frozenset()  # static functions whose code is put where they are called
