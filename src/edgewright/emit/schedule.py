"""The schedule in C: the run function, and what stands around it in its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from itertools import chain, groupby

from ..kernels.call import CTensor
from ..kernels.module import Module
from ..kernels.printing.nest import elements
from ..kernels.printing.source import CWriter, comment, wrapped
from ..kernels.sites import Sites
from ..kernels.strided_tensor import dense_strides
from ..network import Tensor
from ..platform.target import Family
from ..program import Stage
from ..program.plan import slot_name
from .files import renamed
from .header import PAUSED, STOPPED, arena_macro, declared, lies_densely, return_type
from .lanes import LANED, has_barrier, write_barrier, write_run
from .names import local_names, parameters
from .patterns import StagePatterns
from .stages import StageWriter
from .storage import LANE, ArenaPointers
from .streaming import RowOutlet, RowPuller

FENCE = "EW_FENCE();"  # between stages: memory is used anew under other types
# For cores with Helium: GCC makes conversions conditional that the assembler beside it cannot read.
NO_CONDITIONAL_CONVERSIONS = (
    "#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13",
    '#pragma GCC optimize("no-if-conversion2") /* binutils before 2.41 take a VCVT on condition NE for VCVTN */',
    "#endif",
    "",
)


class RunFunction:
    """The run function: inputs in, stage after stage, outputs out."""

    def __init__(
        self,
        module: Module,
        sites: Sites,
        resident: frozenset[str] = frozenset(),
        rows: frozenset[int] = frozenset(),
        outlet: RowOutlet | None = None,
        may_stop: bool = False,
    ) -> None:
        """Inputs and outputs that are `resident` stay where they lie in the arena, whatever is given for them.

        EW_BETWEEN_ROWS stands between the rows of the stages in `rows`. With an `outlet`, the last stage may stop. With
        `may_stop`, a probe may end the run.
        """
        self.resident, self.may_stop = resident, may_stop
        plan, network = sites.plan, sites.facts.network
        self.module, self.plan, self.network = module, plan, network
        self.public = parameters(module.prefix, network, plan.arenas, module.options.renamed)  # as the header has them
        self.parameters = local_names(self.public)
        self.pulled = plan.pulled
        self.outlet = outlet and replace(outlet, pulled=self._counts)
        self.storage = ArenaPointers(sites, {**self.parameters.arenas, **self._slots})
        pulling = RowPuller(module, self.storage, self.parameters.inputs, self.pulled)
        self.stages = StageWriter(module, self.storage, pulling, rows, self.outlet)
        self.places: dict[int, tuple[int, int, int]] = {}  # of stages: first line, first of their code, behind the last

    def write(self) -> CWriter:
        c = CWriter()
        prefix, is_laned = self.module.prefix, self.plan.lanes > 1
        parameters = [*(LANED if is_laned else ()), *self.signature(arenas=True)]
        function = f"{prefix}_run_lane" if is_laned else f"{prefix}_run_in"
        missing = [f"!{p}" for name, p in self.parameters.inputs.items() if name in self.pulled]
        with c.block(f"{self.returns} {function}({', '.join(parameters)})"):
            for name in self.plan.outside:
                c.line(f"uint8_t *const {self._slots[slot_name(name)]} = {self._address(name)};")
                if name in self.network.inputs and not self.network.readers[name]:
                    c.line(f"(void){self._slots[slot_name(name)]};")
            if self.outlet is not None:
                self.outlet.write_counts(c)
            for count in self._counts if self.outlet is None else ():
                c.line(f"int32_t {count} = 0;")
            if self.pulled:
                with c.block(f"if ({' || '.join(missing)})"):
                    c.line("return 1;")
            with c.block(f"if (!{PAUSED}[0])") if self.outlet else nullcontext():
                self._prologue(c)
            stages = self.plan.program.stages
            if self.outlet:
                self.stages.write(c, len(stages) - 1, stages[-1])
            self._begin(c, len(self.plan.program.stages))
            with self._on_lane_0(c):
                c.line(f"EW_PROBE({len(self.plan.program.stages)});")
                for name in self.network.outputs:
                    if name in self.resident:
                        c.line(f"(void){self.parameters.outputs[name]};")
                    elif name not in self.plan.outside:
                        self._copy_out(c, name)
            if self.returns != "void":
                c.line("return 0;")
        if is_laned:
            c.line()
            write_run(c, self.returns, prefix, self.signature(arenas=True), missing)
        return c

    @property
    def _counts(self) -> tuple[str, ...]:
        """The C variables that count the rows of pulled inputs."""
        return tuple(f"next_{self.parameters.inputs[name]}" for name in self.pulled)

    def _prologue(self, c: CWriter) -> None:
        """Inputs and stages, up to the last one where that may stop and go on."""
        with self._on_lane_0(c):
            for name in self.network.inputs:
                if name in self.resident:
                    c.line(f"(void){self.parameters.inputs[name]};")
                elif name not in self.pulled and name not in self.plan.outside:
                    self._copy_in(c, name)
        for index, stage in enumerate(self.plan.program.stages):
            if self.outlet and stage is self.plan.program.stages[-1]:
                self._begin(c, index)
                c.line(f"EW_PROBE({index});")
            else:
                self._stage(c, index, stage)

    def _begin(self, c: CWriter, index: int) -> None:
        """Between two stages."""
        c.line(FENCE)
        if has_barrier(self.plan, index):
            write_barrier(c)

    def _stage(self, c: CWriter, index: int, stage: Stage) -> None:
        """The stage; one that is not shared among lanes is run by the first of them."""
        first = len(c.lines)
        self._begin(c, index)
        with ExitStack() as first_lane:
            first_lane.enter_context(self._on_lane_0(c))
            c.line(f"EW_PROBE({index});")
            if stage.schedule.lanes > 1:
                first_lane.close()
            c.line(f"/* {index}: {comment(self.title(index))} */")
            body = len(c.lines)
            self.stages.write(c, index, stage)
            self.places[index] = first, body, len(c.lines)

    def _on_lane_0(self, c: CWriter) -> AbstractContextManager[None]:
        """A block for the first lane; nothing besides where there is just one."""
        return c.block(f"if ({LANE} == 0)") if self.plan.lanes > 1 else nullcontext()

    @property
    def _slots(self) -> dict[str, str]:
        """The C variable of each memory of the caller's: bytes where the input or output lies."""
        given = {**self.parameters.inputs, **self.parameters.outputs}
        return {slot_name(name): f"slot_{given[name]}" for name in self.plan.outside}

    def _address(self, name: str) -> str:
        """C of where the caller has an input or output. Inputs are only read, but pointers to them lack the const."""
        if name in self.parameters.outputs:
            return f"(uint8_t *)(void *){self.parameters.outputs[name]}"
        return f"(uint8_t *)(uintptr_t){self.parameters.inputs[name]}"

    @property
    def variables(self) -> frozenset[str]:
        """The C variables of the run function but for its arenas."""
        given = {**self.parameters.inputs, **self.parameters.outputs}.values()
        return frozenset((*given, *(f"{name}_context" for name in given), *self._slots.values(), *self._counts, PAUSED))

    @property
    def returns(self) -> str:
        return "int32_t" if self.may_stop else return_type(self.plan, self.network)

    def signature(self, arenas: bool) -> list[str]:
        parts = [f"uint8_t *{memory}" for memory in self.parameters.arenas.values()] if arenas else []
        types = declared(self.module.prefix, self.plan, self.network, self.parameters, self.public)
        return [*parts, *types]

    def title(self, index: int) -> str:
        """What a stage computes."""
        stage = self.plan.program.stages[index].name
        if stage not in self.network.by_name:
            return stage
        layer = self.network.by_name[stage]
        shapes = ["x".join(map(str, self.network.tensors[name].shape)) for name in self.network.activations(layer)]
        out = "x".join(map(str, self.network.tensors[layer.output].shape))
        return f"{type(layer.op).__name__} {', '.join(shapes)} -> {out} ({stage})"

    def _copy_in(self, c: CWriter, name: str) -> None:
        """Unless the caller has put the input where it belongs."""
        place, parameter = self.storage.tensor(name), self.parameters.inputs[name]
        with c.block(f"if ({parameter} && {parameter} != {place.pointer})"):
            _copy(c, _dense(place.tensor, parameter), place)

    def _copy_out(self, c: CWriter, name: str) -> None:
        place, parameter = self.storage.tensor(name), self.parameters.outputs[name]
        if place.is_constant:
            with c.block(f"if ({parameter})"):
                _copy(c, replace(place, pointer=self.stored_output(name)), _dense(place.tensor, parameter))
            return
        with c.block(f"if ({parameter} && {parameter} != {place.pointer})"):
            _copy(c, place, _dense(place.tensor, parameter))

    def stored_output(self, name: str) -> str:
        """The array that holds an output which depends on no input."""
        return self.module.constants.add(self.network.constants[name], f"output {name}")


