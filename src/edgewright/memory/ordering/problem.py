"""The question "in which order?": steps, the stores they touch, and the judge that says what an order costs.

Finding orders is left to the sibling modules; nothing here is shared with them but the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Store:
    """A buffer as the order sees it: who touches it and how large it is."""

    name: str
    size: int  # bytes
    writers: tuple[int, ...]  # several when parts are written in place (concat); empty for a network input
    readers: tuple[int, ...]
    is_input: bool = False  # alive from before the first step
    is_output: bool = False  # alive until after the last step


@dataclass(frozen=True)
class OrderProblem:
    """Steps with their order constraints and the stores that are alive between them.

    `savings[(step, x, y)]` counts the bytes that store x (dying at that step) and store y (first written by
    it) may share: in-place layers, and outputs that trail their input in the same memory.
    """

    steps: tuple[str, ...]  # names; a step's index is its id
    before: tuple[tuple[int, ...], ...]  # for each step, the steps that must have run (direct predecessors)
    stores: tuple[Store, ...]
    savings: Mapping[tuple[int, int, int], int] = field(default_factory=dict)
    scratch: tuple[int, ...] = ()  # extra bytes while the step runs; empty means none anywhere

    def __hash__(self) -> int:
        return hash((self.steps, self.before, self.stores, self.scratch))  # a mapping has no hash; it is compared

    def __post_init__(self) -> None:
        if not self.scratch:
            object.__setattr__(self, "scratch", (0,) * len(self.steps))
        known = range(len(self.steps))
        assert len(self.before) == len(self.scratch) == len(self.steps), "one entry for each step"
        assert all(p in known and p != s for s in known for p in self.before[s]), "before names unknown steps"
        for store in self.stores:
            assert store.size >= 0, f"store {store.name} has a negative size"
            assert store.writers or store.is_input, f"nobody writes store {store.name}"
            assert all(s in known for s in store.writers + store.readers), f"{store.name} names unknown steps"
        for (step, x, y), saved in self.savings.items():
            assert saved >= 0
            assert step in self.stores[x].readers + self.stores[x].writers, "a saving's x is touched by its step"
            assert step in self.stores[y].writers, "a saving's y is written by its step"
            assert not self.stores[y].is_input, "a saving's y is first written by its step, so it is no input"


@dataclass(frozen=True)
class Order:
    """An order of all steps, what it costs, and what no order can do without."""

    steps: tuple[int, ...]
    peak: int  # bytes, as the judge counts them
    bound: int  # proven: every order needs at least this many bytes
    method: str

    @property
    def optimal(self) -> bool:
        """Whether no order needs less."""
        return self.peak == self.bound


def is_valid(problem: OrderProblem, order: Sequence[int]) -> bool:
    """Whether the order runs every step once, and after all steps it must follow."""
    position = {step: at for at, step in enumerate(order)}
    return sorted(order) == list(range(len(problem.steps))) and all(
        position[p] < position[s] for s in position for p in problem.before[s]
    )


def profile(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    """Bytes in use while each step of the order runs (the judge; it shares no code with the solvers).

    A store is alive from its first writer to its last reader or writer, both included; an input from the start
    (if anybody touches it), an output to the end.
    """
    position = {step: at for at, step in enumerate(order)}
    change = [0] * (len(order) + 1)  # bytes that come to life (or went) at each position
    dies: list[int] = []
    for store in problem.stores:
        touched = [position[s] for s in store.writers + store.readers]
        first = 0 if store.is_input else min(position[s] for s in store.writers)
        last = len(order) - 1 if store.is_output else max(touched, default=-1)
        change[first] += store.size
        change[last + 1] -= store.size
        dies.append(-1 if store.is_output else last)
    use = [held + problem.scratch[step] for held, step in zip(accumulate(change), order, strict=False)]

    shared: dict[tuple[int, int], int] = {}
    for (step, x, y), saved in problem.savings.items():
        if problem.stores[y].writers == (step,) and dies[x] == position[step]:
            shared[step, y] = shared.get((step, y), 0) + saved
    for (step, y), saved in shared.items():
        use[position[step]] -= min(saved, problem.stores[y].size)
    return use


def peak(problem: OrderProblem, order: Sequence[int]) -> int:
    """The most bytes in use at any step of the order; 0 for no steps."""
    return max(profile(problem, order), default=0)
