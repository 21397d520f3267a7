"""From a plan to the files of a C library: header, schedule, kernels, weights. What each step looks like is up to
`operators`; nothing here decides anything that the plan has decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from ..errors import Unsupported
from ..kernels.call import Call
from ..kernels.catalogue import ADDERS, EMITTERS, FINISHERS, Emitter
from ..kernels.kernel import Kernel, Offer
from ..kernels.module import Module
from ..kernels.options import Options
from ..kernels.placement import dense_strides
from ..kernels.printing.constants import C_TYPES, Constants
from ..kernels.printing.nest import Bounds, elements
from ..kernels.printing.source import Expr, Source, comment, plus, times
from ..kernels.printing.tensor import CTensor
from ..kernels.site import ChannelRange, LayerFacts
from ..network import Interval, Layer, Network, Region, Tensor
from ..platform.target import Target
from ..program import Flow, Item, Loop, Plan, Stage, Step, Stream, Tiles, Tiling, sums_bytes, sums_name
from ..program.program import Parts, tile_parts
from .files import kernel_files, renamed, weight_files
from .header import arena_macro, declared, header, lies_densely, return_type
from .names import library_name, local_names, parameters
from .part import Part
from .pulling import last_row_read
from .rolling import roll
from .static import in_use
from .streaming import write_stream

FENCE = "EW_FENCE();"  # between stages: memory is used anew under other types


@dataclass(frozen=True)
class Library:
    """The sources of one network for one target. Same plan, same bytes."""

    name: str  # prefix of every identifier, and of the files
    plan: Plan
    network: Network
    target: Target
    options: Options
    files: Mapping[str, str | bytes]  # by name: the header, C sources, perhaps a binary file of weights
    weight_bytes: int
    arenas: Mapping[str, int]  # bytes of each memory
    stages: tuple[str, ...]  # names, in order

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name in self.files if name.endswith((".c", ".S")))


def emit(
    plan: Plan,
    target: Target,
    network: Network | None = None,
    name: str | None = None,
    options: Options | None = None,
) -> Library:
    """The library that carries `plan` out on `target`; `network` brings the weights when the plan came from a file."""
    whole = replace(plan.network, constants=network.constants) if network else plan.network
    prefix = library_name(whole, name)
    unit = Module(prefix, target, options or Options(), Constants(prefix))
    writer = _Schedule(unit, plan, whole)
    body = writer.write()
    files: dict[str, str | bytes] = {
        f"{prefix}.h": header(prefix, plan, whole, writer.public, unit.options),
        f"{prefix}.c": schedule_file(unit, writer, body),
        **kernel_files(unit.prefix, unit.kernels),
        **weight_files(unit.constants),
    }
    names = tuple(stage.name for stage in plan.program.stages)
    return Library(
        prefix, plan, whole, target, unit.options, files, unit.constants.bytes, dict(plan.arenas), names
    )


class _Schedule:
    """The run function: inputs in, stage after stage, outputs out."""

    def __init__(self, unit: Module, plan: Plan, network: Network) -> None:
        self.unit, self.plan, self.network = unit, plan, network
        self.buffers = {buffer.name: buffer for buffer in plan.buffers}
        self.public = parameters(unit.prefix, network, plan.arenas)  # as the header has them
        self.parameters = local_names(self.public)
        self.memories = self.parameters.arenas
        self.pulled = {name for name in network.inputs if plan.views[name].window}
        self.facts: dict[str, LayerFacts] = {}
        self.parts: Mapping[str, Parts] = {}  # what each layer is cut to by the tile that is being written
        self.origins: dict[
            tuple[str, int], int
        ] = {}  # (buffer, axis from the end): the first index of the tile in it

    def write(self) -> Source:
        c = Source()
        prefix = self.unit.prefix
        with c.block(f"{self.returns} {prefix}_run_in({self.signature(arenas=True)})"):
            for name in self.network.inputs:
                if name in self.pulled:
                    c.line(f"int32_t next_{self.parameters.inputs[name]} = 0;")
            if self.pulled:
                missing = [f"!{p}" for name, p in self.parameters.inputs.items() if name in self.pulled]
                with c.block(f"if ({' || '.join(missing)})"):
                    c.line("return 1;")
            for name in self.network.inputs:
                if name not in self.pulled:
                    self._copy_in(c, name)
            for index, stage in enumerate(self.plan.program.stages):
                c.line(FENCE)
                c.line(f"EW_PROBE({index});")
                c.line(f"/* {index}: {comment(self._title(stage.name))} */")
                self._stage(c, index, stage)
            c.line(FENCE)
            c.line(f"EW_PROBE({len(self.plan.program.stages)});")
            for name in self.network.outputs:
                self._copy_out(c, name)
            if self.pulled:
                c.line("return 0;")
        return c

    @property
    def returns(self) -> str:
        return return_type(self.plan, self.network)

    def signature(self, arenas: bool) -> str:
        parts = [f"uint8_t *{memory}" for memory in self.memories.values()] if arenas else []
        types = declared(self.unit.prefix, self.plan, self.network, self.parameters, self.public)
        return ", ".join([*parts, *types])

    def _title(self, stage: str) -> str:
        if stage not in self.network.by_name:
            return stage
        layer = self.network.by_name[stage]
        shapes = ["x".join(map(str, self.network.tensors[name].shape)) for name in self.network.activations(layer)]
        out = "x".join(map(str, self.network.tensors[layer.output].shape))
        return f"{type(layer.op).__name__} {', '.join(shapes)} -> {out} ({stage})"

    def place(self, name: str) -> CTensor:
        tensor = self.network.tensors[name]
        if name in self.network.constants:
            strides = tuple(s // tensor.dtype.bytes for s in tensor.strides)
            return CTensor(tensor, strides)
        view = self.plan.views[name]
        buffer = self.buffers[view.buffer]
        start = buffer.offset + view.offset
        size = list(tensor.shape)
        if view.window:
            size[view.window[0]] = min(size[view.window[0]], view.window[1])
        reach = sum((n - 1) * s for n, s in zip(size, view.strides, strict=True)) + tensor.dtype.bytes
        reach = min(reach, buffer.size - view.offset)  # of a tiled tensor no more is there
        ctype = C_TYPES[tensor.dtype.value]
        arena = self.memories[buffer.memory]
        # Kernels count from the first element of the whole tensor, wherever the tile at hand begins.
        zero = start - sum(
            self.origins.get((view.buffer, axis - len(view.strides)), 0) * view.strides[axis]
            for axis in view.tiled
        )
        at = f"{arena} + {zero}" if zero or view.tiled else arena
        pointer = f"({at})" if ctype == "uint8_t" else f"(({ctype} *)(void *)({at}))"
        strides = tuple(s // tensor.dtype.bytes for s in view.strides)
        return CTensor(tensor, strides, view.window, buffer.memory, start, start + reach, pointer)

    def _copy_in(self, c: Source, name: str) -> None:
        """Unless the caller has put the input where it belongs."""
        place, parameter = self.place(name), self.parameters.inputs[name]
        with c.block(f"if ({parameter} && {parameter} != {place.pointer})"):
            _copy(c, _dense(place.tensor, parameter), place)

    def _copy_out(self, c: Source, name: str) -> None:
        place, parameter = self.place(name), self.parameters.outputs[name]
        if place.is_constant:
            with c.block(f"if ({parameter})"):
                _copy(c, replace(place, pointer=self.stored_output(name)), _dense(place.tensor, parameter))
            return
        with c.block(f"if ({parameter} && {parameter} != {place.pointer})"):
            _copy(c, place, _dense(place.tensor, parameter))

    def stored_output(self, name: str) -> str:
        """The array that holds an output which depends on no input."""
        return self.unit.constants.add(self.network.constants[name], f"output {name}")

    def _stage(self, c: Source, index: int, stage: Stage) -> None:
        """The body, between the beginning of running sums and their end as output."""
        for name in stage.summing:
            self._clear_sums(c, name)
        self._body(c, index, stage.body, ())
        for name in stage.summing:
            shape = self.network.tensors[self.network.by_name[name].output].shape
            step = Step(name, Region.whole(shape))
            site = self._made_site(index, step, Part(step.region.bounds), is_whole=True)
            write_step(replace(site, sums=self._sums(name)), c, FINISHERS)

    def _clear_sums(self, c: Source, name: str) -> None:
        """Running sums begin at zero. Those in an output that lies among others are cleared one by one."""
        layer = self.network.by_name[name]
        size, place = sums_bytes(self.network, layer), self.place(layer.output)
        if size or place.is_dense:
            c.line(f"memset({self._sums(name)}, 0, {size or place.tensor.bytes});")
            return
        with elements(c, [(0, n) for n in place.tensor.shape], [place]) as ((at,), _):
            c.line(f"{place.pointer}[{at}] = 0.0f;")

    def _sums(self, name: str) -> str:
        """C of a pointer to the running sums of a layer."""
        buffer = self.buffers.get(sums_name(name))
        if buffer is None:
            return self.place(self.network.by_name[name].output).pointer
        return f"((int32_t *)(void *)({self.memories[buffer.memory]} + {buffer.offset}))"

    def _body(self, c: Source, stage: int, body: Sequence[Item], counters: tuple[Expr, ...]) -> None:
        for item in body:
            if isinstance(item, Stream):
                write_stream(c, self.unit, self.network, item, partial(self._rows, c, stage))
            elif isinstance(item, Tiles):
                self._tiles(c, stage, item)
            elif isinstance(item, Loop) and item.count == 1:
                self._body(c, stage, item.body, (*counters, 0))
            elif isinstance(item, Loop):
                i = f"part{len(counters)}"
                with c.block(f"for (int32_t {i} = 0; {i} < {item.count}; {i}++)"):
                    self._body(c, stage, item.body, (*counters, i))
            else:
                self._step(c, stage, item, counters)

    def _tiles(self, c: Source, stage: int, tiles: Tiles) -> None:
        """Each tile is written out with plain numbers; what is alike becomes a loop."""
        texts = []
        for parts, body in _leaves(self.network, tiles, {}):
            self.parts = parts
            text = Source()
            self._body(text, stage, body, ())
            texts.append(text.lines)
        self.parts = {}
        c.add(roll(self.unit, texts, "tile"))

    def _step(self, c: Source, stage: int, step: Step, counters: tuple[Expr, ...]) -> None:
        if step.region.is_empty:
            return
        layer = self.network.by_name[step.layer]
        shape = self.network.tensors[layer.output].shape
        moving = any(d for i, move in zip(counters, step.moves, strict=True) for d in move if i != 0)
        with ExitStack() as stack:
            if moving:
                stack.enter_context(c.block())
            region = tuple(_clipped_bounds(c, step, counters, axis, size) for axis, size in enumerate(shape))
            if any(isinstance(a, int) and isinstance(b, int) and b <= a for a, b in region):
                return
            self._site(c, stage, step, self._cut(step, region))

    def _rows(self, c: Source, stage: int, flow: Flow, index: int, rows: tuple[Expr, Expr]) -> None:
        """A step of a stream: these rows of a unit, all columns at once or a few after the other."""
        unit, texts = flow.stream.units[index], []
        for columns in flow.columns(index):
            text = Source()
            for step in unit.steps:
                part = self._cut(step, step.region.bounds).cut(self.network, step, flow.stream.axis, rows)
                if columns is not None:
                    part = part.cut(self.network, step, flow.stream.axis + 1, columns)
                with text.block() if len(unit.steps) > 1 else nullcontext():
                    self._site(text, stage, step, part)
            texts.append(text.lines)
        c.add(texts[0] if len(texts) == 1 else roll(self.unit, texts, "chunk"))

    def _cut(self, step: Step, region: Bounds) -> Part:
        """The step's part of the tile at hand."""
        part = Part(tuple(region), step.share.bounds if step.share else None)
        for axis, interval in self.parts.get(step.layer, ()):
            part = part.cut(self.network, step, axis, interval)
        return part

    def _site(self, c: Source, stage: int, step: Step, part: Part) -> None:
        """Writes the step once it is known which part of the output it computes."""
        if part.is_empty:
            return
        layer = self.network.by_name[step.layer]
        whole = Region.whole(self.network.tensors[layer.output].shape)
        for axis in self.plan.views[layer.output].tiled:
            first = part.region[axis][0]
            assert isinstance(first, int), step
            self.origins[self.plan.views[layer.output].buffer, axis - len(whole.bounds)] = first
        site = self._made_site(stage, step, part, is_whole=part.region == whole.bounds)
        for name in layer.inputs:
            if name in self.pulled:
                self._pull(c, name, layer, part.region)
        if part.share is None:
            write_step(site, c)
        else:
            write_step(replace(site, share=part.share, sums=self._sums(step.layer)), c, ADDERS)

    def _made_site(self, stage: int, step: Step, part: Part, is_whole: bool) -> Call:
        layer = self.network.by_name[step.layer]
        shape = self.network.tensors[layer.output].shape
        most = map(min, step.region.shape, shape)
        plane = self.buffers.get(f"{step.layer}:scratch")
        return Call(
            facts=self._facts_of(layer),
            most=tuple(map(_most, part.region, most)),
            bounds=tuple(map(_known, part.region)),
            ranges=_ranges(part),
            sweep=step.sweep,
            inputs=tuple(self.place(name) for name in layer.inputs),
            output=self.place(layer.output),
            plane=plane.size if plane else 0,
            also=frozenset(self.unit.kernels),
            dynamic=None,
            module=self.unit,
            region=part.region,
            hole=self._hole(stage),
            plane_at=f"({self.memories[plane.memory]} + {plane.offset})" if plane else None,
        )

    def _facts_of(self, layer: Layer) -> LayerFacts:
        if layer.name not in self.facts:
            self.facts[layer.name] = LayerFacts(self.network, layer, self.unit.target, self.unit.options)
        return self.facts[layer.name]

    def _pull(self, c: Source, name: str, layer: Layer, region: Bounds) -> None:
        """Asks the caller for the rows that the step reads and that have not come yet."""
        place, parameter = self.place(name), self.parameters.inputs[name]
        axis = (self.plan.views[name].window or (0, 1))[0]
        last = last_row_read(self.unit, self.network, layer, name, region[axis][1])
        row = f"next_{parameter}"
        with c.block(f"for (; {row} < {last}; {row}++)"):
            at = place.offset([row if i == axis else 0 for i in range(len(place.strides))])
            c.line(f"{parameter}({parameter}_context, {row}, {place.pointer} + {at});")

    def _hole(self, stage: int) -> tuple[str, int] | None:
        """The largest piece of any arena that no buffer holds during the stage."""
        memory, offset, room = self.plan.hole(stage)
        return (f"({self.memories[memory]} + {offset})", room) if room > 0 else None


