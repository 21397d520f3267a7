"""The C that decides which part of a deployment may start: who runs, what waits to be read, preemption points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...program.deployment import OUTSIDE, Fifo, Part
from .c_deployment import CDeployment


@dataclass(frozen=True)
class Gate:
    """The functions that run functions call when they begin and end, and parts at their preemption points."""

    code: CDeployment

    @cached_property
    def _ends(self) -> Mapping[tuple[Fifo, str], int]:
        """A bit for each reader of a latest frame, but for the part that brings it."""
        latest = self.code.deployment.shared
        return {end: n for n, end in enumerate((x, name) for x in latest for name in x.reading if name != x.writer)}

    @cached_property
    def turns(self) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
        """The parts that may be interrupted between two rows."""
        return {name: turns for name in self.code.index if (turns := self.code.turns(name))}

    @property
    def words(self) -> Mapping[str, int]:
        """Words of RAM that the gate keeps: how many of each kind."""
        single = {"running": True, "between": self.code.is_polled, "at_row": self.turns, "waiting": self._ends}
        for_each_part = {"turns": self.turns, "done": self.code.deployment.queues, "given": self.code.deployment.queues}
        words = {word: int(bool(is_kept)) for word, is_kept in single.items()}
        return words | {word: len(self.code.index) * bool(is_kept) for word, is_kept in for_each_part.items()}

    def _before(self, reader: str) -> frozenset[str]:
        """The parts that may have to go on making rows when this one wants some."""
        sources = {ring.source for ring in self.code.deployment.rings if reader in ring.reading}
        return frozenset(sources).union(*map(self._before, sources))

    def text(self) -> str:
        """C of tables and functions; `enter` and `leave` are what run functions call."""
        code, tables = self.code, self._tables
        filling = code.bits(ring.source for ring in code.deployment.rings)  # their frames count from their beginning
        gone = [f"{name}[which]" for name in ("reads", "makes", "brings") if name in tables]
        follows = " || (waiting & follows[which])" if "follows" in tables else ""
        return code.render(
            "gate.c",
            tables={name: _braced(f"{word:#x}u" for word in table) for name, table in tables.items()},
            stages=_braced(len(code.deployment.plans[name].program.stages) for name in code.index),
            last_reads=_braced(map(self._release_stage, code.index)),
            frames=list(self._refusals()),
            busy=self._busy(),
            unread=f"(reads[which] & ~waiting){follows}" if self._ends else "",
            fills=f"{filling:#x}u" if filling else "",
            gone=" | ".join(gone) if self._ends else "",
            is_polled=code.is_polled,
            points=list(self._points()),
            rows=list(self._rows()),
        )

    @cached_property
    def _tables(self) -> Mapping[str, tuple[int, ...]]:
        """By name, a word of bits for each part; tables without any bit are left out."""
        rows = [self._bits_of(part) for part in self.code.parts]
        tables = {name: tuple(row[name] for row in rows) for name in rows[0]}
        return {name: table for name, table in tables.items() if any(table)}

    def _bits_of(self, part: Part) -> Mapping[str, int]:
        """The parts that exclude it, those it may interrupt, the frames that it reads, those that others must read
        before it, and the frames that it makes by its end or brings at its beginning."""
        code, name = self.code, part.name
        lows = {one.parts[1]: one.points for one in code.deployment.preemptions if one.parts[0] == name}
        made = [fifo for fifo in code.deployment.shared if fifo.source == name]
        brought = [fifo for fifo in code.deployment.shared if fifo.source == OUTSIDE and fifo.writer == name]
        readers = {reader for fifo in (*made, *brought) for reader in fifo.reading if reader != name}
        is_early = code.deployment.may_be_interrupted(name)  # others may read the frame while it runs
        return {
            "excludes": code.bits((code.index.keys() - lows.keys() - code.beside(name)) | readers),
            "interrupts": code.bits(lows),
            "anywhere": code.bits(low for low, points in lows.items() if points is None),
            "by_rows": code.bits(low for low, points in lows.items() if points is not None and points.rows),
            "reads": self._frames(end for end in self._ends if end[1] == name),
            "follows": self._frames(
                (fifo, other)
                for fifo, reader in self._ends
                if reader == name
                for other in code.deployment.read_before(fifo, reader) - {fifo.writer}
            ),
            "makes": self._frames(end for end in self._ends if end[0] in (made if is_early else made + brought)),
            "brings": self._frames(end for end in self._ends if is_early and end[0] in brought),
        }

    def _frames(self, ends: Iterable[tuple[Fifo, str]]) -> int:
        return sum(1 << self._ends[end] for end in set(ends))

    def _release_stage(self, part: str) -> int:
        """The stage after which the part releases what it reads; -2 where it does when it has run.

        Outputs are copied after the last stage, so that a release there counts at the end of the run, unless the part
        fills a ring and copies nothing.
        """
        stages = [
            reader.stage for fifo in self.code.deployment.queues for reader in fifo.readers if reader.part == part
        ]
        known = [stage for stage in stages if stage is not None]
        if not known or len(known) < len(stages):
            return -2
        is_last = max(known) + 1 == len(self.code.deployment.plans[part].program.stages)
        fills = any(ring.source == part for ring in self.code.deployment.rings)
        return -2 if is_last and not fills else max(known)

    def _refusals(self) -> Iterator[tuple[str, str]]:
        """Why a part of a pipeline, or one that excludes such a part, may not start, and what it is told."""
        code, alone = self.code, f"{self.code.guard}_ALONE"
        for fifo in code.deployment.queues:
            source = code.index[fifo.source]
            own = code.bits(part.name for part in code.deployment.parts_of(fifo.what.network))
            ring = code.deployment.rings.index(fifo) if fifo.rows else None
            for name in fifo.reading:
                reader = code.index[name]
                under_way = f"done[{source}] - done[{reader}]"
                is_full = f"done[{source}] - given[{reader}] >= {fifo.slots}u"
                yield f"which == {source} && {is_full if ring is None else f'(paused_{ring}[0] || {is_full})'}", "BUSY"
                yield f"which == {reader} && {under_way} == 0u", "EMPTY"
                if ring is not None:
                    is_stuck = f"{alone} && (running & {code.bits(self._before(name)):#x}u)"
                    yield f"which == {reader} && (made[{ring}] == taken[{ring}] || ({is_stuck}))", "EMPTY"
                yield f"{under_way} != 0u && (excludes[which] & {own:#x}u) && !({own:#x}u >> which & 1u)", "BUSY"

    def _busy(self) -> str:
        """C of whether something runs that keeps a part from starting."""
        busy = "running & excludes[which]"
        if not self.code.deployment.preemptions:
            return busy
        allowed = "between" + (" | anywhere[which]" if "anywhere" in self._tables else "")
        allowed += " | (at_row & by_rows[which])" if self.turns else ""
        return f"({busy}) || (running & interrupts[which] & ~({allowed}))"

    def _points(self) -> Iterator[tuple[int, str]]:
        """C of the preemption points of parts that may not be interrupted between any two stages."""
        for low in dict.fromkeys(one.parts[1] for one in self.code.deployment.preemptions if one.points is not None):
            after = self.code.deployment.points_of(low).after
            if len(after) < len(self.code.deployment.plans[low].program.stages) - 1:
                yield self.code.index[low], " || ".join(f"stage == {stage}" for stage in sorted(after)) or "0"

    def _rows(self) -> Iterator[tuple[int, int, str]]:
        """C of the turns after which parts may be interrupted inside a stage."""
        for name, stages in self.turns.items():
            for stage, turns in stages.items():
                starts = [turn for turn in turns if turn - 1 not in turns]
                ends = [turn for turn in turns if turn + 1 not in turns]
                runs = zip(starts, ends, strict=True)  # turns that follow each other
                tests = [f"(turn >= {low}u && turn <= {high}u)" if low else f"turn <= {high}u" for low, high in runs]
                yield self.code.index[name], stage, " || ".join(tests)


def _braced(values: Iterable[object]) -> str:
    """An initialiser in C."""
    return f"{{{', '.join(map(str, values))}}}"