def _dense(tensor: Tensor, pointer: str) -> CTensor:
    return CTensor(tensor, dense_strides(tensor), memory="caller", pointer=pointer)


def _copy(c: CWriter, source: CTensor, target: CTensor) -> None:
    if source.is_dense and target.is_dense:
        c.line(f"memcpy({target.pointer}, {source.pointer}, {target.tensor.bytes});")
        return
    with elements(c, [(0, n) for n in target.tensor.shape], [source, target]) as ((a, b), _):
        c.line(f"{target.pointer}[{b}] = {source.pointer}[{a}];")


def with_patterns_called(
    schedule: RunFunction, body: CWriter, patterns: StagePatterns, number: int
) -> tuple[list[str], list[str]]:
    """Definitions of records, and the run function whose stages walk over them where they are of a pattern."""
    prefix, places = schedule.module.prefix, schedule.places
    records: list[str] = []
    lines, done = CWriter(), 0
    for covered, group in groupby(places, key=lambda index: patterns.covers(prefix, index)):
        indices = list(group)
        if covered:
            name = f"{prefix}_s{indices[0]}"
            records += patterns.records(prefix, indices, name)
            lines.lines += body.lines[done : places[indices[0]][0]]
            done = places[indices[-1]][2]
            call = patterns.call(indices, name, number)
            lines.lines += [f"    if ({call})", f"        return {STOPPED};"] if schedule.may_stop else [f"    {call};"]
    return records, [*lines.lines, *body.lines[done:]]


