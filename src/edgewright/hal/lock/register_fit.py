"""Registers for slots whose elements have their places already: found where these are regular."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from ..analysis.spaces import Area, Slot
from ..layout.layout import AreaPlace, Piece, Register, offset_of, spelled


class Irregular(Exception):
    """Places that no array of registers can have; says which and why."""


@dataclass(frozen=True, slots=True, order=True)
class ElementPlace:
    """Where (a part of) an element lies."""

    offset: int
    width: int
    bit: int
    size: int
    low: int
    lanes: int = 1

    def moved(self, shift: int) -> ElementPlace:
        return replace(self, offset=self.offset + shift)


@dataclass(frozen=True, slots=True)
class KnownPlaces:
    """What lies where in a space, by path: fields (pads[3].dir) and the starts of groups (pads[3].)."""

    fields: Mapping[str, tuple[ElementPlace, ...]] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)

    def start(self, prefix: str) -> int | None:
        """Where a group begins: at the first register of its fields, unless it was said."""
        if prefix in self.starts:
            return self.starts[prefix]
        parts = (part for path, parts in self.fields.items() if path.startswith(prefix) for part in parts)
        return min((part.offset for part in parts), default=None)

    def inside(self, prefix: str) -> KnownPlaces | None:
        """The same, seen from the start of a group; None where nothing is known of it."""
        start = self.start(prefix)
        if start is None:
            return None
        own = {path: parts for path, parts in self.fields.items() if path.startswith(prefix)}
        starts = {path: at for path, at in self.starts.items() if path.startswith(prefix) and path != prefix}
        return KnownPlaces(
            {path.removeprefix(prefix): tuple(part.moved(-start) for part in parts) for path, parts in own.items()},
            {path.removeprefix(prefix): at - start for path, at in starts.items()},
        )


def fit_slot(slot: Slot, known: KnownPlaces) -> tuple[Register, ...]:
    """The registers of a slot, one for each part of it; none for a slot that nothing is known of."""
    indices = list(product(*map(range, slot.counts)))
    found = [parts for index in indices if (parts := known.fields.get(spelled(slot.steps, index)))]
    if not found:
        return ()
    if len(found) != len(indices):
        raise Irregular(f"only some elements of '{slot.name}' are in the lock")
    if len({len(parts) for parts in found}) != 1:
        raise Irregular(f"elements of '{slot.name}' lie in different numbers of registers")
    return tuple(_register(slot, [parts[n] for parts in found]) for n in range(len(found[0])))


def _register(slot: Slot, places: Sequence[ElementPlace]) -> Register:
    """The register whose elements lie at `places`, which are in the order of the slot's indices."""
    first = places[0]
    lanes = first.lanes if slot.counts else 1
    counts = (*slot.counts[:-1], -(-slot.counts[-1] // lanes)) if lanes > 1 else slot.counts
    strides = _strides(slot.counts, places, lanes)
    for index, at in zip(product(*map(range, slot.counts)), places, strict=True):
        lane = index[-1] % lanes if lanes > 1 else 0
        place = (*index[:-1], index[-1] // lanes) if lanes > 1 else index
        offset = first.offset + offset_of(place, strides)
        if (offset, first.bit + lane * first.size, first.size, first.low) != (at.offset, at.bit, at.size, at.low):
            told = "its elements do not lie at regular distances in the lock"
            raise Irregular(f"'{slot.name}' is indexed at run time now, and {told}")
    return Register(
        first.offset, first.width, (Piece(slot.name, first.bit, first.size, first.low, lanes),), counts, strides
    )


def _strides(counts: tuple[int, ...], places: Sequence[ElementPlace], lanes: int) -> tuple[int, ...]:
    """Bytes from one element to the next in each dimension, by the first two; a word where there is but one."""
    word = places[0].width // 8
    found = []
    for dimension in range(len(counts)):
        step = lanes if dimension == len(counts) - 1 else 1
        later = prod(counts[dimension + 1 :]) * step
        has_two = counts[dimension] > step
        found.append(places[later].offset - places[0].offset if has_two else word)
    return tuple(found)


def fit_area(area: Area, size: int, known: KnownPlaces) -> AreaPlace | None:
    """Where the instances of a group lie, `size` bytes each; None where nothing is known of them."""
    starts = [known.start(prefix_of(area, index)) for index in product(*map(range, area.counts))]
    found = [start for start in starts if start is not None]
    if not found:
        return None
    if len(found) != len(starts):
        raise Irregular(f"only some elements of '{area.name}' are in the lock")
    strides = [
        found[prod(area.counts[dimension + 1 :])] - found[0] if count > 1 else size
        for dimension, count in enumerate(area.counts)
    ]
    for index, base in zip(product(*map(range, area.counts)), found, strict=True):
        if base != found[0] + offset_of(index, strides):
            told = "its elements do not lie at regular distances in the lock"
            raise Irregular(f"'{area.name}' is reached through a pointer now, and {told}")
    if strides and min(strides) < size:
        told = f"elements of '{area.name}' lie {min(strides)} bytes apart"
        raise Irregular(f"{told}, but {area.space} needs {size} with its new fields")
    return AreaPlace(area.name, found[0], tuple(strides))


def prefix_of(area: Area, index: tuple[int, ...]) -> str:
    return f"{spelled(area.steps, index)}."
