"""The driver's files with every access replaced by a call of its HAL function; all other text stays unchanged (S 6.5).

Single accesses are rewritten in place, merged ones through temporaries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from ..analysis.accesses import Access, Expression, Form, Kind
from ..analysis.functions import Function
from ..analysis.paths import Paths
from ..analysis.spaces import Use
from ..design import Design
from ..language.description import Span
from ..language.macros import LINE
from ..merge import Merge
from .c_text import (
    as_argument,
    field_type,
    grouped,
    indentation,
    line_indentation,
    literal,
    newline,
    ones,
    read_type,
    statement_end,
    type_bits,
    whole_lines,
)
from .calls import Call, Marks, call_for, merges_by_access
from .edits import EditedFile, drop_definitions
from .facts import Facts, facts_of
from .temporaries import Temporaries, can_wait, temporaries_of


def rewritten_files(
    design: Design, name: str, names: Mapping[Call, str], marks: Marks, targets: Mapping[str, str]
) -> dict[str, str]:
    """The text of each of the driver's files, by the name it has in the source; `targets` are those it will have."""
    source = design.analysis.source
    sheets = {file: EditedFile(text) for file, text in source.files.items()}
    facts = facts_of(source, design.analysis.description)
    for file, sheet in sheets.items():
        up = "../" * targets[file].count("/")
        drop_definitions(sheet, source.definitions.get(file, ()), f"{up}{name}_hal.h")
    for function in design.analysis.functions:
        Rewriter(design, function, sheets[function.file], names, facts, marks).rewrite()
    return {file: sheet.edited((0, len(sheet.original))) for file, sheet in sheets.items()}


