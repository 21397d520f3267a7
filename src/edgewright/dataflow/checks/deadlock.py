"""A deadlock in words: the cycle of waits, the missing tokens or space, and a fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...text import plural
from ..graph import Channel, Graph, labelled, quoted

MOST_WAITS = 8  # of a cycle in a message


@dataclass(frozen=True)
class BlockedFiring:
    """An actor that cannot fire: a channel holds fewer tokens, or has less space, than its next firing needs."""

    actor: str
    channel: Channel
    is_room: bool
    holds: int  # tokens, or free places
    needs: int

    @property
    def missing(self) -> int:
        return self.needs - self.holds

    @property
    def other(self) -> str:
        """The actor that could end the wait."""
        return self.channel.target if self.is_room else self.channel.source


@dataclass(frozen=True)
class Fix:
    """More initial tokens, or a larger capacity, for one channel."""

    channel: Channel
    is_room: bool
    now: int
    wanted: int
    is_enough: bool  # whether it makes the whole graph live; otherwise other blocks follow

    def __str__(self) -> str:
        what = f"a capacity of {self.wanted:,}" if self.is_room else plural(self.wanted, "initial token")
        end = "would make it live" if self.is_enough else "would end this block, though another follows"
        return f"{what} on channel {quoted(self.channel.name)} instead of {self.now:,} {end}"


@dataclass(frozen=True)
class Deadlock:
    """Waits that no firing can end. Without a cycle, the last wait is for tokens that no actor produces."""

    graph: Graph
    capacities: Mapping[str, int]
    cycle: tuple[BlockedFiring, ...]  # each waits for the next, the last for the first
    waits: tuple[BlockedFiring, ...]  # of every blocked actor, including those of the cycle
    fixes: tuple[Fix, ...] = ()

    def __str__(self) -> str:
        shown = self.cycle or self.waits[:1]
        rest = len(self.waits) - len(shown)
        also = f" {plural(rest, 'more actor')} {'wait' if rest > 1 else 'waits'} behind." if rest else ""
        fixes = "; or ".join(map(str, self.fixes))
        return f"graph {quoted(self.graph.name)} deadlocks: {self._chain(shown)}.{also}" + (
            f" To try: {fixes}." if fixes else ""
        )

    def _chain(self, waits: tuple[BlockedFiring, ...]) -> str:
        words = [self.explain(wait) for wait in waits]
        if len(words) > MOST_WAITS:
            words[MOST_WAITS - 1 : -1] = [f"… {len(words) - MOST_WAITS:,} more in between"]
        if len(self.cycle) > 1:
            words[-1] += ", which closes the cycle"
        return "; ".join(words)

    def explain(self, wait: BlockedFiring) -> str:
        """One wait as a sentence without its full stop."""
        actor = labelled(self.graph.by_name[wait.actor])
        if wait.channel.is_self_loop:
            return f"actor {actor} waits for itself: {self._self_loop(wait)}"
        return f"{actor} waits for {self._room(wait) if wait.is_room else self._tokens(wait)}"

    def _tokens(self, wait: BlockedFiring) -> str:
        words = (
            f"{quoted(wait.other)}: channel {labelled(wait.channel)} holds "
            f"{plural(wait.holds, 'token')}, {quoted(wait.actor)} needs {wait.needs:,}: {wait.missing:,} missing"
        )
        nobody = not wait.channel.production.total and not self.cycle
        return f"{words}, and only the initial phases of {quoted(wait.other)} make any" if nobody else words

    def _room(self, wait: BlockedFiring) -> str:
        capacity = self.capacities[wait.channel.name]
        if wait.needs > capacity:
            return (
                f"room in channel {labelled(wait.channel)}: it makes {plural(wait.needs, 'token')} at once, "
                f"and the capacity is {capacity:,}"
            )
        return (
            f"{quoted(wait.other)} to make room in channel {labelled(wait.channel)}: of its "
            f"{plural(capacity, 'place')} {wait.holds:,} {'is' if wait.holds == 1 else 'are'} free, "
            f"{quoted(wait.actor)} needs {wait.needs:,}: {wait.missing:,} missing"
        )

    def _self_loop(self, wait: BlockedFiring) -> str:
        loop = f"its self-loop {labelled(wait.channel)}"
        if wait.is_room:
            return (
                f"{loop} has room for {self.capacities[wait.channel.name]:,} and needs {wait.missing:,} more, since "
                "the room of tokens taken is free only when the firing ends"
            )
        return f"{loop} holds {plural(wait.holds, 'token')} and a firing needs {wait.needs:,}: {wait.missing:,} missing"
