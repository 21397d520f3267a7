"""Derives pairs of steps whose order is the same in every order within a budget.

`beam` decides whether such an order exists; here the budget is refuted, or the graph becomes narrower.
"""

from collections.abc import Sequence

from ...network.network import execution_order
from .cuts import MinCuts
from .lattice import Lattice, bits


class Precedence:
    """All pairs "a before b" known so far, closed under transitivity, as masks in both directions."""

    def __init__(self, lattice: Lattice) -> None:
        self.count, self.full = lattice.count, lattice.full
        self.direct = list(lattice.pred)  # generates all other pairs
        self.before = [0] * self.count
        self.after = [0] * self.count
        order = execution_order([tuple(bits(mask)) for mask in lattice.pred])
        for step in order:
            for p in bits(lattice.pred[step]):
                self.before[step] |= self.before[p] | 1 << p
        for step in reversed(order):
            for s in bits(lattice.succ[step]):
                self.after[step] |= self.after[s] | 1 << s

    def copy(self) -> "Precedence":
        """An independent copy."""
        twin = object.__new__(Precedence)
        twin.count, twin.full = self.count, self.full
        twin.direct, twin.before, twin.after = list(self.direct), list(self.before), list(self.after)
        return twin

    def open_to(self, step: int) -> int:
        """The steps that may still run before or after this one."""
        return self.full & ~(self.before[step] | self.after[step] | 1 << step)

    def add(self, first: int, second: int) -> bool:
        """Adds the pair and its consequences; False if it contradicts known pairs."""
        if self.after[second] >> first & 1:
            return False
        if not self.before[second] >> first & 1:
            self.direct[second] |= 1 << first
            earlier = self.before[first] | 1 << first
            later = self.after[second] | 1 << second
            for step in bits(later):
                self.before[step] |= earlier
            for step in bits(earlier):
                self.after[step] |= later
        return True


def step_bound(cuts: MinCuts, known: Precedence, needs: Sequence[int], flows: int) -> int:
    """The largest minimum cut over steps, a lower bound for every order.

    `needs` are the steps' bytes in some order. They cap the cuts, so most cuts need not be computed; if there are more
    steps than `flows`, every second or third step is used, and so on.
    """
    bound = 0
    for step in sorted(range(known.count), key=lambda s: -needs[s])[:: -(-known.count // flows)]:
        if needs[step] <= bound:
            break
        bound = max(bound, cuts.least(step, known.before[step], known.after[step])[0])
    return bound


def probe(cuts: MinCuts, known: Precedence, budget: int, flows: int) -> tuple[bool, int]:
    """(False, ...) if no order keeps within the budget; otherwise `known` holds the pairs that every such order obeys.

    If step t cannot run within the budget after i, then t comes before i; if it cannot before i, i comes before t. Each
    new pair tightens the other cuts, so this repeats until nothing changes. One cut within the budget is a witness for
    many pairs at once, which leaves few cuts to compute. At most `flows` cuts are computed; the second value is their
    number.
    """
    used = 0
    changed = True
    while changed:
        changed = False
        cuts.follow(known.direct)
        for t in range(known.count):
            if used >= flows:
                return True, used
            used += 1
            need, executed = cuts.least(t, known.before[t], known.after[t])
            if need > budget:
                return False, used
            can_before, can_after = executed, ~executed  # steps seen on that side of t within the budget
            while (question := _next_question(known, t, can_before, can_after)) and used < flows:
                used += 1
                i, ran_first = question
                if ran_first:
                    ran, waits, implied = known.before[t] | known.before[i] | 1 << i, known.after[t], (t, i)
                else:
                    ran, waits, implied = known.before[t], known.after[t] | known.after[i] | 1 << i, (i, t)
                need, executed = cuts.least(t, ran, waits)
                if need <= budget:
                    can_before |= executed
                    can_after |= ~executed
                elif known.add(*implied):
                    changed = True
                else:
                    return False, used
    return True, used


def _next_question(known: Precedence, t: int, can_before: int, can_after: int) -> tuple[int, bool] | None:
    """(i, True) if no witness runs i before t; (i, False) if none runs it after; None if all pairs have both."""
    unsettled = known.open_to(t)
    for missing, ran_first in ((unsettled & ~can_before, True), (unsettled & ~can_after, False)):
        if missing:
            return (missing & -missing).bit_length() - 1, ran_first
    return None
