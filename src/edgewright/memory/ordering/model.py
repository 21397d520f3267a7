"""The last resort: the order as an integer programme, for segments that nothing else solved.

S (4.10) to (4.23) state it with big-M rows; here CP-SAT gets positions and lifetimes directly.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...cpsat import cp_model, has_solver, repeatable_solver, solve
from .problem import OrderProblem

MOST_STEPS = 48  # larger segments are not proven in reasonable time


def improve(
    problem: OrderProblem, start: Sequence[int], bound: int, effort: float
) -> tuple[tuple[int, ...] | None, int]:
    """A better order than `start` or None, and a proven bound, within `effort` deterministic seconds."""
    if not has_solver():
        return None, bound
    count = len(problem.steps)
    position = {step: at for at, step in enumerate(start)}

    # Variables: where each step runs; for two steps, which comes first; the peak.
    model = cp_model.CpModel()
    at = [model.new_int_var(0, count - 1, name) for name in problem.steps]
    earlier = [[model.new_bool_var("") for _ in range(count)] for _ in range(count)]  # [a][b]: a before b
    most = sum(store.size for store in problem.stores) + sum(problem.scratch)
    peak = model.new_int_var(bound, most, "peak")

    # Constraints: an order, which keeps to `before`.
    model.add_all_different(at)
    for a in range(count):
        model.add(earlier[a][a] == 0)
        for b in range(a):
            model.add(earlier[a][b] + earlier[b][a] == 1)
            model.add(at[a] < at[b]).only_enforce_if(earlier[a][b])
            model.add(at[b] < at[a]).only_enforce_if(earlier[b][a])
        model.add(sum(earlier[b][a] for b in range(count)) == at[a])
        for p in problem.before[a]:
            model.add(earlier[p][a] == 1)

    # Stores live at each step, and those that die there, fit below the peak.
    for s in range(count):
        use: list[cp_model.LinearExprT] = [problem.scratch[s]]
        dies: dict[int, cp_model.LiteralT] = {}
        for x, store in enumerate(problem.stores):
            touch = sorted(set(store.writers + store.readers))
            began = (
                True if store.is_input or s in store.writers else _any(model, [earlier[w][s] for w in store.writers])
            )
            needed = True if store.is_output or s in touch else _any(model, [earlier[s][t] for t in touch])
            alive = _both(model, began, needed)
            use.append(store.size * alive)
            if s in touch and not store.is_output:
                dies[x] = ~_any(model, [earlier[s][t] for t in touch if t != s])
        gains: dict[int, list[cp_model.LinearExprT]] = {}
        for (step, x, y), saved in problem.savings.items():
            if step == s and problem.stores[y].writers == (s,) and x in dies:
                gains.setdefault(y, []).append(saved * dies[x])
        for y, parts in gains.items():
            shared = model.new_int_var(0, problem.stores[y].size, "")
            model.add(shared <= sum(parts))
            use.append(-1 * shared)
        model.add(sum(use) <= peak)

    # Objective, with the known order as a hint.
    model.minimize(peak)
    for step, variable in enumerate(at):
        model.add_hint(variable, position[step])
    solver = repeatable_solver(effort)
    status = solve(solver, model)
    assert status != cp_model.INFEASIBLE
    proven = max(bound, round(solver.best_objective_bound))
    if status == cp_model.UNKNOWN:
        return None, proven
    order = tuple(sorted(range(count), key=lambda step: solver.value(at[step])))
    return order, proven


def _any(model: cp_model.CpModel, literals: list[cp_model.IntVar]) -> cp_model.IntVar:
    """A literal that is true exactly if one of them is."""
    result = model.new_bool_var("")
    model.add_max_equality(result, literals or [0])
    return result


def _both(model: cp_model.CpModel, a: cp_model.IntVar | bool, b: cp_model.IntVar | bool) -> cp_model.IntVar | int:
    """A literal that is true if both are."""
    if a is True and b is True:
        return 1
    if a is True:
        return b
    if b is True:
        return a
    result = model.new_bool_var("")
    model.add_bool_or([~a, ~b, result])
    return result
