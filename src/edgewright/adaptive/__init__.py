"""Scenarios of one application that switch at run time.

The package itself is callable as `edgewright.adaptive(...)`, because importing a submodule would replace a function of
that name.
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
        """Runs an application with scenarios on this machine: see `runtime.adaptive`."""
        from .runtime import adaptive

        return adaptive(what, policy)


sys.modules[__name__].__class__ = _CallableRoom
