"""Which layout a driver gets: the optimiser's, the paper's, or what a lock file asks for; judged before use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import Infeasible
from .analysis.spaces import Joint, Space, Spaces
from .design import Analysis, Design
from .designing import designed
from .layout.judge import faults
from .layout.layout import Layout
from .layout.optimal import lay_out_optimal
from .layout.paper import lay_out_paper
from .layout.wish import Wish
from .lock.lock import RELOCK, Lock
from .lock.locking import contradicted, locked


def chosen_design(
    analysis: Analysis, method: str = "optimal", wish: Wish | None = None, lock: Lock | None = None
) -> Design:
    """The driver laid out by `method` ("optimal" or "paper"), with all that `lock` knows left where it was."""
    return designed(analysis, lambda joints: chosen_layout(analysis, joints, method, wish or Wish(), lock))


def chosen_layout(
    analysis: Analysis, joints: Sequence[Joint], method: str, wish: Wish, lock: Lock | None = None
) -> Layout:
    """The layout for these joints, judged."""
    description, spaces = analysis.description, analysis.spaces

    def arrange(some: Spaces, theirs: Sequence[Joint]) -> Layout:
        return (
            lay_out_paper(description, some, theirs)
            if method == "paper"
            else lay_out_optimal(description, some, theirs, replace(wish, max_map=None if lock else wish.max_map))
        )

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
