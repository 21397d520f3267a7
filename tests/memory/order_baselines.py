"""Orders that others use, for comparison: depth first and greedy. Neither proves anything; their bound is 0."""

from edgewright.memory.ordering.lattice import Lattice
from edgewright.memory.ordering.problem import Order, OrderProblem, peak


def order_depth_first(problem: OrderProblem) -> Order:
    """Follows one path to where it must wait before it turns to the next (S 4.3.1, "depth-first scheduling")."""
    waiting = [len(set(before)) for before in problem.before]
    after: list[list[int]] = [[] for _ in problem.steps]
    for step, before in enumerate(problem.before):
        for p in set(before):
            after[p].append(step)
    stack = [step for step in reversed(range(len(waiting))) if not waiting[step]]
    steps = []
    while stack:
        step = stack.pop()
        steps.append(step)
        for s in after[step]:
            waiting[s] -= 1
        stack += [s for s in reversed(after[step]) if not waiting[s]]
    return _unproven(problem, steps, "depth first")


def ready(lattice: Lattice, done: int) -> list[int]:
    """The steps not in `done` of which all predecessors are."""
    return [s for s in range(lattice.count) if not done >> s & 1 and not lattice.pred[s] & ~done]


def order_greedy(problem: OrderProblem) -> Order:
    """Always the ready step that leaves the least held, then the one that needs the least."""
    lattice = Lattice(problem)
    done, held, steps = 0, lattice.held(0), []
    while able := ready(lattice, done):
        held, _, step = min((*lattice.run(done, held, s)[::-1], s) for s in able)
        done |= 1 << step
        steps.append(step)
    return _unproven(problem, steps, "greedy")


def _unproven(problem: OrderProblem, steps: list[int], method: str) -> Order:
    return Order(tuple(steps), peak(problem, steps), bound=0, method=method)
