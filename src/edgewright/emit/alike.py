"""Texts that say the same but for numbers and names: laid on each other, token on token.

Where one of them has `x` and the other `x + 8` or `(x + 8)`, the first is read as `x + 0`: an offset of nothing is not
written down.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from .tokens import Kind, Token, partners

Kin = Callable[
    [str], Hashable | None
]  # what names must have in common to stand in for each other; None: nothing does
TIGHTER = {"*", "/", "%", "[", ".", "->", "("}  # operators that would take the number before the sign does
PRODUCTS = {"*", "/", "%"}
SUMS = {"+", "-", "(", "[", "{", ",", "=", "<", ">", "<=", ">="}  # behind these a product needs no brackets
VARIABLE = {Kind.NUMBER, Kind.SIGN, Kind.SIZE, Kind.BYTES, Kind.NOTE}
LONGEST = 250  # tokens of a line that is searched for what the other one leaves out


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a text, and what each of the texts has there."""

    space: str
    kind: Kind
    values: tuple[str, ...]

    @property
    def varies(self) -> bool:
        return any(value != self.values[0] for value in self.values)


Line = tuple[Slot, ...]
Template = tuple[Line, ...]
Pair = tuple[int | None, int | None]  # of tokens that stand for each other; None where one of the two has none


def template(text: Sequence[Sequence[Token]]) -> Template:
    """One text alone."""
    return tuple(tuple(Slot(t.space, t.kind, (t.text,)) for t in line) for line in text)


def joined(known: Template, text: Sequence[Sequence[Token]], kin: Kin) -> Template | None:
    """The texts of the template and one more, if that one is alike."""
    if len(known) != len(text):
        return None
    lines: list[Line] = []
    count = _count(known)
    for line, added in zip(known, text, strict=True):
        pairs = _Pairing(line, added, kin).pairs()
        if pairs is None:
            return None
        lines.append(_spaced([_slot(line, added, pair, count) for pair in pairs], pairs))
    return tuple(lines)


def between(known: Template, first: int, last: int) -> Template:
    """Some of its texts, without numbers that none of these adds."""
    lines = [[Slot(slot.space, slot.kind, slot.values[first:last]) for slot in line] for line in known]
    return tuple(tuple(slot for at, slot in enumerate(line) if not _adds_nothing(line, at)) for line in lines)


def _adds_nothing(line: Sequence[Slot], at: int) -> bool:
    """Whether the slot is part of + 0."""
    sign = at if line[at].kind is Kind.SIGN else at - 1
    if sign < 0 or line[sign].kind is not Kind.SIGN or line[sign].varies or line[sign].values[0] != "+":
        return False
    number, behind = line[sign + 1], line[sign + 2] if sign + 2 < len(line) else None
    is_zero = number.values[0] == "0" and not number.varies
    return is_zero and (behind is None or behind.values[0] not in TIGHTER)


def _count(known: Template) -> int:
    """How many texts it stands for."""
    return next((len(slot.values) for line in known for slot in line), 1)


def _slot(line: Line, added: Sequence[Token], pair: Pair, count: int) -> Slot:
    old, new = pair
    if old is None:
        token = added[new or 0]
        return Slot(token.space, token.kind, (_nothing(token.kind, token.text),) * count + (token.text,))
    slot = line[old]
    text = _nothing(slot.kind, slot.values[0]) if new is None else added[new].text
    return Slot(slot.space, slot.kind, (*slot.values, text))


def _spaced(slots: list[Slot], pairs: Sequence[Pair]) -> Line:
    """Nothing between a bracket that was added and what it opens."""
    for at, (old, _) in enumerate(pairs[:-1]):
        if old is None and slots[at].values[0] == "(":
            slots[at + 1] = replace(slots[at + 1], space="")
    return tuple(slots)


def _nothing(kind: Kind, text: str) -> str:
    """What a text would have had where the other adds a number: + 0, in the same brackets."""
    return {Kind.SIGN: "+", Kind.NUMBER: "0"}.get(kind, text)


