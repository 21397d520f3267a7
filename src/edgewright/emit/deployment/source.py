"""NAME.h and NAME.c of a deployment's library, around its parts: their run functions, the arenas, the gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...kernels.printing.source import comment
from ...program.deployment import FirmwareBuffer, Part
from ..library import Library
from .c_deployment import CDeployment
from .calls import PartCall
from .gate import Gate
from .interface import described_end, overwriters
from .names import NamedPiece
from .rings import CRing


@dataclass(frozen=True)
class DeploymentWriter:
    code: CDeployment

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.code)

    @cached_property
    def calls(self) -> Mapping[str, PartCall]:
        return {part.name: PartCall(self.code, part) for part in self.code.parts}

    @cached_property
    def rings(self) -> tuple[CRing, ...]:
        return tuple(CRing(n, ring, self.calls[ring.source]) for n, ring in enumerate(self.code.deployment.rings))

    @property
    def state_words(self) -> int:
        """Words of RAM beside the arenas."""
        return sum(self.gate.words.values()) + sum(ring.words for ring in self.rings)

    def header(self) -> str:
        return self._header(self.code.parts, self.code.deployment.buffers)

    def _header(self, parts: Iterable[Part], buffers: Iterable[FirmwareBuffer]) -> str:
        """The header, as far as it is for these parts and buffers."""
        code = self.code
        return code.render(
            "library.h",
            headers=[f"{code.prefix(part)}.h" for part in code.parts],
            sizes={code.size_macro(memory): layout.bytes for memory, layout in code.arenas.items()},
            locks="\n".join(self.code.lock_lines[0]),
            is_polled=code.is_polled,
            parts=["\n".join(self._declared(part)) for part in parts],
            buffers=[(own.bytes, self._buffer_function(own)) for own in buffers],
        )

    def _buffer_function(self, own: FirmwareBuffer) -> str:
        return f"uint8_t *{self.code.buffer_function(own)}(void)"

    def _declared(self, part: Part) -> Iterator[str]:
        """What the header says of a part, and declares for it."""
        call = self.calls[part.name]
        yield f"/* {comment(part.name)}: {call.plan.macs} multiply-accumulates."
        yield from (f" *   {comment(sentence)}." for sentence in self.code.handed(part))
        yield from self._ends(part)
        yield " * What is given as NULL stays in the arena. */"
        yield f"{call.declaration(is_public=True)};"
        yield from (f"{accessor.declaration};" for accessor in call.accessors)

    def _ends(self, part: Part) -> Iterator[str]:
        """A line of the header for every input and output: type, axes, shape, and who overwrites it in the arena."""
        call, given = self.calls[part.name], {tensor for ends in self.code.given(part) for tensor in ends}
        functions = {accessor.tensor: accessor.name for accessor in call.accessors}
        for way, group in (("input", call.names.inputs), ("output", call.names.outputs)):
            for tensor, parameter in group.items():
                yield f" *   {way} {parameter}: {described_end(self.code.references[part.name], tensor)}."
                if tensor in functions:
                    others = comment(", ".join([part.name, *overwriters(self.code, part, tensor)]))
                    yield f" *     {functions[tensor]}() points to it; overwritten by {others}."
                elif tensor in given and tensor in call.plan.outside:
                    yield " *     In the caller's memory, 16-byte aligned, never NULL."
                elif tensor in given:
                    yield " *     Not in the arena as a whole: only the caller has it."

    def pieces(self, libraries: Mapping[str, Library], shared: Mapping[str, str | bytes]) -> Iterator[NamedPiece]:
        """The C of the library by the names that the user gave; `shared` are files of kernels and weights."""
        code = self.code
        common = [str(text) for name, text in shared.items() if name.endswith(".h")]
        yield NamedPiece(code.names.key(""), "\n".join([self._header((), ()), *common]))
        for part in code.parts:
            library = libraries[part.name]
            header, source = (str(library.files[f"{library.name}.{kind}"]) for kind in "hc")
            yield NamedPiece(code.names.key(part.name), "\n".join([header, *self._declared(part)]), source)
        for own in code.deployment.buffers:
            yield NamedPiece(code.names.key(own.name), self._buffer_function(own))
        yield NamedPiece(code.names.key(""), "", self.source())

    def probe_header(self) -> str:
        """What parts call where they may be interrupted, and around rows that cross."""
        return self.code.render("probe.h", has_rows=bool(self.gate.turns), rings=len(self.rings))

    def source(self) -> str:
        code = self.code
        return code.render(
            "library.c",
            is_shared=code.is_shared,
            is_polled=code.is_polled,
            locks="\n".join(self.code.lock_lines[1]),
            arenas=[
                (section, code.arena(memory), code.size_macro(memory)) for memory, section in code.sections.items()
            ],
            words=self.gate.words,
            gate=self.gate.text(),
            rings=self.rings,
            calls=list(self.calls.values()),
            buffers=[
                (self._buffer_function(own), code.address((memory, layout.buffers[own.name])))
                for own in code.deployment.buffers
                for memory, layout in code.arenas.items()
                if own.name in layout.buffers
            ],
        )
