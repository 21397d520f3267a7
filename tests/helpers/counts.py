"""How many random cases the long tests try: the numbers of `make check-all`, or others to try elsewhere."""

from __future__ import annotations

import os


def seeds(name: str, usual: int) -> range:
    """The cases of a long test; EDGEWRIGHT_<name>=300 asks for the first 300, 300:900 for those from 300 on."""
    first, _, end = os.environ.get(f"EDGEWRIGHT_{name}", str(usual)).rpartition(":")
    return range(int(first or 0), int(end))
