"""The C that decides which network of an application may start: relations, running networks, preemption points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, starmap

from ..emit.library import Library
from ..kernels.printing.source import CWriter
from ..program.deployment import Deployment, Fifo
from .app_ends import polled_rows

ARRAYS = ("done", "given", "turns")  # with a word for each network
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
class AppGate:
    """The functions that run functions call when they begin and end, and networks at their preemption points."""

    name: str
    deployment: Deployment
    libraries: Mapping[str, Library]

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {part.name: n for n, part in enumerate(self.deployment.parts)}

    @cached_property
    def ends(self) -> Mapping[tuple[Fifo, str], int]:
        """A bit for each reader of what networks hand over, but for those that bring it."""
        shared = self.deployment.shared
        return {end: n for n, end in enumerate((x, name) for x in shared for name in x.reading if name != x.writer)}

    @property
    def is_polled(self) -> bool:
        """Whether any network may be interrupted."""
        return any(map(self.deployment.may_be_interrupted, self.index))

    @property
    def has_rows(self) -> bool:
        """Whether any network may be interrupted between two rows."""
        return any(polled_rows(self.deployment, name) for name in self.index)

    @property
    def words(self) -> Mapping[str, int]:
        """Words of RAM that the gate keeps."""
        found = {"running": 1}
        found |= {"between": 1} if self.is_polled else {}
        found |= {"at_row": 1, "turns": len(self.index)} if self.has_rows else {}
        found |= {"waiting": 1} if self.ends else {}
        if self.deployment.queues:
            found |= {"done": len(self.index), "given": len(self.index)}
        return found

    def frame(self, member: str) -> str:
        """C of the number of the frame that a member is at, during its run."""
        is_counted = any(ring.source == member for ring in self.deployment.rings)
        return f"(done[{self.index[member]}] - 1u)" if is_counted else f"done[{self.index[member]}]"

    def _fills(self, which: str) -> str:
        """C of whether a network fills a ring: its frames count from their beginning, for they may be read by then."""
        return f"({self._members(ring.source for ring in self.deployment.rings):#x}u >> {which} & 1u)"

    def _before(self, reader: str) -> int:
        """A bit for each network that may have to go on making rows when this one wants some."""
        sources = [ring.source for ring in self.deployment.rings if reader in ring.reading]
        return sum(1 << self.index[name] | self._before(name) for name in sources)

    @property
    def is_shared(self) -> bool:
        """Whether threads, cores or interrupts may start networks at the same time."""
        is_anywhere = any(preemption.points is None for preemption in self.deployment.preemptions)
        return is_anywhere or any(starmap(self.deployment.are_parallel, combinations(self.index, 2)))

    def declared_words(self) -> Iterator[str]:
        for word, count in self.words.items():
            yield f"static volatile uint32_t {word}{f'[{count}]' if word in ARRAYS else ''}; /* {MEANING[word]} */"

    def write(self, c: CWriter) -> None:
        """Tables and functions; `enter` and `leave` are what run functions call."""
        c.lines += self._tables()
        c.lines += self._frames() if self.deployment.queues else ()
        self._entering(c)

    @cached_property
    def _tabled(self) -> frozenset[str]:
        """The tables that any network has an entry in."""
        return frozenset(key for row in self._rows_of_tables for key, value in row.items() if value)

    @cached_property
    def _rows_of_tables(self) -> tuple[Mapping[str, int], ...]:
        """For each network: those that exclude it, those it may interrupt, the frames that it reads, those that others
        must read before it, and the frames that it makes by its end or brings at its beginning."""
        deployment, members = self.deployment, self.deployment.parts
        table: list[Mapping[str, int]] = []
        for member in members:
            preempted = {one.parts[1]: one.points for one in deployment.preemptions if one.parts[0] == member.name}
            beside = {other.name for other in members if deployment.are_parallel(member.name, other.name)}
            made = [fifo for fifo in deployment.shared if fifo.source == member.name]
            brought = [fifo for fifo in deployment.shared if fifo.writer == member.name and fifo not in made]
            reading = {name for fifo in (*made, *brought) for name in fifo.reading if name != member.name}
            barred = (self.index.keys() - preempted.keys() - beside) | reading
            is_early = deployment.may_be_interrupted(member.name)  # others may read the frame while it runs
            table.append(
                {
                    "excludes": self._members(barred),
                    "interrupts": self._members(preempted),
                    "anywhere": self._members(x for x, points in preempted.items() if points is None),
                    "by_rows": self._members(x for x, points in preempted.items() if points and points.rows),
                    "reads": self._bits(end for end in self.ends if end[1] == member.name),
                    "follows": self._bits(
                        (fifo, name)
                        for fifo, reader in self.ends
                        if reader == member.name
                        for name in deployment.read_before(fifo, reader) - {fifo.writer}
                    ),
                    "makes": self._bits(end for end in self.ends if end[0] in (made if is_early else made + brought)),
                    "brings": self._bits(end for end in self.ends if is_early and end[0] in brought),
                }
            )
        return tuple(table)

    def _tables(self) -> Iterator[str]:
        members, table = self.deployment.parts, self._rows_of_tables
        stages = [len(self.libraries[member.name].stages) for member in members]
        for key in table[0]:
            values = [row[key] for row in table]
            if any(values) and (key != "by_rows" or self.has_rows):
                yield f"static const uint32_t {key}[] = {{{', '.join(f'{value:#x}u' for value in values)}}};"
        if self.is_polled:
            yield f"static const int32_t stages[] = {{{', '.join(map(str, stages))}}};"
        if self.deployment.queues:
            last = [self._last_read(member.name) for member in members]
            yield "/* The stage at whose end a partition gives its slots back. */"
            yield f"static const int32_t last_reads[] = {{{', '.join(map(str, last))}}};"
        yield ""

    def _last_read(self, member: str) -> int:
        fifos = (fifo for fifo in self.deployment.queues if member in fifo.reading)
        return max((self.deployment.release_stage(fifo, member) for fifo in fifos), default=-2)

    def _bits(self, ends: Iterable[tuple[Fifo, str]]) -> int:
        return sum(1 << self.ends[end] for end in set(ends))

    def _members(self, names: Iterable[str]) -> int:
        """A bit for each of these members."""
        return sum(1 << self.index[name] for name in set(names))

    def _frames(self) -> Iterator[str]:
        """The frames in flight in pipelines: a partition needs one for itself, and others may have to wait."""
        deployment, guard = self.deployment, self.name.upper()
        yield "/* Whether a partition finds its frame and room for what it makes, and no pipeline holds others up. */"
        yield "static int32_t frames(int32_t which)"
        yield "{"
        for fifo in deployment.queues:
            source = self.index[fifo.source]
            own = self._members(part.name for part in deployment.parts_of(fifo.what.network))
            for name in fifo.reading:
                reader = self.index[name]
                under_way = f"done[{source}] - done[{reader}]"
                under = f"done[{source}] - given[{reader}] >= {fifo.slots}u"
                if fifo.rows:
                    under = f"(paused_{deployment.rings.index(fifo)}[0] || {under})"
                yield f"    if (which == {source} && {under})"
                yield f"        return {guard}_BUSY;"
                yield f"    if (which == {reader} && {under_way} == 0u)"
                yield f"        return {guard}_EMPTY;"
                if fifo.rows:
                    ring = deployment.rings.index(fifo)
                    none = f"made[{ring}] == taken[{ring}] || ({guard}_ALONE && (running & {self._before(name):#x}u))"
                    yield f"    if (which == {reader} && ({none}))"
                    yield f"        return {guard}_EMPTY;"
                yield f"    if ({under_way} != 0u && (excludes[which] & {own:#x}u) && !({own:#x}u >> which & 1u))"
                yield f"        return {guard}_BUSY;"
        yield f"    return {guard}_OK;"
        yield "}"
        yield ""

    def _points(self) -> Iterator[str]:
        """The preemption points of networks that may not be interrupted between any two stages."""
        yield "/* Whether a network may be interrupted after a stage. */"
        yield "static int32_t is_point(int32_t network, int32_t stage)"
        yield "{"
        for name in dict.fromkeys(one.parts[1] for one in self.deployment.preemptions if one.points is not None):
            after = self.deployment.points_of(name).after
            if len(after) == len(self.libraries[name].stages) - 1:
                continue
            places = " || ".join(f"stage == {stage}" for stage in sorted(after)) or "0"
            yield f"    if (network == {self.index[name]})"
            yield f"        return {places};"
        yield "    return stage >= 0 && stage + 1 < stages[network];"
        yield "}"
        yield ""

    def _rows(self) -> Iterator[str]:
        """The turns after which networks may be interrupted inside a stage."""
        yield "/* Whether a network may be interrupted after a turn of a stage. */"
        yield "static int32_t is_row(int32_t network, int32_t stage, uint32_t turn)"
        yield "{"
        for name, number in self.index.items():
            for stage, turns in polled_rows(self.deployment, name).items():
                starts = [turn for turn in turns if turn - 1 not in turns]
                ends = [turn for turn in turns if turn + 1 not in turns]
                parts = zip(starts, ends, strict=True)  # turns that follow each other
                tests = [f"(turn >= {low}u && turn <= {high}u)" if low else f"turn <= {high}u" for low, high in parts]
                yield f"    if (network == {number} && stage == {stage})"
                yield f"        return {' || '.join(tests)};"
        yield "    return 0;"
        yield "}"
        yield ""

    def _entering(self, c: CWriter) -> None:
        name, guard, preemptions = self.name, self.name.upper(), self.deployment.preemptions
        is_pipelined = self.deployment.queues
        busy = "running & excludes[which]"
        if preemptions:
            allowed = "(between"
            allowed += " | anywhere[which]" if any(one.points is None for one in preemptions) else ""
            allowed += " | (at_row & by_rows[which]))" if self.has_rows else ")"
            busy = f"({busy}) || (running & interrupts[which] & ~{allowed})"
        with c.block("static int32_t enter(int32_t which)"):
            c.line(f"int32_t status = {guard}_OK;")
            c.line(f"{guard}_LOCK();")
            if is_pipelined:
                c.line("status = frames(which);")
            c.line(f"if ({busy})")
            c.line(f"    status = {guard}_BUSY;")
            if self.ends:
                follows = " || (waiting & follows[which])" if "follows" in self._tabled else ""
                c.line(f"else if ((reads[which] & ~waiting){follows})")
                c.line(f"    status = {guard}_EMPTY;")
            with c.block(f"if (status == {guard}_OK)"):
                c.line("running |= 1u << which;")
                if self.deployment.rings:
                    c.line(f"done[which] += {self._fills('which')};")
                if self.ends:
                    gone = [key for key in ("reads", "makes", "brings") if key in self._tabled]
                    c.line(f"waiting &= ~({' | '.join(f'{key}[which]' for key in gone)});")
            c.line(f"{guard}_UNLOCK();")
            c.line("return status;")
        c.line()
        with c.block("static void leave(int32_t which)"):
            c.line(f"{guard}_LOCK();")
            c.line("running &= ~(1u << which);")
            if "makes" in self._tabled:
                c.line("waiting |= makes[which];")
            if self.deployment.rings:  # a run that fills one may have stopped, and says itself what it has read
                with c.block(f"if (!{self._fills('which')})"):
                    c.line("given[which] = ++done[which];")
            elif is_pipelined:
                c.line("given[which] = ++done[which];")
            c.line(f"{guard}_UNLOCK();")
        c.line()
        if self.is_polled:
            self._polling(c)
        with c.block(f"int32_t {name}_busy(void)"):
            c.line("return running != 0u;")
        c.line()

    def _polling(self, c: CWriter) -> None:
        name, guard = self.name, self.name.upper()
        c.lines += self._points()
        c.lines += [
            f"#ifndef {guard}_HAS_POLL /* define it where the compiler knows no weak functions */",
            "#ifdef __GNUC__",
            "__attribute__((weak))",
            "#endif",
            f"void {name}_poll(void)",
            "{",
            "}",
            "#endif",
            "",
        ]
        with c.block("static void mark(volatile uint32_t *place, uint32_t network, uint32_t here)"):
            c.line(f"{guard}_LOCK();")
            c.line("*place = (*place & ~network) | (here ? network : 0u);")
            c.line(f"{guard}_UNLOCK();")
        c.line()
        with c.block("static void stand(volatile uint32_t *place, uint32_t network)"):
            c.line("mark(place, network, 1u);")
            c.line(f"{name}_poll();")
            c.line("mark(place, network, 0u);")
        c.line()
        with c.block(f"void {name}_at(int32_t network, int32_t stage)"):
            if self.deployment.queues:
                with c.block("if (stage == last_reads[network] + 1)"):
                    c.line(f"{guard}_LOCK();")
                    counted = f" - {self._fills('network')}" if self.deployment.rings else ""
                    c.line(f"given[network] = done[network] + 1u{counted};")
                    c.line(f"{guard}_UNLOCK();")
            if "brings" in self._tabled:
                with c.block("if (stage == 0)"):
                    c.line(f"{guard}_LOCK();")
                    c.line("waiting |= brings[network]; /* the frame lies where others read it */")
                    c.line(f"{guard}_UNLOCK();")
            if self.has_rows:
                c.line("turns[network] = 0;")
            c.line("if (is_point(network, stage - 1))")
            c.line("    stand(&between, 1u << network);")
        c.line()
        if self.has_rows:
            c.lines += self._rows()
            with c.block(f"void {name}_at_row(int32_t network, int32_t stage)"):
                c.line("if (is_row(network, stage, turns[network]++))")
                c.line("    stand(&at_row, 1u << network);")
            c.line()
