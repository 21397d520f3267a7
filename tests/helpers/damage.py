"""Files with something wrong in them: bits, pieces and values changed, in the bytes or in what the bytes mean.

Every function takes a `Random` and a sound file and gives the bytes of a damaged one. Damage to what a file means
(fields of a protobuf or flatbuffer, values of a JSON text) reaches deepest: the readers still find their way.
"""

from __future__ import annotations

import copy
import json
import re
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import numpy_helper

from tests.helpers.tflite_models import packed, unpacked

SMALL = (0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 31, 100, 127, 128, 255, 256, -2, -3, -128)
GIANT = (
    *(65535, 65536, 1 << 20, 1 << 24, 1 << 28, (1 << 31) - 1, -(1 << 31), 1 << 31, (1 << 32) - 1),
    *(1 << 32, 1 << 40, 1 << 53, 1 << 62, (1 << 63) - 1, -(1 << 63)),
)
NUMBERS = (*SMALL, *GIANT)
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-38, 1e-9, 1e9, 3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    *("", " ", "a" * 300, "x" * 20_000, "\0", "\n", "\t", "\x1b[31m", "\u202eabc", "\u2066", "ü", "日本語", "😀"),
    *("*/", "/*", '"', "\\", "'", "??/", "//", "%s%n", "{0}", "[red]", "../../x", "/dev/zero", "C:\\x", "a.b/c:0"),
    *("memcpy", "int", "main", "NULL", "1abc", "nan", "\ufeff", "\u2028", "a\u0301", "ﬁ", "Å", "e", "_", "__"),
)
DEEP = 3000  # more than Python's stack takes
PIECES = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xed\xa0\x80",
        b"{",
        b"}",
        b"[",
        b"]",
        b"(",
        b")",
        b'"',
        b",",
    ),
    *(b"<!DOCTYPE x>", b'<!DOCTYPE x [<!ENTITY y "z">]>', b"<![CDATA[", b"]]>", b"<!--", b"<?x ?>", b"<sdf/>"),
    *(
        b"[" * DEEP,
        b'{"a":' * DEEP,
        b"<a>" * DEEP,
        b"(" * DEEP,
        b"{" * DEEP,
        b"-" * DEEP,
        b"*" * DEEP,
        b"a=" * DEEP,
    ),
    *(
        b"#include <stdio.h>\n",
        b"#define x x x\n",
        b"#if 1\n",
        b"\\\n",
        b"\r",
        b"/*",
        b"struct",
        b"goto a;",
        b"asm",
    ),
)
TOKEN = re.compile(rb"[A-Za-z_]\w*|-?\d[\w.+-]*|[^\s\w]")
WORDS = (
    *(
        "0",
        "-1",
        "1",
        "2",
        "9" * 30,
        "9" * 5000,
        "1e99",
        "1e400",
        "-0.0",
        "NaN",
        "inf",
        "0x7fffffff",
        "0.5",
        "1/3",
    ),
    *("1/0", "3*1", "999999999*1", "1;3", ";", "1,1", "true", "null", "[]", "{}", "²", "٣", "&#0;", "&lt;", "&x;"),
)


def damaged_bytes(random: Random, data: bytes, other: bytes) -> bytes:
    """Bits, bytes, aligned numbers and pieces changed, cut out, doubled or taken from `other`."""
    made = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at, length = random.randrange(len(made) + 1), random.choice((1, 2, 4, 8, 30, 200))
        piece = bytes(made[at : at + length])
        match random.randrange(10):
            case 0 | 1 if at < len(made):
                made[at] ^= 1 << random.randrange(8)
            case 2 if at < len(made):
                made[at] = random.randrange(256)
            case 3 | 4:  # flatbuffers align their fields
                at -= at % 4
                value = random.choice((*NUMBERS, random.randrange(len(made) + 1)))
                made[at : at + 4] = struct.pack("<I", value % (1 << 32))
            case 5:
                del made[at : at + length]
            case 6:
                made[at:at] = piece * random.choice((1, 2, 50))
            case 7:
                start = random.randrange(len(other) + 1)
                part = other[start : start + length]
                made[at : at + (len(part) if random.random() < 0.5 else 0)] = part
            case 8:
                made[at:at] = random.choice(PIECES)
            case 9 if random.random() < 0.4:
                del made[at:]
    return bytes(made)