class _Pairing:
    """Two lines, and which of their tokens stand for each other."""

    def __init__(self, line: Line, added: Sequence[Token], kin: Kin) -> None:
        self.kinds = [slot.kind for slot in line], [token.kind for token in added]
        self.texts = [slot.values[0] for slot in line], [token.text for token in added]
        self.partner = tuple(map(partners, self.texts))
        self.kin = kin

    def pairs(self) -> list[Pair] | None:
        a, b = map(len, self.texts)
        if a == b and all(self._same(i, i) for i in range(a)):
            return [(i, i) for i in range(a)]
        return None if max(a, b) > LONGEST else self._search()

    def _same(self, i: int, k: int) -> bool:
        if self.kinds[0][i] is not self.kinds[1][k]:
            return False
        a, b = self.texts[0][i], self.texts[1][k]
        if a == b or self.kinds[0][i] in VARIABLE:
            return True
        return self.kinds[0][i] is Kind.WORD and self.kin(a) is not None and self.kin(a) == self.kin(b)

    def _search(self) -> list[Pair] | None:
        """Token by token; where they differ, a number that one of the two does not add is tried."""

        @cache
        def path(at: tuple[int, int], pending: tuple[tuple[int, int], ...]) -> tuple[Pair, ...] | None:
            if pending and at[pending[-1][0]] == pending[-1][1] - 2:
                return skip(at, pending[-1][0], 3, pending[:-1])
            if at == ends:
                return None if pending else ()
            if at[0] < ends[0] and at[1] < ends[1] and self._same(*at):
                rest = path((at[0] + 1, at[1] + 1), pending)
                if rest is not None:
                    return (at, *rest)
            for side in (0, 1):
                found = skip(at, side, 2, pending) if self._adds(side, at[side]) else None
                if found is None and self._opens(side, at[side]):
                    found = skip(at, side, 1, (*pending, (side, self.partner[side][at[side]])))
                if found is not None:
                    return found
            return None

        def skip(
            at: tuple[int, int], side: int, count: int, pending: tuple[tuple[int, int], ...]
        ) -> tuple[Pair, ...] | None:
            here = range(at[side], at[side] + count)
            rest = path((at[0] + count, at[1]) if side == 0 else (at[0], at[1] + count), pending)
            alone: list[Pair] = [(i, None) if side == 0 else (None, i) for i in here]
            return None if rest is None else (*alone, *rest)

        ends = (len(self.texts[0]), len(self.texts[1]))
        found = path((0, 0), ())
        return None if found is None else list(found)

    def _adds(self, side: int, at: int) -> bool:
        """Whether a number is added (or taken away) here, to all that stands before it."""
        kinds, texts = self.kinds[side], self.texts[side]
        return at < len(kinds) and kinds[at] is Kind.SIGN and (texts[at + 2 : at + 3] or [";"])[0] not in TIGHTER

    def _opens(self, side: int, at: int) -> bool:
        """Whether (x + 8) begins here, x being one value, or a product where no brackets are needed around it."""
        kinds, texts = self.kinds[side], self.texts[side]
        end = self.partner[side].get(at, -1) if at < len(texts) and texts[at] == "(" else -1
        if end - at < 4 or kinds[end - 2] is not Kind.SIGN or kinds[end - 1] is not Kind.NUMBER:
            return False
        behind = (texts[end + 1 : end + 2] or [";"])[0]
        is_free = at > 0 and texts[at - 1] in SUMS and behind not in TIGHTER
        return self._is_value(side, at + 1, end - 2, PRODUCTS if is_free else set())

    def _is_value(self, side: int, first: int, last: int, operators: set[str]) -> bool:
        """Whether there is one value, with none but these operators in it."""
        kinds, texts, partner = self.kinds[side], self.texts[side], self.partner[side]
        at = first
        while at < last:
            is_value = kinds[at] in (Kind.WORD, Kind.NUMBER) or texts[at] in (".", "->") or texts[at] in operators
            is_address = texts[at] == "&" and at == first
            is_group = at in partner and texts[at] in ("(", "[")
            if not (is_value or is_address or is_group):
                return False
            at = partner.get(at, at) + 1
        return True
