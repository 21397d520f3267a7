"""The judge's last word on a layout that was just made."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import Infeasible
from ..analysis.spaces import Joint, Spaces
from ..language.description import Description
from .judge import faults
from .layout import Layout


def checked(description: Description, spaces: Spaces, layout: Layout, joints: Sequence[Joint]) -> Layout:
    """The layout itself; where pins or the addresses of devices leave no lawful one, says so."""
    found = faults(description, spaces, layout, joints)
    if found:
        raise Infeasible(
            f"the layout breaks a rule: {found[0]}. Change the pins of these fields, or the addresses of the devices."
        )
    return layout
