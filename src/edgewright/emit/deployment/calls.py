"""The run function of a part in C: what the caller passes to it, and how it calls the one that emit wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...kernels.printing.constants import C_TYPES
from ...program import Plan
from ...program.deployment import Part
from ..header import declared, lies_densely, return_type
from ..names import Parameters, local_names
from ..streaming import RowOutlet
from .c_deployment import CDeployment


@dataclass(frozen=True, slots=True)
class Accessor:
    """The function that points to an input or output which lies in the arena as a whole."""

    tensor: str
    ctype: str
    name: str
    place: str  # in C

    @property
    def declaration(self) -> str:
        return f"{self.ctype} *{self.name}(void)"


@dataclass(frozen=True)
class PartCall:
    """What the C of a part follows from."""

    code: CDeployment
    part: Part

    @property
    def plan(self) -> Plan:
        return self.code.deployment.plans[self.part.name]

    @property
    def prefix(self) -> str:
        return self.code.prefix(self.part)

    @cached_property
    def names(self) -> Parameters:
        return self.code.parameters(self.part)

    def declaration(self, is_public: bool = False) -> str:
        """C of the run function: with names as headers have them, or such as nothing else in the C has."""
        names = self.names if is_public else local_names(self.names)
        inputs, outputs = self.code.given(self.part)
        given = Parameters({}, {x: names.inputs[x] for x in inputs}, {x: names.outputs[x] for x in outputs})
        signature = ", ".join(declared(self.prefix, self.plan, self.part.network, given, self.names)) or "void"
        return f"int32_t {self.code.function(self.part)}({signature})"

    @property
    def accessors(self) -> Iterator[Accessor]:
        for way, group in (("input", self.names.inputs), ("output", self.names.outputs)):
            for tensor, parameter in group.items():
                if lies_densely(self.plan, self.part.network, tensor) and tensor not in self.plan.outside:
                    ctype = C_TYPES[self.part.network.tensors[tensor].dtype.value]
                    name = f"{self.code.name}_{way}_{self.prefix}_{parameter}"
                    yield Accessor(tensor, ctype, name, self.code.address(self.code.place(self.part, tensor)))

    @property
    def number(self) -> int:
        return self.code.index[self.part.name]

    @property
    def asked(self) -> tuple[str, ...]:
        """The inputs whose rows the part asks its caller for, and not a ring."""
        out_of_rings = {self.part.own(ring) for ring in self.code.deployment.rings if self.part.name in ring.reading}
        return tuple(name for name in self.plan.pulled if name not in out_of_rings)

    @property
    def outlet(self) -> RowOutlet | None:
        """Where the rows of the part's output leave, if it fills a ring."""
        for number, ring in enumerate(self.code.deployment.rings):
            if ring.source == self.part.name:
                room, made = (f"{self.code.name}_{asked}_{number}({{stop}})" for asked in ("room", "made"))
                return RowOutlet(self.part.own(ring), room, made)
        return None

    @property
    def may_fail(self) -> bool:
        """Whether the call says that it was refused, or stopped."""
        return return_type(self.plan, self.part.network) != "void"

    @property
    def text(self) -> str:
        """C of the call of the part's own run function."""
        return f"{self.prefix}_run_in({', '.join(self._arguments())})"

    @property
    def resumed(self) -> str:
        """C of the call that goes on with a run; inputs that were passed whole are read, and are not passed again."""
        return f"{self.prefix}_run_in({', '.join(self._arguments(self.kept))})"

    @cached_property
    def kept(self) -> dict[str, str]:
        """C variables for the parameters of a run that may go on later: whom it asks for rows."""
        numbers = [n for n, ring in enumerate(self.code.deployment.rings) if ring.source == self.part.name]
        local, kept = local_names(self.names).inputs, dict[str, str]()
        for tensor in self.asked if numbers else ():
            variable = f"kept_{numbers[0]}_{self.names.inputs[tensor]}"
            kept |= {local[tensor]: variable, f"{local[tensor]}_context": f"{variable}_context"}
        return kept

    def _arguments(self, kept: Mapping[str, str] | None = None) -> Iterator[str]:
        code, part, plan, names = self.code, self.part, self.plan, local_names(self.names)
        for memory in names.arenas:
            base = code.base(part, memory)
            yield code.address((memory, base)) if base else code.arena(memory)
        rings = enumerate(code.deployment.rings)
        pulled = {part.own(ring): number for number, ring in rings if part.name in ring.reading}
        given = {tensor for ends in code.given(part) for tensor in ends}
        for group, is_input in ((names.inputs, True), (names.outputs, False)):
            for tensor, parameter in group.items():
                if is_input and tensor in pulled:
                    yield from (f"pull_{pulled[tensor]}", "0")
                elif tensor in given:
                    passed = [parameter, f"{parameter}_context"] if tensor in plan.pulled else [parameter]
                    yield from passed if kept is None else (kept.get(name, "0") for name in passed)
                elif tensor in plan.outside:
                    yield f"({C_TYPES[part.network.tensors[tensor].dtype.value]} *)(void *)({self._slot(tensor)})"
                else:
                    yield "0"
        yield from (f"paused_{n}" for n, ring in enumerate(code.deployment.rings) if ring.source == part.name)

    def _slot(self, tensor: str) -> str:
        """C of where the slot of the part's frame begins; slots lie anywhere."""
        code, part = self.code, self.part
        fifo = next(x for x in code.deployment.queues if part.name in x.ends and part.own(x) == tensor)
        frame, places = code.frame(part.name), [code.address(place) for place in code.slots(fifo)]
        text = places[-1]
        for n in range(len(places) - 2, -1, -1):
            text = f"({frame} % {len(places)}u == {n}u ? {places[n]} : {text})"
        return text
