"""Scenarios of one application that switch at run time.

The package itself is a function, `edgewright.adaptive(...)`: the import of a submodule sets the name to this package,
so that a function of that name beside it would not last.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..program.switching import SwitchPolicy
    from .runtime import Adaptive
    from .scenarios import AdaptiveApplication


class _CallableRoom(ModuleType):
    def __call__(self, what: AdaptiveApplication | str | Path, policy: SwitchPolicy | str | None = None) -> Adaptive:
        """An application with scenarios at work on this machine: see `runtime.adaptive`."""
        from .runtime import adaptive

        return adaptive(what, policy)


sys.modules[__name__].__class__ = _CallableRoom
