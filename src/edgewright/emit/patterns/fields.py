"""What differs between stages of one pattern: fields of records, and numbers that follow from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .atoms import Atom, AtomKind

INTEGERS = {
    "int8_t": (-(1 << 7), 1 << 7),
    "uint8_t": (0, 1 << 8),
    "int16_t": (-(1 << 15), 1 << 15),
    "uint16_t": (0, 1 << 16),
    "int32_t": (-(1 << 31), 1 << 31),
}
Value = int | tuple[int, ...] | str
Arrays = Mapping[tuple[str, tuple[int, ...]], str]  # names of arrays of integers, by type and values


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record: a value for each stage of the pattern."""

    ctype: str
    values: tuple[Value, ...]

    @property
    def bytes(self) -> int:
        return {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2}.get(self.ctype, 4)

    @property
    def is_number(self) -> bool:
        return self.ctype in INTEGERS

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(value for value in self.values if isinstance(value, int))

    @property
    def element(self) -> str:
        """The type of what a pointer points to."""
        return self.ctype.removeprefix("const ").removesuffix(" *")

    def is_of_layers(self, layers: Sequence[int]) -> bool:
        """Whether all stages of a layer have the same; `layers` has the number of each stage's."""
        return len({*zip(layers, self.values, strict=True)}) == len(set(layers))

    def declared(self, name: str) -> str:
        return f"{self.ctype}{'' if self.ctype.endswith('*') else ' '}{name};"

    def initialiser(self, at: int, arrays: Arrays) -> str:
        """C of the value for stage number `at`."""
        value = self.values[at]
        return arrays[self.element, value] if isinstance(value, tuple) else str(value)


def field_of(column: Sequence[Atom]) -> RecordField | None:
    """The field for an atom of all stages; None where it is the same in all."""
    atom, values = column[0], tuple(one.value for one in column)
    is_own = atom.kind in (AtomKind.TABLE, AtomKind.NUMBERS)  # of a network's own file, which others do not see
    if atom.kind in (AtomKind.WORD, AtomKind.SIZE) or (len(set(values)) == 1 and not is_own):
        return None
    return RecordField(_ctype(atom, values), values)


def _ctype(atom: Atom, values: Sequence[Value]) -> str:
    match atom.kind:
        case AtomKind.FUNCTION:
            return f"{atom.key} *"
        case AtomKind.CONSTANT | AtomKind.TABLE:
            return f"const {atom.key.removesuffix('[]')} *"
        case AtomKind.NUMBERS:
            return f"const {_narrowest([n for value in values if isinstance(value, tuple) for n in value])} *"
    return _narrowest([value for value in values if isinstance(value, int)])


def _narrowest(numbers: Sequence[int]) -> str:
    return next(ctype for ctype, (low, end) in INTEGERS.items() if low <= min(numbers) and max(numbers) < end)


def derived(fields: Sequence[RecordField]) -> Mapping[RecordField, tuple[RecordField, str]]:
    """The numbers that follow from another one in the same way in all stages, with that one and the C behind it."""
    taken: list[RecordField] = []
    found: dict[RecordField, tuple[RecordField, str]] = {}
    numbers = dict.fromkeys(field for field in fields if field.is_number)
    for own in sorted(numbers, key=lambda field: max(map(abs, field.numbers))):
        relation = next(((base, text) for base in taken if (text := _relation(own.numbers, base.numbers))), None)
        if relation is None:
            taken.append(own)
        else:
            found[own] = relation
    return found


def _relation(values: Sequence[int], base: Sequence[int]) -> str:
    """C that makes these values of the others, behind them: a summand or a factor that is the same for all."""
    pairs = set(zip(values, base, strict=True))
    value, other = next(iter(pairs))
    if all(a - b == value - other for a, b in pairs):
        return f"{'+' if value > other else '-'} {abs(value - other)}"
    value, other = next((a, b) for a, b in pairs if a or b)
    if other and value % other == 0 and all(a == b * (value // other) for a, b in pairs):
        return f"* {value // other}"
    return ""
