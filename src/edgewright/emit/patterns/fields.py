"""What differs between stages of one pattern: fields of records, and numbers that follow from others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import gcd

from .atoms import Atom, AtomKind

INTEGERS = {
    "int8_t": (-(1 << 7), 1 << 7),
    "uint8_t": (0, 1 << 8),
    "int16_t": (-(1 << 15), 1 << 15),
    "uint16_t": (0, 1 << 16),
    "int32_t": (-(1 << 31), 1 << 31),
}
HALF = 16  # bits
Value = int | tuple[int, ...] | str
Arrays = Mapping[str, tuple[int, ...]]  # by type of integer: the values of all arrays, which overlap where they can


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record: a value for each stage of the pattern."""

    ctype: str
    values: tuple[Value, ...]
    element: str = ""  # the type of integer of arrays; the field then says where each begins among all of that type
    is_local: bool = False  # a pointer to what only the network's own file sees
    factor: int = 1  # of all values: addresses are multiples of words, and 16 bits hold more of them so

    @property
    def bytes(self) -> int:
        return {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2}.get(self.ctype, 4)

    @property
    def is_number(self) -> bool:
        return self.ctype in INTEGERS and not self.element

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(value for value in self.values if isinstance(value, int))

    def is_of_layers(self, layers: Sequence[int]) -> bool:
        """Whether all stages of a layer have the same; `layers` has the number of each stage's."""
        return not self.is_local and len({*zip(layers, self.values, strict=True)}) == len(set(layers))

    @property
    def is_pointer(self) -> bool:
        return self.ctype.endswith("*")

    def declared(self, name: str, is_wide: bool) -> list[str]:
        """C of the field; as two halves where 32 bits are one number and records have none that `is_wide`."""
        if self._is_halved(is_wide):
            return [f"int16_t {name}_high;", f"uint16_t {name};"]
        return [f"{self.ctype}{'' if self.is_pointer else ' '}{name};"]

    def initialisers(self, at: int, arrays: Arrays, is_wide: bool = True) -> list[str]:
        """C of the value for stage number `at`."""
        value = self.values[at]
        if isinstance(value, int) and self._is_halved(is_wide):
            return [str(value >> HALF), str(value & ((1 << HALF) - 1))]
        if isinstance(value, int):
            return [str(value // self.factor)]
        return [str(_place(value, arrays[self.element]) if isinstance(value, tuple) else value)]

    def read(self, place: str, is_wide: bool) -> str:
        """C of the value, which stands at `place`."""
        if self._is_halved(is_wide):
            return f"({place}_high * (1 << {HALF}) + {place})"
        return f"({place} * {self.factor})" if self.factor > 1 else place

    def _is_halved(self, is_wide: bool) -> bool:
        return not is_wide and self.is_number and self.bytes > HALF // 8


def field_of(column: Sequence[Atom]) -> RecordField | None:
    """The field for an atom of all stages; None where it is the same in all."""
    atom, values = column[0], tuple(one.value for one in column)
    is_own = atom.kind in (AtomKind.TABLE, AtomKind.NUMBERS)  # of a network's own file, which others do not see
    if atom.kind in (AtomKind.WORD, AtomKind.SIZE) or (len(set(values)) == 1 and not is_own):
        return None
    match atom.kind:
        case AtomKind.FUNCTION:
            return RecordField(f"{atom.key} *", values)
        case AtomKind.CONSTANT | AtomKind.TABLE:
            return RecordField(f"const {atom.key.removesuffix('[]')} *", values, is_local=is_own)
        case AtomKind.NUMBERS:
            numbers = [n for value in values if isinstance(value, tuple) for n in value]
            return RecordField("uint16_t", values, _narrowest(numbers))
    return _number([value for value in values if isinstance(value, int)])


def _number(values: Sequence[int]) -> RecordField:
    """The field of a number; of what a common factor leaves of it, where that takes 16 bits and the number more."""
    factor, found = gcd(*values), RecordField(_narrowest(values), tuple(values))
    if found.bytes <= HALF // 8 or factor < 2:
        return found
    small = replace(found, ctype=_narrowest([value // factor for value in values]), factor=factor)
    return small if small.bytes <= HALF // 8 else found


def arrays_of(fields: Iterable[RecordField]) -> Arrays:
    """The arrays that the fields stand for."""
    found: dict[str, tuple[int, ...]] = {}
    arrays = {(field.element, value) for field in fields for value in field.values if isinstance(value, tuple)}
    for element, values in sorted(arrays, key=lambda pair: (pair[0], -len(pair[1]), pair[1])):
        whole = found.setdefault(element, ())
        if _place(values, whole) < 0:
            most = min(len(values), len(whole))
            shared = next(n for n in range(most, -1, -1) if whole[len(whole) - n :] == values[:n])
            found[element] = whole + values[shared:]
    return found


def _place(values: tuple[int, ...], whole: tuple[int, ...]) -> int:
    """Where the values begin among others; below 0 where they are not."""
    places = range(len(whole) - len(values) + 1)
    return next((at for at in places if whole[at : at + len(values)] == values), -1)


def _narrowest(numbers: Sequence[int]) -> str:
    return next(ctype for ctype, (low, end) in INTEGERS.items() if low <= min(numbers) and max(numbers) < end)


def derived(fields: Sequence[RecordField]) -> Mapping[RecordField, tuple[str, tuple[RecordField, ...]]]:
    """The numbers that follow from others in the same way in all stages: C with the places of those others."""
    taken: list[RecordField] = []
    found: dict[RecordField, tuple[str, tuple[RecordField, ...]]] = {}
    numbers = dict.fromkeys(field for field in fields if field.is_number)
    for own in sorted(numbers, key=lambda field: max(map(abs, field.numbers))):
        relation = next(_relations(own, taken), None)
        if relation is None:
            taken.append(own)
        else:
            found[own] = relation
    return found


def _relations(own: RecordField, others: Sequence[RecordField]) -> Iterator[tuple[str, tuple[RecordField, ...]]]:
    """As one of the others and a summand or a factor, or as the product of two."""
    for base in others:
        if text := _relation(own.numbers, base.numbers):
            yield text, (base,)
    for a, b in combinations_with_replacement(others, 2):
        if all(value == x * y for value, x, y in zip(own.numbers, a.numbers, b.numbers, strict=True)):
            yield "{} * {}", (a, b)


def _relation(values: Sequence[int], base: Sequence[int]) -> str:
    """C that makes these values of the others: a summand or a factor that is the same for all."""
    pairs = set(zip(values, base, strict=True))
    value, other = next(iter(pairs))
    if all(a - b == value - other for a, b in pairs):
        return f"{{}} {'+' if value > other else '-'} {abs(value - other)}"
    value, other = next((a, b) for a, b in pairs if a or b)
    if other and value % other == 0 and all(a == b * (value // other) for a, b in pairs):
        return f"{{}} * {value // other}"
    return ""
