"""The ordering problem: steps, the stores they touch, and the judge that computes the cost of an order.

The sibling modules find orders; they share only the data types with this one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Store:
    """A buffer for the purpose of ordering: its size, its writers and readers."""

    name: str
    size: int  # bytes
    writers: tuple[int, ...]  # several if parts are written in place (concat); empty for a network input
    readers: tuple[int, ...]
    is_input: bool = False  # alive from before the first step
    is_output: bool = False  # alive until after the last step


@dataclass(frozen=True)
class OrderProblem:
    """Steps with their order constraints and the stores that live between them.

    `savings[(step, x, y)]` counts the bytes that store x (dying at that step) and store y (first written by it) may
    share: in-place layers, and outputs that overlap their input.
    """

    steps: tuple[str, ...]  # names; a step's index is its id
    before: tuple[tuple[int, ...], ...]  # direct predecessors of each step
    stores: tuple[Store, ...]
    savings: Mapping[tuple[int, int, int], int] = field(default_factory=dict)
    scratch: tuple[int, ...] = ()  # extra bytes while the step runs; empty: none for any step

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
    """An order of all steps, its peak, and a lower bound for all orders."""

    steps: tuple[int, ...]
    peak: int  # bytes, as the judge counts them
    bound: int  # proven: every order needs at least this many bytes
    method: str

    @property
    def optimal(self) -> bool:
        """Whether the order is proven best."""
        return self.peak == self.bound


def is_valid(problem: OrderProblem, order: Sequence[int]) -> bool:
    """Whether the order runs every step once, after all its predecessors."""
    position = {step: at for at, step in enumerate(order)}
    return sorted(order) == list(range(len(problem.steps))) and all(
        position[p] < position[s] for s in position for p in problem.before[s]
    )


def profile(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    """Bytes in use while each step of the order runs (the judge; it shares no code with the solvers).

    A store is live from its first writer to its last reader or writer, inclusive; an input from the start (if it is
    used), an output to the end.
    """
    position = {step: at for at, step in enumerate(order)}
    change = [0] * (len(order) + 1)  # change of live bytes at each position
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
    """The peak of the order; 0 without steps."""
    return max(profile(problem, order), default=0)