def write_step(call: Call, c: Source, kernels: Mapping[type, Sequence[Emitter | Kernel]] = EMITTERS) -> None:
    """Asks the operator's kernels, fastest first, until one takes the step."""
    for kernel in kernels[type(call.op)]:
        if not isinstance(kernel, Kernel):
            if kernel(call, c):
                return
            continue
        for offer in kernel.offered(call):
            if (room := _room(call, kernel, offer)) is not None:
                kernel.write(replace(call, room=room or None), offer, c)
                return
    kinds = ", ".join(f"{p.tensor.dtype.value}" for p in call.inputs)
    raise Unsupported(
        f"layer '{call.layer.name}': no C for {type(call.op).__name__} of {kinds} -> {call.result.dtype.value}"
    )


def _room(call: Call, kernel: Kernel, offer: Offer) -> str | None:
    """C of the scratch in an arena; nothing where it lies on the stack, or there is none; None without room."""
    if offer.scratch == 0:
        return ""
    return call.free(offer.scratch) or ("" if offer.scratch <= kernel.stack else None)


def _leaves(
    network: Network, tiles: Tiles, around: Mapping[str, Parts]
) -> Iterator[tuple[Mapping[str, Parts], tuple[Step | Stream, ...]]]:
    """The innermost tiles, one after the other: what every layer is cut to, and what runs."""
    for parts in tile_parts(Tiling(network, tiles), around):
        inner = tiles.body[0]
        if isinstance(inner, Tiles):
            yield from _leaves(network, inner, parts)
        else:
            yield parts, tuple(item for item in tiles.body if not isinstance(item, Tiles))


