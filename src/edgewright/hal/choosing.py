"""Which layout a driver gets: the optimiser's, the paper's, or what a lock file asks for; judged before use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import Infeasible
from .analysis.spaces import Joint, Space, Spaces
from .counting import totals
from .design import Analysis, Design
from .designing import designed, naive, real_joints
from .layout.cost import cost_of
from .layout.judge import faults
from .layout.layout import Layout
from .layout.optimal import PATIENCE, lay_out_optimal
from .layout.paper import lay_out_paper
from .layout.wish import Wish
from .lock.lock import RELOCK, Lock
from .lock.locking import contradicted, locked


def chosen_design(
    analysis: Analysis, method: str = "optimal", wish: Wish | None = None, lock: Lock | None = None
) -> Design:
    """The driver laid out by `method` ("optimal" or "paper"), with all that `lock` knows left where it was.

    A balanced layout is the best of several: it takes no more accesses than a register for each field unless the map is
    limited, and none that is best at one thing is better in everything.
    """
    wish = wish or Wish()
    first = designed(analysis, lambda joints: chosen_layout(analysis, joints, method, wish, lock))
    if method != "optimal" or wish.minimise != "balanced" or lock is not None:
        return first
    found = [_Candidate.of(one, wish) for one in (first, *_others(analysis, wish))]
    most = total_accesses(naive(analysis))
    best, *rest = sorted([one for one in found if one.accesses <= most] or found, key=lambda one: one.score)
    for other in rest:
        best = other if other.is_safer_than(best) else best
    return best.design


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A design with what it comes to: accesses in its code and bytes of its map, and by estimate code and score."""

    design: Design
    accesses: int
    map_bytes: int
    code: int
    score: int

    @classmethod
    def of(cls, made: Design, wish: Wish) -> _Candidate:
        """A design judged by what it really accesses at once."""
        analysis = made.analysis
        cost = cost_of(analysis.description, analysis.spaces, made.layout, real_joints(made))
        return cls(made, total_accesses(made), cost.map_bytes, cost.code, cost.score(wish.weights))

    def is_safer_than(self, other: _Candidate) -> bool:
        """Whether it is better in what is known for certain, and its code no larger as far as estimates can tell."""
        certain = self.accesses, self.map_bytes
        theirs = other.accesses, other.map_bytes
        is_better = certain != theirs and all(a <= b for a, b in zip(certain, theirs, strict=True))
        return is_better and self.code <= ERROR * other.code


SIDE_PATIENCE = 0.1  # units of deterministic time for each layout that is best at one thing
ERROR = 1.2  # estimated bytes of code that lie closer together may be ranked the other way round by a compiler


def _others(analysis: Analysis, wish: Wish) -> Iterator[Design]:
    """Designs that are best at one thing, found in less time."""
    for minimise in ("accesses", "code", "map"):
        yield designed(analysis, _lay_out(analysis, replace(wish, minimise=minimise)))


def _lay_out(analysis: Analysis, wish: Wish) -> Callable[[Sequence[Joint]], Layout]:
    return lambda joints: chosen_layout(analysis, joints, "optimal", wish, patience=SIDE_PATIENCE)


def total_accesses(made: Design) -> int:
    """Accesses in the code of a driver."""
    return sum(totals(made).values())


def chosen_layout(
    analysis: Analysis,
    joints: Sequence[Joint],
    method: str,
    wish: Wish,
    lock: Lock | None = None,
    patience: float = PATIENCE,
) -> Layout:
    """The layout for these joints, judged."""
    description, spaces = analysis.description, analysis.spaces

    def arrange(some: Spaces, theirs: Sequence[Joint]) -> Layout:
        if method == "paper":
            return lay_out_paper(description, some, theirs)
        free = replace(wish, max_map=None if lock else wish.max_map)
        return lay_out_optimal(description, some, theirs, free, patience)

    if lock is None:
        layout = arrange(spaces, joints)
    else:
        # Whoever lays out wants to know of every space; those without new slots are empty.
        nothing = {name: Space(name, ()) for name in spaces}
        layout = locked(description, spaces, lock, lambda new: arrange({**nothing, **new}, _among(joints, new)))
    _check(analysis, joints, layout, wish, lock)
    return layout


def _check(analysis: Analysis, joints: Sequence[Joint], layout: Layout, wish: Wish, lock: Lock | None) -> None:
    """Raises where the layout breaks a rule or its limit: a lock may ask for what the source no longer allows."""
    description = analysis.description
    if lock and (found := faults(description, analysis.spaces, layout, joints)):
        raise contradicted(lock, "; ".join(found))
    size = layout.map_bytes(description)
    if wish.max_map is not None and size > wish.max_map:
        kept = f" as lock file '{lock.path}' has it; {RELOCK}" if lock else f" by method {layout.made_by}"
        raise Infeasible(f"the register map needs {size} bytes, --max-map allows {wish.max_map}:{kept}")


def _among(joints: Sequence[Joint], spaces: Spaces) -> list[Joint]:
    """The joints of some slots alone."""
    known = {(name, slot.name) for name, space in spaces.items() for slot in space.slots}
    cut = [replace(j, slots=tuple(slot for slot in j.slots if (j.space, slot) in known)) for j in joints]
    return [joint for joint in cut if joint.slots]