def schedule_file(
    module: Module,
    schedule: RunFunction,
    body: CWriter,
    common: str,
    probes: Mapping[str, str],
    patterns: StagePatterns | None = None,
    number: int = 0,
) -> str:
    """NAME.c: tables of the layers, the run function, and the arenas unless the caller brings them.

    Kernels and weights are those of the prefix `common`; `probes` are macros of a stage with the C that they call.
    """
    prefix, tables, lines = module.prefix, module.tables, body.lines
    if patterns is not None and patterns.patterns:
        records, lines = with_patterns_called(schedule, body, patterns, number)
        words = set(re.findall(r"\w+", "\n".join([*records, *lines])))
        needed = [line for line in tables if words.intersection(re.findall(rf"{prefix}_\w+", line.split(" = ")[0]))]
        tables = [*needed, *records]
    c = CWriter()
    c.line(f"/* {prefix}: the schedule. Which layer runs when, where its tensors lie. */")
    c.line(f'#include "{prefix}.h"')
    if probes:
        c.line(f'#include "{common}_probe.h"')
        c.lines += [f"#define {macro}(stage) {called}" for macro, called in probes.items()]
    c.line(f'#include "{common}_kernels.h"')
    c.line(f'#include "{common}_weights.h"')
    if patterns is not None and patterns.patterns:
        c.line(f'#include "{common}_patterns.h"')
    c.line()
    c.lines += NO_CONDITIONAL_CONVERSIONS if module.target.family is Family.HELIUM else ()
    c.lines += [*chain.from_iterable(map(wrapped, tables)), ""] if tables else []
    c.lines += lines
    c.line()
    guard = prefix.upper()
    c.line(f"#ifndef {guard}_CALLER_PLACES_ARENA")
    arenas = {memory: f"{prefix}_arena_{name}" for memory, name in schedule.public.arenas.items()}
    for memory, name in schedule.public.arenas.items():
        size = arena_macro(prefix, memory, schedule.public)
        c.line(f"{guard}_SECTION({name}) EW_ALIGNED(16) static uint8_t {arenas[memory]}[{size}];")
    c.line()
    names = []
    for name, parameter in schedule.parameters.inputs.items():
        names += [parameter, f"{parameter}_context"] if name in schedule.pulled else [parameter]
    names += [*schedule.parameters.outputs.values(), *([PAUSED] if schedule.outlet else [])]
    with c.block(f"{schedule.returns} {prefix}_run({', '.join(schedule.signature(arenas=False))})"):
        call = f"{prefix}_run_in({', '.join([*arenas.values(), *names])});"
        c.line(call if schedule.returns == "void" else f"return {call}")
    for way, group in (("input", schedule.public.inputs), ("output", schedule.public.outputs)):
        for name, parameter in group.items():
            if not lies_densely(schedule.plan, schedule.network, name):
                continue
            place = schedule.storage.tensor(name)
            c.line()
            with c.block(f"{place.ctype} *{prefix}_{way}_{parameter}(void)"):
                c.line(f"return ({place.ctype} *)(void *)({arenas[place.memory or '']} + {place.first});")
    c.line("#endif")
    for name, parameter in schedule.public.outputs.items():
        if name in schedule.network.constants:
            c.line()
            with c.block(f"const {schedule.storage.tensor(name).ctype} *{prefix}_output_{parameter}(void)"):
                c.line(f"return {schedule.stored_output(name)};")
    return renamed(c.text(), common)
