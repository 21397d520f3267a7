"""The register map as a comment: what lies where, for whoever reads the generated header."""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.spaces import Space
from ..design import Design
from ..layout.layout import Piece, Register, SpaceLayout


def map_comment(design: Design) -> list[str]:
    """One table for each group with a layout of its own, then the devices."""
    lines = []
    for name, space in design.analysis.spaces.items():
        placed = design.layout.spaces[name]
        lines += [f"{name}, {placed.size} bytes", *(f"  {line}" for line in _rows(space, placed)), ""]
    for device in design.analysis.description.devices:
        lines.append(f"{device.name}: {device.group} at 0x{device.address:08x}")
    return lines


def _rows(space: Space, placed: SpaceLayout) -> Iterator[str]:
    rows = [(register.offset, _register(register)) for register in placed.registers]
    kinds = {area.name: area for area in space.areas}
    for place in placed.areas:
        area = kinds[place.area]
        rows.append((place.offset, f"0x{place.offset:03x}     {area.space} {area.name}{_lengths(area.counts)}"))
    yield from (text for _, text in sorted(rows))


def _register(register: Register) -> str:
    fields = ", ".join(_bits(piece) for piece in sorted(register.pieces, key=lambda piece: piece.bit))
    repeats = "".join(
        f"  ({count} times, every {stride} bytes)"
        for count, stride in zip(register.counts, register.strides, strict=True)
    )
    return f"0x{register.offset:03x}  {register.width:2}  {fields}{repeats}"


def _bits(piece: Piece) -> str:
    top = piece.bit + piece.size - 1
    bits = f"[{piece.bit}]" if piece.size == 1 else f"[{top}:{piece.bit}]"
    part = f" from bit {piece.low}" if piece.low else ""
    lanes = f" and {piece.lanes - 1} more elements above" if piece.lanes > 1 else ""
    return f"{bits} {piece.slot}{part}{lanes}"


def _lengths(counts: tuple[int, ...]) -> str:
    return "".join(f"[{count}]" for count in counts)
