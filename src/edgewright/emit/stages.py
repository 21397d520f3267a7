"""Stages in C: loops, rows on demand, and calls of kernels, as the lowered stage has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..errors import Unsupported
from ..kernels.call import Call
from ..kernels.catalogue import ADDERS, EMITTERS, FINISHERS, Emitter
from ..kernels.kernel import Kernel, Offer
from ..kernels.module import Module
from ..kernels.printing.index import printed
from ..kernels.printing.nest import elements
from ..kernels.printing.source import Expr, Source, times
from ..kernels.site import ChannelRange, LayerFacts
from ..network import Interval, Layer
from ..program import Plan, Stage, sums_bytes
from ..program.index import AffineExpr, Bounds, IndexExpr, TableExpr, scaled, variables
from ..program.lower import For, KernelCall, Node, OnDemand, lower, settled, standings
from ..program.selection import CallKind
from .pulling import Pulling
from .storage import Storage
from .streaming import write_on_demand

KERNELS: Mapping[CallKind, Mapping[type, Sequence[Emitter | Kernel]]] = {
    CallKind.COMPUTE: EMITTERS,
    CallKind.ADD: ADDERS,
    CallKind.FINISH: FINISHERS,
}
Loops = Mapping[str, int]  # how often the loops around run, by their variables


@dataclass
class StageWriter:
    """Prints the stages of a plan, one after the other."""

    module: Module
    plan: Plan
    storage: Storage
    pulling: Pulling
    facts: dict[str, LayerFacts] = field(default_factory=dict)

    def write(self, c: Source, index: int, stage: Stage) -> None:
        """The stage, between the beginning of running sums and their end as output."""
        for name in stage.summing:
            self._clear_sums(c, name)
        self._nodes(c, index, lower(self.plan, stage), {})

    def _clear_sums(self, c: Source, name: str) -> None:
        """Running sums begin at zero. Those in an output that lies among others are cleared one by one."""
        layer = self.storage.network.by_name[name]
        size, place = sums_bytes(self.storage.network, layer), self.storage.tensor(layer.output)
        if size or place.is_dense:
            c.line(f"memset({self.storage.sums(name)}, 0, {size or place.tensor.bytes});")
            return
        with elements(c, [(0, n) for n in place.tensor.shape], [place]) as ((at,), _):
            c.line(f"{place.pointer}[{at}] = 0.0f;")

    def _nodes(self, c: Source, stage: int, nodes: Sequence[Node], loops: Loops) -> None:
        for node in nodes:
            match node:
                case For(_, 1, body):
                    self._nodes(c, stage, body, loops)
                case For(name, count, body):
                    with c.block(f"for (int32_t {name} = 0; {name} < {count}; {name}++)"):
                        self._nodes(c, stage, body, {**loops, name: count})
                case OnDemand(flow, chains):
                    with write_on_demand(c, self.module, flow) as turns:
                        for chain, _ in zip(chains, turns, strict=True):
                            self._nodes(c, stage, chain.body, loops)
                case KernelCall():
                    self._call(c, stage, node, loops)

    def _call(self, c: Source, stage: int, node: KernelCall, loops: Loops) -> None:
        layer = self.storage.network.by_name[node.layer]
        with self._scope(c, node) as names:
            call = self._made(stage, layer, node, loops, names)
            for name in layer.inputs:
                self.pulling.write(c, layer, name, call.region)
            write_step(call, c, KERNELS[node.kind])

    @contextmanager
    def _scope(self, c: Source, node: KernelCall) -> Iterator[Mapping[IndexExpr, Expr]]:
        """A block with a variable for each bound that takes more than a sum; entered only where something is left.

        Bounds of channels have none: kernels that know their channels before do not ask for both of them.
        """
        bounds = (*node.region, *(node.partial or ()))
        lines = (*node.region[:-1], *(node.partial or ())[:-1])
        ends = dict.fromkeys((*(end for pair in lines for end in pair), *(end for _, _, end in node.origins)))
        hard = [end for end in ends if isinstance(end, TableExpr) or (isinstance(end, AffineExpr) and end.within)]
        names: dict[IndexExpr, Expr] = {end: f"at{number}" for number, end in enumerate(hard)}
        if not names and not node.may_be_empty:
            yield names
            return
        with c.block():
            for end, name in names.items():
                c.line(f"const int32_t {name} = {printed(self.module, end)};")
            if not node.may_be_empty:
                yield names
                return
            open_ = [pair for pair in bounds if not all(isinstance(end, int) for end in pair)]
            tests = [f"{self._end(low, names)} < {self._end(high, names)}" for low, high in open_]
            with c.block(f"if ({' && '.join(tests)})"):
                yield names

    def _end(self, end: IndexExpr, names: Mapping[IndexExpr, Expr]) -> Expr:
        return names[end] if end in names else printed(self.module, end)

    def _box(self, bounds: Bounds, names: Mapping[IndexExpr, Expr]) -> tuple[tuple[Expr, Expr], ...]:
        return tuple((self._end(low, names), self._end(high, names)) for low, high in bounds)

    def _made(
        self, stage: int, layer: Layer, node: KernelCall, loops: Loops, names: Mapping[IndexExpr, Expr]
    ) -> Call:
        shifts: dict[str, list[Expr]] = {}
        for tensor, axis, begin in node.origins:
            stride = self.plan.views[tensor].strides[axis]
            shifts.setdefault(tensor, []).append(
                times(names[begin], -stride) if begin in names else printed(self.module, scaled(begin, -stride))
            )
        ranges, which = channel_ranges(node, loops)
        plane = self.storage.buffers.get(f"{layer.name}:scratch")
        memory, offset, room = self.plan.hole(stage)
        return Call(
            facts=self._facts_of(layer),
            most=node.most,
            bounds=tuple(map(_known, node.region)),
            ranges=ranges,
            sweep=node.sweep,
            inputs=tuple(self.storage.tensor(name, shifts.get(name, ())) for name in layer.inputs),
            output=self.storage.tensor(layer.output, shifts.get(layer.output, ())),
            plane=plane.size if plane else 0,
            also=frozenset(self.module.kernels),
            dynamic=None,
            module=self.module,
            region=self._box(node.region, names),
            which=printed(self.module, which),
            share=None if node.partial is None else self._box(node.partial, names),
            sums=None if node.kind is CallKind.COMPUTE else self.storage.sums(layer.name),
            hole=(f"({self.storage.at(memory, offset)})", room) if room > 0 else None,
            plane_at=f"({self.storage.at(plane.memory, plane.offset)})" if plane else None,
        )

    def _facts_of(self, layer: Layer) -> LayerFacts:
        if layer.name not in self.facts:
            network, target, options = self.storage.network, self.module.target, self.module.options
            self.facts[layer.name] = LayerFacts(network, layer, target, options)
        return self.facts[layer.name]


def _known(bounds: tuple[IndexExpr, IndexExpr]) -> Interval | None:
    low, high = bounds
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def channel_ranges(node: KernelCall, loops: Loops) -> tuple[tuple[ChannelRange, ...], IndexExpr]:
    """All ranges of channels that a call computes as loops go round, and which of them is at hand.

    None where that is not known before.
    """
    if not node.region:
        return (), 0
    ends: Bounds = (node.region[-1], *(node.partial[-1:] if node.partial else ()))
    names = sorted({name for pair in ends for end in pair for name in variables(end)})
    if any(name not in loops for name in names):
        return (), 0
    found = [settled(ends, at).bounds for at in standings(ends, loops)]
    full = [bounds for bounds in found if all(low < high for low, high in bounds)]
    ranges = tuple(ChannelRange(*(bounds if bounds in full else full[0])) for bounds in found)
    if len(set(ranges)) == 1:
        return ranges[:1], 0
    terms, step = [], 1
    for name in reversed(names):
        terms.append((name, step))
        step *= loops[name]
    return ranges, AffineExpr(0, tuple(reversed(terms)))


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
