"""Values that look random and are the same in every run: what hardware, callers and unknown code come up with."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b


@lru_cache(maxsize=1 << 16)
def seeded(bits: int, *key: object) -> int:
    """A value of so many bits for the key; small values, 0 and all ones come often, for loops and comparisons."""
    digest = blake2b(repr(key).encode(), digest_size=16).digest()
    ones = (1 << bits) - 1
    drawn = int.from_bytes(digest[:8], "little") & ones
    return (drawn, drawn, drawn % 4, ones, drawn % 16, 0)[digest[8] % 6] & ones
