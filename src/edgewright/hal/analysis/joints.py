"""Clusters: accesses that become one when the layout puts their fields into one register. It is made for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ..language.meaning import Natures
from .accesses import Access, Form, Kind
from .conflicts import REACH
from .functions import Function
from .paths import Paths
from .regions import Regions
from .spaces import Joint, Use

Uses = Mapping[tuple[str, int], Use]


@dataclass(frozen=True, slots=True)
class Kept:
    """Two accesses of one region that stay apart, and why."""

    first: int
    second: int
    reason: str


def hindrance(first: Use, second: Use, paths: Paths, natures: Natures) -> str | None:
    """Why two accesses of one region stay apart all the same; the first comes first."""
    one, other = first.access, second.access
    if first.key != second.key:
        return "they go through different pointers or indices"
    if not (first.pure and second.pure):
        return "the pointer or index does something itself"
    for access in (one, other):
        if access.spot.form not in (Form.READ, Form.ASSIGN):
            return f"{access.name} is read and written at once"
    begin, end = one.spot.scope
    if one.spot.file != other.spot.file or not begin <= other.spot.whole[0] < end:
        return "the value would be out of scope"
    if one.kind is Kind.WRITE:
        return None if one.spot.alone and other.spot.alone else "the assignment is part of a larger expression"
    return _reading_hindrance(one, other, paths, natures)


def _reading_hindrance(one: Access, other: Access, paths: Paths, natures: Natures) -> str | None:
    leads = one.spot.first or one.spot.condition is not None
    if not leads or any(natures.of(a.owner, a.field).reading_acts for a in _before(one, paths)):
        return f"{one.name} is not the first thing its statement does"
    if not paths.is_always_before(one.number, other.number):
        return f"{one.name} is not always read before {other.name}"
    speculative = not paths.is_always_after(one.number, other.number)
    if speculative and one.snapshot is None and natures.of(other.owner, other.field).may_differ:
        return f"{other.field} may change, and would be read though nobody asks"
    return None


def _before(access: Access, paths: Paths) -> Iterable[Access]:
    """What the access's statement reads before it."""
    block, position = paths.where[access.number]
    for event in reversed(paths.flow.blocks[block].events[max(0, position - REACH) : position]):
        if isinstance(event, Access):
            if event.spot.statement != access.spot.statement:
                return
            yield event


def clusters_of(function: Function, regions: Regions, uses: Uses, natures: Natures, paths: Paths) -> list[list[Use]]:
    """The accesses of a function in sets that can become one; reads lead with the first, writes end with the last."""
    return [
        cluster
        for region in regions.regions
        for cluster in gathered([uses[function.name, number] for number in region], paths, natures)
    ]


def gathered(uses: list[Use], paths: Paths, natures: Natures) -> list[list[Use]]:
    """The uses in clusters: each joins the first leading one that it may; for writes, from the last up."""
    is_read = uses[0].access.kind is Kind.READ
    by_key: dict[object, list[list[Use]]] = {}
    found = []
    for use in uses if is_read else reversed(uses):
        clusters = by_key.setdefault(use.key, [])
        clusters[:] = [one for one in clusters if abs(use.access.number - one[0].access.number) <= REACH]
        home = next((one for one in clusters if _may_join(one[0], use, paths, natures)), None)
        if home is None:
            home = []
            clusters.append(home)
            found.append(home)
        home.append(use)
    return found if is_read else [cluster[::-1] for cluster in found]


def _may_join(lead: Use, use: Use, paths: Paths, natures: Natures) -> bool:
    first, second = (lead, use) if use.access.kind is Kind.READ else (use, lead)
    return hindrance(first, second, paths, natures) is None


def kept_apart(function: Function, regions: Regions, uses: Uses, natures: Natures, paths: Paths) -> list[Kept]:
    """Pairs of one region that no layout makes one, with reasons."""
    found = []
    for region in regions.regions:
        for first, second in pairwise(region):
            reason = hindrance(uses[function.name, first], uses[function.name, second], paths, natures)
            if reason is not None:
                found.append(Kept(first, second, reason))
    return found


def joints_of(clusters: Iterable[list[Use]]) -> list[Joint]:
    """What the layout should bring together, one joint for each cluster."""
    return [_joint(cluster) for cluster in clusters]


def _joint(cluster: list[Use]) -> Joint:
    use = cluster[0]
    access = use.access
    order = tuple(dict.fromkeys(use.slot for use in cluster))
    is_dynamic = any(index.value is None for index in use.indices)
    return Joint(use.space, order, access.kind is Kind.WRITE, access.function, access.depth, is_dynamic)
