"""What one device has to know of a deployment: its parts, the addresses of its slots, and the devices it talks to.

A part is called with the addresses of its arena and slots; a device needs no shapes and no types. The plan is sent as
signed JSON with the digest of the library in it, so that only what the holder of the keys has made is executed.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...errors import Damaged

Number = int  # of a FIFO or a part: its place in the plan


class NodeFifo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a FIFO is on this device. All devices give it the same number."""

    number: Number
    bytes: int  # of a frame
    starts: tuple[int, ...]  # of its slots in memory; none where the gateway only passes it on
    origin: str  # the device that has it first: this one, too
    readers: tuple[Number, ...]  # parts of this device
    sent_to: tuple[str, ...]  # from here; what comes from outside is sent by the gateway, also to itself
    is_given: bool = False  # at the gateway: it comes from outside
    is_result: bool = False  # at the gateway: it leaves
    is_short: bool = False  # real numbers that are sent with 16 bits

    @property
    def wire_bytes(self) -> int:
        return self.bytes // 2 if self.is_short else self.bytes


class NodePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    function: str  # of the library: it takes arenas, inputs, outputs
    arenas: tuple[int, ...]  # where each begins
    reads: tuple[Number, ...]
    writes: tuple[Number, ...]


class NodeTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """FIFO `then` takes frame f only when frame f - frames of `first` has been read: they share bytes."""

    first: Number
    then: Number
    frames: int


class NodeLibrary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shared object with all parts of the device; none where it has no parts."""

    digest: str
    bytes: int
    weights_bytes: int
    architecture: str
    features: tuple[str, ...]  # of the processor


class NodePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str  # of the plan: all devices have one of this name
    device: str
    gateway: str
    memory_bytes: int  # of arenas and slots
    library: NodeLibrary | None
    parts: tuple[NodePart, ...]
    workers: tuple[tuple[Number, ...], ...]  # parts in the order in which each worker runs them, frame by frame
    fifos: tuple[NodeFifo, ...]
    turns: tuple[NodeTurn, ...]
    addresses: dict[str, str]  # of the devices that it sends to, or that send to it


def plan_bytes(plan: NodePlan) -> bytes:
    return msgspec.json.encode(plan)


def read_plan(content: bytes) -> NodePlan:
    """The plan, if it is sound: every address inside the memory, every number one that there is."""
    try:
        plan = msgspec.json.decode(content, type=NodePlan)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(str(error), "plan of the device") from None
    for problem in _problems(plan):
        raise Damaged(problem, "plan of the device")
    return plan


def _problems(plan: NodePlan) -> Iterator[str]:
    known = {fifo.number: fifo for fifo in plan.fifos}
    if len(known) < len(plan.fifos):
        yield "two FIFOs have one number"
    if not 0 <= plan.memory_bytes < 1 << 40:
        yield f"its memory is {plan.memory_bytes} bytes"
    for fifo in plan.fifos:
        if any(not 0 <= start <= plan.memory_bytes - fifo.bytes for start in fifo.starts) or fifo.bytes < 0:
            yield f"FIFO {fifo.number} lies outside of the memory"
        if not fifo.starts and (fifo.readers or plan.device != plan.gateway):
            yield f"FIFO {fifo.number} has no slots"
        if any(not 0 <= part < len(plan.parts) for part in fifo.readers):
            yield f"FIFO {fifo.number} is read by a part that is not there"
        if not {*fifo.sent_to, fifo.origin} <= {*plan.addresses, plan.device}:
            yield f"FIFO {fifo.number} goes to or comes from a device without an address"
    for part in plan.parts:
        if any(not 0 <= start <= plan.memory_bytes for start in part.arenas):
            yield f"an arena of part '{part.name}' lies outside of the memory"
        if any(number not in known or not known[number].starts for number in (*part.reads, *part.writes)):
            yield f"part '{part.name}' has a FIFO without slots"
    if sorted(number for worker in plan.workers for number in worker) != list(range(len(plan.parts))):
        yield "its workers do not run each part once"
    if any(turn.first not in known or turn.then not in known or turn.frames < 0 for turn in plan.turns):
        yield "a turn names a FIFO that is not there"
    if plan.parts and plan.library is None:
        yield "it has parts and no library"