def damaged_text(random: Random, data: bytes, other: bytes) -> bytes:
    """Words, numbers and lines of a text changed: removed, doubled, swapped, replaced by odd or by foreign ones."""
    if random.random() < 0.2:
        return damaged_bytes(random, data, other)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        if random.random() < 0.3:
            data = _with_lines_moved(random, data, other)
            continue
        tokens = list(TOKEN.finditer(data))
        if not tokens:
            return data
        one, two = random.choice(tokens), random.choice(list(TOKEN.finditer(other)) or tokens)
        new = random.choice(
            (
                b"",
                one[0] * 2,
                two[0],
                random.choice(tokens)[0],
                random.choice(WORDS).encode(),
                random.choice(TEXTS).encode(),
                str(random.choice(NUMBERS)).encode(),
                random.choice(PIECES),
            )
        )
        data = data[: one.start()] + new + data[one.end() :]
    return data


def _with_lines_moved(random: Random, data: bytes, other: bytes) -> bytes:
    lines = data.split(b"\n")
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines[at], lines[to] = lines[to], lines[at]
        case _:
            lines.insert(at, random.choice(other.split(b"\n")))
    return b"\n".join(lines)


def damaged_json(random: Random, data: bytes, other: bytes) -> bytes:
    """Values of a JSON text changed; sometimes the text itself."""
    if random.random() < 0.15:
        return damaged_text(random, data, other)
    tree = json.loads(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        _change_tree(random, tree)
    text = json.dumps(tree, indent=random.choice((None, 1)))
    if random.random() < 0.02:
        text = text.replace("1", "[" * DEEP + "1" + "]" * DEEP, 1)
    return text.encode()


def _change_tree(random: Random, tree: Any) -> None:
    places = list(_places(tree))
    if not places:
        return
    holder, key = random.choice(places)
    other = random.choice(places)
    match random.randrange(7):
        case 0:
            del holder[key]
        case 1:
            holder[key] = copy.deepcopy(other[0][other[1]])
        case 2 if isinstance(holder, list):
            holder.insert(random.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
        case 3:
            holder[key] = random.choice((None, True, [], {}, [[]], [holder[key]], {"x": holder[key]}))
        case _:
            holder[key] = _odd(random, holder[key])


def _odd(random: Random, value: Any) -> Any:
    """Another value, most often of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and random.random() < 0.9:
        near = (value + 1, value - 1, value * 2, value // 2, -value)
        return random.choice((*near, random.choice(NUMBERS), random.choice(NUMBERS)))
    if isinstance(value, float) and random.random() < 0.9:
        return random.choice((*REALS, value * 2, -value))
    if isinstance(value, str) and random.random() < 0.9:
        return random.choice((*TEXTS, value[:-1], value + "x", value * 2))
    return random.choice((None, True, 10**30, 0.5, "", "x", [], {}, *NUMBERS))


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of nested lists and objects: what holds it, and its key."""
    keys = range(len(tree)) if isinstance(tree, list) else tree if isinstance(tree, dict) else ()
    for key in list(keys):
        yield tree, key
        yield from _places(tree[key])


# Protobuf


def damaged_onnx(random: Random, data: bytes, other: bytes) -> bytes:
    """Fields of an ONNX model set to odd values, removed, doubled, exchanged or filled; sometimes its bytes."""
    if random.random() < 0.25:
        return damaged_bytes(random, data, other)
    model = onnx.ModelProto.FromString(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        messages = list(_messages(model))
        _change_message(random, random.choice(messages), messages)
    if random.random() < 0.01:
        _nest(model)
    return model.SerializeToString()


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else (value,):
                yield from _messages(inner)


def _change_message(random: Random, message: Message, others: list[Message]) -> None:
    if isinstance(message, onnx.TensorProto) and message.data_type == onnx.TensorProto.INT64 and random.random() < 0.7:
        _change_integers(random, message)
        return
    fields = [field for field, _ in message.ListFields()]
    if not fields or random.random() < 0.1:  # one that the file does not have
        fields = list(message.DESCRIPTOR.fields)
    field = random.choice(fields)
    value = getattr(message, field.name)
    if random.random() < 0.1:
        message.ClearField(field.name)
    elif field.is_repeated:
        _change_repeated(random, field, value, others)
    elif field.message_type is not None:
        value.CopyFrom(
            _copied(random.choice([one for one in others if one.DESCRIPTOR is field.message_type] or [value]))
        )
    else:
        _set(random, field, others, value, lambda new: setattr(message, field.name, new))


def _change_integers(random: Random, tensor: onnx.TensorProto) -> None:
    """Another number among those that say shapes, pads and repeats."""
    try:
        values = numpy_helper.to_array(tensor).copy()
    except Exception:  # damaged before
        return
    if values.size:
        odd = (values.flat[0] + 1, values.flat[-1] * 2, *(number for number in NUMBERS if abs(number) < 1 << 63))
        values.flat[random.randrange(values.size)] = random.choice(odd)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _change_repeated(random: Random, field: FieldDescriptor, values: Any, others: list[Message]) -> None:
    at = random.randrange(len(values)) if len(values) else 0
    match random.randrange(4):
        case 0 if len(values):
            del values[at]
        case 1 if len(values):
            values.append(_copied(values[at]) if field.message_type is not None else values[at])
        case _ if field.message_type is not None:
            same = [one for one in others if one.DESCRIPTOR is field.message_type]
            values.append(_copied(random.choice(same))) if same else values.add()
        case 2:
            _set(random, field, others, 0, values.append)
        case _ if len(values):
            _set(random, field, others, values[at], lambda new: values.__setitem__(at, new))


def _copied(message: Message) -> Message:
    """A message of its own: what is put into a part of itself would have no end."""
    copied = type(message)()
    copied.CopyFrom(message)
    return copied


def _set(random: Random, field: FieldDescriptor, others: list[Message], value: Any, to: Callable[[Any], None]) -> None:
    """Another value of the field's type; texts are most often those of other nodes and tensors."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            to(random.choice(REALS))
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            data = value if isinstance(value, bytes) else b"x"
            to(random.choice((damaged_bytes(random, data, data), b"", random.choice(TEXTS).encode())))
        case FieldDescriptor.CPPTYPE_STRING:
            named = [one.name for one in others if isinstance(one, onnx.NodeProto | onnx.TensorProto)]
            wired = [name for one in others if isinstance(one, onnx.NodeProto) for name in one.output]
            to(random.choice(random.choice((TEXTS, named or TEXTS, wired or TEXTS))))
        case FieldDescriptor.CPPTYPE_ENUM:
            to(random.choice(field.enum_type.values).number)
        case FieldDescriptor.CPPTYPE_INT32:
            to(random.choice([n for n in NUMBERS if abs(n) < 1 << 31]))
        case FieldDescriptor.CPPTYPE_UINT64 | FieldDescriptor.CPPTYPE_UINT32:
            to(random.choice([n for n in NUMBERS if 0 <= n < 1 << 31]))
        case _:
            near = value if isinstance(value, int) else 1
            to(random.choice((random.choice(NUMBERS), (near + 1) % 1000, near - 1, near // 2)))


def _nest(model: onnx.ModelProto) -> None:
    """Graphs in graphs, as deep as protobuf itself reads them back."""
    for _ in range(20):
        inner = onnx.GraphProto()
        inner.CopyFrom(model.graph)
        node = onnx.helper.make_node("If", [], ["deep"], then_branch=inner, else_branch=onnx.GraphProto())
        del model.graph.node[:]
        model.graph.node.append(node)


# Flatbuffers


def damaged_tflite(random: Random, data: bytes, other: bytes) -> bytes:
    """Fields of a TFLite model set to odd values, removed, doubled or exchanged; sometimes its bytes."""
    if random.random() < 0.5:
        return damaged_bytes(random, data, other)
    for _ in range(20):  # not every value can be packed
        model = unpacked(data)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            _change_fields(random, model)
        try:
            return packed(model)
        except Exception:
            continue
    return damaged_bytes(random, data, other)


def _change_fields(random: Random, model: Any) -> None:
    tables = list(_tables(model))
    table = random.choice(tables)
    name = random.choice(list(vars(table)))
    value = getattr(table, name)
    if value is None or random.random() < 0.1:
        same = [getattr(one, name) for one in tables if type(one) is type(table)]
        setattr(table, name, copy.deepcopy(random.choice((None, *same))))
    elif isinstance(value, bool | int | float | str | bytes):
        setattr(table, name, _odd_field(random, value))
    elif not _is_table(value):
        setattr(table, name, _odd_vector(random, list(value)))


def _odd_vector(random: Random, items: list[Any]) -> list[Any]:
    at, to = (random.randrange(len(items)), random.randrange(len(items))) if items else (0, 0)
    match random.randrange(6) if items else 0:
        case 0:
            return items + items if items else [random.choice(NUMBERS)]
        case 1:
            del items[at]
        case 2:
            items.insert(to, copy.deepcopy(items[at]))
        case 3:
            items[at], items[to] = items[to], items[at]
        case _ if not _is_table(items[at]):
            items[at] = _odd_field(random, items[at])
    return items


def _odd_field(random: Random, value: Any) -> Any:
    if isinstance(value, str | bytes):
        return random.choice(TEXTS)
    odd = _odd(random, value.item() if hasattr(value, "item") else value)
    return odd if isinstance(odd, int | float) else 0


def _tables(value: Any) -> Iterator[Any]:
    """Every table of the schema in it that has fields."""
    if _is_table(value):
        if vars(value):
            yield value
        for inner in vars(value).values():
            yield from _tables(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _tables(inner)


def _is_table(value: Any) -> bool:
    return hasattr(value, "Pack")
