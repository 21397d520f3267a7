"""Base addresses of devices from a file: TOML, or the source of a devicetree. Sources name them NAME_ADDRESS."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InputError
from .input_file import read_input

DEEPEST = 64  # nodes in nodes
Cells = list[int | None]  # None where the file has a reference or an expression
_TOKEN = re.compile(
    r"""(?P<skip>\s+|/\*.*?\*/|//[^\n]*|/(?:dts-v1|plugin|bits/\s*\d+)/\s*;?|"(?:\\.|[^"\\])*")
    |(?P<number>0[xX][0-9a-fA-F]+\b|\d+\b(?![\w,.@+-]))
    |(?P<expression>\([^();]*(?:\([^();]*\)[^();]*)*\))
    |(?P<sign>[{}<>;=:\[\]]|,(?=[\s<"]))
    |(?P<word>&?\{?/?[\w#,.?+/@-]+\}?|/)""",
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(
    r"^[ \t]*#[ \t]*(?:include|define|undef|if|ifdef|ifndef|elif|else|endif|pragma|line)\b.*$", re.MULTILINE
)


def read_addresses(path: Path) -> dict[str, int]:
    """The address of every device that a file names: a .toml, else the source of a devicetree."""
    try:
        told = read_input(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' is no text in UTF-8") from error
    found = _from_toml(path, told) if path.suffix == ".toml" else _from_devicetree(path, told)
    if not found:
        raise InputError(f"'{path}' has no device with an address; a devicetree's have a label and reg")
    return found


def address_macros(addresses: Mapping[str, int]) -> list[str]:
    """A macro for each device, as -D takes them: uart0 becomes UART0_ADDRESS."""
    words = {re.sub(r"\W", "_", name).upper(): address for name, address in addresses.items()}
    return [f"{word}_ADDRESS=0x{address:X}u" for word, address in words.items()]


def _from_toml(path: Path, text: str) -> dict[str, int]:
    """`[devices]` with an address for each name, or a table that has one: `uart0 = { address = 0x40001000 }`."""
    try:
        devices = tomllib.loads(text).get("devices", {})
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"'{path}' is no TOML: {error}") from error
    if not isinstance(devices, dict):
        raise InputError(f"'{path}': devices is a table of names and addresses: [devices] uart0 = 0x40001000")
    found = {}
    for name, said in devices.items():
        address = said.get("address") if isinstance(said, dict) else said
        if type(address) is not int or not 0 <= address < 1 << 32:
            raise InputError(f"'{path}': devices.{name} is no address of 32 bits; write {name} = 0x40001000")
        found[name] = address
    return found


@dataclass(slots=True)
class _TreeNode:
    """A node of a devicetree, with those properties that say where it is."""

    labels: tuple[str, ...]
    parent: _TreeNode | None
    cells: dict[str, Cells] = field(default_factory=dict)  # by property

    def width(self, what: str, default: int) -> int:
        """How many cells its children use for an address, or for a size."""
        said = self.cells.get(f"#{what}-cells", [])
        return said[0] if said and said[0] is not None else default


def _from_devicetree(path: Path, text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in _nodes(path, list(_tokens(path, _DIRECTIVE.sub("", text)))):
        address = _address(node)
        if address is not None and address < 1 << 32:
            found |= dict.fromkeys(node.labels, address)
    return found


def _tokens(path: Path, text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise InputError(f"'{path}', line {line}: '{text[at]}' is not expected in a devicetree")
        at = match.end()
        if match.lastgroup != "skip":
            yield str(match.lastgroup), match[0]


def _nodes(path: Path, tokens: Sequence[tuple[str, str]]) -> list[_TreeNode]:
    """All nodes in the order of the file; what is said of &label belongs to the node with that label."""
    nodes: list[_TreeNode] = []
    known: dict[str, _TreeNode] = {}
    inside: list[_TreeNode | None] = [None]
    labels: list[str] = []
    name = ""
    number = 0
    while number < len(tokens):
        (kind, text), number = tokens[number], number + 1
        here = inside[-1]
        if text == ":":
            labels, name = [*labels, name], ""
        elif text == "{":
            node = known.get(name[1:]) if name.startswith("&") else None
            if node is None:
                node = _TreeNode(tuple(labels), here)
                nodes.append(node)
            known |= dict.fromkeys(labels, node)
            inside.append(node)
            labels, name = [], ""
            if len(inside) > DEEPEST:
                raise InputError(f"'{path}' has nodes deeper than {DEEPEST} in each other")
        elif text == "}":
            if len(inside) == 1:
                raise InputError(f"'{path}' is no devicetree: it closes a node that it does not open")
            inside.pop()
        elif text == "=" or (text == ";" and here is not None and name):
            cells, number = _cells(tokens, number) if text == "=" else ([], number)
            if here is not None:
                here.cells[name] = cells
            labels, name = [], ""
        elif text == ";":
            labels, name = [], ""
        elif kind in ("word", "number"):
            name = text
    if len(inside) > 1:
        raise InputError(f"'{path}' is no devicetree: a node is not closed")
    return nodes


def _cells(tokens: Sequence[tuple[str, str]], number: int) -> tuple[Cells, int]:
    """The cells of a property, and where its semicolon was."""
    cells: Cells = []
    is_inside = False
    while number < len(tokens) and tokens[number][1] != ";":
        kind, text = tokens[number]
        if kind == "sign":
            is_inside = text == "<" or (is_inside and text != ">")
        elif is_inside:
            cells.append(int(text, 0) if kind == "number" and not re.fullmatch("0[0-9]+", text) else None)
        number += 1
    return cells, number + 1


def _address(node: _TreeNode) -> int | None:
    """Where a processor finds it: its first reg, seen through all buses around it."""
    parent = node.parent
    if parent is None or "reg" not in node.cells:
        return None
    address = _joined(node.cells["reg"][: parent.width("address", 2)])
    while address is not None and parent is not None and parent.parent is not None:
        if "ranges" not in parent.cells:
            return None  # behind a bus that is not mapped: an I2C address, the number of a core
        address = _translated(address, parent, parent.parent)
        parent = parent.parent
    return address


def _translated(address: int, bus: _TreeNode, outside: _TreeNode) -> int | None:
    cells = bus.cells["ranges"]
    if not cells:
        return address
    own, theirs, size = bus.width("address", 2), outside.width("address", 2), bus.width("size", 1)
    step = own + theirs + size
    for at in range(0, len(cells) - step + 1, max(step, 1)):
        start = _joined(cells[at : at + own])
        target = _joined(cells[at + own : at + own + theirs])
        length = _joined(cells[at + own + theirs : at + step])
        if start is not None and target is not None and length is not None and start <= address < start + length:
            return address - start + target
    return None


def _joined(cells: Cells) -> int | None:
    """Cells of 32 bits as one number, the first of them highest."""
    total = 0
    for cell in cells:
        if cell is None:
            return None
        total = total << 32 | cell & 0xFFFFFFFF
    return total if cells else None
