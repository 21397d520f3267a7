"""The C that decides which part of a deployment may start: who runs, what waits to be read, preemption points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...kernels.printing.source import CWriter
from ...program.deployment import OUTSIDE, Fifo, Part
from .c_deployment import CDeployment

ARRAYS = ("done", "given", "turns")  # with a word for each part
MEANING = {
    "running": "a bit for each network that has begun",
    "between": "and for each that stands at the end of a stage where it may be interrupted",
    "at_row": "and for each that does so between two rows",
    "turns": "of the stage that each is at",
    "waiting": "a bit for each frame and network that has still to read it",
    "done": "runs of each",
    "given": "frames of which each has read what other partitions made",
}


@dataclass(frozen=True)
class Gate:
    """The functions that run functions call when they begin and end, and parts at their preemption points."""

    code: CDeployment

    @cached_property
    def _ends(self) -> Mapping[tuple[Fifo, str], int]:
        """A bit for each reader of a latest frame, but for the part that brings it."""
        latest = self.code.latest
        return {end: n for n, end in enumerate((x, name) for x in latest for name in x.reading if name != x.writer)}

    @cached_property
    def _turns(self) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
        """The parts that may be interrupted between two rows."""
        return {name: turns for name in self.code.index if (turns := self.code.turns(name))}

    @property
    def words(self) -> Mapping[str, int]:
        """Words of RAM that the gate keeps."""
        count = len(self.code.index)
        kept = {"running": 1}
        kept |= {"between": 1} if self.code.is_polled else {}
        kept |= {"at_row": 1, "turns": count} if self._turns else {}
        kept |= {"waiting": 1} if self._ends else {}
        return kept | ({"done": count, "given": count} if self.code.queues else {})

    def frame(self, part: str) -> str:
        """C of the number of the frame that a part is at, during its run."""
        number = f"done[{self.code.index[part]}]"
        return f"({number} - 1u)" if any(ring.source == part for ring in self.code.rings) else number

    def _fills(self, which: str) -> str:
        """C of whether a part fills a ring: its frames count from their beginning, for they may be read by then."""
        return f"({self.code.bits(ring.source for ring in self.code.rings):#x}u >> {which} & 1u)"

    def _before(self, reader: str) -> frozenset[str]:
        """The parts that may have to go on making rows when this one wants some."""
        sources = {ring.source for ring in self.code.rings if reader in ring.reading}
        return frozenset(sources).union(*map(self._before, sources))

    def declared_words(self) -> Iterator[str]:
        for word, count in self.words.items():
            yield f"static volatile uint32_t {word}{f'[{count}]' if word in ARRAYS else ''}; /* {MEANING[word]} */"

    def probe_prototypes(self) -> Iterator[str]:
        """What parts call at their preemption points."""
        yield f"void {self.code.name}_at(int32_t network, int32_t stage);"
        if self._turns:
            yield f"void {self.code.name}_at_row(int32_t network, int32_t stage);"

    def write(self, c: CWriter) -> None:
        """Tables and functions; `enter` and `leave` are what run functions call."""
        c.lines += self._written_tables()
        if self.code.queues:
            self._write_frames(c)
        self._write_enter(c)
        self._write_leave(c)
        if self.code.is_polled:
            self._write_points(c)
        with c.block(f"int32_t {self.code.name}_busy(void)"):
            c.line("return running != 0u;")
        c.line()

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
        lows = {low: points for (high, low), points in code.preemptions.items() if high == name}
        made = [fifo for fifo in code.latest if fifo.source == name]
        brought = [fifo for fifo in code.latest if fifo.source == OUTSIDE and fifo.writer == name]
        readers = {reader for fifo in (*made, *brought) for reader in fifo.reading if reader != name}
        is_early = code.is_interruptible(name)  # others may read the frame while it runs
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

    def _written_tables(self) -> Iterator[str]:
        for name, table in self._tables.items():
            yield f"static const uint32_t {name}[] = {{{', '.join(f'{word:#x}u' for word in table)}}};"
        if self.code.is_polled:
            stages = [len(self.code.plans[name].program.stages) for name in self.code.index]
            yield f"static const int32_t stages[] = {{{', '.join(map(str, stages))}}};"
        if self.code.queues:
            last = map(self._release_stage, self.code.index)
            yield "/* The stage at whose end a partition gives its slots back. */"
            yield f"static const int32_t last_reads[] = {{{', '.join(map(str, last))}}};"
        yield ""

    def _release_stage(self, part: str) -> int:
        """The stage after which the part releases what it reads; -2 where it does when it has run."""
        stages = [reader.stage for fifo in self.code.queues for reader in fifo.readers if reader.part == part]
        known = [stage for stage in stages if stage is not None]
        return max(known) if known and len(known) == len(stages) else -2

    def _write_frames(self, c: CWriter) -> None:
        """The frames in flight in pipelines: a partition needs one for itself, and others may have to wait."""
        code, guard = self.code, self.code.guard
        c.line("/* Whether a partition finds its frame and room for what it makes, and no pipeline holds others up. */")
        c.lines += ["static int32_t frames(int32_t which)", "{"]
        for fifo in code.queues:
            source = code.index[fifo.source]
            own = code.bits(part.name for part in code.parts if part.owner == fifo.what.network)
            for name in fifo.reading:
                reader = code.index[name]
                under_way = f"done[{source}] - done[{reader}]"
                is_full = f"done[{source}] - given[{reader}] >= {fifo.slots}u"
                is_held = f"(excludes[which] & {own:#x}u) && !({own:#x}u >> which & 1u)"
                if fifo.rows:
                    ring = code.rings.index(fifo)
                    is_full = f"(paused_{ring}[0] || {is_full})"
                    is_stuck = f"{guard}_ALONE && (running & {code.bits(self._before(name)):#x}u)"
                self._refuse(c, f"which == {source} && {is_full}", "BUSY")
                self._refuse(c, f"which == {reader} && {under_way} == 0u", "EMPTY")
                if fifo.rows:
                    self._refuse(c, f"which == {reader} && (made[{ring}] == taken[{ring}] || ({is_stuck}))", "EMPTY")
                self._refuse(c, f"{under_way} != 0u && {is_held}", "BUSY")
        c.lines += [f"    return {guard}_OK;", "}", ""]

    def _refuse(self, c: CWriter, condition: str, status: str) -> None:
        c.lines += [f"    if ({condition})", f"        return {self.code.guard}_{status};"]

    def _write_enter(self, c: CWriter) -> None:
        code, guard = self.code, self.code.guard
        busy = "running & excludes[which]"
        if code.preemptions:
            allowed = "between" + (" | anywhere[which]" if "anywhere" in self._tables else "")
            allowed += " | (at_row & by_rows[which])" if self._turns else ""
            busy = f"({busy}) || (running & interrupts[which] & ~({allowed}))"
        with c.block("static int32_t enter(int32_t which)"):
            c.line(f"int32_t status = {guard}_OK;")
            c.line(f"{guard}_LOCK();")
            if code.queues:
                c.line("status = frames(which);")
            c.line(f"if ({busy})")
            c.line(f"    status = {guard}_BUSY;")
            if self._ends:
                follows = " || (waiting & follows[which])" if "follows" in self._tables else ""
                c.line(f"else if ((reads[which] & ~waiting){follows})")
                c.line(f"    status = {guard}_EMPTY;")
            with c.block(f"if (status == {guard}_OK)"):
                c.line("running |= 1u << which;")
                if code.rings:
                    c.line(f"done[which] += {self._fills('which')};")
                if self._ends:
                    gone = [f"{key}[which]" for key in ("reads", "makes", "brings") if key in self._tables]
                    c.line(f"waiting &= ~({' | '.join(gone)});")
            c.line(f"{guard}_UNLOCK();")
            c.line("return status;")
        c.line()

    def _write_leave(self, c: CWriter) -> None:
        with c.block("static void leave(int32_t which)"):
            c.line(f"{self.code.guard}_LOCK();")
            c.line("running &= ~(1u << which);")
            if "makes" in self._tables:
                c.line("waiting |= makes[which];")
            if self.code.rings:  # a run that fills one may have stopped, and says itself what it has read
                with c.block(f"if (!{self._fills('which')})"):
                    c.line("given[which] = ++done[which];")
            elif self.code.queues:
                c.line("given[which] = ++done[which];")
            c.line(f"{self.code.guard}_UNLOCK();")
        c.line()

    def _write_points(self, c: CWriter) -> None:
        """What parts call where they may be interrupted."""
        name = self.code.name
        self._write_is_point(c)
        c.lines += self.code.text("points.c")
        with c.block(f"void {name}_at(int32_t network, int32_t stage)"):
            if self.code.queues:
                counted = f" - {self._fills('network')}" if self.code.rings else ""
                self._write_locked(
                    c, "stage == last_reads[network] + 1", f"given[network] = done[network] + 1u{counted};"
                )
            if "brings" in self._tables:
                told = "waiting |= brings[network]; /* the frame lies where others read it */"
                self._write_locked(c, "stage == 0", told)
            if self._turns:
                c.line("turns[network] = 0;")
            c.line("if (is_point(network, stage - 1))")
            c.line("    stand(&between, 1u << network);")
        c.line()
        if self._turns:
            self._write_is_row(c)
            with c.block(f"void {name}_at_row(int32_t network, int32_t stage)"):
                c.line("if (is_row(network, stage, turns[network]++))")
                c.line("    stand(&at_row, 1u << network);")
            c.line()

    def _write_locked(self, c: CWriter, condition: str, statement: str) -> None:
        with c.block(f"if ({condition})"):
            c.line(f"{self.code.guard}_LOCK();")
            c.line(statement)
            c.line(f"{self.code.guard}_UNLOCK();")

    def _write_is_point(self, c: CWriter) -> None:
        """The preemption points of parts that may not be interrupted between any two stages."""
        c.line("/* Whether a network may be interrupted after a stage. */")
        c.lines += ["static int32_t is_point(int32_t network, int32_t stage)", "{"]
        for low in dict.fromkeys(low for (_, low), points in self.code.preemptions.items() if points is not None):
            after = self.code.points(low).after
            if len(after) < len(self.code.plans[low].program.stages) - 1:
                places = " || ".join(f"stage == {stage}" for stage in sorted(after)) or "0"
                c.lines += [f"    if (network == {self.code.index[low]})", f"        return {places};"]
        c.lines += ["    return stage >= 0 && stage + 1 < stages[network];", "}", ""]

    def _write_is_row(self, c: CWriter) -> None:
        """The turns after which parts may be interrupted inside a stage."""
        c.line("/* Whether a network may be interrupted after a turn of a stage. */")
        c.lines += ["static int32_t is_row(int32_t network, int32_t stage, uint32_t turn)", "{"]
        for name, stages in self._turns.items():
            for stage, turns in stages.items():
                starts = [turn for turn in turns if turn - 1 not in turns]
                ends = [turn for turn in turns if turn + 1 not in turns]
                runs = zip(starts, ends, strict=True)  # turns that follow each other
                tests = [f"(turn >= {low}u && turn <= {high}u)" if low else f"turn <= {high}u" for low, high in runs]
                c.lines += [f"    if (network == {self.code.index[name]} && stage == {stage})"]
                c.lines += [f"        return {' || '.join(tests)};"]
        c.lines += ["    return 0;", "}", ""]
