"""Which stages share a pattern: those whose C differs in values alone, in the groups that take the least flash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from .atoms import Atom, AtomKind

CALL, VALUE, FIELD = 50, 3.5, 2.0  # bytes of code: of a pattern, of each value in it, more where it comes from a record
ALONE, OWN = 100, 2.5  # of a stage that is printed for itself, and of each of its values
Atoms = tuple[Atom, ...]


def grouped(stages: Mapping[int, tuple[Atoms, int]]) -> list[tuple[int, ...]]:
    """The stages of each pattern, by number; `stages` are given with their positions in their networks.

    Begins with equal positions, which differ in little where networks are slices of one, and joins groups as long as
    that saves flash by estimate.
    """
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, (atoms, _) in stages.items():
        alike.setdefault(tuple(atom.key for atom in atoms), []).append(number)
    found: list[tuple[int, ...]] = []
    for numbers in alike.values():
        by_position: dict[int, list[int]] = {}
        for number in numbers:
            by_position.setdefault(stages[number][1], []).append(number)
        found += _joined([tuple(group) for group in by_position.values()], stages)
    return sorted(group for group in found if len(group) > 1)


def _joined(groups: list[tuple[int, ...]], stages: Mapping[int, tuple[Atoms, int]]) -> list[tuple[int, ...]]:
    costs = {group: _bytes([stages[n] for n in group]) for group in groups}
    gains: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}

    def price(pairs: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
        for a, b in pairs:
            both = tuple(sorted(a + b))
            costs[both] = _bytes([stages[n] for n in both])
            gains[a, b] = costs[a] + costs[b] - costs[both]

    price(combinations(groups, 2))
    while gains:
        a, b = max(gains, key=lambda pair: gains[pair])
        if gains[a, b] <= 0:
            break
        groups = [group for group in groups if group not in (a, b)]
        gains = {pair: gain for pair, gain in gains.items() if not {a, b} & set(pair)}
        both = tuple(sorted(a + b))
        price((group, both) for group in groups)
        groups.append(both)
    return groups


def _bytes(stages: Sequence[tuple[Atoms, int]]) -> float:
    """Flash that stages of one pattern take, by estimate."""
    positions = [position for _, position in stages]
    values = sum(atom.kind is not AtomKind.WORD for atom in stages[0][0])
    if len(stages) == 1:
        return ALONE + OWN * values
    fields, size = set(), 4 * (len(set(positions)) + len(stages))
    for column in zip(*(atoms for atoms, _ in stages), strict=True):
        different = tuple(atom.value for atom in column)
        if column[0].kind not in (AtomKind.WORD, AtomKind.SIZE) and len(set(different)) > 1 and different not in fields:
            fields.add(different)
            kinds = set(zip(positions, different, strict=True))
            is_of_layers = len(kinds) == len(set(positions))
            size += _size(column[0].kind, different) * (len(kinds) if is_of_layers else len(stages))
    return CALL + VALUE * values + FIELD * len(fields) + size


def _size(kind: AtomKind, values: Sequence[object]) -> int:
    """Bytes of a field."""
    if kind is not AtomKind.NUMBER:
        return 2 if kind is AtomKind.NUMBERS else 4
    most = max(abs(value) for value in values if isinstance(value, int))
    return 1 if most < 1 << 7 else 2 if most < 1 << 15 else 4
