"""app.h and app.c, around the networks of an application: their run functions, the arenas, what is handed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..emit.header import declared, lies_densely, return_type
from ..emit.library import Library
from ..emit.names import Parameters, arena_names, local_names, parameters
from ..kernels.printing.constants import C_TYPES
from ..kernels.printing.source import CWriter, comment, header_foot, header_head
from ..memory.joint.conflicts import slot_buffer
from ..memory.joint.layout import JointLayout
from ..program.deployment import Deployment, Part
from .app_ends import c_name, given_ends
from .app_gate import AppGate
from .app_interface import described_end, handed_sentences, overwriters
from .app_locks import POSIX, lock_comment, lock_lines
from .app_rings import AppRings, asked_inputs, row_outlet
from .c_names import NamedPiece
from .description import BufferEntry
from .draft import Application


@dataclass(frozen=True)
class AppWriter:
    application: Application
    layout: JointLayout
    deployment: Deployment  # with kernels selected
    libraries: Mapping[str, Library]

    @cached_property
    def gate(self) -> AppGate:
        return AppGate(self.application.file.prefix, self.deployment, self.libraries)

    @cached_property
    def rings(self) -> AppRings:
        members, made = self.application.deployment.part_named, self.deployment.rings
        calls = {ring.name: self._resumed(members[ring.source]) for ring in made}
        return AppRings(self.gate, {ring.name: self._place(slot_buffer(ring)) for ring in made}, calls)

    def _resumed(self, member: Part) -> str:
        """C of the call that resumes a run; inputs that were passed whole have been read, and are not passed again."""
        names, kept = local_names(self._parameters(member)), self._kept(member)
        gone = {*names.inputs.values(), *names.outputs.values()} - set(kept)
        arguments = ["0" if name in gone else kept.get(name, name) for name in self._arguments(member)]
        return f"{c_name(self.application, member)}_run_in({', '.join(arguments)})"

    def _kept(self, member: Part) -> dict[str, str]:
        """C variables for the parameters of a run that may go on later: whom it asks for rows."""
        numbers = [n for n, ring in enumerate(self.deployment.rings) if ring.source == member.name]
        names, plan = self._parameters(member), self.libraries[member.name].plan
        pulled = asked_inputs(self.deployment, plan, member.name) if numbers else ()
        kept = {local_names(names).inputs[x]: f"kept_{numbers[0]}_{names.inputs[x]}" for x in pulled}
        return kept | {f"{parameter}_context": f"{variable}_context" for parameter, variable in kept.items()}

    @property
    def name(self) -> str:
        return self.gate.name

    @cached_property
    def sections(self) -> Mapping[str, str]:
        """The name of each memory in C."""
        return arena_names(self.layout.arenas)

    def _arena(self, memory: str) -> str:
        """The array that is the arena of a memory."""
        return "arena" if len(self.sections) == 1 else f"arena_{self.sections[memory]}"

    def _size(self, memory: str) -> str:
        own = f"_{self.sections[memory].upper()}" if len(self.sections) > 1 else ""
        return f"{self.name.upper()}_ARENA{own}_SIZE"

    def _place(self, buffer: str) -> str:
        """C of where a buffer begins."""
        return f"{self._arena(self.layout.home(buffer))} + {self.layout.at(buffer)}"

    def header(self) -> str:
        lines = self._header_head()
        for member in self.application.deployment.parts:
            lines += [*self._declared(member), ""]
        for own in self.application.file.buffers:
            lines += [f"/* {own.size} bytes of the firmware's own. */", f"{self._buffer_function(own)};"]
        return "\n".join([*lines, *header_foot(f"{self.name.upper()}_H"), ""])

    def _header_head(self) -> list[str]:
        guard = self.name.upper()
        return [
            f"/* {self.name}: several networks in one arena, compiled by edgewright.",
            " *",
            " * Every network has a run function, which refuses to start where what runs already needs the memory. */",
            *header_head(f"{guard}_H", [f'#include "{library.name}.h"' for library in self.libraries.values()]),
            *(f"#define {self._size(memory)} {size}" for memory, size in self.layout.arenas.items()),
            f"#define {guard}_OK 0",
            f"#define {guard}_BUSY 1  /* something runs that needs the same memory: try again later */",
            f"#define {guard}_EMPTY 2 /* what it reads has not been made: run the network, or partition, before it */",
            f"#define {guard}_WRONG 3 /* a function that hands out rows is missing */",
            "",
            *lock_comment(guard),
            "",
            "/* To place the arena of a memory, define this when compiling the library, for example as",
            ' * __attribute__((section("." #memory))). */',
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
                if self.gate.is_polled
                else ()
            ),
            "/* Whether any network has begun and not ended. */",
            f"int32_t {self.name}_busy(void);",
            "",
        ]

    def _buffer_function(self, own: BufferEntry) -> str:
        return f"uint8_t *{self.name}_buffer_{own.name.lower()}(void)"

    def _declared(self, member: Part) -> Iterator[str]:
        """What the header says of a member, and declares for it."""
        plan = self.libraries[member.name].plan
        yield f"/* {comment(member.name)}: {plan.macs} multiply-accumulates."
        yield from (f" *   {comment(sentence)}." for sentence in handed_sentences(self.deployment, member))
        yield from self._ends(member)
        yield " * What is given as NULL stays in the arena. */"
        yield f"int32_t {self.name}_run_{c_name(self.application, member)}({self._signature(member, is_public=True)});"
        for kind, function, _, _ in self._accessors(member):
            yield f"{kind} *{function}(void);"

    def _ends(self, member: Part) -> Iterator[str]:
        """A line of the header for every input and output: type, axes, shape, and who overwrites it in the arena."""
        names, given = self._parameters(member), given_ends(self.deployment, member)
        functions = {tensor: function for _, function, _, tensor in self._accessors(member)}
        for way, group, passed in (("input", names.inputs, given[0]), ("output", names.outputs, given[1])):
            for tensor, parameter in group.items():
                yield f" *   {way} {parameter}: {described_end(member.network, tensor)}."
                if tensor in functions:
                    others = [member.name, *overwriters(self.layout, self.deployment, member, tensor)]
                    yield f" *     {functions[tensor]}() points to it; overwritten by {comment(', '.join(others))}."
                elif tensor in passed:
                    yield " *     Not in the arena as a whole: only the caller has it."

    def pieces(self, files: Mapping[str, str | bytes]) -> Iterator[NamedPiece]:
        """The C of the library by the keys of the application file that its names follow from."""
        application = self.application
        shared = [str(files[f"{self.name}_{part}.h"]) for part in ("kernels", "weights")]
        yield NamedPiece("name", "\n".join([*self._header_head(), *shared]))
        for member in application.deployment.parts:
            library = self.libraries[member.name]
            index = [one.name for one in application.file.networks].index(member.owner)
            header, source = (str(library.files[f"{library.name}.{kind}"]) for kind in "hc")
            yield NamedPiece(f"network[{index}].prefix", "\n".join([header, *self._declared(member)]), source)
        for index, buffer in enumerate(application.file.buffers):
            yield NamedPiece(f"buffer[{index}].name", self._buffer_function(buffer))
        yield NamedPiece("name", "", self.source())

    def probe_header(self) -> str:
        guard = f"{self.name.upper()}_PROBE_H"
        return (
            f"/* {self.name}: what networks call where a stage begins. */\n#ifndef {guard}\n#define {guard}\n\n"
            f"#include <stdint.h>\n\nvoid {self.name}_at(int32_t network, int32_t stage);\n"
            + (f"void {self.name}_at_row(int32_t network, int32_t stage);\n" if self.gate.has_rows else "")
            + "".join(f"{line}\n" for line in self.rings.prototypes())
            + f"\n#endif /* {guard} */\n"
        )

    def source(self) -> str:
        name, guard, c = self.name, self.name.upper(), CWriter()
        c.lines += [
            f"/* {name}: who may start when, and the arena that all of them share. */",
            *(POSIX if self.gate.is_shared else ()),
            f'#include "{name}.h"',
            *([f'#include "{name}_probe.h"'] if self.gate.is_polled else []),
            f'#include "{name}_kernels.h"',
            "",
            *lock_lines(guard, self.gate.is_shared),
            "",
            *(
                f"{guard}_SECTION({section}) {guard}_ALIGNED(16) static uint8_t "
                f"{self._arena(memory)}[{self._size(memory)}];"
                for memory, section in self.sections.items()
            ),
            *self.gate.declared_words(),
            *self.rings.declared(),
            "",
        ]
        self.gate.write(c)
        self.rings.write(c)
        for member in self.application.deployment.parts:
            self._write_run(c, member)
        for own in self.application.file.buffers:
            with c.block(self._buffer_function(own)):
                c.line(f"return {self._place(own.name)};")
            c.line()
        return c.text()

    def _parameters(self, member: Part) -> Parameters:
        library = self.libraries[member.name]
        return parameters(library.name, member.network, library.plan.arenas)

    def _signature(self, member: Part, is_public: bool = False) -> str:
        """C of the run function's parameters: as the header has them, or under names that nothing else in the C has."""
        public, plan = self._parameters(member), self.libraries[member.name].plan
        names = public if is_public else local_names(public)
        inputs, outputs = given_ends(self.deployment, member)
        given = Parameters({}, {x: names.inputs[x] for x in inputs}, {x: names.outputs[x] for x in outputs})
        return ", ".join(declared(c_name(self.application, member), plan, member.network, given, public)) or "void"

    def _write_run(self, c: CWriter, member: Part) -> None:
        name, guard, plan = self.name, self.name.upper(), self.libraries[member.name].plan
        which, own = self.gate.index[member.name], c_name(self.application, member)
        with c.block(f"int32_t {name}_run_{own}({self._signature(member)})"):
            c.line(f"int32_t status = enter({which});")
            c.line(f"if (status != {guard}_OK)")
            c.line("    return status;")
            for parameter, kept in self._kept(member).items():
                c.line(f"{kept} = {parameter};")
            call = f"{own}_run_in({', '.join(self._arguments(member))})"
            if return_type(plan, member.network) == "void":
                c.line(f"{call};")
            elif row_outlet(name, self.deployment, member.name) is not None:
                with c.block(f"if ({call} == 1)"):  # what remains otherwise is done when the next partition wants it
                    c.line(f"done[{which}] -= 1u;")
                    c.line(f"status = {guard}_WRONG;")
            else:
                c.line(f"if ({call})")
                c.line(f"    status = {guard}_WRONG;")
            c.line(f"leave({which});")
            c.line("return status;")
        c.line()
        for kind, function, place, _ in self._accessors(member):
            with c.block(f"{kind} *{function}(void)"):
                c.line(f"return ({kind} *)(void *)({place});")
            c.line()

    def _arguments(self, member: Part) -> Iterator[str]:
        names, plan = local_names(self._parameters(member)), self.libraries[member.name].plan
        yield from map(self._arena, names.arenas)
        rings = enumerate(self.deployment.rings)
        pulled = {member.own(ring): number for number, ring in rings if member.name in ring.reading}
        given = {tensor for ends in given_ends(self.deployment, member) for tensor in ends}
        for group, is_input in ((names.inputs, True), (names.outputs, False)):
            for tensor, parameter in group.items():
                ctype = C_TYPES[member.network.tensors[tensor].dtype.value]
                if is_input and tensor in pulled:
                    yield from (f"pull_{pulled[tensor]}", "0")
                elif tensor in plan.outside:
                    yield f"({ctype} *)(void *)({self._slot(member, tensor)})"
                elif tensor not in given:
                    yield "0"
                else:
                    yield parameter
                    if is_input and plan.views[tensor].window:
                        yield f"{parameter}_context"
        yield from (f"paused_{n}" for n, ring in enumerate(self.deployment.rings) if ring.source == member.name)

    def _slot(self, member: Part, tensor: str) -> str:
        """C of where the slot of the member's frame begins; slots lie anywhere."""
        frame = self.gate.frame(member.name)
        carrying = (x for x in self.deployment.queues if member.name in x.ends and member.own(x) == tensor)
        fifo = next(carrying)
        places = [self._place(slot_buffer(fifo, n)) for n in range(fifo.slots)]
        text = places[-1]
        for n in range(fifo.slots - 2, -1, -1):
            text = f"({frame} % {fifo.slots}u == {n}u ? {places[n]} : {text})"
        return text

    def _accessors(self, member: Part) -> Iterator[tuple[str, str, str, str]]:
        """(type, function, place, tensor) of every input and output that lies in the arena as a whole."""
        names, plan, network = self._parameters(member), self.libraries[member.name].plan, member.network
        for way, group in (("input", names.inputs), ("output", names.outputs)):
            for tensor, parameter in group.items():
                if lies_densely(plan, network, tensor) and tensor not in plan.outside:
                    view = plan.views[tensor]
                    buffer = plan.buffer_named[view.buffer]
                    function = f"{self.name}_{way}_{c_name(self.application, member)}_{parameter}"
                    place = f"{self._arena(buffer.memory)} + {buffer.offset + view.offset}"
                    yield C_TYPES[network.tensors[tensor].dtype.value], function, place, tensor
