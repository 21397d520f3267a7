"""Writing files: all of them or none, each as a whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .errors import InputError


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """The path, once it holds all of `content`. A failure leaves what was there before, and nothing else."""
    write_together({Path(path): content})
    return Path(path)


def write_together(files: Mapping[Path, str | bytes]) -> None:
    """Writes every file or none: each goes to a temporary file beside its target before the first is put in place."""
    ready: dict[Path, str] = {}
    target = Path()
    try:
        for target, content in files.items():
            if target.is_dir():
                raise IsADirectoryError(None, "it is a directory")
            handle, ready[target] = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            with os.fdopen(handle, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
            os.chmod(ready[target], 0o644)
        for target, temporary in ready.items():
            os.replace(temporary, target)
    except OSError as error:
        for temporary in ready.values():
            with suppress(OSError):
                os.unlink(temporary)
        raise InputError(f"cannot write '{target}': {error.strerror or error}") from error
