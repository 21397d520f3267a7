"""Accesses of driver code to bit fields: what is read or written, through which pointer, and where in the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ..language.description import Child, Description, Field, Place, Span


class Kind(Enum):
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Expression:
    """A piece of C that an access needs: an index, or a pointer to a group."""

    span: Span
    text: str
    names: frozenset[str] = frozenset()  # variables it reads
    value: int | None = None  # where it is a constant
    pure: bool = True  # no call, assignment or access inside: the same value as long as `names` keep theirs


@dataclass(frozen=True, slots=True)
class Hop:
    """One member on the way from the base to the field."""

    member: str
    index: Expression | None = None


class Form(Enum):
    """The syntactic form of an access."""

    READ = "read"  # gpio->dir
    ASSIGN = "="  # gpio->dir = e
    UPDATE = "op="  # gpio->dir |= e: a read and a write
    PRE = "++x"  # also --x
    POST = "x++"


@dataclass(frozen=True, slots=True)
class Spot:
    """The source text around an access, as the rewriter needs it."""

    file: str
    form: Form
    whole: Span  # what is replaced: the member expression of a read, the whole assignment of a write
    value: Span | None  # right-hand side of an assignment or update
    operator: str  # "=", "|=", "++", …; empty for a read
    statement: Span  # the statement (with its semicolon) or declaration the access is in
    alone: bool  # the statement is this assignment and nothing else
    in_block: bool  # the statement stands directly between braces: another can be put before it
    first: bool  # evaluated whenever the statement begins, once, before anything acts: may move in front of it
    scope: Span = (0, 0)  # where a variable declared in front of the statement is known
    labelled: bool = False  # a label or case stands before the statement: no declaration may follow it directly
    condition: Span | None = None  # of a loop, if the access is among the first things that it does
    is_known: bool = False  # what is assigned is a constant or a truth value
    is_polled: bool = False  # it is read for the condition of a loop, which compares it and does nothing else with it
    is_unused: bool = False  # nobody uses the value of the whole


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write of a bit field in a function; an update is two of them, the read first."""

    number: int  # in the order of evaluation, from 0 in each function
    function: str
    kind: Kind
    group: str  # group that the base points to
    base: Expression  # pointer to a group: a device, a parameter, a local, any expression
    device: str | None  # where the base is a device's name
    hops: tuple[Hop, ...]  # the last is the field
    owner: str  # group that declares the field
    place: Place
    spot: Spot
    depth: int  # loops around it
    snapshot: int | None = None  # the statement marked `snapshot` that it stands in, by number

    @property
    def field(self) -> str:
        return self.hops[-1].member

    def members(self, description: Description) -> Iterator[tuple[str, Hop, Field | Child]]:
        """The hops, each with the member that it names and the group that has it."""
        group = self.group
        for hop in self.hops:
            member = description.groups[group].member(hop.member)
            yield group, hop, member
            group = member.group if isinstance(member, Child) else group

    @property
    def name(self) -> str:
        """As a person would name it: pad->dir, gpio->pads[i].out."""
        hops = [hop.member + (f"[{hop.index.text}]" if hop.index else "") for hop in self.hops]
        return f"{self.base.text}->{'.'.join(hops)}"
