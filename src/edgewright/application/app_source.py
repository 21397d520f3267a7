"""app.h and app.c, around the networks of an application: who may start when, and where tensors are handed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..emit.header import declared, lies_densely, return_type
from ..emit.library import Library
from ..emit.names import Parameters, parameters
from ..kernels.printing.constants import C_TYPES
from ..kernels.printing.source import CWriter, comment
from ..network import Network
from ..program import Plan
from .app_ends import c_name, given_ends, polled_rows
from .description import PreemptionPoints
from .joint import JointLayout
from .members import AppMember
from .slots import crossing_inputs, given_back

ARRAYS = ("done", "given", "turns")  # with a word for each network
MEANING = {
    "running": "a bit for each network that has begun",
    "between": "and for each that stands at the end of a stage where it may be interrupted",
    "at_row": "and for each that does so between two rows",
    "turns": "of the stage that each is at",
    "waiting": "a bit for each input that another network has made",
    "done": "runs of each",
    "given": "frames of which each has read what other partitions made",
}
LOCKS = """\
/* Around the few instructions that read and write who runs. Define both for another system. */
#ifndef APP_LOCK
#if defined(__ZEPHYR__)
#include <zephyr/kernel.h>
#define APP_LOCK() const unsigned int key = irq_lock()
#define APP_UNLOCK() irq_unlock(key)
#elif defined(APP_FREERTOS)
#include <FreeRTOS.h>
#include <task.h>
#define APP_LOCK() taskENTER_CRITICAL()
#define APP_UNLOCK() taskEXIT_CRITICAL()
#elif defined(__GNUC__) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
static inline uint32_t masked(void)
{
    uint32_t key;
    __asm__ volatile("mrs %0, primask\\n\\tcpsid i" : "=r"(key)::"memory");
    return key;
}
#define APP_LOCK() const uint32_t key = masked()
#define APP_UNLOCK() __asm__ volatile("msr primask, %0" ::"r"(key) : "memory")
#else
#define APP_LOCK()
#define APP_UNLOCK()
#endif
#endif"""


