"""Bits inside a register: who gets bit 0 and who the top, where the code shifts and masks least."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..analysis.spaces import Joint, Slot, Space, Spaces
from .assembly import Arrange, in_order
from .cost import AccessPattern, CodeBytes, touching_slots
from .layout import Layout, Piece, Register
from .rules import Rules


def by_gain(rules: Mapping[str, Rules], patterns: Sequence[AccessPattern], sizes: CodeBytes) -> Arrange:
    """An arrangement by the cost model: the two best places go to whom they save most."""
    touching = touching_slots(patterns)

    def arrange(space: Space, slots: tuple[Slot, ...], width: int) -> Mapping[str, int]:
        if len(slots) < 2:
            return in_order(space, slots, width)
        names = frozenset(slot.name for slot in slots)
        here = tuple({id(one): one for name in names for one in touching.get((space.name, name), ())}.values())
        kept = {name for name in names if rules[space.name].kept(name)}
        partial = () if rules[space.name].views else here
        writes = (part for pattern in partial if pattern.writes for part in pattern.inside(names))
        rewritten = {name for part in writes if kept - part.slots - part.known for name in part.slots & names}
        low, high = _ends(here, slots, rewritten, sizes)
        rest = [slot for slot in slots if slot not in (low, high)]
        # Narrow fields first, so that their masks and constants are short; whole bytes last.
        rest.sort(key=lambda slot: (slot.field.bits % 8 == 0, slot.field.bits))
        return _between(low, high, rest, width)

    return arrange


def side_by_side(layout: Layout, spaces: Spaces) -> Layout:
    """The layout with the fields of each register one after the other as they are declared; pins stay."""

    def tidied(space: Space, register: Register) -> Register:
        slots = tuple(slot for slot in space.slots if any(piece.slot == slot.name for piece in register.pieces))
        if len(slots) < 2 or any(slot.field.pinned for slot in slots):
            return register
        bits = _between(slots[0], None, list(slots[1:]), register.width)
        return replace(register, pieces=tuple(Piece(s.name, bits[s.name], s.field.bits) for s in slots))

    placed = {
        name: replace(of, registers=tuple(tidied(spaces[name], register) for register in of.registers))
        for name, of in layout.spaces.items()
    }
    return layout if placed == layout.spaces else replace(layout, spaces=placed)


def as_read(spaces: Spaces, joints: Iterable[Joint]) -> Spaces:
    """The spaces with slots that are read at once in the order in which the first such place reads them."""
    order: dict[tuple[str, str], int] = {}
    for joint in joints:
        if len(joint.slots) > 1 and not joint.writes:
            for slot in joint.slots:
                order.setdefault((joint.space, slot), len(order))

    def sorted_slots(space: Space) -> tuple[Slot, ...]:
        return tuple(sorted(space.slots, key=lambda slot: order.get((space.name, slot.name), len(order))))

    return {name: replace(space, slots=sorted_slots(space)) for name, space in spaces.items()}


def _ends(
    patterns: Sequence[AccessPattern], slots: tuple[Slot, ...], rewritten: set[str], sizes: CodeBytes
) -> tuple[Slot, Slot | None]:
    """The slots for bit 0 and for the top, which is no place for what is written by read-modify-write."""
    names = frozenset(slot.name for slot in slots)
    zero, top = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for pattern in patterns:
        for name in pattern.slots & names:
            zero[name] += pattern.times * (sizes.shift + (sizes.far if pattern.writes and name in rewritten else 0))
            top[name] += 0 if pattern.writes or name in rewritten else pattern.times * sizes.mask
    best, second = sorted(slots, key=lambda slot: -top[slot.name])[:2]
    pairs = ((slot, second if slot is best else best) for slot in slots)
    low, high = max(pairs, key=lambda pair: zero[pair[0].name] + top[pair[1].name])
    return low, high if top[high.name] else None


def _between(low: Slot, high: Slot | None, rest: list[Slot], width: int) -> dict[str, int]:
    """First bits with spare ones above, and whole bytes on byte boundaries, if there is room for that."""
    end = width - (high.field.bits if high else 0)
    ends = {low.name: 0} | ({high.name: end} if high else {})
    for spare, byte in ((1, 8), (1, 1), (0, 8), (0, 1)):
        bits: dict[str, int] = {}
        bit, last = low.field.bits + spare * low.spare, low
        for slot in rest:
            step = byte if slot.field.bits % 8 == 0 else 1
            bits[slot.name] = -(-bit // step) * step
            bit, last = bits[slot.name] + slot.field.bits + spare * slot.spare, slot
        if bit - (0 if high else spare * last.spare) <= end:  # what the last has to spare may fall off the top
            break
    return ends | bits


def with_spare_bits(spaces: Spaces, slots: Collection[tuple[str, str]]) -> Spaces:
    """The spaces with so much room for these slots that what is written to them needs no mask.

    That are the bits of their C types: those above the field hold nothing and ignore what is written.
    """

    def wider(name: str, slot: Slot) -> Slot:
        is_bound = bool(slot.field.together) or slot.field.pinned is not None
        bits = next(width for width in (8, 16, 32, 64) if slot.field.bits <= width)
        return replace(slot, spare=bits - slot.field.bits) if (name, slot.name) in slots and not is_bound else slot

    return {
        name: replace(space, slots=tuple(wider(name, slot) for slot in space.slots)) for name, space in spaces.items()
    }
