"""Images scaled: nearest and linear."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def resize(site: Site, c: Source) -> bool:
    return False
