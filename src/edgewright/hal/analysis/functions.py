"""Driver functions as the analysis sees them: their accesses, the flow between these, which may be combined."""

from __future__ import annotations

from dataclasses import dataclass

from ..language.description import Place, Span
from .accesses import Access


@dataclass(frozen=True, slots=True)
class Barrier:
    """Something that no access may be moved across: a call of unknown code, inline assembly, a volatile access."""

    reason: str
    place: Place
    is_text: bool = False  # of text that may mean something else, not of what the program does


@dataclass(frozen=True, slots=True)
class Assigned:
    """A variable gets a new value, so that pointers and indices made from it mean something else."""

    name: str  # "*": whatever a pointer can reach


Event = Access | Barrier | Assigned


@dataclass(frozen=True, slots=True)
class FlowBlock:
    """Events that happen one after the other, and where control goes next."""

    events: tuple[Event, ...]
    next: tuple[int, ...]
    guard: tuple[int, ...]  # what it stands under, outermost first: numbers of short circuits, ?:, loops (see Flow)


@dataclass(frozen=True, slots=True)
class Branch:
    """A block that ends in a decision, and the accesses whose values it may depend on."""

    block: int
    reads: frozenset[int]


@dataclass(frozen=True, slots=True)
class Flow:
    """The control flow graph (block 0 is the entry, the last the exit) with what each decision depends on (S 6.4.1)."""

    blocks: tuple[FlowBlock, ...]
    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    group: str | None = None  # for a pointer to a group


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    file: str
    place: Place
    body: Span
    parameters: tuple[Parameter, ...]
    accesses: tuple[Access, ...]
    flow: Flow
    escaping: frozenset[str] = frozenset()  # variables that a pointer or another function can reach
    ambiguous: frozenset[str] = frozenset()  # names that mean several things in it
    usr: str = ""  # libclang's name for it, different for every function
    calls: frozenset[str] = frozenset()  # the functions that it calls, by USR
    is_static: bool = False
    pointed: frozenset[str] = frozenset()  # groups whose address it takes
    snapshots: tuple[Span, ...] = ()  # from the word `snapshot` to the statement that it marks
    static: Span | None = None  # the word in its definition, where its body can go to its callers
    calls_pointer: bool = False  # it calls functions through pointers


LISTED = 128  # accesses of a function up to which its conflicts are listed: they grow with the square


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses that do not become one, and why: an edge of the conflict graph (S 6.4.2), or beyond it."""

    first: int
    second: int
    reason: str


@dataclass(frozen=True, slots=True)
class Regions:
    """The conflict graph of a function and its colouring: accesses of one region may be combined."""

    conflicts: tuple[Conflict, ...] | None  # None where nobody would read so many
    regions: tuple[tuple[int, ...], ...]  # numbers of accesses

    @property
    def unlisted(self) -> str:
        """What is said in place of the conflicts, where there are too many."""
        accesses = sum(map(len, self.regions))
        return f"with {accesses} accesses there are too many to list"
