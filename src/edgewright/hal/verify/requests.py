"""What a HAL function asks for: which bits of which registers, told by its name and its arguments.

A register holds more than what is asked for; only what is asked for counts as read by the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..analysis.accesses import Kind
from ..analysis.spaces import Spaces
from ..generate.calls import Call, Mark
from ..layout.layout import Layout, offset_of
from .addresses import Instances
from .verification import Fault, StopReason

Asked = Mapping[int, frozenset[int]]  # address to the first bit of each field


@dataclass(frozen=True, slots=True)
class Request:
    """A HAL function: the slots of a space that it reads or writes."""

    name: str
    space: str
    slots: tuple[str, ...]
    is_write: bool
    counts: tuple[int, ...]
    mark: Mark = field(default_factory=Mark)


def requests_of(spaces: Spaces, names: Mapping[Call, str]) -> dict[str, Request]:
    """The HAL functions of a design, by name."""
    return {
        name: Request(
            name,
            call.space,
            call.slots,
            call.kind is Kind.WRITE,
            (*slot.counts, *((slot.field.bits,) if call.is_bit else ())),
            call.mark or Mark(),
        )
        for call, name in names.items()
        for slot in [spaces[call.space].slot(call.slots[0])]
    }


def asked_by(request: Request, layout: Layout, instances: Instances, argument: Callable[[int], int]) -> Asked:
    """The bits that a call reads or writes; a pointer to no such group, or an index out of range, has no meaning."""
    base = argument(0)
    if base not in instances[request.space]:
        raise Fault(StopReason.UNDEFINED, f"{request.name} is given {base:#010x}, where no '{request.space}' lies")
    element = tuple(argument(1 + place) for place in range(len(request.counts)))
    for index, count in zip(element, request.counts, strict=True):
        if index >= count:
            raise Fault(StopReason.UNDEFINED, f"{request.name} is given index {index} of {count}")
    return _bits(request, layout, base, element)


def _bits(request: Request, layout: Layout, base: int, element: tuple[int, ...]) -> Asked:
    found: dict[int, frozenset[int]] = {}
    placed = layout.spaces[request.space]
    views = [placed.seen(view) for view in placed.views if request.is_write and set(view.slots) <= set(request.slots)]
    for register in (*placed.registers, *views):
        pieces = [piece for piece in register.pieces if piece.slot in request.slots]
        if not pieces:
            continue
        lane = element[-1] % register.lanes if element else 0
        steps = (*element[:-1], element[-1] // register.lanes)[: len(register.strides)] if element else ()
        address = base + register.offset + offset_of(steps, register.strides)
        found[address] = frozenset(piece.bit + lane * piece.size for piece in pieces)
    return found
