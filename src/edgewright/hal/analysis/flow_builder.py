"""A control flow graph under construction: blocks that grow, and the jumps between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from .functions import Branch, Event, Flow, FlowBlock

Sources = frozenset[int | str]  # reads, and variables, that a value depends on


@dataclass(slots=True)
class _Open:
    """A block that still grows."""

    guard: tuple[int, ...]
    events: list[Event] = field(default_factory=list)
    next: list[int] = field(default_factory=list)


@dataclass(slots=True)
class FlowBuilder:
    """The blocks of one function; `at` is the block that events are added to."""

    blocks: list[_Open] = field(default_factory=lambda: [_Open(())])
    at: int = 0
    depth: int = 0  # loops around
    guard: tuple[int, ...] = ()
    returns: list[int] = field(default_factory=list)
    breaks: list[list[int]] = field(default_factory=list)
    continues: list[list[int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    gotos: list[tuple[int, str]] = field(default_factory=list)
    decisions: list[tuple[int, Sources]] = field(default_factory=list)
    values: dict[str, set[int | str]] = field(default_factory=dict)  # what a variable may depend on
    guards: int = 0

    def add(self, event: Event) -> None:
        self.blocks[self.at].events.append(event)

    def new(self, *before: int) -> int:
        """A block that control reaches from those before."""
        self.blocks.append(_Open(self.guard))
        number = len(self.blocks) - 1
        for block in before:
            self.blocks[block].next.append(number)
        return number

    def start(self, *before: int) -> int:
        """A block as `new` makes it; code goes there now."""
        self.at = self.new(*before)
        return self.at

    def jump(self, target: int) -> None:
        self.blocks[self.at].next.append(target)

    def leave(self) -> None:
        """What follows is not reached from here."""
        self.start()

    def decide(self, sources: Sources) -> int:
        """The block that ends here in a decision on these."""
        self.decisions.append((self.at, sources))
        return self.at

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """A region of code that runs only under its condition, while the block is open."""
        before = self.guard
        self.guards += 1
        self.guard = (*before, self.guards)
        yield
        self.guard = before

    @contextmanager
    def loop(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    def flow(self) -> Flow:
        """The finished graph: its last block is the exit."""
        last = self.new(self.at, *self.returns)
        self.blocks[last].guard = ()
        for block, label in self.gotos:
            self.blocks[block].next.append(self.labels[label])
        depends = _closed(self.values)
        blocks = tuple(FlowBlock(tuple(b.events), tuple(dict.fromkeys(b.next)), b.guard) for b in self.blocks)
        return Flow(blocks, tuple(Branch(block, _reads(sources, depends)) for block, sources in self.decisions))


def _closed(values: Mapping[str, set[int | str]]) -> dict[str, frozenset[int]]:
    """The reads that each variable's value depends on, through other variables too."""
    found = {name: {s for s in sources if isinstance(s, int)} for name, sources in values.items()}
    changed = True
    while changed:
        changed = False
        for name, sources in values.items():
            more = set().union(*(found.get(s, set()) for s in sources if isinstance(s, str)), found[name])
            changed = changed or more != found[name]
            found[name] = more
    return {name: frozenset(reads) for name, reads in found.items()}


def _reads(sources: Sources, depends: Mapping[str, frozenset[int]]) -> frozenset[int]:
    direct = frozenset(s for s in sources if isinstance(s, int))
    return direct.union(*(depends.get(s, frozenset()) for s in sources if isinstance(s, str)))