def _known(bounds: tuple[Expr, Expr]) -> Interval | None:
    first, last = bounds
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None


def _ranges(part: Part) -> tuple[ChannelRange, ...]:
    """The channels of the part, where they are known."""
    channels = _known(part.region[-1]) if part.region else None
    if channels is None:
        return ()
    if part.share is None:
        return (ChannelRange(channels),)
    summed = _known(part.share[-1])
    return (ChannelRange(channels, summed),) if summed else ()


def _most(bounds: tuple[Expr, Expr], most: int) -> int:
    """Indices along an axis, at most."""
    first, last = bounds
    return min(most, last - first) if isinstance(first, int) and isinstance(last, int) else most


def _clipped_bounds(c: Source, step: Step, counters: tuple[Expr, ...], axis: int, size: int) -> tuple[Expr, Expr]:
    """The step's interval along an axis; where loops move it, two local variables."""
    low, high = step.region.bounds[axis]
    moves = [(i, move[axis]) for i, move in zip(counters, step.moves, strict=True) if move[axis] and i != 0]
    if not moves:
        return max(low, 0), min(high, size)
    shift = [times(i, d) for i, d in moves]
    for bound, value in (("a", low), ("b", high)):
        c.line(f"const int32_t {bound}{axis} = ew_between(0, {plus(*shift, value)}, {size});")
    return f"a{axis}", f"b{axis}"


