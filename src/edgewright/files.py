"""Writing files: the whole of it or nothing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import InputError


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """The path, once it holds all of `content`. A failure leaves what was there before, and nothing else."""
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error
    return path
