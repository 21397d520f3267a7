"""The messages between devices of a running cluster: small and typed, each with its length before it.

A connection carries messages one way. The first one says what the connection is for (`Hello`). A message that is too
long, cannot be read or is not expected there ends the connection, and nothing else.
"""

from __future__ import annotations

import socket
import struct
from typing import Annotated, TypeVar

import msgspec

from ...errors import RunError

PROTOCOL = 1  # raised whenever devices with the old one would misunderstand
MOST_BYTES = 16 << 20  # of a message: plans of large networks are the longest
PIECE_BYTES = 1 << 18  # of a file, in one message
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<IQI")  # before a tensor: FIFO, frame, bytes; a credit has no bytes
_RECORD_BYTES = 1 << 14  # that TLS encrypts at once (RFC 8446, 5.1)

MOST_FILES = 4096  # that one order names

MOST_WORDS = 1000  # characters that say what went wrong

Name = Annotated[str, msgspec.Meta(max_length=256)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
M = TypeVar("M")


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Anything that is sent."""


class Hello(Message, frozen=True):
    """The first message of a connection, from the side that opened it. All protocols have the same."""

    protocol: int
    purpose: str  # orders, reports, files, tensors, credits
    run: str  # that it belongs to
    epoch: int = 0  # of tensors and credits


class Welcome(Message, frozen=True):
    """The first report of a device: what it is."""

    protocol: int
    device: Name
    version: str
    architecture: str
    features: tuple[str, ...]
    free_ram: int
    free_disk: int


class RunRefused(Message, frozen=True):
    """Why a device will not have this connection."""

    why: str


# Orders of the coordinator.
class Survey(Message, frozen=True):
    """Which of these files are missing? Bytes by digest."""

    files: Annotated[dict[str, int], msgspec.Meta(max_length=MOST_FILES)]


class Prepare(Message, frozen=True):
    """A plan that may be begun later, as a NodePlan in JSON, signed by the holder of the keys."""

    plan: bytes
    signature: bytes


class Begin(Message, frozen=True):
    """Drop what is under way, and carry out this plan from this frame on."""

    epoch: Count
    plan: str
    first: Count


class Rest(Message, frozen=True):
    """Drop what is under way, and free the plan's memory."""


class Beat(Message, frozen=True):
    """I am here."""


Order = Survey | Prepare | Begin | Rest | Beat


# A file, to a device.
class FilePiece(Message, frozen=True):
    digest: str
    offset: int
    data: bytes
    is_last: bool


# Reports of a device.
class Missing(Message, frozen=True):
    """What is there already of each file that is not complete."""

    offsets: dict[str, Count]


class Stored(Message, frozen=True):
    digest: str


class Prepared(Message, frozen=True):
    plan: str


class Begun(Message, frozen=True):
    epoch: Count
    allocated: Count  # bytes of arenas and slots


class Trouble(Message, frozen=True):
    """What went wrong; `peer` is the device that could not be reached or misbehaved."""

    epoch: Count  # 0 where it is about files or plans
    what: Annotated[str, msgspec.Meta(max_length=MOST_WORDS)]
    peer: Name = ""


class Pulse(Message, frozen=True):
    """I am here, and this is what I do: counts and seconds are since the epoch began."""

    epoch: int
    elapsed_s: Seconds
    runs: Count  # parts that have run
    computing_s: Seconds
    sent: Annotated[dict[Name, Count], msgspec.Meta(max_length=MOST_FILES)]  # bytes to each device
    awaited: Name  # what the next part waits for
    resident: Count  # bytes of the process in RAM


Report = Welcome | RunRefused | Missing | Stored | Prepared | Begun | Trouble | Pulse


class Disconnected(Exception):
    """The other side is gone, or said something that it may not."""


def send(connection: socket.socket, message: Message) -> None:
    """Sends one message; Disconnected when the other side is gone."""
    data = msgspec.msgpack.encode(message)
    _send_all(connection, _LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket, kind: type[M] | object, most: int = MOST_BYTES) -> M:
    """The next message, which must be of this type; Disconnected when there is none."""
    (size,) = _LENGTH.unpack(receive_bytes(connection, _LENGTH.size))
    if size > most:
        raise Disconnected(f"a message of {size} bytes came, and {most} is the most")
    data = receive_bytes(connection, size)
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Disconnected(f"a message cannot be read: {error}") from None


def send_credit(connection: socket.socket, fifo: int, frame: int) -> None:
    """There is room for a frame: a head without bytes."""
    _send_all(connection, _HEAD.pack(fifo, frame, 0))


def send_tensor(connection: socket.socket, fifo: int, frame: int, content: memoryview) -> None:
    """A head, and the bytes. A small tensor is copied behind its head: that costs less than another call."""
    head = _HEAD.pack(fifo, frame, len(content))
    if len(content) <= _RECORD_BYTES - len(head):
        _send_all(connection, b"".join((head, content)))
    else:
        _send_all(connection, head)
        _send_all(connection, content)


def receive_head(connection: socket.socket) -> tuple[int, int, int]:
    """FIFO, frame, bytes."""
    fifo, frame, size = _HEAD.unpack(receive_bytes(connection, _HEAD.size))
    return fifo, frame, size


def receive_bytes(connection: socket.socket, size: int) -> bytearray:
    """This number of bytes. Memory is taken as they come, since the number is only a claim."""
    data = bytearray()
    while len(data) < size:
        piece = bytearray(min(size - len(data), PIECE_BYTES))
        receive_into(connection, memoryview(piece))
        data += piece
    return data


def receive_into(connection: socket.socket, place: memoryview) -> None:
    """Receives straight into this memory."""
    at = 0
    while at < len(place):
        try:
            count = connection.recv_into(place[at:])
        except (OSError, ValueError) as error:  # ValueError: closed by another thread
            raise Disconnected(_reason(error)) from None
        if not count:
            raise Disconnected("the other side has closed the connection")
        at += count


def _send_all(connection: socket.socket, data: bytes | memoryview) -> None:
    try:
        connection.sendall(data)
    except (OSError, ValueError) as error:
        raise Disconnected(_reason(error)) from None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


def checked_protocol(protocol: int, who: str, version: str = "") -> None:
    """An error where the other side speaks another protocol."""
    if protocol != PROTOCOL:
        named = f" (edgewright {version})" if version else ""
        raise RunError(
            f"{who}{named} speaks protocol {protocol}, this side {PROTOCOL}; install the same edgewright on all devices"
        )