def _dense(tensor: Tensor, pointer: str) -> CTensor:
    return CTensor(tensor, dense_strides(tensor), memory="caller", pointer=pointer)


def _copy(c: Source, source: CTensor, target: CTensor) -> None:
    if source.is_dense and target.is_dense:
        c.line(f"memcpy({target.pointer}, {source.pointer}, {target.tensor.bytes});")
        return
    with elements(c, [(0, n) for n in target.tensor.shape], [source, target]) as ((a, b), _):
        c.line(f"{target.pointer}[{b}] = {source.pointer}[{a}];")


def schedule_file(unit: Module, schedule: _Schedule, body: Source) -> str:
    """NAME.c: tables of the layers, the run function, and the arenas unless the caller brings them."""
    prefix = unit.prefix
    c = Source()
    c.line(f"/* {prefix}: the schedule. Which layer runs when, where its tensors lie. */")
    c.line(f'#include "{prefix}.h"')
    c.line(f'#include "{prefix}_kernels.h"')
    c.line(f'#include "{prefix}_weights.h"')
    c.line()
    tables = in_use(unit.tables, body.lines)
    c.lines += [*tables, ""] if tables else []
    c.lines += body.lines
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
    names += schedule.parameters.outputs.values()
    with c.block(f"{schedule.returns} {prefix}_run({schedule.signature(arenas=False)})"):
        call = f"{prefix}_run_in({', '.join([*arenas.values(), *names])});"
        c.line(f"return {call}" if schedule.pulled else call)
    for way, group in (("input", schedule.public.inputs), ("output", schedule.public.outputs)):
        for name, parameter in group.items():
            if not lies_densely(schedule.plan, schedule.network, name):
                continue
            place = schedule.place(name)
            c.line()
            with c.block(f"{place.ctype} *{prefix}_{way}_{parameter}(void)"):
                c.line(f"return ({place.ctype} *)(void *)({arenas[place.memory or '']} + {place.first});")
    c.line("#endif")
    for name, parameter in schedule.public.outputs.items():
        if name in schedule.network.constants:
            c.line()
            with c.block(f"const {schedule.place(name).ctype} *{prefix}_output_{parameter}(void)"):
                c.line(f"return {schedule.stored_output(name)};")
    return renamed(c.text(), prefix)
