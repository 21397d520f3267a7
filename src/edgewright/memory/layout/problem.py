"""The layout problem, its solution, and the judge that checks one against the other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ...errors import Infeasible, InputError


class NotFound(Infeasible):
    """No placement was found, but none was proven impossible."""


@dataclass(frozen=True, slots=True)
class Item:
    """A buffer of `size` bytes that is live from `start` until just before `end`."""

    name: str
    start: int
    end: int  # one past the last
    size: int
    fixed: int | None = None  # a required address


@dataclass(frozen=True)
class LayoutProblem:
    """Buffers that want addresses. Two alive together, x and y, must lie so that

        offset[x] + g_xy <= offset[y]   or   offset[y] + g_yx <= offset[x]

    where (g_xy, g_yx) is `gaps[x, y]` if given, else their sizes. A gap below the size says that the upper buffer
    may lie that far inside the lower one: a layer's output that trails its dying input. It may be zero or negative.
    """

    items: tuple[Item, ...]
    gaps: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    alignment: int = 1  # every offset is a multiple

    def __post_init__(self) -> None:
        object.__setattr__(self, "gaps", MappingProxyType(dict(self.gaps)))
        sizes: dict[str, int] = {}
        for item in self.items:
            if item.name in sizes:
                raise InputError(f"buffer {item.name!r} is listed twice; give every buffer its own name")
            if item.end <= item.start or item.size < 0:
                raise InputError(
                    f"buffer {item.name!r} lives in [{item.start}, {item.end}) with {item.size} bytes; "
                    "its end must come after its start, and its size must not be negative"
                )
            if item.fixed is not None and (item.fixed < 0 or item.fixed % max(1, self.alignment)):
                raise InputError(
                    f"buffer {item.name!r} is fixed at {item.fixed}; give it a multiple of {self.alignment}, at least 0"
                )
            sizes[item.name] = item.size
        for (x, y), (g_xy, g_yx) in self.gaps.items():
            if x not in sizes or y not in sizes or x == y or (y, x) in self.gaps:
                raise InputError(f"the pair ({x!r}, {y!r}) must name two different buffers, once")
            if g_xy > sizes[x] or g_yx > sizes[y]:
                raise InputError(f"the gaps {g_xy}, {g_yx} of ({x!r}, {y!r}) exceed the sizes of the buffers")
        if self.alignment < 1:
            raise InputError(f"the alignment is {self.alignment}; it must be at least 1")

    def gap(self, below: Item, above: Item) -> int:
        """The least distance from the address of `below` to that of `above`."""
        if (pair := self.gaps.get((below.name, above.name))) is not None:
            return pair[0]
        if (pair := self.gaps.get((above.name, below.name))) is not None:
            return pair[1]
        return below.size


@dataclass(frozen=True)
class Placement:
    """An address for every buffer. `bound` is proven: no placement has a smaller peak."""

    offsets: Mapping[str, int]
    peak: int  # one past the last byte in use
    bound: int
    method: str

    @property
    def optimal(self) -> bool:
        return self.peak == self.bound


def conflicts(problem: LayoutProblem, placement: Placement) -> list[tuple[str, str]]:
    """The pairs of buffers that violate `problem`; a buffer that is wrong by itself is paired with its own name.

    The judge of every solver here. It shares no code with them and reads like the problem's definition.
    """
    at, gaps = (
        placement.offsets,
        dict(problem.gaps) | {(y, x): (h, g) for (x, y), (g, h) in problem.gaps.items()},
    )
    bad = []
    alive: list[Item] = []
    for x in sorted(problem.items, key=lambda item: item.start):
        a = at[x.name]
        if a < 0 or a % problem.alignment or a + x.size > placement.peak or x.fixed not in (None, a):
            bad.append((x.name, x.name))
        alive = [y for y in alive if y.end > x.start]
        for y in alive:
            b = at[y.name]
            g_xy, g_yx = gaps.get((x.name, y.name), (x.size, y.size))
            if a + g_xy > b and b + g_yx > a:
                bad.append((y.name, x.name))
        alive.append(x)
    return bad


def align_up(value: int, alignment: int) -> int:
    """The least multiple of `alignment` that is not below `value`."""
    return -(-value // alignment) * alignment