@dataclass(slots=True)
class Rewriter:
    """Turns the accesses of a function into edits of its file."""

    design: Design
    function: Function
    sheet: EditedFile
    names: Mapping[Call, str]
    facts: Facts
    marks: Marks
    merge_of: dict[int, Merge] = field(init=False)
    temporaries: Temporaries = field(init=False)
    paths: Paths = field(init=False)

    def __post_init__(self) -> None:
        self.paths = Paths(self.function.flow)
        self.merge_of = merges_by_access(self.design, self.function)
        self.temporaries = temporaries_of(self.merges, self.design.analysis.source.identifiers, self._can_wait)

    @property
    def merges(self) -> tuple[Merge, ...]:
        return self.design.merging[self.function.name].merges

    def rewrite(self) -> None:
        """Adds the edits; they are carried out when the sheet is asked for its text."""
        together: dict[Span, list[Access]] = {}
        for access in self.function.accesses:
            together.setdefault(access.spot.whole, []).append(access)
        for span, accesses in together.items():
            self._replace(span, accesses)
        self._put_reads_in_front()
        self._declare_at_top()
        self._number_lines()
        self._drop_snapshots()
        if self.function.name in self.design.inlined and self.function.static:
            self.sheet.replace(self.function.static, lambda: "static EDGEWRIGHT_INLINE")

    def _drop_snapshots(self) -> None:
        """Removes the word `snapshot` of the language; the text before a statement of its block closes up."""
        text = self.sheet.original
        for first, start in self.function.snapshots:
            is_in_block = text[:first].rstrip()[-1:] in (b"{", b"}", b";")
            end = start if is_in_block else first + len(re.match(rb"\w*", text[first:])[0])  # type: ignore[index]
            self.sheet.replace((first, end), str)

    def _number_lines(self) -> None:
        """`__LINE__` as the number that it has in the source: generated code has other lines."""
        text = self.sheet.original
        for first, last, name in self.design.analysis.source.macros.uses.get(self.function.file, ()):
            if name == LINE and self.function.body[0] <= first < self.function.body[1]:
                self.sheet.replace((first, last), partial(str, _line_number(text[:first])))

    def _replace(self, span: Span, accesses: list[Access]) -> None:
        last = accesses[-1]
        if last.number in self.temporaries.dropped:
            self._drop(last)
            return
        self.sheet.replace(span, lambda: self._text(accesses))

    def _drop(self, access: Access) -> None:
        """Removes an assignment whose value is passed directly to the merged write."""
        spot = access.spot
        if spot.in_block and not spot.labelled:
            self.sheet.replace(whole_lines(self.sheet.original, spot.statement), str)
        else:
            self.sheet.replace(spot.statement, lambda: ";")

    def _text(self, accesses: list[Access]) -> str:
        """What stands in the place of an access: a read, a write, or the two of an update."""
        last = accesses[-1]
        if last.kind is Kind.READ:
            return self._read(last)
        merge = self.merge_of.get(last.number)
        if last.number not in self.temporaries.names:
            return self._write(accesses) if merge is None else self._merged_write(merge, self._value(accesses))
        stored = self.temporaries.stored(last, self._type(last), self._value(accesses))
        if merge is not None and merge.at.access.number != last.number:
            return stored
        name = self.temporaries.names[last.number]
        call = self._call(self._use(last), name) if merge is None else self._merged_write(merge, name)
        return self._in_a_row(last, stored, call)

    def _in_a_row(self, access: Access, first: str, second: str) -> str:
        """C: two expressions, or a declaration and an expression, in place of one."""
        if access in self.temporaries.early:
            return f"{first}, {second}"
        text = self.sheet.original
        indent = indentation(text, access.spot.statement[0])
        return f"{first};{' ' if indent is None else newline(text) + indent}{second}"

    def _read(self, access: Access) -> str:
        name = self.temporaries.names.get(access.number)
        if name is None:
            return self._call(self._use(access))
        kind = self._type(access)
        return name if self._kept_as(access, kind) == kind else f"({kind}){name}"

    def _kept_as(self, access: Access, kind: str) -> str:
        """C: the type of the temporary that holds a merged read."""
        return read_type(kind, len(self.merge_of[access.number].slots))

    def _write(self, accesses: list[Access]) -> str:
        last = accesses[-1]
        text = self._call(self._use(last), self._value(accesses))
        if last.spot.form is not Form.POST or last.spot.alone or last.spot.is_unused:
            return text
        bits = self._bits(last)
        before = f"{text} {'-' if last.spot.operator == '++' else '+'} 1u"
        mask = "" if bits == type_bits(bits) else f" & {literal(ones(bits))}"
        return f"({self._type(last)})({f'({before}){mask}' if mask else before})"

    def _value(self, accesses: list[Access]) -> str:
        """C: the value that is written."""
        last = accesses[-1]
        spot = last.spot
        operand = "1u" if spot.value is None else self.sheet.edited(spot.value)
        if spot.form is Form.ASSIGN:
            return as_argument(operand)
        operator = spot.operator[0] if spot.value is None else spot.operator[:-1]
        return f"({self._type(last)})({self._read(accesses[0])} {operator} {grouped(operand)})"

    def _merged_write(self, merge: Merge, value: str) -> str:
        """C: the one call, with the last value of each slot, and then what others hold that are put back."""
        values = {use.slot: self._waiting(use.access) for use in merge.uses[:-1]} | {merge.at.slot: value}
        kept = (self._waiting(use.access) for use in merge.known)
        return self._call(merge.at, *(values[slot] for slot in merge.slots), *kept)

    def _waiting(self, access: Access) -> str:
        """C: the value of an earlier assignment at the place of the merged write."""
        name = self.temporaries.names.get(access.number)
        if name is not None:
            return name
        assert access.spot.value is not None
        return as_argument(self.sheet.edited(access.spot.value))

    def _call(self, use: Use, *values: str) -> str:
        merge = self.merge_of.get(use.access.number)
        call = call_for(use, merge, self.marks)
        indices = [self._index(index) for index in use.indices]
        return f"{self.names[call]}({', '.join([self._base(use), *indices, *values])})"

    def _base(self, use: Use) -> str:
        """C: the pointer to the space; rebuilt from its parts where accesses inside are rewritten too."""
        if use.pure:
            return as_argument(use.base)
        access = use.access
        steps = self.design.analysis.spaces[use.space].slot(use.slot).steps
        through = access.hops[: len(access.hops) - len(steps)]
        pointer = self._part(access.base)
        if not through:
            return as_argument(pointer)
        path = ".".join(hop.member + (f"[{self._part(hop.index)}]" if hop.index else "") for hop in through)
        return f"&{grouped(pointer)}->{path}"

    def _part(self, expression: Expression) -> str:
        return self.sheet.edited(expression.span) if self.sheet.touched(expression.span) else expression.text

    def _index(self, index: Expression) -> str:
        text = self._part(index)
        is_quiet = index.value is not None or (self.function.file, index.span) in self.facts.quiet
        return as_argument(text) if is_quiet else f"(uint32_t){grouped(text)}"

    def _put_reads_in_front(self) -> None:
        """Merged reads stand before the statement of the first of them."""
        fronts: dict[Span, list[Merge]] = {}
        conditions: dict[Span, list[Merge]] = {}
        for merge in sorted(self.merges, key=lambda merge: merge.at.access.number):
            spot = merge.at.access.spot
            if merge.kind is Kind.READ:
                fronts.setdefault(spot.statement, []).append(merge)
                if not spot.first:
                    assert spot.condition is not None
                    conditions.setdefault(spot.condition, []).append(merge)
        for condition, merges in conditions.items():
            self._put_in_condition(condition, merges)
        for statement, merges in fronts.items():
            self._put_in_front(statement, merges)

    def _put_in_condition(self, where: Span, merges: list[Merge]) -> None:
        """Puts the calls at the beginning of a loop's condition, so that every iteration makes them."""
        same = self.sheet.edits.get(where)  # the condition is an access and nothing else

        def edited() -> str:
            rest = same.text() if same is not None else self.sheet.edited(where, edit)
            return ", ".join([*(self._filled(merge) for merge in merges), rest])

        edit = self.sheet.put(where, edited)

    def _put_in_front(self, statement: Span, merges: list[Merge]) -> None:
        """Declares and reads before the statement; one that is the whole body of an if or a loop gets braces."""
        spot, text = merges[0].at.access.spot, self.sheet.original
        marks = {start: first for first, start in self.function.snapshots}
        indent = indentation(text, marks.get(statement[0], statement[0]))
        gap = " " if indent is None else newline(text) + indent
        inner = statement[0], statement_end(text, statement)
        outer = inner if spot.in_block else (len(text[: inner[0]].rstrip()), inner[1])

        def edited() -> str:
            lines = [line for merge in merges for line in self._put_before(merge)]
            body = gap.join([*([";"] if spot.labelled else []), *lines, self.sheet.edited(inner, edit)])
            if spot.in_block:
                return body
            end = " " if indent is None else newline(text) + line_indentation(text, outer[0])
            return f" {{{gap}{body}{end}}}"

        edit = self.sheet.put(outer, edited)

    def _put_before(self, merge: Merge) -> list[str]:
        """The declarations of the temporaries, and the call that fills them unless a condition has it."""
        firsts = self._firsts(merge)
        kinds: dict[str, list[str]] = {}
        for slot in merge.slots:
            access = firsts[slot].access
            kinds.setdefault(self._kept_as(access, self._type(access)), []).append(
                self.temporaries.names[access.number]
            )
        is_here = merge.at.access.spot.first
        if len(merge.slots) == 1 and is_here:
            return [f"{next(iter(kinds))} {self._filled(merge)};"]
        declarations = [f"{kind} {', '.join(names)};" for kind, names in kinds.items()]
        return [*declarations, *([f"{self._filled(merge)};"] if is_here else [])]

    def _filled(self, merge: Merge) -> str:
        """C: the one call, its results in the temporaries."""
        names = [self.temporaries.names[self._firsts(merge)[slot].access.number] for slot in merge.slots]
        if len(names) == 1:
            return f"{names[0]} = {self._call(merge.at)}"
        return self._call(merge.at, *(f"&{name}" for name in names))

    @staticmethod
    def _firsts(merge: Merge) -> dict[str, Use]:
        """The first access to each slot."""
        return {use.slot: use for use in reversed(merge.uses)}

    def _declare_at_top(self) -> None:
        """Temporaries of writes that no declaration in their place would make known to the last."""
        if not self.temporaries.early:
            return
        first = self.function.body[0]
        text = self.sheet.original
        ends_line = not text[first + 1 :].split(b"\n", 1)[0].strip()
        gap = newline(text) + line_indentation(text, first) + "    " if ends_line else " "
        lines = [f"{self._type(access)} {self.temporaries.names[access.number]};" for access in self.temporaries.early]
        self.sheet.replace((first, first + 1), lambda: gap.join(["{", *lines]))

    def _can_wait(self, access: Access, place: Access) -> bool:
        """Whether the assigned expression still has the same value at a later access, where it can then be repeated."""
        spot = access.spot
        value = self.facts.values.get((spot.file, spot.value)) if spot.value else None
        if value is None or spot.value is None or spot.form is not Form.ASSIGN:
            return False
        if not spot.scope[0] <= place.spot.whole[0] < spot.scope[1]:  # its names may mean nothing there
            return False
        words = set(re.findall(r"\w+", value.text))
        if words & self.function.ambiguous or self.design.analysis.source.macros.is_unsteady(spot.file, spot.value):
            return False
        home = self.merge_of.get(access.number)
        is_written_before = home is None or home.at.access.number != place.number
        if is_written_before and value.names & self.function.escaping:  # an interrupt routine may change it meanwhile
            return False
        return can_wait(value, list(self.paths.between(access.number, place.number)))

    def _use(self, access: Access) -> Use:
        return self.design.analysis.uses[self.function.name, access.number]

    def _bits(self, access: Access) -> int:
        field = self.design.analysis.description.field(access.owner, access.field)
        return 1 if self._use(access).is_bit else field.bits

    def _type(self, access: Access) -> str:
        return field_type(self._bits(access))


_RENUMBERED = re.compile(rb"^[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)[^\n]*\n", re.MULTILINE)


def _line_number(before: bytes) -> int:
    """The number of the line behind some text, counted on from the last `#line` in it."""
    *_, last = [(1, 0), *((int(found[1]), found.end()) for found in _RENUMBERED.finditer(before))]
    return last[0] + before.count(b"\n", last[1])
