"""Files to import: read whole, unless they are larger than any that somebody has made on purpose."""

from __future__ import annotations

from pathlib import Path

from ...errors import InputError

MOST_BYTES = 64 << 20


def read_input(path: Path) -> bytes:
    """The bytes of a file, or an error that says in a sentence why there are none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error
    if len(content) > MOST_BYTES:
        raise InputError(f"'{path}' has {len(content):,} bytes; {MOST_BYTES:,} is the limit")
    return content
