"""A lower bound for every step: the least memory in which it can possibly run, as a minimum cut.

Choosing an order, and drawing conclusions from several bounds, are left to `beam` and `probe`.
"""

from collections.abc import Sequence

import numpy as np

from ...cpsat import EXTRA, has_solver
from ...lazy import load_package
from .lattice import Lattice, bits, indices, mask_of


class MinCuts:
    """The flow network of a lattice, solved for one step at a time.

    The source side of a cut is a set of executed steps. An executed step pulls its predecessors along (unlimited
    arcs); a store is one arc of its size, cut when a writer is executed while another step that touches it is not.
    Savings are granted in full, which keeps the bound valid.
    """

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        count, stores = lattice.count, len(lattice.size)
        self.source, self.sink = count + 2 * stores, count + 2 * stores + 1
        self.unlimited = sum(lattice.size) + 1
        tail, head, capacity = [], [], []

        def arc(a: int, b: int, limit: int) -> None:
            tail.append(a)
            head.append(b)
            capacity.append(limit)

        self.store_arc = []
        for x, size in enumerate(lattice.size):
            started, needed = count + 2 * x, count + 2 * x + 1
            if lattice.is_input[x]:
                arc(self.source, started, self.unlimited)
            for step in bits(lattice.writers[x]):
                arc(step, started, self.unlimited)
            self.store_arc.append(len(tail))
            arc(started, needed, size)
            if lattice.is_output[x]:
                arc(needed, self.sink, self.unlimited)
            for step in bits(lattice.touch[x]):
                arc(needed, step, self.unlimited)
        self._stores = (np.array(tail, np.int64), np.array(head, np.int64), np.array(capacity, np.int64))
        self.follow(lattice.pred)

    def follow(self, before: Sequence[int]) -> None:
        """From now on executed sets must be closed under these masks of predecessors."""
        pairs = [(step, p) for step, mask in enumerate(before) for p in bits(mask)]
        tail, head, capacity = self._stores
        self._tail = np.concatenate([tail, np.array([a for a, _ in pairs], np.int64)])
        self._head = np.concatenate([head, np.array([b for _, b in pairs], np.int64)])
        self._capacity = np.concatenate([capacity, np.full(len(pairs), self.unlimited)])

    def least(self, step: int, ran: int, waits: int) -> tuple[int, int]:
        """(bytes, executed set): the least the step can need, with `ran` executed and `waits` not, and a witness.

        The witness is the executed set of the cut; whether it can be reached is not asked. Without OR-Tools, the least
        is what the step itself holds.
        """
        lattice, move = self.lattice, self.lattice.moves[step]
        capacity = self._capacity.copy()
        need = move.always - move.born
        for x in lattice.touched[step]:
            if lattice.writers[x] >> step & 1 and not lattice.is_input[x]:
                need += lattice.size[x]  # alive whatever was executed: started here at the latest
                capacity[self.store_arc[x]] = 0
        need -= sum(min(size, sum(part for _, part in parts)) for size, parts in move.shares)

        if not has_solver():
            return need, ran
        max_flow = load_package("ortools.graph.python.max_flow", EXTRA)
        flow = max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(self._tail, self._head, capacity)
        for steps, from_source in ((ran, True), (waits | 1 << step, False)):
            ends = indices(steps)
            if len(ends):
                hub = np.full(len(ends), self.source if from_source else self.sink)
                tail, head = (hub, ends) if from_source else (ends, hub)
                flow.add_arcs_with_capacity(tail, head, np.full(len(ends), self.unlimited))
        status = flow.solve(self.source, self.sink)
        assert status == flow.OPTIMAL, status
        side = np.array(flow.get_source_side_min_cut(), np.int64)
        return need + int(flow.optimal_flow()), mask_of(side[side < lattice.count], lattice.count)
