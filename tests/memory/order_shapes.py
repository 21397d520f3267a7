"""Made-up problems in the shapes that networks have, for tests, benchmarks and trying things out.

Real networks are turned into problems elsewhere.
"""

import random
from collections.abc import Callable, Sequence

import networkx as nx

from edgewright.memory.ordering.problem import OrderProblem, Store

Sizes = Callable[[random.Random], int]


def equal_sizes(_: random.Random) -> int:
    """Every store of one size, as in a cell that keeps its resolution and width."""
    return 4096


def varied_sizes(rng: random.Random) -> int:
    """Sizes without a common unit, so that no two orders tie by accident."""
    return rng.randint(1_000, 60_000)


def from_edges(edges: Sequence[tuple[int, int]], sizes: Sequence[int], in_place: bool = False) -> OrderProblem:
    """One step for each size, which writes a store of that size and reads the stores of its predecessors.

    Step 0 reads a network input of its own size; what nobody reads is an output. `in_place` lets a step's output
    take the memory of an input that dies there and is large enough.
    """
    count = len(sizes)
    before: list[list[int]] = [[] for _ in sizes]
    after: list[list[int]] = [[] for _ in sizes]
    for a, b in sorted(set(edges)):
        before[b].append(a)
        after[a].append(b)
    stores = [Store(f"t{i}", size, (i,), tuple(after[i]), is_output=not after[i]) for i, size in enumerate(sizes)]
    stores.append(Store("input", sizes[0], (), (0,), is_input=True))
    savings = {
        (step, p, step): sizes[step]
        for step in range(count)
        for p in before[step]
        if in_place and sizes[p] >= sizes[step]
    }
    return OrderProblem(tuple(f"s{i}" for i in range(count)), tuple(map(tuple, before)), tuple(stores), savings)


def chain(layers: int, seed: int = 0) -> OrderProblem:
    """Layers one after the other."""
    rng = random.Random(seed)
    return from_edges([(i, i + 1) for i in range(layers - 1)], [varied_sizes(rng) for _ in range(layers)])


def residual(layers: int, seed: int = 0) -> OrderProblem:
    """Blocks of two layers and a sum with the block's input; every second block also has a layer on the way past."""
    rng = random.Random(seed)
    edges, last, count = [], 0, 1
    while count + 4 <= layers:
        edges += [(last, count), (count, count + 1)]
        if len(edges) % 2:
            edges += [(last, count + 2), (count + 1, count + 2)]
            last, count = count + 2, count + 3
        else:
            edges += [(last, count + 2), (count + 2, count + 3), (count + 1, count + 3)]
            last, count = count + 3, count + 4
    return from_edges(edges, [varied_sizes(rng) for _ in range(count)])


def u_net(layers: int, seed: int = 0) -> OrderProblem:
    """A way down and a way up, each level of the way up also reading the same level of the way down."""
    rng = random.Random(seed)
    half = layers // 2
    edges = [(i, i + 1) for i in range(2 * half - 1)] + [(i, 2 * half - 1 - i) for i in range(half - 1)]
    return from_edges(edges, [varied_sizes(rng) for _ in range(2 * half)])


def parallel_branches(
    branches: int,
    length: int,
    seed: int = 0,
    fork: int = 20_000,
    concat: bool = False,
    in_place: bool = False,
) -> OrderProblem:
    """Chains between one fork, whose store they all read, and one join; `concat`: they write into one store."""
    rng = random.Random(seed)
    count = branches * length + 2
    before: list[tuple[int, ...]] = [()]
    stores = [Store("fork", fork, (0,), tuple(range(1, count - 1, length)))]
    savings, ends, total = {}, [], 0
    for _ in range(branches):
        for i in range(length):
            step = len(before)
            before.append((step - 1 if i else 0,))
            size = varied_sizes(rng) // (3 if i == length - 1 else 1)
            if i == length - 1:
                ends.append(step)
                total += size
            if i < length - 1 or not concat:
                if in_place and i and rng.random() < 0.5:
                    x, y = len(stores) - 1, len(stores)
                    savings[step, x, y] = min(size, stores[x].size)
                stores.append(Store(f"t{step}", size, (step,), (step + 1 if i < length - 1 else count - 1,)))
    before.append(tuple(ends))
    if concat:
        stores.append(Store("concat", total, tuple(ends), (count - 1,)))
    stores.append(Store("output", 1_000, (count - 1,), (), is_output=True))
    return OrderProblem(tuple(f"s{i}" for i in range(count)), tuple(before), tuple(stores), savings)


def randwire(
    cells: int,
    seed: int,
    kind: str = "ws",
    nodes: int = 32,
    sizes: Sizes = equal_sizes,
    in_place: bool = False,
) -> OrderProblem:
    """Randomly wired cells one after the other (Xie et al. 2019), a step for each node and for a cell's ends.

    Kinds and their parameters as there: WS(4, 0.75), ER(0.2), BA(5).
    """
    rng = random.Random(seed)
    edges: list[tuple[int, int]] = []
    count, last = 0, None
    for _ in range(cells):
        graph_seed = rng.randrange(1 << 30)
        if kind == "ws":
            graph = nx.connected_watts_strogatz_graph(nodes, 4, 0.75, seed=graph_seed)
        elif kind == "er":
            graph = nx.erdos_renyi_graph(nodes, 0.2, seed=graph_seed)
        else:
            graph = nx.barabasi_albert_graph(nodes, 5, seed=graph_seed)
        wires = [(min(a, b), max(a, b)) for a, b in graph.edges]
        begin, end = count, count + nodes + 1
        edges += [(last, begin)] if last is not None else []
        edges += [(begin + 1 + a, begin + 1 + b) for a, b in wires]
        edges += [(begin, begin + 1 + i) for i in range(nodes) if all(b != i for _, b in wires)]
        edges += [(begin + 1 + i, end) for i in range(nodes) if all(a != i for a, _ in wires)]
        count, last = end + 1, end
    return from_edges(edges, [sizes(rng) for _ in range(count)], in_place)


def searched_cells(seed: int, cells: int = 3, nodes: int = 7, in_place: bool = False) -> OrderProblem:
    """Cells as architecture search finds them (SwiftNet): each node joins earlier ones, then two convolutions.

    A node with several inputs has a concat in front, as large as all of them; a cell ends in a concat of the nodes
    that nobody read, and a convolution. Three cells of seven nodes have about 62 steps.
    """
    rng = random.Random(seed)
    edges: list[tuple[int, int]] = []
    sizes = [12_288]

    def step(inputs: Sequence[int], size: int) -> int:
        edges.extend((i, len(sizes)) for i in inputs)
        sizes.append(size)
        return len(sizes) - 1

    last = 0
    for cell in range(cells):
        pixels = 1024 >> cell
        outputs = [last]
        unread: set[int] = set()
        for _ in range(nodes):
            inputs = sorted(rng.sample(outputs, min(len(outputs), rng.randint(1, 3))))
            unread -= set(inputs)
            if len(inputs) > 1:
                inputs = [step(inputs, sum(sizes[i] for i in inputs))]
            wide = step(inputs, pixels * rng.choice((8, 12, 16, 24)))
            outputs.append(step([wide], pixels * rng.choice((4, 8, 12))))
            unread.add(outputs[-1])
        ends = sorted(unread)
        joined = step(ends, sum(sizes[i] for i in ends)) if len(ends) > 1 else ends[0]
        last = step([joined], pixels * 8)
    return from_edges(edges, sizes, in_place)
