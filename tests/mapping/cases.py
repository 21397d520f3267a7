"""Random mapping problems, every pipeline of a small one, and the judge of mappings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import inf

from hypothesis import strategies as st

from edgewright.mapping.board_mapping import BoardMapping, MappedStage, stage_of
from edgewright.mapping.problem import CorePool, Execution, JoiningTensor, MappingProblem, MoveCost


def chain(times: Sequence[float], cores: int = 2, lanes: Sequence[int] = (1,)) -> MappingProblem:
    """A chain of layers on equal cores; lanes share perfectly."""
    tensors = [JoiningTensor("x", 8, None, (0,))]
    for i in range(len(times)):
        is_last = i == len(times) - 1
        tensors.append(JoiningTensor(f"t{i}", 8, i, () if is_last else (i + 1,), is_last))
    executions = tuple(Execution("cpu", n, "native", tuple(t / n for t in times)) for n in lanes)
    names = tuple(f"l{i}" for i in range(len(times)))
    return MappingProblem("chain", names, tuple(tensors), (CorePool("cpu", cores),), executions)


@st.composite
def mapping_problems(draw: st.DrawFn, most_layers: int = 8, most_cores: int = 3) -> MappingProblem:
    """DAGs on one or two kinds of cores and perhaps a GPU, with moves that cost, and layers that not all can run."""
    count = draw(st.integers(1, most_layers))
    before = [sorted(draw(st.sets(st.integers(0, i - 1), max_size=3))) if i else [] for i in range(count)]
    sizes = [draw(st.integers(1, 50)) for _ in range(count)]
    tensors = [JoiningTensor("x", 10, None, tuple(i for i in range(count) if not before[i]))]
    for i in range(count):
        readers = tuple(j for j in range(count) if i in before[j])
        tensors.append(JoiningTensor(f"t{i}", sizes[i], i, readers, not readers))
    move = st.sampled_from([MoveCost(), MoveCost(0.5, 0.0), MoveCost(0.25, 0.125)])
    slowdown = st.sampled_from([(1.0,), (1.0, 1.5), (1.0, 1.0, 1.25)])
    pools = [CorePool("a", draw(st.integers(1, most_cores)), False, draw(slowdown), draw(move), MoveCost())]
    if draw(st.booleans()):
        pools.append(CorePool("b", draw(st.integers(1, 2)), False, (1.0,), draw(move), MoveCost()))
    with_gpu = draw(st.booleans())
    time = st.integers(0, 64).map(lambda n: n / 4)
    executions = []
    for pool in pools:
        for lanes in range(1, pool.cores + 1):
            if lanes == 1 or draw(st.booleans()):
                times = tuple(draw(st.lists(time, min_size=count, max_size=count)))
                executions.append(Execution(pool.name, lanes, "native", times))
    if with_gpu:
        pools.append(CorePool("gpu", 1, True, (1.0,), draw(move), draw(move)))
        maybe = st.one_of(time, st.just(float("inf")))
        times = tuple(draw(st.lists(maybe, min_size=count, max_size=count)))
        executions += [Execution("gpu", 1, "torch", times, pool.name) for pool in pools if not pool.is_gpu]
    names = tuple(f"l{i}" for i in range(count))
    return MappingProblem("random", names, tuple(tensors), tuple(pools), tuple(executions))


def all_pipelines(problem: MappingProblem) -> Iterator[BoardMapping]:
    """Every pipeline of a small problem, with the times of the cores that it keeps busy."""
    cores = sum(pool.cores for pool in problem.pools)
    for count in range(1, min(cores, len(problem.layers)) + 1):
        for places in product(range(count), repeat=len(problem.layers)):
            if len(set(places)) < count or any(places[a] > places[b] for a, b, _ in problem.edges):
                continue
            groups = [[i for i, place in enumerate(places) if place == k] for k in range(count)]
            yield from _executed(problem, groups)


def _executed(problem: MappingProblem, groups: Sequence[Sequence[int]]) -> Iterator[BoardMapping]:
    ways = [(e, r) for e in range(len(problem.executions)) for r in range(1, 4)]
    for chosen in product(ways, repeat=len(groups)):
        busy: dict[str, int] = {}
        for e, r in chosen:
            for pool, used in problem.executions[e].cores(r).items():
                busy[pool] = busy.get(pool, 0) + used
        if any(used > problem.pool[pool].cores for pool, used in busy.items()):
            continue
        slowed = problem.slowed(busy)
        stages: list[MappedStage] = [
            stage_of(slowed, [group], slowed.executions[e], r) for group, (e, r) in zip(groups, chosen, strict=True)
        ]
        yield BoardMapping(problem, tuple(stages), "tried", False)


def faults(mapping: BoardMapping) -> list[str]:
    """What is wrong with a mapping, in words: shares no code with those who make them."""
    problem, found = mapping.problem, []
    counts = Counter(layer for stage in mapping.stages for layer in stage.layers)
    for index, layer in enumerate(problem.layers):
        if counts[index] != 1:
            found.append(f"layer '{layer}' is mapped {counts[index]} times")
    used: Counter[str] = Counter()
    for number, stage in enumerate(mapping.stages, 1):
        if not all(stage.parts) or not stage.parts:
            found.append(f"stage {number} has no layers")
        if sum(stage.seconds) == inf:
            found.append(f"stage {number} has layers that '{stage.execution.pool}' cannot run")
        used[stage.execution.pool] += stage.execution.lanes * stage.replicas
        if stage.execution.driver:
            used[stage.execution.driver] += stage.replicas
    for pool in problem.pools:
        if used[pool.name] > pool.cores:
            found.append(f"{used[pool.name]} cores of '{pool.name}' are used; there are {pool.cores}")
    return found or list(_waits(mapping))


def _waits(mapping: BoardMapping) -> Iterator[str]:
    """Parts that wait for each other in a circle: for data, and for their turn."""
    place = {layer: (i, j) for i, s in enumerate(mapping.stages) for j, part in enumerate(s.parts) for layer in part}
    before: dict[tuple[int, int], set[tuple[int, int]]] = {part: set() for part in place.values()}
    for stage, part in before:
        before[stage, part] |= {(stage, part - 1)} if part else set()
    for source, target, _ in mapping.problem.edges:
        if place[source] != place[target]:
            before[place[target]].add(place[source])
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle = " -> ".join(f"part {part + 1} of stage {stage + 1}" for stage, part in error.args[1])
        yield f"parts wait for each other: {circle}"
