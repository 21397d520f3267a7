"""Stages in C: loops, rows on demand and calls of kernels, as the lowered stage and the selections have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..kernels.call import CCall
from ..kernels.catalogue import BY_NAME
from ..kernels.module import Module
from ..kernels.printing.nest import elements, printed
from ..kernels.printing.source import CWriter, Expr, times
from ..kernels.sites import Loops, channel_ranges
from ..program import Plan, RowTrace, Stage, sums_bytes
from ..program.index import AffineExpr, Bounds, IndexExpr, TableExpr, scaled, tabled
from ..program.lower import CHUNK, For, KernelCall, Node, OnDemand, is_one_turn, lower
from ..program.selection import CallKind, Selection
from .lanes import lane_loop
from .storage import ArenaPointers
from .streaming import RowOutlet, RowPuller, write_on_demand


@dataclass(frozen=True)
class StageWriter:
    """Prints the stages of a plan."""

    module: Module
    storage: ArenaPointers
    pulling: RowPuller
    rows: frozenset[int] = frozenset()  # stages that can be preempted between rows
    outlet: RowOutlet | None = None  # of the last stage

    @property
    def plan(self) -> Plan:
        return self.storage.plan

    def write(self, c: CWriter, index: int, stage: Stage) -> None:
        """The stage, between the beginning of running sums and their end as output."""
        for name in self.plan.program.partial(stage):
            self._clear_sums(c, name)
        row = f"EW_BETWEEN_ROWS({index});" if index in self.rows else ""
        self._nodes(c, lower(self.plan, stage), {}, index, row)

    def _outlet(self, trace: RowTrace) -> RowOutlet | None:
        """Where the rows of this stream leave, if they do."""
        sinks = {trace.network.by_name[name].output for name in trace.fused.sinks}
        return self.outlet if self.outlet is not None and self.outlet.tensor in sinks else None

    def _clear_sums(self, c: CWriter, name: str) -> None:
        """Running sums begin at zero. Those in an output that lies among others are cleared one by one."""
        layer = self.storage.network.by_name[name]
        size, place = sums_bytes(self.storage.network, layer), self.storage.tensor(layer.output)
        if size or place.is_dense:
            c.line(f"memset({self.storage.sums(name)}, 0, {size or place.tensor.bytes});")
            return
        with elements(c, [(0, n) for n in place.tensor.shape], [place]) as ((at,), _):
            c.line(f"{place.pointer}[{at}] = 0.0f;")

    def _nodes(self, c: CWriter, nodes: Sequence[Node], loops: Loops, stage: int, row: str = "") -> None:
        """The nodes, with `row` after each turn of an inner loop over tiles and after each row on demand."""
        for node in nodes:
            match node:
                case For(_, 1, body):
                    self._nodes(c, body, loops, stage, row)
                case For(name, count, body, lanes) if lanes > 1:
                    with lane_loop(c, name, count, lanes, self.plan.lanes):
                        self._nodes(c, body, {**loops, name: count}, stage)
                case For(name, count, body):
                    with c.block(f"for (int32_t {name} = 0; {name} < {count}; {name}++)"):
                        self._nodes(c, body, {**loops, name: count}, stage, row)
                        if row and is_one_turn(body):
                            c.line(row)
                case OnDemand(trace, bodies, band):
                    with write_on_demand(c, self.module, trace, band, self._outlet(trace)) as turns:
                        for body, _ in zip(bodies, turns, strict=True):
                            self._nodes(c, body, loops, stage)
                            if row:
                                c.line(row)
                case KernelCall():
                    self._call(c, node, loops, self.plan.selections[node.key(stage)])

    def _call(self, c: CWriter, node: KernelCall, loops: Loops, chosen: Selection) -> None:
        if self.module.arena:
            tiles = {name: count for name, count in loops.items() if name != CHUNK}
            node = replace(node, region=tuple((tabled(low, tiles), tabled(high, tiles)) for low, high in node.region))
        with self._scope(c, node) as names:
            call = self._made(node, loops, names, chosen)
            for name in call.layer.inputs:
                self.pulling.write(c, call.layer, name, call.region)
            BY_NAME[chosen.kernel].write(call, chosen.offer, c)

    @contextmanager
    def _scope(self, c: CWriter, node: KernelCall) -> Iterator[Mapping[IndexExpr, Expr]]:
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
            turns = self._turns(node.region)
            for end, name in names.items():
                c.line(f"const int32_t {name} = {turns.get(end, printed(self.module, end))};")
            if not node.may_be_empty:
                yield names
                return
            open_ = [pair for pair in bounds if not all(isinstance(end, int) for end in pair)]
            tests = [f"{self._end(low, names)} < {self._end(high, names)}" for low, high in open_]
            with c.block(f"if ({' && '.join(tests)})"):
                yield names

    def _turns(self, region: Bounds) -> Mapping[IndexExpr, Expr]:
        """C of ends of turns that follow each other, from one table of both."""
        found: dict[IndexExpr, Expr] = {}
        for low, high in region if self.module.arena else ():
            if isinstance(low, TableExpr) and isinstance(high, TableExpr) and low.variable == high.variable:
                for first, second in ((low, high), (high, low)):
                    if first.values[1:] == second.values[:-1]:
                        values, name = (*first.values, second.values[-1]), first.variable
                        found[first] = self.module.one_number(values, f"{name} + 0")
                        found[second] = self.module.one_number(values, f"{name} + 1")
                        break
        return found

    def _end(self, end: IndexExpr, names: Mapping[IndexExpr, Expr]) -> Expr:
        return names[end] if end in names else printed(self.module, end)

    def _box(self, bounds: Bounds, names: Mapping[IndexExpr, Expr]) -> tuple[tuple[Expr, Expr], ...]:
        return tuple((self._end(low, names), self._end(high, names)) for low, high in bounds)

    def _made(self, node: KernelCall, loops: Loops, names: Mapping[IndexExpr, Expr], chosen: Selection) -> CCall:
        """The call as its kernel prints it."""
        storage, site = self.storage, self.storage.sites.site(node, loops)
        shifts = self._shifts(node, names)
        return CCall.of(
            site,
            module=self.module,
            region=self._box(node.region, names),
            inputs=tuple(storage.tensor(name, shifts.get(name, ())) for name in site.layer.inputs),
            output=storage.tensor(site.layer.output, shifts.get(site.layer.output, ())),
            which=printed(self.module, channel_ranges(node, loops)[1]),
            partial=None if node.partial is None else self._box(node.partial, names),
            sums=None if node.kind is CallKind.COMPUTE else storage.sums(node.layer),
            arena_scratch=None if chosen.scratch is None else storage.buffer(self.plan.buffer_named[chosen.scratch]),
            plane_at=storage.plane(node.layer),
        )

    def _shifts(self, node: KernelCall, names: Mapping[IndexExpr, Expr]) -> Mapping[str, Sequence[Expr]]:
        """By how many bytes the tiles that tensors are kept in lie away from where the whole would."""
        found: dict[str, list[Expr]] = {}
        for tensor, axis, begin in node.origins:
            stride = self.plan.views[tensor].strides[axis]
            shift = times(names[begin], -stride) if begin in names else printed(self.module, scaled(begin, -stride))
            found.setdefault(tensor, []).append(shift)
        return found
