"""Splits an ONNX file into a small skeleton and the locations of its large tensors, without parsing the tensors.

Protobuf's own parser copies every weight; here the bytes of large `raw_data` fields stay in the (memory-mapped) file.
The `onnx` package parses the skeleton, `tensors` the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...errors import ModelError

# Field numbers of onnx.proto on the path from a model to its tensors.
GRAPH, NODE, INITIALIZER, ATTRIBUTE, ATTRIBUTE_TENSOR = 7, 1, 5, 5, 5
FLOAT_DATA, RAW_DATA = 4, 9

_CHILDREN: dict[tuple[int, ...], tuple[int, ...]] = {
    (): (GRAPH,),
    (GRAPH,): (NODE, INITIALIZER),
    (GRAPH, NODE): (ATTRIBUTE,),
    (GRAPH, NODE, ATTRIBUTE): (ATTRIBUTE_TENSOR,),
}
_TENSORS = {(GRAPH, INITIALIZER), (GRAPH, NODE, ATTRIBUTE, ATTRIBUTE_TENSOR)}
_REPEATED = {(GRAPH, INITIALIZER), (GRAPH, NODE), (GRAPH, NODE, ATTRIBUTE)}

# Smaller messages are left to protobuf: copying them is cheaper than parsing them here.
SMALL = 4096

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

Key = tuple[int, ...]  # (initializer,) or (node, attribute), counted from 0


@dataclass(frozen=True, slots=True)
class ByteSpan:
    """Bytes start..stop of the file, and whether they are packed `float_data`."""

    start: int
    stop: int
    packed_floats: bool


@dataclass
class Skeleton:
    """The model without its large tensors, and the location of each of those."""

    data: bytes = b""
    extents: dict[Key, ByteSpan] = field(default_factory=dict)


def split(data: memoryview) -> Skeleton:
    """The skeleton of a serialised ModelProto; ModelError if the bytes are not a protobuf message."""
    skeleton = Skeleton()
    pieces = list(_strip(data, 0, len(data), (), (), {}, skeleton.extents))
    skeleton.data = b"".join(pieces)
    return skeleton


def _strip(
    data: memoryview,
    start: int,
    stop: int,
    path: tuple[int, ...],
    key: Key,
    counts: dict[tuple[int, ...], int],
    extents: dict[Key, ByteSpan],
) -> Iterator[bytes]:
    """The pieces of one message without large tensor data; `counts` numbers repeated fields."""
    children = _CHILDREN.get(path, ())
    for tag_at, number, wire_type, begin, end in _fields(data, start, stop):
        inner = (*path, number)
        large = wire_type == LENGTH and end - begin > SMALL
        if number in children and wire_type == LENGTH:
            inner_key = key
            if inner in _REPEATED:
                counter = (*path, *key, number)
                inner_key = (*key, counts.get(counter, 0))
                counts[counter] = inner_key[-1] + 1
            if large:
                body = b"".join(_strip(data, begin, end, inner, inner_key, counts, extents))
                yield _varint(number << 3 | LENGTH) + _varint(len(body)) + body
                continue
        if path in _TENSORS and large and number in (RAW_DATA, FLOAT_DATA):
            if key not in extents:
                extents[key] = ByteSpan(begin, end, number == FLOAT_DATA)
                continue
            raise ModelError("a tensor of the model holds its data twice; the file is damaged")
        yield bytes(data[tag_at:end])


def _fields(data: memoryview, start: int, stop: int) -> Iterator[tuple[int, int, int, int, int]]:
    """For each field: start of its tag, number, wire type, start and end of its payload."""
    at = start
    while at < stop:
        tag_at = at
        tag, at = _read_varint(data, at, stop)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            begin, (_, end) = at, _read_varint(data, at, stop)
        elif wire_type == LENGTH:
            size, begin = _read_varint(data, at, stop)
            end = begin + size
        elif wire_type in (FIXED32, FIXED64):
            begin, end = at, at + (4 if wire_type == FIXED32 else 8)
        else:
            raise ModelError(f"not an ONNX model: byte {tag_at} starts no protobuf field")
        if number == 0:
            raise ModelError(f"not an ONNX model: byte {tag_at} starts no protobuf field")
        if end > stop:
            raise ModelError(
                f"not a complete ONNX model: the field at byte {tag_at} runs {end - stop} bytes past the end of "
                "what holds it; was the file cut short?"
            )
        yield tag_at, number, wire_type, begin, end
        at = end


def _read_varint(data: memoryview, at: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while at < stop and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ModelError(f"not a complete ONNX model: the number at byte {at} has no end; was the file cut short?")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