@dataclass(frozen=True)
class AppWriter:
    layout: JointLayout
    libraries: Mapping[str, Library]

    @property
    def name(self) -> str:
        return self.layout.application.file.name.lower()

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {member.name: n for n, member in enumerate(self.layout.application.members)}

    @cached_property
    def ends(self) -> Mapping[tuple[str, str], int]:
        """A bit for each input that is handed over."""
        relations = self.layout.meeting.relations
        found = [after for _, after in relations.cascades]
        found += [end for frame in relations.frames for end in frame[1:]]
        return {end: n for n, end in enumerate(dict.fromkeys(found))}

    @property
    def is_polled(self) -> bool:
        """Whether any network may be interrupted."""
        return any(map(self.layout.meeting.relations.may_be_interrupted, self.index))

    @property
    def has_rows(self) -> bool:
        """Whether any network may be interrupted between two rows."""
        return any(polled_rows(self.layout, name) for name in self.index)

    @property
    def words(self) -> Mapping[str, int]:
        """What the library remembers: words of RAM."""
        found = {"running": 1}
        found |= {"between": 1} if self.is_polled else {}
        found |= {"at_row": 1, "turns": len(self.index)} if self.has_rows else {}
        found |= {"waiting": 1} if self.ends else {}
        if self.layout.application.crossings:
            found |= {"done": len(self.index), "given": len(self.index)}
        return found

    def header(self) -> str:
        guard, c = self.name.upper(), CWriter()
        c.lines += [
            f"/* {self.name}: several networks in one arena, compiled by edgewright.",
            " *",
            " * Every network has a run function, which refuses to start where what runs already needs the memory. */",
            f"#ifndef {guard}_H",
            f"#define {guard}_H",
            "",
            "#include <stdint.h>",
            *(f'#include "{library.name}.h"' for library in self.libraries.values()),
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            f"#define {guard}_ARENA_SIZE {self.layout.peak_bytes}",
            f"#define {guard}_OK 0",
            f"#define {guard}_BUSY 1  /* something runs that needs the same memory: try again later */",
            f"#define {guard}_EMPTY 2 /* what it reads has not been made: run the network, or partition, before it */",
            f"#define {guard}_WRONG 3 /* a function that hands out rows is missing */",
            "",
            "/* To place the arena, define this when compiling the library. */",
            f"#ifndef {guard}_SECTION",
            f"#define {guard}_SECTION(memory)",
            "#endif",
            "",
            *(
                (
                    "/* Yours to define: it is called where a network may be interrupted, and may call the run",
                    " * functions of those that interrupt it. One that does nothing is there already. */",
                    f"void {self.name}_poll(void);",
                )
                if self.is_polled
                else ()
            ),
            "/* Whether any network has begun and not ended. */",
            f"int32_t {self.name}_busy(void);",
            "",
        ]
        for member in self.layout.application.members:
            plan, network = self.libraries[member.name].plan, member.network
            c.line(
                f"/* {comment(member.name)}: {plan.macs} multiply-accumulates. "
                "An input or output that is NULL stays in the arena. */"
            )
            c.line(f"int32_t {self.name}_run_{c_name(member)}({self._signature(member)});")
            for kind, function, _ in self._accessors(member, plan, network):
                c.line(f"{kind} *{function}(void);")
            c.line()
        for own in self.layout.application.file.buffers:
            c.line(f"/* {own.size} bytes of the firmware's own. */")
            c.line(f"uint8_t *{self.name}_buffer_{own.name.lower()}(void);")
        c.lines += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard}_H */"]
        return c.text()

    def probe_header(self) -> str:
        guard = f"{self.name.upper()}_PROBE_H"
        return (
            f"/* {self.name}: what networks call where a stage begins. */\n#ifndef {guard}\n#define {guard}\n\n"
            f"#include <stdint.h>\n\nvoid {self.name}_at(int32_t network, int32_t stage);\n"
            + (f"void {self.name}_at_row(int32_t network, int32_t stage);\n" if self.has_rows else "")
            + f"\n#endif /* {guard} */\n"
        )

    def source(self) -> str:
        name, guard, c = self.name, self.name.upper(), CWriter()
        c.lines += [
            f"/* {name}: who may start when, and the arena that all of them share. */",
            f'#include "{name}.h"',
            *([f'#include "{name}_probe.h"'] if self.is_polled else []),
            f'#include "{name}_kernels.h"',
            "",
            *LOCKS.replace("APP", guard).splitlines(),
            "",
            f"{guard}_SECTION(ram) {guard}_ALIGNED(16) static uint8_t arena[{guard}_ARENA_SIZE];",
            *(
                f"static volatile uint32_t {word}{f'[{count}]' if word in ARRAYS else ''}; /* {MEANING[word]} */"
                for word, count in self.words.items()
            ),
            "",
            *self._tables(),
        ]
        c.lines += self._frames() if self.layout.application.crossings else ()
        self._entering(c)
        for member in self.layout.application.members:
            self._write_run(c, member)
        for own in self.layout.application.file.buffers:
            with c.block(f"uint8_t *{name}_buffer_{own.name.lower()}(void)"):
                c.line(f"return arena + {self.layout.at(own.name)};")
            c.line()
        return c.text()

    def _tables(self) -> Iterator[str]:
        """Of each network: who excludes it, whom it may interrupt, which inputs it reads, drops, and makes."""
        relations, members = self.layout.meeting.relations, self.layout.application.members
        rows: dict[str, list[int]] = {
            "excludes": [],
            "interrupts": [],
            "anywhere": [],
            "by_rows": [],
            "reads": [],
            "drops": [],
            "makes": [],
        }
        for member in members:
            barred = interrupted = anywhere = by_rows = 0
            for other in members:
                bit = 1 << self.index[other.name]
                preemption = relations.preemptions.get((member.name, other.name))
                if preemption is not None:
                    interrupted |= bit
                    anywhere |= bit if preemption.points is PreemptionPoints.ANYWHERE else 0
                    by_rows |= bit if preemption.points is PreemptionPoints.ROWS else 0
                elif other is member or not relations.are_parallel(member.name, other.name):
                    barred |= bit
            for frame in relations.frames:
                if frame[0][0] == member.owner:
                    barred |= sum(1 << self.index[name] for name, _ in frame[1:])
            rows["excludes"].append(barred)
            rows["interrupts"].append(interrupted)
            rows["anywhere"].append(anywhere)
            rows["by_rows"].append(by_rows)
            rows["reads"].append(self._bits(end for end in self.ends if end[0] == member.owner))
            rows["makes"].append(
                self._bits(after for (made, _), after in relations.cascades if made == member.owner)
            )
            rows["drops"].append(
                self._bits(end for frame in relations.frames if frame[0][0] == member.owner for end in frame[1:])
            )
        stages = [len(self.libraries[member.name].stages) for member in members]
        for key, values in rows.items():
            is_used = any(values) and (key != "by_rows" or self.has_rows)
            if is_used:
                yield f"static const uint32_t {key}[] = {{{', '.join(f'{value:#x}u' for value in values)}}};"
        if self.is_polled:
            yield f"static const int32_t stages[] = {{{', '.join(map(str, stages))}}};"
        if read := crossing_inputs(self.layout.application.crossings):
            last = [
                given_back(self.libraries[m.name].plan, read[m.name]) if m.name in read else -2 for m in members
            ]
            yield "/* The stage at whose end a partition gives its slots back. */"
            yield f"static const int32_t last_reads[] = {{{', '.join(map(str, last))}}};"
        yield ""

    def _bits(self, ends: Iterator[tuple[str, str]]) -> int:
        return sum(1 << self.ends[end] for end in set(ends))

    def _frames(self) -> Iterator[str]:
        """Frames under way in pipelines: partitions must find theirs, and others must wait."""
        application, guard = self.layout.application, self.name.upper()
        yield "/* Whether a partition finds its frame and room for what it makes, and no pipeline holds others up. */"
        yield "static int32_t frames(int32_t which)"
        yield "{"
        if not application.crossings:
            yield "    (void)which;"
        for crossing in application.crossings:
            source = self.index[crossing.source[0]]
            own = sum(1 << self.index[member.name] for member in application.members_of(crossing.owner))
            for reader in (self.index[name] for name, _ in crossing.readers):
                under_way = f"done[{source}] - done[{reader}]"
                yield f"    if (which == {source} && done[{source}] - given[{reader}] >= {crossing.slots}u)"
                yield f"        return {guard}_BUSY;"
                yield f"    if (which == {reader} && {under_way} == 0u)"
                yield f"        return {guard}_EMPTY;"
                yield f"    if ({under_way} != 0u && (excludes[which] & {own:#x}u) && !({own:#x}u >> which & 1u))"
                yield f"        return {guard}_BUSY;"
        yield f"    return {guard}_OK;"
        yield "}"
        yield ""

    def _points(self) -> Iterator[str]:
        """Where networks may be interrupted, where that is not between any two stages."""
        yield "/* Whether a network may be interrupted after a stage. */"
        yield "static int32_t is_point(int32_t network, int32_t stage)"
        yield "{"
        for name, allowed in self.layout.meeting.points.items():
            places = " || ".join(f"stage == {stage}" for stage in sorted(allowed.after)) or "0"
            yield f"    if (network == {self.index[name]})"
            yield f"        return {places};"
        yield "    return stage >= 0 && stage + 1 < stages[network];"
        yield "}"
        yield ""

    def _rows(self) -> Iterator[str]:
        """After which turns networks may be interrupted, in stages that call for it."""
        yield "/* Whether a network may be interrupted after a turn of a stage. */"
        yield "static int32_t is_row(int32_t network, int32_t stage, uint32_t turn)"
        yield "{"
        for name, number in self.index.items():
            for stage, turns in polled_rows(self.layout, name).items():
                parts = [[turns[0], turns[0]]]
                for turn in turns[1:]:
                    if turn == parts[-1][1] + 1:
                        parts[-1][1] = turn
                    else:
                        parts.append([turn, turn])
                tests = [
                    f"(turn >= {low}u && turn <= {high}u)" if low else f"turn <= {high}u" for low, high in parts
                ]
                yield f"    if (network == {number} && stage == {stage})"
                yield f"        return {' || '.join(tests)};"
        yield "    return 0;"
        yield "}"
        yield ""

    def _entering(self, c: CWriter) -> None:
        name, guard, relations = self.name, self.name.upper(), self.layout.meeting.relations
        is_pipelined, cascades, frames = self.layout.application.crossings, relations.cascades, relations.frames
        busy = "running & excludes[which]"
        if relations.preemptions:
            kinds = {p.points for p in relations.preemptions.values()}
            allowed = "(between"
            allowed += " | anywhere[which]" if PreemptionPoints.ANYWHERE in kinds else ""
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
                c.line("else if (reads[which] & ~waiting)")
                c.line(f"    status = {guard}_EMPTY;")
            with c.block(f"if (status == {guard}_OK)"):
                c.line("running |= 1u << which;")
                if self.ends:
                    c.line(f"waiting &= ~({'reads[which] | makes[which]' if cascades else 'reads[which]'});")
                if frames:
                    c.line("waiting |= drops[which];")
            c.line(f"{guard}_UNLOCK();")
            c.line("return status;")
        c.line()
        with c.block("static void leave(int32_t which)"):
            c.line(f"{guard}_LOCK();")
            c.line("running &= ~(1u << which);")
            if cascades:
                c.line("waiting |= makes[which];")
            if is_pipelined:
                c.line("done[which]++;")
                c.line("given[which] = done[which];")
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
            if self.layout.application.crossings:
                with c.block("if (stage == last_reads[network] + 1)"):
                    c.line(f"{guard}_LOCK();")
                    c.line("given[network] = done[network] + 1u;")
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

    def _parameters(self, member: AppMember) -> Parameters:
        library = self.libraries[member.name]
        return parameters(library.name, member.network, library.plan.arenas)

    def _is_given(self, member: AppMember, tensor: str) -> bool:
        """Whether the caller says where a tensor comes from or goes to."""
        inputs, outputs = given_ends(self.layout, member)
        return tensor in (*inputs, *outputs)

    def _signature(self, member: AppMember) -> str:
        names, plan = self._parameters(member), self.libraries[member.name].plan
        given = Parameters(
            {},
            {tensor: name for tensor, name in names.inputs.items() if self._is_given(member, tensor)},
            {tensor: name for tensor, name in names.outputs.items() if self._is_given(member, tensor)},
        )
        return ", ".join(declared(c_name(member), plan, member.network, given)) or "void"

    def _write_run(self, c: CWriter, member: AppMember) -> None:
        name, guard, plan = self.name, self.name.upper(), self.libraries[member.name].plan
        which, own = self.index[member.name], c_name(member)
        with c.block(f"int32_t {name}_run_{own}({self._signature(member)})"):
            c.line(f"int32_t status = enter({which});")
            c.line(f"if (status != {guard}_OK)")
            c.line("    return status;")
            call = f"{own}_run_in({', '.join(self._arguments(member))})"
            if return_type(plan, member.network) == "void":
                c.line(f"{call};")
            else:
                c.line(f"if ({call})")
                c.line(f"    status = {guard}_WRONG;")
            c.line(f"leave({which});")
            c.line("return status;")
        c.line()
        for kind, function, offset in self._accessors(member, plan, member.network):
            with c.block(f"{kind} *{function}(void)"):
                c.line(f"return ({kind} *)(void *)(arena + {offset});")
            c.line()

    def _arguments(self, member: AppMember) -> Iterator[str]:
        names, plan = self._parameters(member), self.libraries[member.name].plan
        yield from ("arena" for _ in names.arenas)
        for group, is_input in ((names.inputs, True), (names.outputs, False)):
            for tensor, parameter in group.items():
                ctype = C_TYPES[member.network.tensors[tensor].dtype.value]
                if tensor in plan.outside:
                    yield f"({ctype} *)(void *)(arena + {self._slot(member, tensor)})"
                elif not self._is_given(member, tensor):
                    yield "0"
                else:
                    yield parameter
                    if is_input and plan.views[tensor].window:
                        yield f"{parameter}_context"

    def _slot(self, member: AppMember, tensor: str) -> str:
        """C of where the slot of the member's frame begins; slots lie anywhere."""
        which = self.index[member.name]
        crossing = next(
            one for one in self.layout.application.crossings if (member.name, tensor) in (one.source, *one.readers)
        )
        offsets = [self.layout.at(f"{crossing.name}[{n}]") for n in range(crossing.slots)]
        text = str(offsets[-1])
        for n in range(crossing.slots - 2, -1, -1):
            text = f"(done[{which}] % {crossing.slots}u == {n}u ? {offsets[n]} : {text})"
        return text

    def _accessors(self, member: AppMember, plan: Plan, network: Network) -> Iterator[tuple[str, str, int]]:
        """(type, function, offset) of every input and output that lies in the arena as a whole."""
        names = self._parameters(member)
        for way, group in (("input", names.inputs), ("output", names.outputs)):
            for tensor, parameter in group.items():
                if lies_densely(plan, network, tensor) and tensor not in plan.outside:
                    view = plan.views[tensor]
                    buffer = next(b for b in plan.buffers if b.name == view.buffer)
                    function = f"{self.name}_{way}_{c_name(member)}_{parameter}"
                    yield C_TYPES[network.tensors[tensor].dtype.value], function, buffer.offset + view.offset
