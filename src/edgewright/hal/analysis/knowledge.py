"""What a function knows of fields that it wrote before: beside a later write they are put back without being read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from .accesses import Access, Form, Kind
from .conflicts import REACH, Conflicts
from .functions import Event
from .spaces import Joint, Use


def known_at(last: Use, uses: Sequence[Use], judge: Conflicts) -> dict[str, Use]:
    """The assignments, by slot, whose values fields still hold when a write happens; `uses` are those of the function.

    The nearest through the same pointer and indices counts, where control always comes from it and nothing on the way
    can have changed the field: no other write of it, no unknown call, no interrupt routine, no hardware.
    """
    found: dict[str, Use | None] = {last.slot: None}
    passed: list[Event] = []
    for event, is_always in islice(judge.paths.backwards(last.access.number), REACH):
        if isinstance(event, Access) and event.kind is Kind.WRITE and is_always:
            use = uses[event.number]
            if use.key == last.key and use.slot not in found:
                found[use.slot] = use if _is_held(use, last, passed, judge) else None
        if event is not None:
            passed.append(event)
    return {slot: use for slot, use in found.items() if use is not None}


def _is_held(use: Use, last: Use, passed: Sequence[Event], judge: Conflicts) -> bool:
    """Whether an assignment's value is at hand, and the field holds it after all that has passed since."""
    spot, nature = use.access.spot, judge.nature(use.access)
    is_plain = nature.restorable and not (nature.is_shared or nature.unguarded or use.is_bit)
    is_stored = spot.form is Form.ASSIGN and spot.alone and use.pure and spot.file == last.access.spot.file
    return is_plain and is_stored and not any(judge.alters(event, use.access) for event in passed)


def remembered(
    joint: Joint, cluster: Sequence[Use], uses: Sequence[Use], judge: Conflicts, ends: Mapping[int, int]
) -> Joint:
    """The joint of a cluster with what is known wherever the layout puts its write; `ends` is the last of each cluster.

    Assignments move down to the last of their cluster at most: what is known has been written by then.
    """
    first = cluster[0].access.number
    known = known_at(cluster[-1], uses, judge) if joint.writes else {}
    slots = [slot for slot, use in known.items() if slot not in joint.slots and ends[use.access.number] < first]
    return replace(joint, known=tuple(sorted(slots)))
