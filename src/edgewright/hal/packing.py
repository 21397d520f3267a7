"""Bits inside a register: who gets bit 0 and who the top, where the code shifts and masks least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from .assembling import Arrange, in_order
from .cost import FAR, MASK, SHIFT, Work
from .rules import Rules
from .spaces import Slot, Space


def by_gain(rules: Mapping[str, Rules], works: Sequence[Work]) -> Arrange:
    """An arrangement by the cost model: the two best places go to whom they save most."""

    def arrange(space: Space, slots: tuple[Slot, ...], width: int) -> Mapping[str, int]:
        if len(slots) < 2:
            return in_order(space, slots, width)
        low, high = _ends(rules[space.name], [w for w in works if w.space == space.name], slots)
        return _between(low, high, [slot for slot in slots if slot not in (low, high)], width)

    return arrange


def _ends(rules: Rules, works: Sequence[Work], slots: tuple[Slot, ...]) -> tuple[Slot, Slot]:
    """The slots for bit 0 and for the top."""
    names = frozenset(slot.name for slot in slots)
    kept = {name for name in names if rules.kept(name)}
    zero, top = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for work in works:
        rewrites = work.writes and bool(kept - work.slots)
        for name in work.slots & names:
            zero[name] += work.times * (SHIFT + (FAR if rewrites else 0))
            top[name] += 0 if work.writes else work.times * MASK
    return max(permutations(slots, 2), key=lambda pair: zero[pair[0].name] + top[pair[1].name])


def _between(low: Slot, high: Slot, rest: list[Slot], width: int) -> dict[str, int]:
    """First bits with whole bytes on byte boundaries if there is room for that, else one after the other."""
    end = width - high.field.bits
    ends = {low.name: 0, high.name: end}
    rest = sorted(rest, key=lambda slot: slot.field.bits % 8 != 0)
    for byte in (8, 1):
        bits: dict[str, int] = {}
        bit = low.field.bits
        for slot in rest:
            step = byte if slot.field.bits % 8 == 0 else 1
            bits[slot.name] = -(-bit // step) * step
            bit = bits[slot.name] + slot.field.bits
        if bit <= end:
            break
    return ends | bits
