"""A pattern: stages whose C differs in values alone, as one function and a record for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...kernels.printing.source import CWriter, braced, comment
from ...kernels.window import round_up
from .atoms import Atom, AtomKind
from .fields import Arrays, RecordField, Value, derived, field_of

NAMES = frozenset(("pattern", "own", "layer", "of_layer"))  # of variables in functions
MOST_TITLES = 3  # in the comment of a function
NARROW, POINTER = 2, 4  # bytes: of the widest fields of a stage's record, of pointers


def array_name(element: str) -> str:
    """The array of all integers of a type."""
    return f"ew_all_{element}"


@dataclass(frozen=True, slots=True)
class PrintedStage:
    """The C of a stage as it would stand in the run function."""

    network: str  # prefix of its names
    index: int
    title: str
    text: str


@dataclass(frozen=True)
class Pattern:
    """Stages that differ in values alone.

    What is equal in all stages of a layer, which several networks have, is in a record of the layer: mostly weights
    that are slices of others. A stage's own record has the number of it. Other fields of it have one or two bytes, but
    for pointers into the network's own file: so records of different patterns follow each other without gaps.
    """

    number: int
    first_layer: int  # the number of its first record of a layer among those of all patterns
    stages: tuple[PrintedStage, ...]
    atoms: tuple[tuple[Atom, ...], ...]  # of each stage, alike but for values

    @property
    def record(self) -> str:
        """The type of records of stages."""
        return f"ew_pattern_{self.number}"

    @property
    def layer_record(self) -> str:
        """The type of records of layers."""
        return f"ew_layer_{self.number}"

    @property
    def function(self) -> str:
        return f"ew_run_pattern_{self.number}"

    def layer_name(self, layer: int) -> str:
        """The record of a layer."""
        return f"{self.layer_record}_{layer}"

    @cached_property
    def columns(self) -> list[tuple[Atom, ...]]:
        return list(zip(*self.atoms, strict=True))

    @cached_property
    def _derived(self) -> Mapping[RecordField, tuple[str, tuple[RecordField, ...]]]:
        return derived([own for own in map(field_of, self.columns) if own is not None])

    @cached_property
    def fields(self) -> Mapping[RecordField, str]:
        """Names of the fields of records."""
        found = [own for own in map(field_of, self.columns) if own is not None and own not in self._derived]
        return {own: f"v{n}" for n, own in enumerate(dict.fromkeys(found))}

    @cached_property
    def layers(self) -> tuple[int, ...]:
        """For each stage the number of its layer in the pattern: chosen such that records take least."""
        positions = [stage.index for stage in self.stages]
        pointers = [own.values for own in self.fields if own.is_pointer and not own.is_local]
        kinds: list[tuple[Value, ...]] = list(zip(*pointers, strict=True)) if pointers else [()] * len(self.stages)
        choices = kinds, list(zip(kinds, positions, strict=True))
        numbered = [tuple(list(dict.fromkeys(keys)).index(key) for key in keys) for keys in choices]
        return min(numbered, key=self._bytes)

    @property
    def has_pointers(self) -> bool:
        """Whether records of stages have any."""
        return any(own.is_local for own in self.fields)

    @property
    def layer_count(self) -> int:
        return len(set(self.layers))

    def _bytes(self, layers: Sequence[int]) -> int:
        shared = sum(own.bytes for own in self.fields if own.is_of_layers(layers))
        rest = sum(own.bytes for own in self.fields) - shared
        of_layer = round_up(POINTER + shared, POINTER) + POINTER  # with the pointer to it
        return len(set(layers)) * of_layer + len(self.stages) * round_up(NARROW + rest, NARROW)

    def _fields(self, of_layers: bool) -> list[tuple[str, RecordField]]:
        """Of the records of layers, or of stages: the largest first."""
        found = [(name, own) for own, name in self.fields.items() if own.is_of_layers(self.layers) == of_layers]
        return sorted(found, key=lambda pair: -pair[1].bytes)

    def _text(self, column: Sequence[Atom]) -> str:
        """C of an atom: as it stands where all stages have the same, else from a record."""
        atom, own = column[0], field_of(column)
        if atom.kind is AtomKind.SIZE:
            return str(max(one.value for one in column if isinstance(one.value, int)))
        if own is None:
            return atom.text
        if own in self._derived:
            how, bases = self._derived[own]
            text = f"({how.format(*map(self._field, bases))})"
        else:
            text = self._field(own)
        return f"(uint32_t){text}" if atom.is_unsigned else text

    def _field(self, own: RecordField) -> str:
        name, is_wide = self.fields[own], own.is_of_layers(self.layers)
        text = own.read(f"{'layer' if is_wide else 'own'}->{name}", is_wide)
        return f"({array_name(own.element)} + {text})" if own.element else text

    def declarations(self) -> Iterator[str]:
        """For the header."""
        for record, head, of_layers in (
            (self.layer_record, "ew_layer layer", True),
            (self.record, "ew_pattern pattern", False),
        ):
            fields = [line for name, own in self._fields(of_layers) for line in own.declared(name, of_layers)]
            yield from ("typedef struct {", f"    {head};", *(f"    {field}" for field in fields), f"}} {record};")

    def write(self, c: CWriter, signature: str, memories: Sequence[str], arrays: Arrays) -> None:
        """The function, and the records of layers."""
        titles = list(dict.fromkeys(stage.title for stage in self.stages))
        more = ", ..." if len(titles) > MOST_TITLES else ""
        body = "".join(column[0].space + self._text(column) for column in self.columns)
        c.line(f"/* {comment(', '.join(titles[:MOST_TITLES]))}{more} */")
        with c.block(f"static const ew_pattern *{self.function}({signature})"):
            for name, ctype, given in (("own", self.record, "pattern"), ("layer", self.layer_record, "of_layer")):
                if f"{name}->" in body:
                    c.line(f"const {ctype} *const {name} = (const {ctype} *)(const void *){given};")
                elif name == "layer":
                    c.line(f"(void){given};")
            c.add(body.strip("\n").split("\n"))
            c.add(f"(void){memory};" for memory in memories if memory not in body)
            c.line(f"return &((const {self.record} *)(const void *)pattern + 1)->pattern;")
        c.line()
        firsts = {layer: at for at, layer in reversed(list(enumerate(self.layers)))}
        for layer, at in sorted(firsts.items()):
            values = [value for _, own in self._fields(of_layers=True) for value in own.initialisers(at, arrays)]
            record = f"static const {self.layer_record} {self.layer_name(layer)}"
            c.line(f"{record} = {braced([f'{{{self.function}}}', *values])};")
        c.line()

    def initialiser(self, at: int, arrays: Arrays) -> str:
        """Of the record of stage number `at`."""
        values = [value for _, own in self._fields(False) for value in own.initialisers(at, arrays, is_wide=False)]
        return braced([f"{{{self.first_layer + self.layers[at]}}}", *values])
